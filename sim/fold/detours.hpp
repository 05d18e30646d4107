// Calls under the routes that hold when links have failed (FoldOptions::detours).
#pragma once

#include <string>
#include <vector>

#include "sim/fold/groups.hpp"

namespace topsim::fold {

class Detours {
 public:
  // REQUIRES: the arguments outlive it.
  Detours(const program::Program& program, const std::vector<const collective::NcclModel*>& models);

  struct Other {
    bool same = true;  // as without the detour
    collective::LoweredCalls lowered;
    std::string cut;  // not empty: members cannot reach each other, and why
  };
  // By detour; empty where the group is the same under all. Thread-safe.
  [[nodiscard]] std::vector<Other> of(const Group& group, const collective::LoweredCalls& lowered) const;

 private:
  std::vector<GroupLowering> lowerings_;
};
}  // namespace topsim::fold

// What the numbers of a Chakra node say (et_def.proto).
#pragma once

#include <cstdint>
#include <string_view>

#include "workloads/trace/wire.hpp"

namespace topsim::workloads::trace {

enum NodeType : std::uint64_t {
  kMetadata = 1,
  kMemoryLoad,
  kMemoryStore,
  kCompute,
  kSend,
  kRecv,
  kCollective
};

// Chakra has whole microseconds: what topsim writes beside them where there is more to say, of the same time.
inline constexpr std::string_view kPicoseconds = "duration_picos";

struct Attribute {
  double number = 0;
  std::string_view text;
  bool given = false;
};

// The scalar of an AttributeProto, whatever its width: producers disagree.
[[nodiscard]] Attribute attribute(const WireField& field);
}  // namespace topsim::workloads::trace

// The numbers in a Chakra node (et_def.proto).
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

// Chakra has whole microseconds: topsim adds this attribute where a time is not a whole number of them.
inline constexpr std::string_view kPicoseconds = "duration_picos";

struct Attribute {
  double number = 0;
  std::string_view text;
  bool given = false;
};

// The scalar of an AttributeProto, whatever its width: producers disagree.
[[nodiscard]] Attribute attribute(const WireField& field);
}  // namespace topsim::workloads::trace

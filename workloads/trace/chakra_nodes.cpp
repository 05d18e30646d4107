#include "workloads/trace/chakra_nodes.hpp"

#include <bit>

namespace topsim::workloads::trace {

Attribute attribute(const WireField& field) {
  Attribute result;
  result.given = true;
  const auto zigzag = [](std::uint64_t v) {
    return static_cast<double>(static_cast<std::int64_t>(v >> 1U) ^ -static_cast<std::int64_t>(v & 1U));
  };
  switch (field.number) {
    case 3:  // double
      result.number = std::bit_cast<double>(field.integer);
      break;
    case 5:  // float
      result.number = static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(field.integer)));
      break;
    case 7:   // int32
    case 9:   // int64
    case 25:  // sfixed64
      result.number = static_cast<double>(static_cast<std::int64_t>(field.integer));
      break;
    case 23:  // sfixed32
      result.number =
          static_cast<double>(static_cast<std::int32_t>(static_cast<std::uint32_t>(field.integer)));
      break;
    case 15:  // sint32
    case 17:  // sint64
      result.number = zigzag(field.integer);
      break;
    case 11:  // uint32
    case 13:  // uint64
    case 19:  // fixed32
    case 21:  // fixed64
    case 27:  // bool
      result.number = static_cast<double>(field.integer);
      break;
    case 29:  // string
    case 31:  // bytes
      result.text = field.bytes;
      break;
    default:  // lists: a replay needs none
      result.given = false;
  }
  return result;
}
}  // namespace topsim::workloads::trace

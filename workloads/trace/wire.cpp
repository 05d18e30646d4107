#include "workloads/trace/wire.hpp"

namespace topsim::workloads::trace {

std::optional<std::uint64_t> WireReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && at_ < bytes_.size(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes_[at_++]);
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80U) return value;
  }
  return std::nullopt;
}

std::optional<std::string_view> WireReader::block() {
  const auto length = varint();
  if (!length || *length > bytes_.size() - at_) return std::nullopt;
  const std::string_view result = bytes_.substr(at_, *length);
  at_ += *length;
  return result;
}

std::optional<std::uint64_t> WireReader::fixed(std::size_t width) {
  if (bytes_.size() - at_ < width) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i)
    value |= std::uint64_t{static_cast<unsigned char>(bytes_[at_ + i])} << (8 * i);
  at_ += width;
  return value;
}

std::optional<WireField> WireReader::field() {
  const auto key = varint();
  if (!key || *key >> 3U == 0 || *key >> 3U > 0x1FFFFFFFU) return std::nullopt;
  WireField result;
  result.number = static_cast<std::uint32_t>(*key >> 3U);
  result.type = static_cast<std::uint32_t>(*key & 7U);
  std::optional<std::uint64_t> value;
  switch (result.type) {
    case 0:
      value = varint();
      break;
    case 1:
      value = fixed(8);
      break;
    case 5:
      value = fixed(4);
      break;
    case 2: {
      const auto bytes = block();
      if (!bytes) return std::nullopt;
      result.bytes = *bytes;
      return result;
    }
    default:
      return std::nullopt;
  }
  if (!value) return std::nullopt;
  result.integer = *value;
  return result;
}
}  // namespace topsim::workloads::trace

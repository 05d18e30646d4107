// The wire format of protocol buffers, writing only: enough for traces, and no generated code to carry.
// https://protobuf.dev/programming-guides/encoding/: a field is its number and wire type as a varint, then
// the value: varint (0), eight bytes (1) or length and bytes (2).
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace topsim {

class ProtobufWriter {
 public:
  void integer(std::uint32_t field, std::uint64_t value) {
    varint(std::uint64_t{field} << 3U);
    varint(value);
  }
  void text(std::uint32_t field, std::string_view value) {
    varint((std::uint64_t{field} << 3U) | 2U);
    block(value);
  }
  // A length and so many bytes, without a field: how messages follow each other in a file.
  void block(std::string_view value) {
    varint(value.size());
    bytes_ += value;
  }
  void message(std::uint32_t field, const ProtobufWriter& value) { text(field, value.bytes_); }
  void fixed64(std::uint32_t field, std::uint64_t value) {
    varint((std::uint64_t{field} << 3U) | 1U);
    for (unsigned shift = 0; shift < 64; shift += 8) bytes_ += static_cast<char>((value >> shift) & 0xFFU);
  }
  void real(std::uint32_t field, double value) { fixed64(field, std::bit_cast<std::uint64_t>(value)); }
  void clear() { bytes_.clear(); }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80U; value >>= 7U) bytes_ += static_cast<char>((value & 0x7FU) | 0x80U);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};
}  // namespace topsim

// The wire format of protocol buffers, reading: as much as Chakra traces need, with bounds checked at every
// byte and no generated code to carry; sim/base/protobuf_writer.hpp writes it.
// https://protobuf.dev/programming-guides/encoding/
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace topsim::workloads::trace {

struct WireField {
  std::uint32_t number = 0;
  std::uint32_t type = 0;     // 0 varint, 1 eight bytes, 2 length and bytes, 5 four bytes
  std::uint64_t integer = 0;  // types 0, 1, 5 as they stand
  std::string_view bytes;     // type 2
};

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : bytes_(bytes) {}
  [[nodiscard]] bool ended() const { return at_ >= bytes_.size(); }
  [[nodiscard]] std::size_t position() const { return at_; }
  // Empty: the bytes end, or are not what the format allows; position() is then where.
  [[nodiscard]] std::optional<std::uint64_t> varint();
  [[nodiscard]] std::optional<std::string_view> block();  // a length, then so many bytes
  [[nodiscard]] std::optional<WireField> field();

 private:
  [[nodiscard]] std::optional<std::uint64_t> fixed(std::size_t width);
  std::string_view bytes_;
  std::size_t at_ = 0;
};
}  // namespace topsim::workloads::trace

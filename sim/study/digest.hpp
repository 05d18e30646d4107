// A short name for a text's content: FNV-1a, 128 bits (Fowler, Noll, Vo; offset and prime of the IETF draft).
// Equal texts have equal digests; it resists accidents, not attackers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace topsim::study {

class Digest {
 public:
  // Parts are kept apart: add("ab") and add("c") differ from add("a") and add("bc").
  Digest& add(std::string_view part);
  [[nodiscard]] std::string text() const;  // 32 hexadecimal digits

 private:
  __extension__ using Word = unsigned __int128;
  void add_byte(std::uint8_t byte);
  Word state_ = (static_cast<Word>(0x6c62272e07bb0142) << 64) | 0x62b821756295c58d;
};
}  // namespace topsim::study

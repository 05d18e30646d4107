#include "sim/study/digest.hpp"

#include <fmt/format.h>

namespace topsim::study {

void Digest::add_byte(std::uint8_t byte) {
  constexpr Word kPrime = (static_cast<Word>(1) << 88) | 0x13b;
  state_ = (state_ ^ byte) * kPrime;
}

Digest& Digest::add(std::string_view part) {
  for (const char c : part) add_byte(static_cast<std::uint8_t>(c));
  for (std::size_t size = part.size(), i = 0; i < sizeof size; ++i, size >>= 8)
    add_byte(static_cast<std::uint8_t>(size));
  return *this;
}

std::string Digest::text() const {
  return fmt::format("{:016x}{:016x}", static_cast<std::uint64_t>(state_ >> 64),
                     static_cast<std::uint64_t>(state_));
}
}  // namespace topsim::study

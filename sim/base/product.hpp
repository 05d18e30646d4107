// Products of counts that a user gave: a wrapped one would be told as if it were theirs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace topsim {

// Nothing where it exceeds 64 bits.
[[nodiscard]] inline std::optional<std::int64_t> product_of(std::span<const int> factors) {
  std::int64_t product = 1;
  for (const int factor : factors)
    if (__builtin_mul_overflow(product, factor, &product)) return std::nullopt;
  return product;
}

[[nodiscard]] inline std::string product_text(const std::optional<std::int64_t>& product) {
  return product ? std::to_string(*product) : "more than 9e18";
}
}  // namespace topsim

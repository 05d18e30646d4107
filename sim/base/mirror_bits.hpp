// The order in which NCCL spreads neighbours over equal parts (mirrorBits of its graph/paths.cc).
#pragma once

namespace topsim {

// The lowest bit becomes the highest, and so on. REQUIRES: size is a power of two, 0 <= value < size.
template <class Number>
[[nodiscard]] constexpr Number mirror_bits(Number value, Number size) {
  Number mirrored = 0;
  for (Number low = 1, high = size >> 1; low < size; low <<= 1, high >>= 1)
    if ((value & low) != 0) mirrored |= high;
  return mirrored;
}
}  // namespace topsim

// Hashes of numbers, the same on every machine and in every run.
#pragma once

#include <cstdint>

namespace topsim {

// 2^64 over the golden ratio, odd: splitmix64's step from one number to the next, and the factor of Fibonacci
// hashing (Knuth, TAOCP 3, 6.4).
inline constexpr std::uint64_t kGoldenGamma = 0x9e3779b97f4a7c15ULL;

// The finaliser of splitmix64 (Steele et al., OOPSLA 2014): every bit in reaches every bit out. 0 stays 0.
[[nodiscard]] constexpr std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// The number that follows x in a splitmix64 sequence: neighbouring x give unrelated results.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) {
  return scramble(x + kGoldenGamma);
}

// Two in order: mix(a, b) is not mix(b, a). Chains hash a sequence: mix(mix(a, b), c).
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  return scramble(a + kGoldenGamma + scramble(b ^ 0xd1b54a32d192ed03ULL));
}

// The hash of a sequence of unsigned numbers, for hash tables. A sum of products of each word with its own
// odd number, so that the products need not wait for each other. The upper half of a word, or of the sum,
// also affects the lower half.
template <class Words>
[[nodiscard]] constexpr std::uint64_t hash_words(const Words& words) {
  std::uint64_t hash = words.size(), factor = kGoldenGamma;
  for (const std::uint64_t word : words) {
    hash += (word ^ word >> 32) * factor;
    factor += 0xd1b54a32d192ed04ULL;
  }
  hash = (hash ^ hash >> 32) * 0xbf58476d1ce4e5b9ULL;
  return hash ^ hash >> 32;
}
}  // namespace topsim

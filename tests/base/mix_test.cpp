#include "sim/base/mix.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <vector>

namespace topsim::mix_test {

TEST(Mix, DrawsTheSequenceOfSplitmix64) {
  // The first five numbers that the reference splitmix64.c (Vigna) gives from the state 1234567.
  constexpr std::array<std::uint64_t, 5> kDrawn{6457827717110365317ULL, 3203168211198807973ULL,
                                                9817491932198370423ULL, 4593380528125082431ULL,
                                                16408922859458223821ULL};
  std::uint64_t state = 1234567;
  for (const std::uint64_t drawn : kDrawn) {
    EXPECT_EQ(mix(state), drawn);
    state += kGoldenGamma;
  }
}

TEST(Mix, OfTwoDependsOnTheirOrderAndOnEither) {
  // 64 x 64 pairs of small numbers. Among 4096 random 64-bit values two are equal once in 10^12.
  std::set<std::uint64_t> seen;
  for (std::uint64_t a = 0; a < 64; ++a)
    for (std::uint64_t b = 0; b < 64; ++b) seen.insert(mix(a, b));
  EXPECT_EQ(seen.size(), 64U * 64U);
}

TEST(HashWords, TellsSequencesApartByOrderAndLength) {
  using Words = std::vector<std::uint32_t>;
  EXPECT_NE(hash_words(Words{1, 2}), hash_words(Words{2, 1}));
  EXPECT_NE(hash_words(Words{0}), hash_words(Words{0, 0}));
  EXPECT_EQ(hash_words(Words{7, 9}), hash_words(std::array<std::uint64_t, 2>{7, 9}));
}

TEST(HashWords, SpreadsWhatDiffersInTheHighestBitsOverASmallTable) {
  // Words that differ only in their two highest bits. A table of 2^16 slots uses only the lowest 16 bits of
  // the hash.
  std::set<std::uint64_t> slots;
  for (std::uint64_t a = 0; a < 4; ++a)
    for (std::uint64_t b = 0; b < 4; ++b)
      slots.insert(hash_words(std::array<std::uint64_t, 2>{a << 62, b << 62}) & 0xffff);
  EXPECT_GE(slots.size(), 15U);
}
}  // namespace topsim::mix_test

// Names that end in a size: models and their parameters, "llama3-70b", links and their rates, "eth-100g". One
// of another family, or of another size, is another thing however close its letters are: an MPT of 13 billion
// parameters is no OPT.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace topsim {

struct Sized {
  std::vector<std::string> same;    // of this size, of the same family or one that is called alike
  std::vector<std::string> others;  // else the family's, the nearest size first
};

// Both are empty for a word without a size, or of no known family.
[[nodiscard]] Sized of_size(std::string_view word, std::span<const std::string> known);
}  // namespace topsim

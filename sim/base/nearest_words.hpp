// Known names that share words with a name that is no misspelling of any: "gcp-a3-mega" for "a3-megagpu-8g".
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace topsim {

// Runs of letters and digits, in lower case.
[[nodiscard]] std::vector<std::string> name_parts(std::string_view name);

// At most so many of the known names, those that share the most words (or beginnings of words) first; of
// equals the shorter. Words are name_parts().
[[nodiscard]] std::vector<std::string> nearest_by_words(std::string_view word,
                                                        std::span<const std::string> known, std::size_t most);
}  // namespace topsim

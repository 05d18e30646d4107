// Known names that share words with a name that is no misspelling of any: "gcp-a3-mega" for "a3-megagpu-8g".
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace topsim {

// At most so many of the known names, those that share the most words (or beginnings of words) first; of
// equals the shorter. Words are runs of letters and digits, capitals ignored.
[[nodiscard]] std::vector<std::string> nearest_by_words(std::string_view word,
                                                        std::span<const std::string> known, std::size_t most);
}  // namespace topsim

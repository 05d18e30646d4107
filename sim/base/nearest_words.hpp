// Names that share words with another, where no edit of it gives one: "gcp-a3-mega" for "a3-megagpu-8g".
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace topsim {

// At most so many of the known, those that share most words first, whole or as their beginning; of equals the
// shorter. Words are letters and digits in a row, capitals ignored.
[[nodiscard]] std::vector<std::string> nearest_by_words(std::string_view word,
                                                        std::span<const std::string> known, std::size_t most);
}  // namespace topsim

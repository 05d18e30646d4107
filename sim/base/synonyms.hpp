// Known words that a name stands for without being close to it in letters.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace topsim {

// In lower case and without hyphens, underscores and spaces.
[[nodiscard]] std::string plain(std::string_view word);

// The only known word that differs from this one in nothing but capitals, hyphens, underscores, spaces and
// dots: "fat-tree" for "Fat_Tree".
[[nodiscard]] std::optional<std::string> same_but_for_marks(std::string_view word,
                                                            std::span<const std::string> known);

// The known word for what other programs call by this one ("gpu": accelerator, "num_layers": layers), both
// compared as plain() writes them.
[[nodiscard]] std::optional<std::string> same_meaning(std::string_view word,
                                                      std::span<const std::string> known);
}  // namespace topsim

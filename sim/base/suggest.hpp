// "did you mean ...?": the closest known word, or none when nothing is close enough.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace topsim {

// Levenshtein distance; a swap of neighbours counts as one edit ("lenght" is one typo, not two).
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

// The known word that means the same, or else the closest within max(1, length/3) edits, capitals ignored; of
// equals one with the same first letter. A known word that this one begins with, up to a hyphen or a dot,
// comes before those with another digit or more than one letter wrong. Where known words share a chip's
// name with this one ("gb200" of "dgx-gb200"), only these are looked at, and one of them is found however far
// it is.
[[nodiscard]] std::optional<std::string> closest(std::string_view word, std::span<const std::string> known);

// did you mean "a", "b" or "c"? Empty for none.
[[nodiscard]] std::string did_you_mean(std::span<const std::string> names);

// A question with the known word that is meant (synonyms.hpp), with those of the same size (sizes.hpp), with
// all that this one is the beginning of, up to a hyphen (did you mean "h100-pcie" or "h100-sxm5"?), or with
// the closest; or else the family's other sizes. Empty when nothing is close enough.
[[nodiscard]] std::string suggestion(std::string_view word, std::span<const std::string> known);

// "a, b, c"; above `most` words: "a, b, c, ... (12 in all)".
[[nodiscard]] std::string join(std::span<const std::string> words, std::size_t most = 40);
}  // namespace topsim

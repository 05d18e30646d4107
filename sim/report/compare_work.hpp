// Whether the candidates of a comparison do the same work. Each returns a sentence, empty where they do.
#pragma once

#include <span>
#include <string>

#include "sim/report/compare.hpp"

namespace topsim::report {
// A step or a token of another task is no measure of the same thing: they have no ratio.
[[nodiscard]] std::string other_task(const Comparison& comparison, std::span<const Candidate> candidates,
                                     std::size_t c);
// Another model, task or sequence length: comparing steps or tokens then says little.
[[nodiscard]] std::string other_work(const Comparison& comparison, std::span<const Candidate> candidates,
                                     std::size_t c);
// Releases of one framework from different years, at least one of which nobody stated (releases.hpp).
[[nodiscard]] std::string other_release(const Comparison& comparison, std::span<const Candidate> candidates,
                                        std::size_t c);
}  // namespace topsim::report

// What the candidates of a comparison cost, as a sentence.
#pragma once

#include <span>
#include <string>

#include "sim/report/compare.hpp"

namespace topsim::report {
// Which candidate's token (or step) costs more, over the ranges of prices, and at which price of the fabric
// the answer changes; why costs are not compared; empty where one of them buys nothing. REQUIRES:
// step_relative of `comparison` is filled.
[[nodiscard]] std::string cost_sentence(const Comparison& comparison, std::span<const Candidate> candidates,
                                        std::size_t c);
}  // namespace topsim::report

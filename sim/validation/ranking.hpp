// Whether predictions order layouts and grow with size as the measurements do.
//
//   Kendall's tau: of all pairs of steps that differ in layout only (tensor, pipeline, context and data
//   parallelism,
//     micro-batch, schedule, recompute, optimiser shards), (concordant - discordant) / pairs, the mean over
//     families. One layout measured twice is no pair, nor are rows of two releases. Beside it that of the
//     pairs whose published times differ by more than kNoiseFloor: nobody orders what differs less.
//   Slope: steps that differ in accelerators and batch only, three sizes at least; least squares of
//     log2(accelerator seconds a sample) against log2(accelerators); 2^(predicted - published slope) - 1, the
//     error that a doubling adds, as the mean of its absolute value over the series.
#pragma once

#include <string>
#include <vector>

#include "sim/validation/validate.hpp"

namespace topsim::validation {

// Identical configurations of two releases differ by 6 % (median).
inline constexpr double kNoiseFloor = 0.06;

// Fills tau, slope and what they are of.
void rank(const std::vector<const Prediction*>& steps, Summary& summary);

// Identifies a step without its layout, or without its size.
[[nodiscard]] std::string ranking_of(const Case& c);
[[nodiscard]] std::string series_of(const Case& c);
}  // namespace topsim::validation

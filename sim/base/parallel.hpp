// Parallel loops, under oneTBB. Each body writes where no other body does, so any number of threads
// gives the same bytes; of several exceptions that of the lowest index is rethrown, for the same
// reason.
#pragma once

#include <cstddef>
#include <functional>

namespace topsim::parallel {

// How many bodies run in parallel when `jobs` are asked for (0: as many as there are cores).
[[nodiscard]] int lanes(int jobs);

// Small bodies: shared out in ranges.
void for_each(std::size_t count, const std::function<void(std::size_t)>& body);

// For whole simulations: `jobs` in parallel, begun in the order of their indices, until one throws or `stop`
// returns true. A body that waits for inner loops never begins another of these meanwhile.
void in_order(std::size_t count, int jobs, const std::function<void(std::size_t)>& body,
              const std::function<bool()>& stop = {});
}  // namespace topsim::parallel

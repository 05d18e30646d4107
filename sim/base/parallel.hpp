// Loops whose bodies run at once, under oneTBB. Bodies write where no other body does, so any number of
// threads gives the same bytes; of several exceptions the one of the lowest index is thrown on, for the same
// reason.
#pragma once

#include <cstddef>
#include <functional>

namespace topsim::parallel {

// How many bodies run at once when `jobs` are asked for (0: as many as there are cores).
[[nodiscard]] int lanes(int jobs);

// Small bodies: shared out in ranges.
void for_each(std::size_t count, const std::function<void(std::size_t)>& body);

// Whole simulations: `jobs` at once, begun in the order of their indices, until one throws or `stop` answers
// true. A body that waits for loops of its own never begins another of these meanwhile.
void in_order(std::size_t count, int jobs, const std::function<void(std::size_t)>& body,
              const std::function<bool()>& stop = {});
}  // namespace topsim::parallel

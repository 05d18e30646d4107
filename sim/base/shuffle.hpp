// Random orders that are the same on every machine: std::shuffle may differ between standard libraries.
#pragma once

#include <cstddef>
#include <random>
#include <utility>
#include <vector>

namespace topsim {

// Fisher-Yates.
template <class T>
void shuffle(std::vector<T>& order, std::mt19937_64& random) {
  for (std::size_t i = order.size(); i-- > 1;) std::swap(order[i], order[random() % (i + 1)]);
}
}  // namespace topsim

// Units of quantities.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "sim/config/quantity.hpp"

namespace topsim::config {

struct Unit {
  std::string_view name;
  double factor;           // base units in one
  std::int64_t whole = 0;  // the same, exactly, for time and sizes
  bool printed = true;     // false: a second spelling, read only
};

struct DimensionFacts {
  std::string_view name, example;
  std::span<const Unit> units;  // ascending
  std::size_t base;             // index of the unit whose factor is 1
  double most;  // far beyond what exists: memories move some 1e16 B/s, clusters some 1e21 FLOP/s
};
[[nodiscard]] std::span<const DimensionFacts> dimensions();  // in the order of Dimension
[[nodiscard]] const DimensionFacts& facts_of(Dimension dimension);
[[nodiscard]] const Unit* find_unit(const DimensionFacts& facts, std::string_view name);  // null: no such

// Why "400 Gb/s" is not a unit of the dimension, and what may be meant.
[[nodiscard]] QuantityError wrong_unit(Dimension dimension, std::string_view number, std::string_view unit);
}  // namespace topsim::config

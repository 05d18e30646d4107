// Quantities as text: "500 ns", "16 MiB", "400 Gbit/s", "50 GB/s", "20 m". Integers (time, sizes) are read
// and printed exactly; rates are printed so that reading them again gives the same double.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"

namespace topsim::config {

enum class Dimension : std::uint8_t {
  time,
  size,
  bandwidth,
  flops,
  flop_rate,
  power,
  length,
  energy_price,
  money
};

struct QuantityError {
  std::string message, label, help;
};

// In the base unit (ps, B, B/s, FLOP, FLOP/s, W, m, USD/kWh, USD). `exact` is set for time and sizes.
struct ParsedQuantity {
  double value = 0;
  std::int64_t exact = 0;
  std::optional<QuantityError> error;
};
[[nodiscard]] ParsedQuantity parse_quantity(Dimension dimension, std::string_view text);
[[nodiscard]] std::string format_quantity(Dimension dimension, double value);
[[nodiscard]] std::string format_exact(Dimension dimension, std::int64_t value);  // time, size

[[nodiscard]] std::string_view name_of(Dimension dimension);     // "a duration"
[[nodiscard]] std::string_view example_of(Dimension dimension);  // "500 ns"
// As messages list them; with the other spellings that are read too ("µs").
[[nodiscard]] std::vector<std::string> unit_names(Dimension dimension, bool other_spellings = false);

[[nodiscard]] std::string to_text(Duration v);
[[nodiscard]] std::string to_text(Bytes v);
[[nodiscard]] std::string to_text(BytesPerSecond v);
[[nodiscard]] std::string to_text(FlopsPerSecond v);
[[nodiscard]] std::string to_text(Watts v);
[[nodiscard]] std::string to_text(Metres v);
}  // namespace topsim::config

#include "sim/config/unit_table.hpp"

#include <array>

namespace topsim::config {
namespace {
constexpr Unit exact(std::string_view name, std::int64_t whole, bool printed = true) {
  return {name, static_cast<double>(whole), whole, printed};
}

// In ascending order. Bits occur only here: 1 bit/s is 1/8 byte/s.
constexpr std::array kTime = {exact("ps", 1),
                              exact("ns", 1'000),
                              exact("us", 1'000'000),
                              exact("\xC2\xB5s", 1'000'000, false),
                              exact("\xCE\xBCs", 1'000'000, false),
                              exact("ms", 1'000'000'000),
                              exact("s", 1'000'000'000'000),
                              exact("min", 60'000'000'000'000, false),
                              exact("h", 3'600'000'000'000'000, false),
                              exact("days", 86'400'000'000'000'000, false)};
constexpr std::array kSize = {exact("B", 1),
                              exact("kB", 1'000),
                              exact("KiB", std::int64_t{1} << 10),
                              exact("MB", 1'000'000),
                              exact("MiB", std::int64_t{1} << 20),
                              exact("GB", 1'000'000'000),
                              exact("GiB", std::int64_t{1} << 30),
                              exact("TB", 1'000'000'000'000),
                              exact("TiB", std::int64_t{1} << 40),
                              exact("PB", 1'000'000'000'000'000)};
constexpr std::array kBandwidth = {Unit{"bit/s", 0.125, 0, false},
                                   Unit{"B/s", 1},
                                   Unit{"kbit/s", 125, 0, false},
                                   Unit{"kB/s", 1e3},
                                   Unit{"KiB/s", 1024, 0, false},
                                   Unit{"Mbit/s", 1.25e5, 0, false},
                                   Unit{"MB/s", 1e6},
                                   Unit{"MiB/s", 1048576, 0, false},
                                   Unit{"Gbit/s", 1.25e8, 0, false},
                                   Unit{"GB/s", 1e9},
                                   Unit{"GiB/s", 1073741824, 0, false},
                                   Unit{"Tbit/s", 1.25e11, 0, false},
                                   Unit{"TB/s", 1e12}};
constexpr std::array kFlops = {Unit{"FLOP", 1},     Unit{"MFLOP", 1e6},  Unit{"GFLOP", 1e9},
                               Unit{"TFLOP", 1e12}, Unit{"PFLOP", 1e15}, Unit{"EFLOP", 1e18},
                               Unit{"ZFLOP", 1e21}};
constexpr std::array kFlopRate = {Unit{"FLOP/s", 1},
                                  Unit{"MFLOP/s", 1e6},
                                  Unit{"GFLOP/s", 1e9},
                                  Unit{"TFLOP/s", 1e12},
                                  Unit{"TFLOPS", 1e12, 0, false},
                                  Unit{"PFLOP/s", 1e15},
                                  Unit{"PFLOPS", 1e15, 0, false}};
constexpr std::array kPower = {Unit{"W", 1}, Unit{"kW", 1e3}, Unit{"MW", 1e6}};
constexpr std::array kLength = {Unit{"mm", 1e-3}, Unit{"cm", 1e-2}, Unit{"m", 1}, Unit{"km", 1e3}};
constexpr std::array kEnergyPrice = {Unit{"USD/MWh", 1e-3}, Unit{"USD/kWh", 1}};
constexpr std::array kMoney = {Unit{"USD", 1}, Unit{"kUSD", 1e3}, Unit{"MUSD", 1e6}};

template <std::size_t N>
constexpr DimensionFacts facts(std::string_view name, std::string_view example,
                               const std::array<Unit, N>& units, double most = 1e18) {
  std::size_t base = 0;
  while (units[base].factor != 1) ++base;
  return {name, example, units, base, most};
}

// In the order of Dimension.
constexpr std::array kDimensions = {facts("a duration", "500 ns", kTime),
                                    facts("a size", "16 MiB", kSize),
                                    facts("a bandwidth", "400 Gbit/s", kBandwidth),
                                    facts("an amount of work", "5 TFLOP", kFlops, 1e30),
                                    facts("a compute rate", "989 TFLOP/s", kFlopRate, 1e30),
                                    facts("a power", "700 W", kPower),
                                    facts("a length", "20 m", kLength),
                                    facts("an energy price", "0.1 USD/kWh", kEnergyPrice),
                                    facts("a price", "30000 USD", kMoney)};
}  // namespace

std::span<const DimensionFacts> dimensions() {
  return kDimensions;
}

const DimensionFacts& facts_of(Dimension dimension) {
  return kDimensions.at(static_cast<std::size_t>(dimension));
}

const Unit* find_unit(const DimensionFacts& facts, std::string_view name) {
  for (const Unit& unit : facts.units)
    if (unit.name == name) return &unit;
  return nullptr;
}
}  // namespace topsim::config

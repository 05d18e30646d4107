#include "sim/report/optical_circuits.hpp"

#include <cstdlib>

namespace topsim::report {
namespace {
constexpr std::uint32_t kCube = 4;
constexpr std::uint32_t kFibresOfAFace = kCube * kCube;
}  // namespace

OpticalCircuits::OpticalCircuits(const topology::Topology& topology)
    : dimensions_(topology.torus_dimensions) {
  if (!topology::traits(topology.fabric_kind).rings || dimensions_.size() != 3) return;
  std::int64_t cubes = 1;
  for (const int size : dimensions_) {
    if (size % static_cast<int>(kCube) != 0) return;
    cubes *= size / static_cast<int>(kCube);
  }
  place_.assign(topology.devices().size(), 0);
  for (std::size_t i = 0; i < topology.torus_chips.size(); ++i)
    place_[topology.torus_chips[i].index()] = static_cast<std::uint32_t>(i);
  cubes_ = cubes;
}

bool OpticalCircuits::inside_a_cube(const topology::Link& link) const {
  std::uint32_t from = place_[link.from.index()], to = place_[link.to.index()];
  for (auto size = dimensions_.rbegin(); size != dimensions_.rend(); ++size) {
    const auto n = static_cast<std::uint32_t>(*size);
    const std::uint32_t a = from % n, b = to % n;
    if (a != b) return a / kCube == b / kCube && (a + 1 == b || b + 1 == a);
    from /= n, to /= n;
  }
  return true;
}

std::int64_t OpticalCircuits::switches(int ports) const {
  const auto of_a_set = std::int64_t{ports} / 2;  // cubes for which a switch has two ports each
  return 3 * kFibresOfAFace * ((cubes_ + of_a_set - 1) / of_a_set);
}
}  // namespace topsim::report

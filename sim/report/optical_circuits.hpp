// Three-dimensional TPU tori consist of cubes of 4 x 4 x 4 chips, one per rack: copper inside, and 16 fibres
// from each of a cube's six faces to optical circuit switches, which also close an axis of one cube into a
// ring (Jouppi et al., ISCA 2023: 48 switches join 64 cubes; 1.5 optical modules a chip). A fibre from a face
// and that of the opposite face end at the same switch: 3 x 16 switches, two ports a cube on each.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/topology.hpp"

namespace topsim::report {

class OpticalCircuits {
 public:
  static constexpr const char* kSwitch = "palomar-ocs";

  explicit OpticalCircuits(const topology::Topology& topology);
  // None on fabrics of other kinds, and where the axes are not multiples of a cube's.
  [[nodiscard]] explicit operator bool() const { return cubes_ > 0; }
  // The link joins two neighbouring chips of a cube.
  [[nodiscard]] bool inside_a_cube(const topology::Link& link) const;
  // `ports` of a switch.
  [[nodiscard]] std::int64_t switches(int ports) const;

 private:
  std::vector<int> dimensions_;
  std::vector<std::uint32_t> place_;  // by device: its coordinate, row-major
  std::int64_t cubes_ = 0;
};
}  // namespace topsim::report

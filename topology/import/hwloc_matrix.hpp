// A matrix of hwloc's XML: what joins each two of some objects (NVLinkBandwidth, XGMIBandwidth, XGMIHops).
#pragma once

#include <string>
#include <vector>

#include "topology/import/nccl_xml_element.hpp"

namespace topsim::topology {

struct HwlocMatrix {
  std::vector<std::string> ends;  // "OSDev:802"
  std::vector<double> values;     // row-major: from the row's object to the column's

  [[nodiscard]] bool is_square() const { return values.size() == ends.size() * ends.size(); }
  [[nodiscard]] double at(std::size_t from, std::size_t to) const { return values[from * ends.size() + to]; }
  // 0: it has not both ends.
  [[nodiscard]] double between(const std::string& from, const std::string& to) const;
};

// Objects of one type are numbered, and `type` says which it is; of several (distances2hetero), each number
// has its type before it.
[[nodiscard]] HwlocMatrix hwloc_matrix(const nccl::Element& distances);
}  // namespace topsim::topology

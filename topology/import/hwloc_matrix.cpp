#include "topology/import/hwloc_matrix.hpp"

#include <algorithm>
#include <sstream>

namespace topsim::topology {

double HwlocMatrix::between(const std::string& from, const std::string& to) const {
  const auto row = std::find(ends.begin(), ends.end(), from),
             column = std::find(ends.begin(), ends.end(), to);
  if (row == ends.end() || column == ends.end() || !is_square()) return 0;
  return at(static_cast<std::size_t>(row - ends.begin()), static_cast<std::size_t>(column - ends.begin()));
}

HwlocMatrix hwloc_matrix(const nccl::Element& distances) {
  HwlocMatrix matrix;
  const std::string type = nccl::attribute(distances, "type");
  for (const auto& [name, part] : distances) {
    std::istringstream words(part.data());
    if (name == "indexes")
      for (std::string word; words >> word;)
        matrix.ends.push_back(word.find(':') == std::string::npos ? type + ':' + word : word);
    if (name == "u64values")
      for (double value = 0; words >> value;) matrix.values.push_back(value);
  }
  return matrix;
}
}  // namespace topsim::topology

// The matrix of `nvidia-smi topo -m` as words, before anything is concluded from it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topology/import/import.hpp"

namespace topsim::topology::smi {

struct Row {
  std::string name;                // "GPU0", "NIC0" or a NIC's own: "mlx5_ib0"
  std::vector<std::string> cells;  // one for each row; SOC is given as SYS, its later name
  std::string affinity;            // CPUs near a GPU, "0-31,64-95"; empty if not stated
  int line = 0;
  [[nodiscard]] bool is_gpu() const { return name.starts_with("GPU"); }
};

// Square, in the order of the heading, X on the diagonal. Throws ConfigError with the line.
[[nodiscard]] std::vector<Row> read_matrix(std::string_view text, const ImportOptions& options);
}  // namespace topsim::topology::smi

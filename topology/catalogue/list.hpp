// What `topsim list hardware` and `topsim list fabrics` print.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/catalogue.hpp"

namespace topsim::topology {

// One line of the list.
struct ListRow {
  std::string category;  // accelerator, node, link, nic, switch, cable, fabric
  std::string id, name;
  std::string facts;   // the figures one compares by: "989.4 TFLOP/s bf16, 80 GiB at 3.35 TB/s, 700 W"
  std::string source;  // of the first figure
};
[[nodiscard]] std::vector<ListRow> list_hardware(const Catalogue& catalogue);
[[nodiscard]] std::vector<ListRow> list_fabrics(const Catalogue& catalogue);

// One figure of an entry, as its file says it.
struct FigureRow {
  std::string path;    // "memory.bandwidth"
  std::string value;   // "3.35 TB/s"
  std::string source;  // "read: ..."
  std::string remark;
  bool chosen = true;  // false: an alternative that disagrees with the default
};
// All figures of the entry with that id, in the order of the file, then those it takes over from what it is
// like, then what it is sold at; of a node or device first, else of a fabric, link or cable. Throws
// ConfigError when no file has it.
[[nodiscard]] std::vector<FigureRow> figures_of(std::span<const std::string> config_directories,
                                                std::string_view id);
}  // namespace topsim::topology

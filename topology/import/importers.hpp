// The importers, one a tool: the table that detection, `topsim topo import`, its help and its messages ask.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "topology/catalogue.hpp"
#include "topology/spec.hpp"
#include "topology/topology.hpp"

namespace topsim::topology {

// What the user says beside the text.
struct ImportRequest {
  const Catalogue& catalogue;
  std::string name;         // of the file, for messages
  std::string accelerator;  // catalogue id; empty: unsaid
  std::string nic_link;     // as ImportOptions says
  std::uint32_t nodes = 1;  // equal boxes to build
};

struct ReadTopology {
  std::variant<TopologySpec, Topology> what;
  std::vector<std::string> findings;  // what looks wrong or had to be assumed, one sentence each
};

// Nothing has a default, so that the compiler warns of whatever a new row leaves out.
struct Importer {
  std::string_view name;              // as --from writes it
  std::string_view input;             // what it reads, in a list of all
  std::string_view hint;              // the same where the name stands before it
  bool (*is)(std::string_view text);  // at most one says so of any text
  ReadTopology (*read)(std::string_view text, const ImportRequest& request);
  bool builds_nodes;  // it reads one box, of which there may be several
};

[[nodiscard]] std::span<const Importer> importers();
[[nodiscard]] const Importer* find_importer(std::string_view name);  // null: none has this name
[[nodiscard]] std::vector<std::string> importer_names();
[[nodiscard]] std::string importer_inputs();  // "NCCL's topology XML, ..., or ibnetdiscover"
[[nodiscard]] std::string importer_hints();   // "nccl (topology XML), ... or ibnet (ibnetdiscover)"
}  // namespace topsim::topology

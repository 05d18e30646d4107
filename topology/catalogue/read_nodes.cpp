#include "topology/catalogue/impl.hpp"
#include "topology/catalogue/node_tables.hpp"

namespace topsim::topology {
namespace {
using config::Node;
using config::Reader;

void check_names(const Node& entry, const RawNode& node, const NodeReferences& known, Reader& reader) {
  check_known(entry.find("accelerator"), "accelerator", node.accelerator, known.accelerators, reader);
  const Node scale_up = entry.find("scale_up");
  check_known(scale_up.find("link"), "link", node.scale_up.link, known.links, reader);
  check_known(scale_up.find("chip"), "switch", node.scale_up.chip, known.switches, reader);
  check_known(entry.find("host").find("socket_link"), "link", node.host.socket_link, known.links, reader);
  check_known(entry.find("default_link"), "link", node.default_link, known.links, reader);
  const Node groups = entry.find("nics");
  for (std::size_t i = 0; i < groups.size() && i < node.nics.size(); ++i) {
    check_known(groups[i].find("use"), "NIC", node.nics[i].nic, known.nics, reader);
  }
  const Node pcie = entry.find("pcie");
  check_known(pcie.find("link"), "link", node.raw_pcie.link, known.links, reader);
  check_known(pcie.find("uplink"), "link", node.raw_pcie.uplink, known.links, reader);
  const Node tree = pcie.find("tree");
  for (std::size_t i = 0; i < tree.size() && i < node.pcie.size(); ++i) {
    for (const char* key : {"uplink", "device_link", "nic_link"}) {
      if (const Node link = tree[i].find(key)) check_known(link, "link", link.text(), known.links, reader);
    }
  }
}

// Each device must be attached in exactly one place, and every number must name a device.
void check_tree(const Node& entry, const NodeRecipe& node, Reader& reader) {
  int nics = 0;
  int owned = 0;
  for (const NicGroup& group : node.nics) {
    nics += group.count;
    owned += group.owner.empty() ? 0 : group.count;
    if (!group.owner.empty() && static_cast<int>(group.owner.size()) != group.count) {
      reader.problem(entry, "\"owner\" of a NIC group needs one accelerator for each NIC");
    }
  }
  std::vector<int> accelerator_seen(static_cast<std::size_t>(node.accelerators));
  std::vector<int> nic_seen(static_cast<std::size_t>(nics));
  const auto count = [&](const std::vector<int>& devices, std::vector<int>& seen, const char* what) {
    for (const int device : devices) {
      if (device >= 0 && device < static_cast<int>(seen.size())) {
        ++seen[static_cast<std::size_t>(device)];
      } else {
        reader.problem(entry, "the PCIe tree names " + std::string(what) + ' ' + std::to_string(device) +
                                  " of " + std::to_string(seen.size()));
      }
    }
  };
  for (std::size_t i = 0; i < node.pcie.size(); ++i) {
    const PcieBranch& branch = node.pcie[i];
    count(branch.accelerators, accelerator_seen, "accelerator");
    count(branch.nics, nic_seen, "NIC");
    if (branch.socket < 0 || branch.socket >= node.host.sockets || branch.parent >= static_cast<int>(i)) {
      reader.problem(entry, "a PCIe branch needs a socket of the host, and its parent before it");
    }
  }
  const auto twice = [](const std::vector<int>& seen) {
    return std::any_of(seen.begin(), seen.end(), [](int times) { return times > 1; });
  };
  if (twice(accelerator_seen) || twice(nic_seen)) {
    reader.problem(entry, "a device hangs in two places of the PCIe tree");
  }
  const auto placed = std::count_if(nic_seen.begin(), nic_seen.end(), [](int times) { return times > 0; });
  if (placed + owned < nics) reader.problem(entry, "a NIC has no place in the PCIe tree and no owner");
}
}  // namespace

std::string nodes_schema(std::string_view name) {
  return config::schema<NodesFile>(name);
}

void read_nodes(const config::Document& file, const NodeReferences& known, ById<NodeRecipe>& nodes,
                Reader& reader) {
  NodesFile whole;
  table(config::Type<NodesFile>{}).read(file.root(), whole, reader);
  for_each_entry(file.root().find("nodes"), whole.nodes, [&](const Node& entry, RawNode& node) {
    const std::size_t before = reader.count();
    check_names(entry, node, known, reader);
    if (node.sound && reader.count() == before) check_tree(entry, node, reader);
    if (const auto chip = known.switches.find(node.scale_up.chip); chip != known.switches.end()) {
      node.scale_up.in_network_reduction = chip->second.sharp;
    }
    nodes.emplace(node.id, std::move(node));
  });
}

int NodeRecipe::compute_nics() const {
  int count = 0;
  for (const NicGroup& group : nics) count += group.compute ? group.count : 0;
  return count;
}
}  // namespace topsim::topology

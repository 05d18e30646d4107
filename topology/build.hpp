// Builds a Topology from what the user asked for, with the catalogue's figures.
//
// Capacity of a link: payload_capacity() of topology/catalogue/link_entry.hpp, times the cables it stands
// for. Latency: a message between NICs takes nic_latency plus, for every switch it passes, the link's
// measured figure per hop; where the user gives cable lengths or a switch latency, or where nothing was
// measured, a hop is port-to-port + FEC + 5 ns per metre instead, never both.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "topology/catalogue.hpp"
#include "topology/spec.hpp"
#include "topology/topology.hpp"

namespace topsim::topology {

// A full packet of a cable: its payload, and what is sent around it.
struct PacketBytes {
  Bytes payload, around;
};

struct BuildOptions {
  // Under adaptive and spray routing equal parallel paths carry equal load, so switches of one tier over
  // which traffic divides evenly can be one device with `count` (and their cables one Link with `count`): the
  // fluid answer is the same, and a route has 4 links instead of thousands. Done for tiers larger than this;
  // the packet model needs them separate.
  int merge_switches_above = 8;
  // Cables between two switches are likewise one Link there; true: each separate, for messages that use one
  // of them (flowlets).
  bool cables_apart = false;
  // In place of the catalogue's, on every cable of the kind; unset: as the catalogue has them.
  std::optional<PacketBytes> ethernet, infiniband;
};

// The `fabric` section with its recipe's figures filled in. An unknown recipe is a ConfigError.
[[nodiscard]] FabricSpec resolve_fabric(const FabricSpec& asked, const Catalogue& catalogue);

// Names of hardware that the catalogue does not know; also works for a section that was read only in part.
// build() begins with it.
[[nodiscard]] std::vector<Problem> unknown_names(const TopologySpec& spec, const Catalogue& catalogue);

// Mistakes are ConfigErrors whose problems name the path ("topology.fabric.link"); Document::locate() finds
// the place.
[[nodiscard]] Topology build(const TopologySpec& spec, const Catalogue& catalogue,
                             const BuildOptions& options = {});
// A topology file (the section's keys at its top); mistakes come with their places.
[[nodiscard]] Topology build_file(const std::string& path, const Catalogue& catalogue,
                                  const BuildOptions& options = {});

// Nodes in one scale-up domain where the user does not say: as many as it holds, or, if that does not divide
// the nodes, the largest number down to a half of it that does. Schedulers allocate racks in this way
// (Slurm's --segment, 16 of 18 trays in NVIDIA's job scripts for NVL72), since a group of ranks in two racks
// waits for the slower. If nothing divides the nodes, the last domain has the remainder.
[[nodiscard]] int even_domain(int nodes, int largest);
}  // namespace topsim::topology

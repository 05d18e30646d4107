// From what the user asked for to a Topology, with the catalogue's figures.
//
// Capacity of a link: payload_capacity() of topology/catalogue/link_entry.hpp, times the cables it stands
// for. Latency, one rule (design: models): a message between NICs takes nic_latency plus, for every switch it
// passes, the link's measured figure per hop; where the user gives cable lengths or a switch latency, or
// where nothing was measured, a hop is port-to-port + FEC + 5 ns a metre instead. Never both.
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
  // the packet model wants them apart.
  int merge_switches_above = 8;
  // Cables between two switches likewise are one Link there; true: each by itself, for whoever sends a
  // message over one of them (flowlets).
  bool cables_apart = false;
  // In place of the catalogue's, on every cable of the kind; unset: as the catalogue has them.
  std::optional<PacketBytes> ethernet, infiniband;
};

// The `fabric` section with its recipe's figures filled in. An unknown recipe is a ConfigError.
[[nodiscard]] FabricSpec resolve_fabric(const FabricSpec& asked, const Catalogue& catalogue);

// The names of hardware that the catalogue does not know: what can be said of a section that was read in part
// only. build() begins with them.
[[nodiscard]] std::vector<Problem> unknown_names(const TopologySpec& spec, const Catalogue& catalogue);

// Mistakes are ConfigErrors whose problems name the path ("topology.fabric.link"); Document::locate() finds
// the place.
[[nodiscard]] Topology build(const TopologySpec& spec, const Catalogue& catalogue,
                             const BuildOptions& options = {});
// A topology file (the section's keys at its top); mistakes come with their places.
[[nodiscard]] Topology build_file(const std::string& path, const Catalogue& catalogue,
                                  const BuildOptions& options = {});

// Nodes in one scale-up domain where nobody says how many: all that it holds, or, where these do not divide
// the nodes, the largest part of it down to a half that does. Schedulers hand racks out so (Slurm's
// --segment, 16 of 18 trays in NVIDIA's job scripts for NVL72), since a group of ranks that lies in two racks
// waits for the slower. Where nothing divides them the last domain has what is left.
[[nodiscard]] int even_domain(int nodes, int largest);
}  // namespace topsim::topology

// The `topology` section of a scenario as plain structs: what the user asked for, nothing resolved yet.
// build.hpp turns it into a Topology with the catalogue's figures; spec_reader.cpp reads it from JSON.
//
// Names are catalogue ids; every choice may override figures of its entry in place:
//   "link": {"use": "ib-ndr", "latency": "700 ns"}
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "topology/topology.hpp"

namespace topsim::topology {

struct LinkChoice {
  std::string use;  // catalogue id: "ib-ndr"; empty: follows from the NIC and the switch
  std::optional<BytesPerSecond> bandwidth;  // line rate of one cable, per direction
  std::optional<BytesPerSecond> capacity;   // usable payload rate; left out: line rate x encoding x headers
  std::optional<Duration> latency;          // of one switch hop, everything included (FEC, fibre)
};

struct SwitchChoice {
  std::string use;           // catalogue id: "qm9700"; empty: the link's usual switch
  std::optional<int> ports;  // radix at the speed of `link`
  std::optional<Duration> latency;
};

struct NodeChoice {
  std::string use;                         // catalogue id of a node recipe: "hgx-h100"
  std::optional<std::string> accelerator;  // another accelerator in the same sockets
  std::optional<std::string> nic;          // another NIC model in the same slots
  std::optional<std::string> cpu;          // another host CPU (its socket interconnect follows)
  std::optional<LinkChoice> nvlink;        // other figures for the scale-up link
  // So many of the recipe's, the first ones; the host, its PCIe switches and NVSwitches stay.
  std::optional<int> accelerators, nics;
  // Whether its accelerators reach each other over PCIe, whatever their driver allows.
  std::optional<bool> peer_to_peer;
};

struct FabricSpec {
  // A fabric recipe of the catalogue ("superpod-h100") whose figures the other keys override; or empty.
  std::string use;
  FabricKind kind = FabricKind::none;
  LinkChoice link;
  LinkChoice uplink;                       // cables between switches; empty: as `link`
  SwitchChoice switch_model;               // of every tier that the next two do not name
  SwitchChoice spine_switch, core_switch;  // of the second and of the third tier
  // Per tier from the leaves up: downlinks / uplinks; 1 for the tiers it does not reach, so a single
  // number is the leaves'.
  std::vector<double> oversubscription;
  std::optional<Routing> routing;     // left out: the link's own
  std::optional<int> tiers;           // 1, 2 or 3; left out: as few as the number of nodes allows
  std::optional<int> nodes_per_leaf;  // left out: as many as the radix and the oversubscription allow
  std::optional<int> leaves_per_pod;  // three tiers, of one rail; left out: as many as the radix allows
  // Three tiers: nodes under one set of spines, which then joins all their rails. Left out: a pod holds
  // leaves of one rail, so that rail-aligned traffic stays below the cores.
  std::optional<int> nodes_per_pod;
  std::optional<int> planes;           // copies of the fabric that never meet; a NIC has ports on each
  std::optional<int> leaves_per_rail;  // dual ToR: 2; left out: one per plane
  // Of one cable, by the tier it leads up to; the last stands for those above. With it, or with a switch
  // latency, a hop costs port-to-port + FEC + 5 ns/m (catalogue/link_entry.hpp) instead of the link's
  // measured all-inclusive figure.
  std::vector<Metres> length;
  bool sharp = false;                   // in-network reduction in the switches
  std::optional<Duration> nic_latency;  // of both NICs and hosts, one way; left out: the link's
  std::vector<std::string> chips;       // explicit torus and mesh: accelerators by coordinate, row-major
  std::vector<int> dimensions;  // torus, mesh: accelerators a dimension; dragonfly: groups, switches a group
  std::optional<bool> rings;    // torus: whether the ends of its axes are joined; left out: as the link says

  // What resolve_fabric() (build.hpp) takes from the recipe; there are no keys for it.
  int unit_nodes = 0;   // nodes that share leaves, where the ports allow
  int node_leaves = 0;  // fat-tree: leaves over which a node's NICs are spread; 0: as few as hold them
  std::vector<Metres> usual_length;  // as published, for prices; does not change latencies
  [[nodiscard]] Metres cable_length(std::size_t tier) const;
};

struct DeviceSpec {
  std::string name;          // unique; links refer to it
  std::string kind;          // accelerator, nvswitch, pcie-switch, cpu, host-memory, nic, switch, storage
  std::string model;         // catalogue id where known
  std::optional<int> node;   // left out for fabric switches
  std::optional<int> index;  // among its kind in the node or tier; left out: counted
  int tier = 0;              // fabric switches: 1 leaf, 2 spine, 3 core; left out: 1
  int count = 1;             // equal ones that it stands for
};

struct LinkSpec {
  std::string from, to;
  std::string kind;          // nvlink, c2c, infinity-fabric, pcie, socket, memory, infiniband, ...
  LinkChoice link;           // "use" names a catalogue link; its figures as overridden
  std::optional<int> lanes;  // PCIe: width when not the catalogue's
  int count = 1;             // parallel cables that every message may share; bandwidth is of all together
  std::optional<Metres> length;
  bool one_way = false;  // default: both directions with the same figures
  std::string source;
};

// Facts of links and models of an explicit topology that the catalogue does not have, or has otherwise.
struct LinkTypeSpec {
  std::string id, label, source, transport;
};
struct ModelSpec {
  std::string id;
  int compute_capability = 0;  // 0: the catalogue's
  bool gpu_direct = true;
  std::string cpu_family;  // empty: the model, if it is one
};

enum class PlacementKind { packed, spread, random, list };
struct Placement {
  PlacementKind kind = PlacementKind::packed;
  std::vector<int> nodes;  // list: nodes in the order in which ranks fill them
};

struct TopologySpec {
  std::optional<std::string> format;  // of a topology file: "topsim.topology/1"
  NodeChoice node;
  int nodes = 1;
  FabricSpec fabric;
  std::vector<DeviceSpec> devices;  // explicit topologies: devices and links, no node recipe
  std::vector<LinkSpec> links;
  std::vector<LinkTypeSpec> link_types;
  std::vector<ModelSpec> models;
  std::optional<bool> peer_to_peer;    // explicit: peers reach each other over PCIe; left out: as drivers do
  std::optional<bool> nvlink_sharp;    // explicit: the NVSwitches reduce; left out: as their model does
  std::string file;                    // or a cluster.json of `topsim topo export|import`
  std::optional<int> accelerators;     // how many of them the job uses when fewer than all
  std::optional<int> scale_up_domain;  // nodes that share one NVLink domain (NVL72: 18 trays of 4)
  Placement placement;
  std::string directory;  // of the scenario: where a relative `file` is looked for
};
}  // namespace topsim::topology

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
};

struct FabricSpec {
  // none | rail | fat-tree | rail-only | dragonfly | torus | mesh
  std::string kind = "none";
  LinkChoice link;
  SwitchChoice switch_model;
  // Per tier from the leaves up: downlinks / uplinks. Shorter than the tiers: the last tier's is 1, a single
  // value holds for the leaves.
  std::vector<double> oversubscription{1.0};
  std::optional<Routing> routing;     // left out: adaptive on InfiniBand, ecmp on Ethernet
  std::optional<int> tiers;           // 1, 2 or 3; left out: as few as the number of nodes allows
  std::optional<int> nodes_per_leaf;  // left out: as many as the radix and the oversubscription allow
  std::optional<int> leaves_per_pod;  // three tiers; left out: as many as the radix allows
  Metres length{20};                  // of one cable: 5 ns a metre where the latency is not measured with it
  bool sharp = false;                 // in-network reduction in the switches
  std::vector<int> dimensions;  // torus, mesh: accelerators a dimension; dragonfly: groups, switches a group
};

struct DeviceSpec {
  std::string name;         // unique; links refer to it
  std::string kind;         // accelerator, nvswitch, pcie-switch, cpu, host-memory, nic, switch, storage
  std::string model;        // catalogue id where known
  std::optional<int> node;  // left out for fabric switches
  int tier = 1;             // fabric switches: 1 leaf, 2 spine, 3 core
};

struct LinkSpec {
  std::string from, to;
  std::string kind;          // nvlink, c2c, infinity-fabric, pcie, socket, memory, infiniband, ...
  LinkChoice link;           // "use" names a catalogue link; bandwidth and latency override it
  std::optional<int> lanes;  // PCIe: width when not the catalogue's
  int count = 1;             // parallel cables that every message may share
  std::optional<Metres> length;
  bool one_way = false;  // default: both directions with the same figures
  std::string source;
};

enum class PlacementKind { packed, spread, random, list };
struct Placement {
  PlacementKind kind = PlacementKind::packed;
  std::vector<int> nodes;  // list: nodes in the order in which ranks fill them
};

struct TopologySpec {
  NodeChoice node;
  int nodes = 1;
  FabricSpec fabric;
  std::vector<DeviceSpec> devices;  // explicit topologies: devices and links, no node recipe
  std::vector<LinkSpec> links;
  std::string file;                 // or a cluster.json of `topsim topo export|import`
  std::optional<int> accelerators;  // how many of them the job uses when fewer than all
  int scale_up_domain = 1;          // nodes that share one NVLink domain (NVL72: 18 trays of 4)
  Placement placement;
  std::string directory;  // of the scenario: where a relative `file` is looked for
};
}  // namespace topsim::topology

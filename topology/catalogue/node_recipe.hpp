// A complete node as data: enough for the topology builder to build any node without a line of C++ for it.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"

namespace topsim::topology {

// How the accelerators of a node (or of a domain of nodes) reach each other without PCIe.
struct ScaleUp {
  enum class Kind {
    none,      // PCIe only
    switched,  // every accelerator to every switch chip (NVSwitch, UB)
    mesh,      // point-to-point links: `edges` (DGX-1 cube mesh, bridges, Infinity Fabric, Gaudi, HCCS)
    torus      // `dims` with wrap-around, ranks row-major, last dimension fastest
  };
  // `links` parallel links between local accelerators a and b.
  struct Edge {
    int a = 0, b = 0, links = 1;
    friend bool operator==(const Edge&, const Edge&) = default;
  };

  Kind kind = Kind::none;
  std::string chip;                   // switched: catalogue switch, "nvswitch3"
  std::string link;                   // catalogue link of one of them: "nvlink4"; empty when kind is none
  int links_per_accelerator = 0;      // switched: spread evenly over the chips by the builder
  int chips = 0;                      // switched: NVSwitch chips of the whole domain
  std::vector<int> links_per_chip;    // switched, as published and shown: sums to the above (H100: 5 4 4 5)
  bool in_network_reduction = false;  // NVLink SHARP: what the chip's `sharp` says
  std::vector<Edge> edges;            // mesh
  std::vector<int> dims;              // torus inside the node; product = accelerators
  std::vector<int> dim_links;         // torus: parallel links per dimension and direction; empty: 1 each
  int domain_nodes = 1;  // nodes that share the switches (NVL72: 18 trays of 4; `chips` counts the domain's)
  std::vector<int> torus_block;  // how a node's chips sit in a fabric torus (TPU v4: 2 x 2 x 1); else empty
  friend bool operator==(const ScaleUp&, const ScaleUp&) = default;
};

// Of CPUs, as NCCL's tuner tells them apart.
inline constexpr std::array<std::string_view, 8> kCpuFamilies = {
    "intel-bdw", "intel-skl", "intel-icx", "intel-spr", "intel-erp", "amd", "arm", "power9"};

struct HostRecipe {
  std::string cpu;     // "2x Intel Xeon Platinum 8480C"
  std::string family;  // one of kCpuFamilies
  int sockets = 1;
  int numa_nodes = 1;       // of all sockets, for readers of the catalogue
  std::string socket_link;  // catalogue link of one inter-socket link: "upi-spr"; empty with one socket
  int socket_links = 0;     // parallel links between each pair of sockets
  Bytes memory{};           // of the node
  BytesPerSecond memory_bandwidth{};  // of one socket
  friend bool operator==(const HostRecipe&, const HostRecipe&) = default;
};

// One branch of the PCIe tree: a switch when `is_switch`, else devices on the root ports of the socket.
struct PcieBranch {
  int socket = 0;
  int parent = -1;  // index of the branch whose switch is above this one; -1: the socket
  bool is_switch = true;
  std::string uplink;             // catalogue link between this switch and its parent: "pcie5-x16"
  std::string device_link;        // catalogue link of each accelerator here: "pcie5-x16", or "c2c-grace"
  std::string nic_link;           // the same for the NICs here; also limits a NIC whose own slot is faster
  std::vector<int> accelerators;  // local indices
  std::vector<int> nics;          // local indices into the expanded list of NodeRecipe::nics
  friend bool operator==(const PcieBranch&, const PcieBranch&) = default;
};

// A group of equal NICs. Expanded in order they are numbered 0, 1, ...; only `compute` ones join the fabric.
struct NicGroup {
  std::string nic;  // catalogue id
  int count = 0;
  int ports = 1;          // ports in use of each
  BytesPerSecond rate{};  // of a port as configured (a 400G NIC may be run at 200G)
  bool compute = true;    // false: storage, in-band, management
  // NICs on the accelerators themselves (Gaudi, Frontier): NIC i belongs to owner[i]. Empty: they are in the
  // PCIe tree.
  std::vector<int> owner;
  friend bool operator==(const NicGroup&, const NicGroup&) = default;
};

// configs/hardware/nodes.json
struct NodeRecipe {
  std::string id, name, source;
  std::string like;         // recipe whose figures it took over
  std::string accelerator;  // catalogue id
  int accelerators = 1;
  bool peer_to_peer = true;  // PCIe peer-to-peer between accelerators works here (GeForce driver: no)
  ScaleUp scale_up;
  HostRecipe host;
  std::vector<PcieBranch> pcie;
  std::vector<NicGroup> nics;
  std::vector<int> rail_of;  // compute NIC that serves each accelerator, or the first of its group: what the
                             // tree above must give (tests/catalogue); empty when there is none
  std::string default_link;  // fabric link its compute NICs usually speak: "ib-ndr"
  Watts power{};             // whole node at full load; 0 unknown

  [[nodiscard]] int compute_nics() const;
  friend bool operator==(const NodeRecipe&, const NodeRecipe&) = default;
};
}  // namespace topsim::topology

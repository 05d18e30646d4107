// A cluster as devices and directed links: a value that is built once and then only read. Columns
// instead of objects: 131,072 accelerators must fit beside everything else; nodes that are copies of
// one are stored once, and names are made on demand. Boost.Graph is used only in topology/'s .cpp
// files.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/units.hpp"
#include "topology/fabric_kind.hpp"
#include "topology/repeated.hpp"

namespace topsim::topology {

enum class DeviceKind : std::uint8_t {
  accelerator,
  nvswitch,
  pcie_switch,
  cpu,
  host_memory,
  nic,
  fabric_switch,
  storage
};
enum class LinkKind : std::uint8_t {
  nvlink,
  c2c,
  infinity_fabric,
  pcie,
  socket,
  memory,
  infiniband,
  ethernet,
  torus,
  other
};
[[nodiscard]] std::string_view name_of(DeviceKind kind);
[[nodiscard]] std::string_view name_of(LinkKind kind);

struct Device {
  DeviceKind kind;
  std::uint8_t tier = 0;    // fabric switches: 1 leaf, 2 spine, 3 core; else 0
  std::uint16_t count = 1;  // equal ones that this device stands for: the NVSwitch chips of a node, or the
                            // switches of a tier that traffic divides over evenly (adaptive routing)
  std::uint32_t node = Id<void>::kNone;  // node that holds it; none for fabric switches
  std::uint32_t local = 0;  // index among its kind inside the node (or inside the tier of the fabric)
  // Index into Topology::models(): catalogue id ("h100-sxm5", "connectx-7", "qm9700").
  std::uint32_t model = 0;
};

// Of a cable, in 16 bits: in steps of 0.1 m, from 3.3 km on of 10 m, up to 327 km.
class CableLength {
 public:
  CableLength() = default;  // not known
  explicit CableLength(Metres length);
  [[nodiscard]] bool known() const { return code_ != 0; }
  [[nodiscard]] Metres metres() const;
  friend bool operator==(CableLength, CableLength) = default;

 private:
  std::uint16_t code_ = 0;
};

// One direction of one cable or bus. `count` parallel cables between the same two devices are one link whose
// capacity is their sum when every flow may use all of them (adaptive routing, bonded NVLinks); ECMP fabrics
// keep them apart.
struct Link {
  DeviceId from, to;
  LinkKind kind = LinkKind::other;
  std::uint16_t count = 1;
  std::uint16_t type = 0;  // index into Topology::link_types(): "ib-ndr", "nvlink4", "pcie5-x16"
  CableLength length{};    // as somebody says it; for prices, its latency is in that of the link
  // Usable by payload: line rate x encoding x header efficiency, and what credits let through of it
  // (credits.hpp); what the flow model shares.
  BytesPerSecond capacity;
  BytesPerSecond line_rate;  // on the wire; what the packet model serialises at
  Duration latency{};  // propagation plus what the far end adds (a switch's port-to-port time, a bridge's)
};

// Facts of a named thing that models need and that do not change from link to link.
struct LinkType {
  std::string id;           // catalogue id
  std::string label;        // "NDR 400 Gbit/s", "NVLink4 x18", "RoCE, here 200 Gbit/s", for people
  std::string source;       // where the figures come from
  std::string transport{};  // Ethernet: "roce", "tcp", ...; empty: not known
  // InfiniBand: the payload that credits let one cable have on the way (credits.hpp). 0: that of packets of
  // 4 KiB.
  Bytes on_the_way{};
};

// Facts of a device model that its library (NCCL's choices depend on them) or a network model reads.
// Defaults: unknown.
struct ModelFacts {
  int compute_capability = 0;  // accelerators: 70, 80, 90, 100; 0 when not NVIDIA
  bool gpu_direct = true;      // accelerators, NICs: RDMA straight to and from accelerator memory
  std::string cpu_family;    // CPUs: intel-bdw, intel-skl, intel-icx, intel-spr, intel-erp, amd, arm, power9
  double peer_overhead = 1;  // CPUs: Catalogue::peer_overhead()
  Bytes buffer{};            // switches: packets that its ports share; 0 not known
  Bytes memory{};            // host memory: of one socket; 0 not known
};

// Link type of NICs that are no PCIe device, as in virtual machines.
inline constexpr std::string_view kNoSlot = "no-slot";

enum class Routing : std::uint8_t { static_, ecmp, adaptive, spray };
[[nodiscard]] std::string_view name_of(Routing routing);

// The names above as users write them, and back.
[[nodiscard]] std::optional<DeviceKind> device_kind(std::string_view name);
[[nodiscard]] std::optional<LinkKind> link_kind(std::string_view name);
[[nodiscard]] std::span<const std::string_view> device_kind_names();
[[nodiscard]] std::span<const std::string_view> link_kind_names();

// A device of the first of equal nodes, moved to the node of that number.
struct DeviceOfNode {
  Device operator()(const Device& first, std::uint32_t node) const {
    Device device = first;
    device.node += node;
    return device;
  }
};
struct LinkOfNode {
  std::uint32_t devices = 0;  // of a node
  Link operator()(const Link& first, std::uint32_t node) const {
    Link link = first;
    link.from.value += node * devices;
    link.to.value += node * devices;
    return link;
  }
};

class Topology {
 public:
  [[nodiscard]] Repeated<Device, DeviceOfNode> devices() const {
    return {devices_, copies_.nodes, copies_.devices, {}};
  }
  [[nodiscard]] Repeated<Link, LinkOfNode> links() const {
    return {links_, copies_.nodes, copies_.links, {copies_.devices}};
  }
  [[nodiscard]] Device device(DeviceId id) const { return devices()[id.index()]; }
  [[nodiscard]] Link link(LinkId id) const { return links()[id.index()]; }
  // Ascending.
  [[nodiscard]] LinksFrom links_from(DeviceId id) const {
    const std::span<const LinkId> others =
        std::span(out_links_)
            .subspan(out_begin_[id.index()], out_begin_[id.index() + 1] - out_begin_[id.index()]);
    if (id.value >= copies_.nodes * copies_.devices) return {{}, 0, others};
    const std::uint32_t node = id.value / copies_.devices, at = id.value - node * copies_.devices;
    return {std::span(inner_links_).subspan(inner_begin_[at], inner_begin_[at + 1] - inner_begin_[at]),
            node * copies_.links, others};
  }
  // Accelerators in rank order (node by node, local index inside); rank r of a job runs on accelerators()[r]
  // when packed.
  [[nodiscard]] std::span<const DeviceId> accelerators() const { return accelerators_; }
  [[nodiscard]] std::uint32_t nodes() const { return nodes_; }
  [[nodiscard]] std::span<const std::string> models() const { return models_; }
  [[nodiscard]] std::span<const LinkType> link_types() const { return link_types_; }
  [[nodiscard]] const LinkType& type_of(LinkId id) const { return link_types_[link(id).type]; }
  [[nodiscard]] const std::string& model_of(DeviceId id) const { return models_[device(id).model]; }
  [[nodiscard]] ModelFacts facts_of(DeviceId id) const { return facts_of_model(device(id).model); }
  [[nodiscard]] ModelFacts facts_of_model(std::uint32_t model) const {
    return model < model_facts_.size() ? model_facts_[model] : ModelFacts{};
  }
  // All of them, ascending; empty when it has none.
  [[nodiscard]] std::span<const DeviceId> nics_of_node(std::uint32_t node) const;
  // Ascending.
  [[nodiscard]] std::vector<DeviceId> devices_of_node(std::uint32_t node) const;
  // Links between nodes, outside them, and to and from fabric switches, ascending: most links are none.
  [[nodiscard]] std::span<const LinkId> cables() const { return cables_; }
  // The first `nodes` nodes are copies of the first one, with `devices` devices and `links` links each,
  // stored before all others in node order. The same place holds the same thing in each, and no other device
  // is in one of them. No nodes where that is not known.
  struct Copies {
    std::uint32_t nodes = 0, devices = 0, links = 0;
  };
  [[nodiscard]] const Copies& copies() const { return copies_; }
  [[nodiscard]] std::optional<LinkId> find_link(DeviceId from, DeviceId to) const;
  // "node3/gpu5", "node3/nvswitch0", "leaf7", "spine2"; unique, stable, also what faults and explicit links
  // refer to.
  [[nodiscard]] std::string name(DeviceId id) const;
  [[nodiscard]] std::string name(LinkId id) const;  // "node0/gpu3 -> node0/nvswitch0"
  [[nodiscard]] std::optional<DeviceId> find_device(std::string_view name) const;
  // Every name of an explicit topology was given; else names follow from kind, node and index.
  [[nodiscard]] bool has_explicit_names() const { return !explicit_names_.empty(); }

  // A copy whose links have other figures (what a faster part would buy, faults). Credits still bound them; a
  // capacity that they had bound does not grow where `change` makes a latency shorter. REQUIRES: `change`
  // leaves the ends, type and kind of a link alone.
  template <class Change>
  [[nodiscard]] Topology with_links(Change&& change) const {
    Topology copy = *this;
    copy.spell_out_copies();
    for (Link& link : copy.links_) change(link);
    copy.bound_by_credits();
    return copy;
  }

  // A copy whose rank r runs on devices[r] (placement, a job smaller than the cluster).
  [[nodiscard]] Topology with_ranks_on(std::vector<DeviceId> devices) const {
    Topology copy = *this;
    copy.accelerators_ = std::move(devices);
    return copy;
  }

  // Facts of the fabric as a whole.
  Routing routing = Routing::adaptive;
  // Credit flow control and SHARP-capable switches; else lossless Ethernet (RoCE).
  bool fabric_is_infiniband = false;
  bool sharp = false;         // in-network reduction switched on
  bool nvlink_sharp = false;  // the NVSwitches reduce (NVSwitch 3 and later)
  // Accelerators reach each other over PCIe; otherwise copies go through host memory.
  bool peer_to_peer = true;
  FabricKind fabric_kind = FabricKind::none;
  // Torus and mesh: chips along each dimension, and by coordinate, row-major. On another fabric the nodes
  // hold a torus each, and the first dimension counts nodes.
  std::vector<int> torus_dimensions;
  std::vector<DeviceId> torus_chips;
  // Groups, switches a group, NIC ports a switch, global cables a switch; switches are listed group by group.
  // Empty where that is not known.
  std::vector<int> dragonfly_dimensions;
  Duration nic_latency{};  // NIC and host base of one message between nodes (one way)

 private:
  friend class TopologyBuilder;
  void spell_out_copies();
  void bound_by_credits();       // credits.cpp
  std::vector<Device> devices_;  // of nodes that are copies those of the first, then all others
  std::vector<Link> links_;      // the same
  // Links of the first of such nodes by where they start, and all others.
  std::vector<LinkId> inner_links_, out_links_;
  std::vector<std::uint32_t> inner_begin_, out_begin_;
  std::vector<LinkId> cables_;
  Copies copies_;
  std::vector<DeviceId> accelerators_;
  std::vector<DeviceId> nics_;             // grouped by node
  std::vector<std::uint32_t> nics_begin_;  // nodes + 1
  std::vector<std::string> models_;
  std::vector<ModelFacts> model_facts_;  // parallel to models_, shorter where facts are missing
  std::vector<LinkType> link_types_;
  std::vector<std::string> explicit_names_;  // empty when names follow from kind, node and index
  std::uint32_t nodes_ = 0;
};

// The only way to make a Topology: add devices and links, then finish() checks (ends exist, positive
// capacity, unique names) and freezes.
class TopologyBuilder {
 public:
  std::uint16_t link_type(LinkType type);  // interned by id
  std::uint32_t model(std::string id);     // interned
  void model_facts(std::uint32_t model, ModelFacts facts) {
    if (result_.model_facts_.size() <= model) result_.model_facts_.resize(model + 1);
    result_.model_facts_[model] = std::move(facts);
  }
  DeviceId device(Device device, std::string explicit_name = {});
  LinkId link(Link link);  // one direction
  void cable(Link link);   // both directions, same figures
  void reserve(std::size_t devices, std::size_t links);
  // Nodes that are copies of one; ends of links are positions in `devices`. REQUIRES: nothing was added yet.
  void nodes(std::uint32_t count, std::span<const Device> devices, std::span<const Link> links);
  void set_nodes(std::uint32_t nodes) { result_.nodes_ = nodes; }
  Topology& facts() { return result_; }  // routing, fabric_kind, ...
  [[nodiscard]] Topology finish() &&;

 private:
  void check(LinkId link) const;
  void sort_links();
  void list_devices();
  Topology result_;
};
}  // namespace topsim::topology

#include "topology/build/node.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/base/suggest.hpp"
#include "topology/build.hpp"

namespace topsim::topology {
namespace {

constexpr const char* kPath = "topology.node";

// The devices and links of one node while it is built.
class NodeDraft {
 public:
  NodeDraft(const NodeRecipe& recipe, const NodeChoice& choice, const Hardware& hardware,
            TopologyBuilder& builder)
      : recipe_(recipe), choice_(choice), hardware_(hardware), builder_(builder) {}

  NodeStamp make(std::optional<int> domain, int nodes) {
    stamp_.default_link = recipe_.default_link;
    stamp_.torus_block = recipe_.scale_up.torus_block;
    if (domain && recipe_.scale_up.kind != ScaleUp::Kind::switched) refuse_domain();
    refuse_counts();
    accelerators();
    scale_up(std::min(domain.value_or(even_domain(nodes, recipe_.scale_up.domain_nodes)), nodes));
    host();
    nics();
    pcie_tree();
    return std::move(stamp_);
  }

 private:
  [[noreturn]] void refuse_domain() const {
    throw ConfigError(
        {Problem{{},
                 "topology.scale_up_domain",
                 "node " + recipe_.id + " has no scale-up switches that several nodes could share",
                 {},
                 "leave it out, or choose a node with NVSwitches: gb200-nvl72",
                 {}}});
  }
  void refuse_counts() const {
    std::vector<Problem> problems;
    const auto most = [&](const char* key, const std::optional<int>& wanted, int there, const char* what,
                          const std::vector<std::string>& others) {
      if (wanted.value_or(0) > there)
        problems.push_back(
            {{},
             std::string("topology.node.") + key,
             fmt::format("node {} has {} {}, not {}", recipe_.id, there, what, *wanted),
             {},
             others.empty() ? std::string("it is a part of the recipe's: name another node, or use fewer")
                            : fmt::format("it is a part of the recipe's: use fewer, or name a node with so "
                                          "many NICs or ports: {}",
                                          topsim::join(others)),
             {}});
    };
    most("accelerators", choice_.accelerators, recipe_.accelerators, "accelerators", {});
    const int nics = compute_nics();
    most("nics", choice_.nics, nics, "NICs for the fabric",
         choice_.nics.value_or(0) > nics
             ? hardware_.nodes_with_nics(choice_.accelerator.value_or(recipe_.accelerator), *choice_.nics)
             : std::vector<std::string>());
    const bool torus = recipe_.scale_up.kind == ScaleUp::Kind::torus || !recipe_.scale_up.torus_block.empty();
    if (torus && accelerators_ < recipe_.accelerators)
      problems.push_back({{},
                          "topology.node.accelerators",
                          fmt::format("the accelerators of node {} are a torus, which some of them alone "
                                      "are not",
                                      recipe_.id),
                          {},
                          "leave it out; topology.accelerators takes the first of all nodes",
                          {}});
    if (!problems.empty()) throw ConfigError(std::move(problems));
  }
  [[nodiscard]] bool there(int accelerator) const { return accelerator < accelerators_; }
  // NICs for the fabric, without those that belong to accelerators left out.
  [[nodiscard]] int compute_nics() const {
    int nics = 0;
    for (const NicGroup& group : recipe_.nics)
      for (int i = 0; group.compute && i < group.count; ++i) nics += there(owner_of(group, i)) ? 1 : 0;
    return nics;
  }
  static int owner_of(const NicGroup& group, int nic) {
    return group.owner.empty() ? 0 : group.owner.at(static_cast<std::size_t>(nic));
  }
  std::uint32_t add(DeviceKind kind, const std::string& model, int count = 1) {
    Device device{};
    device.kind = kind;
    device.count = static_cast<std::uint16_t>(count);
    device.local = next_local_[static_cast<std::size_t>(kind)]++;
    device.model = builder_.model(model);
    stamp_.devices.push_back(device);
    return static_cast<std::uint32_t>(stamp_.devices.size() - 1);
  }
  void join(std::uint32_t a, std::uint32_t b, const LinkFigures& f, int count = 1) {
    Link link = bundle(f, builder_.link_type(f.type), count);
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      link.from = DeviceId(from);
      link.to = DeviceId(to);
      link.latency = stamp_.devices[to].kind == DeviceKind::cpu ? f.host_latency : f.latency;
      stamp_.links.push_back(link);
    }
  }

  void accelerators() {
    const std::string id = choice_.accelerator.value_or(recipe_.accelerator);
    const Accelerator& accelerator = hardware_.accelerator(id, "topology.node.accelerator");
    stamp_.peer_to_peer = choice_.peer_to_peer.value_or(recipe_.peer_to_peer && accelerator.peer_to_peer);
    stamp_.torus_link = accelerator.scale_up_link;
    stamp_.chip = accelerator.name;
    stamp_.ports = accelerator.nvlinks;
    if (choice_.accelerator && id != recipe_.accelerator) own_links_ = &accelerator;
    for (int i = 0; i < accelerators_; ++i) stamp_.accelerators.push_back(add(DeviceKind::accelerator, id));
    ModelFacts facts;
    facts.compute_capability = accelerator.compute_capability;
    facts.gpu_direct = accelerator.peer_to_peer;
    builder_.model_facts(builder_.model(id), facts);
  }

  LinkFigures scale_up_link() {
    LinkChoice link = choice_.nvlink.value_or(LinkChoice{});
    if (link.use.empty()) link.use = own_links_ ? own_links_->scale_up_link : recipe_.scale_up.link;
    return hardware_.link(link, "topology.node.nvlink");
  }
  [[nodiscard]] bool link_is_named() const { return choice_.nvlink && !choice_.nvlink->use.empty(); }

  // An accelerator in another's place fits only links of the same kind.
  void check_own_links() const {
    const LinkKind own = hardware_.link(own_links_->scale_up_link, kPath).kind,
                   wired = hardware_.link(recipe_.scale_up.link, kPath).kind;
    if (own == wired) return;
    const std::vector<std::string> nodes =
        hardware_.nodes_with_nics(*choice_.accelerator, recipe_.compute_nics());
    throw ConfigError(
        {Problem{{},
                 "topology.node.accelerator",
                 fmt::format("node {} wires its accelerators with {}, and {} has {}", recipe_.id,
                             recipe_.scale_up.link, own_links_->name, own_links_->scale_up_link),
                 {},
                 nodes.empty() ? "name an accelerator with such links"
                               : fmt::format("nodes with it: {}", fmt::join(nodes, ", ")),
                 {}}});
  }

  // Links of each edge of the mesh. An accelerator in another's place that has fewer than the recipe wires
  // spreads its own over the same neighbours.
  [[nodiscard]] std::vector<int> mesh_links() const {
    std::vector<int> links, of(stamp_.accelerators.size()), left(of.size(), 0);
    for (const ScaleUp::Edge& e : recipe_.scale_up.edges) {
      links.push_back(there(e.a) && there(e.b) ? e.links : 0);
      if (links.back() == 0) continue;
      of[static_cast<std::size_t>(e.a)] += e.links;
      of[static_cast<std::size_t>(e.b)] += e.links;
    }
    if (!own_links_ || link_is_named()) return links;
    left.assign(of.size(), own_links_->nvlinks);
    for (std::size_t i = 0; i < links.size(); ++i) {
      if (links[i] == 0) continue;
      const ScaleUp::Edge& e = recipe_.scale_up.edges[i];
      int &a = left[static_cast<std::size_t>(e.a)], &b = left[static_cast<std::size_t>(e.b)];
      const int wired = std::max(of[static_cast<std::size_t>(e.a)], of[static_cast<std::size_t>(e.b)]);
      const int even = std::max(1, e.links * own_links_->nvlinks / wired);
      links[i] = std::min({e.links, even, a, b});
      a -= links[i], b -= links[i];
    }
    return links;
  }

  void scale_up(int domain_nodes) {
    const ScaleUp& up = recipe_.scale_up;
    const bool without = own_links_ && own_links_->scale_up_link.empty() && !link_is_named();
    if (up.kind == ScaleUp::Kind::none || without) return;
    if (own_links_ && !link_is_named()) check_own_links();
    const LinkFigures link = scale_up_link();
    if (up.kind == ScaleUp::Kind::switched) {
      stamp_.nvlink_sharp = up.in_network_reduction;
      stamp_.domain_nodes = std::max(1, domain_nodes);
      stamp_.chips = std::max(1, up.chips);
      const int links = own_links_ && !link_is_named() ? own_links_->nvlinks : up.links_per_accelerator;
      stamp_.to_domain_switch = bundle(link, builder_.link_type(link.type), links);
      const std::string model = up.chip.empty() ? "scale-up-switch" : up.chip;
      stamp_.domain_switch_model = builder_.model(model);
      if (stamp_.domain_nodes > 1) return;
      const std::uint32_t nvswitch = add(DeviceKind::nvswitch, model, stamp_.chips);
      for (const std::uint32_t gpu : stamp_.accelerators) join(gpu, nvswitch, link, links);
    } else if (up.kind == ScaleUp::Kind::mesh) {
      const std::vector<int> links = mesh_links();
      for (std::size_t i = 0; i < links.size(); ++i) {
        if (links[i] == 0) continue;
        join(stamp_.accelerators.at(static_cast<std::size_t>(up.edges[i].a)),
             stamp_.accelerators.at(static_cast<std::size_t>(up.edges[i].b)), link, links[i]);
      }
    } else {
      torus(link);
    }
  }

  // Row-major coordinates, the last dimension fastest; a dimension of two has one pair of neighbours.
  void torus(const LinkFigures& link) {
    const std::vector<int>& dims = recipe_.scale_up.dims;
    stamp_.torus = dims;
    int stride = recipe_.accelerators;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const int count = d < recipe_.scale_up.dim_links.size() ? recipe_.scale_up.dim_links[d] : 1;
      const int size = dims[d], inner = stride / size;
      for (int i = 0; i < recipe_.accelerators && size > 1; ++i) {
        const int at = i / inner % size;
        if (size == 2 && at == 1) continue;
        const int next = i + ((at + 1) % size - at) * inner;
        join(stamp_.accelerators[static_cast<std::size_t>(i)],
             stamp_.accelerators[static_cast<std::size_t>(next)], link, count);
      }
      stride = inner;
    }
  }

  void host() {
    const HostRecipe& host = recipe_.host;
    const std::string model = choice_.cpu.value_or(host.family.empty() ? "cpu" : host.family);
    for (int s = 0; s < host.sockets; ++s) sockets_.push_back(add(DeviceKind::cpu, model));
    ModelFacts facts;
    facts.cpu_family = model;
    facts.peer_overhead = hardware_.peer_overhead(model);
    builder_.model_facts(builder_.model(model), facts);
    if (host.sockets > 1 && !host.socket_link.empty()) {
      const LinkFigures link = hardware_.link(host.socket_link, kPath);
      for (std::size_t a = 0; a < sockets_.size(); ++a)
        for (std::size_t b = a + 1; b < sockets_.size(); ++b)
          join(sockets_[a], sockets_[b], link, std::max(1, host.socket_links));
    }
    if (!(host.memory_bandwidth.value() > 0)) return;
    LinkFigures memory;
    memory.kind = LinkKind::memory;
    memory.type = {"host-memory", "host memory", recipe_.source};
    memory.line_rate = memory.capacity = host.memory_bandwidth;
    ModelFacts size;
    size.memory = Bytes(host.memory.value() / std::max(1, host.sockets));
    builder_.model_facts(builder_.model("host-memory"), size);
    for (const std::uint32_t socket : sockets_)
      join(socket, add(DeviceKind::host_memory, "host-memory"), memory, 1);
  }

  // Fewer NICs than the recipe's are spread over it, as builders spread them over sockets and PCIe switches.
  // A job that is given the first accelerators alone has the first NICs.
  void nics() {
    const int all = compute_nics(), wanted = choice_.nics.value_or(all);
    const bool spread = accelerators_ == recipe_.accelerators;
    int seen = 0;  // NICs for the fabric
    for (const NicGroup& group : recipe_.nics) {
      const std::string id = group.compute ? choice_.nic.value_or(group.nic) : group.nic;
      const NicEntry& entry = hardware_.nic(id, "topology.node.nic");
      for (int i = 0; i < group.count; ++i) {
        const int owner = owner_of(group, i);
        const bool counts = group.compute && there(owner);
        const bool left_out = counts && (spread ? (all - seen) * wanted % all : seen) >= wanted;
        seen += counts ? 1 : 0;
        if (!there(owner) || left_out) {
          nics_.emplace_back();
          nic_slots_.emplace_back();
          continue;
        }
        // Adapters outside the compute fabric are treated as storage.
        const std::uint32_t nic = add(group.compute ? DeviceKind::nic : DeviceKind::storage, id);
        nics_.push_back(nic);
        nic_slots_.push_back(entry.pcie);
        const BytesPerSecond rate = choice_.nic ? entry.port_rate : group.rate;
        if (group.compute) stamp_.nics.push_back({nic, group.ports, rate});
        if (group.owner.empty()) continue;
        attached_.push_back(nic);
        LinkFigures die;
        die.kind = LinkKind::other;
        die.type = {"on-die", "on the accelerator", entry.source};
        die.line_rate = die.capacity = rate * static_cast<double>(group.ports);
        join(stamp_.accelerators.at(static_cast<std::size_t>(owner)), nic, die, 1);
      }
    }
  }

  // The slower of the slot and the adapter's own connector.
  LinkFigures slot(const std::string& board, const std::string& adapter) {
    if (board.empty() && adapter.empty()) return hardware_.link("pcie4-x16", kPath);
    if (board.empty() || adapter.empty()) return hardware_.link(board.empty() ? adapter : board, kPath);
    const LinkFigures a = hardware_.link(board, kPath), b = hardware_.link(adapter, kPath);
    return a.capacity <= b.capacity ? a : b;
  }

  void pcie_tree() {
    std::vector<std::uint32_t> hub;  // of each branch: its switch, or the device above
    for (const PcieBranch& branch : recipe_.pcie) {
      const std::uint32_t parent = branch.parent >= 0 ? hub.at(static_cast<std::size_t>(branch.parent))
                                                      : sockets_.at(static_cast<std::size_t>(branch.socket));
      if (branch.is_switch) {
        hub.push_back(add(DeviceKind::pcie_switch, "pcie-switch"));
        join(hub.back(), parent, hardware_.link(branch.uplink, kPath));
      } else {
        hub.push_back(parent);
      }
      for (const int i : branch.accelerators) {
        if (!there(i)) continue;
        join(stamp_.accelerators.at(static_cast<std::size_t>(i)), hub.back(),
             hardware_.link(branch.device_link, kPath));
      }
      for (const int i : branch.nics) {
        const auto n = static_cast<std::size_t>(i);
        if (!nics_.at(n)) continue;
        join(*nics_[n], hub.back(), slot(branch.nic_link, nic_slots_[n]));
        attached_.push_back(*nics_[n]);
      }
    }
    // Devices that the recipe does not place are on the first socket.
    for (std::size_t n = 0; n < nics_.size() && !sockets_.empty(); ++n)
      if (nics_[n] && std::find(attached_.begin(), attached_.end(), *nics_[n]) == attached_.end())
        join(*nics_[n], sockets_.front(), slot({}, nic_slots_[n]));
  }

  const NodeRecipe& recipe_;
  const NodeChoice& choice_;
  const Hardware& hardware_;
  TopologyBuilder& builder_;
  NodeStamp stamp_;
  std::uint32_t next_local_[8] = {};
  int accelerators_ = choice_.accelerators.value_or(recipe_.accelerators);
  const Accelerator* own_links_ = nullptr;  // of an accelerator in another's place
  std::vector<std::uint32_t> sockets_, attached_;
  std::vector<std::optional<std::uint32_t>> nics_;  // of the recipe; nothing if the NIC is left out
  std::vector<std::string> nic_slots_;
};

}  // namespace

int even_domain(int nodes, int largest) {
  if (nodes <= largest || nodes % largest == 0) return largest;
  for (int size = largest - 1; 2 * size >= largest; --size)
    if (nodes % size == 0) return size;
  return largest;
}

NodeStamp make_node(const TopologySpec& spec, const Hardware& hardware, TopologyBuilder& builder) {
  const NodeRecipe& recipe = hardware.node(spec.node.use, kPath);
  return NodeDraft(recipe, spec.node, hardware, builder).make(spec.scale_up_domain, spec.nodes);
}

std::vector<std::uint32_t> place_nodes(const NodeStamp& stamp, int nodes, TopologyBuilder& builder) {
  std::vector<std::uint32_t> first;
  if (stamp.domain_nodes <= 1) {
    builder.nodes(static_cast<std::uint32_t>(nodes), stamp.devices, stamp.links);
    for (std::uint32_t n = 0; n < static_cast<std::uint32_t>(nodes); ++n)
      first.push_back(n * static_cast<std::uint32_t>(stamp.devices.size()));
    return first;
  }
  std::uint32_t base = 0, domain = 0;
  for (int n = 0; n < nodes; ++n) {
    first.push_back(base);
    for (Device device : stamp.devices) {
      device.node = static_cast<std::uint32_t>(n);
      builder.device(device);
    }
    for (Link link : stamp.links) {
      link.from = DeviceId(link.from.value + base);
      link.to = DeviceId(link.to.value + base);
      builder.link(link);
    }
    base += static_cast<std::uint32_t>(stamp.devices.size());
    const bool last_of_domain = (n + 1) % stamp.domain_nodes == 0 || n + 1 == nodes;
    if (!last_of_domain) continue;
    Device nvswitch{};
    nvswitch.kind = DeviceKind::nvswitch;
    nvswitch.count = static_cast<std::uint16_t>(stamp.chips);
    nvswitch.local = domain++;
    nvswitch.model = stamp.domain_switch_model;
    const DeviceId id = builder.device(nvswitch);
    ++base;
    for (int m = n / stamp.domain_nodes * stamp.domain_nodes; m <= n; ++m) {
      for (const std::uint32_t gpu : stamp.accelerators) {
        Link link = stamp.to_domain_switch;
        link.from = DeviceId(first[static_cast<std::size_t>(m)] + gpu);
        link.to = id;
        builder.cable(link);
      }
    }
  }
  return first;
}

}  // namespace topsim::topology

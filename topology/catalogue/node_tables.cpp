#include "topology/catalogue/node_tables.hpp"

#include "topology/catalogue/figure.hpp"

namespace topsim::topology {
namespace {
using config::Node;
using config::Type;

// [a, b, links]
class EdgeCodec final : public config::Codec<ScaleUp::Edge> {
 public:
  [[nodiscard]] bool accepts(config::Kind kind) const override { return kind == config::Kind::array; }
  void read(const Node& node, ScaleUp::Edge& out, config::Reader& reader) const override {
    if (!node.is(config::Kind::array) || node.size() != 3) {
      reader.problem(node, "an edge is [accelerator, accelerator, links]");
      return;
    }
    const auto count = config::codec_for<int>();
    count->read(node[0], out.a, reader);
    count->read(node[1], out.b, reader);
    count->read(node[2], out.links, reader);
  }
  [[nodiscard]] config::Value write(const ScaleUp::Edge& edge) const override {
    config::Value list(config::Kind::array);
    for (const int value : {edge.a, edge.b, edge.links}) list.push(config::Value::of(std::int64_t{value}));
    return list;
  }
  [[nodiscard]] config::Value schema(config::Definitions& definitions) const override {
    config::Value list = config::codec_for<std::vector<int>>()->schema(definitions);
    for (const char* bound : {"minItems", "maxItems"}) list.add(bound, config::Value::of(std::int64_t{3}));
    return list;
  }
  [[nodiscard]] std::string expects() const override { return "[accelerator, accelerator, links]"; }
};
}  // namespace

static config::CodecPtr<ScaleUp::Edge> codec(Type<ScaleUp::Edge>) {
  return std::make_shared<EdgeCodec>();
}

static const config::Object<ScaleUp>& table(Type<ScaleUp>) {
  using Kind = ScaleUp::Kind;
  static const auto object =
      config::Object<ScaleUp>("scale-up", "How accelerators reach each other without PCIe")
          .field("kind", &ScaleUp::kind, "shape", config::required(),
                 config::names<Kind>({{"none", Kind::none},
                                      {"switched", Kind::switched},
                                      {"mesh", Kind::mesh},
                                      {"torus", Kind::torus}}))
          .field("link", &ScaleUp::link, "catalogue link of one of them")
          .field("chip", &ScaleUp::chip, "switched: catalogue switch")
          .field("links_per_accelerator", &ScaleUp::links_per_accelerator, "switched: all together",
                 figure<int>())
          .field("chips", &ScaleUp::chips, "switched: of the whole domain", figure<int>())
          .field("links_per_chip", &ScaleUp::links_per_chip, "switched: from one accelerator",
                 figure<std::vector<int>>())
          .field("edges", &ScaleUp::edges, "mesh: [accelerator, accelerator, links]",
                 figure<std::vector<ScaleUp::Edge>>())
          .field("dims", &ScaleUp::dims, "torus: shape", figure<std::vector<int>>())
          .field("dim_links", &ScaleUp::dim_links, "torus: parallel links per dimension",
                 figure<std::vector<int>>())
          .field("domain_nodes", &ScaleUp::domain_nodes, "nodes that share the switches", figure<int>())
          .field("torus_block", &ScaleUp::torus_block, "how a node sits in a torus fabric",
                 figure<std::vector<int>>());
  return object;
}

static const config::Object<HostRecipe>& table(Type<HostRecipe>) {
  static const auto object =
      config::Object<HostRecipe>("host", "Processors and their memory")
          .field("cpu", &HostRecipe::cpu, "for people", config::required())
          .field("family", &HostRecipe::family, "for NCCL's tuner", config::required(),
                 config::one_of({kCpuFamilies.begin(), kCpuFamilies.end()}))
          .field("sockets", &HostRecipe::sockets, "processors", config::at_least(1))
          .field("numa_nodes", &HostRecipe::numa_nodes, "of all sockets", config::at_least(1))
          .field("socket_link", &HostRecipe::socket_link, "catalogue link between sockets")
          .field("socket_links", &HostRecipe::socket_links, "parallel links between each pair", figure<int>())
          .field("memory", &HostRecipe::memory, "of the node", figure<Bytes>())
          .field("memory_bandwidth", &HostRecipe::memory_bandwidth, "of one socket",
                 figure<BytesPerSecond>());
  return object;
}

static const config::Object<PcieBranch>& table(Type<PcieBranch>) {
  static const auto object =
      config::Object<PcieBranch>("branch", "A PCIe switch, or devices on the root ports of a socket")
          .field("socket", &PcieBranch::socket, "processor it belongs to")
          .field("parent", &PcieBranch::parent, "switch it hangs on; left out: the socket",
                 config::any_number())
          .field("switch", &PcieBranch::is_switch, "false: devices on root ports")
          .field("uplink", &PcieBranch::uplink, "catalogue link to the parent")
          .field("device_link", &PcieBranch::device_link, "catalogue link of each accelerator")
          .field("nic_link", &PcieBranch::nic_link, "catalogue link of each NIC")
          .field("accelerators", &PcieBranch::accelerators, "local numbers")
          .field("nics", &PcieBranch::nics, "local numbers");
  return object;
}

static const config::Object<RawPcie>& table(Type<RawPcie>) {
  static const auto object =
      config::Object<RawPcie>("pcie", "The PCIe tree of a node")
          .field("link", &RawPcie::link, "catalogue link of what names none", config::required())
          .field("uplink", &RawPcie::uplink, "catalogue link of the switches; left out: link")
          .field("tree", &RawPcie::tree, "branches", config::required());
  return object;
}

static const config::Object<NicGroup>& table(Type<NicGroup>) {
  static const auto object =
      config::Object<NicGroup>("nic group", "Equal NICs of a node")
          .field("use", &NicGroup::nic, "catalogue NIC", config::required())
          .field("count", &NicGroup::count, "how many", config::required(), figure<int>())
          .field("ports", &NicGroup::ports, "in use of each", config::at_least(1))
          .field("rate", &NicGroup::rate, "of a port as configured", figure<BytesPerSecond>())
          .field("role", &NicGroup::compute, "only compute NICs join the fabric",
                 config::names<bool>({{"compute", true}, {"storage", false}, {"management", false}}))
          .field("owner", &NicGroup::owner, "NICs on accelerators: whose each is");
  return object;
}

static const config::Object<RawNode>& table(Type<RawNode>) {
  static const auto object =
      config::Object<RawNode>("node", "A node to the metal")
          .field("like", &NodeRecipe::like, "recipe to start from")
          .field("name", &NodeRecipe::name, "for people", config::required())
          .field("accelerator", &NodeRecipe::accelerator, "catalogue accelerator")
          .field("accelerators", &NodeRecipe::accelerators, "how many", figure<int>())
          .field("peer_to_peer", &NodeRecipe::peer_to_peer, "PCIe peer-to-peer works here")
          .field("scale_up", &NodeRecipe::scale_up, "links between accelerators")
          .field("host", &NodeRecipe::host, "processors")
          .field("pcie", &RawNode::raw_pcie, "tree")
          .field("nics", &NodeRecipe::nics, "groups of equal NICs")
          .field("rail_of", &NodeRecipe::rail_of, "compute NIC of each accelerator")
          .field("default_link", &NodeRecipe::default_link, "fabric link the NICs usually speak")
          .field("power", &NodeRecipe::power, "at full load", figure<Watts>())
          .field("notes", &RawNode::notes, "remarks");
  return object;
}

namespace {
// Gives every branch its links; those stated for the whole tree are the default.
void fill_tree(RawNode& node) {
  node.pcie = node.raw_pcie.tree;
  const std::string& link = node.raw_pcie.link;
  const std::string& uplink = node.raw_pcie.uplink.empty() ? link : node.raw_pcie.uplink;
  for (PcieBranch& branch : node.pcie) {
    if (branch.is_switch && branch.uplink.empty()) branch.uplink = uplink;
    if (branch.device_link.empty()) branch.device_link = link;
    if (branch.nic_link.empty()) branch.nic_link = link;
  }
}

// Entries that start as a copy of an earlier one, "like".
class NodesCodec final : public config::Codec<std::map<std::string, RawNode>> {
 public:
  using Nodes = std::map<std::string, RawNode>;
  [[nodiscard]] bool accepts(config::Kind kind) const override { return plain_->accepts(kind); }
  void read(const Node& section, Nodes& nodes, config::Reader& reader) const override {
    if (!config::detail::check_kind(section, config::Kind::object, expects(), reader)) return;
    for (std::size_t i = 0; i < section.size(); ++i)
      if (!config::is_remark(section[i].key())) read_entry(section[i], nodes, reader);
  }
  [[nodiscard]] config::Value write(const Nodes& nodes) const override { return plain_->write(nodes); }
  [[nodiscard]] config::Value schema(config::Definitions& definitions) const override {
    return plain_->schema(definitions);
  }
  [[nodiscard]] std::string expects() const override { return plain_->expects(); }

 private:
  static void read_entry(const Node& entry, Nodes& nodes, config::Reader& reader) {
    RawNode node;
    if (const Node like = entry.find("like"); like.is(config::Kind::string)) {
      const auto base = nodes.find(like.text());
      if (base == nodes.end()) {
        std::vector<std::string> known;
        for (const auto& [id, other] : nodes) known.push_back(id);
        return reader.unknown_name(like, "node", like.text(), known);
      }
      node = base->second;
      node.notes.clear();
    }
    const std::size_t before = reader.count();
    table(Type<RawNode>{}).read(entry, node, reader);
    node.sound = reader.count() == before;
    fill_tree(node);
    node.id = entry.key();
    if (std::string source = first_source(entry); !source.empty()) node.source = std::move(source);
    nodes.emplace(node.id, std::move(node));
  }
  config::CodecPtr<Nodes> plain_ = config::codec_for<Nodes>();
};
}  // namespace

const config::Object<NodesFile>& table(Type<NodesFile>) {
  static const auto object = hardware_file<NodesFile>("nodes file", "Boxes to the metal")
                                 .field("nodes", &NodesFile::nodes, "by the name that scenarios give",
                                        config::CodecPtr<NodesCodec::Nodes>(std::make_shared<NodesCodec>()));
  return object;
}
}  // namespace topsim::topology

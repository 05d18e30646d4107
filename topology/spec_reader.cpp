#include "topology/spec_reader.hpp"

#include <fmt/format.h>

#include <set>

#include "topology/catalogue/fabric_kind_codec.hpp"
#include "topology/catalogue/link_entry.hpp"
#include "topology/catalogue/routing_codec.hpp"

namespace topsim::topology {
namespace {

std::vector<std::string> words(std::span<const std::string_view> names) {
  return {names.begin(), names.end()};
}

// "packed", "spread", "random", or a list of nodes.
class PlacementCodec final : public config::Codec<Placement> {
 public:
  bool accepts(config::Kind kind) const override {
    return kind == config::Kind::string || kind == config::Kind::array;
  }
  void read(const config::Node& node, Placement& out, config::Reader& reader) const override {
    if (node.is(config::Kind::array)) {
      out.kind = PlacementKind::list;
      nodes_->read(node, out.nodes, reader);
      if (node.size() == 0)
        reader.problem(node, "the list of nodes is empty", {}, "name nodes, or leave placement out");
    } else {
      kinds_->read(node, out.kind, reader);
    }
  }
  config::Value write(const Placement& value) const override {
    return value.kind == PlacementKind::list ? nodes_->write(value.nodes) : kinds_->write(value.kind);
  }
  config::Value schema(config::Definitions& definitions) const override {
    std::vector<config::Value> choices;
    choices.push_back(kinds_->schema(definitions));
    choices.push_back(nodes_->schema(definitions));
    return config::detail::schema_any_of(std::move(choices));
  }
  std::string expects() const override { return "packed, spread, random, or a list of nodes"; }

 private:
  config::CodecPtr<PlacementKind> kinds_ = config::names<PlacementKind>({
      {"packed", PlacementKind::packed, "ranks fill node after node"},
      {"spread", PlacementKind::spread, "the job's nodes are dealt evenly over the cluster"},
      {"random", PlacementKind::random, "nodes in an order drawn with the seed"},
  });
  config::CodecPtr<std::vector<int>> nodes_ = config::codec_for<std::vector<int>>();
};

// The keys of an object that differ from their default.
template <class T>
std::vector<std::string> said(const T& object) {
  const auto codec = config::codec_for<T>();
  const config::Value now = codec->write(object), usual = codec->write(T{});
  std::vector<std::string> keys;
  for (const auto& child : now.children) {
    const config::Value* other = usual.find(child->key);
    if (other == nullptr || config::to_text(*other) != config::to_text(*child)) keys.push_back(child->key);
  }
  return keys;
}

// Keys that have no effect beside `way` are refused.
void refuse_idle_keys(const TopologySpec& spec, const config::Node& node, config::Reader& reader) {
  const bool file = !spec.file.empty(), devices = !spec.devices.empty();
  const char* way = file ? "file" : devices ? "devices" : "node";
  const auto refuse = [&](const config::Node& at, std::string_view key) {
    std::string_view remedy = "leave it out";
    if (file)
      remedy = "the file holds the whole topology: leave it out, or change the file";
    else if (key == "peer_to_peer")
      remedy = "topology.node.peer_to_peer overrides what the node's recipe says";
    else if (key == "nvlink_sharp")
      remedy = "leave it out; network.nccl.nvls=false switches the sums of the node's NVSwitches off";
    reader.problem_at_key(at, fmt::format("\"{}\" has no effect beside \"{}\"", key, way), {},
                          std::string(remedy));
  };
  const std::pair<const char*, bool> keys[] = {{"node", (file || devices) && !said(spec.node).empty()},
                                               {"nodes", spec.nodes != 1 && (file || devices)},
                                               {"scale_up_domain", spec.scale_up_domain && (file || devices)},
                                               {"fabric", file && !said(spec.fabric).empty()},
                                               {"links", !spec.links.empty() && !devices},
                                               {"link_types", !spec.link_types.empty() && !devices},
                                               {"models", !spec.models.empty() && !devices},
                                               {"peer_to_peer", spec.peer_to_peer && !devices},
                                               {"nvlink_sharp", spec.nvlink_sharp && !devices}};
  for (const auto& [key, idle] : keys)
    if (idle) refuse(node.find(key), key);
  if (!devices) return;
  const std::set<std::string, std::less<>> used = {"kind",        "routing",    "sharp",
                                                   "nic_latency", "dimensions", "chips"};
  for (const std::string& key : said(spec.fabric)) {
    if (used.contains(key)) continue;
    const config::Node at = node.find("fabric").find(key);
    refuse(at ? at : node.find("fabric"), key);
  }
}

void check_topology(const TopologySpec& spec, const config::Node& node, config::Reader& reader) {
  const int ways =
      (spec.node.use.empty() ? 0 : 1) + (spec.devices.empty() ? 0 : 1) + (spec.file.empty() ? 0 : 1);
  if (ways == 0)
    reader.problem(node, "the topology names no hardware", {},
                   "add \"node\" (a recipe, with \"nodes\"), or \"devices\" and \"links\", or \"file\"");
  if (ways > 1)
    reader.problem(node, "the topology is described in more than one way", {},
                   "keep one of \"node\", \"devices\" and \"file\"");
  if (ways == 1) refuse_idle_keys(spec, node, reader);
  for (std::size_t i = 0; i < spec.placement.nodes.size(); ++i)
    if (!spec.node.use.empty() && spec.placement.nodes[i] >= spec.nodes)
      reader.problem(node.find("placement")[i],
                     fmt::format("there is no node {} among {}", spec.placement.nodes[i], spec.nodes), {},
                     "nodes are numbered from 0");
  std::set<int> placed;
  for (std::size_t i = 0; i < spec.placement.nodes.size(); ++i)
    if (!placed.insert(spec.placement.nodes[i]).second)
      reader.problem(node.find("placement")[i],
                     fmt::format("node {} is named twice", spec.placement.nodes[i]), {},
                     "an accelerator has one rank");
}

}  // namespace

config::CodecPtr<Placement> codec(config::Type<Placement>) {
  return std::make_shared<PlacementCodec>();
}

const config::Object<LinkChoice>& table(config::Type<LinkChoice>) {
  static const auto object =
      config::Object<LinkChoice>("link", "A catalogue link, with figures overridden in place")
          .field("use", &LinkChoice::use, "catalogue name", config::example("\"ib-ndr\""))
          .field("bandwidth", &LinkChoice::bandwidth, "line rate of one cable, per direction",
                 config::positive())
          .field("capacity", &LinkChoice::capacity, "payload rate; left out: line rate x encoding x headers",
                 config::positive())
          .field("latency", &LinkChoice::latency, "of one hop, everything included",
                 config::at_most_a_second())
          .shorthand("use");
  return object;
}

const config::Object<SwitchChoice>& table(config::Type<SwitchChoice>) {
  static const auto object =
      config::Object<SwitchChoice>("switch", "A catalogue switch, with figures overridden in place")
          .field("use", &SwitchChoice::use, "catalogue name", config::example("\"qm9700\""))
          .field("ports", &SwitchChoice::ports, "ports at the speed of the fabric's link",
                 config::between(2, 65'536))
          .field(
              "latency", &SwitchChoice::latency,
              "port to port; with it a hop costs this + FEC + 5 ns/m instead of the link's measured figure",
              config::at_most_a_second())
          .shorthand("use");
  return object;
}

const config::Object<NodeChoice>& table(config::Type<NodeChoice>) {
  static const auto object =
      config::Object<NodeChoice>("node", "A catalogue node, with parts replaced in place")
          .field("use", &NodeChoice::use, "catalogue name", config::example("\"hgx-h100\""))
          .field("accelerator", &NodeChoice::accelerator,
                 "another accelerator in the same sockets; it brings its own NVLinks, unless nvlink names "
                 "others")
          .field("nic", &NodeChoice::nic, "another NIC in the same slots")
          .field("cpu", &NodeChoice::cpu, "another CPU family, as NCCL names it",
                 config::one_of({"intel-bdw", "intel-skl", "intel-icx", "intel-spr", "intel-erp", "amd",
                                 "arm", "power9"}))
          .field("nvlink", &NodeChoice::nvlink, "other figures of the scale-up link")
          .field("accelerators", &NodeChoice::accelerators,
                 "the first of its accelerators alone, as where a job is given 4 of 8 in each node",
                 config::at_least(1), config::default_text("all"))
          .field("nics", &NodeChoice::nics, "so many of its NICs for the fabric, spread over the node",
                 config::at_least(1), config::default_text("all"))
          .field(
              "peer_to_peer", &NodeChoice::peer_to_peer,
              "whether its accelerators reach each other over PCIe: true with a driver that is patched for "
              "it, false where it is switched off",
              config::default_text("as the node and its accelerator allow"))
          .shorthand("use");
  return object;
}

const config::Object<FabricSpec>& table(config::Type<FabricSpec>) {
  static const auto object =
      config::Object<FabricSpec>("fabric", "The network between the nodes")
          .field("use", &FabricSpec::use, "a fabric of the catalogue whose figures the other keys override")
          .field("kind", &FabricSpec::kind, "how switches are arranged")
          .field("link", &FabricSpec::link, "cables of the fabric",
                 config::default_text("what the node's NICs speak"))
          .field("uplink", &FabricSpec::uplink, "cables between switches, where they differ from link",
                 config::default_text("as link"))
          .field("switch", &FabricSpec::switch_model, "switches of the fabric",
                 config::default_text("the usual one for the link"))
          .field("spine_switch", &FabricSpec::spine_switch, "switches of the second tier",
                 config::default_text("as switch"))
          .field("core_switch", &FabricSpec::core_switch, "switches of the third tier",
                 config::default_text("as spine_switch"))
          .field("oversubscription", &FabricSpec::oversubscription,
                 "downlinks / uplinks, a ratio or one per tier",
                 config::one_or_list<double>(config::codec_for<double>(config::positive())),
                 config::default_text("1"))
          .field("routing", &FabricSpec::routing, "how a message finds its path",
                 config::default_text(
                     "the link's: adaptive on InfiniBand, Slingshot and Omni-Path, spray on EFA, else ecmp"))
          .field("tiers", &FabricSpec::tiers, "levels of switches", config::between(1, 3),
                 config::default_text("as few as the number of nodes allows"))
          .field("nodes_per_leaf", &FabricSpec::nodes_per_leaf, "nodes that share leaf switches",
                 config::at_least(1), config::default_text("as many as the ports allow"))
          .field("leaves_per_pod", &FabricSpec::leaves_per_pod,
                 "leaves of one rail that share spines, with three tiers", config::at_least(1),
                 config::default_text("as many as the ports allow"))
          .field("nodes_per_pod", &FabricSpec::nodes_per_pod,
                 "nodes whose leaves, of all rails, share spines, with three tiers", config::at_least(1),
                 config::default_text("pods of one rail each"))
          .field("planes", &FabricSpec::planes,
                 "copies of the fabric that never meet; each NIC has a port on every one",
                 config::between(1, 64), config::default_text("1"))
          .field("leaves_per_rail", &FabricSpec::leaves_per_rail,
                 "leaves among which a NIC's ports are dealt (dual ToR: 2)", config::between(1, 64),
                 config::default_text("one a plane"))
          .field("length", &FabricSpec::length,
                 "of one cable, or one length per tier; with it a hop costs port-to-port + FEC + 5 ns/m "
                 "instead of the link's measured figure",
                 config::one_or_list<Metres>())
          .field("sharp", &FabricSpec::sharp, "in-network reduction in the switches")
          .field("nic_latency", &FabricSpec::nic_latency, "of both NICs and hosts together, one way",
                 config::at_most_a_second(), config::default_text("measured for the link"))
          .field("dimensions", &FabricSpec::dimensions,
                 "torus and mesh: accelerators per dimension; dragonfly: groups, switches a group, nodes' "
                 "ports a switch, global cables a switch, and cables to each switch of the group (left out: "
                 "one, "
                 "or as a recipe with as many switches a group has them)",
                 config::list_of<int>(config::codec_for<int>(config::at_least(1))))
          .field("rings", &FabricSpec::rings,
                 "torus: whether links join the ends of its axes, whatever their lengths",
                 config::default_text("where the link's pods have such links"))
          .field("chips", &FabricSpec::chips,
                 "explicit devices in a torus or mesh, or in nodes that hold a torus each: names of the "
                 "accelerators by coordinate, the last dimension fastest")
          .shorthand("use");
  return object;
}

const config::Object<DeviceSpec>& table(config::Type<DeviceSpec>) {
  static const auto object =
      config::Object<DeviceSpec>("device", "One device of an explicit topology")
          .field("name", &DeviceSpec::name, "unique; links refer to it", config::required())
          .field("kind", &DeviceSpec::kind, "what it is", config::one_of(words(device_kind_names())),
                 config::required())
          .field("model", &DeviceSpec::model, "catalogue name", config::default_text("the kind"))
          .field("node", &DeviceSpec::node, "node that holds it, from 0; none for fabric switches",
                 config::between(0, 999'999))
          .field("index", &DeviceSpec::index, "among its kind in the node or tier",
                 config::between(0, 999'999), config::default_text("counted"))
          .field("tier", &DeviceSpec::tier, "of a fabric switch: 1 leaf, 2 spine, 3 core",
                 config::between(1, 255), config::default_text("1 of a switch"))
          .field("count", &DeviceSpec::count, "equal ones that it stands for", config::between(1, 65535));
  return object;
}

const config::Object<LinkSpec>& table(config::Type<LinkSpec>) {
  static const auto object =
      config::Object<LinkSpec>("link", "One cable or bus of an explicit topology")
          .field("from", &LinkSpec::from, "a device", config::required())
          .field("to", &LinkSpec::to, "a device", config::required())
          .field("kind", &LinkSpec::kind, "what it is", config::one_of(words(link_kind_names())),
                 config::default_text("that of use"))
          .field(
              "use", [](auto& s) -> auto& { return s.link.use; }, "catalogue link it is one of")
          .field(
              "bandwidth", [](auto& s) -> auto& { return s.link.bandwidth; },
              "line rate of all its cables together, per direction", config::positive())
          .field(
              "capacity", [](auto& s) -> auto& { return s.link.capacity; },
              "payload rate of all its cables together", config::positive())
          .field(
              "latency", [](auto& s) -> auto& { return s.link.latency; }, "per crossing, far end included",
              config::at_most_a_second())
          .field("lanes", &LinkSpec::lanes, "PCIe width", config::between(1, 32))
          .field("count", &LinkSpec::count, "parallel cables that every message may share",
                 config::between(1, 65535))
          .field("length", &LinkSpec::length,
                 "of a cable: its price, and 5 ns a metre where no latency is given")
          .field("one_way", &LinkSpec::one_way, "only from -> to")
          .field("source", &LinkSpec::source, "where the figures come from");
  return object;
}

const config::Object<LinkTypeSpec>& table(config::Type<LinkTypeSpec>) {
  static const auto object =
      config::Object<LinkTypeSpec>("link type", "A kind of link of this file, beside the catalogue's")
          .field("id", &LinkTypeSpec::id, "what \"use\" of a link says", config::required())
          .field("label", &LinkTypeSpec::label, "for people")
          .field("source", &LinkTypeSpec::source, "where the figures come from")
          .field("transport", &LinkTypeSpec::transport, "Ethernet: what brings messages over it",
                 config::one_of(transports()));
  return object;
}

const config::Object<ModelSpec>& table(config::Type<ModelSpec>) {
  static const auto object =
      config::Object<ModelSpec>("model", "What a device model is to the library that drives it")
          .field("id", &ModelSpec::id, "what \"model\" of a device says", config::required())
          .field("compute_capability", &ModelSpec::compute_capability, "70, 80, 90, 100; 0 when not NVIDIA",
                 config::default_text("the catalogue's"))
          .field("gpu_direct", &ModelSpec::gpu_direct, "RDMA straight to and from accelerator memory")
          .field("cpu_family", &ModelSpec::cpu_family, "as NCCL names it: intel-spr, amd, arm, ...",
                 config::default_text("the model, if it is one"));
  return object;
}

const config::Object<TopologySpec>& table(config::Type<TopologySpec>) {
  static const auto object =
      config::Object<TopologySpec>("topology",
                                   "The hardware: a node recipe times a count and a fabric, or devices "
                                   "and links one by one, or a file of them")
          .field("format", &TopologySpec::format, "of a topology file", config::one_of({"topsim.topology/1"}),
                 config::default_text("none"))
          .field("node", &TopologySpec::node, "recipe of every node")
          .field("nodes", &TopologySpec::nodes, "how many", config::between(1, kMostNodes))
          .field("fabric", &TopologySpec::fabric, "the network between them")
          .field("file", &TopologySpec::file, "a topology written by topsim topo export or import")
          .field("accelerators", &TopologySpec::accelerators, "how many the job uses when fewer than all",
                 config::at_least(1))
          .field("scale_up_domain", &TopologySpec::scale_up_domain, "nodes that share one NVLink domain",
                 config::at_least(1),
                 config::default_text("the node's, or the largest part of it that divides the nodes"))
          .field("placement", &TopologySpec::placement, "which nodes the ranks fill, in order")
          .field("devices", &TopologySpec::devices, "devices one by one")
          .field("links", &TopologySpec::links, "links one by one")
          .field("link_types", &TopologySpec::link_types, "kinds of links that the catalogue does not have")
          .field("models", &TopologySpec::models,
                 "what device models are to their driver, where the catalogue does not say it")
          .field("peer_to_peer", &TopologySpec::peer_to_peer,
                 "explicit devices: accelerators reach each other over PCIe",
                 config::default_text("as their driver allows"))
          .field("nvlink_sharp", &TopologySpec::nvlink_sharp, "explicit devices: the NVSwitches reduce",
                 config::default_text("as their model does"))
          .check(check_topology);
  return object;
}

}  // namespace topsim::topology

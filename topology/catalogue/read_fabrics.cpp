#include "topology/catalogue/fabric_kind_codec.hpp"
#include "topology/catalogue/figure.hpp"
#include "topology/catalogue/hardware_file.hpp"
#include "topology/catalogue/impl.hpp"
#include "topology/catalogue/routing_codec.hpp"

namespace topsim::topology {
using config::Type;

static const config::Object<FabricTier>& table(Type<FabricTier>) {
  static const auto object =
      config::Object<FabricTier>("tier", "One layer of switches, counted from the nodes")
          .field("name", &FabricTier::name, "leaf, spine, ...", config::required())
          .field("switch", &FabricTier::switch_id, "catalogue switch", config::required())
          .field("oversubscription", &FabricTier::oversubscription, "capacity down over capacity up",
                 figure<double>())
          .field("switches_per_unit", &FabricTier::switches_per_unit, "in a scalable unit", figure<int>())
          .field("length", &FabricTier::length, "of the cables from below", figure<Metres>());
  return object;
}

static const config::Object<FabricRecipe::Size>& table(Type<FabricRecipe::Size>) {
  using Size = FabricRecipe::Size;
  static const auto object = config::Object<Size>("size", "Switches printed for a number of nodes")
                                 .field("nodes", &Size::nodes, "nodes", config::required())
                                 .field("leaf", &Size::leaf, "leaves")
                                 .field("spine", &Size::spine, "spines")
                                 .field("core", &Size::core, "cores");
  return object;
}

static const config::Object<FabricRecipe>& table(Type<FabricRecipe>) {
  static const auto object =
      config::Object<FabricRecipe>("fabric", "A network between nodes")
          .field("name", &FabricRecipe::name, "for people", config::required())
          .field("kind", &FabricRecipe::kind, "shape", config::required(), kinds_of_recipes())
          .field("source", &FabricRecipe::source, "where the description comes from", config::required())
          .field("node", &FabricRecipe::node, "catalogue node")
          .field("nodes", &FabricRecipe::nodes, "as published", figure<int>())
          .field("link", &FabricRecipe::link, "catalogue link, node to leaf")
          .field("uplink", &FabricRecipe::uplink, "catalogue link between switches; left out: link")
          .field("routing", &FabricRecipe::routing, "how paths are chosen")
          .field("unit_nodes", &FabricRecipe::unit_nodes, "nodes that share a set of leaves", figure<int>())
          .field("pod_nodes", &FabricRecipe::pod_nodes, "nodes that share a set of spines", figure<int>())
          .field("planes", &FabricRecipe::planes, "copies of the fabric", figure<int>())
          .field("leaves_per_rail", &FabricRecipe::leaves_per_rail, "dual ToR: 2", figure<int>())
          .field("tiers", &FabricRecipe::tiers, "layers of switches from the nodes up")
          .field("dims", &FabricRecipe::dims, "torus, mesh: accelerators", figure<std::vector<int>>())
          .field("groups", &FabricRecipe::groups, "dragonfly: groups", figure<int>())
          .field("routers", &FabricRecipe::routers, "dragonfly: switches of a group", figure<int>())
          .field("terminals", &FabricRecipe::terminals, "dragonfly: ports down of a switch", figure<int>())
          .field("global_links", &FabricRecipe::global_links, "dragonfly: ports of a switch to other groups",
                 figure<int>())
          .field("local_links", &FabricRecipe::local_links,
                 "dragonfly: cables between two switches of a group", figure<int>())
          .field("published", &FabricRecipe::published, "switch counts that the source prints",
                 figure<std::vector<FabricRecipe::Size>>())
          .field("notes", &FabricRecipe::notes, "remarks");
  return object;
}

namespace {
using config::Node;

struct FabricsFile : HardwareFile {
  std::map<std::string, FabricRecipe> fabrics;
};
const config::Object<FabricsFile>& table(Type<FabricsFile>) {
  static const auto object = hardware_file<FabricsFile>("fabrics file", "Fabrics as published")
                                 .field("fabrics", &FabricsFile::fabrics, "by the name that scenarios give");
  return object;
}

void check_names(const Node& entry, const FabricRecipe& fabric, const FabricReferences& known,
                 config::Reader& reader) {
  check_known(entry.find("node"), "node", fabric.node, known.nodes, reader);
  check_known(entry.find("link"), "link", fabric.link, known.links, reader);
  check_known(entry.find("uplink"), "link", fabric.uplink, known.links, reader);
  const Node tiers = entry.find("tiers");
  for (std::size_t i = 0; i < tiers.size() && i < fabric.tiers.size(); ++i)
    check_known(tiers[i].find("switch"), "switch", fabric.tiers[i].switch_id, known.switches, reader);
}
}  // namespace

std::string fabrics_schema(std::string_view name) {
  return config::schema<FabricsFile>(name);
}

void read_fabrics(const config::Document& file, const FabricReferences& known, ById<FabricRecipe>& fabrics,
                  config::Reader& reader) {
  FabricsFile whole;
  table(Type<FabricsFile>{}).read(file.root(), whole, reader);
  for_each_entry(file.root().find("fabrics"), whole.fabrics, [&](const Node& entry, FabricRecipe& fabric) {
    check_names(entry, fabric, known, reader);
    if (const auto text = whole.sources.find(fabric.source); text != whole.sources.end()) {
      fabric.source = text->second;
    } else if (const Node key = entry.find("source")) {
      reader.problem(key, "unknown source \"" + fabric.source + '"');
    }
    fabric.id = entry.key();
    fabrics.emplace(fabric.id, std::move(fabric));
  });
}
}  // namespace topsim::topology

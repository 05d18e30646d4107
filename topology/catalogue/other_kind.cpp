#include "topology/catalogue/other_kind.hpp"

#include <fmt/format.h>

#include "sim/base/suggest.hpp"
#include "topology/catalogue/node_meant.hpp"

namespace topsim::topology {
namespace {
std::string nodes_with(Catalogue::Impl& catalogue, std::string_view accelerator) {
  constexpr std::size_t kSome = 5;
  std::vector<std::string> ids;
  for (const auto& [id, node] : catalogue.nodes())
    if (node.accelerator == accelerator && ids.size() < kSome) ids.push_back(id);
  if (!ids.empty()) return ": nodes that have it are " + join(ids);
  const std::string place = in_place_of_another(catalogue, accelerator);
  return ", and no node here has it" + (place.empty() ? "" : ": " + place);
}
}  // namespace

std::string other_kind_of(Catalogue::Impl& catalogue, std::string_view what, std::string_view id) {
  const auto is = [&](std::string_view kind, const std::string& remedy) {
    return fmt::format("\"{}\" is {}{}", id, kind, remedy);
  };
  if (const auto link = catalogue.links().find(id); link != catalogue.links().end()) {
    const bool of_fabric =
        link->second.kind == LinkKind::infiniband || link->second.kind == LinkKind::ethernet;
    return is("a link", of_fabric && what != "link"
                            ? fmt::format(R"(: "fabric": {{"kind": "rail", "link": "{}"}})", id)
                            : "");
  }
  if (catalogue.switches().contains(id))
    return is("a switch", fmt::format(R"(: "fabric": {{"kind": "rail", "link": ..., "switch": "{}"}})", id));
  if (catalogue.accelerators().contains(id)) return is("an accelerator", nodes_with(catalogue, id));
  if (catalogue.nics().contains(id))
    return is("a NIC", R"(: a node has it, and "link" names what the NIC speaks, as "ib-ndr")");
  if (catalogue.nodes().contains(id))
    return is("a node", fmt::format(R"(: "topology": {{"node": "{}"}})", id));
  if (catalogue.fabrics().contains(id))
    return is("a fabric", fmt::format(R"(: "topology": {{"fabric": "{}"}})", id));
  return {};
}
}  // namespace topsim::topology

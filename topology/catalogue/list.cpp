#include "topology/catalogue/list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/nearest_words.hpp"
#include "sim/base/suggest.hpp"
#include "sim/config/document.hpp"
#include "sim/config/quantity.hpp"
#include "topology/catalogue/device_entries.hpp"
#include "topology/catalogue/fabric_recipe.hpp"
#include "topology/catalogue/hardware_file.hpp"
#include "topology/catalogue/impl.hpp"
#include "topology/catalogue/link_entry.hpp"
#include "topology/catalogue/node_meant.hpp"
#include "topology/catalogue/node_recipe.hpp"

namespace topsim::topology {
namespace {
using config::Kind;
using config::Node;
using config::to_text;

std::string gigabit(BytesPerSecond rate) {
  return fmt::format("{:g} Gbit/s", rate.value() * 8e-9);
}

// All digits are in the entry's own list of figures.
std::string four_digits(BytesPerSecond rate) {
  constexpr std::pair<double, const char*> kUnits[] = {{1e15, "PB/s"}, {1e12, "TB/s"}, {1e9, "GB/s"}};
  for (const auto& [size, unit] : kUnits)
    if (rate.value() >= size) return fmt::format("{:.4g} {}", rate.value() / size, unit);
  return fmt::format("{:.4g} MB/s", rate.value() * 1e-6);
}

std::string facts(const Accelerator& accelerator) {
  std::string text;
  for (const char* precision : {"bf16", "fp16", "fp8"}) {
    const auto rate = accelerator.dense_flops.find(std::string_view(precision));
    if (rate == accelerator.dense_flops.end()) continue;
    text = fmt::format("{:g} TFLOP/s {}, ", rate->second * 1e-12, precision);
    break;
  }
  text += fmt::format("{:.4g} GiB", static_cast<double>(accelerator.memory.value()) / (1 << 30)) + " at " +
          four_digits(accelerator.memory_bandwidth);
  if (accelerator.nvlinks > 0)
    text += fmt::format(", {} x {}", accelerator.nvlinks, accelerator.scale_up_link);
  if (accelerator.tdp.value() > 0) text += ", " + to_text(accelerator.tdp);
  return text;
}

std::string facts(const LinkEntry& link) {
  std::string text = four_digits(link.line_rate) + " line, ";
  text += four_digits(payload_capacity(link)) + " payload";
  if (link.hop) text += ", " + to_text(*link.hop) + " a switch";
  return text;
}

std::string facts(const NicEntry& nic) {
  return fmt::format("{} x {}", nic.ports, gigabit(nic.port_rate)) +
         (nic.pcie.empty() ? "" : ", " + nic.pcie);
}

std::string facts(const SwitchEntry& box) {
  std::string text = fmt::format("{} x {}", box.ports, gigabit(box.port_rate));
  if (box.port_to_port.count() > 0) text += ", " + to_text(box.port_to_port);
  if (box.power.value() > 0) text += ", " + to_text(box.power);
  return text;
}

std::string facts(const CableEntry& cable) {
  return fmt::format("{}, up to {}, {:g} USD at 2 m", gigabit(cable.rate), to_text(cable.reach),
                     cable.price(Metres(2)));
}

std::string facts(const NodeRecipe& node) {
  std::string text = fmt::format("{} x {}", node.accelerators, node.accelerator);
  if (node.scale_up.kind != ScaleUp::Kind::none) text += ", " + node.scale_up.link;
  for (const NicGroup& group : node.nics) {
    if (group.compute) text += fmt::format(", {} x {}", group.count, group.nic);
  }
  return text;
}

std::string facts(const FabricRecipe& fabric) {
  std::string text(name_of(fabric.kind));
  if (fabric.nodes > 0) text += fmt::format(", {} x {}", fabric.nodes, fabric.node);
  if (!fabric.link.empty()) text += ", " + fabric.link;
  if (!fabric.tiers.empty())
    text += fmt::format(", {} tier{}", fabric.tiers.size(), fabric.tiers.size() == 1 ? "" : "s");
  return text;
}

std::vector<ListRow> rows(const Catalogue& catalogue, bool fabrics) {
  std::vector<ListRow> list;
  for (const CatalogueEntry& entry : catalogue.entries()) {
    const std::string_view category = entry.category;
    if ((category == "fabric") != fabrics) continue;
    ListRow row{entry.category, entry.id, entry.name, {}, entry.source};
    if (category == "accelerator") row.facts = facts(catalogue.accelerator(entry.id));
    if (category == "node") row.facts = facts(catalogue.node(entry.id));
    if (category == "fabric") row.facts = facts(catalogue.fabric(entry.id));
    if (category == "link") row.facts = facts(catalogue.link(entry.id));
    if (category == "nic") row.facts = facts(catalogue.nic(entry.id));
    if (category == "switch") row.facts = facts(catalogue.network_switch(entry.id));
    if (category == "cable") row.facts = facts(catalogue.cable(entry.id));
    list.push_back(std::move(row));
  }
  return list;
}

std::string value_text(const Node& value) {
  return value.is(Kind::string) ? value.text() : config::to_text(value.value(), 0);
}

// Facts that no computation uses, and that need no source; readers of an entry may want them.
bool is_for_readers(std::string_view path) {
  constexpr std::array<std::string_view, 3> kPaths = {"asic", "rack_units", "host.numa_nodes"};
  return std::find(kPaths.begin(), kPaths.end(), path) != kPaths.end();
}

void collect(const Node& node, const Node& sources, const std::string& path, bool chosen,
             std::vector<FigureRow>& figures) {
  const Node source = node.is(Kind::array) && node.size() >= 2 && node[1].is(Kind::string)
                          ? sources.find(node[1].text())
                          : Node{};
  if (source) {
    figures.push_back(
        {path, value_text(node[0]), source.text(), node.size() > 2 ? node[2].text() : "", chosen});
    return;
  }
  if (is_for_readers(path) && node.size() == 0) {
    figures.push_back({path, value_text(node), {}, {}, chosen});
    return;
  }
  for (std::size_t i = 0; i < node.size(); ++i) {
    const std::string& key = node[i].key();
    const bool alternatives = key == "others";
    const bool same_path = key.empty() || key == "use" || alternatives;
    const std::string below = path.empty() ? key : path + '.' + key;
    collect(node[i], sources, same_path ? path : below, chosen && !alternatives, figures);
  }
}
// Whether the entry itself has a value at this path; a list replaces a list as a whole.
bool says(Node entry, std::string_view path) {
  while (entry && !entry.is(Kind::array) && !path.empty()) {
    const auto dot = path.find('.');
    entry = entry.find(path.substr(0, dot));
    path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
  }
  return static_cast<bool>(entry);
}

// The figures of an entry, then those of the entry that it is like.
void collect_entry(const Node& section, const Node& sources, const Node& entry,
                   std::vector<FigureRow>& figures) {
  collect(entry, sources, {}, true, figures);
  const Node like = entry.find("like");
  const Node base = like.is(Kind::string) ? section.find(like.text()) : Node{};
  if (!base) return;
  std::vector<FigureRow> inherited;
  collect_entry(section, sources, base, inherited);
  for (FigureRow& figure : inherited) {
    if (says(entry, figure.path)) continue;
    if (figure.remark.empty()) figure.remark = "as " + like.text();
    figures.push_back(std::move(figure));
  }
}

// Its offers; for a node without any, those of the node that it is like.
void collect_offers(std::span<const std::string> config_directories, const Node& section, Node entry,
                    std::vector<FigureRow>& figures) {
  const auto document = hardware_document(config_directories, "prices");
  const Node prices = document.root().find("prices"), sources = document.root().find("sources");
  while (entry) {
    if (const Node price = prices.find(entry.key()); price) {
      const Node offers = price.find("offers");
      for (std::size_t i = 0; i < offers.size(); ++i) {
        std::vector<FigureRow> offer;
        collect(offers[i].find("amount"), sources, "price", true, offer);
        for (FigureRow& figure : offer) {
          for (const char* key : {"kind", "date"})
            if (const Node what = offers[i].find(key); what)
              figure.remark += (figure.remark.empty() ? "" : ", ") + what.text();
          figures.push_back(std::move(figure));
        }
      }
      return;
    }
    const Node like = entry.find("like");
    entry = like.is(Kind::string) ? section.find(like.text()) : Node{};
  }
}
}  // namespace

std::vector<ListRow> list_hardware(const Catalogue& catalogue) {
  return rows(catalogue, false);
}
std::vector<ListRow> list_fabrics(const Catalogue& catalogue) {
  return rows(catalogue, true);
}

std::vector<FigureRow> figures_of(std::span<const std::string> config_directories, std::string_view id) {
  constexpr std::array kFiles = {"accelerators", "nodes", "nics", "switches", "links", "cables", "fabrics"};
  std::vector<std::string> names, meant;
  for (const char* file : kFiles) {
    const auto document = hardware_document(config_directories, file);
    const Node section = document.root().find(file), entry = section.find(id);
    if (!entry) {
      for (std::string& each : entries_called(document.root(), id)) meant.push_back(std::move(each));
      for (std::size_t i = 0; i < section.size(); ++i) names.push_back(section[i].key());
      continue;
    }
    std::vector<FigureRow> figures;
    collect_entry(section, document.root().find("sources"), entry, figures);
    collect_offers(config_directories, section, entry, figures);
    return figures;
  }
  std::string near = did_you_mean(meant);
  Catalogue::Impl catalogue({config_directories.begin(), config_directories.end()});
  if (const auto node = near.empty() ? node_meant(catalogue, id) : std::nullopt; node && node->more)
    near = did_you_mean(node->ids);
  if (near.empty()) near = suggestion(id, names);
  constexpr std::size_t kNearest = 5;
  if (near.empty())
    if (const auto alike = nearest_by_words(id, names, kNearest); !alike.empty())
      near = "nearest: " + join(alike);
  throw ConfigError("the catalogue has no \"" + std::string(id) + '"',
                    near.empty() ? "see topsim list hardware" : near);
}
}  // namespace topsim::topology

#include "topology/catalogue.hpp"

#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/suggest.hpp"
#include "topology/catalogue/gemm.hpp"
#include "topology/catalogue/impl.hpp"

namespace topsim::topology {
namespace {
template <class T>
const T& find_entry(const ById<T>& entries, std::string_view what, std::string_view id) {
  if (const auto entry = entries.find(id); entry != entries.end()) return entry->second;
  const std::vector<std::string> known = names_of(entries);
  std::string help = "known: " + join(known);
  if (const auto close = closest(id, known)) help = "did you mean \"" + *close + "\"? " + help;
  throw ConfigError("unknown " + std::string(what) + " \"" + std::string(id) + '"', std::move(help));
}

template <class T>
const T* find_or_null(const ById<T>& entries, std::string_view id) {
  const auto entry = entries.find(id);
  return entry == entries.end() ? nullptr : &entry->second;
}
}  // namespace

Catalogue::Catalogue() : impl_(std::make_unique<Impl>()) {}
Catalogue::~Catalogue() = default;
Catalogue::Catalogue(Catalogue&&) noexcept = default;

Catalogue Catalogue::load(const std::string& config_directory) {
  Catalogue catalogue;
  Impl& all = *catalogue.impl_;
  config::Reader reader;
  // Problems point into the documents, so these live until finish().
  std::vector<config::Document> files;
  const auto open = [&](const char* name) -> const config::Document& {
    return files.emplace_back(config::Document::read_file(config_directory + "/hardware/" + name + ".json"));
  };
  read_links(open("links"), all.links, reader);
  read_accelerators(open("accelerators"), all.links, all.accelerators, reader);
  read_nics(open("nics"), all.links, all.nics, reader);
  read_switches(open("switches"), all.links, all.switches, reader);
  read_cables(open("cables"), all.cables, reader);
  read_nodes(open("nodes"), {all.links, all.accelerators, all.nics, all.switches}, all.nodes, reader);
  read_fabrics(open("fabrics"), {all.links, all.switches, all.nodes}, all.fabrics, reader);
  read_prices(open("prices"), all.prices, all.ratios, reader);
  read_reliability(open("reliability"), all.failure_rates, reader);
  reader.finish();
  derive_gemm_constants(all.accelerators);
  return catalogue;
}

const Accelerator& Catalogue::accelerator(std::string_view id) const {
  return find_entry(impl_->accelerators, "accelerator", id);
}
const LinkEntry& Catalogue::link(std::string_view id) const {
  return find_entry(impl_->links, "link", id);
}
const NicEntry& Catalogue::nic(std::string_view id) const {
  return find_entry(impl_->nics, "NIC", id);
}
const SwitchEntry& Catalogue::network_switch(std::string_view id) const {
  return find_entry(impl_->switches, "switch", id);
}
const CableEntry& Catalogue::cable(std::string_view id) const {
  return find_entry(impl_->cables, "cable", id);
}
const NodeRecipe& Catalogue::node(std::string_view id) const {
  return find_entry(impl_->nodes, "node", id);
}
const FabricRecipe& Catalogue::fabric(std::string_view id) const {
  return find_entry(impl_->fabrics, "fabric", id);
}
const PriceEntry* Catalogue::price(std::string_view id) const {
  return find_or_null(impl_->prices, id);
}
const Ratio* Catalogue::ratio(std::string_view id) const {
  return find_or_null(impl_->ratios, id);
}
const FailureRate* Catalogue::failure_rate(std::string_view id) const {
  return find_or_null(impl_->failure_rates, id);
}

std::vector<CatalogueEntry> Catalogue::entries() const {
  std::vector<CatalogueEntry> list;
  const auto append = [&](const auto& entries, const char* category) {
    for (const auto& [id, entry] : entries) list.push_back({id, entry.name, category, entry.source});
  };
  append(impl_->accelerators, "accelerator");
  append(impl_->nodes, "node");
  append(impl_->fabrics, "fabric");
  for (const auto& [id, link] : impl_->links) list.push_back({id, link.label, "link", link.source});
  append(impl_->nics, "nic");
  append(impl_->switches, "switch");
  append(impl_->cables, "cable");
  return list;
}
}  // namespace topsim::topology

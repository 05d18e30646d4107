#include "topology/catalogue.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/hints.hpp"
#include "sim/base/nearest_words.hpp"
#include "sim/base/suggest.hpp"
#include "sim/base/synonyms.hpp"
#include "topology/catalogue/gemm.hpp"
#include "topology/catalogue/hardware_file.hpp"
#include "topology/catalogue/impl.hpp"
#include "topology/catalogue/node_meant.hpp"
#include "topology/catalogue/other_kind.hpp"

namespace topsim::topology {
namespace {
using config::Document;
using config::Kind;
using config::Value;
using Order = std::map<std::string, std::map<std::string, std::size_t>>;  // of a section's entries

Order order_of(const Document& document) {
  Order order;
  for (const auto& section : document.root().value().children)
    for (const auto& entry : section->children)
      order[section->key].emplace(entry->key, order[section->key].size());
  return order;
}

// Puts an entry before those that are "like" it.
void put_in(const Order& order, Value& root) {
  for (const auto& section : root.children) {
    const auto places = order.find(section->key);
    if (section->kind != Kind::object || places == order.end()) continue;
    const auto place = [&](const auto& entry) {
      const auto found = places->second.find(entry->key);
      return found == places->second.end() ? places->second.size() : found->second;
    };
    std::stable_sort(section->children.begin(), section->children.end(),
                     [&](const auto& a, const auto& b) { return place(a) < place(b); });
  }
}
// Ids of entries whose names for people share words with `asked`: "infiniband", "tomahawk5".
template <class T>
std::vector<std::string> nearest_by_name(const ById<T>& entries, std::string_view asked, std::size_t most) {
  ById<std::string> id_of;
  for (const auto& [id, entry] : entries) {
    if constexpr (requires { entry.label; })
      id_of.emplace(entry.label, id);
    else
      id_of.emplace(entry.name, id);
  }
  std::vector<std::string> ids;
  for (const std::string& name : nearest_by_words(asked, names_of(id_of), most))
    ids.push_back(id_of.find(name)->second);
  return ids;
}

// For a node its accelerator counts, not the letters.
std::string near_to(Catalogue::Impl& catalogue, std::string_view what, std::string_view id,
                    std::span<const std::string> known) {
  if (what == "node")
    if (const auto meant = node_meant(catalogue, id)) return meant->help;
  return suggestion(id, known);
}

// What people call so or what is of another kind is looked for in other files, for an error alone.
template <class T>
const T& find_entry(Catalogue::Impl& catalogue, const ById<T>& entries, const char* file,
                    std::string_view what, std::string_view id) {
  if (const auto entry = entries.find(id); entry != entries.end()) return entry->second;
  const std::vector<std::string> known = names_of(entries);
  std::string help = "known: " + join(known);
  constexpr std::size_t kNearest = 5;
  const std::string hint(hint_of_value(what, id));
  const std::string close = hint.empty() ? other_kind_of(catalogue, what, id) : hint;
  if (const auto meant = close.empty() ? catalogue.called(file, id) : std::vector<std::string>();
      !close.empty() || !meant.empty())
    help = (close.empty() ? did_you_mean(meant) : close + ';') + ' ' + help;
  else if (const std::string near = near_to(catalogue, what, id, known); !near.empty())
    help = near + (near.back() == '?' ? " " : "; ") + help;
  else if (const auto words = nearest_by_words(id, known, kNearest); !words.empty())
    help = "nearest: " + join(words) + "; " + help;
  else if (const auto alike = nearest_by_name(entries, id, kNearest); !alike.empty())
    help = "nearest: " + join(alike) + "; " + help;
  throw ConfigError("unknown " + std::string(what) + " \"" + std::string(id) + '"', std::move(help));
}

template <class T>
const T* find_or_null(const ById<T>& entries, std::string_view id) {
  const auto entry = entries.find(id);
  return entry == entries.end() ? nullptr : &entry->second;
}
}  // namespace

Document hardware_document(std::span<const std::string> directories, const std::string& file) {
  std::optional<Document> whole;
  for (const std::string& directory : directories) {
    const std::string path = directory + "/hardware/" + file + ".json";
    std::error_code error;
    const bool last = &directory == &directories.back();  // if none has the file, the last one is named
    if (!std::filesystem::exists(path, error) && (!last || whole)) continue;
    Document layer = Document::read_file(path);
    if (!whole) {
      whole = std::move(layer);
      continue;
    }
    const Order order = order_of(layer);
    whole->merge_below(whole->tree(), std::move(layer));
    put_in(order, whole->tree());
  }
  return std::move(*whole);
}
std::vector<std::string> entries_called(const config::Node& file, std::string_view name) {
  const auto bare = [](std::string_view text) {
    std::string word = plain(text);
    std::erase(word, '.');
    return word;
  };
  const config::Node names = file.find("also_called");
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < names.size(); ++i)
    for (std::size_t k = 0; k < names[i].size(); ++k)
      if (names[i][k].is(Kind::string) && bare(names[i][k].text()) == bare(name)) {
        ids.push_back(names[i].key());
        break;
      }
  return ids;
}

std::vector<std::string> Catalogue::Impl::called(const char* file, std::string_view name) const {
  return entries_called(hardware_document(directories_, file).root(), name);
}

template <class T, class Read>
const ById<T>& Catalogue::Impl::get(Category<T>& category, const char* file, Read read) {
  std::call_once(category.once, [&] {
    const auto document = hardware_document(directories_, file);
    config::Reader reader;
    ById<T> entries;
    read(document, entries, reader);
    reader.finish();
    category.entries = std::move(entries);
  });
  return category.entries;
}

const ById<LinkEntry>& Catalogue::Impl::links() {
  return get(links_, "links", read_links);
}
const ById<Accelerator>& Catalogue::Impl::accelerators() {
  return get(accelerators_, "accelerators", [this](const auto& file, auto& entries, config::Reader& reader) {
    const Derivation derivation = read_accelerators(file, links(), entries, reader);
    if (reader.ok()) derive_gemm_constants(entries, derivation);
  });
}
const ById<NicEntry>& Catalogue::Impl::nics() {
  return get(nics_, "nics", [this](const auto& file, auto& entries, config::Reader& reader) {
    read_nics(file, links(), entries, reader);
  });
}
const ById<SwitchEntry>& Catalogue::Impl::switches() {
  return get(switches_, "switches", [this](const auto& file, auto& entries, config::Reader& reader) {
    read_switches(file, links(), entries, reader);
  });
}
const ById<CableEntry>& Catalogue::Impl::cables() {
  return get(cables_, "cables", read_cables);
}
const ById<CpuEntry>& Catalogue::Impl::cpus() {
  return get(cpus_, "cpus", [this](const auto& file, auto& entries, config::Reader& reader) {
    read_cpus(file, links(), entries, reader);
  });
}
const ById<NodeRecipe>& Catalogue::Impl::nodes() {
  return get(nodes_, "nodes", [this](const auto& file, auto& entries, config::Reader& reader) {
    read_nodes(file, {links(), accelerators(), nics(), switches()}, entries, reader);
  });
}
const ById<FabricRecipe>& Catalogue::Impl::fabrics() {
  return get(fabrics_, "fabrics", [this](const auto& file, auto& entries, config::Reader& reader) {
    read_fabrics(file, {links(), switches(), nodes()}, entries, reader);
  });
}
const ById<PriceEntry>& Catalogue::Impl::prices() {
  return get(prices_, "prices", [this](const auto& file, auto& entries, config::Reader& reader) {
    read_prices(file, entries, ratios_, reader);
  });
}
const ById<Ratio>& Catalogue::Impl::ratios() {
  static_cast<void>(prices());
  return ratios_;
}
const ById<FailureRate>& Catalogue::Impl::failure_rates() {
  return get(failure_rates_, "reliability", read_reliability);
}

Catalogue::Catalogue(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Catalogue::~Catalogue() = default;
Catalogue::Catalogue(Catalogue&&) noexcept = default;

Catalogue Catalogue::load(const std::string& config_directory) {
  return load(std::vector{config_directory});
}
Catalogue Catalogue::load(std::vector<std::string> config_directories) {
  return Catalogue(std::make_unique<Impl>(std::move(config_directories)));
}

const Accelerator& Catalogue::accelerator(std::string_view id) const {
  return find_entry(*impl_, impl_->accelerators(), "accelerators", "accelerator", id);
}
const LinkEntry& Catalogue::link(std::string_view id) const {
  return find_entry(*impl_, impl_->links(), "links", "link", id);
}
const NicEntry& Catalogue::nic(std::string_view id) const {
  return find_entry(*impl_, impl_->nics(), "nics", "NIC", id);
}
const SwitchEntry& Catalogue::network_switch(std::string_view id) const {
  return find_entry(*impl_, impl_->switches(), "switches", "switch", id);
}
const CableEntry& Catalogue::cable(std::string_view id) const {
  return find_entry(*impl_, impl_->cables(), "cables", "cable", id);
}
const NodeRecipe& Catalogue::node(std::string_view id) const {
  return find_entry(*impl_, impl_->nodes(), "nodes", "node", id);
}
const FabricRecipe& Catalogue::fabric(std::string_view id) const {
  return find_entry(*impl_, impl_->fabrics(), "fabrics", "fabric", id);
}
double Catalogue::peer_overhead(std::string_view cpu_family) const {
  for (const auto& [family, cpu] : impl_->cpus())
    if (cpu_family.starts_with(family)) return cpu.peer_overhead;
  return 1;
}
const PriceEntry* Catalogue::price(std::string_view id) const {
  return find_or_null(impl_->prices(), id);
}
const Ratio* Catalogue::ratio(std::string_view id) const {
  return find_or_null(impl_->ratios(), id);
}
const FailureRate* Catalogue::failure_rate(std::string_view id) const {
  return find_or_null(impl_->failure_rates(), id);
}

std::vector<CatalogueEntry> Catalogue::entries() const {
  std::vector<CatalogueEntry> list;
  const auto append = [&](const auto& entries, const char* category) {
    for (const auto& [id, entry] : entries) list.push_back({id, entry.name, category, entry.source});
  };
  append(impl_->accelerators(), "accelerator");
  append(impl_->nodes(), "node");
  append(impl_->fabrics(), "fabric");
  for (const auto& [id, link] : impl_->links()) list.push_back({id, link.label, "link", link.source});
  append(impl_->nics(), "nic");
  append(impl_->switches(), "switch");
  append(impl_->cables(), "cable");
  return list;
}
}  // namespace topsim::topology

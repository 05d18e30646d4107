// The members of a Catalogue, and the readers that fill it, one per category.
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/document.hpp"
#include "sim/config/reader.hpp"
#include "topology/catalogue.hpp"
#include "topology/catalogue/device_entries.hpp"
#include "topology/catalogue/fabric_recipe.hpp"
#include "topology/catalogue/link_entry.hpp"
#include "topology/catalogue/node_recipe.hpp"
#include "topology/catalogue/price_entry.hpp"

namespace topsim::topology {

// Files of the catalogue in layers: hardware/FILE.json of all of `directories` as one document. What the
// first says of an entry wins, the others supply the rest; entries are in the order of the last, new ones
// after them.
[[nodiscard]] config::Document hardware_document(std::span<const std::string> directories,
                                                 const std::string& file);

template <class T>
using ById = std::map<std::string, T, std::less<>>;

// Each file is read once, when one of its entries is first asked for, by any thread: a run never needs the
// prices, a price list never the nodes.
class Catalogue::Impl {
 public:
  explicit Impl(std::vector<std::string> directories) : directories_(std::move(directories)) {}
  [[nodiscard]] const ById<LinkEntry>& links();
  [[nodiscard]] const ById<Accelerator>& accelerators();
  [[nodiscard]] const ById<NicEntry>& nics();
  [[nodiscard]] const ById<SwitchEntry>& switches();
  [[nodiscard]] const ById<CableEntry>& cables();
  [[nodiscard]] const ById<CpuEntry>& cpus();
  [[nodiscard]] const ById<NodeRecipe>& nodes();
  [[nodiscard]] const ById<FabricRecipe>& fabrics();
  [[nodiscard]] const ById<PriceEntry>& prices();
  [[nodiscard]] const ById<Ratio>& ratios();
  [[nodiscard]] const ById<FailureRate>& failure_rates();
  // The ids of a file's entries that people call by this name.
  [[nodiscard]] std::vector<std::string> called(const char* file, std::string_view name) const;

 private:
  template <class T>
  struct Category {
    std::once_flag once;
    ById<T> entries;
  };
  // Fills a category from its file on the first call; a ConfigError leaves it to be tried again.
  template <class T, class Read>
  const ById<T>& get(Category<T>& category, const char* file, Read read);

  std::vector<std::string> directories_;
  Category<LinkEntry> links_;
  Category<Accelerator> accelerators_;
  Category<NicEntry> nics_;
  Category<SwitchEntry> switches_;
  Category<CableEntry> cables_;
  Category<CpuEntry> cpus_;
  Category<NodeRecipe> nodes_;
  Category<FabricRecipe> fabrics_;
  Category<PriceEntry> prices_;
  ById<Ratio> ratios_;  // filled with prices_
  Category<FailureRate> failure_rates_;
};

// One per file. Names of other categories are checked against these.
void read_links(const config::Document& file, ById<LinkEntry>& links, config::Reader& reader);
struct Derivation;  // topology/catalogue/gemm.hpp
[[nodiscard]] Derivation read_accelerators(const config::Document& file, const ById<LinkEntry>& links,
                                           ById<Accelerator>& accelerators, config::Reader& reader);
void read_nics(const config::Document& file, const ById<LinkEntry>& links, ById<NicEntry>& nics,
               config::Reader& reader);
void read_switches(const config::Document& file, const ById<LinkEntry>& links, ById<SwitchEntry>& switches,
                   config::Reader& reader);
void read_cables(const config::Document& file, ById<CableEntry>& cables, config::Reader& reader);
void read_cpus(const config::Document& file, const ById<LinkEntry>& links, ById<CpuEntry>& cpus,
               config::Reader& reader);
struct NodeReferences {
  const ById<LinkEntry>& links;
  const ById<Accelerator>& accelerators;
  const ById<NicEntry>& nics;
  const ById<SwitchEntry>& switches;
};
void read_nodes(const config::Document& file, const NodeReferences& known, ById<NodeRecipe>& nodes,
                config::Reader& reader);
struct FabricReferences {
  const ById<LinkEntry>& links;
  const ById<SwitchEntry>& switches;
  const ById<NodeRecipe>& nodes;
};
void read_fabrics(const config::Document& file, const FabricReferences& known, ById<FabricRecipe>& fabrics,
                  config::Reader& reader);
void read_prices(const config::Document& file, ById<PriceEntry>& prices, ById<Ratio>& ratios,
                 config::Reader& reader);
void read_reliability(const config::Document& file, ById<FailureRate>& rates, config::Reader& reader);

template <class T>
[[nodiscard]] std::vector<std::string> names_of(const ById<T>& entries) {
  std::vector<std::string> names;
  for (const auto& [id, entry] : entries) names.push_back(id);
  return names;
}

// Reports `name` at `node` when there is no such entry; empty names and absent nodes are accepted.
template <class T>
void check_known(const config::Node& node, std::string_view what, const std::string& name,
                 const ById<T>& entries, config::Reader& reader) {
  if (!node || name.empty() || entries.contains(name)) return;
  reader.unknown_name(node, what, name, names_of(entries));
}
}  // namespace topsim::topology

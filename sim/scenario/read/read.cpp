#include "sim/scenario/read/read.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "sim/base/suggest.hpp"
#include "sim/base/synonyms.hpp"
#include "sim/config/home_of_key.hpp"
#include "sim/scenario/read/directories.hpp"
#include "sim/scenario/read/includable.hpp"
#include "sim/scenario/read/mistakes.hpp"
#include "sim/scenario/read/tables.hpp"
#include "topology/catalogue/node_meant.hpp"
#include "workloads/trace/load.hpp"

namespace topsim::scenario {
namespace {
namespace fs = std::filesystem;
using config::Document;
using config::Kind;
using config::Node;
using config::Value;

class Includer {
 public:
  explicit Includer(const config::Library& library) : library_(library) {}

  void follow(Document& document, const fs::path& folder) {
    // Sections first: what a section of this file includes takes precedence over the base file.
    for (const char* name : kIncludable) {
      Value* section = document.tree().find(name);
      if (section != nullptr && section->kind == Kind::object) include(document, *section, folder);
    }
    include(document, document.tree(), folder);
  }

 private:
  // {"file": "base.json", ...}: the members of base.json, overridden by the other members of this object.
  void include(Document& document, Value& at, const fs::path& folder) {
    if (at.kind != Kind::object) return;
    Value* name = at.find("file");
    if (name == nullptr || name->kind == Kind::null) return;
    config::Reader reader;
    if (name->kind != Kind::string) reader.problem(Node(name), "\"file\" needs the name of a JSON file");
    reader.finish();
    const fs::path path = look_up(name->text, folder);
    const std::string canonical = fs::weakly_canonical(path).string();
    if (std::find(open_.begin(), open_.end(), canonical) != open_.end()) {
      reader.problem(Node(name), "\"" + name->text + "\" includes itself", "", "included: " + join(open_));
    }
    reader.finish();
    open_.push_back(canonical);
    Document other = read(*name, path);
    if (at.parent == nullptr) {
      follow(other, path.parent_path());
    } else {
      include(other, other.tree(), path.parent_path());
    }
    std::erase_if(at.children, [&](const auto& child) { return child.get() == name; });
    document.merge_below(at, std::move(other));
    open_.pop_back();
  }

  [[nodiscard]] fs::path look_up(const std::string& name, const fs::path& folder) const {
    fs::path path = folder / name;
    std::error_code error;
    for (const std::string& directory : library_.directories()) {
      if (fs::exists(path, error)) break;
      if (fs::exists(fs::path(directory) / name, error)) path = fs::path(directory) / name;
    }
    return path;
  }

  static Document read(const Value& name, const fs::path& path) {
    try {
      return Document::read_file(path.string());
    } catch (const ConfigError& error) {
      if (!error.problems().front().place.file.empty()) throw;
      // An error without a place (the file is missing) is an error of the include.
      config::Reader reader;
      reader.problem(Node(&name), error.problems().front().message, "", error.problems().front().help);
      reader.finish();
      throw;
    }
  }

  const config::Library& library_;
  std::vector<std::string> open_;
};

Problem no_workload() {
  Problem problem;
  problem.path = "workload";
  problem.message = "missing key \"workload\"";
  problem.help = R"(workload: What it computes, such as {"model": "llama3-8b"})";
  return problem;
}

// Adds the mistakes that can be found in spite of those of reading.
void add_mistakes_beside(const Scenario& partial, const config::Library& library, config::Reader& reader) {
  std::vector<std::string> layers = catalogue_layers(library.directories());
  if (layers.empty()) return;
  const auto catalogue = topology::Catalogue::load(std::move(layers));
  std::vector<Problem> of_reading;
  try {
    reader.finish();
  } catch (const ConfigError& error) {
    of_reading = error.problems();
  }
  std::vector<Problem> more = mistakes_beside(of_reading, partial, catalogue);
  if (!more.empty()) reader.add(ConfigError(partial.document->locate(std::move(more))));
}

// Output of topsim is not an input, though a result contains a scenario.
void refuse_what_was_printed(const Document& document) {
  const Node format = document.root().find("format");
  if (!format || !format.is(Kind::string) || !format.text().starts_with("topsim.")) return;
  const bool result = format.text().starts_with("topsim.result/");
  config::Reader reader;
  if (format.text().starts_with("topsim.topology/")) {
    const std::string name = fs::path(format.place().file).filename().string();
    reader.problem(format, "this is a topology, not a scenario", "",
                   "a scenario names it, {\"topology\": {\"file\": \"" + name +
                       "\"}}, and for a run has a \"workload\" beside it");
    reader.finish();
  }
  reader.problem(
      format,
      result ? "this is the result of a run, not a scenario" : "this is what topsim printed, not a scenario",
      "",
      result ? "topsim explain says where its step goes, topsim compare puts it beside others; what was run "
               "is its \"scenario\""
             : "a scenario has the keys topology and workload: topsim schema lists all");
  reader.finish();
}

// A path given by --set is relative to the folder where the command runs; if nothing is there, to the
// scenario's folder. A Chakra trace is named by the prefix of its files.
void look_up_from_here(const Document& document, std::string_view at, std::string& path,
                       const fs::path& folder, config::Reader& reader) {
  const Node node = document.root().at_path(at);
  if (!node || node.place().file != "--set" || path.empty() || fs::path(path).is_absolute()) return;
  std::error_code error;
  const auto exists = [&](const fs::path& tried) {
    return fs::exists(tried, error) || fs::exists(tried.string() + ".0.et", error) ||
           fs::exists(tried.string() + ".0.et.gz", error);
  };
  const auto whole = [&](const fs::path& tried) {
    return fs::absolute(tried, error).lexically_normal().string();
  };
  if (exists(path)) {
    path = whole(path);
  } else if (!folder.empty() && !exists(folder / path)) {
    const std::string here = whole(path), beside = whole(folder / path);
    reader.problem(node, "no such file: \"" + path + '"', "",
                   "looked for " + here + (here == beside ? "" : " and " + beside));
  }
}

Scenario finish(Document document, const fs::path& folder, std::span<const std::string> assignments,
                const config::Library& library, bool needs_workload) {
  refuse_what_was_printed(document);
  Includer(library).follow(document, folder);
  for (const std::string& assignment : assignments) document.set(assignment);
  const auto kept = std::make_shared<const Document>(std::move(document));
  Scenario result;
  result.document = kept;
  config::Reader reader(&library);
  reader.set_home([](std::string_view key) { return config::home_of_key<Scenario>(key); });
  config::codec_for<Scenario>()->read(kept->root(), result, reader);
  if (needs_workload && kept->root().is(Kind::object) && !has_workload(*kept))
    reader.add(ConfigError(kept->locate({no_workload()})));
  look_up_from_here(*kept, "topology.file", result.topology.file, folder, reader);
  if (result.workload.trace)
    look_up_from_here(*kept, "workload.trace.path", result.workload.trace->path, folder, reader);
  if (!reader.ok()) add_mistakes_beside(result, library, reader);
  reader.finish();
  result.topology.directory = folder.empty() ? "." : folder.string();
  return result;
}
}  // namespace

void require_workload(const Scenario& scenario) {
  if (scenario.document && !has_workload(*scenario.document)) throw ConfigError({no_workload()});
}

std::string find_shipped(const std::string& path, const config::Library& library) {
  const fs::path typed(path);
  std::error_code error;
  if (!typed.is_relative()) return {};
  for (const std::string& directory : library.directories()) {
    if (fs::exists(fs::path(directory) / typed, error)) return (fs::path(directory) / typed).string();
    if (!typed.has_parent_path() || *typed.begin() != "configs") continue;
    const fs::path below = fs::path(directory) / typed.lexically_relative("configs");
    if (fs::exists(below, error)) return below.string();
  }
  return {};
}

namespace {
std::vector<std::string> scenarios_beside(const fs::path& file) {
  std::vector<std::string> names;
  std::error_code ignored;
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  for (fs::directory_iterator it(folder, ignored), end; !ignored && it != end; it.increment(ignored))
    if (it->path().extension() == ".json") names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}
}  // namespace

namespace {
// Ids of the catalogue's nodes, each of which may stand for a cluster of one.
std::vector<std::string> known_nodes(const config::Library& library) {
  std::vector<std::string> layers = catalogue_layers(library.directories());
  if (layers.empty()) return {};
  std::vector<std::string> ids;
  for (const topology::CatalogueEntry& entry : topology::Catalogue::load(std::move(layers)).entries())
    if (entry.category == "node") ids.push_back(entry.id);
  return ids;
}

std::vector<std::string> nodes_meant(const std::string& name, const config::Library& library) {
  std::vector<std::string> layers = catalogue_layers(library.directories());
  if (layers.empty()) return {};
  return topology::nodes_meant(std::move(layers), name);
}

// Empty where there is no such scenario.
std::string looked_up(const std::string& path, const config::Library& library) {
  std::error_code error;
  if (fs::exists(path, error)) return path;
  const bool whole = fs::path(path).extension() == ".json";
  if (!whole && fs::is_regular_file(path + ".json", error)) return path + ".json";
  for (const std::string& name : {path, path + ".json"}) {
    const std::string found = whole && name != path ? std::string() : find_shipped(name, library);
    if (!found.empty() && fs::is_regular_file(found, error)) return found;
  }
  return {};
}
}  // namespace

std::string find_scenario(const std::string& path, const config::Library& library) {
  if (path.empty()) throw ConfigError("the name of the scenario is empty", "e.g. configs/8xH100-ib.json");
  if (std::string found = looked_up(path, library); !found.empty()) return found;
  const fs::path typed(path);
  const std::vector<std::string> nodes = known_nodes(library);
  if (std::find(nodes.begin(), nodes.end(), path) != nodes.end())
    throw ConfigError(
        "no such scenario: \"" + path + "\" is a node",
        "a scenario has it as topology.node, beside its workload; topsim bench and topsim topo take "
        "a node's name");
  std::vector<std::string> known = library.names("");
  const bool is_name = typed.extension().empty() && !typed.has_parent_path();
  const auto node = is_name ? same_but_for_marks(path, nodes) : std::nullopt;  // "dgx_h100"
  const auto close = node ? std::nullopt : closest(typed.stem().string(), known);
  const std::vector<std::string> meant =
      is_name && !close ? nodes_meant(path, library) : std::vector<std::string>();
  std::error_code error;
  std::string help = "looked for " + fs::absolute(typed, error).lexically_normal().string();
  // A scenario of the user's own comes first.
  const auto beside = closest(typed.filename().string(), scenarios_beside(typed));
  help += beside           ? "; did you mean " + (typed.parent_path() / *beside).string() + '?'
          : close          ? "; did you mean " + *close + '?'
          : !meant.empty() ? "; did you mean the node " + join(meant) + '?'
                           : "; shipped: " + join(known);
  throw ConfigError("no such scenario: \"" + path + '"', help);
}

namespace {
Scenario read_file(const std::string& path, std::span<const std::string> assignments,
                   const config::Library& library, bool needs_workload) {
  const fs::path found = find_scenario(path, library);
  Scenario result =
      finish(Document::read_file(found.string()), found.parent_path(), assignments, library, needs_workload);
  result.name = found.stem().string();
  return result;
}
}  // namespace

Scenario read_scenario(const std::string& path, std::span<const std::string> assignments,
                       const config::Library& library) {
  return read_file(path, assignments, library, true);
}

Scenario read_cluster(const std::string& path, std::span<const std::string> assignments,
                      const config::Library& library) {
  if (!path.empty() && looked_up(path, library).empty()) {
    const std::vector<std::string> nodes = known_nodes(library);
    if (std::find(nodes.begin(), nodes.end(), path) != nodes.end()) {
      Scenario box = parse_cluster(R"({"topology": {"node": ")" + path + "\"}}", path, assignments, library);
      box.name = path;
      return box;
    }
  }
  return read_file(path, assignments, library, false);
}

Scenario parse_scenario(std::string text, const std::string& name, std::span<const std::string> assignments,
                        const config::Library& library, const std::string& directory) {
  return finish(Document::parse(std::move(text), name), directory, assignments, library, true);
}

Scenario parse_cluster(std::string text, const std::string& name, std::span<const std::string> assignments,
                       const config::Library& library) {
  return finish(Document::parse(std::move(text), name), {}, assignments, library, false);
}

std::string to_json(const Scenario& scenario) {
  return config::write(scenario);
}

std::string standalone_json(const Scenario& scenario) {
  Scenario whole = scenario;
  const std::string folder = scenario.topology.directory;
  const auto make_absolute = [](std::string& path) {
    std::error_code error;
    path = fs::absolute(path, error).lexically_normal().string();
  };
  if (std::string& file = whole.topology.file; !file.empty())
    file = (fs::path(folder) / file).string(), make_absolute(file);
  if (whole.workload.trace)
    for (std::string* path : {&whole.workload.trace->path, &whole.workload.trace->groups})
      if (!path->empty()) *path = workloads::trace::find_path(*path, folder), make_absolute(*path);
  for (FaultSpec& fault : whole.faults)
    if (fault.has_factor()) fault.factor = fault.left();
  return to_json(whole);
}
}  // namespace topsim::scenario

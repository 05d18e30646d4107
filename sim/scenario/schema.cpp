#include <functional>

#include "sim/base/suggest.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/tables.hpp"
#include "topology/spec_reader.hpp"
#include "workloads/fields.hpp"

namespace topsim::scenario {
namespace {
struct Entry {
  const char* name;
  std::string (*make)(std::string_view name);
};
// One line a schema that `topsim schema NAME` prints.
constexpr Entry kSchemas[] = {
    {"scenario", config::schema<Scenario>},
    {"topology", config::schema<topology::TopologySpec>},
    {"workload", config::schema<workloads::WorkloadSpec>},
    {"model", config::schema<workloads::ModelSpec>},
    {"network", config::schema<NetworkSpec>},
};
}  // namespace

std::vector<std::string> schema_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kSchemas) names.emplace_back(entry.name);
  return names;
}

std::string schema(const std::string& name) {
  for (const Entry& entry : kSchemas) {
    if (name == entry.name) return entry.make(name);
  }
  const std::vector<std::string> known = schema_names();
  const auto close = closest(name, known);
  throw ConfigError("unknown schema \"" + name + '"',
                    close ? "did you mean \"" + *close + "\"?" : "known: " + join(known));
}
}  // namespace topsim::scenario

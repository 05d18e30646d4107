#include "topology/catalogue/schemas.hpp"

#include "topology/catalogue/hardware_file.hpp"

namespace topsim::topology {
std::span<const Schema> hardware_schemas() {
  static constexpr Schema kSchemas[] = {
      {"accelerators", accelerators_schema},
      {"cables", cables_schema},
      {"cpus", cpus_schema},
      {"fabrics", fabrics_schema},
      {"links", links_schema},
      {"nics", nics_schema},
      {"nodes", nodes_schema},
      {"prices", prices_schema},
      {"reliability", reliability_schema},
      {"switches", switches_schema},
  };
  return kSchemas;
}
}  // namespace topsim::topology

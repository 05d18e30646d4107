#include "sim/config/object.hpp"
#include "topology/catalogue/figure.hpp"
#include "topology/catalogue/impl.hpp"

namespace topsim::topology {

static const config::Object<CpuEntry>& table(config::Type<CpuEntry>) {
  static const auto object = config::Object<CpuEntry>("cpu", "A family of CPUs")
                                 .field("name", &CpuEntry::name, "for people", config::required())
                                 .field("peer_packet", &CpuEntry::peer_packet,
                                        "what its root complex cuts traffic between accelerators into",
                                        config::required(), figure<Bytes>());
  return object;
}

void read_cpus(const config::Document& file, ById<CpuEntry>& cpus, config::Reader& reader) {
  const config::Node section = file.root().find("cpus");
  for (std::size_t i = 0; i < section.size(); ++i) {
    CpuEntry cpu;
    table(config::Type<CpuEntry>{}).read(section[i], cpu, reader);
    cpus.emplace(section[i].key(), std::move(cpu));
  }
}
}  // namespace topsim::topology

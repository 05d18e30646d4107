#include "sim/config/object.hpp"
#include "topology/catalogue/figure.hpp"
#include "topology/catalogue/impl.hpp"

namespace topsim::topology {

static const config::Object<CpuEntry>& table(config::Type<CpuEntry>) {
  static const auto object = config::Object<CpuEntry>("cpu", "A family of CPUs")
                                 .field("name", &CpuEntry::name, "for people", config::required())
                                 .field("peer_packet", &CpuEntry::peer_packet,
                                        "what its root complex cuts traffic between accelerators into",
                                        config::required(), figure<Bytes>())
                                 .field("pcie", &CpuEntry::pcie,
                                        "catalogue link whose full packets stand for those of all its slots",
                                        config::required(), figure<std::string>());
  return object;
}

namespace {
// CpuEntry's; 1 where the link's packets are not known.
double peer_overhead(Bytes packet, const LinkEntry& link) {
  const auto header = static_cast<double>(link.header.value());
  const auto whole = static_cast<double>(link.mtu.value()), cut = static_cast<double>(packet.value());
  return cut > 0 && whole > 0 ? (1 + header / cut) / (1 + header / whole) : 1;
}
}  // namespace

void read_cpus(const config::Document& file, const ById<LinkEntry>& links, ById<CpuEntry>& cpus,
               config::Reader& reader) {
  const config::Node section = file.root().find("cpus");
  for (std::size_t i = 0; i < section.size(); ++i) {
    CpuEntry cpu;
    table(config::Type<CpuEntry>{}).read(section[i], cpu, reader);
    check_known(section[i].find("pcie"), "link", cpu.pcie, links, reader);
    if (const auto link = links.find(cpu.pcie); link != links.end())
      cpu.peer_overhead = peer_overhead(cpu.peer_packet, link->second);
    cpus.emplace(section[i].key(), std::move(cpu));
  }
}
}  // namespace topsim::topology

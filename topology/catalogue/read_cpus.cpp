#include "topology/catalogue/figure.hpp"
#include "topology/catalogue/hardware_file.hpp"
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
struct CpusFile : HardwareFile {
  std::map<std::string, CpuEntry> cpus;
};
const config::Object<CpusFile>& table(config::Type<CpusFile>) {
  static const auto object =
      hardware_file<CpusFile>("cpus file", "Families of CPUs")
          .field("cpus", &CpusFile::cpus, "by what the names of NCCL's families begin with");
  return object;
}

// The overhead in CpuEntry; 1 if the link's packets are not known.
double peer_overhead(Bytes packet, const LinkEntry& link) {
  const auto header = static_cast<double>(link.header.value());
  const auto whole = static_cast<double>(link.mtu.value()), cut = static_cast<double>(packet.value());
  return cut > 0 && whole > 0 ? (1 + header / cut) / (1 + header / whole) : 1;
}
}  // namespace

std::string cpus_schema(std::string_view name) {
  return config::schema<CpusFile>(name);
}

void read_cpus(const config::Document& file, const ById<LinkEntry>& links, ById<CpuEntry>& cpus,
               config::Reader& reader) {
  CpusFile whole;
  table(config::Type<CpusFile>{}).read(file.root(), whole, reader);
  for_each_entry(file.root().find("cpus"), whole.cpus, [&](const config::Node& entry, CpuEntry& cpu) {
    check_known(entry.find("pcie"), "link", cpu.pcie, links, reader);
    if (const auto link = links.find(cpu.pcie); link != links.end())
      cpu.peer_overhead = peer_overhead(cpu.peer_packet, link->second);
    cpus.emplace(entry.key(), std::move(cpu));
  });
}
}  // namespace topsim::topology

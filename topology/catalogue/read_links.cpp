#include "topology/catalogue/figure.hpp"
#include "topology/catalogue/hardware_file.hpp"
#include "topology/catalogue/impl.hpp"
#include "topology/catalogue/routing_codec.hpp"

namespace topsim::topology {
namespace {
struct RawLink : LinkEntry {
  Spread<Duration> nic_base_spread;
  std::vector<std::string> notes;
};

const config::Object<RawLink>& table(config::Type<RawLink>) {
  static const auto object =
      config::Object<RawLink>("link", "A kind of link; rates per direction of one link")
          .field("label", &LinkEntry::label, "for people", config::required())
          .field("kind", &LinkEntry::kind, "what it is made of", config::required(),
                 config::names<LinkKind>({{"nvlink", LinkKind::nvlink},
                                          {"c2c", LinkKind::c2c},
                                          {"infinity_fabric", LinkKind::infinity_fabric},
                                          {"pcie", LinkKind::pcie},
                                          {"socket", LinkKind::socket},
                                          {"memory", LinkKind::memory},
                                          {"infiniband", LinkKind::infiniband},
                                          {"ethernet", LinkKind::ethernet},
                                          {"torus", LinkKind::torus},
                                          {"other", LinkKind::other}}))
          .field("transport", &LinkEntry::transport, "Ethernet: what brings messages over it",
                 config::one_of(transports()))
          .field("line_rate", &LinkEntry::line_rate, "data bits on the wire before `encoding`",
                 config::required(), figure<BytesPerSecond>())
          .field("encoding", &LinkEntry::encoding, "share the line code leaves", figure<double>())
          .field("header", &LinkEntry::header, "bytes that travel with every full packet", figure<Bytes>())
          .field("mtu", &LinkEntry::mtu, "payload of a full packet", figure<Bytes>())
          .field("efficiency", &LinkEntry::efficiency, "measured share of what code and headers leave",
                 figure<double>())
          .field("nic_efficiency", &LinkEntry::nic_efficiency, "the same of the cable at a NIC",
                 figure<double>())
          .field("latency", &LinkEntry::latency, "of a crossing inside a node", figure<Duration>())
          .field("host_latency", &LinkEntry::host_latency, "PCIe: of a crossing into a root complex",
                 figure<Duration>())
          .field("nic_base", &RawLink::nic_base_spread,
                 "both NICs and hosts, one way; torus: an operation, beside its hops", spread<Duration>())
          .field("hop", &LinkEntry::hop, "measured, per switch passed, all included", figure<Duration>())
          .field("fec", &LinkEntry::fec, "per switch passed where hop is not measured", figure<Duration>())
          .field("ring_axis", &LinkEntry::ring_axis,
                 "torus: the ends of an axis are joined where its length is a multiple of it", figure<int>())
          .field("ring_cube", &LinkEntry::ring_cube,
                 "torus: the ends of all axes are joined, in three dimensions that are all multiples of it",
                 figure<int>())
          .field("routing", &LinkEntry::routing, "of fabrics of this link that say none")
          .field("copy_kernel", &LinkEntry::copy_kernel, "of a kernel that copies to its own memory",
                 figure<Duration>())
          .field("library", &LinkEntry::library, "NVLink: what a library adds to a small message",
                 figure<Duration>())
          .field("read_round_trip", &LinkEntry::read_round_trip, "PCIe: a device reads host memory",
                 figure<Duration>())
          .field("staged_copy", &LinkEntry::staged_copy,
                 "PCIe: a copy between accelerators staged in host memory, beyond its crossings",
                 figure<Duration>())
          .field("staged_rate", &LinkEntry::staged_rate, "PCIe: of large copies so staged",
                 figure<BytesPerSecond>())
          .field("notes", &RawLink::notes, "remarks");
  return object;
}

struct LinksFile : HardwareFile {
  std::map<std::string, RawLink> links;
};
const config::Object<LinksFile>& table(config::Type<LinksFile>) {
  static const auto object = hardware_file<LinksFile>("links file", "Kinds of link")
                                 .field("links", &LinksFile::links, "by the name that scenarios give");
  return object;
}
}  // namespace

std::string links_schema(std::string_view name) {
  return config::schema<LinksFile>(name);
}

void read_links(const config::Document& file, ById<LinkEntry>& links, config::Reader& reader) {
  LinksFile whole;
  table(config::Type<LinksFile>{}).read(file.root(), whole, reader);
  for_each_entry(file.root().find("links"), whole.links, [&](const config::Node& entry, RawLink& link) {
    link.id = entry.key();
    link.nic_base = link.nic_base_spread.use;
    link.nic_base_low = link.nic_base_spread.low;
    link.nic_base_high = link.nic_base_spread.high;
    link.source = first_source(entry);
    links.emplace(link.id, std::move(link));
  });
}
}  // namespace topsim::topology

// The NICs of a NCCL topology file and their rails.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "topology/catalogue/device_entries.hpp"
#include "topology/import/nccl_xml_importer.hpp"

namespace topsim::topology::nccl {
namespace {
// A file of NCCL's can be read without a catalogue. These are its figures (configs/hardware/links.json):
// "mtu", "header" and "nic_base" of ib-ndr and of roce-400g.
constexpr double kPacket = 4096, kInfinibandHeader = 26, kRoceHeader = 82;  // bytes
constexpr double kInfinibandBase = 2.35, kRoceBase = 2.6;                   // microseconds
constexpr double kFastest = 3.2e6;  // Mbit/s; no port of today has more

// By the class; 0280 is "other": adapters of Mellanox have it, and Wi-Fi. Without a class, a name may tell.
bool is_ethernet(const Element& pci) {
  const std::string kind = attribute(pci, "class");
  if (!kind.empty())
    return kind.starts_with("0x0200") || (kind.starts_with("0x0280") && attribute(pci, "vendor") != "0x15b3");
  for (const auto& [name, nic] : pci)
    for (const auto& [inner, net] : nic)
      if (name == "nic" && inner == "net" && attribute(net, "name").starts_with("roce")) return true;
  return false;
}
}  // namespace

// The cable of the nearest rate, bytes/s. Of several with one rate that for which a switch is made: EDR, not
// half an HDR. Null: no catalogue.
const LinkEntry* Importer::nearest_link(LinkKind kind, double rate) {
  if (options_.catalogue == nullptr) return nullptr;
  const auto [at, fresh] = nearest_.try_emplace({kind, rate}, nullptr);
  if (!fresh) return at->second;
  const std::vector<CatalogueEntry> entries = options_.catalogue->entries();
  std::set<std::string, std::less<>> made_for;
  for (const CatalogueEntry& entry : entries) {
    if (entry.category != "switch") continue;
    const std::vector<std::string>& links = options_.catalogue->network_switch(entry.id).links;
    if (!links.empty()) made_for.insert(links.front());
  }
  std::pair<double, bool> best;
  for (const CatalogueEntry& entry : entries) {
    if (entry.category != "link") continue;
    const LinkEntry& link = options_.catalogue->link(entry.id);
    if (link.kind != kind || (kind == LinkKind::ethernet && link.transport != "roce")) continue;
    const std::pair rank(std::abs(std::log(link.line_rate.value() / rate)), !made_for.contains(entry.id));
    if (at->second == nullptr || rank < best) at->second = &link, best = rank;
  }
  return at->second;
}

// The file names no switch: it takes what the cable's usual one does.
void Importer::to_rail(Link link, DeviceId rail, const LinkEntry* entry) {
  const auto [at, fresh] = crossings_.try_emplace(entry);
  if (fresh && entry != nullptr) {
    const Hardware hardware(*options_.catalogue);
    at->second =
        Hardware::crossing(hardware.link(entry->id, {}), hardware.usual_switch_latency(entry->id), {});
  }
  link.to = rail;
  link.latency = at->second.to_switch;
  builder_.link(link);
  std::swap(link.from, link.to);
  link.latency = at->second.from_switch;
  builder_.link(link);
}

Duration Importer::nic_latency(bool infiniband) const {
  if (nic_link_ != nullptr && nic_link_->nic_base > Duration{}) return nic_link_->nic_base;
  return from_microseconds(infiniband ? kInfinibandBase : kRoceBase);
}

void Importer::ports(const Element& element, DeviceId nic, LinkKind kind) {
  for (const auto& [name, net] : element) {
    if (name != "net") continue;
    const std::string named = attribute(net, "name", "a NIC");
    if (some_carry_ && attribute(net, "net") == "0") {
      together("net=\"0\": the fused NICs of the file carry its traffic", named);
      continue;
    }
    double mbps = number(net, "speed", 0);
    if (mbps <= 0) {
      find(fmt::format("{} gives no speed; 10 Gbit/s is assumed, as NCCL does", named));
      mbps = 10000;
    }
    if (mbps > kFastest)
      together(fmt::format("speed=\"{}\", which is {:g} Gbit/s; the attribute is in Mbit/s",
                           attribute(net, "speed"), mbps / 1000),
               named);
    const bool infiniband = kind == LinkKind::infiniband;
    const char* const family = infiniband ? "InfiniBand" : "Ethernet";
    const double rate = mbps * 1e6 / 8;
    const LinkEntry* entry = nearest_link(kind, rate);
    const double payload = entry != nullptr
                               ? payload_capacity_at_nic(*entry) / entry->line_rate
                               : kPacket / (kPacket + (infiniband ? kInfinibandHeader : kRoceHeader));
    LinkType type{fmt::format("{}-{}g", infiniband ? "ib" : "eth", mbps / 1000),
                  fmt::format("{} {} Gbit/s", family, mbps / 1000), "NCCL topology file"};
    const Link link{.from = nic,
                    .to = {},
                    .kind = kind,
                    .type = builder_.link_type(std::move(type)),
                    .capacity = BytesPerSecond(rate * payload),
                    .line_rate = BytesPerSecond(rate)};
    cables_[device_number(net, "dev", nics_)].push_back(
        [this, link, entry](DeviceId rail) { to_rail(link, rail, entry); });
  }
}

DeviceId Importer::nic(const Element& element, std::uint32_t node) {
  const std::uint32_t id = builder_.model(
      fmt::format("pci-{}-{}", attribute(element, "vendor", "?"), attribute(element, "device", "?")));
  const bool ethernet = is_ethernet(element);
  infiniband_ |= !ethernet;
  bool gpu_direct = true;
  for (const auto& [name, child] : element)
    if (name == "nic")
      for (const auto& [inner, net] : child)
        if (inner == "net") gpu_direct = number(net, "gdr", 0) != 0;
  builder_.model_facts(id, {.compute_capability = 0, .gpu_direct = gpu_direct, .cpu_family = {}});
  const DeviceId device =
      builder_.device({.kind = DeviceKind::nic, .node = node, .local = nics_, .model = id});
  for (const auto& [name, child] : element)
    if (name == "nic") ports(child, device, ethernet ? LinkKind::ethernet : LinkKind::infiniband);
  const bool says_net = std::any_of(element.begin(), element.end(), [](const auto& child) {
    return child.first == "nic" && child.second.count("net") != 0;
  });
  if (!says_net) uncabled(device);
  ++nics_;
  return device;
}

// A <nic> right under its <cpu>: a network that is not a PCIe device, or several fused to one.
void Importer::virtual_nic(const Element& element, DeviceId cpu, std::uint32_t node) {
  std::string interface;
  for (const auto& [name, net] : element)
    if (name == "net")
      interface +=
          fmt::format("{} {} {};", attribute(net, "name"), attribute(net, "dev"), attribute(net, "guid"));
  if (!interface.empty() && !interfaces_.insert(interface).second)
    return find(fmt::format("{} stands under several processors: it is one interface, of the first",
                            interface.substr(0, interface.find(' '))));
  const DeviceId device = builder_.device(
      {.kind = DeviceKind::nic, .node = node, .local = nics_, .model = builder_.model("virtual-nic")});
  const double unlimited = kLocal * 1e9;
  cable(device, cpu, LinkKind::pcie, {std::string(kNoSlot), "no PCIe slot", "NCCL 2.30 graph/topo.h"},
        unlimited, unlimited);
  for (const auto& [name, net] : element)
    if (name == "net" && attribute(net, "name").find('+') != std::string::npos)
      find(fmt::format(
          "{} is several NICs fused, and the file does not say of which kind: Ethernet is assumed",
          attribute(net, "name")));
  ports(element, device, LinkKind::ethernet);
  ++nics_;
}

void Importer::uncabled(DeviceId nic) {
  ++uncabled_;
  if (nic_link_ == nullptr) return;
  const Link link{
      .from = nic,
      .to = {},
      .kind = nic_link_->kind,
      .type = builder_.link_type({nic_link_->id, nic_link_->label, nic_link_->source, nic_link_->transport}),
      .capacity = payload_capacity_at_nic(*nic_link_),
      .line_rate = nic_link_->line_rate};
  cables_[nics_].push_back([this, link](DeviceId rail) { to_rail(link, rail, nic_link_); });
}

// NICs of the same number meet in one switch; numbers need not begin at 0.
void Importer::rails() {
  std::uint32_t local = 0;
  DeviceId leaf{};
  for (const auto& [number, cables] : cables_) {
    if (apart_ || !leaf.valid())
      leaf = builder_.device({.kind = DeviceKind::fabric_switch,
                              .tier = 1,
                              .local = local++,
                              .model = builder_.model(apart_ ? "assumed-rail-switch" : "assumed-switch")});
    for (const auto& cable : cables) cable(leaf);
  }
}

}  // namespace topsim::topology::nccl

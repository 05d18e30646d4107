#include "topology/import/nccl_xml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "sim/base/error.hpp"
#include "topology/import/nccl_assumptions.hpp"
#include "topology/import/nccl_xml_element.hpp"
#include "topology/import/xml.hpp"

namespace topsim::topology {
namespace {

using nccl::attribute;
using nccl::Element;
using nccl::number;
using nccl::PciRole;

constexpr double kPcieEfficiency = 55.0 / 63.0;  // measured copies over Gen5 x16: 55 of 63 GB/s

class Importer {
 public:
  Importer(const Element& system, const NcclXmlOptions& options) : system_(system), options_(options) {}
  NcclXmlImport run();

 private:
  struct ScaleUpLink {
    DeviceId gpu;
    const Element* element;
    bool amd;
  };
  void box(std::uint32_t node);
  void pci(const Element& element, DeviceId parent, std::uint32_t node);
  DeviceId accelerator(const Element& element, std::uint32_t node);
  DeviceId nic(const Element& element, std::uint32_t node);
  void ports(const Element& element, DeviceId nic, LinkKind kind);
  void scale_up(std::uint32_t node);
  void sockets(const std::vector<std::pair<DeviceId, std::string>>& cpus);
  DeviceId rail(std::uint32_t number);
  nccl::PcieLink checked(const Element& element);
  void cable(DeviceId a, DeviceId b, LinkKind kind, LinkType type, double line_rate, double capacity,
             int count = 1);
  void find(std::string sentence);

  const Element& system_;
  const NcclXmlOptions& options_;
  TopologyBuilder builder_;
  std::vector<std::string> findings_;
  std::map<std::string, DeviceId> by_bus_id_;  // of the box in work
  std::vector<ScaleUpLink> scale_up_;
  std::map<DeviceId, int> capability_;
  std::uint32_t gpus_ = 0, switches_ = 0, nics_ = 0, cpus_ = 0;  // of the box in work
  std::vector<DeviceId> rails_;
  bool infiniband_ = false;
};

void Importer::find(std::string sentence) {
  if (std::find(findings_.begin(), findings_.end(), sentence) == findings_.end())
    findings_.push_back(std::move(sentence));
}

void Importer::cable(DeviceId a, DeviceId b, LinkKind kind, LinkType type, double line_rate, double capacity,
                     int count) {
  builder_.cable({.from = a,
                  .to = b,
                  .kind = kind,
                  .count = static_cast<std::uint16_t>(count),
                  .type = builder_.link_type(std::move(type)),
                  .capacity = BytesPerSecond(capacity),
                  .line_rate = BytesPerSecond(line_rate)});
}

// In virtual machines bridges claim speeds that nothing runs at; NCCL believes them, we do not.
nccl::PcieLink Importer::checked(const Element& element) {
  nccl::PcieLink link = nccl::pcie_link(element);
  const std::string where = attribute(element, "busid", "a device without bus id");
  const bool bridge = nccl::role_of(element) == PciRole::bridge;
  if (bridge) {
    const nccl::PcieLink below = nccl::fastest_below(element);
    if (below.known() && link.line_rate() < below.line_rate() * 0.5) {
      find(fmt::format(
          "PCIe bridge {} claims {} GT/s x{}, slower than the devices behind it; their {} GT/s x{} is "
          "used (dumps made in virtual machines are like this)",
          where, link.transfers, link.lanes, below.transfers, below.lanes));
      return below;
    }
  }
  if (link.lanes == 0) {
    find(fmt::format("{} gives no PCIe width; 16 lanes are assumed, as NCCL does", where));
    link.lanes = 16;
  }
  if (link.transfers <= 0) {
    find(fmt::format("{} gives no PCIe speed; 8 GT/s is assumed, as NCCL does", where));
    link.transfers = 8;
  }
  if (!bridge && link.transfers < 8)
    find(fmt::format(
        "{} runs at {} GT/s: an idle device or a virtual machine's invention; dump again under load", where,
        link.transfers));
  return link;
}

DeviceId Importer::rail(std::uint32_t number) {
  while (rails_.size() <= number) {
    const auto local = static_cast<std::uint32_t>(rails_.size());
    rails_.push_back(builder_.device({.kind = DeviceKind::fabric_switch,
                                      .tier = 1,
                                      .local = local,
                                      .model = builder_.model("assumed-rail-switch")}));
  }
  return rails_[number];
}

DeviceId Importer::accelerator(const Element& element, std::uint32_t node) {
  static const Element kNothing;
  const auto found = element.find("gpu");
  const Element& gpu = found == element.not_found() ? kNothing : found->second;
  const int capability = static_cast<int>(number(gpu, "sm", 0));
  std::string model = options_.accelerator;
  if (model.empty()) {
    model = fmt::format("pci-{}-{}", attribute(element, "vendor", "?"), attribute(element, "device", "?"));
    find(fmt::format("accelerators are known only as {}; name the model to simulate computation", model));
  }
  const std::uint32_t id = builder_.model(std::move(model));
  builder_.model_facts(
      id, {.compute_capability = capability, .gpu_direct = number(gpu, "gdr", 1) != 0, .cpu_family = {}});
  const DeviceId device = builder_.device({.kind = DeviceKind::accelerator,
                                           .node = node,
                                           .local = nccl::device_number(gpu, "dev", gpus_),
                                           .model = id});
  ++gpus_;
  capability_[device] = capability;
  by_bus_id_[attribute(element, "busid")] = device;
  for (const auto& [name, link] : gpu)
    if (name == "nvlink" || name == "xgmi") scale_up_.push_back({device, &link, name == "xgmi"});
  return device;
}

void Importer::ports(const Element& element, DeviceId nic, LinkKind kind) {
  for (const auto& [name, net] : element) {
    if (name != "net") continue;
    double mbps = number(net, "speed", 0);
    if (mbps <= 0) {
      find(fmt::format("{} gives no speed; 10 Gbit/s is assumed, as NCCL does",
                       attribute(net, "name", "a NIC")));
      mbps = 10000;
    }
    const bool infiniband = kind == LinkKind::infiniband;
    const char* const family = infiniband ? "InfiniBand" : "Ethernet";
    // Payload share of the wire at 4096-byte packets: InfiniBand has 26 bytes of headers, RoCEv2 82.
    const double payload = 4096.0 / (4096.0 + (infiniband ? 26 : 82));
    const double rate = mbps * 1e6 / 8;
    cable(nic, rail(nccl::device_number(net, "dev", nics_)), kind,
          {fmt::format("{}-{}g", infiniband ? "ib" : "eth", mbps / 1000),
           fmt::format("{} {} Gbit/s", family, mbps / 1000), "NCCL topology file"},
          rate, rate * payload);
  }
}

DeviceId Importer::nic(const Element& element, std::uint32_t node) {
  const std::uint32_t id = builder_.model(
      fmt::format("pci-{}-{}", attribute(element, "vendor", "?"), attribute(element, "device", "?")));
  const bool ethernet = attribute(element, "class").starts_with("0x0200");
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
  ++nics_;
  return device;
}

void Importer::pci(const Element& element, DeviceId parent, std::uint32_t node) {
  if (!nccl::leads_to_device(element)) return;
  const nccl::PcieLink link = checked(element);
  const PciRole role = nccl::role_of(element);
  const DeviceId device = role == PciRole::gpu   ? accelerator(element, node)
                          : role == PciRole::nic ? nic(element, node)
                                                 : builder_.device({.kind = DeviceKind::pcie_switch,
                                                                    .node = node,
                                                                    .local = switches_++,
                                                                    .model = builder_.model("pcie-switch")});
  const double rate = link.line_rate().value();
  cable(device, parent, LinkKind::pcie,
        {fmt::format("pcie-{}gt-x{}", link.transfers, link.lanes),
         fmt::format("PCIe {} GT/s x{}", link.transfers, link.lanes), "NCCL topology file"},
        rate, rate * kPcieEfficiency);
  if (const auto gpu = element.find("gpu"); gpu != element.not_found())
    for (const auto& [name, c2c] : gpu->second) {
      const double bytes = number(c2c, "bw", 0) * number(c2c, "count", 1) * 1e6;
      if (name == "c2c" && bytes > 0)
        cable(device, parent, LinkKind::c2c, {"c2c", "C2C", "NCCL topology file"}, bytes, bytes);
    }
  if (role != PciRole::bridge) return;
  for (const auto& [name, child] : element)
    if (name == "pci") pci(child, device, node);
}

void Importer::scale_up(std::uint32_t node) {
  DeviceId chips{};
  for (const ScaleUpLink& link : scale_up_) {
    constexpr int kMost = 64;  // links of a GPU to one neighbour
    const int count = std::max(1, nccl::whole_number(*link.element, "count", 1, kMost));
    const int capability = capability_[link.gpu];
    // Infinity Fabric of MI300: 64 GB/s a link and direction, 48 usable (RCCL graph/topo.h).
    const double line = link.amd ? 64e9 : nccl::nvlink_line_rate(capability);
    const double usable = link.amd ? 48e9 : nccl::nvlink_bandwidth(capability) * 1e9;
    const LinkKind kind = link.amd ? LinkKind::infinity_fabric : LinkKind::nvlink;
    LinkType type{fmt::format("{}-x{}", link.amd ? "xgmi" : "nvlink", count),
                  fmt::format("{} x{}", link.amd ? "Infinity Fabric" : "NVLink", count),
                  "NCCL topology file"};
    if (attribute(*link.element, "tclass").starts_with("0x0680")) {
      if (!chips.valid())
        chips = builder_.device(
            {.kind = DeviceKind::nvswitch, .node = node, .local = 0, .model = builder_.model("nvswitch")});
      cable(link.gpu, chips, kind, std::move(type), line * count, usable * count, count);
      continue;
    }
    const std::string target = attribute(*link.element, "target", "?");
    const auto peer = by_bus_id_.find(target);
    if (peer == by_bus_id_.end()) {
      find(fmt::format("an NVLink leads to {}, which is not in the file; it is left out", target));
    } else if (link.gpu < peer->second) {  // both ends list it
      cable(link.gpu, peer->second, kind, std::move(type), line * count, usable * count, count);
    }
  }
}

void Importer::sockets(const std::vector<std::pair<DeviceId, std::string>>& cpus) {
  for (std::size_t a = 0; a < cpus.size(); ++a)
    for (std::size_t b = a + 1; b < cpus.size(); ++b) {
      const float assumed = nccl::socket_bandwidth(cpus[a].second);
      const double rate = (assumed > 0 ? assumed : nccl::socket_bandwidth("intel-bdw")) * 1e9;
      cable(cpus[a].first, cpus[b].first, LinkKind::socket,
            {"socket-link", "socket interconnect", "NCCL 2.30 graph/topo.h; the file has none"}, rate, rate);
    }
}

void Importer::box(std::uint32_t node) {
  gpus_ = switches_ = nics_ = cpus_ = 0;
  by_bus_id_.clear();
  scale_up_.clear();
  std::vector<std::pair<DeviceId, std::string>> cpus;
  for (const auto& [name, cpu] : system_) {
    if (name != "cpu") continue;
    const std::string family = nccl::cpu_family(cpu);
    const std::uint32_t model = builder_.model(family.empty() ? "cpu" : family);
    builder_.model_facts(model, {.compute_capability = 0, .gpu_direct = true, .cpu_family = family});
    const DeviceId device =
        builder_.device({.kind = DeviceKind::cpu, .node = node, .local = cpus_++, .model = model});
    cpus.emplace_back(device, family);
    for (const auto& [inner, child] : cpu) {
      if (inner == "pci") pci(child, device, node);
      if (inner != "nic") continue;  // a network that is no PCIe device
      const DeviceId nic = builder_.device(
          {.kind = DeviceKind::nic, .node = node, .local = nics_, .model = builder_.model("virtual-nic")});
      const double unlimited = nccl::kLocal * 1e9;
      cable(nic, device, LinkKind::pcie, {"no-slot", "no PCIe slot", "NCCL 2.30 graph/topo.h"}, unlimited,
            unlimited);
      ports(child, nic, LinkKind::ethernet);
      ++nics_;
    }
  }
  scale_up(node);
  sockets(cpus);
}

NcclXmlImport Importer::run() {
  builder_.set_nodes(options_.nodes);
  for (std::uint32_t node = 0; node < options_.nodes; ++node) box(node);
  if (gpus_ == 0)
    throw ConfigError(fmt::format("{} describes no accelerator", options_.name),
                      "expected <gpu> inside <pci>");
  if (!rails_.empty()) find("the file ends at the NICs; each is cabled to one switch of its own rail");
  Topology& facts = builder_.facts();
  facts.fabric_kind = rails_.empty() ? "none" : "rail";
  facts.fabric_is_infiniband = infiniband_;
  facts.sharp = options_.in_network_reduction;
  facts.nvlink_sharp =
      std::any_of(capability_.begin(), capability_.end(), [](const auto& gpu) { return gpu.second >= 90; });
  facts.nic_latency = from_microseconds(infiniband_ ? 2.35 : 2.6);  // DeepSeek, ISCA 2025, table 5
  return {std::move(builder_).finish(), std::move(findings_)};
}

}  // namespace

NcclXmlImport read_nccl_xml(std::string_view text, const NcclXmlOptions& options) {
  const Element system = parse_xml(text, "system", options.name, "the XML that NCCL_TOPO_DUMP_FILE writes");
  return Importer(system, options).run();
}
}  // namespace topsim::topology

#include "topology/import/nccl_xml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "sim/base/error.hpp"
#include "topology/catalogue/link_entry.hpp"
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
  Importer(const Element& system, const NcclXmlOptions& options) : system_(system), options_(options) {
    if (options.catalogue == nullptr) return;
    if (!options.accelerator.empty()) figures_ = &options.catalogue->accelerator(options.accelerator);
    if (!options.nic_link.empty()) nic_link_ = &options.catalogue->link(options.nic_link);
  }
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
  void uncabled(DeviceId nic);
  void scale_up(std::uint32_t node);
  void unnamed_nvlinks(std::uint32_t node);
  void one_machine() const;
  void sockets(const std::vector<std::pair<DeviceId, std::string>>& cpus);
  DeviceId rail(std::uint32_t number);
  nccl::PcieLink checked(const Element& element);
  void cable(DeviceId a, DeviceId b, LinkKind kind, LinkType type, double line_rate, double capacity,
             int count = 1);
  void find(std::string sentence);

  const Element& system_;
  const NcclXmlOptions& options_;
  const Accelerator* figures_ = nullptr;  // null: not named, or no catalogue
  const LinkEntry* nic_link_ = nullptr;   // of NICs without <net>
  TopologyBuilder builder_;
  std::vector<std::string> findings_;
  std::map<std::string, DeviceId> by_bus_id_;  // of the box in work
  std::vector<ScaleUpLink> scale_up_;
  std::vector<DeviceId> gpus_of_box_;
  std::set<std::uint32_t> numbers_;  // of the box's GPUs
  std::map<DeviceId, int> capability_;
  bool asked_ = false;          // some GPU says its capability: NCCL ran on the machine
  std::uint32_t uncabled_ = 0;  // NICs without <net>, all boxes
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
  int capability = static_cast<int>(number(gpu, "sm", 0));
  asked_ |= capability > 0;
  if (figures_ != nullptr && capability > 0 && figures_->compute_capability != capability)
    find(fmt::format("the file's GPUs are of compute capability {} (sm), {} is of {}: is it the right one?",
                     capability, figures_->id, figures_->compute_capability));
  if (figures_ != nullptr && capability == 0) capability = figures_->compute_capability;
  std::string model = options_.accelerator;
  if (model.empty()) {
    model = fmt::format("pci-{}-{}", attribute(element, "vendor", "?"), attribute(element, "device", "?"));
    find(fmt::format("accelerators are known only as {}; name the model to simulate computation", model));
  }
  const std::uint32_t id = builder_.model(std::move(model));
  builder_.model_facts(
      id, {.compute_capability = capability, .gpu_direct = number(gpu, "gdr", 1) != 0, .cpu_family = {}});
  const std::uint32_t local = nccl::device_number(gpu, "dev", gpus_);
  if (!numbers_.insert(local).second)
    throw ConfigError(fmt::format("{}: two GPUs of a machine are dev=\"{}\"", options_.name, local),
                      "dev counts the GPUs of a machine, 0 first");
  const DeviceId device =
      builder_.device({.kind = DeviceKind::accelerator, .node = node, .local = local, .model = id});
  ++gpus_;
  gpus_of_box_.push_back(device);
  capability_[device] = capability;
  by_bus_id_[attribute(element, "busid")] = device;
  for (const auto& [name, link] : gpu)
    if (name == "nvlink" || name == "xgmi") scale_up_.push_back({device, &link, name == "xgmi"});
  return device;
}

// The payload of a NIC's cable and its latency, a switch included, are the catalogue's.
void Importer::uncabled(DeviceId nic) {
  ++uncabled_;
  if (nic_link_ == nullptr) return;
  Link link{};
  link.from = nic;
  link.to = rail(nics_);
  link.kind = nic_link_->kind;
  link.count = 1;
  link.type = builder_.link_type({nic_link_->id, nic_link_->label, nic_link_->source, nic_link_->transport});
  link.capacity = payload_capacity_at_nic(*nic_link_);
  link.line_rate = nic_link_->line_rate;
  link.latency = nic_link_->hop.value_or(nic_link_->fec);
  builder_.link(link);
  std::swap(link.from, link.to);
  link.latency = Duration{};
  builder_.link(link);
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
  const bool says_net = std::any_of(element.begin(), element.end(), [](const auto& child) {
    return child.first == "nic" && child.second.count("net") != 0;
  });
  if (!says_net) uncabled(device);
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

// NCCL adds what NVML tells of a GPU that has no <nvlink>. Which GPU each link leads to is nobody's to know
// here, but for boards of eight since Ampere: their GPUs have all links to NVSwitches (HGX A100, H100, B200).
void Importer::unnamed_nvlinks(std::uint32_t node) {
  if (!scale_up_.empty() || figures_ == nullptr || figures_->nvlinks == 0) return;
  constexpr std::size_t kBoard = 8;
  constexpr int kAmpere = 80;
  const int links = figures_->nvlinks;
  const std::string has =
      fmt::format("the file names no {} though {} has {}",
                  figures_->compute_capability > 0 ? "NVLink" : figures_->scale_up_link, figures_->id, links);
  if (asked_)
    return find(has +
                ": NCCL found none on that machine, and copies go over PCIe; is it the right "
                "accelerator, and are its links up (nvidia-smi nvlink -s)?");
  if (!figures_->form.starts_with("SXM") || figures_->compute_capability < kAmpere ||
      gpus_of_box_.size() != kBoard)
    return find(has +
                ": NCCL would ask the driver for them; how they are wired is not known, and copies go "
                "over PCIe here, many times slower. A recipe has them: topology.node.use in place of "
                "topology.file (topsim topo list)");
  find(
      fmt::format("{}: NCCL reads them from NVML; {} to NVSwitches are assumed from every GPU, as on every "
                  "board of eight",
                  has, links));
  const DeviceId chips = builder_.device(
      {.kind = DeviceKind::nvswitch, .node = node, .local = 0, .model = builder_.model("nvswitch")});
  for (const DeviceId gpu : gpus_of_box_) {
    const int capability = capability_[gpu];
    cable(gpu, chips, LinkKind::nvlink,
          {fmt::format("nvlink-x{}", links), fmt::format("NVLink x{}", links), "assumed: the accelerator's"},
          nccl::nvlink_line_rate(capability) * links, nccl::nvlink_bandwidth(capability) * 1e9 * links,
          links);
  }
}

// NCCL writes all machines of an NVLink domain into one file, told apart by a hash of their names.
void Importer::one_machine() const {
  std::set<std::string> hosts;
  for (const auto& [name, cpu] : system_)
    if (name == "cpu") hosts.insert(attribute(cpu, "host_hash"));
  if (hosts.size() > 1)
    throw ConfigError(
        fmt::format("{} describes {} machines (host_hash), and one is read", options_.name, hosts.size()),
        "dump the topology of one machine (NCCL_MNNVL_ENABLE=0); --nodes N builds N of it");
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
  gpus_of_box_.clear();
  numbers_.clear();
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
  unnamed_nvlinks(node);
  sockets(cpus);
}

NcclXmlImport Importer::run() {
  one_machine();
  builder_.set_nodes(options_.nodes);
  for (std::uint32_t node = 0; node < options_.nodes; ++node) box(node);
  if (gpus_ == 0)
    throw ConfigError(fmt::format("{} describes no accelerator", options_.name),
                      "expected <gpu> inside <pci>");
  if (uncabled_ == 0 && nic_link_ != nullptr)
    throw ConfigError(fmt::format("{} says what its NICs speak", options_.name), "leave --nic-link out");
  if (uncabled_ > 0)
    find(fmt::format("NICs without <net> in the file: {} a machine; {}", uncabled_ / options_.nodes,
                     nic_link_ == nullptr
                         ? "they have no cable, --nic-link ib-hdr (or what they speak) gives each one"
                         : "each has a cable of " + nic_link_->label));
  if (!rails_.empty()) find("the file ends at the NICs; each is cabled to one switch of its own rail");
  Topology& facts = builder_.facts();
  facts.fabric_kind = rails_.empty() ? "none" : "rail";
  const bool infiniband = nic_link_ != nullptr ? nic_link_->kind == LinkKind::infiniband : infiniband_;
  facts.fabric_is_infiniband = infiniband;
  facts.sharp = options_.in_network_reduction;
  facts.nvlink_sharp =
      std::any_of(capability_.begin(), capability_.end(), [](const auto& gpu) { return gpu.second >= 90; });
  facts.nic_latency = from_microseconds(infiniband ? 2.35 : 2.6);  // DeepSeek, ISCA 2025, table 5
  if (nic_link_ != nullptr && nic_link_->nic_base > Duration{}) facts.nic_latency = nic_link_->nic_base;
  return {std::move(builder_).finish(), std::move(findings_)};
}

}  // namespace

NcclXmlImport read_nccl_xml(std::string_view text, const NcclXmlOptions& options) {
  const Element system = parse_xml(text, "system", options.name, "the XML that NCCL_TOPO_DUMP_FILE writes");
  return Importer(system, options).run();
}
}  // namespace topsim::topology

#include "topology/import/nccl_xml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/base/error.hpp"
#include "topology/import/nccl_xml_importer.hpp"
#include "topology/import/pcie.hpp"
#include "topology/import/xml.hpp"

namespace topsim::topology::nccl {
namespace {
// A file of NCCL's can be read without a catalogue. These are its figures (configs/hardware/links.json):
// "mtu", "header" and "nic_base" of ib-ndr and of roce-400g.
constexpr double kPacket = 4096, kInfinibandHeader = 26, kRoceHeader = 82;  // bytes
constexpr double kInfinibandBase = 2.35, kRoceBase = 2.6;                   // microseconds
}  // namespace

void Importer::find(std::string sentence) {
  if (std::find(findings_.begin(), findings_.end(), sentence) == findings_.end())
    findings_.push_back(std::move(sentence));
}

void Importer::cable(DeviceId a, DeviceId b, LinkKind kind, LinkType type, double line_rate, double capacity,
                     int count, std::string_view like) {
  Link link{.from = a,
            .to = b,
            .kind = kind,
            .count = static_cast<std::uint16_t>(count),
            .type = builder_.link_type(std::move(type)),
            .capacity = BytesPerSecond(capacity),
            .line_rate = BytesPerSecond(line_rate)};
  const LinkEntry* entry = listed(like);
  const Duration back = entry == nullptr ? Duration{} : entry->latency;
  // The second end is nearer to the socket.
  const bool host = cpus_of_box_.contains(b) && entry != nullptr && entry->host_latency > Duration{};
  link.latency = host ? entry->host_latency : back;
  builder_.link(link);
  std::swap(link.from, link.to);
  link.latency = back;
  builder_.link(link);
}

const LinkEntry* Importer::listed(std::string_view id) const {
  return options_.catalogue == nullptr || id.empty() ? nullptr : &options_.catalogue->link(id);
}

// Of the rate after coding, what is left for payload.
double Importer::payload_share(const PcieLink& slot) const {
  const LinkEntry* entry = listed(PcieSlot{slot.transfers, slot.lanes}.catalogue_id());
  constexpr double kGen5 = 55.0 / 63.0;  // measured copies over x16: 55 of 63 GB/s
  return entry == nullptr ? kGen5
                          : payload_capacity(*entry).value() / (entry->line_rate.value() * entry->encoding);
}

DeviceId Importer::accelerator(const Element& element, std::uint32_t node) {
  static const Element kNothing;
  const auto found = element.find("gpu");
  const Element& gpu = found == element.not_found() ? kNothing : found->second;
  int capability = static_cast<int>(number(gpu, "sm", 0));
  asked_ |= capability > 0;
  if (figures_ != nullptr && capability > 0 && figures_->compute_capability > 0 &&
      figures_->compute_capability != capability)
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
  const std::uint32_t local = device_number(gpu, "dev", gpus_);
  if (!numbers_.insert(local).second)
    throw ConfigError(fmt::format("{}: two GPUs of a machine are dev=\"{}\"", options_.name, local),
                      "dev counts the GPUs of a machine, 0 first");
  const DeviceId device =
      builder_.device({.kind = DeviceKind::accelerator, .node = node, .local = local, .model = id});
  ++gpus_;
  gpus_of_box_.push_back(device);
  capability_[device] = capability;
  gcn_[device] = attribute(gpu, "gcn");
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
    const double payload = kPacket / (kPacket + (infiniband ? kInfinibandHeader : kRoceHeader));
    const double rate = mbps * 1e6 / 8;
    cable(nic, rail(device_number(net, "dev", nics_)), kind,
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
  if (!leads_to_device(element)) return;
  const PcieLink link = checked(element);
  const PciRole role = role_of(element);
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
        rate, rate * payload_share(link), 1, PcieSlot{link.transfers, link.lanes}.catalogue_id());
  if (const auto gpu = element.find("gpu"); gpu != element.not_found())
    for (const auto& [name, c2c] : gpu->second) {
      const double bytes = number(c2c, "bw", 0) * number(c2c, "count", 1) * 1e6;
      if (name == "c2c" && bytes > 0)
        cable(device, parent, LinkKind::c2c, {"c2c", "C2C", "NCCL topology file"}, bytes, bytes, 1,
              "c2c-grace");
    }
  if (role != PciRole::bridge) return;
  for (const auto& [name, child] : element)
    if (name == "pci") pci(child, device, node);
}

// A GPU has an element for each chip that its links lead to. The NVSwitches are one device here, so their
// links are one cable.
void Importer::scale_up(std::uint32_t node) {
  std::map<std::tuple<DeviceId, DeviceId, bool>, int> counts;  // links of a GPU to a neighbour; AMD's
  DeviceId chips{};
  for (const ScaleUpLink& link : scale_up_) {
    constexpr int kMost = 64;  // links of a GPU to one neighbour
    const int count = std::max(1, whole_number(*link.element, "count", 1, kMost));
    if (attribute(*link.element, "tclass").starts_with("0x0680")) {
      if (!chips.valid())
        chips = builder_.device(
            {.kind = DeviceKind::nvswitch, .node = node, .local = 0, .model = builder_.model("nvswitch")});
      counts[{link.gpu, chips, link.amd}] += count;
      continue;
    }
    const std::string target = attribute(*link.element, "target", "?");
    const auto peer = by_bus_id_.find(target);
    if (peer == by_bus_id_.end()) {
      find(fmt::format("an NVLink leads to {}, which is not in the file; it is left out", target));
    } else if (link.gpu < peer->second) {  // both ends list it
      counts[{link.gpu, peer->second, link.amd}] += count;
    }
  }
  for (const auto& [ends, count] : counts) {
    const auto& [gpu, neighbour, amd] = ends;
    const int capability = capability_[gpu];
    const Xgmi& xgmi = xgmi_of(gcn_[gpu]);
    const double line = amd ? xgmi.line_rate * 1e9 : nvlink_line_rate(capability);
    const double usable = amd ? xgmi.usable * 1e9 : nvlink_wire(capability);
    cable(gpu, neighbour, amd ? LinkKind::infinity_fabric : LinkKind::nvlink,
          {fmt::format("{}-x{}", amd ? "xgmi" : "nvlink", count),
           amd ? "Infinity Fabric" : "NVLink",  // shown with its count
           "NCCL topology file"},
          line * count, usable * count, count, amd ? "xgmi-mi300x" : "nvlink4");
  }
}

void Importer::box(std::uint32_t node) {
  gpus_ = switches_ = nics_ = cpus_ = 0;
  by_bus_id_.clear();
  scale_up_.clear();
  gpus_of_box_.clear();
  numbers_.clear();
  cpus_of_box_.clear();
  std::vector<std::pair<DeviceId, std::string>> cpus;
  for (const auto& [name, cpu] : system_) {
    if (name != "cpu") continue;
    const std::string family = cpu_family(cpu);
    const std::uint32_t model = builder_.model(family.empty() ? "cpu" : family);
    builder_.model_facts(
        model,
        {.compute_capability = 0,
         .gpu_direct = true,
         .cpu_family = family,
         .peer_overhead = options_.catalogue != nullptr ? options_.catalogue->peer_overhead(family) : 1});
    const DeviceId device =
        builder_.device({.kind = DeviceKind::cpu, .node = node, .local = cpus_++, .model = model});
    cpus.emplace_back(device, family);
    cpus_of_box_.insert(device);
    for (const auto& [inner, child] : cpu) {
      if (inner == "pci") pci(child, device, node);
      if (inner != "nic") continue;  // a network that is not a PCIe device
      const DeviceId nic = builder_.device(
          {.kind = DeviceKind::nic, .node = node, .local = nics_, .model = builder_.model("virtual-nic")});
      const double unlimited = kLocal * 1e9;
      cable(nic, device, LinkKind::pcie, {std::string(kNoSlot), "no PCIe slot", "NCCL 2.30 graph/topo.h"},
            unlimited, unlimited);
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
  facts.nic_latency = from_microseconds(infiniband ? kInfinibandBase : kRoceBase);
  if (nic_link_ != nullptr && nic_link_->nic_base > Duration{}) facts.nic_latency = nic_link_->nic_base;
  for (const auto& [what, devices] : unsaid_)
    find(devices.size() == 1
             ? fmt::format("{} gives {}", devices.front(), what)
             : fmt::format("{} and {} more give {}", devices.front(), devices.size() - 1, what));
  return {std::move(builder_).finish(), std::move(findings_)};
}

}  // namespace topsim::topology::nccl

namespace topsim::topology {

NcclXmlImport read_nccl_xml(std::string_view text, const NcclXmlOptions& options) {
  const nccl::Element system =
      parse_xml(text, "system", options.name, "the XML that NCCL_TOPO_DUMP_FILE writes");
  return nccl::Importer(system, options).run();
}

}  // namespace topsim::topology

#include "topology/import/nccl_xml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/base/error.hpp"
#include "topology/import/nccl_xml_importer.hpp"
#include "topology/import/pcie.hpp"
#include "topology/import/xml.hpp"
#include "topology/routes.hpp"

namespace topsim::topology::nccl {
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

namespace {
bool is_amd(const Element& pci, const Element& gpu) {
  const auto xgmi = [](const auto& child) { return child.first == "xgmi"; };
  return attribute(pci, "vendor") == "0x1002" || !attribute(gpu, "gcn").empty() ||
         std::any_of(gpu.begin(), gpu.end(), xgmi);
}
}  // namespace

DeviceId Importer::accelerator(const Element& element, std::uint32_t node) {
  static const Element kNothing;
  if (element.count("gpu") > 1)
    throw ConfigError(
        fmt::format("{}: PCI device {} has {} <gpu>", options_.name, attribute(element, "busid", "?"),
                    element.count("gpu")),
        "one accelerator of a PCI device is read: give each a <pci> with its share of link_width, "
        "and a dev of its own");
  const auto found = element.find("gpu");
  const Element& gpu = found == element.not_found() ? kNothing : found->second;
  int capability = static_cast<int>(number(gpu, "sm", 0));
  asked_ |= capability > 0;
  // RCCL writes AMD's architecture there, too: 94 is no compute capability.
  const bool amd = is_amd(element, gpu);
  if (amd) capability = 0;
  if (amd && figures_ != nullptr && figures_->compute_capability > 0)
    find(fmt::format("the file's GPUs are AMD's, {} is not: is it the right one?", figures_->id));
  if (figures_ != nullptr && capability > 0 && figures_->compute_capability > 0 &&
      figures_->compute_capability != capability)
    find(fmt::format("the file's GPUs are of compute capability {} (sm), {} is of {}: is it the right one?",
                     capability, figures_->id, figures_->compute_capability));
  if (figures_ != nullptr && capability == 0 && !amd) capability = figures_->compute_capability;
  std::string model = options_.accelerator;
  if (model.empty()) {
    model = fmt::format("pci-{}-{}", attribute(element, "vendor", "?"), attribute(element, "device", "?"));
    find(fmt::format("accelerators are known only as {}; name the model to simulate computation", model));
  }
  const std::uint32_t id = builder_.model(std::move(model));
  const double usual_direct = figures_ == nullptr || figures_->peer_to_peer ? 1 : 0;  // as in a recipe
  builder_.model_facts(id, {.compute_capability = capability,
                            .gpu_direct = number(gpu, "gdr", usual_direct) != 0,
                            .cpu_family = {}});
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
  by_bus_id_[bus_id(element, "busid")] = device;
  for (const auto& [name, link] : gpu)
    if (name == "nvlink" || name == "xgmi") scale_up_.push_back({device, &link, name == "xgmi"});
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

void Importer::box(std::uint32_t node) {
  gpus_ = switches_ = nics_ = cpus_ = 0;
  by_bus_id_.clear();
  scale_up_.clear();
  gpus_of_box_.clear();
  numbers_.clear();
  cpus_of_box_.clear();
  interfaces_.clear();
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
      if (inner == "nic") virtual_nic(child, device, node);
    }
  }
  scale_up(node);
  unnamed_nvlinks(node);
  sockets(cpus);
  host_memory(cpus, node);
}

NcclXmlImport Importer::run() {
  one_machine();
  some_carry_ = carries_traffic(system_);
  builder_.set_nodes(options_.nodes);
  for (std::uint32_t node = 0; node < options_.nodes; ++node) box(node);
  if (gpus_ == 0)
    throw ConfigError(
        fmt::format("{} describes no accelerator", options_.name),
        tells_class(system_)
            ? "expected <gpu> inside <pci>"
            : "its PCI devices are bus ids alone, which NCCL completes on the machine: run a job there with "
              "NCCL_TOPO_DUMP_FILE=topo.xml, and import what it writes");
  if (uncabled_ == 0 && nic_link_ != nullptr)
    throw ConfigError(fmt::format("{} says what its NICs speak", options_.name), "leave --nic-link out");
  if (uncabled_ > 0)
    find(fmt::format("NICs without <net> in the file: {} a machine; {}", uncabled_ / options_.nodes,
                     nic_link_ == nullptr
                         ? "they have no cable, --nic-link ib-hdr (or what they speak) gives each one"
                         : "each has a cable of " + nic_link_->label));
  rails();
  if (!cables_.empty())
    find(apart_ ? "the file ends at the NICs; each is cabled to one switch of its own rail"
                : "the file ends at the NICs; all are cabled to one switch, because no NVLink joins every "
                  "GPU with those of the other NICs");
  Topology& facts = builder_.facts();
  facts.fabric_kind = cables_.empty() ? FabricKind::none : apart_ ? FabricKind::rail : FabricKind::fat_tree;
  const bool infiniband = nic_link_ != nullptr ? nic_link_->kind == LinkKind::infiniband : infiniband_;
  facts.fabric_is_infiniband = infiniband;
  facts.sharp = options_.in_network_reduction;
  facts.peer_to_peer = figures_ == nullptr || figures_->peer_to_peer;
  facts.nvlink_sharp = std::any_of(capability_.begin(), capability_.end(),
                                   [](const auto& gpu) { return gpu.second >= kSwitchesReduce; });
  facts.nic_latency = nic_latency(infiniband);
  for (const auto& [what, devices] : unsaid_)
    find(devices.size() == 1
             ? fmt::format("{} gives {}", devices.front(), what)
             : fmt::format("{} and {} more give {}", devices.front(), devices.size() - 1, what));
  return {std::move(builder_).finish(), std::move(findings_)};
}

}  // namespace topsim::topology::nccl

namespace topsim::topology {
namespace {
// Over the fabric, from the first box to the second.
bool all_reach(const Topology& t) {
  const Router router(t, 0);
  const auto gpus = t.accelerators();
  for (const DeviceId from : gpus)
    for (const DeviceId to : gpus) {
      if (t.device(from).node != 0 || t.device(to).node != 1) continue;
      Route route;
      router.route({.from = from, .to = to}, route);
      if (!route.reachable()) return false;
    }
  return true;
}
}  // namespace

NcclXmlImport read_nccl_xml(std::string_view text, const NcclXmlOptions& options) {
  const nccl::Element system =
      parse_xml(text, "system", options.name, "the XML that NCCL_TOPO_DUMP_FILE writes");
  if (options.nodes < 2) return nccl::Importer(system, options).run();
  // Boxes are alike, so that two of them tell.
  NcclXmlOptions two = options;
  two.nodes = 2;
  NcclXmlImport read = nccl::Importer(system, two).run();
  const bool apart = read.topology.fabric_kind == FabricKind::none || all_reach(read.topology);
  return apart && options.nodes == 2 ? std::move(read) : nccl::Importer(system, options, apart).run();
}

}  // namespace topsim::topology

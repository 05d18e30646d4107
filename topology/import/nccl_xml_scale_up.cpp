// The NVLinks and Infinity Fabric links of a NCCL topology file, and those that it leaves to NVML.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "topology/import/boards.hpp"
#include "topology/import/nccl_xml_importer.hpp"

namespace topsim::topology::nccl {

// A GPU has an element for each chip that its links lead to. The NVSwitches are one device here, so their
// links are one cable.
void Importer::scale_up(std::uint32_t node) {
  std::map<std::tuple<DeviceId, DeviceId, bool>, int> counts;  // links of a GPU to a neighbour; AMD's
  std::map<std::tuple<DeviceId, DeviceId, bool>, int> listed;  // as each GPU lists those to others
  std::set<DeviceId> to_themselves, to_processors, linked;
  DeviceId chips{};
  for (const ScaleUpLink& link : scale_up_) {
    constexpr int kMost = 64;  // links of a GPU to one neighbour
    const int count = std::max(1, whole_number(*link.element, "count", 1, kMost));
    const std::string kind = attribute(*link.element, "tclass");
    if (kind.starts_with("0x068001")) {  // POWER9
      to_processors.insert(link.gpu);
      continue;
    }
    if (kind.starts_with("0x0680")) {
      if (!chips.valid())
        chips = builder_.device(
            {.kind = DeviceKind::nvswitch, .node = node, .local = 0, .model = builder_.model("nvswitch")});
      counts[{link.gpu, chips, link.amd}] += count;
      continue;
    }
    const auto peer = by_bus_id_.find(bus_id(*link.element, "target"));
    if (peer == by_bus_id_.end())
      find(fmt::format("an NVLink leads to {}, which is not in the file; it is left out",
                       attribute(*link.element, "target", "?")));
    else if (peer->second == link.gpu)
      to_themselves.insert(link.gpu);
    else
      listed[{link.gpu, peer->second, link.amd}] += count;
  }
  // Both ends list a link. NCCL has a direction of each, which is no cable if they differ.
  for (const auto& [ends, count] : listed) {
    const auto& [gpu, neighbour, amd] = ends;
    const auto back = listed.find({neighbour, gpu, amd});
    const int other = back == listed.end() ? 0 : back->second;
    if (count != other && (gpu < neighbour || other == 0))
      find(fmt::format("{} lists {} link{} to {}, which lists {} back: {} taken", place_of(gpu), count,
                       count == 1 ? "" : "s", place_of(neighbour), other, std::max(count, other)));
    counts[{std::min(gpu, neighbour), std::max(gpu, neighbour), amd}] = std::max(count, other);
  }
  for (const auto& [ends, count] : counts) {
    const auto& [gpu, neighbour, amd] = ends;
    linked.insert({gpu, neighbour});
    const int capability = capability_[gpu];
    const Xgmi& xgmi = xgmi_of(gcn_[gpu]);
    const std::string_view like = amd ? xgmi.link : "nvlink4";
    double line = nvlink_line_rate(capability), usable = nvlink_wire(capability);
    if (const LinkEntry* entry = amd ? this->listed(like) : nullptr; entry != nullptr) {
      line = entry->line_rate.value();
      usable = payload_capacity(*entry).value();
    } else if (amd) {
      line = xgmi.line_rate * 1e9;
      usable = xgmi.usable * 1e9;
    }
    cable(gpu, neighbour, amd ? LinkKind::infinity_fabric : LinkKind::nvlink,
          {fmt::format("{}-x{}", amd ? "xgmi" : "nvlink", count),
           amd ? "Infinity Fabric" : "NVLink",  // shown with its count
           "NCCL topology file"},
          line * count, usable * count, count, like.empty() ? "xgmi-mi300x" : like);
  }
  if (!to_themselves.empty())
    find(fmt::format(
        "the NVLinks of {} lead to where they begin, as in some virtual machines; they are left out",
        places_of(to_themselves)));
  if (!to_processors.empty())
    find(fmt::format(
        "the NVLinks of {} to their processor are left out: copies to host memory go over PCIe here",
        places_of(to_processors)));
  std::set<DeviceId> alone(gpus_of_box_.begin(), gpus_of_box_.end());
  for (const DeviceId each : linked) alone.erase(each);
  if (!linked.empty() && !alone.empty())
    find(
        fmt::format("no NVLink leads to {}, as to other GPUs: copies go over PCIe; are its links up "
                    "(nvidia-smi nvlink -s)?",
                    places_of(alone)));
}

std::string Importer::place_of(DeviceId gpu) const {
  for (const auto& [bus, device] : by_bus_id_)
    if (device == gpu) return bus;
  return "?";
}

std::string Importer::places_of(const std::set<DeviceId>& gpus) const {
  const std::string first = place_of(*gpus.begin());
  return gpus.size() == 1 ? first : fmt::format("{} and {} more", first, gpus.size() - 1);
}

// NCCL gets the NVLinks of a GPU without <nvlink> from NVML. Which GPU each link leads to cannot be known
// here, except on boards of eight.
void Importer::unnamed_nvlinks(std::uint32_t node) {
  if (!scale_up_.empty() || figures_ == nullptr || figures_->nvlinks == 0) return;
  const int links = figures_->nvlinks;
  const std::string has =
      fmt::format("the file names no {} though {} has {}",
                  figures_->compute_capability > 0 ? "NVLink" : figures_->scale_up_link, figures_->id, links);
  if (asked_)
    return find(has +
                ": NCCL found none on that machine, and copies go over PCIe; is it the right "
                "accelerator, and are its links up (nvidia-smi nvlink -s)?");
  if (!is_nvswitch_board(*figures_, gpus_of_box_.size()))
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
          {fmt::format("nvlink-x{}", links), "NVLink", "assumed: the accelerator's"},
          nvlink_line_rate(capability) * links, nvlink_wire(capability) * links, links,
          figures_->scale_up_link);
  }
}

}  // namespace topsim::topology::nccl

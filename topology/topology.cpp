#include "topology/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace topsim::topology {
namespace {

constexpr std::array<std::string_view, 8> kDeviceKinds = {
    "accelerator", "nvswitch", "pcie-switch", "cpu", "host-memory", "nic", "switch", "storage"};
constexpr std::array<std::string_view, 10> kLinkKinds = {"nvlink", "c2c",    "infinity-fabric", "pcie",
                                                         "socket", "memory", "infiniband",      "ethernet",
                                                         "torus",  "other"};
constexpr std::array<std::string_view, 4> kRoutings = {"static", "ecmp", "adaptive", "spray"};

// Names of devices inside their node; fabric switches are named by tier.
constexpr std::array<std::string_view, 8> kShortNames = {"gpu", "nvswitch", "pcie",   "cpu",
                                                         "mem", "nic",      "switch", "storage"};
constexpr std::array<std::string_view, 4> kTierNames = {"switch", "leaf", "spine", "core"};

std::string_view short_name(const Device& device) {
  if (device.kind == DeviceKind::fabric_switch && device.tier < kTierNames.size())
    return kTierNames[device.tier];
  return kShortNames[static_cast<std::size_t>(device.kind)];
}

// "gpu12" -> ("gpu", 12).
std::optional<std::pair<std::string_view, std::uint32_t>> split_number(std::string_view text) {
  const std::size_t digits = text.find_last_not_of("0123456789") + 1;
  std::uint32_t number = 0;
  const char* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data() + digits, end, number);
  if (error != std::errc{} || last != end) return std::nullopt;
  return std::pair(text.substr(0, digits), number);
}

}  // namespace

namespace {
constexpr std::uint16_t kCoarse = 1U << 15U;  // from this code on in steps of 10 m
constexpr double kStep = 10, kPerMetre = 10;
}  // namespace

CableLength::CableLength(Metres length) {
  const double fine = std::max(std::round(length.value() * kPerMetre), 1.0);  // 0 is not known
  const bool coarse = fine >= kCoarse;
  const double code = std::min(coarse ? std::round(length.value() / kStep) : fine, kCoarse - 1.0);
  code_ = static_cast<std::uint16_t>(code + (coarse ? kCoarse : 0));
}

Metres CableLength::metres() const {
  return Metres(code_ < kCoarse ? code_ / kPerMetre : (code_ - kCoarse) * kStep);
}

std::string_view name_of(DeviceKind kind) {
  return kDeviceKinds[static_cast<std::size_t>(kind)];
}
std::string_view name_of(LinkKind kind) {
  return kLinkKinds[static_cast<std::size_t>(kind)];
}
std::string_view name_of(Routing routing) {
  return kRoutings[static_cast<std::size_t>(routing)];
}

std::optional<DeviceKind> device_kind(std::string_view name) {
  const auto found = std::find(kDeviceKinds.begin(), kDeviceKinds.end(), name);
  if (found == kDeviceKinds.end()) return std::nullopt;
  return static_cast<DeviceKind>(found - kDeviceKinds.begin());
}
std::optional<LinkKind> link_kind(std::string_view name) {
  const auto found = std::find(kLinkKinds.begin(), kLinkKinds.end(), name);
  if (found == kLinkKinds.end()) return std::nullopt;
  return static_cast<LinkKind>(found - kLinkKinds.begin());
}
std::span<const std::string_view> device_kind_names() {
  return kDeviceKinds;
}
std::span<const std::string_view> link_kind_names() {
  return kLinkKinds;
}

std::span<const DeviceId> Topology::nics_of_node(std::uint32_t node) const {
  return std::span(nics_).subspan(nics_begin_[node], nics_begin_[node + 1] - nics_begin_[node]);
}

void Topology::spell_out_copies() {
  std::vector<LinkId> out;
  std::vector<std::uint32_t> begin{0};
  for (std::size_t d = 0; d < devices().size(); ++d) {
    for (const LinkId id : links_from(DeviceId(d))) out.push_back(id);
    begin.push_back(static_cast<std::uint32_t>(out.size()));
  }
  std::vector<Device> all_devices(devices().begin(), devices().end());
  std::vector<Link> all_links(links().begin(), links().end());
  devices_ = std::move(all_devices), links_ = std::move(all_links);
  out_links_ = std::move(out), out_begin_ = std::move(begin);
  inner_links_.clear(), inner_begin_.clear();
  copies_ = {};
}

std::vector<DeviceId> Topology::devices_of_node(std::uint32_t node) const {
  std::vector<DeviceId> found;
  if (node < copies_.nodes) {
    for (std::size_t d = 0; d < copies_.devices; ++d)
      found.emplace_back(std::size_t{node} * copies_.devices + d);
    return found;
  }
  for (std::size_t d = std::size_t{copies_.nodes} * copies_.devices; d < devices().size(); ++d)
    if (device(DeviceId(d)).node == node) found.emplace_back(d);
  return found;
}

std::optional<LinkId> Topology::find_link(DeviceId from, DeviceId to) const {
  for (const LinkId id : links_from(from))
    if (link(id).to == to) return id;
  return std::nullopt;
}

std::string Topology::name(DeviceId id) const {
  if (!explicit_names_.empty()) return explicit_names_[id.index()];
  const Device& d = device(id);
  if (d.node != DeviceId::kNone) return fmt::format("node{}/{}{}", d.node, short_name(d), d.local);
  return fmt::format("{}{}", short_name(d), d.local);
}

std::string Topology::name(LinkId id) const {
  const Link& l = link(id);
  std::string text = fmt::format("{} -> {}", name(l.from), name(l.to));
  int position = 0, parallel = 0;
  for (const LinkId other : links_from(l.from)) {
    if (link(other).to != l.to) continue;
    if (other < id) ++position;
    ++parallel;
  }
  if (parallel > 1) text += fmt::format(" #{}", position);
  return text;
}

std::optional<DeviceId> Topology::find_device(std::string_view wanted) const {
  if (!explicit_names_.empty()) {
    const auto found = std::find(explicit_names_.begin(), explicit_names_.end(), wanted);
    if (found == explicit_names_.end()) return std::nullopt;
    return DeviceId(static_cast<std::size_t>(found - explicit_names_.begin()));
  }
  std::uint32_t node = DeviceId::kNone;
  if (const std::size_t slash = wanted.find('/'); slash != std::string_view::npos) {
    const auto prefix = split_number(wanted.substr(0, slash));
    if (!prefix || prefix->first != "node") return std::nullopt;
    node = prefix->second;
    wanted.remove_prefix(slash + 1);
  }
  const auto local = split_number(wanted);
  if (!local) return std::nullopt;
  for (std::size_t i = 0; i < devices().size(); ++i) {
    const Device d = devices()[i];
    if (d.node == node && d.local == local->second && short_name(d) == local->first) return DeviceId(i);
  }
  return std::nullopt;
}

}  // namespace topsim::topology

// Format: NCCL 2.30 src/graph/xml.cc, and RCCL's for GPUs that Infinity Fabric joins. Bus
// ids, GUIDs and PCI ids are invented; NCCL only matches devices by them inside the file, and reads classes,
// speeds and counts from the attributes written here.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "sim/base/error.hpp"
#include "topology/export/export.hpp"
#include "topology/import/nccl_assumptions.hpp"

namespace topsim::topology {
namespace {

struct CpuIds {
  const char *arch, *vendor;
  int family, model;
};
// NCCL distinguishes Intel generations by model (src/graph/topo.h): Skylake from 0x55, Ice Lake 0x6a,
// Sapphire Rapids 0x8f, Emerald Rapids 0xcf.
CpuIds cpu_ids(const std::string& family) {
  if (family == "intel-erp") return {"x86_64", "GenuineIntel", 6, 207};
  if (family == "intel-spr") return {"x86_64", "GenuineIntel", 6, 143};
  if (family == "intel-icx") return {"x86_64", "GenuineIntel", 6, 106};
  if (family == "intel-skl") return {"x86_64", "GenuineIntel", 6, 85};
  if (family == "intel-bdw") return {"x86_64", "GenuineIntel", 6, 79};
  if (family.starts_with("amd")) return {"x86_64", "AuthenticAMD", 143, 49};
  if (family.starts_with("arm")) return {"arm64", "", 0, 0};
  if (family.starts_with("power")) return {"ppc64", "", 0, 0};
  return {"x86_64", "GenuineIntel", 6, 143};
}

// The generation and width with the nearest line rate: GT/s x lanes x 128/130 / 8.
std::pair<double, int> pcie_of(double rate) {
  std::pair<double, int> best{2.5, 1};
  double nearest = 1e300;
  for (const double transfers : {2.5, 5.0, 8.0, 16.0, 32.0, 64.0})
    for (const int lanes : {16, 8, 4, 2, 1}) {
      const double coding = transfers < 8 ? 0.8 : 128.0 / 130.0;
      const double off = std::abs(std::log(rate / (transfers * 1e9 * lanes * coding / 8)));
      if (off < nearest - 1e-9) {
        nearest = off;
        best = {transfers, lanes};
      }
    }
  return best;
}

// The architecture whose Infinity Fabric links are nearest to one of this rate.
std::string_view gcn_of(double rate) {
  return std::min_element(nccl::kXgmi.begin(), nccl::kXgmi.end(),
                          [&](const auto& a, const auto& b) {
                            return std::abs(a.line_rate * 1e9 - rate) < std::abs(b.line_rate * 1e9 - rate);
                          })
      ->gcn;
}

class Writer {
 public:
  Writer(const Topology& t, std::uint32_t node) : t_(t), node_(node) {}

  std::string write() {
    out_ = "<system version=\"1\">\n";
    number_devices();
    for (const auto& [local, cpu] : of_kind(DeviceKind::cpu)) {
      const CpuIds ids = cpu_ids(t_.facts_of(cpu).cpu_family);
      out_ += fmt::format("  <cpu numaid=\"{}\" affinity=\"ffffffff\" arch=\"{}\"", local, ids.arch);
      if (*ids.vendor != '\0')
        out_ +=
            fmt::format(" vendor=\"{}\" familyid=\"{}\" modelid=\"{}\"", ids.vendor, ids.family, ids.model);
      out_ += ">\n";
      children(cpu, 2);
      out_ += "  </cpu>\n";
    }
    return out_ + "</system>\n";
  }

 private:
  std::vector<std::pair<std::uint32_t, DeviceId>> of_kind(DeviceKind kind) const {
    std::vector<std::pair<std::uint32_t, DeviceId>> found;
    for (std::size_t i = 0; i < t_.devices().size(); ++i)
      if (t_.devices()[i].node == node_ && t_.devices()[i].kind == kind)
        found.emplace_back(t_.devices()[i].local, DeviceId(i));
    std::sort(found.begin(), found.end());
    return found;
  }
  void number_devices() {
    int bus = 0x10;
    for (const DeviceKind kind : {DeviceKind::pcie_switch, DeviceKind::accelerator, DeviceKind::nic})
      for (const auto& [local, d] : of_kind(kind))
        bus_[d] = fmt::format("{:04x}:{:02x}:00.0", bus >> 8, bus & 0xff), ++bus;
  }

  // The devices below on PCIe (or C2C), in device order.
  void children(DeviceId parent, int depth) {
    done_.push_back(parent);
    for (const LinkId id : t_.links_from(parent)) {
      const Link& l = t_.link(id);
      const Device& d = t_.device(l.to);
      const bool bus = l.kind == LinkKind::pcie || l.kind == LinkKind::c2c || l.kind == LinkKind::other ||
                       (l.kind == LinkKind::infinity_fabric && t_.device(parent).kind == DeviceKind::cpu);
      if (!bus || d.node != node_ || std::find(done_.begin(), done_.end(), l.to) != done_.end()) continue;
      if (d.kind == DeviceKind::pcie_switch)
        pci(l, depth, "0x060400", "0x1000", "0xc030", [&] { children(l.to, depth + 1); });
      if (d.kind == DeviceKind::accelerator) accelerator(l, depth);
      if (d.kind == DeviceKind::nic) nic(l, depth);
    }
  }

  template <class Inside>
  void pci(const Link& l, int depth, const char* cls, const char* vendor, const char* device, Inside inside) {
    const auto [transfers, lanes] = pcie_of(l.line_rate.value());
    const std::string pad(static_cast<std::size_t>(depth) * 2, ' ');
    out_ += fmt::format(
        "{}<pci busid=\"{}\" class=\"{}\" vendor=\"{}\" device=\"{}\" subsystem_vendor=\"0x0000\" "
        "subsystem_device=\"0x0000\" link_speed=\"{:.1f} GT/s PCIe\" link_width=\"{}\">\n",
        pad, bus_.at(l.to), cls, vendor, device, transfers, lanes);
    inside();
    out_ += pad + "</pci>\n";
  }

  // NCCL looks for no NIC below a GPU: one on the accelerator shares a bridge with it.
  void accelerator(const Link& l, int depth) {
    const std::optional<Link> xgmi = xgmi_from(l.to);
    const auto element = [&](int at) {
      pci(l, at, xgmi ? "0x038000" : "0x030200", xgmi ? "0x1002" : "0x10de", "0x0000",
          [&] { gpu(l.to, xgmi, at + 1); });
    };
    if (!carries_nic(l.to)) return element(depth);
    std::string& own = bus_.at(l.to);
    const std::string gpus = own;
    own.replace(own.size() - 3, 1, "1");  // "0000:18:01.0"
    pci(l, depth, "0x060400", "0x1000", "0xc030", [&] {
      bus_.at(l.to) = gpus;
      element(depth + 1);
      children(l.to, depth + 1);
    });
  }
  [[nodiscard]] bool carries_nic(DeviceId d) const {
    for (const LinkId id : t_.links_from(d))
      if (t_.link(id).kind == LinkKind::other && t_.device(t_.link(id).to).kind == DeviceKind::nic)
        return true;
    return false;
  }

  // The first Infinity Fabric link to another GPU. Nothing: AMD did not make this one.
  [[nodiscard]] std::optional<Link> xgmi_from(DeviceId d) const {
    for (const LinkId id : t_.links_from(d))
      if (is_xgmi(t_.link(id))) return t_.link(id);
    return std::nullopt;
  }
  [[nodiscard]] bool is_xgmi(const Link& l) const {
    return l.kind == LinkKind::infinity_fabric && t_.device(l.to).kind == DeviceKind::accelerator;
  }

  void gpu(DeviceId d, const std::optional<Link>& xgmi, int depth) {
    done_.push_back(d);
    const std::string pad(static_cast<std::size_t>(depth) * 2, ' ');
    const ModelFacts facts = t_.facts_of(d);
    const std::uint32_t local = t_.device(d).local;
    const std::string gcn =
        !xgmi ? "" : fmt::format(" gcn=\"{}\"", gcn_of(xgmi->line_rate.value() / xgmi->count));
    out_ += fmt::format("{}<gpu dev=\"{}\" sm=\"{}\"{} rank=\"{}\" gdr=\"{}\">\n", pad, local,
                        facts.compute_capability, gcn, local, facts.gpu_direct ? 1 : 0);
    for (const LinkId id : t_.links_from(d)) {
      const Link& l = t_.link(id);
      if (l.kind == LinkKind::c2c)
        out_ += fmt::format("{}  <c2c bw=\"{:.0f}\" count=\"1\"/>\n", pad, l.line_rate.value() * 1e-6);
      if (is_xgmi(l))
        out_ += fmt::format("{}  <xgmi target=\"{}\" count=\"{}\" tclass=\"0x038000\"/>\n", pad,
                            bus_.at(l.to), l.count);
      const DeviceKind end = t_.device(l.to).kind;
      if (l.kind != LinkKind::nvlink && !is_xgmi(l) &&
          (end == DeviceKind::accelerator || end == DeviceKind::nvswitch))
        throw ConfigError(fmt::format("NCCL's XML has no word for {} - {} ({})", t_.name(l.from),
                                      t_.name(l.to), t_.type_of(id).label),
                          "it knows NVLink, and RCCL's Infinity Fabric; --as json has every link");
      if (l.kind != LinkKind::nvlink) continue;
      const bool to_switch = end == DeviceKind::nvswitch;
      out_ += fmt::format("{}  <nvlink target=\"{}\" count=\"{}\" tclass=\"{}\"/>\n", pad,
                          to_switch ? "fffffff:ffff:ff" : bus_.at(l.to), l.count,
                          to_switch ? "0x068000" : "0x030200");
    }
    out_ += pad + "</gpu>\n";
  }

  void nic(const Link& slot, int depth) {
    done_.push_back(slot.to);
    double rate = 0;
    bool infiniband = t_.fabric_is_infiniband;
    for (const LinkId id : t_.links_from(slot.to)) {
      const Link& l = t_.link(id);
      if (t_.device(l.to).kind != DeviceKind::fabric_switch) continue;
      rate += l.line_rate.value();
      infiniband = l.kind == LinkKind::infiniband;
    }
    const std::uint32_t local = t_.device(slot.to).local;
    const std::string pad(static_cast<std::size_t>(depth) * 2, ' ');
    pci(slot, depth, infiniband ? "0x020700" : "0x020000", "0x15b3", "0x0000", [&] {
      // Of a NIC without a cable NCCL asks the driver, where the file has no speed; with 0 it takes 10
      // Gbit/s.
      if (!(rate > 0)) {
        out_ += pad + "  <nic/>\n";
        return;
      }
      out_ += fmt::format(
          "{0}  <nic>\n{0}    <net name=\"mlx5_{1}\" dev=\"{1}\" latency=\"0.0\" speed=\"{2:.0f}\" "
          "port=\"1\" "
          "guid=\"0x{3:x}\" maxconn=\"131072\" gdr=\"{4}\" coll=\"{5}\"/>\n{0}  </nic>\n",
          pad, local, rate * 8e-6, 0xb8000000U + local, t_.facts_of(slot.to).gpu_direct ? 1 : 0,
          t_.sharp ? 1 : 0);
    });
  }

  const Topology& t_;
  std::uint32_t node_;
  std::string out_;
  std::map<DeviceId, std::string> bus_;
  std::vector<DeviceId> done_;
};

}  // namespace

std::string to_nccl_xml(const Topology& topology, std::uint32_t node) {
  if (node >= topology.nodes())
    throw ConfigError(fmt::format("there is no node {} among {}", node, topology.nodes()),
                      "nodes count from 0");
  return Writer(topology, node).write();
}

}  // namespace topsim::topology

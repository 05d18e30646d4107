// hwloc's XML (lstopo --of xml), format 1 to 3: nested objects. A package is a socket (hwloc 1 calls it so);
// a bridge above two or more devices is a PCIe switch, other bridges are just wires; pci_link_speed is GB/s
// of a device's own link. If hwloc was built with NVML, NVLinks are a matrix in MB/s per direction between
// GPUs and NVSwitches; with ROCm's library, Infinity Fabric is one between GPUs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/error.hpp"
#include "topology/import/boards.hpp"
#include "topology/import/box.hpp"
#include "topology/import/hwloc_matrix.hpp"
#include "topology/import/hwloc_object.hpp"
#include "topology/import/import.hpp"
#include "topology/import/nccl_xml_element.hpp"
#include "topology/import/pcie.hpp"
#include "topology/import/usual_hosts.hpp"
#include "topology/import/xml.hpp"

namespace topsim::topology {
namespace {

using namespace hwloc;
using nccl::attribute;
using nccl::Element;

constexpr double kNvlinkMegabytes = 25000;  // of one NVLink 2 to 4, per direction
constexpr double kMostGigabytes = 1e4;      // of any PCIe slot; a file with more is broken

class HwlocImporter {
 public:
  explicit HwlocImporter(const ImportOptions& options) : options_(options) {}

  Imported run(const Element& topology) {
    names_rdma_ = names_rdma(topology);
    for (const auto& [name, child] : topology)
      if (name == "object") object(child, "");
    if (gpus_ == 0)
      throw ConfigError(fmt::format("{} describes no accelerator", options_.name),
                        result_.findings.empty()
                            ? "hwloc lists PCI devices when it ran with them: lstopo --whole-io --of xml"
                            : result_.findings.front());
    matrices(topology);
    sockets();
    if (!uncabled_.empty())
      result_.findings.push_back(
          fmt::format("no RDMA device (OpenFabrics) on {}, as other NICs have: no cable there",
                      fmt::join(uncabled_, ", ")));
    if (nics_ > 0 && !names_rdma_ && !options_.nic_link.empty())
      result_.findings.push_back(
          fmt::format("no NIC names an RDMA device (OpenFabrics): {} on each of {}, whatever it speaks",
                      options_.nic_link, nics_));
    for (const auto& [rate, devices] : asleep_) tell_asleep(rate, devices);
    if (host_nvlinks_ > 0)
      result_.findings.push_back(
          fmt::format("NVLinks between GPUs and processors are left out ({} GPU{} them): their copies to "
                      "host memory go over PCIe here",
                      host_nvlinks_, host_nvlinks_ == 1 ? " has" : "s have"));
    if (guessed_ > 0)
      result_.findings.push_back(fmt::format(
          "{} PCIe links tell no speed (virtual machines do that): Gen4 x16 is assumed", guessed_));
    return std::move(result_);
  }

 private:
  std::string add(const char* kind, const std::string& name, const std::string& model = {}) {
    return result_.spec.devices.emplace_back(device_of_box(name, kind, model)).name;
  }

  // A link of the catalogue; its payload and latency, and where `gigabytes` says one, another line rate of
  // all.
  void cable(const std::string& from, const std::string& to, const std::string& use, int count = 1,
             double gigabytes = 0) {
    LinkSpec l;
    l.from = from;
    l.to = to;
    l.link.use = use;
    if (gigabytes > 0) l.link.bandwidth = BytesPerSecond(gigabytes * 1e9);
    l.count = count;
    result_.spec.links.push_back(l);
  }

  // Connects a device to its parent, at the device's own speed.
  void slot(const Element& object, const std::string& device, const std::string& parent) {
    const double speed = nccl::number(object, "pci_link_speed", 0);
    if (!(speed > 0 && speed < kMostGigabytes)) {
      ++guessed_;
      return cable(device, parent, "pcie4-x16");
    }
    if (role_of(object) == DeviceKind::accelerator && is_old_pcie(speed)) {
      asleep_[fmt::format("{:g} GB/s, PCIe Gen1 or Gen2", speed)].push_back(device);
      if (options_.figures != nullptr && !options_.figures->pcie_link.empty())
        return cable(device, parent, options_.figures->pcie_link);
    }
    const PcieSlot nearest = nearest_slot(speed);
    constexpr double kSame = 0.01;  // files round
    const bool same = std::abs(speed / nearest.coded() - 1) < kSame;
    cable(device, parent, nearest.catalogue_id(), 1, same ? 0 : speed / nearest.coding());
  }

  void tell_asleep(const std::string& rate, const std::vector<std::string>& devices) {
    const Accelerator* figures = options_.figures;
    const bool known = figures != nullptr && !figures->pcie_link.empty();
    const bool more = devices.size() > 1;
    result_.findings.push_back(
        fmt::format("{}{} {} at {}: an idle device or a virtual machine's invention; {}", devices.front(),
                    more ? fmt::format(" and {} more", devices.size() - 1) : "", more ? "run" : "runs", rate,
                    known ? fmt::format("{} of {} is taken", figures->pcie_link, figures->id)
                          : "dump again under load, or name the accelerator with --gpu"));
  }

  void object(const Element& o, const std::string& hub) {
    const std::string type = type_of(o);
    if (is_socket(o)) return descend(o, add_socket(o));
    if (type == "PCIDev") return device(o, hub.empty() ? add_socket(o) : hub);
    const bool bridge = type == "Bridge" && attribute(o, "bridge_type") == "1-1";
    if (!bridge || branches(o) < 2) return descend(o, hub);
    const std::string below = add("pcie-switch", fmt::format("pcie{}", switches_++));
    slot(o, below, hub.empty() ? add_socket(o) : hub);
    descend(o, below);
  }

  void descend(const Element& o, const std::string& hub) {
    for (const auto& [name, child] : o)
      if (name == "object") object(child, hub);
  }

  // The number of children that lead to a GPU or a NIC.
  static int branches(const Element& o) {
    int count = 0;
    for (const auto& [name, child] : o)
      if (name == "object") count += is_wanted(child) || devices_below(child) > 0 ? 1 : 0;
    return count;
  }

  // Machines with one socket may have no Package around their bridges.
  std::string add_socket(const Element& o) {
    if (!is_socket(o) && !sockets_.empty()) return sockets_.front();
    Element cpu;
    for (const auto& [name, info] : o) {
      if (name != "info") continue;
      const std::string key = attribute(info, "name"), value = attribute(info, "value");
      if (key == "CPUVendor") cpu.put("<xmlattr>.vendor", value);
      if (key == "CPUFamilyNumber") cpu.put("<xmlattr>.familyid", value);
      if (key == "CPUModelNumber") cpu.put("<xmlattr>.modelid", value);
    }
    families_.push_back(nccl::cpu_family(cpu));
    sockets_.push_back(add("cpu", fmt::format("cpu{}", sockets_.size()), families_.back()));
    by_index_["Package:" + attribute(o, "gp_index")] = kProcessor;
    return sockets_.back();
  }

  void device(const Element& o, const std::string& hub) {
    const DeviceKind role = role_of(o);
    const std::string id = "PCIDev:" + attribute(o, "gp_index");
    if (role == DeviceKind::nvswitch) {
      ++nvswitches_;
      by_index_[id] = kNvswitch;
    }
    if (type_of(o) == "PCIDev" && is_display_only(o))
      result_.findings.push_back(fmt::format("{} ({}) is a display and no accelerator: left out",
                                             attribute(o, "pci_busid", "a device"), name_of(o)));
    if (!is_wanted(o)) return;
    const bool gpu = role == DeviceKind::accelerator;
    const std::string name = gpu ? add("accelerator", fmt::format("gpu{}", gpus_++), options_.accelerator)
                                 : add("nic", fmt::format("nic{}", nics_++));
    slot(o, name, hub);
    by_index_[id] = name;
    for (const auto& [child, inner] : o)
      if (child == "object" && type_of(inner) == "OSDev") {
        by_index_["OSDev:" + attribute(inner, "gp_index")] = name;
        tell_model(inner);
      }
    if (gpu || options_.nic_link.empty()) return;
    if (names_rdma_ && !has_osdev(o, kOpenFabrics))
      return uncabled_.push_back(fmt::format("nic{} ({})", nics_ - 1, name_of(o)));
    DeviceSpec leaf;
    leaf.name = fmt::format("rail{}", rails_++);
    leaf.kind = "switch";
    result_.spec.devices.push_back(leaf);
    cable(name, leaf.name, options_.nic_link);
  }

  // "ES1000", or its class and ids.
  static std::string name_of(const Element& o) {
    for (const auto& [name, info] : o)
      if (name == "info" && attribute(info, "name") == "PCIDevice") return attribute(info, "value");
    return attribute(o, "pci_type").substr(0, std::string_view("0300 [1002:515e]").size());
  }

  void tell_model(const Element& os_device) {
    for (const auto& [name, info] : os_device) {
      if (name != "info" || attribute(info, "name") != "GPUModel" || !model_.empty()) continue;
      model_ = attribute(info, "value");
      result_.findings.push_back(fmt::format("its accelerators call themselves {}{}", model_,
                                             options_.accelerator.empty()
                                                 ? "; name the catalogue's with --gpu"
                                                 : ", taken for " + options_.accelerator));
    }
  }

  void matrices(const Element& topology) {
    std::map<std::string, HwlocMatrix> named;
    for (const auto& [name, child] : topology)
      if (name.starts_with("distances2")) named.emplace(attribute(child, "name"), hwloc_matrix(child));
    const HwlocMatrix none;
    const auto usable = [&](const char* name, const char* what) -> const HwlocMatrix& {
      const auto found = named.find(name);
      if (found == named.end() || found->second.is_square())
        return found == named.end() ? none : found->second;
      result_.findings.push_back(fmt::format("the {} matrix is not square: it is left out", what));
      return none;
    };
    nvlinks(usable("NVLinkBandwidth", "NVLink"));
    infinity_fabric(usable("XGMIBandwidth", "Infinity Fabric"), usable("XGMIHops", "Infinity Fabric's hop"));
    if (named.count("NVLinkBandwidth") + named.count("XGMIBandwidth") == 0) unsaid_links();
  }

  void nvlinks(const HwlocMatrix& matrix) {
    const std::vector<std::string>& ends = matrix.ends;
    std::map<std::string, double> to_switches;
    std::map<std::pair<std::string, std::string>, double> pairs;
    for (std::size_t a = 0; a < ends.size(); ++a)
      for (std::size_t b = 0; b < ends.size(); ++b) {
        const auto from = by_index_.find(ends[a]), to = by_index_.find(ends[b]);
        const double speed = matrix.at(a, b);
        if (from == by_index_.end() || to == by_index_.end() || from == to || !(speed > 0)) continue;
        if (from->second == kNvswitch || from->second == kProcessor) continue;
        if (to->second == kProcessor)
          ++host_nvlinks_;
        else if (to->second == kNvswitch)
          to_switches[from->second] += speed;
        else if (from->second < to->second)
          pairs[{from->second, to->second}] += speed;
      }
    if (!to_switches.empty()) {
      const std::string nvswitch = add_nvswitches();
      for (const auto& [gpu, speed] : to_switches) nvlink(gpu, nvswitch, speed);
    }
    for (const auto& [ends_of, speed] : pairs) nvlink(ends_of.first, ends_of.second, speed);
  }

  std::string add_nvswitches() {
    std::string name = add("nvswitch", "nvswitch0");
    result_.spec.devices.back().count = std::clamp(nvswitches_, 1, 65535);
    return name;
  }

  // The driver's rates are nominal and alike for generations that differ, but tell pairs with several links
  // (50,000, 100,000 and 200,000 for one, two and four of MI250X): the smallest is one link. Pairs with more
  // than a hop between them have no link of their own.
  void infinity_fabric(const HwlocMatrix& rates, const HwlocMatrix& hops) {
    std::map<std::pair<std::string, std::string>, double> pairs;
    double one = 0;
    for (std::size_t a = 0; a < rates.ends.size(); ++a)
      for (std::size_t b = 0; b < rates.ends.size(); ++b) {
        const auto from = by_index_.find(rates.ends[a]), to = by_index_.find(rates.ends[b]);
        const double rate = rates.at(a, b);
        if (from == by_index_.end() || to == by_index_.end() || from->second >= to->second || !(rate > 0))
          continue;
        if (hops.between(from->first, to->first) > 1) continue;
        pairs[{from->second, to->second}] = rate;
        one = one > 0 ? std::min(one, rate) : rate;
      }
    if (pairs.empty()) return;
    const Accelerator* figures = options_.figures;
    const std::string use = figures != nullptr && figures->scale_up_link.starts_with("xgmi")
                                ? figures->scale_up_link
                                : "xgmi-mi300x";
    const double most = figures != nullptr && figures->nvlinks > 0 ? figures->nvlinks : 8;
    for (const auto& [ends, rate] : pairs)
      cable(ends.first, ends.second, use, static_cast<int>(std::clamp(std::round(rate / one), 1.0, most)));
    result_.findings.push_back(
        fmt::format("the driver's rates of Infinity Fabric are nominal: {:g} MB/s is taken for one link {}{}",
                    one, use, figures == nullptr ? "; name the accelerator with --gpu" : ""));
  }

  // Which GPU each link leads to is not known, except where all lead to NVSwitches.
  void unsaid_links() {
    const Accelerator* figures = options_.figures;
    if (gpus_ < 2) return;
    if (figures == nullptr && nvswitches_ > 0)
      result_.findings.push_back(
          "the file has NVSwitches and tells no NVLinks (hwloc asks NVML for them): copies go over PCIe "
          "here; "
          "with --gpu, all NVLinks of the named accelerator lead to them");
    if (figures == nullptr || figures->nvlinks == 0) return;
    const bool nvlink = figures->compute_capability > 0;
    const std::string has = fmt::format("the file tells no {} though {} has {} (hwloc asks {} for them)",
                                        nvlink ? "NVLink" : figures->scale_up_link, figures->id,
                                        figures->nvlinks, nvlink ? "NVML" : "ROCm SMI");
    if (!(nvlink && nvswitches_ > 0) && !is_nvswitch_board(*figures, static_cast<std::size_t>(gpus_))) {
      result_.findings.push_back(
          has +
          ": how they are wired is not known, and copies go over PCIe here, many times slower. A recipe has "
          "them: topology.node.use in place of topology.file (topsim topo list)");
      return;
    }
    result_.findings.push_back(
        fmt::format("{}: {} to NVSwitches are assumed from every GPU, {}", has, figures->nvlinks,
                    nvswitches_ > 0 ? "as the file has NVSwitches" : "as on every board of eight"));
    const std::string nvswitch = add_nvswitches();
    for (int gpu = 0; gpu < gpus_; ++gpu)
      cable(fmt::format("node0/gpu{}", gpu), nvswitch, figures->scale_up_link, figures->nvlinks);
  }

  // By the accelerator, else by the rate: 20 GB/s are the first, multiples of 25 any of the next three.
  [[nodiscard]] std::string nvlink_of(double megabytes) const {
    const Accelerator* figures = options_.figures;
    if (figures != nullptr && figures->scale_up_link.starts_with("nvlink")) return figures->scale_up_link;
    return std::fmod(megabytes, kNvlinkMegabytes) > 1 && std::fmod(megabytes, kNvlinkMegabytes * 0.8) < 1
               ? "nvlink1"
               : "nvlink3";
  }

  void nvlink(const std::string& from, const std::string& to, double megabytes) {
    const std::string use = nvlink_of(megabytes);
    const double one = use == "nvlink1"   ? kNvlinkMegabytes * 0.8
                       : use == "nvlink5" ? kNvlinkMegabytes * 2
                                          : kNvlinkMegabytes;
    const double links = std::clamp(std::round(megabytes / one), 1.0, 100.0);
    const double gigabytes = std::min(megabytes, kMostGigabytes * 1e3) / 1e3;
    cable(from, to, use, static_cast<int>(links), gigabytes);
  }

  void sockets() {
    if (sockets_.size() < 2) return;
    const UsualHost& usual = usual_host(families_.front());
    const std::string link(usual.socket_link);
    for (std::size_t a = 0; a < sockets_.size(); ++a)
      for (std::size_t b = a + 1; b < sockets_.size(); ++b)
        cable(sockets_[a], sockets_[b], link, usual.socket_links);
    result_.findings.push_back(
        fmt::format("the sockets' link is not told: {} x{} is assumed", link, usual.socket_links));
  }

  static constexpr const char *kNvswitch = "nvswitch",
                              *kProcessor = "cpu";  // ends of NVLinks that are no GPU

  const ImportOptions& options_;
  Imported result_;
  std::vector<std::string> sockets_, families_, uncabled_;
  std::map<std::string, std::string> by_index_;             // "OSDev:802" -> device
  std::map<std::string, std::vector<std::string>> asleep_;  // by what they run at
  std::string model_;
  int gpus_ = 0, nics_ = 0, switches_ = 0, nvswitches_ = 0, guessed_ = 0, rails_ = 0, host_nvlinks_ = 0;
  bool names_rdma_ = false;
};

}  // namespace

Imported read_hwloc_xml(std::string_view text, const ImportOptions& options) {
  return HwlocImporter(options).run(
      parse_xml(text, "topology", options.name, "the XML that lstopo --of xml writes"));
}
}  // namespace topsim::topology

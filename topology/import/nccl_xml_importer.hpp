#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "topology/build/hardware.hpp"
#include "topology/catalogue/link_entry.hpp"
#include "topology/import/nccl_assumptions.hpp"
#include "topology/import/nccl_xml.hpp"
#include "topology/import/nccl_xml_element.hpp"

namespace topsim::topology::nccl {

/// One NCCL topology file on its way to a topology: what the file says (nccl_xml.cpp, nccl_xml_nics.cpp,
/// nccl_xml_scale_up.cpp) and what it leaves out (nccl_xml_left_out.cpp).
class Importer {
 public:
  // `apart`: each rail is a switch of its own, else one switch holds all.
  Importer(const Element& system, const NcclXmlOptions& options, bool apart = true)
      : system_(system), options_(options), apart_(apart) {
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
  void virtual_nic(const Element& element, DeviceId cpu, std::uint32_t node);
  void uncabled(DeviceId nic);
  void rails();
  [[nodiscard]] Duration nic_latency(bool infiniband) const;
  const LinkEntry* nearest_link(LinkKind kind, double rate);
  void to_rail(Link link, DeviceId rail, const LinkEntry* entry);
  void scale_up(std::uint32_t node);
  void unnamed_nvlinks(std::uint32_t node);
  void one_machine() const;
  void sockets(const std::vector<std::pair<DeviceId, std::string>>& cpus);
  void host_memory(const std::vector<std::pair<DeviceId, std::string>>& cpus, std::uint32_t node);
  PcieLink checked(const Element& element);
  void cable(DeviceId a, DeviceId b, LinkKind kind, LinkType type, double line_rate, double capacity,
             int count = 1, std::string_view like = {});
  [[nodiscard]] std::string place_of(DeviceId gpu) const;  // its bus id
  [[nodiscard]] std::string places_of(const std::set<DeviceId>& gpus) const;
  [[nodiscard]] const LinkEntry* listed(std::string_view id) const;  // null: no name, or no catalogue
  [[nodiscard]] double payload_share(const PcieLink& slot) const;
  void find(std::string sentence);
  void together(const std::string& what, const std::string& where);
  void unsaid(std::string_view what, std::string_view instead, const std::string& given,
              const std::string& where);

  const Element& system_;
  const NcclXmlOptions& options_;
  bool apart_;
  const Accelerator* figures_ = nullptr;  // null: not named, or no catalogue
  const LinkEntry* nic_link_ = nullptr;   // of NICs without <net>
  TopologyBuilder builder_;
  std::vector<std::string> findings_;
  std::map<std::string, std::vector<std::string>> unsaid_;  // what devices do not say, and which
  std::map<std::string, DeviceId> by_bus_id_;               // of the box in work
  std::vector<ScaleUpLink> scale_up_;
  std::vector<DeviceId> gpus_of_box_;
  std::set<DeviceId> cpus_of_box_;
  std::set<std::uint32_t> numbers_;  // of the box's GPUs
  std::map<DeviceId, int> capability_;
  std::map<DeviceId, std::string> gcn_;  // AMD's
  bool asked_ = false;                   // some GPU says its capability: NCCL ran on the machine
  std::uint32_t uncabled_ = 0;           // NICs without <net>, all boxes
  std::uint32_t gpus_ = 0, switches_ = 0, nics_ = 0, cpus_ = 0;  // of the box in work
  std::set<std::string> interfaces_;                             // of the box, without a PCIe device
  std::map<std::uint32_t, std::vector<std::function<void(DeviceId rail)>>> cables_;  // by a NIC's number
  std::map<std::pair<LinkKind, double>, const LinkEntry*> nearest_;
  std::map<const LinkEntry*, Crossing> crossings_;
  bool some_carry_ = false;  // some <net> is not marked net="0"
  bool infiniband_ = false;
};

}  // namespace topsim::topology::nccl

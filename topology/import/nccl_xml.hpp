// Reads the topology file that NCCL writes (NCCL_TOPO_DUMP_FILE) and takes (NCCL_TOPO_FILE), and RCCL's
// variant of it. It describes one box down to PCIe speeds, NVLink counts and NICs. It does not describe the
// network, so every NIC gets a cable to the switch of its number (one rail per NIC), and a finding says so.
// Of boxes whose GPUs would not all reach each other by such rails (PCIe boxes, without NVLink from rail to
// rail), all NICs get cables to one switch. Format: NCCL 2.30 src/graph/xml.cc, topo.cc.
//
// Files that clouds ship omit what a running NCCL gets from NVML and the NICs' drivers: <gpu>, <nvlink>,
// <net>. Figures of the accelerator's data sheet and its usual board are used instead, each with a
// finding.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "topology/catalogue.hpp"
#include "topology/topology.hpp"

namespace topsim::topology {

struct NcclXmlOptions {
  std::uint32_t nodes = 1;               // equal boxes to build
  std::string accelerator;               // catalogue id of the GPUs; the file has only PCI ids
  std::string name = "topo.xml";         // for messages
  bool in_network_reduction = false;     // the fabric reduces (SHARP)
  std::string nic_link;                  // catalogue link of NICs without <net>; empty: they have no cable
  const Catalogue* catalogue = nullptr;  // of `accelerator` and `nic_link`; null: neither is looked up
};

struct NcclXmlImport {
  Topology topology;
  std::vector<std::string> findings;  // what looks wrong or had to be assumed, one sentence each
};

// Throws ConfigError (with its line where the text is not XML) when it is not a topology.
[[nodiscard]] NcclXmlImport read_nccl_xml(std::string_view text, const NcclXmlOptions& options);
}  // namespace topsim::topology

// What administrators' tools print about a machine or a fabric, as explicit devices and links.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topology/catalogue.hpp"
#include "topology/spec.hpp"

namespace topsim::topology {

struct ImportOptions {
  std::string name = "input";            // of the file, for messages
  std::string accelerator;               // catalogue id; these tools do not say it
  const Accelerator* figures = nullptr;  // of the accelerator; null: unknown
  std::string nic_link;  // nvidia-smi: link its NICs speak ("ib-ndr"); empty: NICs stay unconnected
};

struct Imported {
  TopologySpec spec;
  std::vector<std::string> findings;  // what looks wrong or had to be assumed, one sentence each
};

// ibnetdiscover (rdma-core): switches, host adapters and the cables between them. GUIDs are left out; hosts,
// their adapters and switches are numbered in the order of their names, as people count: gpu2 before gpu10.
// With an accelerator every adapter gets one beside it.
[[nodiscard]] Imported read_ibnetdiscover(std::string_view text, const ImportOptions& options);

// The matrix of `nvidia-smi topo -m`, of one box. Links of PIX and PXB groups, sockets and NVLink counts; it
// says no speeds, so PCIe is taken to be the accelerator's own.
[[nodiscard]] Imported read_nvidia_smi(std::string_view text, const ImportOptions& options);

// hwloc's XML (lstopo --of xml) of one box: sockets, PCIe tree with speeds, NVLink where hwloc saw it. Serial
// numbers and UUIDs are left out.
[[nodiscard]] Imported read_hwloc_xml(std::string_view text, const ImportOptions& options);

// The name of the text's importer (importers.hpp), or empty when there is none.
[[nodiscard]] std::string detect_format(std::string_view text);
}  // namespace topsim::topology

#include "topology/import/importers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "topology/import/encoding.hpp"
#include "topology/import/import.hpp"
#include "topology/import/nccl_assumptions.hpp"
#include "topology/import/nccl_xml.hpp"
#include "topology/import/usual_hosts.hpp"

namespace topsim::topology {
namespace {
bool has(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

bool is_nccl(std::string_view text) {
  return has(text, "<system");
}

bool is_hwloc(std::string_view text) {
  return !is_nccl(text) && has(text, "<topology");
}

bool is_ibnet(std::string_view text) {
  return !is_nccl(text) && !is_hwloc(text) && (has(text, "switchguid=") || has(text, "caguid="));
}

// Hosts of a fabric may be called as the matrix's words.
bool is_smi(std::string_view text) {
  constexpr std::array<std::string_view, 7> kCells = {"PIX", "PXB", "PHB", "SYS", "SOC", "NV", "NODE"};
  return !is_nccl(text) && !is_hwloc(text) && !is_ibnet(text) && has(text, "GPU0") &&
         std::any_of(kCells.begin(), kCells.end(), [&](std::string_view cell) { return has(text, cell); });
}

// No tool tells what the driver of an accelerator's kind allows.
void find_no_peers(const ImportRequest& request, std::vector<std::string>& findings) {
  if (request.accelerator.empty() || request.catalogue.accelerator(request.accelerator).peer_to_peer) return;
  findings.push_back(
      fmt::format("the driver of {} lets none read another's memory over PCIe: copies go through host memory "
                  "(\"peer_to_peer\": true in the file where yours does)",
                  request.accelerator));
}

// Gives every processor its memory: where peers cannot reach each other, and between sockets, copies go
// through it, and so does what is offloaded.
void add_host_memory(TopologySpec& spec, std::vector<std::string>& findings) {
  bool said = false;
  const std::size_t devices = spec.devices.size();
  for (std::size_t i = 0; i < devices; ++i) {
    if (spec.devices[i].kind != name_of(DeviceKind::cpu)) continue;
    const UsualHost& host = usual_host(spec.devices[i].model);
    DeviceSpec memory;
    memory.name = spec.devices[i].name;  // "node0/cpu1"
    memory.name.replace(memory.name.rfind("cpu"), 3, "mem");
    memory.kind = name_of(DeviceKind::host_memory);
    memory.node = spec.devices[i].node;
    LinkSpec link;
    link.from = spec.devices[i].name;
    link.to = memory.name;
    link.kind = name_of(LinkKind::memory);
    link.link.bandwidth = BytesPerSecond(host.memory_gigabytes * 1e9);
    link.source = "assumed: servers of its family of CPUs";
    spec.devices.push_back(memory);
    spec.links.push_back(link);
    if (!std::exchange(said, true)) findings.push_back(memory_finding(host));
  }
}
ReadTopology read_nccl(std::string_view text, const ImportRequest& request) {
  NcclXmlOptions how;
  how.catalogue = &request.catalogue;
  how.nic_link = request.nic_link;
  how.nodes = request.nodes;
  how.accelerator = request.accelerator;
  how.name = request.name;
  NcclXmlImport read = read_nccl_xml(text, how);
  find_no_peers(request, read.findings);
  return {std::move(read.topology), std::move(read.findings)};
}

template <Imported (*reader)(std::string_view, const ImportOptions&)>
ReadTopology read_spec(std::string_view text, const ImportRequest& request) {
  ImportOptions how;
  how.name = request.name;
  how.accelerator = request.accelerator;
  how.nic_link = request.nic_link;
  if (!request.accelerator.empty()) how.figures = &request.catalogue.accelerator(request.accelerator);
  Imported read = reader(text, how);
  find_no_peers(request, read.findings);
  add_host_memory(read.spec, read.findings);
  const bool switched =
      std::any_of(read.spec.devices.begin(), read.spec.devices.end(),
                  [](const DeviceSpec& d) { return d.kind == name_of(DeviceKind::nvswitch); });
  if (switched && !read.spec.nvlink_sharp && how.figures != nullptr)
    read.spec.nvlink_sharp = how.figures->compute_capability >= nccl::kSwitchesReduce;
  return {std::move(read.spec), std::move(read.findings)};
}

constexpr std::array<Importer, 4> kImporters{{
    {.name = "nccl",
     .input = "NCCL's topology XML",
     .hint = "topology XML",
     .is = is_nccl,
     .read = read_nccl,
     .builds_nodes = true},
    {.name = "hwloc",
     .input = "hwloc's XML",
     .hint = "lstopo --of xml",
     .is = is_hwloc,
     .read = read_spec<read_hwloc_xml>,
     .builds_nodes = false},
    {.name = "smi",
     .input = "nvidia-smi topo -m",
     .hint = "nvidia-smi topo -m",
     .is = is_smi,
     .read = read_spec<read_nvidia_smi>,
     .builds_nodes = false},
    {.name = "ibnet",
     .input = "ibnetdiscover",
     .hint = "ibnetdiscover",
     .is = is_ibnet,
     .read = read_spec<read_ibnetdiscover>,
     .builds_nodes = false},
}};

std::string list_of(const std::vector<std::string>& words, std::string_view last) {
  return fmt::format("{}{}{}", fmt::join(words.begin(), words.end() - 1, ", "), last, words.back());
}
}  // namespace

std::span<const Importer> importers() {
  return kImporters;
}

const Importer* find_importer(std::string_view name) {
  const auto found = std::find_if(kImporters.begin(), kImporters.end(),
                                  [&](const Importer& each) { return each.name == name; });
  return found != kImporters.end() ? &*found : nullptr;
}

std::vector<std::string> importer_names() {
  std::vector<std::string> names;
  for (const Importer& each : kImporters) names.emplace_back(each.name);
  return names;
}

std::string importer_inputs() {
  std::vector<std::string> inputs;
  for (const Importer& each : kImporters) inputs.emplace_back(each.input);
  return list_of(inputs, ", or ");
}

std::string importer_hints() {
  std::vector<std::string> hints;
  for (const Importer& each : kImporters) hints.push_back(fmt::format("{} ({})", each.name, each.hint));
  return list_of(hints, " or ");
}

std::string detect_format(std::string_view text) {
  if (is_utf16(text)) {  // the reader names the file and the remedy
    std::string ascii(text);
    const auto no_ascii = [](char c) { return c == 0 || static_cast<unsigned char>(c) > 127; };
    ascii.erase(std::remove_if(ascii.begin(), ascii.end(), no_ascii), ascii.end());
    return detect_format(ascii);
  }
  for (const Importer& each : kImporters)
    if (each.is(text)) return std::string(each.name);
  return {};
}
}  // namespace topsim::topology

#include "sim/scenario/findings/fabric_software.hpp"

#include <fmt/format.h>

#include <array>
#include <set>
#include <string>
#include <string_view>

#include "topology/catalogue/device_entries.hpp"

namespace topsim::scenario {
namespace {

struct Software {
  std::string_view transport, message;
};
constexpr std::array kSoftware = {
    // nccl-alps-gh200 and nccl-polaris
    Software{"slingshot",
             "collectives of 8 KiB to 32 MiB over Slingshot took 1.4 to 10 times as long where they were "
             "measured: what libfabric's rendezvous costs is not published"},
    // nccl-gcp-a3-mega
    Software{"tcpxo",
             "collectives of 128 KiB to 64 MiB over TCPXO took 1.2 to 1.6 times as long where they were "
             "measured: what its offload costs is not published"}};

// Empty where it is not known. Accelerators of a file may be none of the catalogue's.
std::string library_of(const topology::Topology& topology, const topology::Catalogue& catalogue) {
  if (topology.accelerators().empty()) return "";
  const std::string_view model = topology.model_of(topology.accelerators().front());
  for (const topology::CatalogueEntry& entry : catalogue.entries())
    if (entry.category == "accelerator" && entry.id == model) return catalogue.accelerator(model).library;
  return "";
}

// The switches could be asked by a plugin of another library, but when it would choose them is not known.
void find_other_library(const topology::Topology& topology, const topology::Catalogue& catalogue,
                        std::vector<report::Finding>& out) {
  if (!topology.sharp) return;
  const std::string library = library_of(topology, catalogue);
  if (library.empty() || library == "NCCL") return;
  out.push_back(
      {report::Severity::note,
       fmt::format("{} is simulated without sums in the fabric's switches, which SHARP is for", library),
       "topology.fabric.sharp", "leave it out; only NCCL's choice of it is known"});
}
}  // namespace

std::vector<report::Finding> fabric_software_findings(const topology::Topology& topology,
                                                      const topology::Catalogue& catalogue) {
  std::vector<report::Finding> out;
  if (topology.nodes() < 2) return out;
  find_other_library(topology, catalogue, out);
  std::set<std::string_view> seen;
  for (const DeviceId nic : topology.nics_of_node(0))
    for (const LinkId link : topology.links_from(nic)) seen.insert(topology.type_of(link).transport);
  for (const Software& each : kSoftware)
    if (seen.contains(each.transport))
      out.push_back(
          {report::Severity::note, std::string(each.message), "topology.fabric.link",
           "take their times for a lower bound; configs/validation/collectives.md has the figures"});
  return out;
}
}  // namespace topsim::scenario

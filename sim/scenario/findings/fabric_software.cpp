#include "sim/scenario/findings/fabric_software.hpp"

#include <array>
#include <set>
#include <string_view>

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
}  // namespace

std::vector<report::Finding> fabric_software_findings(const topology::Topology& topology) {
  std::vector<report::Finding> out;
  if (topology.nodes() < 2) return out;
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

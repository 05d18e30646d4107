#include "sim/scenario/findings/forced_findings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>

#include "sim/collective/nccl/tuner.hpp"

namespace topsim::scenario {

std::vector<report::Finding> unmet_settings(const collective::Overrides& asked,
                                            const topology::Topology& topology) {
  std::vector<report::Finding> out;
  if (asked.sharp.value_or(false) && !topology.sharp)
    out.push_back({report::Severity::warning,
                   "network.nccl.sharp is on, and the fabric's switches do not sum", "network.nccl.sharp",
                   "topology.fabric.sharp=true switches them on, InfiniBand's can"});
  if (topology.nvlink_sharp) return out;
  const auto without_sums = [&](const char* key, std::string_view is) {
    out.push_back({report::Severity::warning,
                   fmt::format("network.nccl.{} is {}, and no NVSwitch here sums", key, is),
                   std::string("network.nccl.") + key, "those of Hopper and later do"});
  };
  if (asked.nvls.value_or(false)) without_sums("nvls", "on");
  if (asked.nvls_chunksize) without_sums("nvls_chunksize", "set");
  if (asked.nvlstree_max_chunksize) without_sums("nvlstree_max_chunksize", "set");
  return out;
}

std::vector<report::Finding> forced_findings(const Scenario& scenario, const topology::Topology& topology,
                                             const report::Result& result) {
  const collective::Overrides& forced = scenario.network.nccl;
  std::vector<report::Finding> out = unmet_settings(forced, topology);
  if (forced.gpus_per_thread.value_or(1) > 1)
    out.push_back({report::Severity::warning,
                   "network.nccl.gpus_per_thread is of bench: a run has a process for each accelerator",
                   "network.nccl.gpus_per_thread", "leave it out"});
  const auto never = [&](std::string_view wanted, std::string report::CollectiveRow::*chosen, const char* key,
                         std::string_view why) {
    std::set<std::string> others;
    for (const report::CollectiveRow& row : result.collectives) others.insert(row.*chosen);
    if (others.empty() || others.contains(std::string(wanted))) return;
    out.push_back({report::Severity::warning,
                   fmt::format("no collective ran with {}, which network.nccl.{} asks for, but with {}",
                               wanted, key, fmt::join(others, ", ")),
                   std::string("network.nccl.") + key, std::string(why)});
  };
  // If both are forced: NCCL has, for example, no LL over NVLS and then uses another pair.
  if (forced.algorithm && forced.protocol) {
    const std::string wanted = fmt::format("{} {}", name_of(*forced.algorithm), name_of(*forced.protocol));
    std::set<std::string> others;
    for (const report::CollectiveRow& row : result.collectives)
      others.insert(row.algorithm + ' ' + row.protocol);
    if (!others.empty() && !others.contains(wanted))
      out.push_back({report::Severity::warning,
                     fmt::format("no collective ran with {}, which network.nccl asks for, but with {}",
                                 wanted, fmt::join(others, ", ")),
                     "network.nccl", "NVLS and CollNet know Simple alone; leave protocol out"});
  } else if (forced.algorithm) {
    never(name_of(*forced.algorithm), &report::CollectiveRow::algorithm, "algorithm",
          collective::nccl::needs_of(*forced.algorithm));
  } else if (forced.protocol) {
    never(name_of(*forced.protocol), &report::CollectiveRow::protocol, "protocol",
          collective::nccl::kLowLatencyNeeds);
  }
  // Between nodes NVLS also sums in the fabric's switches; CollNet always does.
  const std::size_t of_a_node = topology.accelerators().size() / std::max<std::size_t>(topology.nodes(), 1);
  double summed = 0, all = 0;  // seconds of all calls
  for (const report::CollectiveRow& row : result.collectives) {
    const double time = seconds(row.each) * static_cast<double>(row.calls);
    const bool in_switches =
        row.algorithm.starts_with("CollNet") || (row.algorithm == "NVLS" && row.group_size > of_a_node);
    all += time;
    summed += in_switches ? time : 0;
  }
  constexpr double kTrifle = 1e-3;
  const bool sums = result.library.empty() || result.library == "NCCL";  // else fabric_software says so
  if (topology.sharp && sums && all > 0 && summed < kTrifle * all)
    out.push_back({report::Severity::warning,
                   "topology.fabric.sharp changes next to nothing: what is summed in the fabric's switches "
                   "takes less than a thousandth of the time of all collectives",
                   "topology.fabric.sharp",
                   "NCCL has all-reduces summed there, where that is quicker; gradients that are scattered "
                   "(zero 1 and above) are none"});
  return out;
}
}  // namespace topsim::scenario

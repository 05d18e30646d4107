#include "sim/study/uncertainty.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "topology/build.hpp"
#include "topology/catalogue/device_entries.hpp"
#include "topology/catalogue/link_entry.hpp"
#include "workloads/compute/compute_model.hpp"

namespace topsim::study {
namespace {
using scenario::Scenario;

HopRange hop_range(const Scenario& scenario, const topology::Topology& topology,
                   const topology::Catalogue& catalogue) {
  const topology::FabricSpec& fabric = scenario.topology.fabric;
  if (fabric.switch_model.latency || fabric.link.latency || scenario.topology.node.use.empty()) return {};
  const auto devices = topology.devices();
  const auto leaf = std::find_if(devices.begin(), devices.end(), [](const topology::Device& device) {
    return device.kind == topology::DeviceKind::fabric_switch;
  });
  if (leaf == devices.end()) return {};
  const topology::SwitchEntry& entry = catalogue.network_switch(topology.models()[leaf->model]);
  const double usual = seconds(entry.port_to_port);
  return {{seconds(entry.port_to_port_low) - usual, 0, seconds(entry.port_to_port_high) - usual}, entry.id};
}

BaseRange base_range(const Scenario& scenario, const topology::Topology& topology,
                     const topology::Catalogue& catalogue) {
  const topology::FabricSpec& fabric = scenario.topology.fabric;
  if (fabric.nic_latency || fabric.link.latency || scenario.topology.node.use.empty()) return {};
  const bool crossed =
      std::any_of(topology.links().begin(), topology.links().end(), [](const topology::Link& link) {
        return link.kind == topology::LinkKind::infiniband || link.kind == topology::LinkKind::ethernet;
      });
  if (!crossed) return {};
  const std::string use = topology::resolve_fabric(fabric, catalogue).link.use;
  if (use.empty()) return {};
  const topology::LinkEntry& entry = catalogue.link(use);
  const double usual = seconds(entry.nic_base);
  return {{seconds(entry.nic_base_low) - usual, 0, seconds(entry.nic_base_high) - usual}, entry.id};
}

KernelRange kernel_range(const Scenario& scenario, const topology::Topology& topology,
                         const topology::Catalogue& catalogue) {
  const workloads::WorkloadSpec& workload = scenario.workload;
  const bool measured = workload.trace || !workload.compute.stage_times.forward.empty();
  if (measured || topology.accelerators().empty()) return {};
  const topology::Accelerator& entry =
      catalogue.accelerator(topology.model_of(topology.accelerators().front()));
  workloads::ComputeSettings settings;
  settings.gemm_efficiency = workload.compute.gemm_efficiency;
  const auto apart = workloads::ComputeModel(entry, settings).disagreement(workload.precision.gemm);
  return {{apart.fastest, 1, apart.slowest}, entry.id};
}

// Whether other hashes could route this run's traffic differently: it crossed more than one tier. Under one
// leaf there is one path.
bool hashes_paths(const topology::Topology& topology, const report::Result& result) {
  if (topology.routing != topology::Routing::ecmp) return false;
  const auto is_switch = [&](const std::string& name) {
    const auto device = topology.find_device(name);
    return device && topology.device(*device).kind == topology::DeviceKind::fabric_switch;
  };
  return std::any_of(result.links.begin(), result.links.end(),
                     [&](const report::LinkRow& link) { return is_switch(link.from) && is_switch(link.to); });
}
}  // namespace

Ranges ranges_of(const Scenario& scenario, const topology::Topology& topology,
                 const topology::Catalogue& catalogue) {
  return {hop_range(scenario, topology, catalogue), base_range(scenario, topology, catalogue),
          kernel_range(scenario, topology, catalogue)};
}

Chances chances_of(const Scenario& scenario, const topology::Topology& topology,
                   const scenario::Simulated& usual) {
  const bool random = scenario.topology.placement.kind == topology::PlacementKind::random;
  if (scenario.network.traits().packets) return {false, false, true, random};
  const bool hashes = hashes_paths(topology, usual.result);
  // Flows that do not meet with this seed may meet with another.
  return {hashes, usual.flows_met || (scenario.network.calibrated() && (hashes || random)), false, random};
}

std::vector<std::string> in_words(const Ranges& ranges, const Chances& chances) {
  std::vector<std::string> list;
  const auto add = [&](const std::string& what, const report::Interval& range, double unit,
                       const char* name) {
    if (range.low < range.high)
      list.push_back(
          fmt::format("{} over {:+.3g} to {:+.3g} {}", what, range.low / unit, range.high / unit, name));
  };
  if (chances.hashes) list.emplace_back("ECMP seeds");
  if (chances.packets) list.emplace_back("the seed of every packet's hash, mark and loss");
  if (chances.placements) list.emplace_back("placements");
  add("the latency of a hop through " + ranges.hop.id, ranges.hop.seconds, 1e-9, "ns");
  add("the latency of NICs and hosts of " + ranges.base.id, ranges.base.seconds, 1e-6, "us");
  const report::Interval& kernels = ranges.kernels.factor;
  add("the time of matrix products on " + ranges.kernels.id, {kernels.low - 1, 0, kernels.high - 1}, 1e-2,
      "%");
  if (chances.meets) list.emplace_back("the calibrated loss where flows meet over its interval");
  return list;
}

scenario::Prepared drawn(const Ranges& ranges, std::size_t sample, const scenario::Prepared& usual) {
  const report::Draws draws(sample);
  const topology::Topology& topology = usual.topology;
  const Duration more = from_seconds(ranges.hop.seconds.at(draws(ranges.hop.id)));
  scenario::Prepared own{topology.with_links([&](topology::Link& link) {
                           if (topology.device(link.to).kind == topology::DeviceKind::fabric_switch)
                             link.latency = std::max(Duration{}, link.latency + more);
                         }),
                         usual.program, usual.memory, usual.searches};
  own.topology.nic_latency =
      std::max(Duration{}, topology.nic_latency +
                               from_seconds(ranges.base.seconds.at(draws("NICs of " + ranges.base.id))));
  const double factor = ranges.kernels.factor.at(draws("kernels of " + ranges.kernels.id));
  if (factor == 1) return own;
  for (program::RankProgram& ranks : own.program.classes) {
    for (program::Op& op : ranks.ops) {
      if (op.kind != program::OpKind::compute) continue;
      // Memory-bound time does not depend on the rate of matrix products.
      const double moved =
          static_cast<double>(op.memory_bound) + factor * (1 - static_cast<double>(op.memory_bound));
      op.duration = from_seconds(seconds(op.duration) * moved);
    }
  }
  return own;
}

network::Bound drawn_contention(std::size_t sample) {
  if (sample == 0) return network::Bound::middle;
  const double u = report::Draws(sample)("contention");
  return u < 0.25 ? network::Bound::low : u < 0.75 ? network::Bound::middle : network::Bound::high;
}
}  // namespace topsim::study

// Clusters of equal boxes, and what a collective puts on their links.
#pragma once

#include <gtest/gtest.h>

#include <map>

#include "sim/collective/collective.hpp"
#include "sim/scenario/bench/bench.hpp"
#include "tests/topology/fixtures.hpp"

namespace topsim::collective::fixtures {

using topology::DeviceKind;

inline topology::TopologySpec boxes(const char* node, std::uint32_t count, const char* link = "ib-ndr") {
  topology::TopologySpec spec;
  spec.node.use = node;
  spec.nodes = count;
  spec.fabric.kind = count == 1 ? topology::FabricKind::none : topology::FabricKind::rail;
  if (count > 1) spec.fabric.link.use = link;
  return spec;
}

struct Cluster {
  explicit Cluster(const topology::TopologySpec& spec, Overrides forced = {})
      : topology(topology::build(spec, topology::test::catalogue())),
        router(topology, 1),
        nccl(router, forced) {}
  // Bytes that each GPU sends to the NVSwitches of its box (`out` false: receives from them), per byte of the
  // collective's buffer.
  [[nodiscard]] std::map<DeviceId, double> on_nvlink(const Activity& activity, bool out) const {
    std::map<DeviceId, double> sums;
    for (const topology::LinkShare& use : activity.usage) {
      const topology::Link& link = topology.link(use.link);
      const DeviceId near = out ? link.from : link.to, far = out ? link.to : link.from;
      if (topology.device(near).kind == DeviceKind::accelerator &&
          topology.device(far).kind == DeviceKind::nvswitch)
        sums[near] += use.share;
    }
    return sums;
  }
  topology::Topology topology;
  topology::Router router;
  NcclModel nccl;
};

inline Overrides forced(Algorithm algorithm, Protocol protocol = Protocol::simple) {
  Overrides overrides;
  overrides.algorithm = algorithm;
  overrides.protocol = protocol;
  return overrides;
}

inline Activity lowered(const Cluster& cluster, CollectiveKind kind, std::size_t gpus,
                        std::int64_t bytes = 64 << 20) {
  Activity activity;
  cluster.nccl.lower(kind, Bytes(bytes), cluster.topology.accelerators().subspan(0, gpus), activity);
  return activity;
}

inline void expect_each(const std::map<DeviceId, double>& shares, std::size_t devices, double share) {
  EXPECT_EQ(shares.size(), devices);
  for (const auto& [device, has] : shares) EXPECT_NEAR(has, share, 1e-9);
}

// Per byte of the collective's buffer: what leaves every NIC, and what passes between switches, once per
// link.
struct OnFabric {
  std::map<DeviceId, double> nics;
  double between_switches = 0;
};

inline OnFabric on_fabric(const Cluster& cluster, const Activity& activity) {
  OnFabric result;
  for (const topology::LinkShare& use : activity.usage) {
    const topology::Link& link = cluster.topology.link(use.link);
    const DeviceKind from = cluster.topology.device(link.from).kind,
                     to = cluster.topology.device(link.to).kind;
    if (to != DeviceKind::fabric_switch) continue;
    if (from == DeviceKind::nic) result.nics[link.from] += use.share;
    if (from == DeviceKind::fabric_switch) result.between_switches += use.share;
  }
  return result;
}

struct Form {
  const char* node;
  std::uint32_t nodes;
  const char* link;
  Algorithm algorithm;
  Protocol protocol;
  double tolerance;
  CollectiveKind kind = CollectiveKind::all_reduce;
};

inline std::vector<scenario::BenchRow> bench(const Form& form, bool in_steps, scenario::BenchSizes sizes) {
  scenario::Scenario scenario;
  scenario.topology = boxes(form.node, form.nodes, form.link);
  scenario.network.model = "flow";
  scenario.network.nccl = forced(form.algorithm, form.protocol);
  if (in_steps) scenario.network.collectives = scenario::CollectiveForm::steps;
  if (form.algorithm == Algorithm::direct) scenario.network.nccl = {};
  return scenario::bench(scenario, topology::test::catalogue(), form.kind, sizes).rows;
}

}  // namespace topsim::collective::fixtures

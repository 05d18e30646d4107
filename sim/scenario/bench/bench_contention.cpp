#include "sim/scenario/bench/bench_contention.hpp"

#include <utility>

#include "sim/scenario/cluster/calibration.hpp"

namespace topsim::scenario {

BenchContention::BenchContention(const Scenario& scenario, const topology::Topology& topology,
                                 std::span<const executor::CapacityChange> slower)
    : topology_(topology), slower_(slower) {
  if (scenario.network.model != "flow" || scenario.network.contention != ContentionForm::calibrated) return;
  options_.congestion = shipped_congestion();
  options_.packet = scenario.network.packet.resolved(topology.fabric_is_infiniband);
  for (std::size_t l = 0; l < topology.links().size(); ++l)
    system_.links.push_back({{LinkId(l)}, topology.links()[l].capacity});
}

void BenchContention::begin(std::vector<Flow> flows, network::Network& network) {
  if (!options_.congestion) return;
  system_.activities.clear();
  for (Flow& flow : flows) {
    fold::Activity activity;
    activity.bytes = flow.bytes;
    activity.usage = activity.own_usage =
        std::make_shared<const std::vector<network::Usage>>(std::move(flow.usage));
    system_.activities.push_back(std::move(activity));
  }
  contention_ = std::make_unique<executor::Contention>(system_, topology_, options_);
  // The network has these capacities already, but those of ports are contention's to set.
  for (const executor::CapacityChange& change : slower_)
    if (contention_->governs(change.link.value)) contention_->scale(change.link.value, change.factor);
  for (std::uint32_t flow = 0; flow < system_.activities.size(); ++flow) contention_->started(flow);
  contention_->settle(network, SimTime{});
}

void BenchContention::ended(std::span<const network::Completion> flows, network::Network& network,
                            SimTime now) {
  if (!contention_) return;
  for (const network::Completion& flow : flows) contention_->ended(static_cast<std::uint32_t>(flow.tag));
  contention_->settle(network, now);
}
}  // namespace topsim::scenario

// What flows lose where they meet on a port of the fabric, as in a run (executor/contention.hpp), for benches
// that send over a fluid without an executor: every link and every flow is its own class. And whom one full
// port of InfiniBand holds up, where its senders are not slowed (sim/network/backpressure.hpp).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sim/executor/contention.hpp"
#include "sim/network/backpressure.hpp"
#include "sim/scenario/scenario.hpp"

namespace topsim::scenario {

class BenchContention {
 public:
  // Nothing meets on another model than flow, and where network.contention is ideal. REQUIRES: the topology
  // and `slower`, the links that have less than their capacity throughout, outlive it; links of a network are
  // its links.
  BenchContention(const Scenario& scenario, const topology::Topology& topology,
                  std::span<const executor::CapacityChange> slower);

  struct Flow {
    std::vector<network::Usage> usage;  // in order of travel
    Bytes bytes;
    Duration latency{};
  };
  // Exactly these flows, all from now on.
  void begin(std::vector<Flow> flows, network::Network& network);
  void ended(std::span<const network::Completion> flows, network::Network& network, SimTime now);
  // Least efficiency any link had since they began.
  [[nodiscard]] double least() const { return contention_ ? contention_->least() : 1; }
  // In all links, until then; none where it is known whom the port held up.
  [[nodiscard]] std::optional<executor::Crowd> longest_crowd(SimTime end) const {
    return contention_ && !holds_ ? contention_->longest_crowd(end) : std::nullopt;
  }

 private:
  void hold(network::Network& network, SimTime now);
  [[nodiscard]] std::optional<network::LinkIndex> full_port() const;
  [[nodiscard]] network::LaneDepth depth_behind(LinkId link) const;

  const topology::Topology& topology_;
  std::span<const executor::CapacityChange> slower_;
  fold::System system_;
  executor::RunOptions options_;
  std::unique_ptr<executor::Contention> contention_;
  std::vector<Flow> flows_;
  std::vector<network::HeldMessage> ways_;  // of flows that run; of others empty
  std::vector<double> bounds_;              // of flows in bytes/s; infinite: not held up
  bool holds_ = false;                      // some flow was held up
};
}  // namespace topsim::scenario

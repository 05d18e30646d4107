// Where traffic runs: the scenario's own topology, a network over it, and the possible end ports.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "sim/executor/options.hpp"
#include "sim/scenario/bench/bench_contention.hpp"
#include "sim/scenario/bench/idle_network.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/catalogue.hpp"
#include "topology/routes.hpp"

namespace topsim::scenario {

// The topology with every switch separate, and the faults that hold throughout.
class Testbed {
 public:
  // REQUIRES: the scenario and `stop` (which may be null) outlive it.
  Testbed(const Scenario& scenario, const topology::Catalogue& catalogue,
          const std::atomic<bool>* stop = nullptr);

  [[nodiscard]] const topology::Topology& topology() const { return topology_; }
  [[nodiscard]] bool cut_off(DeviceId port) const;                        // all its links are dead
  [[nodiscard]] topology::Route route(DeviceId from, DeviceId to) const;  // throws where there is none
  void renew();  // a network that has carried nothing
  // The same; all messages then start together, with tags 0, 1, ... in order, and the fluid loses what
  // packets lose where they meet.
  void renew_with_contention();
  // A NIC's message begins or ends in the memory behind it, whose slot it crosses. `rate` (bytes/s): a cap by
  // what the slots allow a single message; 0: slots are links like others, which messages share. In both
  // cases they add no latency: the NICs' own includes the hosts.
  void send(DeviceId from, DeviceId to, Bytes bytes, std::uint64_t tag, double rate = 0);
  // A NIC's slot in the direction of a message, if it carries less than the NIC's cables: otherwise it limits
  // nothing. Empty where the end is not a NIC.
  struct Slot {
    LinkId link;
    DeviceId behind;
    double capacity;  // bytes/s
  };
  [[nodiscard]] std::optional<Slot> tight_slot(DeviceId end, bool sends) const;
  [[nodiscard]] bool stopped() const { return stop_ != nullptr && stop_->load(std::memory_order_relaxed); }
  // Calls done(tag, time of the last byte) for everything sent, in order, until stopped. Throws
  // executor::Blocked where something never arrives.
  template <class Done>
  void run(const Done& done) {
    // At most so far at a time, so that a stop takes effect soon.
    constexpr Duration kSlice = std::chrono::microseconds(100);
    std::vector<network::Completion> completed;
    SimTime horizon(kSlice);
    if (contention_) contention_->begin(std::move(flows_), *network_.network);
    while (arrived_ < sent_ && !stopped()) {
      const SimTime next = network_.network->next_event_before(horizon);
      if (next == kNever) break;
      if (next <= horizon) {
        completed.clear();
        network_.network->advance(next, completed);
        arrived_ += completed.size();
        if (contention_) contention_->ended(completed, *network_.network, next);
        for (const network::Completion& c : completed) done(c.tag, c.time.time_since_epoch());
      }
      if (next >= horizon) horizon = next + kSlice;  // also where the network returns the horizon
    }
    if (!stopped()) require_all_arrived(network_, arrived_, sent_);
  }
  // Null on another model.
  [[nodiscard]] const network::packet::PacketNetwork* packets() const { return network_.packets; }
  // The lowest efficiency of a port where flows met; 1: none met.
  [[nodiscard]] double least_efficiency() const { return contention_ ? contention_->least() : 1; }
  // Of the last run(), until `end`.
  [[nodiscard]] std::optional<executor::Crowd> longest_crowd(Duration end) const {
    return contention_ ? contention_->longest_crowd(SimTime(end)) : std::nullopt;
  }

 private:
  struct Faulty {
    std::vector<LinkId> dead;
    std::vector<topology::SlowLink> slow;  // of the following, those that adaptive routing knows of
    std::vector<executor::CapacityChange> slower;
  };
  [[nodiscard]] Faulty faults() const;
  [[nodiscard]] double capacity(LinkId link) const;  // with the faults
  void find_route(DeviceId from, DeviceId to, topology::RouteQuery& query, topology::Route& out) const;

  const Scenario& scenario_;
  const std::atomic<bool>* stop_;
  const topology::Topology topology_;
  const Faulty faults_;
  const topology::Router router_;
  executor::MadeNetwork network_;
  std::size_t sent_ = 0, arrived_ = 0;
  topology::Route route_;
  std::vector<network::Usage> usage_;
  std::optional<BenchContention> contention_;
  std::vector<BenchContention::Flow> flows_;
};

// Possible end ports: NICs node by node; accelerators where nodes have none or there is only one node.
struct Ends {
  std::vector<std::vector<DeviceId>> of_node;
  bool rails = false;  // ports of one rail only are meant to talk to each other
};
[[nodiscard]] Ends ends_of(const topology::Topology& topology);
}  // namespace topsim::scenario

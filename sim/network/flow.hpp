// The fluid model: activities share links by weighted max-min fairness (maxmin.hpp), from the instant they
// start to the instant their last byte has left; latency follows.
//
// A rate cap is a private link of that capacity. All starts, ends and capacity changes of one instant cost
// one solve.
#pragma once

#include <deque>
#include <map>
#include <span>
#include <vector>

#include "sim/engine/indexed_heap.hpp"
#include "sim/network/maxmin.hpp"
#include "sim/network/network.hpp"

namespace topsim::network {

class FlowNetwork final : public Network {
 public:
  // Bytes a second, by LinkIndex.
  explicit FlowNetwork(std::span<const double> capacities) : sharing_(capacities) {}

  void start(const Transfer& transfer, SimTime now) override;
  [[nodiscard]] SimTime next_event() override;
  void advance(SimTime now, std::vector<Completion>& completed) override;
  void set_capacity(LinkIndex link, double bytes_per_second, SimTime now) override;
  void reroute(const Transfer& again, SimTime now) override;
  void note_bottlenecks(std::vector<LinkIndex>& by_tag) override { bottlenecks_ = &by_tag; }
  [[nodiscard]] LinkRecord record(LinkIndex link) const override { return sharing_.record(link, now_); }
  [[nodiscard]] std::uint64_t events() const override { return events_; }

  [[nodiscard]] const MaxMin& sharing() const { return sharing_; }

 private:
  struct Active {  // by MaxMin::Activity
    std::uint64_t tag, order;
    Duration latency;
    LinkIndex cap;  // private link, kNone without a cap
    std::uint64_t line;
    bool sending = true;
  };
  struct Waiting {  // for those before it in its line; `transfer.usage` is `usage`
    Transfer transfer;
    std::vector<Usage> usage;
    std::uint64_t order;
  };
  struct Arrival {  // the last byte has left; by number in arrivals_
    std::uint64_t tag, order;
    SimTime time;
  };

  void change(SimTime now);
  void send(const Transfer& transfer, std::uint64_t order, SimTime now);
  void send_next(std::uint64_t line, SimTime now);
  void arrive(std::uint64_t tag, std::uint64_t order, SimTime time);

  MaxMin sharing_;
  std::vector<Active> active_;
  std::map<std::uint64_t, std::deque<Waiting>> lines_;  // on which something is being sent
  std::vector<Arrival> arrivals_;
  std::vector<std::uint32_t> free_arrivals_;
  engine::IndexedHeap<SimTime> latencies_;
  std::vector<MaxMin::Activity> ended_;
  std::vector<std::uint64_t> lines_ended_;
  std::vector<std::uint32_t> arrived_;
  std::vector<Arrival> done_;
  std::vector<Usage> capped_usage_;
  std::vector<LinkIndex>* bottlenecks_ = nullptr;  // by tag, for callers that asked
  SimTime now_{};
  std::uint64_t started_ = 0, events_ = 0;
};
}  // namespace topsim::network

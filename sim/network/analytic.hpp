// No sharing: every transfer has its links to itself,
//     time = W / min(cap, min over links C_l / u(l)) + latency.
// A lower bound of every other model, as a spreadsheet would compute it, of a transfer. A step may take a
// little more than under the flow model: transfers that end sooner may lie beside other kernels, which lose
// more to them (0.04 % in one of the scenarios drawn at random). A link's record may exceed its capacity.
#pragma once

#include <span>
#include <vector>

#include "sim/engine/indexed_heap.hpp"
#include "sim/network/network.hpp"

namespace topsim::network {

class AnalyticNetwork final : public Network {
 public:
  explicit AnalyticNetwork(std::span<const double> capacities);

  void start(const Transfer& transfer, SimTime now) override;
  [[nodiscard]] SimTime next_event() override;
  void advance(SimTime now, std::vector<Completion>& completed) override;
  void set_capacity(LinkIndex link, double bytes_per_second, SimTime now) override;
  void reroute(const Transfer& again, SimTime now) override;
  [[nodiscard]] LinkRecord record(LinkIndex link) const override;
  [[nodiscard]] std::uint64_t events() const override { return events_; }

 private:
  struct Link {
    double capacity = 0, load = 0, bytes = 0, peak = 0;
    std::uint32_t active = 0;
    SimTime load_at{};
    Duration busy{};
  };
  struct Active {
    std::uint64_t tag = 0, order = 0;
    double left = 0, rate = 0, cap = 0;
    Duration latency{};
    SimTime since{};
    bool sending = false;      // false: only latency is left, or the number is free
    std::vector<Usage> usage;  // that its bytes are booked by
    std::vector<Usage> own;    // that its rate follows
  };

  static void take_usage(Active& active, const Transfer& transfer);
  [[nodiscard]] double rate_of(const Active& active) const;
  void load(const Active& active, double rate, SimTime now);
  void change_rate(std::uint32_t number, SimTime now);
  void finish_sending(std::uint32_t number, SimTime now);

  std::vector<Link> links_;
  std::vector<Active> active_;
  std::vector<std::uint32_t> free_, due_;
  engine::IndexedHeap<SimTime> ends_;
  SimTime now_{};
  std::uint64_t started_ = 0, events_ = 0;
};
}  // namespace topsim::network

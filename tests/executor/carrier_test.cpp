// The rate cap with which a call is given to the network, on links that faults have slowed.
#include "sim/executor/carrier.hpp"

#include <gtest/gtest.h>

#include "sim/network/factory.hpp"

namespace topsim::executor::carrier_test {

class Asked final : public network::Network {
 public:
  void start(const network::Transfer& transfer, SimTime) override { last = transfer; }
  [[nodiscard]] SimTime next_event() override { return kNever; }
  void reroute(const network::Transfer&, SimTime) override {}
  void advance(SimTime, std::vector<network::Completion>&) override {}
  void set_capacity(network::LinkIndex, double, SimTime) override {}
  [[nodiscard]] network::LinkRecord record(network::LinkIndex) const override { return {}; }
  [[nodiscard]] std::uint64_t events() const override { return 0; }
  network::Transfer last;
};

// A call that sends all its bytes over the first cable and half of them over the second. Cables have 50 GB/s.
// Its NIC carries 49 GB/s (kWires), and copying adds 2.5 % of that time (kOwn).
class OverTwoCables : public testing::Test {
 protected:
  OverTwoCables() {
    system_.links.resize(2);
    for (fold::LinkClass& link : system_.links) link.capacity = BytesPerSecond(50e9);
    fold::Activity call;
    call.bytes = Bytes(1000);
    call.usage = call.own_usage =
        std::make_shared<std::vector<network::Usage>>(std::vector<network::Usage>{{0, 1}, {1, 0.5}});
    call.cap_parts = {kWires, kOwn};
    call.rate_cap = 1 / (kWires + kOwn);
    system_.activities.push_back(call);
  }
  double cap_where(std::uint32_t link, double factor) {
    Asked network;
    const auto carrier = pipelined_carrier(system_, network, false, nullptr);
    carrier->scale_capacity(link, factor, SimTime{});
    EXPECT_TRUE(carrier->start(0, 0, 0, SimTime{}));
    return network.last.rate_cap;
  }
  static constexpr double kWires = 1 / 49e9, kOwn = 0.025 * kWires;
  fold::System system_;
};

TEST_F(OverTwoCables, KeepsItsNicsShareAndItsCopyWhereACableIsSlower) {
  EXPECT_DOUBLE_EQ(cap_where(0, 0.5), 1 / (2 * kWires + kOwn));
  EXPECT_DOUBLE_EQ(cap_where(0, 1), 1 / (kWires + kOwn));
}

// At 0.4 the second cable has 20 GB/s for half of the bytes, enough for 40 GB/s of the whole: 50 / 40 times
// slower.
TEST_F(OverTwoCables, IsSlowedByTheCableThatHasBecomeTheTightest) {
  EXPECT_DOUBLE_EQ(cap_where(1, 0.5), 1 / (kWires + kOwn));
  EXPECT_DOUBLE_EQ(cap_where(1, 0.4), 1 / (1.25 * kWires + kOwn));
}

// A call whose threads reach 30 GB/s is not slowed by a cable of 35. A dead cable leaves the cap alone: its
// capacity of 0 holds the call.
TEST_F(OverTwoCables, KeepsItsCapWhereSomethingElseIsSlowerAndWhereNothingMoves) {
  system_.activities[0].rate_cap = 1 / (1 / 30e9 + kOwn);
  EXPECT_DOUBLE_EQ(cap_where(0, 0.7), 1 / (1 / 30e9 + kOwn));
  EXPECT_DOUBLE_EQ(cap_where(0, 0), 1 / (1 / 30e9 + kOwn));
}
// Two calls share a cable of 50 GB/s, and each has one of 40 to itself. Alone a call is held back by its own
// cable; beside the other by the shared one, 25 GB/s each. A call with a cap of 10 GB/s is held back by no
// cable.
TEST(Carrier, KnowsWhatHeldACallBack) {
  const std::vector<double> capacities{50e9, 40e9, 40e9};
  fold::System system;
  for (const double capacity : capacities) system.links.emplace_back().capacity = BytesPerSecond(capacity);
  for (const std::uint32_t own : {1U, 2U, 1U}) {
    fold::Activity& call = system.activities.emplace_back();
    call.bytes = Bytes(1000);
    call.usage = call.own_usage =
        std::make_shared<std::vector<network::Usage>>(std::vector<network::Usage>{{0, 1}, {own, 1}});
  }
  system.activities[2].rate_cap = 10e9;
  const auto held_back = [&](const std::vector<std::uint32_t>& activities) {
    const auto network = network::find_model("flow").make(capacities);
    const auto carrier = pipelined_carrier(system, *network, false, nullptr);
    for (std::uint32_t call = 0; call < activities.size(); ++call)
      EXPECT_TRUE(carrier->start(call, 0, activities[call], SimTime{}));
    std::vector<std::uint32_t> done, held;
    while (done.size() < activities.size()) carrier->advance(network->next_event(), done);
    for (std::uint32_t call = 0; call < activities.size(); ++call) held.push_back(carrier->bottleneck(call));
    return held;
  };
  EXPECT_EQ(held_back({0}), std::vector<std::uint32_t>{1});
  EXPECT_EQ(held_back({0, 1}), (std::vector<std::uint32_t>{0, 0}));
  EXPECT_GE(held_back({2}).front(), capacities.size());
}
}  // namespace topsim::executor::carrier_test

// What a call asks of the network, on wires that faults have slowed.
#include "sim/executor/carrier.hpp"

#include <gtest/gtest.h>

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

// All of it over the first cable, half of it over the second; of 50 GB/s its NIC gets 49 and copying takes as
// long again as 2.5 % of that.
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

TEST_F(OverTwoCables, keeps_its_nics_share_and_its_copy_where_a_cable_is_slower) {
  EXPECT_DOUBLE_EQ(cap_where(0, 0.5), 1 / (2 * kWires + kOwn));
  EXPECT_DOUBLE_EQ(cap_where(0, 1), 1 / (kWires + kOwn));
}

// At 0.4 the second cable carries its half at 20 GB/s, as 40 of the whole: 50 / 40 times slower.
TEST_F(OverTwoCables, is_slowed_by_the_cable_that_has_become_the_tightest) {
  EXPECT_DOUBLE_EQ(cap_where(1, 0.5), 1 / (kWires + kOwn));
  EXPECT_DOUBLE_EQ(cap_where(1, 0.4), 1 / (1.25 * kWires + kOwn));
}

// Threads that reach 30 GB/s do not notice a cable of 35; a dead one keeps the call waiting by itself.
TEST_F(OverTwoCables, keeps_its_cap_where_something_else_is_slower_and_where_nothing_moves) {
  system_.activities[0].rate_cap = 1 / (1 / 30e9 + kOwn);
  EXPECT_DOUBLE_EQ(cap_where(0, 0.7), 1 / (1 / 30e9 + kOwn));
  EXPECT_DOUBLE_EQ(cap_where(0, 0), 1 / (1 / 30e9 + kOwn));
}
}  // namespace topsim::executor::carrier_test

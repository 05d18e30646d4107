// Communicators whose calls do not ask the network as long as they are alone on their links.
#include "sim/executor/isolated.hpp"

#include <gtest/gtest.h>

#include "sim/network/factory.hpp"

namespace topsim::executor::isolated_test {

using program::OpKind;

// Two ranks on one link of 1 GB/s, a byte per nanosecond. Groups 0 and 1: a communicator of both ranks in
// slot 0 and one in slot 1; group 2: a message between them. A call of each has 100 bytes.
class OneLink : public testing::Test {
 protected:
  OneLink() {
    program_.ranks = 2;
    program_.communicator_slots.resize(2);
    program_.classes.resize(1);
    for (std::uint8_t slot = 0; slot < 2; ++slot) {
      program::Op op;
      op.kind = OpKind::collective;
      op.slot = slot;
      op.stream = static_cast<std::uint16_t>(slot + 1);
      program_.classes[0].ops.push_back(op);
    }
    system_.links.emplace_back().capacity = BytesPerSecond(1e9);
    system_.groups.resize(3);
    for (std::uint32_t g = 0; g < 3; ++g) {
      system_.groups[g].members = {0, 1};
      system_.groups[g].activities = {g};
      if (g < kMessage) system_.groups[g].communicator = CommunicatorId(g);
      fold::Activity& call = system_.activities.emplace_back();
      call.bytes = Bytes(100);
      call.usage = call.own_usage =
          std::make_shared<std::vector<network::Usage>>(std::vector<network::Usage>{{0, 1}});
    }
    system_.group_of = {{0, 0}, {1, 1}};
  }
  [[nodiscard]] IsolatedGroups isolated(const std::vector<CapacityChange>& changes = {}) {
    network_ = network::find_model("flow").make(std::vector<double>{1e9});
    carrier_ = pipelined_carrier(system_, *network_, false, nullptr);
    return {program_, system_, changes, *carrier_, true};
  }
  static SimTime at(std::int64_t nanoseconds) { return SimTime(Duration(1000 * nanoseconds)); }

  static constexpr std::uint32_t kMessage = 2;
  program::Program program_;
  fold::System system_;
  std::unique_ptr<network::Network> network_;
  std::unique_ptr<Carrier> carrier_;
};

TEST_F(OneLink, IsForCommunicatorsThatAreCalledFromOneStreamAndKeepTheirCapacity) {
  EXPECT_TRUE(isolated().isolated(0));
  EXPECT_TRUE(isolated().isolated(1));
  EXPECT_FALSE(isolated().isolated(kMessage));
  EXPECT_EQ(isolated().duration(0), Duration(100'000));
  system_.links[0].members = {LinkId(7)};
  EXPECT_FALSE(isolated({{SimTime{}, LinkId(7), 0.5}}).isolated(0));
  program_.classes[0].ops[1].slot = 0;
  EXPECT_FALSE(isolated().isolated(0));
}

// Groups with different members would have to see each other's calls, which a team that walks in lock-step
// does not show.
TEST_F(OneLink, IsForOneSetOfMembers) {
  system_.groups[1].members = {0};
  EXPECT_TRUE(isolated().isolated(0));
  EXPECT_FALSE(isolated().isolated(1));
}

// Unless they are of one circle: a tensor and a context group with a common member, which calls them in turn.
// Rank 2 runs at another speed, so it does not walk with the others.
TEST_F(OneLink, IsForGroupsOfOneCircle) {
  system_.ranks.resize(3);
  system_.groups[0].dimension = program::Dimension::tensor;
  system_.groups[1].dimension = program::Dimension::context;
  system_.groups[1].members = {1, 2};
  EXPECT_TRUE(isolated().isolated(1));
  EXPECT_EQ(isolated().circles(), (std::vector<std::vector<std::uint32_t>>{{0, 1, 2}}));
  system_.ranks[2].slowdown = 1.5;
  EXPECT_FALSE(isolated().isolated(1));
  EXPECT_TRUE(isolated().circles().empty());
}

TEST_F(OneLink, IsDisturbedWhileOthersCall) {
  IsolatedGroups groups = isolated();
  EXPECT_EQ(groups.disturbed_by(kMessage), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(groups.disturbed_by(0), std::vector<std::uint32_t>{1});
  groups.called(kMessage);
  EXPECT_FALSE(groups.undisturbed(0));
  groups.ended(kMessage);
  EXPECT_TRUE(groups.undisturbed(0));
}

// The call is alone for 40 ns, so 60 of its 100 bytes are left when the message comes. At half the rate each,
// they take 120 ns, to 160. Of the message 40 bytes are left then, to 200. In all the link was busy for 200
// ns with 200 bytes.
TEST_F(OneLink, GoesOnInTheNetworkWithWhatIsLeftWhenAnotherComes) {
  IsolatedGroups groups = isolated();
  groups.begin(0, 0, at(0), 5, 9);
  EXPECT_EQ(groups.transfers(), 1U);
  const auto met = groups.meet(0, at(40));
  ASSERT_TRUE(met);
  EXPECT_EQ(met->call, 5U);
  EXPECT_EQ(met->event, 9U);
  EXPECT_DOUBLE_EQ(met->bytes, 60);
  EXPECT_FALSE(groups.meet(0, at(40))) << "it is the network's now";
  carrier_->go_on(met->call, met->activity, met->bytes, at(40));
  EXPECT_TRUE(carrier_->start(6, kMessage, kMessage, at(40)));
  std::vector<std::uint32_t> done;
  for (const std::int64_t end : {160, 200}) {
    EXPECT_EQ(network_->next_event(), at(end));
    carrier_->advance(at(end), done);
  }
  EXPECT_EQ(done, (std::vector<std::uint32_t>{5, 6}));
  EXPECT_EQ(groups.transfers() + carrier_->transfers(), 2U);
  const network::LinkRecord before = groups.record(0, at(200)), after = network_->record(0);
  EXPECT_DOUBLE_EQ(before.bytes, 40);
  EXPECT_EQ(before.busy, Duration(40'000));
  EXPECT_DOUBLE_EQ(before.bytes + after.bytes, 200);
  EXPECT_EQ(before.busy + after.busy, Duration(200'000));
}

// 100 bytes at 7 GB/s take 14,285.7 ps, which the clock rounds to 14,286. After 10,000 ps 70 bytes have left,
// not 100 x 10,000 / 14,286 = 69.9986: folded runs, which isolate more calls, count what unfolded ones count.
TEST_F(OneLink, CountsARunningCallByItsRateNotByItsRoundedDuration) {
  system_.links[0].capacity = BytesPerSecond(7e9);
  IsolatedGroups groups = isolated();
  EXPECT_EQ(groups.duration(0), Duration(14'286));
  groups.begin(0, 0, at(0), 5, 9);
  EXPECT_DOUBLE_EQ(groups.record(0, at(10)).bytes, 70);
  EXPECT_DOUBLE_EQ(groups.record(0, at(20)).bytes, 100);
}

TEST_F(OneLink, IsNotMetAfterItsLastByte) {
  system_.activities[0].latency = Duration(10'000);
  IsolatedGroups groups = isolated();
  groups.begin(0, 0, at(0), 5, 9);
  EXPECT_FALSE(groups.meet(0, at(100)));  // on its way for 10 ns more
  EXPECT_DOUBLE_EQ(groups.record(0, at(100)).bytes, 100);
  groups.ended(0);
  groups.begin(0, 0, at(120), 5, 9);
  ASSERT_TRUE(groups.meet(0, at(120)));
  EXPECT_DOUBLE_EQ(groups.record(0, at(120)).bytes, 100);
}
}  // namespace topsim::executor::isolated_test

// Ports that send ahead of time (sim/network/packet/ahead.cpp) compute a packet's departure when it arrives.
// Packets must leave at the same picosecond as with an event for each departure, which costs more events.
#include <gtest/gtest.h>

#include <random>

#include "tests/packet/patterns.hpp"
#include "tests/packet/setups.hpp"

namespace topsim::network::packet::ahead_test {

struct Ran {
  std::vector<std::pair<std::int64_t, std::uint64_t>> delivered;
  std::vector<std::int64_t> bytes, busy;
  std::uint64_t events = 0, hops = 0;
};

// With one lane under credits ports send ahead of time. A second lane, even unused, makes every departure
// behind a waiting port an event: the reference.
Ran run(const Fabric& fabric, const std::vector<Flow>& flows, PacketSpec spec, int lanes,
        Duration changed_at = {}) {
  spec.lanes.count = lanes;
  Engine engine(fabric.graph, spec);
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const Flow& flow = flows[i];
    engine.send(engine.connect({fabric.hosts[flow.from], fabric.hosts[flow.to], i, 0, {}, {}, {}}),
                flow.bytes, flow.start, i);
  }
  if (changed_at > Duration{}) {
    for (PortIndex p = 0; p < fabric.graph.ports.size(); p += 5) {
      engine.run_until(SimTime(changed_at));
      engine.set_rate(p, BytesPerSecond(20e9), SimTime(changed_at));
    }
  }
  engine.run();
  Ran ran;
  for (const Completion& done : engine.delivered())
    ran.delivered.emplace_back(done.time.time_since_epoch().count(), done.tag);
  std::sort(ran.delivered.begin(), ran.delivered.end());
  for (PortIndex p = 0; p < fabric.graph.ports.size(); ++p) {
    ran.bytes.push_back(static_cast<std::int64_t>(engine.record(p).bytes));
    ran.busy.push_back(engine.record(p).busy.count());
  }
  EXPECT_EQ(engine.leak(), "");
  ran.events = engine.counters().events, ran.hops = engine.counters().hops;
  return ran;
}

std::vector<Flow> random_flows(std::size_t hosts, std::mt19937_64& random) {
  std::vector<Flow> flows;
  for (int i = 0; i < 24; ++i) {
    const std::size_t from = random() % hosts, to = random() % 3 == 0 ? 0 : random() % hosts;
    if (from != to)
      flows.push_back({from, to, Bytes(static_cast<std::int64_t>(1 + random() % 300'000)), 0,
                       SimTime(Duration(static_cast<std::int64_t>(random() % 20'000'000)))});
  }
  return flows;
}

// No two cables are alike, so that no two things happen at the same picosecond, where their order may differ.
TEST(SendingAhead, ChangesNoMoment) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE(testing::Message() << "case " << i);
    const LinkFigures link{BytesPerSecond(50e9),
                           Duration(50'000 + static_cast<std::int64_t>(random() % 2'000'000)),
                           FlowControl::credit};
    Fabric fabric = random() % 2 == 0 ? leaf_spine(3, 3, 2, link) : fat_tree(4, link);
    for (PortSpec& port : fabric.graph.ports) {
      port.rate = BytesPerSecond(50e9 + 5 * static_cast<double>(random() % 1'000'000'007));
      port.latency += Duration(static_cast<std::int64_t>(random() % 10'007));
    }
    PacketSpec spec;
    const PathChoice paths[] = {PathChoice::flow_hash, PathChoice::spray, PathChoice::destination};
    spec.path = paths[random() % 3];
    spec.buffer.cut_through = random() % 2 == 0;
    if (random() % 2 == 0) spec.lanes.buffer = Bytes(3 * 4122 + static_cast<std::int64_t>(random() % 60'000));
    const std::vector<Flow> flows = random_flows(fabric.hosts.size(), random);
    const Ran ahead = run(fabric, flows, spec, 1), moment = run(fabric, flows, spec, 2);
    ASSERT_EQ(ahead.delivered, moment.delivered);
    ASSERT_EQ(ahead.bytes, moment.bytes);
    ASSERT_EQ(ahead.busy, moment.busy);
    ASSERT_EQ(ahead.hops, moment.hops);
  }
}

// A permutation over a fat tree of 16 hosts under credits. Sending ahead, there is an event for each hop and
// a few more for ports that wait for credits: fewer than 1.2 per hop. With an event for each departure behind
// a port that waits: more than 1.3.
TEST(SendingAhead, CostsEventsOnlyForPortsThatWait) {
  const Fabric fabric = fat_tree(4, {50_GBps, 500_ns, FlowControl::credit});
  PacketSpec spec;
  const std::vector<Flow> flows = permutation(fabric, Bytes(2'000'000), 1);
  const Ran ahead = run(fabric, flows, spec, 1), moment = run(fabric, flows, spec, 2);
  EXPECT_LT(static_cast<double>(ahead.events), 1.2 * static_cast<double>(ahead.hops));
  EXPECT_GT(static_cast<double>(moment.events), 1.3 * static_cast<double>(moment.hops));
}

// Every fifth port slows down at 15 us. Packets that already had a later departure go back to their queue,
// and nothing is lost. The last message ends within 1 us of the reference; the difference comes from credits
// that were returned one link's latency early.
TEST(SendingAhead, TakesBackWhatHasNotLeftWhenALinkChanges) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 100; ++i) {
    SCOPED_TRACE(testing::Message() << "case " << i);
    const LinkFigures link{50_GBps, 500_ns, FlowControl::credit};
    Fabric fabric = leaf_spine(3, 3, 2, link);
    for (PortSpec& port : fabric.graph.ports)
      port.rate = BytesPerSecond(50e9 + 5 * static_cast<double>(random() % 1'000'000'007));
    PacketSpec spec;
    spec.path = PathChoice::flow_hash;
    const std::vector<Flow> flows = random_flows(fabric.hosts.size(), random);
    const Ran ahead = run(fabric, flows, spec, 1, 15_us), moment = run(fabric, flows, spec, 2, 15_us);
    ASSERT_EQ(ahead.delivered.size(), flows.size());
    ASSERT_EQ(ahead.bytes, moment.bytes);
    ASSERT_EQ(ahead.hops, moment.hops);
    const double last = static_cast<double>(moment.delivered.back().first);
    ASSERT_NEAR(static_cast<double>(ahead.delivered.back().first), last, 1e6);
  }
}
}  // namespace topsim::network::packet::ahead_test

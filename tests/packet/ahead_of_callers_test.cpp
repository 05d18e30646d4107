// A caller that answers completions, as the executor does: asking for what comes next before it happens
// (run_ahead) must not change anything, nor may records, twins and shared buffers.
#include <gtest/gtest.h>

#include <random>

#include "tests/packet/play.hpp"

namespace topsim::network::packet::ahead_of_callers_test {

// Message `tag` is sent at its time, or, where it has none, once message tag - `lag` has arrived.
struct Answered {
  std::vector<Sent> sent;
  std::vector<Duration> extra;
  std::size_t lag;
  std::vector<Changed> changed = {};
};

struct Caller {
  Episodes episodes;
  const Answered& job;
  std::map<std::pair<std::size_t, std::size_t>, const Channel*> channels;
  std::vector<Episodes::Done> waiting;
  std::vector<Told> told;

  void start(std::size_t tag, SimTime now) {
    const Sent& message = job.sent[tag];
    episodes.start(*channels.at({message.from, message.to}), message.bytes, job.extra[tag], tag, tag, now);
  }
  void collect() {
    waiting.insert(waiting.end(), episodes.done().begin(), episodes.done().end());
    episodes.done().clear();
    std::sort(waiting.begin(), waiting.end(), [](const Episodes::Done& a, const Episodes::Done& b) {
      return std::pair(a.time, a.order) < std::pair(b.time, b.order);
    });
  }
  [[nodiscard]] SimTime known() const { return waiting.empty() ? kNever : waiting.front().time; }
};

std::vector<Told> answer(const Fabric& fabric, const PacketSpec& spec, const Answered& job, bool ahead,
                         bool skip) {
  Caller caller{{fabric.graph, spec, skip}, job, {}, {}, {}};
  for (const Sent& message : job.sent) {
    const Channel*& channel = caller.channels[{message.from, message.to}];
    if (channel == nullptr)
      channel = &caller.episodes.open(
          {{fabric.hosts[message.from], fabric.hosts[message.to], message.from, 0, {}, {}, {}}});
  }
  std::size_t next_sent = 0, next_changed = 0;
  for (;;) {
    SimTime horizon = next_sent < job.lag ? job.sent[next_sent].time : kNever;
    if (next_changed < job.changed.size()) horizon = std::min(horizon, job.changed[next_changed].time);
    caller.collect();
    SimTime until{};
    if (ahead) until = caller.episodes.run_ahead(std::min(caller.known(), horizon));
    caller.collect();
    const SimTime now = std::min({caller.known(), std::max(until, caller.episodes.next_event()), horizon});
    if (now == kNever) return caller.told;
    caller.episodes.advance(now);
    caller.collect();
    while (caller.known() <= now) {
      const Episodes::Done done = caller.waiting.front();
      caller.waiting.erase(caller.waiting.begin());
      caller.told.push_back({done.time, done.tag});
      if (done.tag + job.lag < job.sent.size()) caller.start(done.tag + job.lag, now);
    }
    for (; next_changed < job.changed.size() && job.changed[next_changed].time <= now; ++next_changed)
      caller.episodes.set_rate(job.changed[next_changed].port, job.changed[next_changed].rate, now);
    for (; next_sent < job.lag && job.sent[next_sent].time <= now; ++next_sent) caller.start(next_sent, now);
  }
}

Answered draw(std::mt19937_64& random, std::size_t hosts) {
  Answered job;
  job.lag = 2 + random() % 8;
  const Bytes bytes(static_cast<std::int64_t>(1 + random() % 900'000));
  const Duration extra(static_cast<std::int64_t>(random() % 6'000'000));
  SimTime time{};
  for (std::size_t k = 0; k < 40; ++k) {
    if (random() % 2 == 0) time += Duration(static_cast<std::int64_t>(random() % 9'000'000));
    const std::size_t from = k < job.lag ? random() % hosts : job.sent[k - job.lag].to;
    const std::size_t step = random() % 2 == 0 ? 1 : 1 + random() % (hosts - 1);
    job.sent.push_back({time, from, (from + step) % hosts, random() % 8 == 0 ? Bytes(4096) : bytes});
    job.extra.push_back(random() % 8 == 0 ? Duration{} : extra);
  }
  return job;
}

TEST(Callers, GetTheSameAnswersWhetherOrNotTheyAskAhead) {
  std::mt19937_64 random(17);
  for (int i = 0; i < 200; ++i) {
    const FlowControl controls[] = {FlowControl::credit, FlowControl::pfc, FlowControl::pfc,
                                    FlowControl::none};
    const LinkFigures link{400_Gbitps, 500_ns, controls[random() % 4]};
    const Fabric fabric = random() % 2 == 0 ? star(9, link) : leaf_spine(3, 3, 2, link);
    PacketSpec spec;
    const std::int64_t least = link.flow_control == FlowControl::none ? 300'000 : 2'000'000;
    spec.buffer.total = Bytes(least << random() % 5);
    const CongestionControlKind kinds[] = {CongestionControlKind::none, CongestionControlKind::dcqcn,
                                           CongestionControlKind::hpcc};
    spec.congestion_control.kind = kinds[random() % 3];
    spec.path = PathChoice::flow_hash;
    const Answered job = draw(random, fabric.hosts.size());
    SCOPED_TRACE(testing::Message() << "case " << i);
    const std::vector<Told> plain = answer(fabric, spec, job, false, false);
    ASSERT_EQ(plain.size(), job.sent.size());
    ASSERT_EQ(answer(fabric, spec, job, true, false), plain);
    ASSERT_EQ(answer(fabric, spec, job, true, true), plain);
  }
}

// Three messages of 0.4 MB wait for ever at a port that has stopped: 1.2 MB of the switch's 8 MiB, and no
// events. Three senders to host 0 are paused earlier for that, before any of them has sent its 2 MB.
TEST(Callers, AreNotToldWhatTheBufferOfAFlowThatStandsStillChanges) {
  const Fabric fabric = star(8, {400_Gbitps, 500_ns});
  PacketSpec spec;
  spec.congestion_control.kind = CongestionControlKind::none;
  spec.buffer.total = 8_MiB;
  Answered job{{}, std::vector<Duration>(6), 6, {}};
  for (const std::size_t from : {4U, 5U, 6U}) job.sent.push_back({at(1_us), from, 7, 400'000_B});
  for (const std::size_t from : {1U, 2U, 3U}) job.sent.push_back({at(100_us), from, 0, 2'000'000_B});
  const std::vector<Sent> senders(job.sent.begin() + 3, job.sent.end());
  PortIndex stopped = 0;
  while (fabric.graph.ports[stopped].to != fabric.hosts[7]) ++stopped;
  job.changed.push_back({at(0_us), stopped, BytesPerSecond(0)});
  const std::vector<Told> whole = simulate_whole(fabric, spec, job.sent, job.changed);
  EXPECT_EQ(whole.size(), 3U);
  EXPECT_NE(whole.front().time, simulate_whole(fabric, spec, senders, {}).front().time);
  for (const bool ahead : {false, true}) EXPECT_EQ(answer(fabric, spec, job, ahead, true), whole);
}
}  // namespace topsim::network::packet::ahead_of_callers_test

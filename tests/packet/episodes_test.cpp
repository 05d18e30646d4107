// Episodes that repeat an earlier one are read from its record. The answer must be that of a simulation.
#include "sim/network/packet/episodes.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/packet/setups.hpp"

namespace topsim::network::packet::episodes_test {

struct Told {
  SimTime time;
  std::uint64_t tag;
  bool operator==(const Told& other) const { return time == other.time && tag == other.tag; }
};

// A job of rounds. In each round every host sends to its partner and, whenever it has received, sends again,
// `hops` times. `late` delays one host's first message of a round.
struct Job {
  int rounds = 6, hops = 3;
  Bytes bytes = 200'000_B;
  Duration pause = 2_ms;
  std::vector<std::pair<int, Duration>> late;  // round, by how much
};

struct Ran {
  std::vector<Told> told;
  std::vector<double> bytes;  // by port
  std::uint64_t hops = 0, simulated = 0, skipped = 0;
};

Ran run(const Fabric& fabric, const PacketSpec& spec, const Job& job, bool skip) {
  Episodes episodes(fabric.graph, spec, skip);
  const std::size_t n = fabric.hosts.size();
  std::vector<const Channel*> channels;
  for (std::size_t i = 0; i < n; ++i) {
    channels.push_back(
        &episodes.open({{fabric.hosts[i], fabric.hosts[(i + n / 2 + 1) % n], i, 0, {}, {}, {}}}));
  }
  Ran ran;
  std::uint64_t order = 0;
  SimTime now{};
  const auto send = [&](std::size_t host, int left) {
    episodes.start(*channels[host], job.bytes, 1_us, host << 8U | static_cast<std::uint64_t>(left), order++,
                   now);
  };
  for (int round = 0; round < job.rounds; ++round) {
    const SimTime begin = std::max(now, SimTime{} + round * job.pause);  // not before the last one is done
    std::vector<std::pair<SimTime, std::uint64_t>> due;  // messages to send, completions to hand out
    std::vector<std::pair<SimTime, std::size_t>> starts;
    for (std::size_t i = 0; i < n; ++i) starts.emplace_back(begin, i);
    for (const auto& [which, by] : job.late) {
      if (which == round) starts[1].first += by;
    }
    for (;;) {
      for (const Episodes::Done& done : episodes.done()) due.emplace_back(done.time, done.tag);
      episodes.done().clear();
      SimTime next = episodes.next_event();
      for (const auto& d : due) next = std::min(next, d.first);
      for (const auto& s : starts) next = std::min(next, s.first);
      if (next == kNever) break;
      now = next;
      episodes.advance(now);
      for (const Episodes::Done& done : episodes.done()) due.emplace_back(done.time, done.tag);
      episodes.done().clear();
      std::sort(due.begin(), due.end());
      std::vector<std::pair<SimTime, std::uint64_t>> later;
      for (const auto& d : due) {
        if (d.first > now) {
          later.push_back(d);
          continue;
        }
        ran.told.push_back({d.first, d.second});
        const auto left = static_cast<int>(d.second & 0xffU);
        if (left > 0) send((d.second >> 8U), left - 1);
      }
      due = later;
      std::vector<std::pair<SimTime, std::size_t>> rest;
      for (const auto& s : starts) {
        if (s.first <= now) send(s.second, job.hops);
        if (s.first > now) rest.push_back(s);
      }
      starts = rest;
    }
  }
  episodes.settle();
  ran.simulated = episodes.simulated();
  ran.skipped = episodes.skipped();
  ran.hops = episodes.counters().hops;
  for (PortIndex p = 0; p < fabric.graph.ports.size(); ++p) ran.bytes.push_back(episodes.record(p).bytes);
  return ran;
}

Fabric fabric_of(FlowControl control) {
  return leaf_spine(2, 4, 2, {400_Gbitps, 500_ns, control});
}

PacketSpec spec_of(PathChoice path, CongestionControlKind control) {
  PacketSpec spec;
  spec.path = path;
  spec.congestion_control.kind = control;
  return spec;
}

// Six equal rounds: the first is simulated, five are read from its record.
TEST(Episodes, ThatRepeatAreSimulatedOnceAndEndAtTheSamePicosecond) {
  for (const FlowControl control : {FlowControl::pfc, FlowControl::credit}) {
    for (const PathChoice path : {PathChoice::flow_hash, PathChoice::spray, PathChoice::adaptive}) {
      const PacketSpec spec = spec_of(path, CongestionControlKind::none);
      const Fabric fabric = fabric_of(control);
      const Ran skipped = run(fabric, spec, {}, true), simulated = run(fabric, spec, {}, false);
      EXPECT_EQ(skipped.told, simulated.told);
      EXPECT_EQ(skipped.bytes, simulated.bytes);
      EXPECT_EQ(skipped.hops, simulated.hops);
      EXPECT_EQ(skipped.skipped, 5U);
      EXPECT_EQ(simulated.skipped, 0U);
    }
  }
}

// One message comes late in three rounds. Such a round is simulated from its beginning; the others are read
// from records.
TEST(Episodes, ThatDifferByALateMessageAreSimulatedToTheSameAnswer) {
  Job job;
  job.late = {{2, 3_us}, {4, 3_us}, {5, Duration(1)}};
  const PacketSpec spec = spec_of(PathChoice::flow_hash, CongestionControlKind::none);
  const Fabric fabric = fabric_of(FlowControl::pfc);
  const Ran skipped = run(fabric, spec, job, true), simulated = run(fabric, spec, job, false);
  EXPECT_EQ(skipped.told, simulated.told);
  EXPECT_EQ(skipped.bytes, simulated.bytes);
  EXPECT_EQ(skipped.hops, simulated.hops);
  EXPECT_GE(skipped.skipped, 2U);  // rounds 1 and 3; 4 repeats 2
}

// Rounds that follow before the network is at rest are one long episode.
TEST(Episodes, ThatDoNotComeToRestGoOn) {
  Job job;
  job.pause = 20_us;
  const PacketSpec spec = spec_of(PathChoice::flow_hash, CongestionControlKind::none);
  const Fabric fabric = fabric_of(FlowControl::credit);
  EXPECT_EQ(run(fabric, spec, job, true).told, run(fabric, spec, job, false).told);
}

// A round repeats an earlier one only if its queue pairs begin at the same rate, that is, when DCQCN has
// recovered in the pause.
TEST(Episodes, BeginAlikeOnlyWhenCongestionControlHasRecovered) {
  PacketSpec spec = spec_of(PathChoice::flow_hash, CongestionControlKind::dcqcn);
  spec.ecn.kmin = 20_KiB, spec.ecn.kmax = 80_KiB;
  const Fabric fabric = fabric_of(FlowControl::pfc);
  for (const Duration pause : {1_ms, 50_ms}) {
    Job job;
    job.pause = pause;
    const Ran skipped = run(fabric, spec, job, true), simulated = run(fabric, spec, job, false);
    EXPECT_EQ(skipped.told, simulated.told);
    EXPECT_EQ(skipped.hops, simulated.hops);
  }
}

// Two equal stars without a common port. The second begins a round later and 30 us into each round, while the
// first is busy. All rounds of both repeat the first star's first round, the only one that is simulated.
TEST(Episodes, OfLikePartsOfANetworkAreOneRecord) {
  for (const FlowControl control : {FlowControl::credit, FlowControl::pfc}) {
    const LinkFigures link{400_Gbitps, 500_ns, control};
    const Fabric one = star(3, link);
    Graph both = one.graph;
    both.devices *= 2;
    const auto ports = static_cast<PortIndex>(one.graph.ports.size());
    for (PortSpec port : one.graph.ports) {
      port.from += one.graph.devices, port.to += one.graph.devices, port.reverse += ports;
      both.ports.push_back(port);
    }
    const auto run_pair = [&](const Graph& graph, bool skip) {
      Episodes episodes(graph, spec_of(PathChoice::flow_hash, CongestionControlKind::none), skip);
      std::vector<const Channel*> channels;
      for (const DeviceIndex shift : {DeviceIndex{0}, one.graph.devices}) {
        if (shift + one.graph.devices > graph.devices) continue;
        for (const std::size_t from : {0U, 1U})
          channels.push_back(
              &episodes.open({{one.hosts[from] + shift, one.hosts[2] + shift, from, 0, {}, {}, {}}}));
      }
      // 1 MB at 49 GB/s takes 21 us, two into one port 42 us. A round every 100 us, the second star's 30 us
      // later.
      for (int round = 0; round < 4; ++round) {
        for (std::size_t c = 0; c < channels.size(); ++c) {
          if (c >= 2 && round == 0) continue;
          const SimTime at = SimTime{} + round * 100_us + (c < 2 ? 0_us : 30_us);
          episodes.advance(at);
          episodes.start(*channels[c], 1'000'000_B, 1_us, c, c, at);
        }
      }
      while (episodes.next_event() != kNever) episodes.advance(episodes.next_event());
      return std::tuple(episodes.done().size(), episodes.simulated(), episodes.skipped(),
                        episodes.counters().hops);
    };
    const auto [done, events, skipped, hops] = run_pair(both, true);
    const auto [all_done, all_events, none, all_hops] = run_pair(both, false);
    const auto [one_done, one_events, of_one, one_hops] = run_pair(one.graph, true);
    EXPECT_EQ(done, 14U);  // two messages in four rounds, two in three
    EXPECT_EQ(hops, all_hops);
    EXPECT_EQ(4 * hops, 7 * one_hops);
    EXPECT_EQ(none, 0U);
    EXPECT_EQ(skipped, 6U);  // of 7
    EXPECT_EQ(events, one_events);
    EXPECT_LT(events, all_events);
  }
}

TEST(Episodes, OfRandomJobsHaveTheSameCompletionsSkippedOrNot) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 40; ++i) {
    Job job;
    job.rounds = 3 + static_cast<int>(random() % 6);
    job.hops = static_cast<int>(random() % 4);
    job.bytes = Bytes(static_cast<std::int64_t>(1 + random() % 100'000));
    job.pause = Duration(static_cast<std::int64_t>(10'000'000 + random() % 500'000'000));
    for (int k = 0; k < 2; ++k)
      job.late.emplace_back(static_cast<int>(random() % 8),
                            Duration(static_cast<std::int64_t>(random() % 9'000'000)));
    const FlowControl control = random() % 2 == 0 ? FlowControl::pfc : FlowControl::credit;
    const auto path = static_cast<PathChoice>(random() % 5);
    const PacketSpec spec = spec_of(path, CongestionControlKind::none);
    SCOPED_TRACE(testing::Message() << "case " << i << ", path " << static_cast<int>(path));
    const Fabric fabric = fabric_of(control);
    const Ran skipped = run(fabric, spec, job, true), simulated = run(fabric, spec, job, false);
    ASSERT_EQ(skipped.told, simulated.told);
    ASSERT_EQ(skipped.bytes, simulated.bytes);
  }
}
}  // namespace topsim::network::packet::episodes_test

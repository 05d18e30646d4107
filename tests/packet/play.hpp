// Messages played over regions and records (episodes.hpp), and over one engine that knows neither.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "sim/network/packet/episodes.hpp"
#include "tests/packet/setups.hpp"

namespace topsim::network::packet {

struct Sent {
  SimTime time;
  std::size_t from, to;  // hosts
  Bytes bytes;
};
struct Changed {
  SimTime time;
  PortIndex port;
  BytesPerSecond rate;
};
struct Told {
  SimTime time;
  std::uint64_t tag;
  bool operator==(const Told& other) const { return time == other.time && tag == other.tag; }
};
inline bool before(const Told& a, const Told& b) {
  return std::pair(a.time, a.tag) < std::pair(b.time, b.tag);
}
struct Ran {
  std::vector<Told> told;
  std::uint64_t skipped = 0, simulated = 0;  // episodes, events
  Counters counters;
};

// Plays what is sent and changed, by order of time; tells completions by time, then order of sending.
inline Ran play(const Graph& graph, const std::vector<DeviceIndex>& hosts, const PacketSpec& spec,
                const std::vector<Sent>& sent, bool skip, const std::vector<Changed>& changed = {}) {
  Episodes episodes(graph, spec, skip);
  std::map<std::pair<std::size_t, std::size_t>, const Channel*> channels;
  for (const Sent& message : sent) {
    const Channel*& channel = channels[{message.from, message.to}];
    if (channel == nullptr)
      channel = &episodes.open({{hosts[message.from], hosts[message.to], message.from, 0, {}, {}, {}}});
  }
  std::size_t next_sent = 0, next_changed = 0;
  std::uint64_t work = 0;
  for (;;) {
    SimTime next = episodes.next_event();
    if (next_sent < sent.size()) next = std::min(next, sent[next_sent].time);
    if (next_changed < changed.size()) next = std::min(next, changed[next_changed].time);
    if (next == kNever) break;
    episodes.advance(next);
    for (; next_changed < changed.size() && changed[next_changed].time <= next; ++next_changed)
      episodes.set_rate(changed[next_changed].port, changed[next_changed].rate, next);
    for (; next_sent < sent.size() && sent[next_sent].time <= next; ++next_sent) {
      const Sent& message = sent[next_sent];
      episodes.start(*channels[{message.from, message.to}], message.bytes, 0_us, next_sent, next_sent, next);
    }
    EXPECT_GE(episodes.work(), work);  // regions that meet are simulated again, which is more work, not less
    work = episodes.work();
  }
  episodes.advance(sent.back().time + std::chrono::seconds(10));  // everything is at rest
  Ran ran;
  for (const Episodes::Done& done : episodes.done()) ran.told.push_back({done.time, done.tag});
  std::sort(ran.told.begin(), ran.told.end(), before);
  ran.skipped = episodes.skipped(), ran.simulated = episodes.simulated();
  ran.counters = episodes.counters();
  return ran;
}

inline SimTime at(Duration time) {
  return SimTime(time);
}

inline PortIndex port_from(const Graph& graph, DeviceIndex device) {
  PortIndex port = 0;
  while (graph.ports[port].from != device) ++port;
  return port;
}

// The same with one engine for all ports.
inline std::vector<Told> simulate_whole(const Fabric& fabric, const PacketSpec& spec,
                                        const std::vector<Sent>& sent, const std::vector<Changed>& changed) {
  Engine engine(fabric.graph, spec);
  std::map<std::pair<std::size_t, std::size_t>, PairIndex> pairs;
  std::size_t next = 0;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    for (; next < changed.size() && changed[next].time <= sent[i].time; ++next) {
      engine.run_until(changed[next].time);
      engine.set_rate(changed[next].port, changed[next].rate, changed[next].time);
    }
    engine.run_until(sent[i].time);
    const auto [pair, fresh] = pairs.try_emplace({sent[i].from, sent[i].to}, PairIndex{});
    if (fresh)
      pair->second =
          engine.connect({fabric.hosts[sent[i].from], fabric.hosts[sent[i].to], sent[i].from, 0, {}, {}, {}});
    engine.send(pair->second, sent[i].bytes, sent[i].time, i);
  }
  engine.run();
  std::vector<Told> told;
  for (const Completion& done : engine.delivered()) told.push_back({done.time, done.tag});
  std::sort(told.begin(), told.end(), before);
  return told;
}
}  // namespace topsim::network::packet

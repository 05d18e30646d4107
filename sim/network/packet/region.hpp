// A region of the network while something is under way in it, and the record of an episode (episodes.hpp).
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "sim/network/packet/channel.hpp"

namespace topsim::network::packet {

// An engine and the queue pairs that channels have in it.
struct Workplace {
  explicit Workplace(const Graph& graph, const PacketSpec& spec) : engine(graph, spec) {}
  Engine engine;
  std::map<std::uint32_t, std::vector<PairIndex>> pairs;  // by channel
  std::size_t changes = 0;                                // of the rates, so many are in force
};

struct Record {
  struct Input {
    std::int64_t time;      // since the episode began
    std::uint32_t channel;  // by order of first use
    Bytes bytes;
    Duration extra;
    friend bool operator==(const Input&, const Input&) = default;
  };
  struct Output {
    std::int64_t time;
    std::uint32_t input;
  };
  using First = std::tuple<std::vector<std::uint32_t>, std::int64_t, std::int64_t>;  // words, bytes, extra

  std::vector<std::vector<std::uint32_t>> words;  // by channel
  std::vector<Input> inputs;
  std::vector<Output> outputs;     // by time
  std::int64_t end = 0;            // at rest again
  Tally usage{};                   // ports by local number, ascending
  bool draws = false;              // random numbers, so it is that of these ports alone
  std::vector<PortIndex> ports;    // by local number, where random numbers were drawn; else empty
  std::vector<BufferUse> buffers;  // by local number of the device
};

struct Region {
  enum class Mode : std::uint8_t { simulated, replayed, twin };
  struct Message {
    std::uint64_t tag, order, arrival;
    std::uint32_t parts = 0;
    bool told = false;  // its completion has been handed out
  };

  std::uint32_t number = 0;
  Mode mode = Mode::simulated;
  bool recording = false;  // the episode will be a record
  SimTime begin{};
  LocalNames names;
  std::vector<const Channel*> channels;          // by local number
  std::map<std::uint32_t, std::uint32_t> local;  // channel's number -> local number
  std::vector<std::vector<std::uint32_t>> words;
  std::vector<PortIndex> claims;
  struct Inflow {
    double all = 0, by_one_port = 0;  // bytes that may come into the buffer within Episodes::kMostAhead
  };
  std::map<DeviceIndex, Inflow> buffers;  // by device with a shared buffer
  std::vector<Record::Input> inputs;
  std::vector<Message> messages;  // beside inputs
  std::vector<Record::Output> outputs;
  Duration least_extra = Duration::max();
  const Record* followed = nullptr;
  Region* leader = nullptr;    // of a twin
  std::vector<Region*> twins;  // of a leader
  std::size_t next_output = 0;
  std::unique_ptr<Workplace> workplace;  // simulated, and somebody has asked what happens
  SimTime due = kNever;                  // the engine's next event, to be had without touching the engine
  bool to_collect = false;               // the engine has run since
  Duration shift{};                      // time here minus time of the engine
  SimTime rests = kNever;                // no event is pending, and everything is at rest from then on

  [[nodiscard]] std::int64_t since_begin(SimTime time) const { return (time - begin).count(); }
  [[nodiscard]] SimTime at(std::int64_t time) const { return begin + Duration(time); }
  [[nodiscard]] SimTime in_engine(SimTime time) const { return time == kNever ? kNever : time - shift; }
  void look_at_engine() {
    const SimTime next = workplace->engine.next_event();
    due = next == kNever ? kNever : next + shift;
  }
  [[nodiscard]] Engine& engine() const { return workplace->engine; }
  [[nodiscard]] Record::First first() const {
    return {words.front(), inputs.front().bytes.value(), inputs.front().extra.count()};
  }
  // Draws the same random numbers as the record, if any.
  [[nodiscard]] bool draws_like(const Record& record) const {
    const std::vector<PortIndex>& mine = names.ports();
    return !record.draws ||
           (mine.size() <= record.ports.size() && std::equal(mine.begin(), mine.end(), record.ports.begin()));
  }
  // Messages of this instant are still coming, and nothing of it need have happened.
  [[nodiscard]] bool waits(SimTime now) const {
    return mode == Mode::simulated && !workplace && !inputs.empty() && at(inputs.back().time) == now;
  }
};

// Whether the messages from number `first` on that both have had are the same; regions or records.
template <typename A, typename B>
[[nodiscard]] bool agree(const A& a, const B& b, std::size_t first) {
  const std::size_t common = std::min(a.inputs.size(), b.inputs.size());
  for (std::size_t i = first; i < common; ++i) {
    const std::uint32_t channel = a.inputs[i].channel;
    if (!(a.inputs[i] == b.inputs[i]) || a.words[channel] != b.words[channel]) return false;
  }
  return true;
}
}  // namespace topsim::network::packet

// Messages over an Engine, and what it does a second time skipped. An episode is what happens from a message
// that finds the network at rest until it is at rest again. Nothing that happens in it depends on anything
// but its messages and when they start relative to the first one, so an episode that begins like a recorded
// one is not simulated: its completions are read from the record as long as the messages that come are those
// of the record, at the same picosecond. Where they differ, the episode is simulated from its beginning with
// the messages so far, and goes on packet by packet: the answer is the same as without skipping, always.
//
// At rest: no packet, acknowledgement, credit or timer is under way and every queue pair sends at full rate.
// Packet numbers and the random sequence then begin anew, in skipped and simulated episodes alike. Not
// skipped: with loss (each repetition must draw its own), and under congestion control that remembers more
// than a rate limit which time takes away (HPCC, TIMELY, DCTCP).
#pragma once

#include <deque>
#include <map>
#include <tuple>
#include <vector>

#include "sim/network/packet/engine.hpp"

namespace topsim::network::packet {

// Queue pairs that share a message; its last part's arrival and `extra` later it is complete.
struct Channel {
  std::vector<PairIndex> pairs;
  Duration path_latency{};
};

class Episodes {
 public:
  // REQUIRES: graph outlives this. `skip` false: every episode is simulated.
  Episodes(const Graph& graph, const PacketSpec& spec, bool skip);

  [[nodiscard]] Engine& engine() { return engine_; }

  // `channel` is known by its address, which must stay. `order` decides among completions of one instant.
  void start(const Channel& channel, Bytes bytes, Duration extra, std::uint64_t tag, std::uint64_t order,
             SimTime now);
  [[nodiscard]] SimTime next_event();
  // Goes ahead to the first completion at or before `limit`; returns when something may be complete.
  [[nodiscard]] SimTime next_event_before(SimTime limit);

  void advance(SimTime now);  // brings everything up to `now`

  struct Done {
    SimTime time;
    std::uint64_t order, tag;
  };
  // Completions known since it was last emptied, also of times to come.
  [[nodiscard]] std::vector<Done>& done() { return done_; }
  // Simulates what has been skipped of the episode under way, so that the engine's records are those of now.
  void settle();
  void set_rate(PortIndex port, BytesPerSecond rate, SimTime now);
  [[nodiscard]] std::uint64_t skipped() const { return skipped_; }  // episodes not simulated

 private:
  enum class Mode : std::uint8_t { rest, simulated, replayed };
  struct Input {
    std::int64_t time;  // since the episode began
    std::uint32_t kind;
    bool operator==(const Input& other) const { return time == other.time && kind == other.kind; }
  };
  struct Output {
    std::int64_t time;
    std::uint32_t input;
  };
  struct Record {
    std::vector<Input> inputs;
    std::vector<Output> outputs;  // by time
    std::int64_t end = 0;         // at rest again
    Tally usage{};
  };
  struct Kind {
    const Channel* channel;
    Bytes bytes;
    Duration extra;
  };
  struct Message {  // of the episode under way
    std::uint64_t tag, order;
    std::uint32_t parts = 0;
    bool told = false;  // its completion has been handed out
  };

  [[nodiscard]] std::int64_t since_begin(SimTime time) const { return (time - begin_).count(); }
  [[nodiscard]] std::uint32_t kind_of(const Channel& channel, Bytes bytes, Duration extra);
  void close(SimTime now);  // the episode, if it is over by now
  void begin(std::uint32_t kind, SimTime now);
  void send(std::uint32_t input);
  void collect();
  void finish_record();
  bool follow_another(std::int64_t now);  // a record with the inputs so far and none missed before now
  void simulate_until(SimTime now);       // leaves the record

  Engine engine_;
  const bool skip_;
  Mode mode_ = Mode::rest;
  bool recording_ = false;  // the episode under way will be a record
  SimTime begin_{}, now_{};
  std::map<std::tuple<const Channel*, std::int64_t, std::int64_t>, std::uint32_t> kinds_by_;
  std::vector<Kind> kinds_;
  std::vector<Input> inputs_;      // of the episode under way
  std::vector<Message> messages_;  // beside inputs_
  std::vector<Output> outputs_;
  std::vector<Done> done_;
  std::deque<Record> records_;
  std::multimap<std::uint32_t, const Record*> by_first_;
  std::size_t recorded_inputs_ = 0;
  const Record* followed_ = nullptr;
  std::size_t next_output_ = 0;
  Tally before_;
  std::uint64_t skipped_ = 0, left_ = 0;
};
}  // namespace topsim::network::packet

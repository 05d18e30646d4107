// Messages over engines, where repetitions are skipped.
//
// A region is a set of active channels that touch each other: they share a port, or a device's buffer that
// they may fill (shared_buffers.cpp). It does not depend on anything outside, so each region has an engine of
// its own while it is simulated; a message that touches two regions makes them one.
//
// An episode is the time of a region from a message that finds its ports at rest until they are at rest
// again. It depends only on its messages and on their start times relative to the first one. So an episode
// that begins like a recorded one is not simulated: its completions are read from the record as long as
// further messages equal those of the record, to the picosecond. Where they differ, the episode is simulated
// from its beginning with the messages so far, and continues packet by packet. The answer is always the same
// as without skipping, also for regions that meet. Records number ports and channels in the order of their
// first use (LocalNames): rings on eight similar rails are one record.
//
// Where random numbers were drawn, a record holds for the same ports alone: each port draws its own.
//
// Twins are regions that begin at the same instant and have the same messages while nothing is recorded yet:
// one of them, the leader, is simulated for all (twins.cpp).
//
// At rest: no packet, acknowledgement, credit or timer is pending and every queue pair sends at full rate.
// Packet numbers and random sequences then begin anew, in skipped and simulated episodes alike. Not skipped,
// and one region for good: with loss (each repetition must draw its own).
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "sim/network/packet/channel.hpp"
#include "sim/network/packet/region.hpp"

namespace topsim::network::packet {

class Episodes {
 public:
  // REQUIRES: graph outlives this. `skip` false: every episode is simulated.
  Episodes(const Graph& graph, const PacketSpec& spec, bool skip);
  ~Episodes();
  // Once `stopped` returns true nothing more is simulated; known completions stay. Polled now and then.
  void stop_when(std::function<bool()> stopped) { stopped_ = std::move(stopped); }

  // Throws ConfigError where an end cannot be reached. The channel stays where it is.
  [[nodiscard]] const Channel& open(const std::vector<Connection>& connections);
  // Sends a message, which is complete `extra` after its last byte has arrived. `order` decides among
  // completions of one instant. REQUIRES: now does not run backwards over calls.
  void start(const Channel& channel, Bytes bytes, Duration extra, std::uint64_t tag, std::uint64_t order,
             SimTime now);
  [[nodiscard]] SimTime next_event() const;
  // Simulates ahead until done() has the earliest completion at or before `limit`, if there is one. Returns
  // up to when the caller may advance() next: until then nothing else completes.
  SimTime run_ahead(SimTime limit);
  void advance(SimTime now);  // brings everything up to `now`. REQUIRES: now <= next_event() or run_ahead()

  struct Done {
    SimTime time;
    std::uint64_t order, tag;
  };
  // Completions known since it was last emptied, also of times to come.
  [[nodiscard]] std::vector<Done>& done() { return done_; }
  void set_rate(PortIndex port, BytesPerSecond rate, SimTime now);  // 0: the link is down
  // From now on the channel takes these paths (Engine::move), also for messages in flight; no effect where it
  // has them already. REQUIRES: it was opened here, with the same receiver and as many pairs.
  void move(const Channel& channel, const std::vector<Connection>& connections, SimTime now);

  // Simulates what has been read from records of current episodes, so that what follows is exact.
  void settle();
  // Up to the last advance(). An episode that is being skipped counts evenly over its time.
  [[nodiscard]] LinkRecord record(PortIndex port) const;
  [[nodiscard]] Bytes most_waiting(PortIndex port) const;
  [[nodiscard]] Duration paused(PortIndex port) const;
  [[nodiscard]] Counters counters() const;  // without episodes that are being read from records
  [[nodiscard]] std::vector<Deadlock> deadlocks() const;
  [[nodiscard]] std::uint64_t skipped() const { return skipped_; }      // episodes not simulated
  [[nodiscard]] std::uint64_t simulated() const { return simulated_; }  // events of those that were
  // Events handled, those that were simulated a second time included; never falls.
  [[nodiscard]] std::uint64_t work() const;

 private:
  using Input = Record::Input;

  // Where regions share a buffer, one is simulated at most so far beyond the next event of another.
  static constexpr Duration kMostAhead = std::chrono::microseconds(1);

  // A change of the network itself: a link's rate, or a channel's path.
  struct Change {
    SimTime time;
    std::uint64_t arrival;  // among messages
    PortIndex port = kNone;
    BytesPerSecond before{}, after{};
    struct Ways {
      std::uint32_t channel;
      std::vector<Channel::Ends> before, after;
    };
    std::shared_ptr<const Ways> ways = nullptr;
  };

  // episodes.cpp
  void advance(Region& region, SimTime now);
  bool close(Region& region, SimTime now);  // true: it had ended, and is removed
  void run_to_delivery(Region& region, SimTime time);
  [[nodiscard]] SimTime next(const Region& region) const;
  [[nodiscard]] static SimTime next_completion(const Region& region, SimTime next);

  // regions.cpp
  Region& region_for(const Channel& channel, SimTime now);
  Region& join(const std::vector<std::uint32_t>& numbers);
  void claim(Region& region, const Channel& channel);
  void add_input(Region& region, const Channel& channel, Bytes bytes, Duration extra, SimTime now);
  void attach(Region& region);                                 // gives it an engine with the messages so far
  void follow_changes(Region& region, std::uint64_t arrival);  // all before that
  void make(Workplace& work, const Change& change, bool undo, SimTime time);
  void changed();  // the records become invalid
  [[nodiscard]] std::vector<std::uint32_t> touched_by(const Channel& channel, SimTime now);
  void find_ways(const std::vector<Connection>& connections, Channel& channel);
  // The paths of a channel after the changes that the engine has.
  [[nodiscard]] const std::vector<Channel::Ends>& ways_in(const Workplace& work,
                                                          const Channel& channel) const;
  void send(Region& region, std::uint32_t input);
  void collect(Region& region);
  void hand_out(Region& region, std::uint32_t input, SimTime time);
  void release(Region& region);
  [[nodiscard]] Region* owner(PortIndex port) const;
  [[nodiscard]] Tally::Row sum(PortIndex port) const;

  // shared_buffers.cpp
  void share_buffers(Region& region, PortIndex port);  // that the port fills
  void stop_sharing(const Region& region);
  [[nodiscard]] BufferUse use_of(const Region& region, DeviceIndex device) const;
  [[nodiscard]] bool fit(DeviceIndex device) const;
  void keep_apart(const Region& region);  // or join it to those that share a buffer with it
  bool keep_all_apart();                  // false: some have been joined
  Region& join_sharers(DeviceIndex device);

  // records.cpp
  void begin(Region& region);  // follows a record or is simulated
  [[nodiscard]] bool follow(Region& region, SimTime now);
  const Record& keep(Region& region, Tally usage);
  [[nodiscard]] Tally in_place(const Region& region, const Tally& local) const;
  void add(const Tally& tally);

  // twins.cpp
  void simulate(Region& region);        // or becomes the twin of a region that is
  void simulate_alone(Region& region);  // with an engine of its own
  [[nodiscard]] bool become_twin(Region& region);
  void leave(Region& twin);  // its leader does something else
  void compare_twins(Region& region, std::uint32_t input);
  void part_before(SimTime time);  // twins that have not had the same messages by then
  void part_if_drawn(Region& leader);
  void part_all();
  void tell_twins(Region& leader, std::uint32_t input, SimTime time);
  void replay_twins(Region& leader, const Record& record);
  void withdraw(Region& region);  // it will be no more: its twins get another leader

  const Graph& graph_;
  const PacketSpec spec_;
  const bool apart_, skip_;
  std::function<bool()> stopped_;
  Engine planner_;  // finds paths, sends nothing
  LocalNames::Classes classes_;
  std::deque<Channel> channels_;                              // by number
  std::vector<std::unique_ptr<Workplace>> idle_;              // engines at rest
  std::vector<Change> changes_;                               // by time
  std::map<std::uint32_t, std::unique_ptr<Region>> regions_;  // by number
  std::uint32_t next_region_ = 0;
  std::vector<std::uint32_t> claimed_;               // by port: the region's number; kNone
  std::vector<std::vector<const Region*>> sharers_;  // by device: regions that use its shared buffer
  std::set<DeviceIndex> contended_;                  // with several sharers
  SimTime now_{};
  SimTime all_sent_before_{};  // messages that start earlier have come
  SimTime told_until_{};       // completions up to then have been reported
  std::uint64_t arrivals_ = 0;
  std::vector<Done> done_;
  std::deque<Record> records_;
  std::multimap<Record::First, const Record*> by_first_;
  std::multimap<Record::First, Region*> leaders_;  // regions that are simulated, for twins
  std::size_t recorded_inputs_ = 0;
  std::vector<Tally::Row> totals_;  // by port: of episodes that are over
  Counters counters_;
  std::uint64_t skipped_ = 0, simulated_ = 0;
  std::uint64_t spent_ = 0;  // events of engines whose regions have been joined
};
}  // namespace topsim::network::packet

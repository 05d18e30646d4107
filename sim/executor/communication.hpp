// Running calls: who has arrived at which collective, message or host copy. The k-th arrivals of the same
// shape on the same communicator or edge belong together, as in NCCL.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "sim/executor/carrier.hpp"
#include "sim/executor/outcome.hpp"
#include "sim/executor/trace.hpp"
#include "sim/fold/fold.hpp"

namespace topsim::executor {

struct Call {
  std::uint32_t group = 0, activity = 0;
  std::uint32_t missing = 0;       // members still to arrive
  std::vector<std::uint32_t> ops;  // by member of the group: its op, kNoOp until it arrives
  // Once its bytes have arrived it goes on for what its members' kernels held it back.
  std::vector<std::int64_t> paid;  // by member: ComputeState::filled_at() that is counted already
  std::int64_t traffic = 0;  // of the memory, while the bytes were on their way; 0 until they have arrived
  bool extended = false;     // nothing is added any more
  SimTime ready{};
  bool carried = false;  // the network has it
  // The member that arrived last; of several at one instant the one with the highest number, so that the
  // order in which events are handled does not matter.
  std::uint32_t last_rank = kNoOp, last_op = kNoOp;
  SimTime last{};
};

class Calls {
 public:
  Calls(const program::Program& program, const fold::System& system);

  // A rank class reaches a communication op; returns the call it joins.
  std::uint32_t arrive(std::uint32_t rank, std::uint32_t index, const program::Op& op);
  [[nodiscard]] bool complete(std::uint32_t call) const { return calls_[call].missing == 0; }
  Call& operator[](std::uint32_t call) { return calls_[call]; }
  // f(rank class, op) for all that have arrived.
  template <class F>
  void for_members(std::uint32_t call, F&& f) const {
    const auto& members = system_.groups[calls_[call].group].members;
    for (std::size_t m = 0; m < members.size(); ++m) {
      if (calls_[call].ops[m] != kNoOp) f(members[m], calls_[call].ops[m]);
    }
  }
  void close(std::uint32_t call);

  // Bytes of memory a second that an activity moves on each member, at the rate it has alone.
  [[nodiscard]] std::int64_t memory_traffic(std::uint32_t activity) const { return traffic_[activity]; }
  // The same of a call that took so long.
  [[nodiscard]] std::int64_t memory_traffic(std::uint32_t activity, Duration took) const {
    if (took <= Duration{}) return 0;
    const fold::Activity& a = system_.activities[activity];
    return std::llround(static_cast<double>(a.bytes.value()) * a.memory_traffic / seconds(took));
  }
  // The link class that an activity uses to the highest share when nothing else runs; it limits the activity
  // unless the activity's own cap is lower.
  [[nodiscard]] std::uint32_t tightest_link(std::uint32_t activity) const { return tightest_[activity]; }
  [[nodiscard]] bool is_capped(std::uint32_t activity) const { return capped_[activity]; }
  // What a communication op asks for; a receiver's first kind of message stands for all of them.
  [[nodiscard]] std::uint32_t activity_of(std::uint32_t rank, std::uint32_t index) const;
  [[nodiscard]] std::vector<OpCharge> charges(std::uint32_t rank) const;
  // Ranks with equal keys have equal charges.
  [[nodiscard]] std::vector<std::uint32_t> charge_key(std::uint32_t rank) const;

  // `calls` of them, on each communicator of the class, took `total` together.
  void record(std::uint32_t group, std::uint32_t activity, Duration total, std::uint64_t calls = 1);
  // A call that all members have joined already, each with its op `index`.
  std::uint32_t joined(std::uint32_t group, std::uint32_t activity, std::uint32_t index, SimTime ready);
  [[nodiscard]] std::vector<CollectiveRecord> records(const Carrier& carrier) const;

 private:
  std::uint32_t fresh(std::uint32_t group, std::uint32_t activity);
  struct Tally {  // of one communicator: fits as long as the clock does
    std::uint32_t group = fold::System::kNone;
    std::uint64_t calls = 0;
    Duration total{};
  };
  [[nodiscard]] std::uint32_t group_of(std::uint32_t rank, const program::Op& op) const;
  [[nodiscard]] std::uint32_t member_of(std::uint32_t group, std::uint32_t rank, const program::Op& op) const;

  const program::Program& program_;
  const fold::System& system_;
  std::vector<Call> calls_;
  std::vector<std::uint32_t> free_;
  std::vector<std::vector<std::uint32_t>> open_;  // by group: calls that wait for members, oldest first
  std::vector<std::int64_t> traffic_;
  std::vector<std::uint32_t> tightest_;
  std::vector<bool> capped_;
  std::vector<Tally> tallies_;  // by activity
};
}  // namespace topsim::executor

// Rank classes that are alike for a while are executed as one. The members of a team are those of an isolated
// communicator (isolated.hpp), or of a circle of them, which are called at the same time. While their states
// agree and nothing from outside the team reaches them, they compute and call these communicators in the same
// way, so one of them is walked without events and the others take over what it did. This is exact: the same
// rules with the same rounding, only applied less often. What comes from outside (a message, another
// communicator's end) ends the walk at that instant, and each continues alone until they agree again. It
// keeps runs cheap whose classes cannot be folded permanently (ECMP).
//
// A walk depends on little: the positions of the team's streams, which outside dependencies are done, and
// what computes. Teams of replicas reach the same states again and again, so walks are remembered
// (walk_memory.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "sim/executor/accounting.hpp"
#include "sim/executor/communication.hpp"
#include "sim/executor/isolated.hpp"
#include "sim/executor/rank_state.hpp"
#include "sim/executor/walk_memory.hpp"

namespace topsim::executor {

class LockStep {
 public:
  struct World {
    const program::Program& program;
    const fold::System& system;
    const std::vector<StreamTable>& tables;  // by program class
    const std::vector<std::vector<OpCharge>>& charges;
    const std::vector<std::uint32_t>& charge_of;  // by rank class
    const IsolatedGroups& isolated;
    const Calls& calls;
    std::vector<RankState>& ranks;
    bool explained;  // RunOptions
  };
  // REQUIRES: what `world` refers to outlives it. `allowed` false: no teams.
  LockStep(const World& world, bool allowed);

  static constexpr std::uint32_t kNone = 0xffffffffU;
  // That of its circle first. kNone where there is none.
  using Teams = std::array<std::uint32_t, 2>;
  [[nodiscard]] const Teams& teams_of_rank(std::uint32_t rank) const { return teams_of_rank_[rank]; }
  [[nodiscard]] const Teams& teams_of_group(std::uint32_t group) const { return teams_of_group_[group]; }
  [[nodiscard]] const std::vector<std::uint32_t>& members(std::uint32_t team) const {
    return teams_[team].members;
  }
  [[nodiscard]] std::size_t teams() const { return teams_.size(); }
  [[nodiscard]] const std::vector<std::uint32_t>& groups(std::uint32_t team) const {
    return teams_[team].groups;
  }
  // A kind of call of the team's communicators: of all that the members have in one slot.
  struct Call {
    std::uint32_t group, activity;
  };
  using Shape = std::vector<Call>;
  [[nodiscard]] const std::vector<Shape>& shapes(std::uint32_t team) const { return teams_[team].shapes; }
  // Tells the traces of the team's members what kOwnTeam stands for.
  void name_last(std::uint32_t team, std::vector<Trace>& traces) const;

  // Whether the members' states agree at `now`, where a call has just begun or ended.
  [[nodiscard]] bool agree(std::uint32_t team, SimTime now) const;

  // Walks from `from`, where the members agree, to where the first of them would do something else than
  // compute or call the team's communicators one at a time, but not beyond `limit`.
  void walk(std::uint32_t team, SimTime from, SimTime limit, Walk& result);
  // How many walks there were, and how many of them were not simulated since an equal one was known.
  [[nodiscard]] std::uint64_t walks() const { return walks_; }
  [[nodiscard]] std::uint64_t remembered() const { return remembered_; }
  // Gives every member the state and the trace at the end of `walk`, and its share of ops.
  void take_over(std::uint32_t team, const Walk& walk);

 private:
  struct Team {
    std::vector<std::uint32_t> members;
    std::vector<std::uint32_t> groups;
    std::vector<Shape> shapes;
    std::map<std::uint32_t, std::uint32_t> first_shape;  // by slot of its groups
    std::uint16_t program_class;
    std::vector<std::uint32_t> slot;   // by stream: one that it calls, kNone if none or not local
    std::vector<bool> local;           // by stream: only compute, or only calls of the team's communicators
    StreamSet local_set = 0;           // those
    std::vector<std::uint16_t> outer;  // the other streams
    std::uint32_t profile = kNone;     // teams of one profile walk alike from the same state
  };
  // Of a stream with effects outside the team: the positions of its last and of its first member.
  struct Span {
    std::uint32_t least, most;
  };
  // A head of such a stream, of one or more members.
  struct Outward {
    std::uint16_t stream;
    std::uint32_t op;
  };
  void add_team(const std::vector<std::uint32_t>& members, std::size_t level);
  bool add_slot(Team& team, std::uint32_t slot) const;
  // The slots that the streams of a program call, by stream, where these are local to teams that call
  // communicators of `slots`; stream 0 calls none. Empty where there can be no such team.
  using Slots = std::vector<std::uint32_t>;
  using Streams = std::vector<std::optional<Slots>>;
  [[nodiscard]] Streams local_streams(std::uint16_t program_class, const Slots& slots) const;
  // The last member of the group that the rank calls in the slot.
  [[nodiscard]] std::uint32_t last_member(std::uint32_t slot, std::uint32_t rank) const {
    return world_.system.groups[world_.system.group_of[slot][rank]].members.back();
  }
  [[nodiscard]] std::uint32_t shape_of(const Team& team, std::uint32_t op) const;
  [[nodiscard]] std::uint32_t profile_of(Team& team);
  void look_around(const Team& team);
  void describe(Team& team, SimTime from, SimTime limit);
  void go(const Team& team, SimTime limit, Walk& walk);
  void collect_trace(const Team& team, Walk& walk);
  [[nodiscard]] bool comes_later(std::uint32_t op, SimTime issued, SimTime now);
  [[nodiscard]] bool outside_done(const Team& team, std::uint32_t member, std::uint32_t op) const;
  [[nodiscard]] bool outside_done(const Team& team, std::uint32_t op, std::uint32_t Span::*which) const;
  [[nodiscard]] bool inside_done(const Team& team, std::uint32_t op) const;
  bool start_heads(const Team& team, SimTime now, Walk& walk);
  void start(const Team& team, std::uint32_t op, SimTime issued, SimTime now, Walk& walk);
  void arrive(const Team& team, SimTime now, Walk& walk);
  [[nodiscard]] bool extend(const Team& team, SimTime now, Walk& walk);
  void explain(std::uint32_t op, SimTime issued, SimTime now, Walk& walk);
  void finish(std::uint32_t op, SimTime now, Walk& walk);
  void occupy(std::uint32_t op, std::uint32_t activity, int sign, SimTime now);

  World world_;
  std::vector<Team> teams_;
  std::vector<Teams> teams_of_rank_, teams_of_group_;
  std::map<std::pair<std::uint16_t, Slots>, Streams> local_streams_;
  std::map<std::vector<std::uint64_t>, std::uint32_t> profiles_;
  WalkMemory memory_;
  std::uint64_t walks_ = 0, remembered_ = 0;
  // Of the current walk.
  std::optional<RankState> walker_;
  std::uint32_t leader_ = 0, budget_ = 0;
  std::uint32_t synced_at_start_ = kNoOp;
  std::vector<Outward> outward_;
  std::vector<Span> spans_;  // by stream
  SimTime from_{}, next_issue_{}, host_free_{};
  bool hosts_agree_ = true;
  HostBound host_;
  std::vector<std::uint64_t> key_;
  std::vector<OpTrace> taken_;
  std::vector<WaitLeg> legs_;
};
}  // namespace topsim::executor

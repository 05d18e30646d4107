// Rank classes that are alike for a while run as one. The members of a team share an isolated communicator
// (isolated.hpp); while their states agree and nothing from outside the team reaches them, computing and
// calling that communicator goes the same way for all, so one of them is walked without events and the others
// take over what it did. Exact: the same rules with the same rounding, only looked up less often. What comes
// from outside (a message, another communicator's end) ends the walk at that instant, and each goes on alone
// until they agree again. This is what keeps runs cheap whose classes cannot be folded for good (ECMP).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/executor/accounting.hpp"
#include "sim/executor/communication.hpp"
#include "sim/executor/isolated.hpp"
#include "sim/executor/rank_state.hpp"

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
  };
  // REQUIRES: what `world` refers to outlives it. `allowed` false: no teams.
  LockStep(const World& world, bool allowed);

  static constexpr std::uint32_t kNone = 0xffffffffU;
  [[nodiscard]] std::uint32_t team_of_rank(std::uint32_t rank) const { return team_of_rank_[rank]; }
  [[nodiscard]] std::uint32_t team_of_group(std::uint32_t group) const { return team_of_group_[group]; }
  [[nodiscard]] const std::vector<std::uint32_t>& members(std::uint32_t team) const;
  [[nodiscard]] std::size_t teams() const { return teams_.size(); }
  [[nodiscard]] std::uint32_t group(std::uint32_t team) const { return teams_[team].group; }

  // Whether the members' states agree at `now`, right after a call of the team's communicator.
  [[nodiscard]] bool agree(std::uint32_t team, SimTime now) const;

  // The call under way at the end of a walk.
  struct OpenCall {
    std::uint32_t op, activity;
    SimTime begin, end;
  };
  // What a walk came to. Times are what each member spent.
  struct Walk {
    SimTime until{};            // events before this instant are done
    SimTime accounted_until{};  // busy and idle below end here
    Duration busy{};
    std::array<Duration, kReasons> idle{};
    std::uint32_t ops = 0;  // done, by each member
    struct Tally {
      std::uint64_t calls = 0;
      Duration total{};
    };
    std::vector<Tally> calls;  // by the group's activities: ended
    std::optional<OpenCall> open;
    std::vector<std::uint32_t> next;  // by stream, at the end
    ComputeState compute;
    SimTime host_free{};
    std::uint32_t synced = kNoOp;
    int ctas = 0;
    std::int64_t memory_traffic = 0;
  };
  // Walks from `from`, where the members agree, to where the first of them would do something else than
  // compute or call the team's communicator, but not beyond `limit`. Writes the trace of the first member.
  void walk(std::uint32_t team, SimTime from, SimTime limit, Walk& result);
  // Gives every member the state and the trace that `walk` came to, and its share of ops.
  void take_over(std::uint32_t team, const Walk& walk);

 private:
  struct Team {
    std::uint32_t group;
    std::uint16_t program_class;
    std::vector<bool> local;  // by stream: only compute, or only calls of the team's communicator
  };
  // A head of a stream that leaves the team, of one or more members.
  struct Outward {
    std::uint16_t stream;
    std::uint32_t op;
  };
  void add_team(std::uint32_t group, std::uint32_t slot);
  [[nodiscard]] bool outside_done(const Team& team, std::uint32_t member, std::uint32_t op) const;
  [[nodiscard]] bool inside_done(const Team& team, std::uint32_t op) const;
  void look_outward(const Team& team);
  bool start_heads(const Team& team, SimTime now, Walk& walk);
  void start(const Team& team, std::uint32_t op, SimTime issued, SimTime now, Walk& walk);
  void finish(std::uint32_t op, SimTime now, Walk& walk);
  static void share_trace(RankState& rank, const RankState& leader, std::uint16_t stream, std::uint32_t end);
  void occupy(std::uint32_t activity, int sign, SimTime now);

  World world_;
  std::vector<Team> teams_;
  std::vector<std::uint32_t> team_of_rank_, team_of_group_;
  // Of the walk under way.
  std::optional<RankState> walker_;
  std::uint32_t leader_ = 0;
  std::vector<Outward> outward_;
  SimTime next_issue_{};
  bool hosts_agree_ = true;
  std::vector<WaitLeg> legs_;
};
}  // namespace topsim::executor

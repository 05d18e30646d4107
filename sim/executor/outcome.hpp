// What the executor hands to metrics and reports: integers and columns, nothing formatted.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/units.hpp"
#include "sim/collective/collective.hpp"
#include "sim/executor/options.hpp"
#include "sim/program/program.hpp"

namespace topsim::executor {

// Why an accelerator's compute stream is empty. Disjoint; with busy they sum to the step in integer
// picoseconds.
enum class Reason : std::uint8_t {
  pipeline_bubble,
  tensor_parallel,
  data_parallel,
  pipeline_transfer,
  context_parallel,
  expert_parallel,
  straggler,
  host,
  offload,
  other,
};
inline constexpr std::size_t kReasons = 10;
[[nodiscard]] std::string_view name_of(Reason reason);

struct StepAccount {
  Duration busy{};
  std::array<Duration, kReasons> idle{};
  Duration slowed{};                // of busy: how much longer kernels took beside communication than alone
  Duration communication{};         // in which a collective or message of the rank is under way
  Duration hidden_communication{};  // of it: in which the rank computes as well
};

// Ranks that behave alike; without folding every class has one member.
struct RankClass {
  std::uint16_t program_class = 0;
  std::vector<RankId> members;     // ascending; [0] stands for all
  std::vector<StepAccount> steps;  // measured steps (after warm-up); per member
};

struct LinkClass {
  std::vector<LinkId> members;  // ascending; [0] stands for all
  double bytes = 0;             // per member, over the measured steps
  double peak_rate = 0;         // bytes/s
  Duration busy{};
};

struct CollectiveRecord {
  program::Dimension dimension;
  program::CollectiveKind kind;
  Bytes bytes;
  std::uint32_t group_size = 0;
  std::uint64_t calls = 0;  // over the measured steps, all communicators of the class
  // Of calls, from the last member's arrival to completion: their mean (halves up), their sum in seconds.
  // Picoseconds of all communicators together need not fit a Duration.
  Duration each{};
  double seconds = 0;
  double bus_factor = 1;
  collective::Choice choice;
  collective::Algorithm chosen{};  // the library's, for which another's messages may stand in
};

// One op of one rank class, or one transfer; for the timeline and the trace. Off unless asked for.
struct TimelineEvent {
  std::uint32_t rank_class;
  std::uint32_t op;  // index in the RankProgram
  std::uint16_t step;
  std::uint16_t stream;
  SimTime begin, end;  // collectives: begin = own arrival; see `ready`
  SimTime ready;       // collectives: last member's arrival; recv: the send's begin; else = begin
};
struct IdleInterval {
  std::uint32_t rank_class;
  Reason reason;
  SimTime begin, end;
};

// Rate of a link class from `time` until its next sample, per member; with the timeline only. Ascending in
// time.
struct LinkSample {
  std::uint32_t link_class;  // index into Outcome::links
  SimTime time;
  double rate;  // bytes/s
};

// One leg of the critical path, latest first as walked, then reversed.
struct PathLeg {
  std::uint32_t rank_class, op;
  Duration share{};        // time on the path
  Reason reason;           // `other` with compute = busy
  LinkId limiting_link{};  // communication: the link that limited it, if one did
  LinkId paced_link{};     // else the link it presses hardest: the protocol's own pace limited it there
  Duration latency{};      // communication: what of the share does not depend on the bytes
  Duration slowed{};       // computing: of the share, what communication beside it cost
  bool for_units = false;  // a collective's kernel waits until kernels of computation leave it units
};

// A port into a NIC that senders had more for than it carries, where nothing slows them: credits or PFC then
// stop whatever waits behind their packets, and a fluid model does not show whom.
struct Crowd {
  // From which load on it counts: three senders, since two meet now and then in any step; less on a port that
  // a fault slows, which lasts.
  static constexpr double kLoad = 2.5, kSlowed = 1.5;
  LinkId port;
  double load = 0;  // of its capacity, the most at a time
  Duration time{};  // for which it was crowded
};

struct Outcome {
  std::vector<Duration> step_times;  // measured steps
  SimTime measured_begin{}, end{};
  std::vector<RankClass> ranks;
  std::vector<LinkClass> links;  // links that carried bytes
  std::vector<CollectiveRecord> collectives;
  std::vector<TimelineEvent> timeline;
  std::vector<IdleInterval> idle;
  std::vector<LinkSample> link_samples;
  std::vector<PathLeg> critical_path;
  std::uint64_t events = 0, flows = 0, packets = 0;
  std::uint64_t walks = 0, remembered_walks = 0;  // in lock-step (lock_step.hpp)
  std::size_t group_classes = 0;
  CollectiveForm form = CollectiveForm::pipelined;  // in which calls were carried, whatever was asked
  double least_efficiency = 1;                      // of a link that flows met on (RunOptions::congestion)
  std::optional<Crowd> crowd;                       // the longest of the run, if any port was crowded
  std::vector<std::string> network_remarks;         // what the network model has to report, a sentence each
  bool folded = true, complete = true;
};
}  // namespace topsim::executor

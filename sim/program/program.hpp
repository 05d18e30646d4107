// What every rank does in one step, before any time on the network is known.
//
// Replicas of a pipeline stage share one RankProgram; its ops are in the order in which the host launches
// them. Each op runs on one stream (FIFO), after its stream's predecessor, its explicit dependencies and its
// launch.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/units.hpp"

namespace topsim::program {

enum class OpKind : std::uint8_t {
  compute,     // a run of kernels on the accelerator; slows while communication takes its SMs and memory
               // bandwidth
  collective,  // starts when every member of the communicator has reached its k-th call on it
  send,        // to peer; completes when the last byte has left (eager below the protocol's threshold)
  recv,  // from peer; completes when the last byte has arrived; matched in order per (sender, receiver, slot)
  host_copy,  // accelerator <-> host memory over PCIe (offload)
  host_work,  // the host itself computes (CPU Adam); occupies no accelerator time
};

enum class CollectiveKind : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  send_recv,
  barrier
};
[[nodiscard]] std::string_view name_of(
    CollectiveKind kind);  // "all_reduce", "alltoall", ... as in topsim bench

// Why a communicator exists; decides to which idle reason a wait on it is charged.
enum class Dimension : std::uint8_t {
  tensor,
  context,
  expert,
  data,
  expert_data,
  pipeline,
  embedding,
  model_parallel,
  world,
  offload
};
inline constexpr std::size_t kDimensions = 10;
[[nodiscard]] std::string_view name_of(Dimension dimension);

enum class Phase : std::uint8_t {
  forward,
  backward,
  weight_gradient,
  recompute,
  optimizer,
  gradient_sync,
  parameter_sync,
  transfer,
  other
};

// How the grids of a run of kernels share the accelerator's units (SMs) with communication that holds some of
// them, as parts of the run's duration. The part that is neither limited by memory nor named here slows in
// proportion to the missing units.
struct Grids {
  static constexpr int kStep = 8;  // units from one entry to the next: held by 8, 16, 24 and 32 channels
  using PerStep = std::array<float, 4>;
  [[nodiscard]] static float at(const PerStep& table, int units) {
    const int step = (units - 1) / kStep;
    return table[static_cast<std::size_t>(step < 3 ? step : 3)];
  }
  float in_waves = 0;  // blocks start as units come free; `more_waves` is what fewer units add
  PerStep more_waves{};
  // Persistent: at most one block a unit. Blocks that find no unit start when another block or the
  // communication ends, and take `left_over`, in which is also how much longer the others take that do part
  // of their work. There are `count` such grids.
  float persistent = 0;
  PerStep left_over{};
  std::uint32_t count = 0;
  float traffic = 0;  // of both: what their operands and results take of the memory's time
  auto operator<=>(const Grids&) const = default;
};

// One op.
struct Op {
  static constexpr std::int16_t kByChannels = -1;  // one unit per channel
  static constexpr std::uint16_t kHostSlots = 2;   // directions of a host_copy
  OpKind kind = OpKind::compute;
  Phase phase = Phase::other;
  std::uint16_t stream = 0;      // 0 is the compute stream; where no stream computes, the accelerator is idle
  bool host_sync = false;        // the host waits for this op before it launches the next
  bool timed_elsewhere = false;  // send, recv of 0 bytes: other ops take their time, the latency too
  std::int16_t units = kByChannels;  // communication: units of the accelerator that it holds
  std::uint32_t label = 0;           // index into Program::labels
  std::uint32_t layer = 0;
  // compute, host_work: time alone, nothing else running; collective: what kernels of its own (DeepEP,
  // HybridEP) take where no link holds them up, zero if it is NCCL's
  Duration duration{};
  Duration launch{};       // host time to issue it (kernels x launch overhead); zero inside a CUDA graph
  float memory_bound = 0;  // compute: share of `duration` limited by memory bandwidth, 0..1
  float fills_memory = 0;  // compute: part of that in kernels that take all the memory moves
  // compute, as parts of `duration`: the first kernel, and what is left on average of the one under way, half
  // of it where the run is one kernel. Blocks of others wait so long for units; 0: they find some at once.
  float first_kernel = 0, residual = 0;
  std::uint32_t grids = 0;  // compute: 1 + index into RankProgram::grids; 0: nothing is known of them
  Flops flops{};            // compute: model FLOPs it does (recompute counts zero); for utilisation figures
  CollectiveKind collective = CollectiveKind::all_reduce;
  // collective: which of the rank's communicators; send, recv: which peer slot; host_copy: 0 to, 1 from the
  // host's memory.
  std::uint16_t slot = 0;
  std::uint32_t micro_batch = 0;
  [[nodiscard]] bool has_own_kernels() const { return kind == OpKind::collective && duration > Duration{}; }
  Bytes bytes{};  // collective: NCCL's count (all_gather, reduce_scatter: total = per rank x n); else message
};

// Ops of one class of ranks, in launch order; columns are parallel.
struct RankProgram {
  std::string name;  // "stage 3"
  // Of ops of several streams that can start at one instant the one with the lower index does; else that of
  // the compute stream.
  bool in_launch_order = false;
  std::vector<Op> ops;
  std::vector<std::uint32_t> dependency_begin;  // ops + 1
  std::vector<std::uint32_t> dependencies;  // op indices, each smaller than its user's or on another stream
  std::vector<std::string> streams;         // names; [0] = "compute"
  std::vector<Grids> grids;                 // distinct ones
  [[nodiscard]] std::span<const std::uint32_t> dependencies_of(std::size_t op) const {
    return std::span(dependencies)
        .subspan(dependency_begin[op], dependency_begin[op + 1] - dependency_begin[op]);
  }
};

struct Communicator {
  Dimension dimension = Dimension::world;
  std::uint32_t members_begin = 0;  // into Program::members
  std::uint32_t size = 0;
};

// Totals of one step that reports want and the executor does not need.
struct StepFacts {
  double samples = 0, tokens = 0;
  Flops model_flops{};  // causal half counted as half, recompute not counted
  Flops model_flops_full_attention{};
  FlopsPerSecond peak_per_accelerator{};
};

// One step; the executor repeats it `warmup + steps` times without a barrier other than what the ops impose.
struct Program {
  std::uint32_t ranks = 0;
  std::vector<RankProgram> classes;
  std::vector<std::uint16_t> class_of_rank;  // ranks
  std::vector<Communicator> communicators;
  std::vector<RankId> members;  // concatenated, communicator order = NCCL rank order
  // slot s of rank r: communicator_slots[s][r]; kNone where the rank has none.
  std::vector<std::vector<CommunicatorId>> communicator_slots;
  // peer slot s of rank r: the rank at the other end (next stage, previous stage, ...); kNone where it has
  // none.
  std::vector<std::vector<RankId>> peer_slots;
  // A send on slot s is received by the peer on its slot peer_counterpart[s] (next <-> previous).
  std::vector<std::uint16_t> peer_counterpart;
  std::vector<Dimension> peer_dimension;  // per peer slot
  std::vector<std::string> labels;        // op names, for people: "layer forward attention"
  StepFacts facts;
  [[nodiscard]] std::span<const RankId> members_of(CommunicatorId c) const {
    return std::span(members).subspan(communicators[c.index()].members_begin, communicators[c.index()].size);
  }
};

// REQUIRES checked by validate(): slots in range, dependencies inside the program and acyclic, every
// communicator's members call the same kinds and bytes in the same order, every send has its recv. Throws
// InternalError (or ConfigError for traces).
void validate(const Program& program);

// Appends ops to one RankProgram; `label` interns.
class RankProgramBuilder {
 public:
  RankProgramBuilder(Program& program, std::string name);
  std::uint16_t stream(std::string_view name);  // interned
  std::uint32_t label(std::string_view text);
  std::uint32_t grids(const Grids& grids);  // for Op::grids; interned
  void start_in_launch_order() { result_.in_launch_order = true; }
  // Returns the op's index, to be named as a dependency of later ops.
  std::uint32_t add(const Op& op, std::span<const std::uint32_t> dependencies = {});
  [[nodiscard]] std::uint32_t size() const;
  std::uint16_t finish();  // class index in the program

 private:
  Program& program_;
  RankProgram result_;
  std::map<Grids, std::uint32_t> grids_;
};
}  // namespace topsim::program

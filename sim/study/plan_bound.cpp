#include "sim/study/plan_bound.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "sim/scenario/cluster/torus_ranks.hpp"
#include "workloads/framework.hpp"
#include "workloads/model.hpp"
#include "workloads/plan.hpp"
#include "workloads/schedule/schedule.hpp"
#include "workloads/training_step.hpp"

namespace topsim::study {
namespace {
using program::Dimension;
using program::Op;
using program::OpKind;
using program::Phase;
using workloads::Schedule;

// Whether the stage's last pass is the backward of its first chunk.
bool ends_with_first_chunk(const workloads::Plan& plan, int stage) {
  const auto order =
      workloads::order_of(plan.schedule, stage, plan.pp, plan.micro_batches, plan.virtual_stages);
  return !order.empty() && order.back().action == workloads::Action::backward && order.back().chunk == 0;
}
// Whether it is a call of tensor or context parallelism: every plan with these passes makes it.
bool within_a_pass(const program::Program& program, const Op& op) {
  if (op.kind != OpKind::collective) return false;
  const CommunicatorId id = program.communicator_slots[op.slot][0];
  if (id == CommunicatorId{} || id.value == CommunicatorId::kNone) return false;
  const Dimension dimension = program.communicators[id.index()].dimension;
  return dimension == Dimension::tensor || dimension == Dimension::context;
}
}  // namespace

PlanBound::PlanBound(const scenario::Scenario& scenario, const topology::Topology& topology,
                     const topology::Catalogue& catalogue, const collective::NcclModel& nccl)
    : scenario_(scenario),
      topology_(topology),
      accelerator_(catalogue.accelerator(topology.model_of(topology.accelerators().front()))),
      nccl_(nccl) {
  communication_counts_ = scenario.topology.placement.kind == topology::PlacementKind::packed &&
                          scenario.workload.plan.rank_order.empty() && !scenario.topology.node.use.empty();
  // With different micro-batches, ranks faster than their model, or one process that drives all devices,
  // passes need not be alike. Adapters and inference skip parts of the passes.
  silent_ =
      scenario.workload.trace || scenario.workload.packing.on ||
      (scenario.workload.task != workloads::Task::pretrain &&
       scenario.workload.task != workloads::Task::finetune) ||
      workloads::framework(scenario.workload.framework).family == workloads::FrameworkFamily::dataparallel;
  for (const auto& [rank, factor] : scenario.workload.compute.slow_ranks) silent_ = silent_ || factor < 1;
}

Duration PlanBound::operator()(const PlanChoice& choice) const {
  if (silent_) return {};
  workloads::WorkloadSpec workload = with_plan(scenario_.workload, choice);
  workload.model = workloads::complete_model(workload);
  const workloads::Plan plan =
      workloads::resolve(workload, static_cast<std::uint32_t>(topology_.accelerators().size()));
  // With paired forward and backward passes neither is contiguous.
  if (plan.mirrored() || plan.experts.overlap) return {};
  const std::vector<Passes> passes = passes_of(choice, workload, plan);
  if (passes.empty()) return {};
  Duration most{}, before{}, after{};
  for (int d = 0; d < plan.pp; ++d) {
    Duration each{}, issued{};
    for (int chunk = 0; chunk < plan.virtual_stages; ++chunk) {
      const Passes& here = passes[static_cast<std::size_t>(plan.global_stage(d, chunk))];
      each += here.forward + here.backward;
      issued += here.host;
    }
    const Duration tail = ends_with_first_chunk(plan, d) ? after : Duration{};
    most = std::max(most, std::max(before + each * plan.micro_batches, issued * plan.micro_batches) + tail);
    const Passes& first = passes[static_cast<std::size_t>(d)];
    before = std::max(before + first.forward, first.host_forward);
    after += first.returns;
  }
  return most;
}

std::vector<PlanBound::Passes> PlanBound::passes_of(const PlanChoice& choice,
                                                    const workloads::WorkloadSpec& workload,
                                                    const workloads::Plan& plan) const {
  // Of the schedule, only what it does to weight gradients matters for a pass.
  PlanChoice key = choice;
  key.virtual_stages = plan.virtual_stages;
  if (!plan.ends_meet())
    key.schedule = traits(plan.schedule).splits_weights ? Schedule::zb_h1 : Schedule::one_f_one_b;
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
  }
  const std::vector<Passes> passes = measure(workload, plan);
  const std::lock_guard lock(mutex_);
  known_.emplace(key, passes);
  return passes;
}

// Uses the second micro-batch's passes: the first may do more (casts of weights, once per step).
std::vector<PlanBound::Passes> PlanBound::measure(const workloads::WorkloadSpec& workload,
                                                  const workloads::Plan& plan) const {
  std::vector<Passes> passes;
  const std::optional<std::vector<DeviceId>> laid = scenario::torus_order(topology_, plan);
  const auto all = topology_.accelerators();
  const std::vector<DeviceId> ranks = laid ? *laid : std::vector<DeviceId>(all.begin(), all.end());
  const program::Program whole = workloads::passes_of(workload, plan, accelerator_, Schedule::one_f_one_b);
  for (const program::RankProgram& stage : whole.classes) {
    Passes each;
    each.forward = span(whole, stage, ranks, {Phase::forward});
    each.backward = span(whole, stage, ranks, {Phase::backward, Phase::recompute, Phase::weight_gradient});
    each.returns = each.backward;
    each.host_forward = issuing(whole, stage, {Phase::forward});
    each.host = each.host_forward +
                issuing(whole, stage, {Phase::backward, Phase::recompute, Phase::weight_gradient});
    passes.push_back(each);
  }
  if (static_cast<int>(passes.size()) != plan.global_stages()) return {};
  if (!traits(plan.schedule).splits_weights || passes.size() == 1) return passes;
  const program::Program parts = workloads::passes_of(workload, plan, accelerator_, Schedule::zb_h1);
  for (std::size_t g = 0; g < passes.size(); ++g) {
    const program::RankProgram& stage = parts.classes[g];
    const Duration input = span(parts, stage, ranks, {Phase::backward, Phase::recompute});
    const Duration weights = span(parts, stage, ranks, {Phase::weight_gradient});
    passes[g].forward = std::min(passes[g].forward, span(parts, stage, ranks, {Phase::forward}));
    passes[g].backward = std::min(passes[g].backward, input + weights);
    passes[g].returns = std::min(passes[g].returns, input);
    const Duration host_forward = issuing(parts, stage, {Phase::forward});
    const Duration host_rest =
        issuing(parts, stage, {Phase::backward, Phase::recompute, Phase::weight_gradient});
    passes[g].host_forward = std::min(passes[g].host_forward, host_forward);
    passes[g].host = std::min(passes[g].host, host_forward + host_rest);
  }
  return passes;
}

// The time of a call when nothing else uses its links; zero outside tensor and context parallelism.
Duration PlanBound::alone(const program::Program& program, const Op& op,
                          std::span<const DeviceId> ranks) const {
  if (!within_a_pass(program, op)) return {};
  const CommunicatorId id = program.communicator_slots[op.slot][0];
  std::vector<DeviceId> gpus;
  for (const RankId rank : program.members_of(id)) gpus.push_back(ranks[rank.index()]);
  collective::Activity activity;
  nccl_.lower(op.collective, op.bytes, gpus, activity);
  double rate = activity.cap.value() > 0 ? activity.cap.value() : std::numeric_limits<double>::infinity();
  for (const topology::LinkShare& use : activity.usage)
    rate = std::min(rate, topology_.link(use.link).capacity.value() / use.share);
  const double sending = static_cast<double>(op.bytes.value()) / rate;
  // The network rounds to whole picoseconds.
  return std::max(Duration{}, activity.latency + from_seconds(sending) - Duration(1));
}

// The host's time for the launches of the second micro-batch.
Duration PlanBound::issuing(const program::Program& program, const program::RankProgram& stage,
                            std::initializer_list<Phase> phases) {
  Duration sum{};
  for (const Op& op : stage.ops) {
    if (op.micro_batch != 1 || (op.kind != OpKind::compute && !within_a_pass(program, op))) continue;
    if (std::find(phases.begin(), phases.end(), op.phase) != phases.end()) sum += op.launch;
  }
  return sum;
}

// From the first kernel of the second micro-batch's pass to its last; calls before the first kernel may have
// run before the pass.
Duration PlanBound::span(const program::Program& program, const program::RankProgram& stage,
                         std::span<const DeviceId> ranks, std::initializer_list<Phase> phases) const {
  std::vector<Duration> end(stage.ops.size()), stream_end(stage.streams.size());
  std::map<std::tuple<std::uint8_t, program::CollectiveKind, std::int64_t>, Duration> times;
  Duration last{};
  bool begun = false;
  for (std::size_t i = 0; i < stage.ops.size(); ++i) {
    const Op& op = stage.ops[i];
    const bool computes = op.kind == OpKind::compute && op.stream == 0;
    const bool calls = op.kind == OpKind::collective && begun && communication_counts_;
    if (op.micro_batch != 1 || (!computes && !calls)) continue;
    if (std::find(phases.begin(), phases.end(), op.phase) == phases.end()) continue;
    begun = true;
    Duration start = stream_end[op.stream];
    for (const std::uint32_t before : stage.dependencies_of(i)) start = std::max(start, end[before]);
    Duration takes = op.duration;
    if (!computes) {
      const auto key = std::tuple{op.slot, op.collective, op.bytes.value()};
      const auto found = times.find(key);
      takes = found != times.end() ? found->second : times[key] = alone(program, op, ranks);
    }
    end[i] = stream_end[op.stream] = start + takes;
    if (computes) last = end[i];
  }
  return last;
}
}  // namespace topsim::study

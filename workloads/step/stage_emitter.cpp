#include "workloads/step/stage_emitter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace topsim::workloads {

using program::Op;
using program::OpKind;
using program::Phase;

namespace {

std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::weight_gradient:
      return "weight gradient";
    case Phase::recompute:
      return "recompute";
    case Phase::optimizer:
      return "optimizer";
    case Phase::gradient_sync:
      return "gradient sync";
    case Phase::parameter_sync:
      return "parameter sync";
    case Phase::transfer:
      return "transfer";
    case Phase::other:
      return "other";
  }
  return "";
}

// The name of a run of kernels of both parts: norms belong to the part that they stand next to.
Part merged(Part a, Part b) {
  if (a == b || b == Part::norm) return a;
  if (a == Part::norm) return b;
  return Part::layers;
}

program::Grids shares_of(const GridTimes& times, double whole) {
  program::Grids grids;
  grids.in_waves = static_cast<float>(times.in_waves / whole);
  grids.traffic = static_cast<float>(times.traffic / whole);
  grids.persistent = static_cast<float>(times.persistent / whole);
  grids.count = times.persistent > 0 ? static_cast<std::uint32_t>(std::max(1.0, std::round(times.count))) : 0;
  for (std::size_t i = 0; i < GridTimes::kSteps; ++i) {
    grids.more_waves[i] = static_cast<float>(times.more_waves[i] / whole);
    grids.left_over[i] = static_cast<float>(times.left_over[i] / whole);
  }
  return grids;
}
}  // namespace

StageEmitter::StageEmitter(program::RankProgramBuilder& builder, const Plan& plan, const Slots& slots)
    : builder_(builder), plan_(plan), slots_(slots) {}

std::uint32_t StageEmitter::label_of(Phase phase, Part part) {
  if (part == Part::optimizer) return builder_.label("optimizer");
  return builder_.label(fmt::format("{} {}", workloads::name_of(part), name_of(phase)));
}

double StageEmitter::turns(Phase phase) const {
  // Autograd and the optimiser launch without the interpreter's lock, or alone.
  const bool in_turn =
      phase == Phase::forward || phase == Phase::parameter_sync || phase == Phase::gradient_sync;
  return in_turn ? plan_.host.interpreter_threads : 1;
}

Duration StageEmitter::launch_of(const KernelCost& cost, Phase phase) {
  if (cost.kernels <= 0) return {};
  // Within a graph the accelerator itself goes from kernel to kernel.
  const double launch_time = seconds(plan_.host.launch) * (plan_.host.graph ? 1 : plan_.host.call_factor());
  const double one = cost.host > 0 ? cost.host / cost.kernels : launch_time;
  const double each = one * turns(phase);
  const Duration launch = unlaunched_ + from_seconds(each);
  unlaunched_ = from_seconds(std::max(0.0, cost.kernels - 1) * each);
  return launch;
}

Duration StageEmitter::launch_of_call(Duration call, Phase phase) {
  const double factor = plan_.host.graph ? 1 : plan_.host.call_factor();
  const Duration launch = unlaunched_ + from_seconds(seconds(call) * factor * turns(phase));
  unlaunched_ = {};
  return launch;
}

void StageEmitter::wait_for(std::uint32_t op) {
  flush();
  waits_.push_back(op);
}

bool StageEmitter::Walk::awaits(Group group) const {
  if (pieces == nullptr || done()) return false;
  const int wait = pieces->pieces()[next].wait;
  return wait != Piece::kNone && ops[static_cast<std::size_t>(wait)] != kNoOp &&
         pieces->pieces()[static_cast<std::size_t>(wait)].group == group;
}

StageEmitter::Channel StageEmitter::channel_of(Group group) const {
  switch (group) {
    case Group::tensor:
      return {"tensor", slots_.tensor};
    case Group::context:
      return {"context", slots_.context};
    case Group::expert:
      return {"expert", slots_.expert};
    case Group::expert_tensor:
      return {"expert tensor", slots_.expert_tensor};
  }
  return {};
}

void StageEmitter::compute(Part part, Phase phase, const KernelCost& cost, bool host_sync) {
  if (pending_.open && pending_.phase != phase) flush();
  if (!pending_.open) {
    pending_ = {cost, phase, part, position_, true, false, cost.seconds / std::max(1.0, cost.kernels)};
  } else {
    pending_.cost += cost;
    pending_.part = merged(pending_.part, part);
  }
  if (host_sync) {
    pending_.host_sync = true;
    flush();
  }
}

void StageEmitter::flush() {
  if (!pending_.open) return;
  const KernelCost& cost = pending_.cost;
  Op op;
  op.phase = pending_.phase;
  op.label = label_of(pending_.phase, pending_.part);
  op.micro_batch = static_cast<std::uint32_t>(pending_.position.micro_batch);
  op.layer = static_cast<std::uint32_t>(pending_.position.layer);
  op.duration = from_seconds(cost.seconds + plan_.host.gaps(cost.kernels));
  op.launch = launch_of(cost, pending_.phase);
  const auto share = [&](double part) {
    return cost.seconds > 0 ? static_cast<float>(part / cost.seconds) : 0.0F;
  };
  op.memory_bound = share(cost.memory_seconds);
  op.fills_memory = share(cost.filling);
  if (cost.squares > 0) {
    op.first_kernel = std::min(1.0F, share(pending_.first_kernel));
    op.residual =
        share(cost.squares / (2 * cost.seconds));  // mean over instants of half the kernel under way
  }
  if (cost.grids.in_waves + cost.grids.persistent > 0)
    op.grids = builder_.grids(shares_of(cost.grids, cost.seconds));
  op.flops = Flops(cost.flops);
  // What the host waits for it has launched: all kernels of the op, not the first alone.
  const bool launched_first = pending_.host_sync && !plan_.host.launch_blocking && unlaunched_ > Duration{};
  op.host_sync = plan_.host.launch_blocking || (pending_.host_sync && !launched_first);
  last_compute_ = builder_.add(op, waits_);
  waits_.clear();
  pending_.open = false;
  if (!launched_first) return;
  Op rest;
  rest.phase = op.phase, rest.label = op.label, rest.micro_batch = op.micro_batch, rest.layer = op.layer;
  rest.launch = std::exchange(unlaunched_, {});
  rest.host_sync = true;
  last_compute_ = builder_.add(rest);
}

void StageEmitter::fixed(Phase phase, Duration time) {
  flush();
  Op op;
  op.phase = phase;
  op.label = label_of(phase, Part::layers);
  op.micro_batch = static_cast<std::uint32_t>(position_.micro_batch);
  op.layer = static_cast<std::uint32_t>(position_.layer);
  op.duration = time;
  last_compute_ = builder_.add(op, waits_);
  waits_.clear();
}

void StageEmitter::transfer(Duration time, std::string_view stream) {
  flush();
  Op op;
  op.kind = OpKind::host_work;
  op.phase = Phase::transfer;
  op.stream = builder_.stream(stream);
  op.label = builder_.label("measured transfer");
  op.duration = time;
  if (last_compute_ == kNoOp) {
    builder_.add(op);
  } else {
    builder_.add(op, std::span(&last_compute_, 1));
  }
}

std::uint32_t StageEmitter::host_copy(std::uint8_t direction, std::string_view label, double bytes,
                                      std::span<const std::uint32_t> after, bool follows_compute) {
  flush();
  Op op;
  op.kind = OpKind::host_copy;
  op.phase = Phase::transfer;
  op.stream = builder_.stream(direction == 0 ? "to host" : "from host");
  op.label = builder_.label(label);
  op.micro_batch = static_cast<std::uint32_t>(position_.micro_batch);
  op.layer = static_cast<std::uint32_t>(position_.layer);
  op.launch = launch_of_call(plan_.host.launch, op.phase);
  op.slot = direction;
  op.units = 0;  // DMA engines copy; no compute units
  op.bytes = Bytes(std::llround(bytes));
  std::vector<std::uint32_t> dependencies(after.begin(), after.end());
  if (follows_compute && last_compute_ != kNoOp) dependencies.push_back(last_compute_);
  return builder_.add(op, dependencies);
}

std::uint32_t StageEmitter::host_work(std::string_view label, Duration time,
                                      std::span<const std::uint32_t> after) {
  flush();
  Op op;
  op.kind = OpKind::host_work;
  op.phase = Phase::optimizer;
  op.stream = builder_.stream("host");
  op.label = builder_.label(label);
  op.micro_batch = static_cast<std::uint32_t>(position_.micro_batch);
  op.duration = time;
  std::vector<std::uint32_t> dependencies(after.begin(), after.end());
  if (last_compute_ != kNoOp) dependencies.push_back(last_compute_);
  return builder_.add(op, dependencies);
}

void StageEmitter::join() {
  flush();
  if (waits_.empty()) return;
  pending_ = {KernelCost{}, Phase::other, Part::optimizer, position_, true, false};
  flush();
}

std::uint32_t StageEmitter::collective(const Collective& call) {
  flush();
  Op op;
  op.kind = OpKind::collective;
  op.phase = call.phase;
  op.stream = builder_.stream(call.stream);
  op.host_sync = call.host_sync || plan_.host.launch_blocking;
  op.label = builder_.label(fmt::format("{} {}", call.label, program::name_of(call.kind)));
  op.micro_batch = static_cast<std::uint32_t>(position_.micro_batch);
  op.layer = static_cast<std::uint32_t>(position_.layer);
  op.launch = launch_of_call(plan_.host.collective_launch, op.phase);
  op.collective = call.kind;
  op.slot = call.slot;
  op.units = call.units;
  op.duration = from_seconds(call.own_kernels);
  op.bytes = Bytes(std::llround(call.bytes));
  std::vector<std::uint32_t> dependencies(call.after.begin(), call.after.end());
  if (call.follows_compute && last_compute_ != kNoOp) dependencies.push_back(last_compute_);
  return builder_.add(op, dependencies);
}

std::uint32_t StageEmitter::message(OpKind kind, std::uint8_t slot, std::string_view stream, Bytes bytes,
                                    bool posted_after_compute, bool host_sync) {
  flush();
  Op op;
  op.kind = kind;
  op.phase = Phase::transfer;
  op.stream = builder_.stream(stream);
  op.host_sync = host_sync;
  op.label = builder_.label(stream);
  op.micro_batch = static_cast<std::uint32_t>(position_.micro_batch);
  op.layer = static_cast<std::uint32_t>(position_.layer);
  op.launch = launch_of_call(plan_.host.collective_launch, op.phase);
  op.slot = slot;
  op.bytes = bytes;
  op.timed_elsewhere = !plan_.stage_times.transfer.empty();
  if (!posted_after_compute) return builder_.add(op);
  // A pass without layers computes nothing: what it passes on must arrive first.
  std::vector<std::uint32_t> dependencies = waits_;
  if (last_compute_ != kNoOp) dependencies.push_back(last_compute_);
  return builder_.add(op, dependencies);
}
}  // namespace topsim::workloads

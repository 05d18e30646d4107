#include "workloads/memory/memory.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "workloads/compute/compute_model.hpp"
#include "workloads/layer/lora.hpp"
#include "workloads/memory/activations.hpp"
#include "workloads/memory/host_memory.hpp"
#include "workloads/memory/inference.hpp"
#include "workloads/memory/message_buffers.hpp"
#include "workloads/memory/single_process.hpp"
#include "workloads/memory/working_set.hpp"
#include "workloads/model.hpp"
#include "workloads/schedule/tasks.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads {
namespace {

int stage_layers(const Plan& plan, int stage) {
  int layers = 0;
  for (int chunk = 0; chunk < plan.chunks(); ++chunk)
    layers += plan.stage_layers[static_cast<std::size_t>(plan.global_stage(stage, chunk))];
  return layers;
}

AdapterParameters stage_adapters(const ModelSpec& model, const Plan& plan, int stage) {
  AdapterParameters sum;
  for (int chunk = 0; chunk < plan.chunks() && plan.frozen(); ++chunk) {
    const int global = plan.global_stage(stage, chunk), first = plan.first_layer_of(global);
    for (int i = 0; i < plan.stage_layers[static_cast<std::size_t>(global)]; ++i) {
      const AdapterParameters layer = adapter_parameters(model, kind_of(model, first + i), plan);
      sum.dense += layer.dense, sum.routed += layer.routed;
    }
  }
  return sum;
}

// What one rank of a stage holds: its units (embedding, layers, head) in forward order, and the routed
// experts on ranks of their own.
struct StageParameters {
  std::vector<double> units;
  std::vector<double> routed_units;     // the routed experts of each unit
  std::vector<std::size_t> chunk_ends;  // number of units up to the end of each chunk, in chunk order
  double routed = 0;
  double ends = 0;                       // of embedding, norms and head: the matmuls' format does not apply
  bool embedding = false, last = false;  // units begin with the embedding; end with final norm and head
  bool tied = false;                     // the head uses the embedding's table
};
StageParameters stage_parameters(const ModelSpec& model, const Plan& plan, int stage) {
  StageParameters result;
  std::vector<double>& units = result.units;
  for (int chunk = 0; chunk < plan.chunks(); ++chunk) {
    const int global = plan.global_stage(stage, chunk);
    if (global == 0) result.ends += units.emplace_back(embedding_parameters(model, plan.tp));
    result.embedding = result.embedding || global == 0;
    int index = plan.first_layer_of(global);
    for (int i = 0; i < plan.stage_layers[static_cast<std::size_t>(global)]; ++i, ++index) {
      const LayerParameters layer = layer_parameters(model, kind_of(model, index));
      const double routed = layer.routed() / (plan.ep * plan.etp);
      units.push_back(layer.split() / plan.tp + layer.whole() + (plan.experts.on_own_ranks ? 0 : routed));
      result.ends += layer.norms;
      result.routed_units.resize(units.size());
      if (plan.experts.on_own_ranks) result.routed += result.routed_units.back() = routed;
    }
    const bool last = global == plan.global_stages() - 1;
    for (int i = 0; last && !plan.inference() && i < predictions_of(model); ++i) {
      const LayerParameters layer = layer_parameters(model, kind_of(model, model.layers - 1));
      const double routed = layer.routed() / (plan.ep * plan.etp);
      const double words = i == 0 && copies_embedding(model, plan) ? embedding_parameters(model, plan.tp) : 0;
      units.push_back(layer.split() / plan.tp + layer.whole() + prediction_parameters(model, plan.tp) +
                      words + (plan.experts.on_own_ranks ? 0 : routed));
      result.routed_units.resize(units.size());
      if (plan.experts.on_own_ranks) result.routed += result.routed_units.back() = routed;
    }
    result.last = result.last || last;
    if (last) {
      result.tied = shares_table(model, plan);
      const double matrix = result.tied ? 0 : head_parameters(model) / plan.tp;
      result.ends += units.emplace_back(final_norm_parameters(model) + matrix);
    }
    result.chunk_ends.push_back(units.size());
  }
  result.routed_units.resize(units.size());
  return result;
}

// FSDP's root unit or what belongs to no unit, embedding and head; the range of units between them.
struct RootUnit {
  double parameters = 0, head = 0;
  std::size_t first = 0, last = 0;
};
RootUnit root_unit(const StageParameters& held) {
  const std::vector<double>& units = held.units;
  RootUnit root;
  root.first = held.embedding ? 1 : 0, root.last = units.size() - (held.last ? 1 : 0);
  root.parameters = (held.embedding ? units.front() : 0) + (held.last ? units.back() : 0);
  if (held.last) root.head = held.tied ? units.front() : units.back();
  return root;
}

// Gathered parameters at the peak: a unit and the next one being gathered, or all of them.
double gathered_parameters(const Plan& plan, const std::vector<double>& units, double parameters,
                           double root) {
  if (!(plan.shards.by_unit || plan.shards.unit_copies) || units.empty()) return root;
  double pair = 0;
  for (std::size_t i = 0; i < units.size(); ++i)
    pair = std::max(pair, units[i] + (i + 1 < units.size() ? units[i + 1] : 0));
  if (plan.loops_over_layers) return *std::max_element(units.begin(), units.end());
  const bool stay = !plan.shards.reshard_after_forward;
  // ZeRO-3 gathers while there is room; the first FSDP's parameters are views of the gather's buffer.
  if (plan.live_parameters > 0 || !plan.copies_gathered)
    return root + std::max(stay ? parameters : pair, std::min(parameters, plan.live_parameters));
  // FSDP2 gathers on a separate stream, one unit while the last one is copied out, and the root before all;
  // in addition this rank's shards, cast (_fsdp_collectives.py: foreach_all_gather, flat_foreach_copy_input).
  // The allocator keeps a stream's memory for that stream (c10/cuda/CUDACachingAllocator.cpp).
  const double largest = *std::max_element(units.begin(), units.end());
  const double buffers = plan.shards.unit_copies ? 0
                                                 : std::max(pair, root + units.front()) +
                                                       std::max(root, largest) / plan.shards.parameters;
  return root + buffers + (stay ? parameters : largest);
}

template <class Join>
std::vector<double> with_experts(const StageParameters& held, const Join& join) {
  std::vector<double> result = held.units;
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = join(result[i], held.routed_units[i]);
  return result;
}

// The largest share of a rank's parameters whose gradients are unsharded at one time: those of a chunk from
// its first backward pass to its last, which reduces them (torch/distributed/pipelining/stage.py,
// backward_maybe_with_nosync).
double whole_share(const Plan& plan, int stage, const StageParameters& held, bool with_routed) {
  std::vector<double> chunks;
  std::size_t begin = 0;
  for (const std::size_t end : held.chunk_ends) {
    double& sum = chunks.emplace_back(0);
    for (; begin < end; ++begin) sum += held.units[begin] + (with_routed ? held.routed_units[begin] : 0);
  }
  const double all = std::accumulate(chunks.begin(), chunks.end(), 0.0);
  if (chunks.size() < 2 || all <= 0) return 1;
  std::vector<int> passes(chunks.size());
  double open = 0, most = 0;
  for (const StageTask& task : tasks_of(plan, stage)) {
    if (task.action != Action::backward && task.action != Action::backward_weight) continue;
    const auto chunk = static_cast<std::size_t>(task.chunk);
    if (++passes[chunk] == 1) open += chunks[chunk];
    most = std::max(most, open);
    if (passes[chunk] == plan.micro_batches) open -= chunks[chunk];
  }
  return most / all;
}

// The largest matrix that a product of the backward pass gives a gradient, on one rank. `ends`: it may be the
// embedding or the head.
double largest_matrix(const ModelSpec& model, const Plan& plan, bool ends) {
  double largest = ends ? head_parameters(model) / plan.tp : 0;
  const double joined = plan.gate_apart ? 2 : 1;
  for (int i = 0; i < model.layers; ++i) {
    const LayerParameters layer = layer_parameters(model, kind_of(model, i));
    largest = std::max({largest, layer.qkv / plan.tp, layer.proj / plan.tp, layer.fc1 / joined / plan.tp,
                        layer.fc2 / plan.tp, layer.expert_fc1 / joined / (plan.ep * plan.etp),
                        layer.expert_fc2 / (plan.ep * plan.etp)});
  }
  return largest;
}

// Bytes of gradients beside those that a rank keeps: buckets, or unsharded gradients before they are reduced
// (`passing`: only while the backward pass leaves their unit).
struct GradientBuffers {
  double lasting = 0, passing = 0;
};
GradientBuffers gradient_buffers(const ModelSpec& model, const Plan& plan, const std::vector<double>& units,
                                 double parameters, double share, bool ends) {
  // A compiled loop that computes nothing beside its reductions has one matrix' gradient whole.
  if (plan.loops_over_layers && !plan.overlap_grad_reduce)
    return {0, largest_matrix(model, plan, ends) * bytes_of(plan.activations)};
  if (plan.shards.by_unit || plan.shards.unit_copies) {
    const double largest =
        units.empty() ? 0 : std::min(parameters, *std::max_element(units.begin(), units.end()));
    // Kept unsharded until the last micro-batch, in the format of the reduction (FSDP2's _fsdp_param.py,
    // to_accumulated_grad_if_needed), and those of the unit that the backward pass leaves.
    if (!plan.reduce_every_micro_batch && !plan.shards.unit_copies)
      return {share * parameters * plan.gradient_bytes, largest * bytes_of(plan.activations)};
    // Gradients leave their unit one by one.
    if (plan.double_buffers) return {2 * largest * plan.gradient_bytes, 0};
    if (plan.bucket_elements > 0)
      return {std::min(parameters, plan.bucket_elements) * plan.gradient_bytes, 0};
    // The unit's gradients as the backward pass produces them, and the buffer that is sent.
    return {0, largest * (bytes_of(plan.activations) + plan.gradient_bytes)};
  }
  if (plan.bucket_copies <= 0) return {};
  // If gradients are copied into buckets and back, all buckets exist all the time; else one.
  if (plan.bucket_copies > 1) return {plan.kept_gradient_bytes * parameters, 0};
  // A bucket holds whole gradients, however large (Megatron-FSDP's param_and_grad_buffer.py,
  // _get_parameter_groups). DeepSpeed sends those that exceed it as they are.
  const double whole = plan.buckets_never_exceed ? 0 : largest_matrix(model, plan, ends);
  return {plan.gradient_bytes * std::min(parameters, std::max(plan.bucket_elements, whole)), 0};
}
// What a stage trains: of the parameters that replicas share, and of the routed experts on ranks of their
// own.
struct Trained {
  double dense, routed;
};

// Weights that stay between passes, with their narrow copies. Adapters are kept beside frozen weights as in
// full training.
double resident_weights(const Plan& plan, const StageParameters& held, double parameters,
                        const Trained& trained) {
  const double frozen = 2 * held.ends + (parameters - held.ends) * bytes_of(plan.frozen_weights);
  const double routed_bytes =
      plan.frozen() ? held.routed * bytes_of(plan.frozen_weights) + trained.routed * plan.parameter_bytes
                    : held.routed * plan.parameter_bytes;
  const double copies =  // units that are gathered are cast anew
      plan.shards.by_unit ? 0 : (parameters - held.ends + held.routed) * plan.narrow_copy_bytes;
  return (plan.frozen() ? frozen + trained.dense * plan.parameter_bytes : parameters * plan.parameter_bytes) /
             plan.shards.parameters +
         routed_bytes / plan.experts.shards + copies;
}

// Gradients that wait for the update. Where they are offloaded, sharded ones wait on the host; unsharded ones
// leave bucket by bucket.
double kept_gradients(const Plan& plan, const Trained& trained) {
  const auto kept = [&](double count, double shards) {
    if (!plan.offload.gradients) return count * plan.kept_gradient_bytes / shards;
    return shards > 1 ? 0 : std::min(count, plan.bucket_elements) * plan.gradient_bytes;
  };
  return kept(trained.dense, plan.shards.gradients) + kept(trained.routed, plan.experts.gradient_shards);
}

// Of one updated parameter: two moments; a master copy of 4 bytes beside a 16-bit working copy, and with
// 16-bit gradients an fp32 copy of them, if it is permanent.
double optimizer_state(const Plan& plan) {
  const bool stays = plan.gradient_bytes < 4 && !plan.copies_for_update && !plan.precision_aware;
  const double master = plan.mixed_precision ? 4 + (stays ? 4 : 0) : 0;
  return 2 * plan.moment_bytes + master;
}

// The fullest of three moments of the backward pass.
// In the layers: recomputed layers and gradients come after the loss, in the memory of the logits. So do the
// head's gradients that wait for the embedding's. `passing`: gradients while the backward pass leaves their
// unit.
// At the head and at the end, when gradients of what belongs to no layer are reduced: no layer is recomputed
// or at work; at the end activations are freed too.
void add_backward_pass(const ModelSpec& model, const Plan& plan, const StageParameters& held,
                       const RootUnit& root, double passing, MemoryParts& parts) {
  const double logits = held.last ? logits_bytes(model, plan) + beside_logits(model, plan) : 0;
  double room = logits;
  const auto beyond = [&room](double bytes) {
    const double taken = std::min(room, bytes);
    room -= taken;
    return bytes - taken;
  };
  const double element = bytes_of(plan.activations);
  const double both = element + plan.gradient_bytes;  // a gradient and the buffer that it is copied to
  double at_head = 0, at_end = 0;
  passing = beyond(passing);
  if (plan.root_unit && !plan.frozen()) {
    passing += beyond(root.head * element);
    at_end = root.parameters * both;
  }
  if (plan.ends_stay && !plan.frozen()) {
    at_head = std::max(0.0, root.head * both - logits);
    at_end = (root.parameters - root.head) * both;
  }
  parts.recompute = beyond(bytes_computed_again(model, plan));
  parts.working = beyond(working_set(model, plan));
  if (held.last && plan.loss.beside > 0) {
    const double at_loss = logits_bytes(model, plan) / plan.loss.held * plan.loss.beside;
    parts.working = std::max(parts.working, at_loss - passing - parts.recompute);
  }
  const double in_layers = passing + parts.recompute + parts.working;
  if (at_end > parts.activations + std::max(in_layers, at_head)) {
    parts.gradients += at_end;
    parts.activations = parts.recompute = parts.working = 0;
  } else if (at_head > in_layers) {
    parts.gradients += at_head;
    parts.recompute = parts.working = 0;
  } else {
    parts.gradients += passing;
  }
}

MemoryParts stage_memory(const ModelSpec& model, const Plan& plan, int stage) {
  const StageParameters held = stage_parameters(model, plan, stage);
  const std::vector<double>& units = held.units;
  const double parameters = std::accumulate(units.begin(), units.end(), 0.0);
  const AdapterParameters adapters = stage_adapters(model, plan, stage);
  const Trained trained =
      plan.frozen() ? Trained{adapters.dense, adapters.routed} : Trained{parameters, held.routed};
  // A layer is gathered with its experts, which are reduced separately; double buffers have room for both.
  const bool joined = plan.experts.on_own_ranks && (plan.shards.by_unit || plan.shards.unit_copies);
  const double all = parameters + (joined ? held.routed : 0);
  const std::vector<double> whole = joined ? with_experts(held, std::plus<>()) : units;
  const std::vector<double> reduced =
      joined && !plan.double_buffers ? with_experts(held, [](double a, double b) { return std::max(a, b); })
                                     : whole;
  const RootUnit root = plan.root_unit || plan.ends_stay ? root_unit(held) : RootUnit{0, 0, 0, units.size()};
  const auto layers_of = [&](const std::vector<double>& counts) {
    const auto at = [&](std::size_t i) { return counts.begin() + static_cast<std::ptrdiff_t>(i); };
    return std::vector<double>(at(root.first), at(root.last));
  };
  MemoryParts parts;
  const double resident = resident_weights(plan, held, parameters, trained);
  const double weights = plan.offload.parameters ? 0 : resident;
  // A replica alone holds its dense parameters as they are; its tensor ranks may still share experts.
  const bool alone = plan.shards.by_unit && plan.shards.parameters <= 1;
  std::vector<double> gathered = layers_of(alone ? held.routed_units : whole);
  if (plan.gathers_cast_weights) {  // embedding and head are not cast
    const double wider = bytes_of(plan.activations) / plan.gathered_parameter_bytes;
    if (held.embedding) gathered.front() *= wider;
    if (held.last) gathered.back() *= wider;
  }
  const double around = alone ? 0 : root.parameters;
  parts.weights =
      weights + gathered_parameters(plan, gathered, (alone ? held.routed : all) - around, around) *
                    plan.gathered_parameter_bytes;
  if (plan.ends_stay && !alone)
    parts.weights +=
        root.parameters * std::max(0.0, bytes_of(plan.activations) - plan.gathered_parameter_bytes);
  if (plan.cast_weights && !plan.shards.unit_copies && !whole.empty())
    parts.weights +=
        (plan.casts_stay ? parameters + held.routed : *std::max_element(whole.begin(), whole.end())) *
        bytes_of(plan.activations);
  const GradientBuffers buffers =
      gradient_buffers(model, plan, layers_of(reduced), trained.dense + (joined ? trained.routed : 0),
                       whole_share(plan, stage, held, joined), held.embedding || held.last);
  const double reduced_gradients = kept_gradients(plan, trained);
  parts.gradients = reduced_gradients + buffers.lasting;
  const double updates =
      trained.dense / plan.shards.optimizer + trained.routed / plan.experts.optimizer_shards;
  const double updated = plan.offload.to != Offload::none ? 0 : updates;
  parts.optimizer = optimizer_state(plan) * updated;
  parts.activations = peak_activations(model, plan, stage) +
                      layers_in_flight(model, plan, stage_layers(plan, stage)) +
                      message_buffers(model, plan, stage) + (held.last ? beside_logits(model, plan) : 0);
  // Parameters of micro-batches that reduce nothing stay whole from their backward pass on, when activations
  // are freed (step/units.cpp).
  if (plan.shards.by_unit && plan.shards.reshard_after_forward && !plan.reduce_every_micro_batch &&
      plan.micro_batches > 1)
    parts.weights =
        std::max(parts.weights, weights + all * plan.gathered_parameter_bytes - parts.activations);
  add_backward_pass(model, plan, held, root, buffers.passing, parts);
  // The optimiser's step has gradients only of what it updates, and copies of some of them.
  const double at_once = plan.update_elements > 0 ? std::min(updated, plan.update_elements) : updated;
  const double buckets = plan.bucket_copies > 1 && !plan.copies_for_update ? buffers.lasting : 0;  // DDP's
  const double step =
      weights + buckets + parts.optimizer + updated * plan.kept_gradient_bytes + at_once * plan.update_copy;
  if (plan.update_copy > 0 && step > parts.total()) {
    parts = {weights, reduced_gradients + buckets, parts.optimizer};
    parts.update = step - parts.total();
  }
  parts.host = bytes_on_host(model, plan, stage, updates, resident);
  return parts;
}
}  // namespace

MemoryUse memory_use(const ModelSpec& model, const Plan& plan, Bytes capacity) {
  if (plan.inference()) return inference_memory(model, plan, capacity);
  if (plan.single_process) return single_process_memory(model, plan, capacity);
  MemoryUse use;
  use.capacity = static_cast<double>(capacity.value());
  for (int stage = 0; stage < plan.pp; ++stage) {
    use.stages.push_back(stage_memory(model, plan, stage));
    if (use.stages.back().total() > use.peak().total()) use.fullest = static_cast<std::size_t>(stage);
  }
  return use;
}

MemoryUse memory_use(const WorkloadSpec& workload, const topology::Accelerator& accelerator,
                     std::uint32_t accelerators) {
  WorkloadSpec completed = workload;
  completed.model = complete_model(workload);
  const Plan plan = resolve_on(accelerator, completed, accelerators);
  MemoryUse use = memory_use(completed.model, plan, accelerator.memory);
  use.host = most_on_a_host(plan, use.stages, std::max(1, workload.host.accelerators));
  use.host_capacity = static_cast<double>(workload.host.memory.value());
  return use;
}
}  // namespace topsim::workloads

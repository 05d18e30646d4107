// Seeded random clusters, plans and disturbances: small enough to run unfolded, varied enough to reach every
// branch.
#pragma once

#include <random>
#include <stdexcept>
#include <string>

#include "sim/executor/simulate.hpp"
#include "sim/scenario/cluster/calibration.hpp"
#include "topology/build.hpp"
#include "topology/catalogue.hpp"
#include "topology/catalogue/device_entries.hpp"
#include "workloads/training_step.hpp"

namespace topsim::property {

struct Case {
  topology::TopologySpec topology;
  workloads::WorkloadSpec workload;
  executor::RunOptions options;
  int slow_ranks = 0, degraded_links = 0;  // chosen once the topology is built
  std::string text;                        // describes the case in failures
};

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  // Not std::uniform_int_distribution: its results differ between standard libraries.
  int below(int n) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(n)); }
  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return *(choices.begin() + below(static_cast<int>(choices.size())));
  }

 private:
  std::mt19937_64 engine_;
};

inline Case random_case(std::uint64_t seed, int max_nodes) {
  Dice dice(seed);
  Case c;
  int nodes = 1;
  while (nodes < max_nodes && dice.below(4) != 0) nodes *= 2;
  c.topology.node.use = dice.one_of<const char*>({"hgx-h100", "dgx-a100", "hgx-b200"});
  c.topology.nodes = nodes;
  c.topology.fabric.kind = nodes == 1
                               ? topology::FabricKind::none
                               : dice.one_of({topology::FabricKind::rail, topology::FabricKind::fat_tree,
                                              topology::FabricKind::rail});
  topology::FabricSpec between;  // drawn for a single node too, so that later draws stay the same
  between.link.use = dice.one_of<const char*>({"ib-ndr", "roce-400g", "ib-hdr"});
  between.oversubscription = {dice.one_of({1.0, 2.0, 4.0})};
  between.nodes_per_leaf = dice.one_of({1, 2});  // few, so that small clusters have several leaves
  if (nodes > 1) {
    between.kind = c.topology.fabric.kind;
    c.topology.fabric = between;
  }
  c.topology.fabric.routing =
      dice.one_of({topology::Routing::adaptive, topology::Routing::ecmp, topology::Routing::static_});

  auto& model = c.workload.model;
  model.layers = dice.one_of({4, 8});
  model.hidden = dice.one_of({1024, 2048});
  model.heads = 16;
  model.vocab = 32000;
  model.gated_ffn = dice.below(2) == 0;
  c.workload.sequence = dice.one_of({512, 1024});
  auto& plan = c.workload.plan;
  const int accelerators = nodes * 8;
  plan.tp = dice.one_of({1, 2, 4, 8});
  plan.pp = dice.one_of({1, 2, 4});
  if (plan.tp * plan.pp > accelerators) plan.pp = 1;
  plan.dp = accelerators / (plan.tp * plan.pp);
  plan.grad_accumulation = plan.pp * dice.one_of({1, 2, 3});
  if (plan.pp > 1) {
    plan.schedule = dice.one_of({workloads::Schedule::gpipe, workloads::Schedule::one_f_one_b});
  }
  plan.sequence_parallel = plan.tp > 1 && dice.below(2) == 0;
  plan.zero = dice.below(2);
  plan.overlap_grad_reduce = dice.below(2) == 0;
  plan.overlap_param_gather = plan.zero == 1 && *plan.overlap_grad_reduce && dice.below(2) == 0;

  // Frameworks and tasks use only the sizes of the plan above. They are drawn after it, so that for a given
  // seed all that was drawn before stays the same.
  using workloads::Task;
  c.workload.task =
      dice.one_of({Task::pretrain, Task::pretrain, Task::pretrain, Task::lora, Task::prefill, Task::decode});
  if (c.workload.task == Task::lora) c.workload.lora.emplace().rank = dice.one_of({8, 64});
  if (c.workload.task == Task::pretrain && plan.tp * plan.pp == 1 && nodes == 1 && dice.below(2) == 0) {
    c.workload.framework = "dataparallel";
    plan.zero.reset(), plan.overlap_grad_reduce.reset(), plan.overlap_param_gather.reset();
  } else if (c.workload.task == Task::pretrain && plan.zero == 1) {
    if (*plan.dp > 1 && dice.below(3) == 0)
      plan.offload = dice.one_of({workloads::Offload::cpu, workloads::Offload::nvme});
    if (*plan.dp > 2 && dice.below(3) == 0) plan.zero_group = {workloads::ZeroGroup::Kind::ranks, 2};
  }
  if (plan.sequence_parallel.value_or(false) && dice.below(2) == 0)
    plan.tp_overlap = workloads::TensorOverlap::userbuffers;

  c.options.seed = seed;
  c.options.warmup = 1;
  c.options.steps = 1;
  c.slow_ranks = dice.below(3);
  c.degraded_links = nodes > 1 ? dice.below(3) : 0;
  for (int i = 0; i < c.slow_ranks; ++i) {
    c.options.slow_ranks.emplace_back(RankId(static_cast<std::size_t>(dice.below(accelerators))),
                                      1.0 + 0.01 * (1 + dice.below(50)));
  }
  // One case in three is a mixture of experts, with expert parallelism, where the task above allows it.
  const bool plain = c.workload.task == Task::pretrain && c.workload.framework != "dataparallel" &&
                     plan.offload == workloads::Offload::none &&
                     plan.zero_group.kind == workloads::ZeroGroup::Kind::all;
  if (dice.below(3) == 0 && plain) {
    model.experts.count = 8, model.experts.top_k = 2, model.experts.ffn = 1024;
    model.experts.imbalance = dice.one_of({1.0, 1.5});
    model.dense_layers = dice.below(2);
    const int stage = plan.tp * *plan.dp;
    plan.etp = dice.one_of({1, plan.tp});
    plan.ep = dice.one_of({2, 4, 8});
    while (stage % (*plan.ep * *plan.etp) != 0) *plan.ep /= 2;
    if (plan.tp > 1) plan.sequence_parallel = true;
  }
  // Megatron-FSDP, which has no pipelines and always overlaps. Drawn last, for the same reason.
  if (c.workload.task == Task::pretrain && plan.zero == 1 && plan.pp == 1 && dice.below(2) == 0) {
    plan.zero = dice.one_of({2, 3});
    plan.overlap_grad_reduce.reset(), plan.overlap_param_gather.reset();
  }
  c.text = "seed " + std::to_string(seed) + ": " + std::to_string(nodes) + " x " + c.topology.node.use +
           ", " + std::string(name_of(c.topology.fabric.kind)) + ", tp " + std::to_string(plan.tp) + " pp " +
           std::to_string(plan.pp) + " dp " + std::to_string(*plan.dp) + " ep " +
           std::to_string(plan.ep.value_or(1)) + " zero " + std::to_string(plan.zero.value_or(0)) + ", " +
           std::to_string(c.slow_ranks) + " slow ranks, " + std::to_string(c.degraded_links) +
           " degraded links";
  return c;
}

// Trays of four accelerators in NVLink domains that replicas do not fill. Tensor, context and data groups
// share NVLink ports, some of them at times only, and hardly two replicas lie in the domains alike.
inline Case across_domains_case(std::uint64_t seed) {
  Dice dice(seed + 7000);
  Case c;
  constexpr int kTray = 4;
  auto& plan = c.workload.plan;
  plan.tp = dice.one_of({2, 4, 4});
  plan.cp = dice.one_of({1, 2, 2, 4});
  plan.pp = dice.one_of({1, 2, 4});
  const int replica = plan.tp * plan.cp * plan.pp;
  int replicas = 1 + dice.below(6);
  while (replica * replicas % kTray != 0) ++replicas;
  plan.dp = replicas;
  c.topology.node.use = dice.one_of<const char*>({"gb200-nvl72", "gb300-nvl72", "gb200-nvl72-roce"});
  c.topology.nodes = replica * replicas / kTray;
  if (dice.below(2) == 0) c.topology.scale_up_domain = 2 + dice.below(8);  // the last has the remainder
  c.topology.fabric.kind = c.topology.nodes == 1 ? topology::FabricKind::none : topology::FabricKind::rail;
  if (c.topology.nodes > 1 && dice.below(2) == 0) c.topology.fabric.nodes_per_leaf = 3 + dice.below(6);

  auto& model = c.workload.model;
  model.layers = 8, model.hidden = 8192, model.heads = 64, model.vocab = 32000;
  model.gated_ffn = true;
  c.workload.sequence = dice.one_of({4096, 8192});
  c.workload.framework = "megatron";
  c.workload.compute.launch_overhead = Duration(2'000'000);  // hosts are ahead, so that teams can walk
  plan.micro_batch = 1;
  plan.grad_accumulation = plan.pp * dice.one_of({1, 2});
  plan.virtual_stages = plan.pp > 1 ? dice.one_of({1, 2}) : 1;
  plan.cp_kind = dice.one_of({workloads::ContextKind::ring, workloads::ContextKind::ulysses});
  plan.sequence_parallel = dice.below(4) != 0;
  plan.overlap_grad_reduce = plan.overlap_param_gather = dice.below(3) != 0;
  plan.zero = 1;
  c.options.seed = seed;
  c.options.warmup = 1;
  c.options.steps = 1;
  if (dice.below(4) == 0)
    c.options.slow_ranks.emplace_back(RankId(static_cast<std::size_t>(dice.below(replica * replicas))), 1.02);
  c.degraded_links = dice.below(4) == 0 ? 1 : 0;
  if (dice.below(3) == 0) {  // expert groups lie across tensor and context groups
    model.experts.count = 8, model.experts.top_k = 2, model.experts.ffn = 2048;
    plan.etp = dice.one_of({1, plan.tp});
    plan.ep = dice.one_of({2, 4, 8});
    while (plan.tp * plan.cp * replicas % (*plan.ep * *plan.etp) != 0) *plan.ep /= 2;
    plan.sequence_parallel = true;
  }
  c.text = "seed " + std::to_string(seed) + ": " + std::to_string(c.topology.nodes) + " x " +
           c.topology.node.use + ", tp " + std::to_string(plan.tp) + " cp " + std::to_string(plan.cp) +
           " pp " + std::to_string(plan.pp) + " dp " + std::to_string(replicas) + " ep " +
           std::to_string(plan.ep.value_or(1));
  return c;
}

// Disturbances that need the built topology: links that degrade and accelerators that throttle during the
// run, what accelerators lose to communication, and what flows lose where they meet.
inline void disturb(Case& c, const topology::Topology& topology, const topology::Catalogue& catalogue) {
  Dice dice(c.options.seed + 1000003);
  for (int d = 0; d < c.degraded_links; ++d) {
    const LinkId link(static_cast<std::size_t>(dice.below(static_cast<int>(topology.links().size()))));
    c.options.capacity_changes.push_back({SimTime(Duration(dice.below(100) * 1000000LL)), link, 0.5});
  }
  const int throttled = dice.below(4) == 0 ? 1 + dice.below(2) : 0;
  for (int t = 0; t < throttled; ++t) {
    const RankId rank(static_cast<std::size_t>(dice.below(static_cast<int>(topology.accelerators().size()))));
    const SimTime begin(Duration(dice.below(100) * 100'000'000LL));  // up to 10 ms
    c.options.pace_changes.push_back({begin, rank, 0.5 + 0.01 * dice.below(50)});
    if (dice.below(2) == 0)
      c.options.pace_changes.push_back({begin + Duration(1'000'000LL * (1 + dice.below(5000))), rank, 1});
  }
  const bool meets = dice.below(2) == 0;
  if (meets) c.options.congestion = scenario::shipped_congestion();
  if (meets && c.options.congestion == nullptr) throw std::runtime_error("no shipped congestion table");
  c.options.accelerators.resize(topology.models().size());
  for (const DeviceId device : topology.accelerators()) {
    const topology::Accelerator& facts = catalogue.accelerator(topology.model_of(device));
    c.options.accelerators[topology.device(device).model] = {facts.compute_units, facts.memory_bandwidth};
  }
  c.text += ", " + std::to_string(throttled) + " throttled" + (meets ? ", contention" : "");
}
}  // namespace topsim::property

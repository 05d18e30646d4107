#include "sim/scenario/run/assumptions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "sim/base/suggest.hpp"
#include "sim/scenario/findings/layout_findings.hpp"
#include "topology/build.hpp"
#include "topology/catalogue/node_recipe.hpp"
#include "topology/generation.hpp"
#include "workloads/framework.hpp"

namespace topsim::scenario {
namespace {
// A bare name means a release (workloads::set_of), and releases differ by more than most settings do.
void say_release(const workloads::WorkloadSpec& workload, const topology::Topology& topology,
                 const topology::Catalogue& catalogue, report::ScenarioFacts& facts) {
  if (workload.framework.find('@') != std::string::npos) return;
  const workloads::Framework& set = workloads::set_of(workload);
  const workloads::Framework& newest = workloads::framework(workload.framework);
  const auto sets = workloads::frameworks();
  if (std::count_if(sets.begin(), sets.end(), [&](const auto& row) { return row.name == set.name; }) < 2)
    return;
  const std::string release = full_name(set);
  const topology::Accelerator& accelerator =
      catalogue.accelerator(topology.models()[topology.device(topology.accelerators()[0]).model]);
  constexpr int kOld = 5;  // years: whoever kept a log of such an accelerator ran an older release
  const int years = std::stoi(std::string(set.release)) - accelerator.year;
  std::string phrase = "framework " + release;
  if (set.release == newest.on_gpus) {
    phrase += fmt::format(" ({} describes TPUs)", full_name(newest));
  } else if (set.release == newest.compiled) {
    phrase += ", whose compiler makes micro-pipelines";
  } else if (set.release == newest.by_size) {
    phrase += ", the first FSDP, whose units may be parts of layers";
  } else if (&set != &newest) {
    const std::string lacks = workloads::lacks_of(set, workload);
    const bool later = set.release > std::to_string(workload.host.software_year);
    const bool oldest = std::none_of(sets.begin(), sets.end(), [&](const auto& row) {
      return row.name == set.name && row.release < set.release;
    });
    phrase += !later   ? ", of which most published results on " + accelerator.name + " are"
              : oldest ? ", the oldest there is"
                       : ", as older sets have not all that this job asks for";
    workloads::WorkloadSpec graphs = workload;  // who tries such a setting compares two releases
    graphs.compute.cuda_graph = true;
    const std::string next = full_name(workloads::set_of(graphs));
    phrase += fmt::format(
        " ({} is the newest{}{}{})", full_name(newest), lacks.empty() ? "" : "; this one has ", lacks,
        next == release ? "" : "; with what needs a later one, as cuda_graph, it is " + next);
  } else if (accelerator.year > 0 && years >= kOld) {
    phrase +=
        fmt::format(", {} years newer than {}: older logs are of older releases", years, accelerator.name);
  }
  facts.assumed.push_back({std::move(phrase), "workload.framework"});
}

// "1, 62 x 2, 1": a list of equal numbers in a row.
std::string in_runs(const std::vector<int>& numbers) {
  std::vector<std::string> runs;
  for (auto at = numbers.begin(); at != numbers.end();) {
    const auto end = std::find_if(at, numbers.end(), [&](int each) { return each != *at; });
    runs.push_back(end - at > 1 ? fmt::format("{} x {}", end - at, *at) : std::to_string(*at));
    at = end;
  }
  return join(runs);
}

void say_stages(const workloads::PlanSpec& given, const workloads::Plan& plan, report::ScenarioFacts& facts) {
  if (given.stage_layers.empty() && !plan.even_stages())
    facts.assumed.push_back({fmt::format("stages of {} layers, as they do not divide evenly (stage_layers)",
                                         in_runs(plan.stage_layers)),
                             "workload.plan.stage_layers"});
}

// Stored scores are computed for all keys and masked (Hugging Face's eager attention adds the window's mask
// to them); Megatron's and DeepSpeed's sets of that time have no other way to see a window.
void say_window(const workloads::AttentionSpec& attention, const workloads::Plan& plan,
                report::ScenarioFacts& facts) {
  if (attention.window > 0 && attention.window < plan.sequence && plan.task != workloads::Task::decode &&
      plan.attention == workloads::AttentionKernel::unfused)
    facts.assumed.push_back({fmt::format("window {} as a mask: unfused attention computes the scores of all "
                                         "keys",
                                         attention.window),
                             "workload.model.attention.window"});
}

// Experts that a scenario does not spread, or spreads as it does the other layers.
void say_experts(const workloads::PlanSpec& given, const workloads::Plan& plan,
                 const workloads::ModelSpec& model, report::ScenarioFacts& facts) {
  if (model.experts.count > 1 && !given.ep && plan.dp * plan.cp > 1)
    facts.assumed.push_back({"ep 1: experts are not spread over ranks", "workload.plan.ep"});
  if (plan.ep > 1 && plan.etp == 1 && plan.tp > 1 && !given.etp)
    facts.assumed.push_back({"etp 1: ep x tp does not divide a stage's ranks", "workload.plan.etp"});
  if (plan.ep > 1 && plan.etp > 1 && !given.etp)
    facts.assumed.push_back({fmt::format("etp {}: experts are split as tp splits the other layers", plan.etp),
                             "workload.plan.etp"});
}
}  // namespace

void say_assumptions(const workloads::WorkloadSpec& workload, const topology::Topology& topology,
                     const topology::Catalogue& catalogue, const workloads::Plan& plan,
                     report::ScenarioFacts& facts) {
  const workloads::PlanSpec& given = workload.plan;
  const workloads::Framework& named = workloads::set_of(workload);
  const workloads::Framework& set = workloads::framework_of(workload);
  say_window(workload.model.attention, plan, facts);
  if (plan.inference()) return;
  if (set.release != named.release)
    facts.assumed.push_back(
        {fmt::format("zero {} is framework {}", given.zero.value_or(named.zero), full_name(set)),
         "workload.framework"});
  else
    say_release(workload, topology, catalogue, facts);
  if (plan.plain_softmax)
    facts.assumed.push_back(
        {fmt::format("softmax by single operators: {}'s fused kernel takes 16 bits, up to {} keys and heads "
                     "x sequences in fours",
                     full_name(set), plan.fused_softmax_keys)});
  if (set.selective_operators && set.zero > 0 && !given.recompute && given.recompute_modules.empty() &&
      plan.recompute.kind == workloads::RecomputeKind::none && !set.narrow_states)
    facts.assumed.push_back(
        {"no recompute, where torchtitan's configurations have \"selective\"", "workload.plan.recompute"});
  if (!given.micro_batch && plan.micro_batches > 1)
    facts.assumed.push_back(
        {fmt::format("micro_batch {}, so {} micro-batches a step", plan.micro_batch, plan.micro_batches),
         "workload.plan.micro_batch"});
  say_stages(given, plan, facts);
  say_experts(given, plan, workload.model, facts);
  if (plan.task == workloads::Task::lora && !workload.lora) {
    const workloads::LoraSpec usual = workloads::scripted(workload).lora.value_or(workloads::LoraSpec{});
    const std::vector<std::string> targets = workloads::targets_of(usual);
    facts.assumed.push_back(
        {fmt::format("adapters of rank {} on {} (workload.lora)", usual.rank, fmt::join(targets, ", ")),
         "workload.lora"});
  }
  if (workload.packing.on && !workload.packing.documents)
    facts.assumed.push_back(
        {"packed sequences attend as one document, the most that they can cost (workload.packing: how many)",
         "workload.packing"});
  using executor::Reason;
  constexpr double kTensor = 0.05, kExperts = 0.1;  // of the step
  const bool on_nvidia = facts.library == "NCCL";
  const bool has_user_buffers =
      on_nvidia && set.family == workloads::FrameworkFamily::megatron && set.release >= "2024";
  const bool open = !given.tp_overlap && plan.tp_overlap != workloads::TensorOverlap::userbuffers;
  if (open && plan.tp > 1 && plan.sequence_parallel && has_user_buffers &&
      could_use_user_buffers(topology, catalogue, plan)) {
    // On a Blackwell the parts of a product are shorter than their launch.
    const bool with_graphs = topology::is_from_blackwell(
                                 catalogue.accelerator(topology.model_of(topology.accelerators().front()))) &&
                             !workload.compute.cuda_graph.value_or(false);
    facts.open.push_back(
        {.phrase = fmt::format("tensor parallelism without user buffers (tp_overlap), which NVIDIA's "
                               "performance recipes turn on{}",
                               with_graphs ? " together with CUDA graphs (compute.cuda_graph)" : ""),
         .path = "workload.plan.tp_overlap",
         .reason = Reason::tensor_parallel,
         .from = kTensor,
         .more_launches = true});  // they split products
  }
  if (plan.ep > 1 && on_nvidia && !given.token_dispatcher &&
      plan.experts.dispatcher == workloads::TokenDispatcher::alltoall)
    facts.open.push_back(
        {"tokens sent to experts by NCCL (token_dispatcher alltoall), not by DeepEP or "
         "HybridEP",
         "workload.plan.token_dispatcher", Reason::expert_parallel, kExperts});
}

void say_gates(const Scenario& scenario, report::ScenarioFacts& facts) {
  const workloads::ModelSpec& model = scenario.workload.model;
  if (scenario.document == nullptr || model.activation != workloads::Activation::silu || model.gated_ffn)
    return;
  if (!scenario.document->root().find("workload").find("model").find("gated_ffn"))
    facts.assumed.push_back(
        {"no gates beside silu: SwiGLU is gated_ffn true (workload.model)", "workload.model.gated_ffn"});
}

void say_domains(const Scenario& scenario, const topology::Catalogue& catalogue,
                 report::ScenarioFacts& facts) {
  const topology::TopologySpec& spec = scenario.topology;
  if (spec.scale_up_domain || spec.node.use.empty()) return;
  const int largest = catalogue.node(spec.node.use).scale_up.domain_nodes;
  if (largest < 2 || spec.nodes <= largest || spec.nodes % largest == 0) return;
  const int size = topology::even_domain(spec.nodes, largest);
  facts.assumed.push_back(
      {size < largest
           ? fmt::format("{} of {} nodes of each scale-up domain (topology.scale_up_domain)", size, largest)
           : fmt::format("scale-up domains of {} nodes and a last one of {} (topology.scale_up_domain)",
                         largest, spec.nodes % largest),
       "topology.scale_up_domain"});
}
}  // namespace topsim::scenario

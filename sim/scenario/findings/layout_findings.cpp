#include "sim/scenario/findings/layout_findings.hpp"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "sim/scenario/cluster/torus_ranks.hpp"
#include "topology/catalogue/device_entries.hpp"
#include "topology/catalogue/node_recipe.hpp"
#include "topology/generation.hpp"
#include "workloads/model.hpp"
#include "workloads/plan.hpp"
#include "workloads/training_step.hpp"

namespace topsim::scenario {
namespace {
using topology::DeviceKind;

// User buffers come with Transformer Engine: NVIDIA's from Ampere on; AMD's from CDNA 3 on, the first with
// fp8 (user buffers: ROCm/TransformerEngine pull request 367).
bool has_user_buffers(const topology::Accelerator& entry) {
  return topology::is_from_ampere(entry) || (entry.vendor == "AMD" && entry.dense_flops.contains("fp8"));
}

// The accelerators that `first` reaches over scale-up links alone, itself included.
std::set<DeviceId> scale_up_domain(const topology::Topology& topology, DeviceId first) {
  const auto scales_up = [&](DeviceId id) {
    const DeviceKind kind = topology.device(id).kind;
    return kind == DeviceKind::accelerator || kind == DeviceKind::nvswitch;
  };
  std::set<DeviceId> domain{first};
  for (std::vector<DeviceId> front{first}; !front.empty();) {
    const DeviceId here = front.back();
    front.pop_back();
    for (const LinkId link : topology.links_from(here))
      if (const DeviceId to = topology.link(link).to; scales_up(to) && domain.insert(to).second)
        front.push_back(to);
  }
  std::erase_if(domain, [&](DeviceId id) { return topology.device(id).kind != DeviceKind::accelerator; });
  return domain;
}

// The first two ranks of a tensor group that are not in the same NVLink domain.
std::optional<std::pair<std::size_t, std::size_t>> ranks_apart(const topology::Topology& topology,
                                                               const workloads::Plan& plan) {
  std::size_t stride = 1;
  for (const std::string& axis : plan.rank_order) {
    if (axis == "tp") break;
    if (axis == "cp" || axis == "dp" || axis == "pp")
      stride *= static_cast<std::size_t>(axis == "cp" ? plan.cp : axis == "dp" ? plan.dp : plan.pp);
  }
  const auto ranks = topology.accelerators();
  const std::size_t run = stride * static_cast<std::size_t>(plan.tp);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (rank % run >= stride) continue;  // not the first rank of a group
    const std::set<DeviceId> domain = scale_up_domain(topology, ranks[rank]);
    for (std::size_t other = rank + stride; other < rank + run && other < ranks.size(); other += stride)
      if (!domain.contains(ranks[other])) return std::pair(rank, other);
  }
  return std::nullopt;
}

const topology::Accelerator& first_accelerator(const topology::Topology& topology,
                                               const topology::Catalogue& catalogue) {
  return catalogue.accelerator(topology.model_of(topology.accelerators().front()));
}

// Each rank maps the buffers of its group's other ranks and writes to them: by handles that processes of one
// host exchange or, in an NVLink domain of several hosts, by fabric handles (userbuffers-host.cpp).
void find_user_buffers(const topology::Topology& topology, const topology::Catalogue& catalogue,
                       const workloads::Plan& plan, std::vector<report::Finding>& out) {
  if (plan.tp_overlap != workloads::TensorOverlap::userbuffers || plan.tp < 2) return;
  const topology::Accelerator& entry = first_accelerator(topology, catalogue);
  const auto say = [&](std::string what, std::string help) {
    out.push_back({report::Severity::warning, std::move(what) + "; they are simulated as if it did",
                   "workload.plan.tp_overlap", std::move(help)});
  };
  if (!has_user_buffers(entry))
    return say(fmt::format("user buffers are Transformer Engine's, which does not run on {}", entry.name),
               "tp_overlap=async, or none");
  if (const auto apart = ranks_apart(topology, plan))
    say(fmt::format(
            "user buffers need one {} domain that holds a whole tensor group, and none holds ranks {} "
            "and {} of tp {}",
            entry.vendor == "NVIDIA" ? "NVLink" : "scale-up", apart->first, apart->second, plan.tp),
        "a smaller tp, whose groups one domain holds; or tp_overlap=async");
}

// Expert groups are runs of ranks (in the order tp, cp, ep, dp, pp): one that fits a scale-up domain may
// still lie across two.
void find_expert_groups(const Scenario& scenario, const topology::Topology& topology,
                        const topology::Catalogue& catalogue, const workloads::Plan& plan,
                        std::vector<report::Finding>& out) {
  const auto group = static_cast<std::size_t>(plan.ep * plan.etp);
  const auto ranks = topology.accelerators();
  if (plan.ep < 2 || !leaves_ranks_open(scenario) || scenario.topology.node.use.empty()) return;
  const std::set<DeviceId> domain = scale_up_domain(topology, ranks.front());
  if (group > domain.size() || domain.size() == ranks.size() || domain.size() % group == 0) return;
  for (std::size_t first = 0; first + group <= ranks.size(); first += group) {
    if (domain.contains(ranks[first]) == domain.contains(ranks[first + group - 1])) continue;
    const topology::NodeRecipe& node = catalogue.node(scenario.topology.node.use);
    const auto of_node =
        static_cast<std::size_t>(scenario.topology.node.accelerators.value_or(node.accelerators));
    std::size_t nodes = domain.size() / of_node;
    while (nodes > 1 && nodes * of_node % group != 0) --nodes;
    out.push_back(
        {report::Severity::note,
         fmt::format("expert groups of {} ranks do not divide scale-up domains of {}: ranks {} to {} lie "
                     "in two, and their tokens cross the fabric",
                     group, domain.size(), first, first + group - 1),
         "workload.plan.ep",
         nodes > 1 ? fmt::format("topology.scale_up_domain = {} uses {} accelerators of each", nodes,
                                 nodes * of_node)
                   : "an ep that divides the domain"});
    return;
  }
}
}  // namespace

bool could_use_user_buffers(const topology::Topology& topology, const topology::Catalogue& catalogue,
                            const workloads::Plan& plan) {
  return has_user_buffers(first_accelerator(topology, catalogue)) && !ranks_apart(topology, plan);
}

std::vector<report::Finding> layout_findings(const Scenario& scenario, const topology::Topology& topology,
                                             const topology::Catalogue& catalogue) {
  std::vector<report::Finding> out;
  const workloads::WorkloadSpec& given = scenario.workload;
  if (given.trace || given.model.layers == 0 || !given.compute.stage_times.forward.empty() ||
      topology.accelerators().empty())
    return out;
  workloads::WorkloadSpec workload = given;
  workload.model = workloads::complete_model(given);
  workload.host = workloads::host_facts(topology, catalogue);
  const auto ranks = static_cast<std::uint32_t>(topology.accelerators().size());
  const workloads::Plan plan = workloads::resolve(workload, ranks);
  find_user_buffers(topology, catalogue, plan, out);
  find_expert_groups(scenario, topology, catalogue, plan, out);
  if (!leaves_ranks_open(scenario)) return out;
  if (auto parts = parts_of_axes(topology, plan)) out.push_back(std::move(*parts));
  return out;
}
}  // namespace topsim::scenario

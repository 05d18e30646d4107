#include "workloads/memory/host_memory.hpp"

#include <algorithm>

#include "workloads/memory/activations.hpp"

namespace topsim::workloads {

double bytes_on_host(const ModelSpec& model, const Plan& plan, int stage, double updates, double weights) {
  double bytes = 0;
  if (plan.offload.to == Offload::cpu) {
    constexpr double kMaster = 4;
    bytes = (plan.offload.parameters ? weights : kMaster * updates) +
            (2 * plan.moment_bytes + plan.offload.gradient_bytes) * updates;
    // DeepSpeed's sums of micro-batches (step/offload.hpp).
    const GradientSums sums = plan.offload.sums;
    if (sums == GradientSums::in_each || (sums == GradientSums::between && plan.micro_batches > 1))
      bytes += bytes_of(plan.activations) * updates;
  }
  if (plan.offload.activations) {
    Plan here = plan;
    here.offload.activations = false;
    bytes += peak_activations(model, here, stage) - peak_activations(model, plan, stage);
  }
  return bytes;
}

double most_on_a_host(const Plan& plan, const std::vector<MemoryParts>& stages, int per_node) {
  if (std::none_of(stages.begin(), stages.end(), [](const MemoryParts& part) { return part.host > 0; }))
    return 0;
  int run = 1;  // consecutive ranks of one stage
  for (const std::string& dimension : plan.rank_order) {
    if (dimension == "pp") break;
    run *= dimension == "tp" ? plan.tp : dimension == "cp" ? plan.cp : dimension == "dp" ? plan.dp : 1;
  }
  double most = 0;
  for (int first = 0; first < plan.ranks(); first += per_node) {
    double node = 0;
    for (int rank = first; rank < std::min(first + per_node, plan.ranks()); ++rank)
      node += stages[static_cast<std::size_t>(rank / run % plan.pp)].host;
    most = std::max(most, node);
  }
  return most;
}
}  // namespace topsim::workloads

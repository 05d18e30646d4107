#include "workloads/step/pass_costs.hpp"

#include <algorithm>

#include "workloads/memory/memory.hpp"
#include "workloads/model.hpp"
#include "workloads/schedule/automatic.hpp"

namespace topsim::workloads {
namespace {

class PassTimes {
 public:
  explicit PassTimes(const Plan& plan) : host_(plan.host) {}

  void add(const PiecePair& pair) {
    for (const Piece& piece : pair.forward.pieces()) add(piece, forward_);
    for (const Piece& piece : pair.backward.pieces()) add(piece, piece.weight_gradient ? weight_ : input_);
  }
  [[nodiscard]] schedule::PassCosts costs() const { return {of(forward_), of(input_), of(weight_), 1}; }

 private:
  struct Sum {
    double kernels = 0, host = 0;
  };
  void add(const Piece& piece, Sum& sum) const {
    if (piece.collective) return;
    sum.kernels += piece.cost.seconds + host_.gaps(piece.cost.kernels);
    sum.host += piece.cost.host > 0 ? piece.cost.host : piece.cost.kernels * seconds(host_.launch);
  }
  static Duration of(const Sum& sum) { return from_seconds(std::max(sum.kernels, sum.host)); }

  const PlanHost& host_;
  Sum forward_, input_, weight_;
};

schedule::PassCosts modelled(const ModelSpec& model, const Plan& plan, const StepPieces& pieces, int stage) {
  PassTimes times(plan);
  const int first = plan.first_layer_of(stage);
  const int layers = plan.stage_layers[static_cast<std::size_t>(stage)];
  const int recomputed = plan.layers_recomputed(layers);
  if (stage == 0) times.add(pieces.embedding);
  for (int i = 0; i < layers; ++i) times.add(pieces.layer_at(kind_of(model, first + i), i < recomputed));
  if (stage == plan.pp - 1) {
    for (int i = 0; i < predictions_of(model); ++i) times.add(pieces.prediction_at(i));
    times.add(pieces.head);
  }
  return times.costs();
}
}  // namespace

std::vector<std::vector<StageTask>> orders_for(const ModelSpec& model, const Plan& plan,
                                               const StepPieces& pieces) {
  schedule::PipelineCosts costs;
  // The limits p M_B and 2 p M_B (Qi et al., section 5.1).
  costs.held = (plan.schedule == Schedule::zb_1p ? 1 : 2) * plan.pp;
  const StageTimes& given = plan.stage_times;
  // The authors' scheduler counts all activations, whatever is recomputed: 34 h + 5 a s for a forward pass,
  // 32 h until its weight gradients (zero-bubble-pipeline-parallelism,
  // megatron/core/pipeline_parallel/zb_schedules.py, f_mem_approx and w_mem_approx).
  Plan whole = plan;
  whole.recompute = {};
  whole.offload.activations = false;
  for (int stage = 0; stage < plan.pp; ++stage) {
    const auto s = static_cast<std::size_t>(stage);
    schedule::PassCosts stage_costs =
        plan.replays()
            ? schedule::PassCosts{given.forward[s], given.backward_input[s], given.backward_weight[s], 1}
            : modelled(model, plan, pieces, stage);
    const StageActivations kept = stage_activations(model, whole, stage);
    if (kept.forward > 0) stage_costs.until_weight = kept.until_weight / kept.forward;
    costs.stages.push_back(stage_costs);
  }
  if (!given.transfer.empty())
    costs.transfer = *std::max_element(given.transfer.begin(), given.transfer.end());
  return schedule::automatic(costs, plan.micro_batches);
}
}  // namespace topsim::workloads

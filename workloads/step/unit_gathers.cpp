#include "workloads/step/unit_gathers.hpp"

#include <utility>

namespace topsim::workloads {

std::vector<double> matrices_of(const ModelSpec& model, LayerKind kind, const Plan& plan) {
  const LayerParameters layer = layer_parameters(model, kind);
  const double t = plan.tp;
  const int gates = model.gated_ffn ? 2 : 1;
  std::vector<double> result;
  const auto add = [&](double parameters, int matrices = 1) {
    for (int i = 0; i < matrices && parameters > 0; ++i) result.push_back(parameters / matrices);
  };
  add(layer.latent);
  if (model.gated_ffn && model.attention.kind != AttentionKind::mla) {
    const double head = layer.qkv / t / (model.heads + 2.0 * model.kv_heads);
    add(head * model.heads), add(2 * head * model.kv_heads, 2);
  } else {
    add(layer.qkv / t);
  }
  add(layer.proj / t), add(layer.router);
  const double parts = static_cast<double>(plan.etp) * model.experts.count;
  for (int expert = 0; layer.routed() > 0 && expert < model.experts.count / plan.ep; ++expert)
    add(layer.expert_fc1 / parts, gates), add(layer.expert_fc2 / parts);
  add(layer.fc1 / t, gates), add(layer.fc2 / t);
  return result;
}

std::vector<double> gathers_of(double unit, const std::vector<double>& matrices, double least) {
  if (least <= 0 || matrices.empty()) return {unit};
  std::vector<double> result;
  double open = 0, rest = unit;
  for (const double matrix : matrices) {
    open += matrix, rest -= matrix;
    if (open >= least) result.push_back(std::exchange(open, 0));
  }
  if (open > 0) result.push_back(open);
  result.front() += rest;
  return result;
}

std::vector<NestedUnit> wrapped_by_size(const ModelSpec& model, LayerKind kind, const Plan& plan) {
  const LayerParameters layer = layer_parameters(model, kind);
  const double t = plan.tp, least = plan.wrap_least;
  std::vector<NestedUnit> units;
  double at = layer.norms + layer.latent, rest = at;
  const auto wrap = [&](const std::vector<double>& matrices, double bias) {
    NestedUnit module{0, at, at};
    for (const double matrix : matrices) {
      if (matrix >= least)
        units.push_back({matrix, at, at + matrix});
      else
        module.parameters += matrix;
      at += matrix;
    }
    module.end = at, at += bias;
    const bool wrapped = module.parameters >= least;
    if (wrapped) units.push_back(module);
    rest += bias + (wrapped ? 0 : module.parameters);
  };
  const double head = layer.qkv / t / (model.heads + 2.0 * model.kv_heads);
  wrap({head * model.heads, head * model.kv_heads, head * model.kv_heads, layer.proj / t}, layer.proj_bias);
  if (model.gated_ffn)
    wrap({layer.fc1 / t / 2, layer.fc1 / t / 2, layer.fc2 / t}, layer.fc2_bias);
  else
    wrap({layer.fc1 / t, layer.fc2 / t}, layer.fc2_bias);
  if (rest >= least) units.push_back({rest, 0, at});
  return units;
}
}  // namespace topsim::workloads

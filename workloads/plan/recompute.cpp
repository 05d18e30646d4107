// What the backward pass computes again (Korthikanti et al. 2022, arXiv 2205.05198, section 5).
#include <fmt/format.h>

#include <algorithm>

#include "workloads/model.hpp"
#include "workloads/plan/parts.hpp"

namespace topsim::workloads {

RecomputeSpec recompute_meant(const PlanSpec& spec, const Framework& defaults) {
  const RecomputeKind usual = spec.recompute_modules.empty() ? defaults.recompute : RecomputeKind::selective;
  const RecomputeSpec meant = spec.recompute.value_or(RecomputeSpec{usual, std::nullopt});
  return meant.layers == 0 ? RecomputeSpec{} : meant;
}

// By default selective recompute repeats the attention core (Korthikanti et al. 2022; Megatron-Core,
// transformer_config.py: recompute_modules ["core_attn"]); outside Megatron with latent attention what
// DeepSeek-V3's report lists (3.2.3); for other models in PyTorch frameworks what torchtitan does; in
// JAX what lies between products and has no weights
// (jax.checkpoint_policies.checkpoint_dots_with_no_batch_dims). The names are those of Megatron's
// --recompute-modules.
void set_recompute(const WorkloadSpec& workload, const Framework& defaults, Plan& plan, Mistakes& mistakes) {
  const PlanSpec& spec = workload.plan;
  const std::vector<std::string>& modules = spec.recompute_modules;
  plan.recompute = recompute_meant(spec, defaults);
  const std::vector<int>& stages = plan.stage_layers;
  if (const auto most = std::max_element(stages.begin(), stages.end());
      plan.recompute.layers && most != stages.end() && *plan.recompute.layers > *most)
    mistakes.add("plan.recompute",
                 fmt::format("{} layers are to be computed again in every {}stage, and none has more than {}",
                             *plan.recompute.layers, plan.virtual_stages > 1 ? "virtual " : "", *most),
                 "\"full\" computes all again");
  const bool latent = workload.model.attention.kind == AttentionKind::mla;
  const bool reported = latent && defaults.family != FrameworkFamily::megatron;
  const bool operators = defaults.selective_operators && !latent && !workload.model.parallel_residual;
  const bool kept = defaults.keeps_products && !latent;
  plan.again = {.core = !reported && !operators,
                .latent = reported,
                .activation = reported || (kept && workload.model.experts.count > 0),
                .norms = kept,
                .operators = operators,
                .scatters = operators && defaults.recomputes_scatters,
                .between = kept,
                .to_the_end = !defaults.checkpoints_stop};
  if (modules.empty()) return;
  if (plan.recompute.kind != RecomputeKind::selective)
    mistakes.add("plan.recompute_modules", "only selective recompute chooses modules",
                 "set recompute to selective, or leave it out");
  const auto named = [&](const char* module) {
    return std::find(modules.begin(), modules.end(), module) != modules.end();
  };
  plan.again = {.core = named("core_attn"),
                .latent = named("mla_up_proj"),
                .activation = named("moe_act"),
                .norms = kept || named("layernorm"),
                .mlp = named("mlp"),
                .projection = named("out_proj"),
                .between = kept,
                .to_the_end = !defaults.checkpoints_stop};
  for (const char* whole : {"moe", "shared_experts"})
    if (named(whole))
      mistakes.add(
          "plan.recompute_modules",
          fmt::format("{} as a whole is computed again only with its layer",
                      std::string_view(whole) == "moe" ? "the mixture of experts (moe)" : "shared_experts"),
          "\"moe_act\" does the experts' activation again, recompute \"full\" all of the layer");
  if (plan.again.latent && !latent)
    mistakes.add("plan.recompute_modules",
                 "mla_up_proj belongs to latent attention, which the model has not");
  if (plan.again.mlp && (operators || count_of(workload.model, LayerKind::dense) == 0))
    mistakes.add(
        "plan.recompute_modules",
        operators ? "mlp is a module of Megatron's and MaxText's layers"
                  : "mlp is the dense network, and every layer has experts",
        operators ? "use framework megatron or maxtext, or leave recompute_modules out" : "leave mlp out");
  // save_qkv_proj (MaxText/layers/models.py, get_remat_policy): what reads the projection's result, the
  // second norm and the network, has to be done again too.
  const auto refuse_projection = [&](std::string why, const char* help) {
    if (plan.again.projection) mistakes.add("plan.recompute_modules", std::move(why), help);
  };
  if (!defaults.keeps_products) {
    refuse_projection(fmt::format("framework {} does not compute the output projection again", defaults.name),
                      "use framework maxtext or pax, or leave out_proj out");
  } else if (latent || count_of(workload.model, LayerKind::dense) == 0) {
    refuse_projection(latent ? "out_proj is not described for latent attention"
                             : "out_proj is computed again with a dense network, and every layer has experts",
                      "leave out_proj out");
  } else if (!plan.again.core || !plan.again.mlp) {
    refuse_projection("what follows out_proj would have to be kept without what it is made of",
                      "add core_attn and mlp: all three are MaxText's save_qkv_proj");
  }
  if (plan.again.activation && workload.model.experts.count == 0)
    mistakes.add("plan.recompute_modules",
                 "moe_act is the experts' activation, and the model has no experts");
}
}  // namespace topsim::workloads

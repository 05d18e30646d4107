#include "workloads/layer/token_copies.hpp"

#include <algorithm>

namespace topsim::workloads {
namespace {
// Copies of a token whose experts are on at most `open` of `places`.
double copies(const ModelSpec& model, const Plan& plan, double places, double open) {
  const double held = plan.experts.slots / places;
  double missed = 1;
  for (int i = 0; i < model.experts.top_k; ++i)
    missed *= std::max(0.0, ((open - 1) * held - i) / (open * held - i));
  return open * (1 - missed);
}
}  // namespace

int exchange_domains(const Plan& plan) {
  const int domain = plan.domain_ranks > 0 ? plan.domain_ranks : plan.ep * plan.etp;
  return (plan.ep * plan.etp + domain - 1) / domain;
}

double copies_sent(const ModelSpec& model, const Plan& plan) {
  const int limit = model.experts.node_limit, over = exchange_domains(plan);
  if (over == 1) return copies(model, plan, plan.ep, plan.ep);
  return copies(model, plan, over, limit > 0 ? std::min(over, limit) : over);
}

double ranks_visited(const ModelSpec& model, const Plan& plan) {
  const int limit = model.experts.node_limit, over = exchange_domains(plan);
  const double open = plan.ep * (limit > 0 && limit < over ? static_cast<double>(limit) / over : 1.0);
  return copies(model, plan, plan.ep, open);
}
}  // namespace topsim::workloads

#include "sim/executor/reasons.hpp"

#include <algorithm>

namespace topsim::executor {

using program::Dimension;

Reason while_running(Dimension dimension, bool point_to_point) {
  switch (dimension) {
    case Dimension::tensor:
      return Reason::tensor_parallel;
    case Dimension::context:
      return Reason::context_parallel;
    case Dimension::expert:
      return Reason::expert_parallel;
    case Dimension::data:
    case Dimension::expert_data:
    case Dimension::embedding:
      return Reason::data_parallel;
    case Dimension::pipeline:
      return Reason::pipeline_transfer;
    case Dimension::offload:
      return Reason::offload;
    case Dimension::model_parallel:
    case Dimension::world:
      return point_to_point ? Reason::pipeline_transfer : Reason::other;
  }
  return Reason::other;
}

Reason beside_computing(program::Phase phase) {
  return phase == program::Phase::transfer ? Reason::pipeline_transfer : Reason::offload;
}

Relation relation_of(const program::Program& program) {
  const auto& peers = program.peer_dimension;
  const auto any = [&](Dimension dimension) {
    return std::find(peers.begin(), peers.end(), dimension) != peers.end();
  };
  if (program.classes.size() <= 1) return Relation::strangers;
  if (any(Dimension::pipeline)) return Relation::stages;
  return any(Dimension::data) ? Relation::replicas : Relation::strangers;
}

Reason before_running(Dimension dimension, bool spans_programs, Relation relation) {
  if (dimension == Dimension::offload) return Reason::offload;
  if (!spans_programs || relation == Relation::strangers) return Reason::straggler;
  return relation == Relation::replicas ? Reason::data_parallel : Reason::pipeline_bubble;
}

Reason reason_at_end(const program::Program& program) {
  switch (relation_of(program)) {
    case Relation::stages:
      return Reason::pipeline_bubble;
    case Relation::replicas:
      return Reason::data_parallel;
    case Relation::strangers:
      break;
  }
  return Reason::straggler;
}
}  // namespace topsim::executor

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

Reason before_running(Dimension dimension, bool spans_programs) {
  if (dimension == Dimension::offload) return Reason::offload;
  // Replicas that do not all do the same: one of them works for all (torch.nn.DataParallel).
  if (spans_programs && dimension == Dimension::data) return Reason::data_parallel;
  return spans_programs ? Reason::pipeline_bubble : Reason::straggler;
}

Reason reason_at_end(const program::Program& program) {
  if (program.classes.size() <= 1) return Reason::straggler;
  const auto& peers = program.peer_dimension;
  const bool replicas = !peers.empty() && std::all_of(peers.begin(), peers.end(), [](Dimension dimension) {
    return dimension == Dimension::data;
  });
  return replicas ? Reason::data_parallel : Reason::pipeline_bubble;
}
}  // namespace topsim::executor

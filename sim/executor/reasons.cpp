#include "sim/executor/reasons.hpp"

namespace topsim::executor {

using program::Dimension;

std::string_view name_of(Reason reason) {
  switch (reason) {
    case Reason::pipeline_bubble:
      return "pipeline_bubble";
    case Reason::tensor_parallel:
      return "tensor_parallel";
    case Reason::data_parallel:
      return "data_parallel";
    case Reason::pipeline_transfer:
      return "pipeline_transfer";
    case Reason::context_parallel:
      return "context_parallel";
    case Reason::expert_parallel:
      return "expert_parallel";
    case Reason::straggler:
      return "straggler";
    case Reason::host:
      return "host";
    case Reason::offload:
      return "offload";
    case Reason::other:
      return "other";
  }
  return "other";
}

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
  return spans_programs ? Reason::pipeline_bubble : Reason::straggler;
}
}  // namespace topsim::executor

#include "sim/report/reason_text.hpp"

#include <algorithm>

namespace topsim::report {

std::string reason_text(executor::Reason reason) {
  switch (reason) {
    case executor::Reason::pipeline_bubble:
      return "pipeline bubble";
    case executor::Reason::straggler:
      return "waiting for the slowest";
    case executor::Reason::host:
      return "host and launch";
    case executor::Reason::offload:
      return "offload";
    case executor::Reason::other:
      return "other idle";
    case executor::Reason::tensor_parallel:
    case executor::Reason::data_parallel:
    case executor::Reason::pipeline_transfer:
    case executor::Reason::context_parallel:
    case executor::Reason::expert_parallel:
      break;
  }
  std::string text = "exposed " + std::string(name_of(reason));
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string trace_reason_text(executor::Reason reason) {
  if (reason == executor::Reason::pipeline_transfer) return "exposed messages";
  if (reason == executor::Reason::straggler) return "other ranks' part";
  // Groups of a trace have no dimension of a plan.
  if (reason == executor::Reason::other) return "collectives and other";
  return reason_text(reason);
}
}  // namespace topsim::report

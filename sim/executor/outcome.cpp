#include "sim/executor/outcome.hpp"

namespace topsim::executor {

std::string_view name_of(Reason reason) {
  constexpr std::array<std::string_view, kReasons> names{
      "pipeline_bubble", "tensor_parallel", "data_parallel", "pipeline_transfer", "context_parallel",
      "expert_parallel", "straggler",       "host",          "offload",           "other"};
  return names[static_cast<std::size_t>(reason)];
}
}  // namespace topsim::executor

// What data-parallel ranks exchange in a step, read from its program.
#pragma once

#include <numeric>
#include <vector>

#include "sim/program/program.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads::testing {

// All but a gradient norm's 4 bytes.
inline std::vector<program::Op> collectives(const program::Program& program, program::Phase phase) {
  std::vector<program::Op> ops;
  for (const auto& op : program.classes[0].ops)
    if (op.kind == program::OpKind::collective && op.phase == phase && op.bytes > Bytes(4)) ops.push_back(op);
  return ops;
}
inline double bytes(const std::vector<program::Op>& ops) {
  return std::accumulate(ops.begin(), ops.end(), 0.0, [](double sum, const auto& op) {
    return sum + static_cast<double>(op.bytes.value());
  });
}
inline double parameters_of(const ModelSpec& given) {
  const ModelSpec model = complete(given);
  return model.layers * layer_parameters(model).total() + embedding_parameters(model) +
         head_parameters(model) + final_norm_parameters(model);
}
}  // namespace topsim::workloads::testing

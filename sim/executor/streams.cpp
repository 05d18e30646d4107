#include "sim/executor/streams.hpp"

#include "sim/engine/engine.hpp"

namespace topsim::executor {

StreamTable::StreamTable(const program::RankProgram& program)
    : ops(program.streams.size()),
      position(program.ops.size()),
      issued_by(1, 0),
      sync_before(program.ops.size()),
      frees(program.ops.size()) {
  for (std::size_t s = 0; s < ops.size(); ++s) all |= only(static_cast<std::uint16_t>(s));
  std::uint32_t sync = kNoOp;
  for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
    const program::Op& op = program.ops[i];
    stream.push_back(op.stream);
    position[i] = static_cast<std::uint32_t>(ops[op.stream].size());
    ops[op.stream].push_back(i);
    if (op.launch > kNever.time_since_epoch() - Duration(issued_by.back())) engine::too_late();
    issued_by.push_back(issued_by.back() + op.launch.count());
    sync_before[i] = sync;
    if (op.host_sync) sync = i;
    frees[i] |= op.host_sync ? all : only(op.stream);
    for (const std::uint32_t d : program.dependencies_of(i)) frees[d] |= only(op.stream);
  }
}
}  // namespace topsim::executor

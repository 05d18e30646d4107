#include "sim/executor/streams.hpp"

#include "sim/engine/engine.hpp"

namespace topsim::executor {

StreamTable::StreamTable(const program::RankProgram& program)
    : ops(program.streams.size()), places(program.ops.size() + 1) {
  for (std::size_t s = 0; s < ops.size(); ++s) all |= only(static_cast<std::uint16_t>(s));
  std::uint32_t sync = kNoOp;
  for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
    const program::Op& op = program.ops[i];
    Place& place = places[i];
    place.stream = op.stream;
    place.position = static_cast<std::uint32_t>(ops[op.stream].size());
    ops[op.stream].push_back(i);
    if (op.launch > kNever.time_since_epoch() - Duration(place.issued_by)) engine::too_late();
    places[i + 1U].issued_by = place.issued_by + op.launch.count();
    place.sync_before = sync;
    if (op.host_sync) sync = i;
    place.frees |= op.host_sync ? all : only(op.stream);
    for (const std::uint32_t d : program.dependencies_of(i)) places[d].frees |= only(op.stream);
  }
  needs.reserve(program.dependencies.size());
  for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
    for (const std::uint32_t d : program.dependencies_of(i))
      needs.push_back({places[d].position, places[d].stream});
    places[i + 1U].needs_begin = static_cast<std::uint32_t>(needs.size());
  }
  heads.reserve(program.ops.size() + ops.size());
  for (const std::vector<std::uint32_t>& stream : ops) {
    heads_begin.push_back(static_cast<std::uint32_t>(heads.size()));
    heads.insert(heads.end(), stream.begin(), stream.end());
    heads.push_back(kNoOp);
  }
}
}  // namespace topsim::executor

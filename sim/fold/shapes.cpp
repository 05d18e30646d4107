#include "sim/fold/shapes.hpp"

#include <algorithm>

namespace topsim::fold {
namespace {

using program::CollectiveKind;
using program::OpKind;

std::vector<CallShape>* list_of(Shapes& shapes, std::size_t cls, const program::Op& op) {
  switch (op.kind) {
    case OpKind::collective:
      return &shapes.collectives[cls][op.slot];
    case OpKind::send:
      return &shapes.sends[cls][op.slot];
    case OpKind::host_copy:
      return &shapes.host[cls][op.slot];
    case OpKind::recv:  // as its send
    case OpKind::compute:
    case OpKind::host_work:
      break;
  }
  return nullptr;
}

}  // namespace

Shapes collect_shapes(const program::Program& program) {
  Shapes shapes;
  const std::size_t classes = program.classes.size();
  shapes.collectives.assign(classes, std::vector<std::vector<CallShape>>(program.communicator_slots.size()));
  shapes.sends.assign(classes, std::vector<std::vector<CallShape>>(program.peer_slots.size()));
  shapes.host.assign(classes, std::vector<std::vector<CallShape>>(program::Op::kHostSlots));
  shapes.op_shape.resize(classes);
  const auto shape = [](const program::Op& op) {
    if (op.kind != OpKind::collective) return CallShape{CollectiveKind::send_recv, op.bytes.value()};
    return CallShape{op.collective, op.bytes.value(), op.duration};
  };
  for (std::size_t c = 0; c < classes; ++c) {
    const auto& ops = program.classes[c].ops;
    for (const program::Op& op : ops) {
      if (auto* list = list_of(shapes, c, op)) list->push_back(shape(op));
    }
    for (auto* lists : {&shapes.collectives[c], &shapes.sends[c], &shapes.host[c]}) {
      for (auto& list : *lists) {  // sorted, so that all members of a communicator number them alike
        std::sort(list.begin(), list.end());
        list.erase(std::unique(list.begin(), list.end()), list.end());
      }
    }
    shapes.op_shape[c].assign(ops.size(), 0);
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (const auto* list = list_of(shapes, c, ops[i])) {
        const auto at = std::lower_bound(list->begin(), list->end(), shape(ops[i]));
        shapes.op_shape[c][i] = static_cast<std::uint32_t>(at - list->begin());
      }
    }
  }
  return shapes;
}
}  // namespace topsim::fold

// A program on an imaginary network without shared links: a call of B bytes takes B nanoseconds (1 GB/s), so
// that the expected times are simple sums.
#pragma once

#include "sim/executor/executor.hpp"
#include "sim/network/factory.hpp"

namespace topsim::executor {

class SmallWorld {
 public:
  explicit SmallWorld(std::uint32_t ranks) {
    program_.ranks = ranks;
    program_.class_of_rank.assign(ranks, 0);
    program_.labels.push_back("op");
  }

  // One class per list of ops. With several classes, class c runs on rank c; a single class runs on all
  // ranks.
  std::uint16_t add_class(const std::vector<program::Op>& ops,
                          const std::vector<std::vector<std::uint32_t>>& dependencies = {}) {
    program::RankProgram cls;
    cls.ops = ops;
    cls.grids = grids;
    cls.in_launch_order = in_launch_order;
    cls.dependency_begin.push_back(0);
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (i < dependencies.size()) {
        cls.dependencies.insert(cls.dependencies.end(), dependencies[i].begin(), dependencies[i].end());
      }
      cls.dependency_begin.push_back(static_cast<std::uint32_t>(cls.dependencies.size()));
      while (cls.streams.size() <= ops[i].stream) cls.streams.push_back("stream");
    }
    program_.classes.push_back(cls);
    return static_cast<std::uint16_t>(program_.classes.size() - 1);
  }

  std::vector<PaceChange> pace_changes;  // applied in the next run
  std::vector<program::Grids> grids;     // grids of the next class
  bool in_launch_order = false;          // the next class
  std::uint32_t communicators = 1;       // how many communicators do the same
  Duration latency{};                    // added to every call
  double memory_traffic = 0;  // bytes of accelerator memory per byte of a call, which has 1e9 a second
  AcceleratorFacts other{};   // of every rank but the first, if it has compute units
  bool walks = false;  // all ranks are one team that may walk in lock-step; no messages and timeline then

  // Slot 0 is one group of all ranks, for collectives. Messages go from rank to rank + 1, sent on peer slot 0
  // and received on slot 1, and back the other way round.
  Outcome run(program::Dimension dimension, int steps = 1, AcceleratorFacts facts = {}, int ctas = 0,
              std::vector<double> slowdowns = {}) {
    const std::uint32_t n = program_.ranks;
    if (program_.classes.size() > 1) {
      for (std::uint32_t r = 0; r < n; ++r) program_.class_of_rank[r] = static_cast<std::uint16_t>(r);
    }
    fold::System system;
    for (std::uint32_t r = 0; r < n; ++r) {
      system.ranks.push_back({program_.class_of_rank[r],
                              r < slowdowns.size() ? slowdowns[r] : 1.0,
                              DeviceId(r > 0 && other.compute_units > 0 ? 1U : 0U),
                              {RankId(r)}});
    }
    fold::GroupClass all;
    all.dimension = dimension;
    all.size = n;
    all.count = communicators;
    all.spans_programs = program_.classes.size() > 1;
    for (std::uint32_t r = 0; r < n; ++r) all.members.push_back(r);
    if (walks) all.communicator = CommunicatorId(0);
    program_.communicator_slots.resize(walks ? 1 : 0);
    system.groups.push_back(all);
    system.group_of.assign(1, std::vector<std::uint32_t>(n, 0));
    system.out_edge.assign(2, std::vector<std::uint32_t>(n, fold::System::kNone));
    system.in_edge = system.out_edge;
    for (std::uint32_t r = 0; r + 1 < n && !walks; ++r) {  // members of a team have the same partners
      for (const auto& [from, to, slot] : {std::tuple(r, r + 1, 0), std::tuple(r + 1, r, 1)}) {
        fold::GroupClass edge;
        edge.dimension = program::Dimension::pipeline;
        edge.size = 2;
        edge.count = 1;
        edge.spans_programs = true;
        edge.members = {from, to};
        const auto id = static_cast<std::uint32_t>(system.groups.size());
        system.out_edge[static_cast<std::size_t>(slot)][from] = id;
        system.in_edge[static_cast<std::size_t>(1 - slot)][to] = id;
        system.groups.push_back(edge);
      }
    }
    if (dimension == program::Dimension::pipeline) program_.peer_dimension.assign(2, dimension);
    for (const auto& cls : program_.classes) {
      auto& shapes = system.op_shape.emplace_back();
      for (const program::Op& op : cls.ops) shapes.push_back(shape(system, op, ctas));
    }
    for (fold::Activity& activity : system.activities) {
      activity.latency = latency;
      activity.memory_traffic = memory_traffic;
    }
    topology::TopologyBuilder builder;
    topology::Device device{topology::DeviceKind::accelerator};
    device.model = builder.model("test");
    device.node = 0;
    builder.set_nodes(1);
    builder.device(device);
    device.model = builder.model("other");
    builder.device(device);
    const topology::Topology topology = std::move(builder).finish();
    RunOptions options;
    options.warmup = 0;
    options.steps = steps;
    options.timeline = !walks;
    options.accelerators = {facts, other};
    options.pace_changes = pace_changes;
    const auto network = network::find_model("flow").make({});
    const auto carrier = pipelined_carrier(system, *network, false, nullptr);
    return executor::run(program_, system, topology, *network, *carrier, options, nullptr, walks);
  }

 private:
  // Every group offers every size that occurs, so a shape is an index into one shared list.
  static std::uint16_t shape(fold::System& system, const program::Op& op, int ctas) {
    if (op.kind == program::OpKind::compute || op.kind == program::OpKind::host_work) return 0;
    const auto& known = system.groups[0].activities;
    for (std::size_t s = 0; s < known.size(); ++s) {
      if (system.activities[known[s]].bytes == op.bytes) return static_cast<std::uint16_t>(s);
    }
    for (auto& group : system.groups) {
      fold::Activity activity;
      activity.bytes = op.bytes;
      activity.rate_cap = 1e9;
      activity.ctas = ctas;
      group.activities.push_back(static_cast<std::uint32_t>(system.activities.size()));
      system.activities.push_back(activity);
    }
    return static_cast<std::uint16_t>(known.size() - 1);
  }

  program::Program program_;
};

inline program::Op compute(Duration duration, Duration launch = {}) {
  program::Op op;
  op.duration = duration;
  op.launch = launch;
  return op;
}
inline program::Op communicate(program::OpKind kind, std::int64_t nanoseconds, std::uint8_t stream,
                               std::uint8_t slot = 0) {
  program::Op op;
  op.kind = kind;
  op.bytes = Bytes(nanoseconds);
  op.stream = stream;
  op.slot = slot;
  return op;
}
}  // namespace topsim::executor

// A small executor for tests: one rank for each class of a Program, streams in order, the host's launches,
// collectives and messages that take a given time on an idle network. What differs between replicas (skew,
// contention) it cannot show; what the program itself says it shows exactly.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>
#include <vector>

#include "sim/program/program.hpp"

namespace topsim::workloads::testing {

struct Replay {
  std::function<Duration(const program::Op&, const program::Communicator&)> collective;
  std::function<Duration(Bytes)> message;
  bool launches = true;

  struct Result {
    Duration step{};
    std::vector<Duration> busy;                // of each class's compute stream
    std::vector<std::vector<Duration>> ended;  // of each class's ops
  };

  [[nodiscard]] Result run(const program::Program& program) const {
    using program::OpKind;
    const std::size_t classes = program.classes.size();
    std::vector<std::uint32_t> rank_of(classes, 0);
    for (std::uint32_t rank = program.ranks; rank-- > 0;) rank_of[program.class_of_rank[rank]] = rank;
    // Ops of each class: when the host issued them, when they ended; kNot: not yet.
    constexpr Duration kNot = Duration::max();
    struct State {
      std::size_t issuing = 0;  // next op the host launches
      Duration host{};
      std::vector<std::vector<std::size_t>> queue;  // ops of each stream
      std::vector<std::size_t> next;
      std::vector<Duration> free, issued;
    };
    std::vector<State> states(classes);
    Result result;
    result.busy.resize(classes), result.ended.resize(classes);
    for (std::size_t c = 0; c < classes; ++c) {
      const auto& ops = program.classes[c].ops;
      State& state = states[c];
      state.queue.resize(program.classes[c].streams.size());
      state.next.resize(state.queue.size()), state.free.resize(state.queue.size());
      for (std::size_t i = 0; i < ops.size(); ++i) state.queue[ops[i].stream].push_back(i);
      state.issued.assign(ops.size(), kNot);
      result.ended[c].assign(ops.size(), kNot);
    }
    // (sender class, slot) -> arrivals of its messages in order; how many the receiver has taken.
    std::map<std::pair<std::size_t, int>, std::vector<Duration>> sent;
    std::map<std::pair<std::size_t, int>, std::size_t> taken;
    // Collectives among several classes: arrivals of call k of a communicator.
    std::map<std::pair<std::uint32_t, std::size_t>, std::map<std::size_t, Duration>> arrived;
    std::map<std::pair<std::size_t, int>, std::size_t> calls;

    // Runs the op when everything it needs is known; false: later.
    const auto try_op = [&](std::size_t c, std::size_t i) {
      const program::Op& op = program.classes[c].ops[i];
      State& state = states[c];
      if (state.issued[i] == kNot) return false;
      Duration begin = std::max(state.issued[i], state.free[op.stream]);
      for (const std::uint32_t d : program.classes[c].dependencies_of(i)) {
        if (result.ended[c][d] == kNot) return false;
        begin = std::max(begin, result.ended[c][d]);
      }
      Duration end = begin;
      if (op.kind == OpKind::compute) {
        end += op.duration;
        result.busy[c] += op.duration;
      } else if (op.kind == OpKind::host_work) {
        end += op.duration;
      } else if (op.kind == OpKind::send) {
        end += message(op.bytes);
        sent[{c, op.slot}].push_back(end);
      } else if (op.kind == OpKind::recv) {
        const auto peer = program.peer_slots[op.slot][rank_of[c]];
        const std::pair<std::size_t, int> key{program.class_of_rank[peer.index()],
                                              program.peer_counterpart[op.slot]};
        std::size_t& count = taken[key];
        if (sent[key].size() <= count) return false;
        end = std::max(begin, sent[key][count++]);
      } else if (op.kind == OpKind::collective) {
        const auto id = program.communicator_slots[op.slot][rank_of[c]];
        const auto& communicator = program.communicators[id.index()];
        std::map<std::size_t, bool> members;  // classes that take part
        for (const RankId member : program.members_of(id)) members[program.class_of_rank[member.index()]];
        auto& arrivals = arrived[{id.value, calls[{c, op.slot}]}];
        arrivals[c] = begin;
        if (arrivals.size() < members.size()) return false;
        for (const auto& [other, when] : arrivals) begin = std::max(begin, when);
        end = begin + collective(op, communicator);
        ++calls[{c, op.slot}];
      }
      state.free[op.stream] = result.ended[c][i] = end;
      result.step = std::max(result.step, end);
      return true;
    };
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t c = 0; c < classes; ++c) {
        State& state = states[c];
        const auto& ops = program.classes[c].ops;
        while (state.issuing < ops.size()) {
          if (state.issuing > 0 && ops[state.issuing - 1].host_sync) {
            const Duration before = result.ended[c][state.issuing - 1];
            if (before == kNot) break;
            state.host = std::max(state.host, before);
          }
          if (launches) state.host += ops[state.issuing].launch;
          state.issued[state.issuing++] = state.host;
          moved = true;
        }
        for (std::size_t s = 0; s < state.queue.size(); ++s)
          while (state.next[s] < state.queue[s].size() && try_op(c, state.queue[s][state.next[s]]))
            ++state.next[s], moved = true;
      }
    }
    for (std::size_t c = 0; c < classes; ++c)
      for (const Duration end : result.ended[c])
        if (end == kNot) throw std::logic_error("the program never ends");
    return result;
  }
};

// A network and a host that take no time: only kernels do.
inline Replay free_network() {
  return {[](const program::Op&, const program::Communicator&) { return Duration{}; },
          [](Bytes) { return Duration{}; }, false};
}

// By how many seconds a step grows if every gather of parameters takes `each` and nothing else takes any
// time.
inline double growth_by_parameter_sync(const program::Program& program, Duration each) {
  Replay network = free_network();
  const Duration alone = network.run(program).step;
  network.collective = [each](const program::Op& op, const program::Communicator&) {
    return op.phase == program::Phase::parameter_sync ? each : Duration{};
  };
  return seconds(network.run(program).step - alone);
}
}  // namespace topsim::workloads::testing

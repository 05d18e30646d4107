#include "sim/scenario/replayed.hpp"

#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "workloads/trace/load.hpp"
#include "workloads/trace/replay.hpp"

namespace topsim::scenario {
namespace {
// What is wrong with a trace as a whole (no such file) is wrong where the scenario names it.
ConfigError said_by_path(const ConfigError& error) {
  std::vector<Problem> problems = error.problems();
  for (Problem& problem : problems) {
    if (problem.place.line > 0) continue;
    if (!problem.place.file.empty()) problem.message = problem.place.file + ": " + problem.message;
    problem.place = {};
    problem.path = "workload.trace.path";
  }
  return ConfigError(std::move(problems));
}
}  // namespace

program::Program replayed(const Scenario& scenario, const topology::Accelerator& accelerator,
                          std::uint32_t ranks) {
  const workloads::TraceSpec& spec = *scenario.workload.trace;
  const std::string folder = scenario.topology.directory;
  const workloads::trace::Trace trace = [&] {
    try {
      return workloads::trace::load(spec, folder, ranks);
    } catch (const ConfigError& error) {
      throw said_by_path(error);
    }
  }();
  if (trace.ranks != ranks) {
    Problem problem;
    problem.path = "workload.trace";
    problem.message = "the trace has " + std::to_string(trace.ranks) + " ranks, the topology " +
                      std::to_string(ranks) + " accelerators";
    problem.help = trace.ranks < ranks ? "set topology.accelerators to " + std::to_string(trace.ranks)
                                       : "add nodes, or replay it on a topology of " +
                                             std::to_string(trace.ranks) + " accelerators";
    throw ConfigError({problem});
  }
  return workloads::trace::to_program(trace, accelerator);
}
}  // namespace topsim::scenario

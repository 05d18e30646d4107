#include "sim/scenario/run/replayed.hpp"

#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "workloads/trace/load.hpp"
#include "workloads/trace/replay.hpp"

namespace topsim::scenario {
namespace {
// An error of a trace as a whole (no such file) is reported at the key that names it.
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

std::vector<report::Finding> idle_beside_trace(const Scenario& scenario) {
  std::vector<report::Finding> found;
  if (!scenario.workload.trace || !scenario.document) return found;
  const auto add = [&](const config::Node& node) {
    if (node.is(config::Kind::null) || config::is_remark(node.key()) || node.key() == "description") return;
    found.push_back({report::Severity::warning,
                     node.path() + " has no effect: what runs, and how long, is the trace's", node.path(),
                     "leave it out, or leave workload.trace out"});
  };
  const config::Node workload = scenario.document->root().find("workload");
  for (std::size_t i = 0; i < workload.size(); ++i) {
    const config::Node key = workload[i];
    if (key.key() == "trace") continue;
    if (key.key() != "compute") {
      add(key);
      continue;
    }
    for (std::size_t k = 0; k < key.size(); ++k)
      if (key[k].key() != "slow_ranks") add(key[k]);
  }
  return found;
}

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

#include "sim/scenario/faults.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "sim/base/error.hpp"

namespace topsim::scenario {
namespace {
using topology::DeviceKind;
using topology::Topology;

class Faults {
 public:
  Faults(const Topology& topology, executor::RunOptions& options) : topology_(topology), options_(options) {}

  void add(const FaultSpec& fault, const std::string& path) {
    switch (fault.kind) {
      case FaultKind::link_down:
        return change(fault, path, links_named(fault.target), 0);
      case FaultKind::link_degraded:
        return change(fault, path, links_named(fault.target), fault.factor);
      case FaultKind::nic_down:
        return change(fault, path, links_of_nic(fault.target), 0);
      case FaultKind::gpu_slow:
        return slow_down(fault, path);
      case FaultKind::gpu_down:
        return problem(
            path + ".kind", "a step does not finish without one of its accelerators",
            "use gpu_slow, or simulate the job that is left after a restart (topology.accelerators)");
    }
  }
  void finish() {
    if (!problems_.empty()) throw ConfigError(std::move(problems_));
  }

 private:
  void problem(const std::string& path, const std::string& message, const std::string& help) {
    Problem p;
    p.path = path;
    p.message = message;
    p.help = help;
    problems_.push_back(std::move(p));
  }

  // "node0/nic0 -> leaf0", or both directions of "node0/nic0 - leaf0".
  [[nodiscard]] std::vector<LinkId> links_named(const std::string& target) const {
    std::vector<LinkId> found;
    for (std::size_t i = 0; i < topology_.links().size(); ++i) {
      const topology::Link& link = topology_.links()[i];
      const std::string from = topology_.name(link.from), to = topology_.name(link.to);
      if (target == from + " -> " + to || target == from + " - " + to || target == to + " - " + from) {
        found.emplace_back(i);
      }
    }
    return found;
  }
  [[nodiscard]] std::vector<LinkId> links_of_nic(const std::string& target) const {
    std::vector<LinkId> found;
    const auto nic = topology_.find_device(target);
    if (!nic || topology_.device(*nic).kind != DeviceKind::nic) return found;
    for (std::size_t i = 0; i < topology_.links().size(); ++i) {
      const topology::Link& link = topology_.links()[i];
      if (link.from == *nic || link.to == *nic) found.emplace_back(i);
    }
    return found;
  }

  void change(const FaultSpec& fault, const std::string& path, const std::vector<LinkId>& links,
              double factor) {
    if (links.empty()) {
      return problem(path + ".target", "the topology has no \"" + fault.target + '"',
                     "topsim topo show names devices; a link is \"node0/nic0 -> leaf0\", both its directions "
                     "\"node0/nic0 - leaf0\"");
    }
    for (const LinkId link : links) {
      options_.capacity_changes.push_back({SimTime(fault.at), link, factor});
      if (fault.lasts) options_.capacity_changes.push_back({SimTime(fault.at + *fault.lasts), link, 1});
    }
  }

  void slow_down(const FaultSpec& fault, const std::string& path) {
    const auto device = topology_.find_device(fault.target);
    const auto ranks = topology_.accelerators();
    const auto at = device ? std::find(ranks.begin(), ranks.end(), *device) : ranks.end();
    if (at == ranks.end()) {
      return problem(path + ".target", "the job has no accelerator \"" + fault.target + '"',
                     "e.g. \"node0/gpu3\"; topsim topo show names them");
    }
    if (fault.factor <= 0) return problem(path + ".factor", "a slow accelerator still computes", "above 0");
    if (fault.at.count() != 0 || fault.lasts) {
      return problem(path + ".at", "an accelerator is slow for the whole run or not at all",
                     "leave out \"at\" and \"for\"");
    }
    options_.slow_ranks.emplace_back(RankId(static_cast<std::size_t>(at - ranks.begin())), 1 / fault.factor);
  }

  const Topology& topology_;
  executor::RunOptions& options_;
  std::vector<Problem> problems_;
};
}  // namespace

void apply_faults(std::span<const FaultSpec> faults, const Topology& topology,
                  executor::RunOptions& options) {
  Faults all(topology, options);
  for (std::size_t i = 0; i < faults.size(); ++i) all.add(faults[i], "faults[" + std::to_string(i) + ']');
  all.finish();
}

std::vector<Problem> parts_that_stay_down(std::span<const FaultSpec> faults) {
  std::vector<Problem> problems;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const FaultSpec& fault = faults[i];
    const bool down = fault.kind == FaultKind::link_down || fault.kind == FaultKind::nic_down ||
                      (fault.kind == FaultKind::link_degraded && fault.factor == 0);
    if (!down || fault.lasts) continue;
    Problem problem;
    problem.path = "faults[" + std::to_string(i) + "].target";
    problem.message =
        "the workload cannot finish: its transfers wait for " + fault.target + ", which stays down";
    problem.help = "say how long with \"for\", e.g. \"for\": \"2 s\", or use link_degraded";
    problems.push_back(std::move(problem));
  }
  return problems;
}
}  // namespace topsim::scenario

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
  Faults(const Topology& topology, bool restarts, executor::RunOptions& options)
      : topology_(topology), restarts_(restarts), options_(options) {}

  void add(const FaultSpec& fault, const std::string& path) {
    switch (fault.kind) {
      case FaultKind::link_down:
        return change(fault, path, links_named(fault.target), 0);
      case FaultKind::link_degraded:
        return change(fault, path, links_named(fault.target), fault.factor);
      case FaultKind::nic_down:
        return change(fault, path, links_of_nic(fault.target), 0);
      case FaultKind::link_flapping:
        return flap(fault, path);
      case FaultKind::gpu_slow:
        return slow_down(fault, path);
      case FaultKind::gpu_down:
        return lose(fault, path);
    }
  }
  AppliedFaults finish() {
    if (!problems_.empty()) throw ConfigError(std::move(problems_));
    return std::move(applied_);
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

  // False, and said so: there are none.
  bool found(const std::vector<LinkId>& links, const FaultSpec& fault, const std::string& path) {
    if (links.empty())
      problem(path + ".target", "the topology has no \"" + fault.target + '"',
              "topsim topo show names devices; a link is \"node0/nic0 -> leaf0\", both its directions "
              "\"node0/nic0 - leaf0\"");
    return !links.empty();
  }

  void change(const FaultSpec& fault, const std::string& path, const std::vector<LinkId>& links,
              double factor) {
    if (!found(links, fault, path)) return;
    if (factor == 0 && fault.at.count() == 0 && !fault.lasts) {
      applied_.dead.insert(applied_.dead.end(), links.begin(), links.end());
      applied_.notes.push_back(fault.target + " is down for the whole run: what used it takes other paths");
      return;
    }
    for (const LinkId link : links) {
      options_.capacity_changes.push_back({SimTime(fault.at), link, factor});
      if (fault.lasts) options_.capacity_changes.push_back({SimTime(fault.at + *fault.lasts), link, 1});
    }
  }

  void flap(const FaultSpec& fault, const std::string& path) {
    const std::vector<LinkId> links = links_named(fault.target);
    if (!found(links, fault, path)) return;
    constexpr std::int64_t kMostOutages = 100000;
    if (*fault.lasts / *fault.period > kMostOutages)
      return problem(path + ".period", "more than 100,000 outages", "a longer period, or a shorter \"for\"");
    const Duration end = fault.at + *fault.lasts;
    for (Duration outage = fault.at; outage < end; outage += *fault.period)
      for (const LinkId link : links) {
        options_.capacity_changes.push_back({SimTime(outage), link, 0});
        options_.capacity_changes.push_back({SimTime(std::min(outage + *fault.down, end)), link, 1});
      }
  }

  // The step itself is that of the whole job: it restarts on a spare.
  void lose(const FaultSpec& fault, const std::string& path) {
    if (!rank_of(fault, path)) return;
    if (!restarts_)
      return problem(
          path + ".kind", "a step does not finish without one of its accelerators",
          "say how the job restarts: \"reliability\": {\"checkpoint_time\": ..., \"restart\": ...}; "
          "or use gpu_slow");
    if (fault.lasts)
      return problem(path + ".for", "a lost accelerator is replaced after \"restart\" of reliability",
                     "leave out \"for\"");
    applied_.losses.push_back(fault.at);
  }

  std::optional<RankId> rank_of(const FaultSpec& fault, const std::string& path) {
    const auto ranks = topology_.accelerators();
    for (std::size_t i = 0; i < ranks.size(); ++i)
      if (fault.target == topology_.name(ranks[i]) || fault.target == "rank " + std::to_string(i))
        return RankId(i);
    problem(path + ".target", "the job has no accelerator \"" + fault.target + '"',
            "e.g. \"node0/gpu3\" or a rank, 0 to " + std::to_string(ranks.size() - 1) +
                "; topsim topo show names them");
    return std::nullopt;
  }

  void slow_down(const FaultSpec& fault, const std::string& path) {
    const auto rank = rank_of(fault, path);
    if (!rank) return;
    if (fault.factor <= 0) return problem(path + ".factor", "a slow accelerator still computes", "above 0");
    if (fault.at.count() == 0 && !fault.lasts) {
      options_.slow_ranks.emplace_back(*rank, 1 / fault.factor);
      return;
    }
    options_.pace_changes.push_back({SimTime(fault.at), *rank, fault.factor});
    if (fault.lasts) options_.pace_changes.push_back({SimTime(fault.at + *fault.lasts), *rank, 1});
  }

  const Topology& topology_;
  bool restarts_;
  executor::RunOptions& options_;
  AppliedFaults applied_;
  std::vector<Problem> problems_;
};
}  // namespace

AppliedFaults apply_faults(const Scenario& scenario, const Topology& topology,
                           executor::RunOptions& options) {
  Faults all(topology, scenario.reliability.has_value(), options);
  for (std::size_t i = 0; i < scenario.faults.size(); ++i)
    all.add(scenario.faults[i], "faults[" + std::to_string(i) + ']');
  return all.finish();
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
    problem.help =
        "say how long with \"for\", e.g. \"for\": \"2 s\"; without \"at\" it is down from the beginning and "
        "other paths are taken";
    problems.push_back(std::move(problem));
  }
  return problems;
}
}  // namespace topsim::scenario

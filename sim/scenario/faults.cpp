#include "sim/scenario/faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/base/error.hpp"

namespace topsim::scenario {
namespace {
using topology::DeviceKind;
using topology::Topology;

// From `begin` to `end` a link or a rank has this factor of what it would have.
template <class Item>
struct Spell {
  Item item;
  Duration begin, end;
  double factor;
};

// Spells as changes in time: where several hold at once their factors multiply.
template <class Change, class Item>
std::vector<Change> changes_of(const std::vector<Spell<Item>>& spells) {
  std::map<Item, std::vector<const Spell<Item>*>> of_item;
  for (const Spell<Item>& spell : spells) of_item[spell.item].push_back(&spell);
  std::vector<Change> changes;
  for (const auto& [item, own] : of_item) {
    std::set<Duration> instants;
    for (const Spell<Item>* spell : own) instants.insert({spell->begin, spell->end});
    double before = 1;
    for (const Duration at : instants) {
      if (at == Duration::max()) continue;
      double factor = 1;
      for (const Spell<Item>* spell : own)
        if (spell->begin <= at && at < spell->end) factor *= spell->factor;
      if (factor != before) changes.push_back({SimTime(at), item, factor});
      before = factor;
    }
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.at < b.at; });
  return changes;
}

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
        return change(fault, path, links_of(fault.target, DeviceKind::nic), 0);
      case FaultKind::switch_down:
        return change(fault, path, links_of(fault.target, DeviceKind::fabric_switch), 0);
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
    add_routes();
    options_.capacity_changes = changes_of<executor::CapacityChange>(capacities_);
    options_.pace_changes = changes_of<executor::PaceChange>(paces_);
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
      // One of several cables side by side has a number of its own ("#1").
      const std::string number = topology_.name(LinkId(i)).substr((from + " -> " + to).size());
      for (const std::string& name : {from + " -> " + to, from + " - " + to, to + " - " + from}) {
        if (target != name && target != name + number) continue;
        found.emplace_back(i);
        break;
      }
    }
    return found;
  }
  [[nodiscard]] std::vector<LinkId> links_of(const std::string& target, DeviceKind kind) const {
    std::vector<LinkId> found;
    const auto device = topology_.find_device(target);
    if (!device || topology_.device(*device).kind != kind) return found;
    for (std::size_t i = 0; i < topology_.links().size(); ++i) {
      const topology::Link& link = topology_.links()[i];
      if (link.from == *device || link.to == *device) found.emplace_back(i);
    }
    return found;
  }

  // False, and said so: there are none.
  bool found(const std::vector<LinkId>& links, const FaultSpec& fault, const std::string& path) {
    const bool other = topology_.find_device(fault.target).has_value();
    if (links.empty())
      problem(path + ".target",
              other ? '"' + fault.target + "\" is another kind of part than this fault is of"
                    : "the topology has no \"" + fault.target + '"',
              "topsim topo show names devices; a link is \"node0/nic0 -> leaf0\", both its directions "
              "\"node0/nic0 - leaf0\"");
    return !links.empty();
  }

  void change(const FaultSpec& fault, const std::string& path, const std::vector<LinkId>& links,
              double factor) {
    if (!found(links, fault, path)) return;
    // Messages that take any of several cables have them as one.
    const int cables = topology_.link(links.front()).count;
    if (fault.kind == FaultKind::link_down && cables > 1)
      applied_.notes.push_back(fmt::format(
          "{} is {} cables side by side and all are down; link_degraded with factor {:.4g} cuts one",
          fault.target, cables, 1.0 - 1.0 / cables));
    if (factor == 0 && fault.at.count() == 0 && !fault.lasts) {
      applied_.dead.insert(applied_.dead.end(), links.begin(), links.end());
      applied_.notes.push_back(fault.target + " is down for the whole run: what used it takes other paths");
      return;
    }
    if (factor == 0) {
      const Duration failover = after(fault.at, fault.failover);
      outages_.push_back({failover, end_of(fault), links});
      if (failover < end_of(fault))
        applied_.notes.push_back(
            fmt::format("{} is down from {:.6g} s on; where other paths are left they are taken from "
                        "{:.6g} s on",
                        fault.target, seconds(fault.at), seconds(failover)));
    }
    for (const LinkId link : links) capacities_.push_back({link, fault.at, end_of(fault), factor});
  }

  void flap(const FaultSpec& fault, const std::string& path) {
    const std::vector<LinkId> links = links_named(fault.target);
    if (!found(links, fault, path)) return;
    constexpr std::int64_t kMostOutages = 100000;
    if (*fault.lasts / *fault.period > kMostOutages)
      return problem(path + ".period", "more than 100,000 outages", "a longer period, or a shorter \"for\"");
    const Duration end = end_of(fault);
    for (Duration outage = fault.at; outage < end; outage = after(outage, *fault.period)) {
      outages_.push_back({after(outage, fault.failover), std::min(after(outage, *fault.down), end), links});
      for (const LinkId link : links)
        capacities_.push_back({link, outage, std::min(after(outage, *fault.down), end), 0});
    }
  }

  // What the clock cannot reach does not end.
  static Duration after(Duration at, Duration more) {
    return more > Duration::max() - at ? Duration::max() : at + more;
  }
  static Duration end_of(const FaultSpec& fault) {
    return fault.lasts ? after(fault.at, *fault.lasts) : Duration::max();
  }

  // Which links no route takes, from each instant to the next one.
  void add_routes() {
    std::erase_if(outages_, [](const Outage& outage) { return outage.begin >= outage.end; });
    std::vector<Duration> instants;
    for (const Outage& outage : outages_) {
      instants.push_back(outage.begin);
      if (outage.end != Duration::max()) instants.push_back(outage.end);
    }
    std::sort(instants.begin(), instants.end());
    instants.erase(std::unique(instants.begin(), instants.end()), instants.end());
    for (const Duration at : instants) {
      std::vector<LinkId> dead;
      for (const Outage& outage : outages_)
        if (outage.begin <= at && at < outage.end)
          dead.insert(dead.end(), outage.links.begin(), outage.links.end());
      std::sort(dead.begin(), dead.end());
      dead.erase(std::unique(dead.begin(), dead.end()), dead.end());
      applied_.routes.push_back({at, std::move(dead)});
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
    paces_.push_back({*rank, fault.at, end_of(fault), fault.factor});
  }

  const Topology& topology_;
  bool restarts_;
  executor::RunOptions& options_;
  AppliedFaults applied_;
  struct Outage {
    Duration begin, end;  // of what routes know
    std::vector<LinkId> links;
  };
  std::vector<Outage> outages_;
  std::vector<Spell<LinkId>> capacities_;
  std::vector<Spell<RankId>> paces_;
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

std::vector<Problem> parts_that_stay_down(std::span<const FaultSpec> faults, const std::string& why) {
  std::vector<Problem> problems;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const FaultSpec& fault = faults[i];
    const bool down = fault.kind == FaultKind::link_down || fault.kind == FaultKind::nic_down ||
                      fault.kind == FaultKind::switch_down ||
                      (fault.kind == FaultKind::link_degraded && fault.factor == 0);
    if (!down || fault.lasts) continue;
    Problem problem;
    problem.path = "faults[" + std::to_string(i) + "].target";
    problem.message = fmt::format("the workload cannot finish: {} stays down from {:.6g} s on", fault.target,
                                  seconds(fault.at));
    if (!why.empty()) problem.message += ", and " + why;
    problem.help = "say how long with \"for\", e.g. \"for\": \"2 s\"; or build a second path";
    problems.push_back(std::move(problem));
  }
  return problems;
}
}  // namespace topsim::scenario

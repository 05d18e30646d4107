#include "sim/scenario/cluster/faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/network/factory.hpp"
#include "sim/scenario/cluster/fault_spells.hpp"
#include "topology/named_link.hpp"

namespace topsim::scenario {
namespace {
using topology::DeviceKind;
using topology::NamedLink;
using topology::Topology;

class Faults {
 public:
  Faults(const Scenario& scenario, const Topology& topology, executor::RunOptions& options)
      : topology_(topology),
        restarts_(scenario.reliability.has_value()),
        divides_(topology.routing == topology::Routing::adaptive &&
                 !network::find_model(scenario.network.model).messages_only),
        options_(options) {}

  void add(const FaultSpec& fault, const std::string& path) {
    switch (fault.kind) {
      case FaultKind::link_down:
        return change(fault, path, topology::find_links(topology_, fault.target), 0);
      case FaultKind::link_degraded:
        return change(fault, path, topology::find_links(topology_, fault.target), fault.left());
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
    settle_whole_run();
    options_.capacity_changes = changes_of<executor::CapacityChange>(capacities_);
    add_routes();
    say_nics_left();
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

  [[nodiscard]] std::vector<NamedLink> links_of(const std::string& target, DeviceKind kind) const {
    std::vector<NamedLink> found;
    const auto device = topology_.find_device(target);
    if (!device || topology_.device(*device).kind != kind) return found;
    for (std::size_t i = 0; i < topology_.links().size(); ++i) {
      const topology::Link& link = topology_.links()[i];
      if (link.from == *device || link.to == *device) found.push_back({LinkId(i), 1, 0, {}, {}, {}});
    }
    return found;
  }

  // Reports an error and returns false if there are none.
  bool found(const std::vector<NamedLink>& links, const FaultSpec& fault, const std::string& path) {
    const bool other = topology_.find_device(fault.target).has_value();
    if (links.empty())
      problem(path + ".target",
              other ? '"' + fault.target + "\" is another kind of part than this fault is of"
                    : "the topology has no \"" + fault.target + '"',
              "topsim topo show names devices; a link is \"node0/nic0 -> leaf0\", both its directions "
              "\"node0/nic0 - leaf0\", one of several cables \"leaf0 - spine0 #1\"");
    return !links.empty();
  }

  // The number of cables that the target names, in one direction: separate links if each message uses a
  // single cable, else one link.
  [[nodiscard]] std::size_t cables_of(const std::vector<NamedLink>& links) const {
    std::size_t cables = 0;
    for (const NamedLink& each : links)
      if (each.from == links.front().from) cables += topology_.link(each.link).count / each.of;
    return cables;
  }
  // Links of which nothing is left from the beginning to the end are dead; others have the rest.
  void settle_whole_run() {
    std::map<LinkId, Down> down;
    for (const NamedLink& part : down_throughout_) down[part.link].add(part, 1);
    for (const NamedLink& part : down_throughout_) {
      if (!down[part.link].all()) {
        capacities_.push_back({part.link, Duration{}, Duration::max(), 0, part.of, part.part});
        outages_.push_back({Duration{}, Duration::max(), {part}});
      } else if (std::find(applied_.dead.begin(), applied_.dead.end(), part.link) == applied_.dead.end()) {
        applied_.dead.push_back(part.link);
        if (part.of > 1)
          applied_.notes.push_back(topology_.name(part.link) +
                                   " has no cable left for the whole run: what used it takes other paths");
      }
    }
  }

  void change(const FaultSpec& fault, const std::string& path, const std::vector<NamedLink>& links,
              double factor) {
    if (!found(links, fault, path)) return;
    if (fault.kind == FaultKind::link_down && cables_of(links) > 1)
      applied_.notes.push_back(fmt::format(
          "{0} is {1} cables side by side and all are down; \"{0} #0\" to \"#{2}\" are single ones",
          fault.target, cables_of(links), cables_of(links) - 1));
    // A link that stands for several cables continues at once over the others, while there are any.
    const bool a_part = links.front().of > 1;
    if (factor == 0 && fault.at.count() == 0 && !fault.lasts) {
      down_throughout_.insert(down_throughout_.end(), links.begin(), links.end());
      if (!a_part)
        applied_.notes.push_back(fault.target + " is down for the whole run: what used it takes other paths");
      return;
    }
    if (factor == 0) {
      const Duration failover = after(fault.at, fault.failover);
      outages_.push_back({failover, end_of(fault), links});
      if (failover < end_of(fault) && !a_part)
        applied_.notes.push_back(
            fmt::format("{} is down from {:.6g} s on; where other paths are left they are taken from "
                        "{:.6g} s on",
                        fault.target, seconds(fault.at), seconds(failover)));
    }
    degrade(fault, links, factor);
  }
  void degrade(const FaultSpec& fault, const std::vector<NamedLink>& links, double factor) {
    for (const NamedLink& each : links)
      capacities_.push_back({each.link, fault.at, end_of(fault), factor, each.of, each.part});
  }

  void flap(const FaultSpec& fault, const std::string& path) {
    const std::vector<NamedLink> links = topology::find_links(topology_, fault.target);
    if (!found(links, fault, path)) return;
    constexpr std::int64_t kMostOutages = 100000;
    if (*fault.lasts / *fault.period > kMostOutages)
      return problem(path + ".period", "more than 100,000 outages", "a longer period, or a shorter \"for\"");
    const Duration end = end_of(fault);
    for (Duration outage = fault.at; outage < end; outage = after(outage, *fault.period)) {
      const Duration over = std::min(after(outage, *fault.down), end);
      outages_.push_back({after(outage, fault.failover), over, links});
      for (const NamedLink& each : links)
        capacities_.push_back({each.link, outage, over, 0, each.of, each.part});
    }
  }

  // A time beyond the clock's range never ends.
  static Duration after(Duration at, Duration more) {
    return more > Duration::max() - at ? Duration::max() : at + more;
  }
  static Duration end_of(const FaultSpec& fault) {
    return fault.lasts ? after(fault.at, *fault.lasts) : Duration::max();
  }

  // NCCL skips ports that are down when it starts, and its ranks agree on the smallest number found on any
  // node.
  void say_nics_left() {
    if (applied_.dead.empty() || !topology_.torus_chips.empty()) return;
    const std::set<LinkId> dead(applied_.dead.begin(), applied_.dead.end());
    struct Nics {
      std::size_t all = 0, left = 0;
    };
    std::map<std::uint32_t, Nics> of_node;
    std::size_t lost = 0;
    for (std::size_t i = 0; i < topology_.devices().size(); ++i) {
      const topology::Device& device = topology_.devices()[i];
      if (device.kind != DeviceKind::nic) continue;
      bool cabled = false, works = false;
      for (const LinkId l : topology_.links_from(DeviceId(i)))
        if (topology_.device(topology_.link(l).to).node != device.node)
          cabled = true, works = works || !dead.contains(l);
      Nics& nics = of_node[device.node];
      nics.all += cabled ? 1 : 0;
      nics.left += works ? 1 : 0;
      lost += cabled && !works ? 1 : 0;
    }
    if (lost == 0) return;
    const auto fewest = std::min_element(of_node.begin(), of_node.end(), [](const auto& a, const auto& b) {
      return a.second.left < b.second.left;
    });
    const std::string down = lost == 1 ? "a NIC that is down" : fmt::format("{} NICs that are down", lost);
    applied_.notes.push_back(
        fmt::format("collectives between nodes begin without {}; every node has channels for as many NICs as "
                    "node{}, where the fewest are left: {} of {}",
                    down, fewest->first, fewest->second.left, fewest->second.all));
  }

  // The links that no route uses, from each instant to the next.
  void add_routes() {
    std::vector<const Outage*> outages;
    for (const Outage& outage : outages_) outages.push_back(&outage);
    std::map<LinkId, Down> down;
    std::set<LinkId> dead;
    const auto count = [&](const Outage& outage, int by) {
      for (const NamedLink& part : outage.links) {
        down[part.link].add(part, by);
        if (down[part.link].all())
          dead.insert(part.link);
        else
          dead.erase(part.link);
      }
    };
    sweep(
        outages, [&](const Outage* outage) { count(*outage, 1); },
        [&](const Outage* outage) { count(*outage, -1); },
        [&](Duration at) {
          std::vector<LinkId> links(dead.begin(), dead.end());
          const bool as_before =
              applied_.routes.empty() ? links.empty() : links == applied_.routes.back().dead;
          if (!as_before) applied_.routes.push_back({at, std::move(links), {}});
        });
    add_slow_links();
  }

  // Adaptive switches send less over a link between them that carries less. One that carries nothing holds up
  // what is on it, until it is dead.
  void add_slow_links() {
    if (!divides_) return;
    std::map<Duration, std::vector<executor::CapacityChange>> changes;
    for (const executor::CapacityChange& change : options_.capacity_changes) {
      const topology::Link& link = topology_.link(change.link);
      if (topology_.device(link.from).kind == DeviceKind::fabric_switch &&
          topology_.device(link.to).kind == DeviceKind::fabric_switch)
        changes[change.at.time_since_epoch()].push_back(change);
    }
    std::map<Duration, std::vector<LinkId>> dead;
    for (const AppliedFaults::Routes& routes : applied_.routes) dead[routes.at] = routes.dead;
    std::map<Duration, AppliedFaults::Routes> states;
    for (const auto& [at, links] : dead) states[at].at = at;
    for (const auto& [at, all] : changes) states[at].at = at;
    std::map<LinkId, double> slow;
    applied_.routes.clear();
    std::vector<LinkId> avoided;
    for (auto& [at, state] : states) {
      if (const auto here = dead.find(at); here != dead.end()) avoided = here->second;
      if (const auto here = changes.find(at); here != changes.end())
        for (const executor::CapacityChange& change : here->second) slow[change.link] = change.factor;
      state.dead = avoided;
      for (const auto& [link, factor] : slow)
        if (factor > 0 && factor < 1) state.slow.push_back({link, factor});
      if (at == Duration{}) applied_.slow = state.slow;
      if (at > Duration{} || dead.contains(at)) applied_.routes.push_back(std::move(state));
    }
  }

  // The step itself is that of the whole job, which restarts on a spare.
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
    const bool quoted = !fault.target.empty() && std::all_of(fault.target.begin(), fault.target.end(),
                                                             [](char c) { return c >= '0' && c <= '9'; });
    problem(path + ".target", "the job has no accelerator \"" + fault.target + '"',
            quoted ? "a rank is a number, " + fault.target + " without quotes"
                   : "e.g. \"node0/gpu3\" or a rank, 0 to " + std::to_string(ranks.size() - 1) +
                         "; topsim topo show names them");
    return std::nullopt;
  }

  void slow_down(const FaultSpec& fault, const std::string& path) {
    const auto rank = rank_of(fault, path);
    if (!rank) return;
    if (fault.left() <= 0) return problem(path + ".factor", "a slow accelerator still computes", "above 0");
    if (fault.at.count() == 0 && !fault.lasts) {
      options_.slow_ranks.emplace_back(*rank, 1 / fault.left());
      return;
    }
    paces_.push_back({*rank, fault.at, end_of(fault), fault.left(), 1, 0});
  }

  const Topology& topology_;
  bool restarts_;
  bool divides_;  // messages over several paths, by what these carry; single packets see themselves what is
                  // slow
  executor::RunOptions& options_;
  AppliedFaults applied_;
  struct Outage {
    Duration begin, end;  // during which routes avoid the links
    std::vector<NamedLink> links;
  };
  std::vector<Outage> outages_;
  std::vector<NamedLink> down_throughout_;
  std::vector<Spell<LinkId>> capacities_;
  std::vector<Spell<RankId>> paces_;
  std::vector<Problem> problems_;
};
}  // namespace

AppliedFaults apply_faults(const Scenario& scenario, const Topology& topology, executor::RunOptions& options,
                           bool (*which)(const FaultSpec&)) {
  Faults all(scenario, topology, options);
  for (std::size_t i = 0; i < scenario.faults.size(); ++i)
    if (which == nullptr || which(scenario.faults[i]))
      all.add(scenario.faults[i], "faults[" + std::to_string(i) + ']');
  return all.finish();
}

bool holds_throughout(const FaultSpec& fault) {
  const bool of_links = fault.kind == FaultKind::link_down || fault.kind == FaultKind::link_degraded ||
                        fault.kind == FaultKind::nic_down || fault.kind == FaultKind::switch_down;
  return of_links && fault.at.count() == 0 && !fault.lasts;
}

std::vector<Problem> parts_that_stay_down(std::span<const FaultSpec> faults, const std::string& why) {
  std::vector<Problem> problems;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const FaultSpec& fault = faults[i];
    const bool down = fault.kind == FaultKind::link_down || fault.kind == FaultKind::nic_down ||
                      fault.kind == FaultKind::switch_down ||
                      (fault.kind == FaultKind::link_degraded && fault.left() == 0);
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

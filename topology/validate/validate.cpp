#include "topology/validate/validate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <span>

#include "topology/catalogue/link_entry.hpp"
#include "topology/line_rates.hpp"
#include "topology/routes.hpp"
#include "topology/validate/cuts.hpp"

namespace topsim::topology {
namespace {

double gigabits(BytesPerSecond rate) {
  return rate.value() * 8e-9;
}

// "leaf0", or "leaf0 and 7 more".
std::string several(const Topology& t, const std::vector<DeviceId>& devices) {
  std::string text = t.name(devices.front());
  if (devices.size() > 1) text += fmt::format(" and {} more", devices.size() - 1);
  return text;
}

// A cable this many times as fast as the fastest of its kind is a mistake: each generation doubles the rate
// of a lane.
constexpr double kMargin = 2;

// Bytes/s of the catalogue's fastest single link of each kind.
class Fastest {
 public:
  explicit Fastest(const Catalogue& catalogue) {
    int nvlinks = 1;  // of an accelerator; a description may give them as one link
    for (const CatalogueEntry& entry : catalogue.entries()) {
      if (entry.category == "link") {
        const LinkEntry& link = catalogue.link(entry.id);
        double& most = by_kind_[link.kind];
        most = std::max(most, link.line_rate.value());
      } else if (entry.category == "accelerator") {
        const Accelerator& accelerator = catalogue.accelerator(entry.id);
        const std::string& link = accelerator.scale_up_link;
        if (!link.empty() && catalogue.link(link).kind == LinkKind::nvlink)
          nvlinks = std::max(nvlinks, accelerator.nvlinks);
      }
    }
    by_kind_[LinkKind::nvlink] *= nvlinks;
    // Ports of both have the same lanes, and for Ethernet rates are announced earlier.
    by_kind_[LinkKind::infiniband] = by_kind_[LinkKind::ethernet] =
        std::max(by_kind_[LinkKind::infiniband], by_kind_[LinkKind::ethernet]);
  }
  // 0: a kind whose makers choose the number of parallel links.
  [[nodiscard]] double of(LinkKind kind) const {
    constexpr std::array kJudged{LinkKind::infiniband, LinkKind::ethernet, LinkKind::pcie, LinkKind::nvlink};
    const auto fastest = by_kind_.find(kind);
    const bool judged = std::find(kJudged.begin(), kJudged.end(), kind) != kJudged.end();
    return judged && fastest != by_kind_.end() ? fastest->second : 0;
  }

 private:
  std::map<LinkKind, double> by_kind_;
};

class Check {
 public:
  Check(const Topology& topology, const Catalogue& catalogue) : t_(topology), fastest_(catalogue) {}

  std::vector<Finding> run() {
    oversubscription();
    ends();
    directions();
    uplinks();
    ports();
    rails();
    scale_up();
    slots();
    speeds();
    for (Finding& each : overfull_links(t_)) found_.push_back(std::move(each));
    cuts();
    unreachable();
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
    return std::move(found_);
  }

 private:
  void add(Severity severity, std::string message, std::string where) {
    found_.push_back({severity, std::move(message), std::move(where)});
  }
  [[nodiscard]] bool is_switch(DeviceId d) const { return t_.device(d).kind == DeviceKind::fabric_switch; }
  [[nodiscard]] int tier(DeviceId d) const { return is_switch(d) ? t_.device(d).tier : 0; }

  // Line rates towards lower and higher tiers; equal ratios of a tier are one finding.
  void oversubscription() {
    std::map<std::pair<int, std::int64_t>, std::vector<DeviceId>> by_ratio;
    for (std::size_t i = 0; i < t_.devices().size(); ++i) {
      const DeviceId d(i);
      if (!is_switch(d)) continue;
      double down = 0, up = 0;
      for (const LinkId l : t_.links_from(d)) {
        const Link& link = t_.link(l);
        if (tier(link.to) < tier(d)) down += link.line_rate.value();
        if (tier(link.to) > tier(d)) up += link.line_rate.value();
      }
      if (up <= 0 || down <= up * 1.0001) continue;
      by_ratio[{tier(d), std::llround(down / up * 1000)}].push_back(d);
    }
    for (const auto& [key, devices] : by_ratio)
      add(Severity::warning,
          fmt::format("{} {} {:.4g}:1 oversubscribed (topology.fabric.oversubscription)",
                      several(t_, devices), devices.size() > 1 ? "are" : "is",
                      static_cast<double>(key.second) / 1000),
          t_.name(devices.front()));
  }

  // Switches without a cable upwards although others of their tier have some.
  void ends() {
    // Those without such a cable, and how many have some.
    std::map<int, std::pair<std::vector<DeviceId>, std::size_t>> by_tier;
    for (std::size_t i = 0; i < t_.devices().size(); ++i) {
      const DeviceId d(i);
      if (!is_switch(d)) continue;
      const auto links = t_.links_from(d);
      const bool climbs =
          std::any_of(links.begin(), links.end(), [&](LinkId l) { return tier(t_.link(l).to) > tier(d); });
      auto& [without, with] = by_tier[tier(d)];
      if (climbs)
        ++with;
      else
        without.push_back(d);
    }
    for (const auto& [level, found] : by_tier) {
      const auto& [without, with] = found;
      if (without.empty() || with == 0) continue;
      add(Severity::warning,
          fmt::format("{} {} no cable upwards, {} others of the tier have", several(t_, without),
                      without.size() > 1 ? "have" : "has", with),
          t_.name(without.front()));
    }
  }

  // Cables from a switch down to NICs that are slower than their siblings.
  void ports() {
    const auto each = [](const Link& x) { return gigabits(x.line_rate) / x.count; };
    std::map<std::pair<double, double>, std::vector<LinkId>> by_speeds;  // (slow, its fastest sibling)
    for (std::size_t i = 0; i < t_.devices().size(); ++i) {
      const DeviceId d(i);
      if (!is_switch(d)) continue;
      double fast = 0;
      for (const LinkId l : t_.links_from(d))
        if (!is_switch(t_.link(l).to)) fast = std::max(fast, each(t_.link(l)));
      for (const LinkId l : t_.links_from(d))
        if (!is_switch(t_.link(l).to) && each(t_.link(l)) < fast * kJustBelow)
          by_speeds[{each(t_.link(l)), fast}].push_back(l);
    }
    for (const auto& [speeds, links] : by_speeds)
      add(Severity::warning,
          fmt::format("the cable {}{} {} at {:g} Gbit/s, others of the switch at {:g}",
                      t_.name(links.front()),
                      links.size() > 1 ? fmt::format(" and {} more", links.size() - 1) : "",
                      links.size() > 1 ? "run" : "runs", speeds.first, speeds.second),
          t_.name(t_.link(links.front()).to));
  }

  // Accelerators without a link to the switches that connect the others of their node.
  void scale_up() {
    // Those without such a link, and how many have some.
    std::map<std::uint32_t, std::pair<std::vector<DeviceId>, std::size_t>> by_node;
    for (const DeviceId gpu : t_.accelerators()) {
      const auto links = t_.links_from(gpu);
      const bool joined = std::any_of(links.begin(), links.end(), [&](LinkId l) {
        return t_.device(t_.link(l).to).kind == DeviceKind::nvswitch;
      });
      auto& [without, with] = by_node[t_.device(gpu).node];
      if (joined)
        ++with;
      else
        without.push_back(gpu);
    }
    std::vector<DeviceId> all;
    for (const auto& [node, found] : by_node)
      if (found.second > 0) all.insert(all.end(), found.first.begin(), found.first.end());
    if (!all.empty())
      add(Severity::warning,
          fmt::format("{} {} no link to the NVSwitches that join the node's others", several(t_, all),
                      all.size() > 1 ? "have" : "has"),
          t_.name(all.front()));
  }

  // Cables of a switch to the tier above that are slower than their siblings.
  void uplinks() {
    for (std::size_t i = 0; i < t_.devices().size(); ++i) {
      const DeviceId d(i);
      if (!is_switch(d)) continue;
      std::optional<Link> fastest, slowest;
      for (const LinkId l : t_.links_from(d)) {
        const Link link = t_.link(l);
        if (tier(link.to) <= tier(d)) continue;
        const auto each = [](const Link& x) { return x.line_rate.value() / x.count; };
        if (!fastest || each(link) > each(*fastest)) fastest = link;
        if (!slowest || each(link) < each(*slowest)) slowest = link;
      }
      if (!fastest) continue;
      const double fast = gigabits(fastest->line_rate) / fastest->count,
                   slow = gigabits(slowest->line_rate) / slowest->count;
      if (slow < fast * kJustBelow)
        add(Severity::warning,
            fmt::format("the cable {} - {} runs at {:g} Gbit/s, its siblings at {:g}", t_.name(d),
                        t_.name(slowest->to), slow, fast),
            t_.name(d));
    }
  }

  // Cables described in one direction only, which is seldom intended.
  void directions() {
    std::vector<std::string> lonely;
    for (const Link& link : t_.links()) {
      const auto back = t_.links_from(link.to);
      if (std::none_of(back.begin(), back.end(), [&](LinkId l) { return t_.link(l).to == link.from; }))
        lonely.push_back(t_.name(link.from) + " -> " + t_.name(link.to));
    }
    if (lonely.empty()) return;
    const std::string others = lonely.size() > 1 ? fmt::format(" and {} more", lonely.size() - 1) : "";
    add(Severity::warning,
        fmt::format("{}{} {} no way back (one_way)", lonely.front(), others, others.empty() ? "has" : "have"),
        lonely.front());
  }

  // Working fabric ports of every node; the number that most nodes have is the norm, in a tie the larger one.
  void rails() {
    if (t_.nodes() < 2) return;
    std::vector<int> ports(t_.nodes());
    for (const Link& l : t_.links())
      if (is_switch(l.to) && !is_switch(l.from) && t_.device(l.from).node != DeviceId::kNone)
        ++ports[t_.device(l.from).node];
    std::map<int, int> nodes_with;
    for (const int p : ports) ++nodes_with[p];
    const auto usual =
        std::max_element(nodes_with.begin(), nodes_with.end(), [](const auto& a, const auto& b) {
          return std::pair(a.second, a.first) < std::pair(b.second, b.first);
        });
    for (std::uint32_t node = 0; node < t_.nodes(); ++node)
      if (ports[node] < usual->first)
        add(Severity::warning,
            fmt::format("node{} has {} cable{} into the fabric where the others have {}: it misses a rail",
                        node, ports[node], ports[node] == 1 ? "" : "s", usual->first),
            fmt::format("node{}", node));
  }

  // One finding per NIC model, because the slots of a node are alike.
  void slots() {
    std::map<std::uint32_t, std::pair<DeviceId, std::string>> by_model;
    for (std::size_t i = 0; i < t_.devices().size(); ++i) {
      const DeviceId d(i);
      if (t_.device(d).kind != DeviceKind::nic) continue;
      double out = 0, slot = 0;
      for (const LinkId l : t_.links_from(d)) {
        const Link& link = t_.link(l);
        if (is_switch(link.to)) out += link.line_rate.value();
        if (link.kind == LinkKind::pcie) slot = std::max(slot, link.capacity.value());
      }
      if (slot <= 0 || out <= slot) continue;
      by_model.emplace(
          t_.device(d).model,
          std::pair(d, fmt::format("{} ({}) can send {:g} Gbit/s but its PCIe slot carries {:.0f}",
                                   t_.name(d), t_.model_of(d), out * 8e-9, slot * 8e-9)));
    }
    for (const auto& [model, finding] : by_model)
      add(Severity::warning, finding.second, t_.name(finding.first));
  }

  void speeds() {
    for (std::size_t i = 0; i < t_.links().size(); ++i) {
      const Link& l = t_.links()[i];
      // NCCL gives NICs that are no PCIe device, as in virtual machines, 5000 GB/s.
      if (t_.type_of(LinkId(i)).id == kNoSlot) continue;
      const double each = l.line_rate.value() / l.count, most = fastest_.of(l.kind);
      if (most > 0 && each > kMargin * most)
        add(Severity::error,
            fmt::format("{} claims {:g} GB/s a cable: no {} does that", t_.name(LinkId(i)), each * 1e-9,
                        name_of(l.kind)),
            t_.name(l.from));
    }
  }

  void cuts() {
    std::map<int, std::vector<DeviceId>> by_tier;
    for (const DeviceId d : single_points_of_failure(t_)) by_tier[tier(d)].push_back(d);
    for (const auto& [level, devices] : by_tier)
      add(Severity::warning,
          fmt::format("{}: without {} some nodes are cut off from the others (single point of failure)",
                      several(t_, devices), devices.size() > 1 ? "any one of these" : "it"),
          t_.name(devices.front()));
  }

  void unreachable() {
    const auto gpus = t_.accelerators();
    if (gpus.empty()) return;
    // Links are directed: every accelerator must be reachable from the first one, and reach it.
    for (const bool forth : {true, false}) {
      const std::vector<bool> reached = reached_from(gpus.front(), forth);
      const auto lost =
          std::find_if(gpus.begin(), gpus.end(), [&](DeviceId gpu) { return !reached[gpu.index()]; });
      if (lost == gpus.end()) continue;
      const Router router(t_, 0);
      const auto [from, to] = forth ? std::pair(gpus.front(), *lost) : std::pair(*lost, gpus.front());
      return add(Severity::error, router.why_unreachable({.from = from, .to = to}), t_.name(*lost));
    }
    if (t_.has_explicit_names()) unrouted(gpus);
  }

  // Files may join devices by ways that no message takes, as from NIC to NIC through a processor: of rails
  // that do not meet, each GPU has the NICs of one.
  void unrouted(std::span<const DeviceId> gpus) {
    const Router router(t_, 0);
    Route route;
    for (const DeviceId gpu : gpus.subspan(1))
      for (const auto& [from, to] : {std::pair(gpus.front(), gpu), std::pair(gpu, gpus.front())}) {
        router.route({.from = from, .to = to}, route);
        if (!route.reachable())
          return add(Severity::error, router.why_unreachable({.from = from, .to = to}), t_.name(gpu));
      }
  }
  [[nodiscard]] std::vector<bool> reached_from(DeviceId start, bool forth) const {
    std::vector<std::vector<DeviceId>> beside(t_.devices().size());
    for (const Link& l : t_.links()) beside[(forth ? l.from : l.to).index()].push_back(forth ? l.to : l.from);
    std::vector<bool> reached(t_.devices().size());
    std::vector<DeviceId> next{start};
    reached[start.index()] = true;
    while (!next.empty()) {
      const DeviceId d = next.back();
      next.pop_back();
      for (const DeviceId other : beside[d.index()])
        if (!reached[other.index()]) next.push_back(other), reached[other.index()] = true;
    }
    return reached;
  }

  const Topology& t_;
  const Fastest fastest_;
  std::vector<Finding> found_;
};

}  // namespace

std::string_view name_of(Severity severity) {
  constexpr std::array<std::string_view, 3> names = {"info", "warning", "error"};
  return names[static_cast<std::size_t>(severity)];
}

std::vector<Finding> check(const Topology& topology, const Catalogue& catalogue) {
  return Check(topology, catalogue).run();
}

std::vector<Finding> overfull_links(const Topology& topology) {
  std::vector<Finding> found;
  for (std::size_t i = 0; i < topology.links().size(); ++i) {
    const Link& l = topology.links()[i];
    if (l.capacity.value() > l.line_rate.value() * 1.0001)
      found.push_back({Severity::error,
                       fmt::format("{} has more capacity than line rate", topology.name(LinkId(i))),
                       topology.name(l.from)});
  }
  return found;
}

}  // namespace topsim::topology

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <vector>

#include "sim/fold/fold.hpp"
#include "sim/report/findings.hpp"
#include "sim/report/text.hpp"
#include "topology/line_rates.hpp"
#include "topology/link_name.hpp"

namespace topsim::report {
namespace {
using topology::DeviceKind;
using topology::Link;
using topology::Topology;

constexpr std::size_t kTiers = 8;
constexpr std::array<std::string_view, 4> kTierNames{"", "leaf", "spine", "core"};

// Usable capacity that enters a switch from below, and that leaves it upwards.
struct Switch {
  double from_below = 0, upwards = 0;
  [[nodiscard]] double ratio() const { return upwards > 0 ? from_below / upwards : 0; }
};

// The switches of a tier that have uplinks.
struct Tier {
  std::size_t switches = 0, oversubscribed = 0;
  double worst = 0, least = std::numeric_limits<double>::infinity();  // ratios
  DeviceId of_worst;
  [[nodiscard]] bool alike() const { return worst <= least * 1.01; }
};
constexpr double kOversubscribed = 1.05;

std::array<Tier, kTiers> tiers_of(const Topology& topology) {
  const std::size_t first = std::size_t{topology.copies().nodes} * topology.copies().devices;
  std::vector<Switch> switches(topology.devices().size() - first);  // none stands in a copied node
  for (const LinkId cable : topology.cables()) {
    const Link& link = topology.link(cable);
    const topology::Device& to = topology.device(link.to);
    if (to.kind != DeviceKind::fabric_switch || to.tier >= kTiers) continue;
    const topology::Device& from = topology.device(link.from);
    const std::size_t below = from.kind == DeviceKind::fabric_switch ? from.tier : 0;
    if (below >= to.tier) continue;
    switches[link.to.index() - first].from_below += link.capacity.value();
    if (below > 0) switches[link.from.index() - first].upwards += link.capacity.value();
  }
  std::array<Tier, kTiers> tiers{};
  for (std::size_t s = 0; s < switches.size(); ++s) {
    if (switches[s].upwards <= 0) continue;
    const DeviceId id(first + s);
    const topology::Device& device = topology.device(id);
    const double ratio = switches[s].ratio();
    Tier& tier = tiers[device.tier];
    tier.switches += device.count;
    if (ratio >= kOversubscribed) tier.oversubscribed += device.count;
    if (ratio > tier.worst) tier.worst = ratio, tier.of_worst = id;
    tier.least = std::min(tier.least, ratio);
  }
  return tiers;
}

constexpr double kWorthAWord = 0.05;  // of the step; what a link limits below this is negligible

struct PathTime {
  Duration whole{};          // every leg: one step
  Duration all{};            // of communication: the time to move bytes
  Duration between_tiers{};  // limited by a link between two fabric switches
  struct Named {
    Duration time{};
    std::vector<LinkId> paced{};  // of these links those that a library does not fill
  };
  std::map<std::string, Named> by_name;
};

PathTime communication_on_path(const FindingContext& context) {
  PathTime time;
  std::map<std::pair<LinkId, bool>, Duration> by_link;  // each name is looked up once: a path has many legs
  for (const executor::PathLeg& leg : context.outcome.critical_path) {
    time.whole += leg.share;
    const bool paced = !leg.limiting_link.valid();
    const LinkId id = paced ? leg.paced_link : leg.limiting_link;
    if (!id.valid() || (paced && leg.reason == executor::Reason::offload)) continue;  // copies are not NCCL's
    const Link& link = context.topology.link(id);
    const Duration moving = leg.share - leg.latency;  // no link shortens the latency
    if (moving <= Duration{}) continue;
    time.all += moving;
    by_link[{id, paced}] += moving;
    if (!paced && context.topology.device(link.from).kind == DeviceKind::fabric_switch &&
        context.topology.device(link.to).kind == DeviceKind::fabric_switch) {
      time.between_tiers += moving;
    }
  }
  for (const auto& [key, share] : by_link) {
    const auto& [link, paced] = key;
    PathTime::Named& named =
        time.by_name[name_with_speed(context.topology, context.topology.link(link)) + " links" +
                     (paced ? metrics::as_driven(context.facts.library, true) + ',' : "")];
    named.time += share;
    if (paced) named.paced.push_back(link);
  }
  return time;
}

struct NicRates {
  double pcie = 0, fabric = 0;
};

NicRates rates_of_nic(const Topology& topology, DeviceId nic) {
  NicRates rates;
  for (LinkId id : topology.links_from(nic)) {
    const Link& link = topology.link(id);
    if (is_fabric(topology, link)) {
      rates.fabric += link.capacity.value();
    } else if (link.kind == topology::LinkKind::pcie) {
      rates.pcie += link.capacity.value();
    }
  }
  return rates;
}
}  // namespace

bool is_fabric(const Topology& topology, const Link& link) {
  const topology::Device& from = topology.device(link.from);
  const topology::Device& to = topology.device(link.to);
  const bool scale_up = link.kind == topology::LinkKind::nvlink || link.kind == topology::LinkKind::c2c ||
                        link.kind == topology::LinkKind::infinity_fabric;
  return from.kind == DeviceKind::fabric_switch || to.kind == DeviceKind::fabric_switch ||
         (from.node != to.node && !scale_up);
}

namespace {
// Whether calls that use no link, because they consist only of latency, cross nodes.
bool small_calls_between_nodes(const FindingContext& context) {
  const program::Program& program = context.program;
  const auto accelerators = context.topology.accelerators();
  const auto node = [&](RankId rank) { return context.topology.device(accelerators[rank.index()]).node; };
  for (std::uint32_t r = 0; r < program.ranks && r < accelerators.size(); ++r) {
    for (const program::Op& op : program.classes[program.class_of_rank[r]].ops) {
      if (op.bytes <= Bytes{} || op.bytes > fold::kLatencyAlone) continue;
      if (op.kind == program::OpKind::collective) {
        const CommunicatorId group = program.communicator_slots[op.slot][r];
        if (!group.valid()) continue;
        const auto members = program.members_of(group);
        if (std::any_of(members.begin(), members.end(),
                        [&](RankId member) { return node(member) != node(RankId(r)); }))
          return true;
      } else if (op.kind == program::OpKind::send) {
        const RankId peer = program.peer_slots[op.slot][r];
        if (peer.valid() && node(peer) != node(RankId(r))) return true;
      }
    }
  }
  return false;
}
}  // namespace

void find_unused_fabric(const FindingContext& context, Findings& out) {
  if (!context.result.complete) return;  // an incomplete run may not have used it yet
  const Topology& topology = context.topology;
  const auto fabric = [&](const Link& link) {
    return link.kind == topology::LinkKind::torus || is_fabric(topology, link);
  };
  for (const executor::LinkClass& each : context.outcome.links) {
    if (each.bytes > 0 && !each.members.empty() && fabric(topology.link(each.members.front()))) return;
  }
  const auto cables = topology.cables();
  if (std::none_of(cables.begin(), cables.end(), [&](LinkId id) { return fabric(topology.link(id)); }))
    return;
  const bool small = small_calls_between_nodes(context);
  out.push_back(
      {Severity::warning,
       small ? fmt::format("the fabric carried only messages of {} B and less, which take its latency "
                           "and fill no link; fabrics differ here by their latency",
                           fold::kLatencyAlone.value())
             : fmt::format("{}; no other fabric would change this step", kFabricUnused),
       "topology.fabric",
       context.topology.nodes() > 1 ? "a plan whose groups cross nodes, or the domains that NVLink joins"
                                    : "use more than one node, or a plan whose groups cross nodes"});
}

namespace {
// Whether some link between switches is full at times: messages off the critical path may wait there.
bool is_full_between_tiers(const FindingContext& context) {
  constexpr double kFull = 0.99;
  return std::any_of(context.outcome.links.begin(), context.outcome.links.end(), [&](const auto& each) {
    if (each.members.empty()) return false;
    const Link& link = context.topology.link(each.members.front());
    return context.topology.device(link.from).kind == DeviceKind::fabric_switch &&
           context.topology.device(link.to).kind == DeviceKind::fabric_switch &&
           each.peak_rate >= kFull * link.capacity.value();
  });
}

std::string oversubscribed_text(const Topology& topology, const Tier& tier, const std::string& name) {
  if (tier.alike())
    return fmt::format("the {} switches are {}:1 oversubscribed", name, three_digits(tier.worst));
  return fmt::format("{} of {} {} switches are oversubscribed ({} the most, {}:1)", tier.oversubscribed,
                     tier.switches, name, topology.name(tier.of_worst), three_digits(tier.worst));
}
}  // namespace

void find_oversubscription(const FindingContext& context, Findings& out) {
  if (!context.result.complete) return;  // there is no critical path yet
  const auto tiers = tiers_of(context.topology);
  const PathTime path = communication_on_path(context);
  const bool full = is_full_between_tiers(context);
  for (std::size_t tier = 1; tier + 1 < kTiers; ++tier) {
    if (tiers[tier].oversubscribed == 0) continue;
    const double share = path.whole > Duration{} ? seconds(path.between_tiers) / seconds(path.whole) : 0;
    const bool limits = share >= kWorthAWord;
    const std::string name =
        tier < kTierNames.size() ? std::string(kTierNames[tier]) : fmt::format("tier-{}", tier);
    constexpr double kVisible = 5e-4;  // 0.1 % as it is printed
    const std::string effect =
        share >= kVisible ? fmt::format("; links between switches limit {} of the step", percent_text(share))
        : full
            ? "; links between switches are full at times, and messages that meet there wait for each other"
            : " and limit nothing on the critical path";
    out.push_back({limits ? Severity::warning : Severity::note,
                   oversubscribed_text(context.topology, tiers[tier], name) + effect,
                   "topology.fabric.oversubscription",
                   limits ? "more uplinks, or a placement that keeps large groups under one leaf"
                   : full ? "topsim explain --faster says what faster ones would buy"
                          : "nothing to do",
                   share});
  }
}

bool pcie_hardly_wider(const Topology& topology) {
  constexpr double kHardly = 1.2;
  for (std::uint32_t node = 0; node < topology.nodes(); ++node)
    for (const DeviceId nic : topology.nics_of_node(node)) {
      const NicRates rates = rates_of_nic(topology, nic);
      if (rates.pcie > 0 && rates.fabric > 0 && rates.pcie < kHardly * rates.fabric) return true;
    }
  return false;
}

void find_narrow_pcie(const FindingContext& context, Findings& out) {
  const Topology& topology = context.topology;
  std::size_t narrow = 0;
  std::size_t total = 0;
  NicRates example;
  DeviceId named;
  for (std::uint32_t node = 0; node < topology.nodes(); ++node) {
    for (DeviceId nic : topology.nics_of_node(node)) {
      const NicRates rates = rates_of_nic(topology, nic);
      if (rates.pcie <= 0 || rates.fabric <= 0) continue;
      ++total;
      if (rates.pcie >= rates.fabric * topology::kJustBelow) continue;
      if (narrow++ == 0) {
        example = rates;
        named = nic;
      }
    }
  }
  if (narrow == 0) return;
  out.push_back(
      {Severity::warning,
       fmt::format("PCIe is narrower than the NIC on {} of {} NICs: {} carries {} to a fabric port of {}",
                   narrow, total, topology.name(named), rate_text(example.pcie), rate_text(example.fabric)),
       "topology.node", "a wider PCIe slot, or a slower and cheaper NIC"});
}

namespace {
// Of a link, the most of its capacity that was ever in use.
double peak_utilization(const FindingContext& context, LinkId id) {
  for (const executor::LinkClass& each : context.outcome.links)
    if (std::binary_search(each.members.begin(), each.members.end(), id))
      return each.peak_rate / context.topology.link(id).capacity.value();
  return 1;
}
}  // namespace

void find_limiting_link(const FindingContext& context, Findings& out) {
  const PathTime path = communication_on_path(context);
  const auto shorter = [](const auto& a, const auto& b) { return a.second.time < b.second.time; };
  const auto longest = std::max_element(path.by_name.begin(), path.by_name.end(), shorter);
  if (longest == path.by_name.end()) return;
  const double share = seconds(longest->second.time) / seconds(path.whole);
  if (share < kWorthAWord) return;
  constexpr double kSlack = 0.6;  // a judgement: a link that is never fuller hardly sets the pace
  double fullest = longest->second.paced.empty() ? 1 : 0;
  for (const LinkId link : longest->second.paced)
    fullest = std::max(fullest, peak_utilization(context, link));
  out.push_back({Severity::note,
                 fmt::format("{} limit {} of the step ({} of what moving bytes takes on the critical path){}",
                             longest->first, percent_text(share),
                             percent_text(seconds(longest->second.time) / seconds(path.all)),
                             fullest < kSlack
                                 ? fmt::format("; they are at most {} full, so faster ones alone may change "
                                               "nothing",
                                               percent_text(fullest))
                                 : ""),
                 "critical_path", "topsim explain says what a faster one would buy", share});
}
}  // namespace topsim::report

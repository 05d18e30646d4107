#include "sim/scenario/bench/bench_contention.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/scenario/cluster/calibration.hpp"
#include "topology/credits.hpp"

namespace topsim::scenario {
namespace {
constexpr double kFree = std::numeric_limits<double>::infinity();

// Which of its links feed which: those that end where the other begins.
network::HeldMessage way_of(const topology::Topology& topology, std::span<const network::Usage> usage) {
  const auto link = [&](network::LinkIndex l) { return topology.link(LinkId(l)); };
  // By where they end, in order of travel: an exchange among thousands uses every link.
  std::vector<std::pair<std::uint32_t, network::Usage>> ending;
  for (const network::Usage& use : usage) ending.emplace_back(link(use.link).to.value, use);
  const auto by_end = [](const auto& a, const auto& b) { return a.first < b.first; };
  std::stable_sort(ending.begin(), ending.end(), by_end);
  network::HeldMessage way;
  for (const network::Usage& use : usage) {
    const auto [first, last] = std::equal_range(
        ending.begin(), ending.end(), std::pair{link(use.link).from.value, network::Usage{}}, by_end);
    double before = 0;
    for (auto other = first; other != last; ++other) before += other->second.coefficient;
    if (before == 0) way.hops.push_back({network::Crossed::kSender, use.link, use.coefficient});
    for (auto other = first; other != last; ++other)
      way.hops.push_back(
          {other->second.link, use.link, use.coefficient * other->second.coefficient / before});
  }
  return way;
}
}  // namespace

BenchContention::BenchContention(const Scenario& scenario, const topology::Topology& topology,
                                 std::span<const executor::CapacityChange> slower)
    : topology_(topology), slower_(slower) {
  if (!scenario.network.calibrated()) return;
  options_.congestion = shipped_congestion();
  options_.packet = scenario.network.packet.resolved(topology.fabric_is_infiniband);
  for (std::size_t l = 0; l < topology.links().size(); ++l)
    system_.links.push_back({{LinkId(l)}, topology.links()[l].capacity});
}

void BenchContention::begin(std::vector<Flow> flows, network::Network& network) {
  if (!options_.congestion) return;
  flows_ = std::move(flows);
  ways_.clear();
  bounds_.assign(flows_.size(), kFree);
  holds_ = false;
  system_.activities.clear();
  for (const Flow& flow : flows_) {
    ways_.push_back(way_of(topology_, flow.usage));
    fold::Activity activity;
    activity.bytes = flow.bytes;
    activity.usage = activity.own_usage = std::make_shared<const std::vector<network::Usage>>(flow.usage);
    system_.activities.push_back(std::move(activity));
  }
  contention_ = std::make_unique<executor::Contention>(system_, topology_, options_);
  // The network has these capacities already, but those of ports are contention's to set.
  for (const executor::CapacityChange& change : slower_)
    if (contention_->governs(change.link.value)) contention_->scale(change.link.value, change.factor);
  for (std::uint32_t flow = 0; flow < system_.activities.size(); ++flow) contention_->started(flow);
  contention_->settle(network, SimTime{});
  hold(network, SimTime{});
}

void BenchContention::ended(std::span<const network::Completion> flows, network::Network& network,
                            SimTime now) {
  if (!contention_) return;
  for (const network::Completion& flow : flows) {
    contention_->ended(static_cast<std::uint32_t>(flow.tag));
    ways_[flow.tag].hops.clear();
    bounds_[flow.tag] = kFree;
  }
  contention_->settle(network, now);
  hold(network, now);
}

// As packets have them by default: no more than credits can advertise. What network.packet.virtual_lanes says
// is left to the packet model, since buffers too small for a round trip slow a cable by themselves.
network::LaneDepth BenchContention::depth_behind(LinkId id) const {
  const topology::Link& link = topology_.link(id);
  const network::packet::Framing framing = network::packet::Framing::infiniband();
  network::LaneDepth depth;
  const auto ways_back = topology_.links_from(link.to);  // parallel ones are alike
  const auto back = std::find_if(ways_back.begin(), ways_back.end(),
                                 [&](LinkId other) { return topology_.link(other).to == link.from; });
  depth.round_trip =
      seconds(link.latency + (back != ways_back.end() ? topology_.link(*back).latency : Duration{}));
  depth.bytes = network::packet::usual_lane(link.capacity.value(), depth.round_trip,
                                            static_cast<double>((framing.mtu + framing.header).value()));
  constexpr double kReach = topology::kMostCredits * topology::kCreditBlock;
  depth.bytes = std::min(depth.bytes, kReach * link.count);
  return depth;
}

// The only full port of InfiniBand, if the messages to it do not fit into a lane each; smaller ones end
// before any queue is full.
std::optional<network::LinkIndex> BenchContention::full_port() const {
  const std::vector<std::uint32_t> full = contention_->overfull();
  if (full.size() != 1) return {};
  const LinkId port(full.front());
  if (topology_.link(port).kind != topology::LinkKind::infiniband) return {};
  double waiting = 0, lanes = 0;
  for (std::size_t flow = 0; flow < flows_.size(); ++flow) {
    const auto& hops = ways_[flow].hops;
    if (std::none_of(hops.begin(), hops.end(), [&](const auto& hop) { return hop.link == port.value; }))
      continue;
    waiting += static_cast<double>(flows_[flow].bytes.value());
    lanes += depth_behind(port).bytes;
  }
  return waiting > lanes ? std::optional(port.value) : std::nullopt;
}

void BenchContention::hold(network::Network& network, SimTime now) {
  std::vector<double> bounds(flows_.size(), kFree);
  if (const std::optional<network::LinkIndex> full = full_port()) {
    std::vector<double> capacities;
    for (std::size_t l = 0; l < system_.links.size(); ++l) {
      const double set = contention_->capacity(static_cast<std::uint32_t>(l));
      capacities.push_back(set > 0 ? set : system_.links[l].capacity.value());
    }
    for (const executor::CapacityChange& change : slower_)
      if (!contention_->governs(change.link.value)) capacities[change.link.index()] *= change.factor;
    // The slot behind the port may carry less than it.
    network::LinkIndex end = *full;
    bool behind = false;
    for (const network::HeldMessage& way : ways_) {
      for (const network::Crossed& hop : way.hops) {
        behind = hop.link == *full || (behind && hop.from != network::Crossed::kSender);
        if (behind && capacities[hop.link] < capacities[end]) end = hop.link;
      }
    }
    std::vector<network::LaneDepth> depths(capacities.size());
    for (const network::HeldMessage& way : ways_)
      for (const network::Crossed& hop : way.hops) depths[hop.link] = depth_behind(LinkId(hop.link));
    bounds = network::held_rates(capacities, depths, ways_, end);
  }
  for (std::size_t flow = 0; flow < flows_.size(); ++flow) {
    if (bounds[flow] == bounds_[flow]) continue;
    bounds_[flow] = bounds[flow];
    network::Transfer transfer;
    transfer.usage = flows_[flow].usage;
    transfer.latency = flows_[flow].latency;
    transfer.tag = flow;
    if (bounds[flow] < kFree) transfer.rate_cap = bounds[flow];
    holds_ = holds_ || bounds[flow] < kFree;
    network.reroute(transfer, now);
  }
}
}  // namespace topsim::scenario

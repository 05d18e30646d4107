#include "sim/collective/nccl/tuner.hpp"

#include <algorithm>
#include <limits>

#include "sim/collective/nccl/rccl.hpp"
#include "sim/collective/nccl/tuner_constants.hpp"
#include "topology/import/nccl_assumptions.hpp"

namespace topsim::collective::nccl {
namespace {

std::size_t row(CollectiveKind kind) {
  return static_cast<std::size_t>(kind);
}

int steps(CollectiveKind kind, int ranks) {
  if (kind == CollectiveKind::all_reduce) return 2 * (ranks - 1);
  return gathers(kind) ? ranks - 1 : ranks;
}

}  // namespace

Tuner::Tuner(const CommunicatorFacts& facts)
    : facts_(facts),
      generation_(generation_of(facts.min_capability)),
      scale_(static_cast<std::size_t>(std::min(facts.nodes, 3) - 1)) {
  if (facts.ranks < 2) return;
  for (std::size_t k = 0; k < kCollectives; ++k)
    for (std::size_t a = 0; a < kAlgorithms; ++a)
      for (std::size_t p = 0; p < kProtocols; ++p) {
        const auto kind = static_cast<CollectiveKind>(k);
        const auto algorithm = static_cast<Algorithm>(a);
        const auto protocol = static_cast<Protocol>(p);
        if (!enabled(kind, algorithm, protocol)) continue;
        const double untold = latency(kind, algorithm, protocol, 0),
                     told = latency(kind, algorithm, protocol, facts.told_latency);
        costs_[k][a][p] = {bandwidth(kind, algorithm, protocol), told, told - untold};
      }
}

const GraphSummary& Tuner::graph(Algorithm algorithm) const {
  switch (algorithm) {
    case Algorithm::tree:
      return facts_.tree;
    case Algorithm::collnet_direct:
      return facts_.collnet_direct;
    case Algorithm::collnet_chain:
      return facts_.collnet_chain;
    case Algorithm::nvls:
    case Algorithm::nvls_tree:
      return facts_.nvls_graph;
    case Algorithm::ring:
    case Algorithm::pat:
    case Algorithm::direct:
    case Algorithm::torus:
    case Algorithm::one_shot:
    case Algorithm::two_shot:
    case Algorithm::multimem:
      break;
  }
  return facts_.ring;
}

std::string_view needs_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::tree:
      return "trees do all-reduces alone";
    case Algorithm::collnet_direct:
      return "CollNetDirect does all-reduces alone, and needs NVSwitches and topology.fabric.sharp";
    case Algorithm::collnet_chain:
      return "CollNetChain needs a network plugin that declares it; none is public";
    case Algorithm::nvls:
      return "NVLS needs NVSwitches that sum, and between nodes topology.fabric.sharp; it neither broadcasts "
             "nor reduces to one, and gathers and scatters among up to 32 accelerators";
    case Algorithm::nvls_tree:
      return "NVLSTree does all-reduces alone, and needs NVSwitches that sum and several nodes";
    case Algorithm::pat:
      return "PAT gathers and scatters alone, where every node has one accelerator in the group";
    case Algorithm::ring:
    case Algorithm::direct:
    case Algorithm::torus:
    case Algorithm::one_shot:
    case Algorithm::two_shot:
    case Algorithm::multimem:
      break;
  }
  return "it is none of NCCL's";
}

bool Tuner::enabled(CollectiveKind kind, Algorithm algorithm, Protocol protocol) const {
  const bool several = facts_.nodes > 1;
  if (facts_.rings_and_trees && algorithm != Algorithm::ring && algorithm != Algorithm::tree) return false;
  switch (algorithm) {
    case Algorithm::ring:
      break;
    case Algorithm::tree:
      if (kind != CollectiveKind::all_reduce) return false;
      break;
    case Algorithm::collnet_direct:
      // All-gather and reduce-scatter need a network plugin that does them in the switches; none is public.
      if (kind != CollectiveKind::all_reduce || !facts_.collnet || !facts_.nvswitch ||
          facts_.max_local_ranks > 8)
        return false;
      break;
    case Algorithm::nvls:
      if (rooted(kind)) return false;
      if (!facts_.nvls || (several && (!facts_.collnet || gathers(kind)))) return false;
      if (gathers(kind) && facts_.max_local_ranks > kNvlsGatherRanks) return false;
      break;
    case Algorithm::nvls_tree:
      if (kind != CollectiveKind::all_reduce || !facts_.nvls || !several) return false;
      break;
    case Algorithm::pat:
      if (!gathers(kind) || facts_.nodes != facts_.ranks) return false;
      break;
    case Algorithm::collnet_chain:  // needs a plugin that declares it
    case Algorithm::direct:
    case Algorithm::torus:
    case Algorithm::one_shot:
    case Algorithm::two_shot:
    case Algorithm::multimem:
      return false;
  }
  const bool has_low_latency = algorithm == Algorithm::ring || algorithm == Algorithm::tree;
  if (protocol != Protocol::simple && (!has_low_latency || facts_.simple_only)) return false;
  if (protocol != Protocol::ll128) return true;
  // LL128 needs 128-byte stores to arrive whole: NVLink inside the box, no detour through host memory
  // outside.
  const GraphSummary& g = graph(algorithm);
  const int capability = facts_.min_capability;
  return (several ? g.type_inter <= (capability >= 90 ? PathType::pxn : PathType::pxb) : true) &&
         g.type_intra <= PathType::nvb && (capability == facts_.max_capability || capability >= 90) &&
         (capability >= 70 || capability == 0);
}

// The bus bandwidth of all channels, then the part of it that the collective's bytes get.
double Tuner::bandwidth(CollectiveKind kind, Algorithm algorithm, Protocol protocol) const {
  const GraphSummary& g = graph(algorithm);
  const double channels = g.channels, local = static_cast<double>(facts_.ranks) / facts_.nodes;
  const bool reduces_in_fabric =
      algorithm == Algorithm::collnet_direct || algorithm == Algorithm::collnet_chain;
  const bool reduces_in_nvswitch = algorithm == Algorithm::nvls || algorithm == Algorithm::nvls_tree;
  double channel = facts_.nodes <= 2 || reduces_in_fabric ? g.bandwidth_intra : g.bandwidth_inter;
  if (reduces_in_nvswitch) {
    if (channels < 2) return 0;
    double intra = g.bandwidth_intra * kNvlsEfficiency[generation_] * (channels - 1) / channels;
    intra *= kind == CollectiveKind::all_reduce
                 ? 2
                 : (local - 1) / local;  // an all-reduce pipelines two operations
    // With two nodes each head sends only once.
    const double inter = g.bandwidth_inter * (facts_.nodes <= 2 && algorithm == Algorithm::nvls_tree ? 2 : 1);
    channel = std::min(intra, inter);
    if (algorithm == Algorithm::nvls_tree) channel = std::min(channel, kNvlsTree[generation_][scale_]);
  }
  double bus = channels * channel;

  const std::size_t ll_row = facts_.nodes == 1 ? generation_ : facts_.amd_host ? 1 : 0;
  const double ll_max = kLowLatencyMax[ll_row][scale_];
  if (algorithm == Algorithm::ring && protocol == Protocol::ll) bus = std::min(ll_max, bus * 0.5);
  if (algorithm == Algorithm::ring && protocol == Protocol::ll128)
    bus = std::min(bus * kRingLL128Share, channels * kRingLL128[generation_][scale_]);
  if (algorithm == Algorithm::tree) {
    bus = std::min(bus * kTreeShare, channels * kTreeSimple[generation_][scale_]);
    if (protocol == Protocol::ll) bus = std::min(bus / kTreeLLPart, ll_max);
    if (protocol == Protocol::ll128)
      bus = std::min(bus * (facts_.nodes == 1 ? 7.0 / 9 : 120.0 / 128),
                     channels * kTreeLL128[generation_][scale_]);
    if (g.pattern == Pattern::tree) bus *= kTreePatternShare;
  }
  if (algorithm == Algorithm::pat) bus *= kPatShare;
  if (algorithm == Algorithm::collnet_direct) {
    double gpus_per_nic = local / channels;
    gpus_per_nic -= (gpus_per_nic - 1) / 2;
    bus /= gpus_per_nic;
    if (facts_.min_capability >= 90) bus *= kCollnetDirectShare;
  }
  if (algorithm != Algorithm::ring && gathers(kind)) return bus;
  const bool full_rate = algorithm == Algorithm::ring || reduces_in_nvswitch;
  return bus * (full_rate ? static_cast<double>(facts_.ranks) / steps(kind, facts_.ranks) : 0.5);
}

double Tuner::tree_channel_bandwidth(Protocol protocol) const {
  if (protocol == Protocol::simple) return kTreeSimple[generation_][0];
  if (protocol == Protocol::ll128) return kTreeLL128[generation_][0];
  return kLowLatencyMax[generation_][0] / std::max(1, facts_.own_channels);
}

double Tuner::latency(CollectiveKind kind, Algorithm algorithm, Protocol protocol, double told) const {
  const GraphSummary& g = graph(algorithm);
  const int nodes = facts_.nodes, ranks = facts_.ranks, local = ranks / nodes;
  const PerAlgorithm& inside = g.type_intra == PathType::nvl ? kNvlinkLatency : kPcieLatency;
  const double intra = of(inside, algorithm, protocol), base = of(kBaseLatency, algorithm, protocol);
  // With one GPU per box sending and receiving overlap, so nothing is hidden: the tree's figure. The latency
  // that a plugin reports counts twice where the GPU's memory is flushed.
  const double inter = of(kNetLatency, ranks == nodes ? Algorithm::tree : algorithm, protocol) +
                       told * (protocol == Protocol::simple ? 2 : 1);
  const int hops = nodes == 1 ? 0 : log2_floor(nodes);
  switch (algorithm) {
    case Algorithm::tree:
      return base + 2 * ((local - 1) * intra + hops * inter);
    case Algorithm::collnet_direct:
      return base + 2 * (std::min(1, local - 1) * intra + (local - 1) * kCollnetArity) + inter;
    case Algorithm::collnet_chain:
      return base + 2 * (local - 1) * intra + inter;
    case Algorithm::nvls:
      return intra + (nodes > 1 ? inter : 0);
    case Algorithm::nvls_tree:
      return base + intra + 2 * hops * inter;
    case Algorithm::pat:
      return base + hops * (inter / kPatOverlap) + ranks * kPatPerRank;
    case Algorithm::ring:
    case Algorithm::direct:
    case Algorithm::torus:
    case Algorithm::one_shot:
    case Algorithm::two_shot:
    case Algorithm::multimem:
      break;
  }
  if (rooted(kind)) {
    const PerAlgorithm& link = nodes == 1 ? inside : kNetLatency;
    if (g.same_channels) return base + of(link, algorithm, protocol);
    return base + ranks * of(link, protocol == Protocol::simple ? Algorithm::tree : algorithm, protocol);
  }
  double overhead = 0;
  if (nodes > 1) overhead = net_overhead(facts_.amd_host) * (protocol == Protocol::simple ? 3 : 1);
  const int between = nodes == 1 ? 0 : kind == CollectiveKind::all_reduce ? 2 * (nodes - 1) : nodes - 1;
  return base + (steps(kind, ranks) - between) * std::max(intra, overhead) + between * inter;
}

const Cost& Tuner::cost(CollectiveKind kind, Algorithm algorithm, Protocol protocol) const {
  return costs_[row(kind)][row(algorithm)][row(protocol)];
}

std::optional<double> Tuner::time(CollectiveKind kind, Algorithm algorithm, Protocol protocol,
                                  std::int64_t bytes) const {
  Cost c = cost(kind, algorithm, protocol);
  if (c.bandwidth <= 0) return std::nullopt;
  const int size = log2_floor(bytes >> 6);
  const bool blackwell_tree =
      algorithm == Algorithm::nvls_tree && facts_.min_capability >= 100 && facts_.x86_host;
  const int corrected = algorithm == Algorithm::tree ? 23 : blackwell_tree ? 24 : 0;
  if (size >= 0 && size < corrected)
    c.bandwidth *= kTreeCorrection[row(protocol)][static_cast<std::size_t>(size)];
  // Large rings between nodes wait for each other.
  if (algorithm == Algorithm::ring && protocol == Protocol::simple && facts_.nodes > 1 &&
      kind == CollectiveKind::all_reduce &&
      bytes / (static_cast<std::int64_t>(facts_.channels) * facts_.ranks) >= 64)
    c.latency *= generation_ == 0 ? 1.9 : 1.4;
  return c.latency + static_cast<double>(bytes) / (1000 * c.bandwidth);
}

// The largest number of channels that has work for all threads.
int Tuner::channels(Algorithm algorithm, Protocol protocol, std::int64_t bytes) const {
  if (algorithm == Algorithm::nvls)
    return facts_.nodes > 1 ? std::min(facts_.nvls_channels, facts_.channels) : facts_.nvls_channels;
  if (algorithm == Algorithm::nvls_tree) return facts_.nvls_channels;
  int count = facts_.channels;
  // The source lowers CollNetDirect's channels at small sizes; the figures of NCCL 2.30.7 (tests/golden/nccl)
  // show all channels at every size, and those are followed.
  if (algorithm == Algorithm::collnet_direct) return count;
  std::int64_t threads = kThreads[row(protocol)], per_thread = kThreadBytes[row(protocol)];
  if (algorithm == Algorithm::ring && protocol == Protocol::ll) per_thread *= facts_.ranks;
  const bool slow_ring = facts_.ring.bandwidth_intra * facts_.ring.channels <= topology::nccl::kPcieGen3x16;
  if (algorithm == Algorithm::ring && protocol == Protocol::simple && slow_ring) threads = kSlowRingThreads;
  while (count > 1 && bytes < count * threads * per_thread) --count;
  return count;
}

// Choices of libraries other than NCCL: RCCL's; and on full meshes the direct exchange of HCCL (Huawei) and
// HCL (Intel), whatever the size.
std::optional<Choice> Tuner::of_another_library(CollectiveKind kind, std::int64_t bytes) const {
  Choice choice;
  if (facts_.rccl) {
    const std::optional<RcclChoice> rccl = rccl_choice(kind, bytes, facts_);
    if (!rccl) return std::nullopt;
    choice.algorithm = rccl->algorithm;
    choice.protocol = rccl->protocol;
  } else if (facts_.mesh && (kind == CollectiveKind::all_reduce || gathers(kind))) {
    choice.algorithm = Algorithm::direct;
  } else {
    return std::nullopt;
  }
  if (choice.algorithm != Algorithm::direct && cost(kind, choice.algorithm, choice.protocol).bandwidth <= 0)
    return std::nullopt;
  choice.channels = static_cast<std::uint16_t>(choice.algorithm == Algorithm::direct
                                                   ? facts_.channels
                                                   : channels(choice.algorithm, choice.protocol, bytes));
  if (choice.algorithm != Algorithm::direct)
    choice.model_time = from_microseconds(time(kind, choice.algorithm, choice.protocol, bytes).value_or(0));
  return choice;
}

Choice Tuner::choose(CollectiveKind kind, std::int64_t bytes, const Overrides& overrides) const {
  if (!overrides.algorithm && !overrides.protocol)
    if (std::optional<Choice> other = of_another_library(kind, bytes)) {
      if (overrides.channels) other->channels = static_cast<std::uint16_t>(*overrides.channels);
      return *other;
    }
  double least = std::numeric_limits<double>::infinity();
  Choice choice;
  for (std::size_t a = 0; a < kAlgorithms; ++a)
    for (std::size_t p = 0; p < kProtocols; ++p) {
      const auto algorithm = static_cast<Algorithm>(a);
      const auto protocol = static_cast<Protocol>(p);
      if (overrides.algorithm && *overrides.algorithm != algorithm) continue;
      if (overrides.protocol && *overrides.protocol != protocol) continue;
      if (overrides.nvls && !*overrides.nvls &&
          (algorithm == Algorithm::nvls || algorithm == Algorithm::nvls_tree))
        continue;
      const std::optional<double> t = time(kind, algorithm, protocol, bytes);
      if (!t || *t >= least) continue;
      least = *t;
      choice.algorithm = algorithm;
      choice.protocol = protocol;
    }
  if (least == std::numeric_limits<double>::infinity()) {
    if (overrides.algorithm || overrides.protocol || overrides.nvls) {
      Overrides none;
      none.channels = overrides.channels;
      return choose(kind, bytes, none);
    }
    return choice;  // a communicator of one rank
  }
  choice.channels = static_cast<std::uint16_t>(
      overrides.channels ? *overrides.channels : channels(choice.algorithm, choice.protocol, bytes));
  choice.model_time = from_microseconds(least);
  return choice;
}
}  // namespace topsim::collective::nccl

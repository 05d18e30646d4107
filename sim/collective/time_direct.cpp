#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "sim/collective/nccl/rccl.hpp"
#include "sim/collective/nccl/tuner_constants.hpp"
#include "sim/collective/ring_rates.hpp"
#include "sim/collective/time_model.hpp"

namespace topsim::collective {
namespace {
// All-to-all reaches 0.92 of the ring rate (0.91, 0.91, 0.93); for large sizes, as with rings
// (exposed_share), Simple's share of NVLink. A rank's own part is copied within the GPU's memory at the rate
// of a channel's threads, GB/s, whatever the links: for 512 MiB on 2, 4 and 8 GPUs 310-460 over 24 channels
// (A100), 570-1200 over 24 (H100), 490-540 over 32 (B200). Not fitted: 16 GiB on four H100, 357 GB/s of bus
// bandwidth; 8 GiB on four GB200 and 16 on eight, 615 and 662. Starts with LL and with Simple; Hopper's and
// Blackwell's with Simple are medians of what remains at 64 KiB to 8 MiB (11-18 and 13-21 us).
constexpr double kDirectShare = 0.92;
constexpr std::array<double, 4> kDirectOwnCopy = {18, 18, 30, 15.6};
constexpr std::array<double, 4> kDirectStart = {13, 13, 7.4, 10.5}, kDirectStartSimple = {30, 30, 13.3, 16.2};
// LL is used inside a box up to 16 KiB per channel; half of its wire is flags; the pairs of a rank share its
// channels (kPointToPointLL; enqueue.cc, nChannelsMin). Since 2.28 NCCL first counts the channels that
// the bytes are worth, one for each 64 KiB over NVLink and 16 KiB over PCIe (an eighth of P2P_NVL_CHUNKSIZE
// and P2P_PCI_CHUNKSIZE), so that over NVLink LL ends at 16 KiB per pair: H100 and B200 (2.29.2) show that
// step. The starts of A100 were read under 2.27.3, so its rule is used with them.
constexpr double kDirectPart = 64 << 10;
constexpr double kDirectLoop = 2 << 20;  // a ring's chunk: assumed

unsigned channels_of_pair(const nccl::CommunicatorFacts& facts) {
  return std::max(1U, std::bit_ceil(static_cast<unsigned>(facts.channels)) /
                          std::bit_ceil(static_cast<unsigned>(facts.ranks)));
}

// A pair within a box has its share of all channels, twice as many for every doubling above 16 MiB per
// channel (32 chunks of 512 KiB over NVLink; NCCL 2.30 enqueue.cc, scheduleP2pTasksToPlan and addP2pToPlan,
// as since 2.18). Half of a channel's threads send and half receive, as on an edge of a tree. Not fitted:
// four H100, 128 MiB 163 GB/s over 8 channels, 256 MiB 299 over 16, 512 MiB 355.
unsigned pair_channels(std::int64_t bytes, unsigned share, const nccl::CommunicatorFacts& facts) {
  constexpr std::int64_t kLeastPart = 64 << 10, kMostPart = 16 << 20;
  const unsigned all = std::bit_ceil(static_cast<unsigned>(facts.channels));
  auto channels =
      static_cast<unsigned>(std::clamp<std::int64_t>((bytes + kLeastPart - 1) / kLeastPart, 1, share));
  while (bytes > kMostPart * channels && channels <= all / 2) channels *= 2;
  return channels;
}

// What kernels that post to the NICs themselves reach of a cable: DeepEP 58 and 57 GB/s of a 50 GB/s NIC on
// four boxes of eight H800, 51 and 50 on eight, a quarter and an eighth of which stays in the box (its
// README); HybridEP 58, 57, 50 and 50 on H100 (deepseek-ai/DeepEP, docs/README_Hybrid-EP.md). All are 0.86 to
// 0.90 of its payload.
constexpr double kOwnKernelsNicShare = 0.88;

// Data that leaves a box is limited by its NICs, which reach a share of their cables; the box whose NICs take
// longest counts. 0: none leaves.
double nic_cap(const nccl::CommunicatorFacts& facts, double share) {
  double cap = 0;
  for (const auto& [ranks, nics] : facts.exits) {
    const double leaving =
        static_cast<double>(ranks) * (facts.ranks - ranks) / facts.ranks;  // per byte of a rank
    if (leaving > 0) cap = nccl::least_known(cap, share * nics * 1e9 / leaving);
  }
  return cap;
}

Microseconds network_hop(const nccl::CommunicatorFacts& facts, Microseconds network) {
  return Microseconds(nccl::of(nccl::kNetLatency, Algorithm::ring, Protocol::simple)) +
         extra_hop(facts, network);
}
}  // namespace

bool direct_in_ll(CollectiveKind kind, std::int64_t bytes, const nccl::CommunicatorFacts& facts) {
  const double pair = static_cast<double>(bytes) / (kind == CollectiveKind::all_to_all ? facts.ranks : 1);
  double channels = channels_of_pair(facts);
  if (facts.min_capability >= 90 && facts.ring.type_intra <= nccl::PathType::nvb)
    channels = std::min(channels, std::max(1.0, std::ceil(pair / kDirectPart)));
  return facts.nodes == 1 && !facts.simple_only && pair <= nccl::kPointToPointLL * channels;
}

Timing time_direct(CollectiveKind kind, std::int64_t bytes, const nccl::Tuner& tuner, Microseconds network,
                   const TimeOptions& options) {
  const nccl::CommunicatorFacts& facts = tuner.facts();
  const double n = facts.ranks;
  Timing t;
  const std::size_t gpu = nccl::generation_of(facts.min_capability);
  const bool ll = direct_in_ll(kind, bytes, facts);
  const bool nvidia = facts.min_capability > 0, nvlink = facts.ring.type_intra <= nccl::PathType::nvb;
  // Hardware other than NVIDIA's starts as RCCL's collectives do.
  t.start = Microseconds(!nvidia ? (ll ? nccl::kRcclBase : nccl::kRcclBaseSimple)
                         : ll    ? kDirectStart[gpu]
                                 : kDirectStartSimple[gpu]);
  if (options.network && facts.nodes > 1) t.network = network_hop(facts, network);
  t.latency = t.start + t.network;
  if (options.flags_on_wire && ll) t.wire = 2;
  if (kind != CollectiveKind::all_to_all) {
    if (options.pair_channels && facts.nodes == 1 && nvlink && nvidia && !ll)
      t.cap = pair_channels(bytes, channels_of_pair(facts), facts) *
              tuner.tree_channel_bandwidth(Protocol::simple) / 2 * 1e9;
    if (facts.nodes == 1 && !nvlink) t.cap = host_memory_rate(facts) * 1e9;  // of neighbours over sockets
    return t;
  }
  if (facts.nodes > 1) {
    // A GPU's proxy, one thread, posts a send and a receive for each GPU of the other boxes. Each takes the
    // tuner's time of a network operation, or as long as the NIC needs for it. No sweep is public.
    const double posting = nccl::net_overhead(facts.amd_host);
    Microseconds posts{};
    for (const auto& [ranks, nics] : facts.exits) {
      const double nic = nics * 1e3 / ranks;  // bytes per microsecond
      const double sending = nic > 0 ? static_cast<double>(bytes) / n / nic : 0;
      const Microseconds post(options.step_costs ? std::max(0.0, posting - sending) : 0);
      t.post = std::max(t.post, post);
      posts = std::max(posts, std::max(0.0, n - ranks - 1) * post);
    }
    t.latency += posts;
    if (options.protocol_shares) t.cap = nic_cap(facts, kNicShare);
    return t;
  }
  // Data that stays in the box, and the rank's own part, pass through the channels. Up to eight peers, the
  // rank itself among them, share a channel side by side: where the wires are slower than the threads, the
  // own part is finished before the others.
  const double others = t.wire * (n - 1) / n, share = options.protocol_shares ? kDirectShare : 1;
  const double own = nvidia ? 1 / (n * kDirectOwnCopy[gpu] * facts.channels) : 0;
  const double links = share * facts.ring.bandwidth_intra * facts.nvlink_share * facts.ring.channels;
  double whole = own;
  if (nvlink && nvidia && facts.nvswitch && !ll && options.protocol_shares) {
    const double least = others / (kSimpleShare * facts.nvlink_bandwidth);
    const double loop = n * facts.channels * kDirectLoop;
    whole =
        least + std::max(0.0, others / links + own - least) * exposed_share(static_cast<double>(bytes), loop);
  } else if (nvlink && (nvidia || facts.mesh)) {
    whole += others / links;
  } else if (!nvlink && facts.pcie_wire > 0) {
    const double wire = nccl::least_known(facts.pcie_wire, host_memory_rate(facts));
    whole = std::max(own, others / wire);
  }
  t.cap = whole > 0 ? 1e9 / whole : 0;
  return t;
}

Timing time_own_kernels(std::int64_t bytes, Duration kernels, const nccl::Tuner& tuner, Microseconds network,
                        const TimeOptions& options) {
  const nccl::CommunicatorFacts& facts = tuner.facts();
  Timing t;
  t.start = Microseconds(kDirectStartSimple[nccl::generation_of(facts.min_capability)]);
  if (options.network && facts.nodes > 1) t.network = network_hop(facts, network);
  t.latency = t.start + t.network;
  t.cap = static_cast<double>(bytes) / seconds(kernels);
  if (const double nics = nic_cap(facts, kOwnKernelsNicShare);
      options.protocol_shares && facts.nodes > 1 && nics > 0)
    t.cap = std::min(t.cap, nics);
  return t;
}
}  // namespace topsim::collective

#include <algorithm>
#include <array>
#include <bit>

#include "sim/collective/nccl/tuner_constants.hpp"
#include "sim/collective/time_model.hpp"

namespace topsim::collective {
namespace {
// All-to-all reaches 0.92 of the ring rate (0.91, 0.91, 0.93). Its own part is copied within the GPU's memory
// at what the threads of a channel reach, GB/s, whatever the links: 600 and 900 over 24 channels (A100, H100:
// 2.5 times what the same channels bring over NVLink). On B200 the channels bind, not the links: 512 MiB, own
// part and all, leave at 663, 651 and 644 GB/s on 2, 4 and 8 GPUs, 662 over 32 channels. In no constant:
// GB200, 665 and 651. Starts with LL and with Simple.
constexpr double kDirectShare = 0.92;
constexpr std::array<double, 4> kDirectOwnCopy = {25, 25, 37.5, 20.7};
constexpr std::array<double, 4> kDirectStart = {13, 13, 7.4, 10.5}, kDirectStartSimple = {30, 30, 17, 19};
// LL inside a box as far as 16 KiB a pair and channel, half of its wire flags; the pairs of a rank share its
// channels (NCCL 2.30 enqueue.cc, P2P_LL_THRESHOLD and nChannelsMin).
constexpr double kDirectLL = 16 << 10;
}  // namespace

Timing time_direct(CollectiveKind kind, std::int64_t bytes, const nccl::Tuner& tuner, double network_us,
                   const TimeOptions& options) {
  const nccl::CommunicatorFacts& facts = tuner.facts();
  const double n = facts.ranks;
  Timing t;
  const std::size_t gpu = nccl::generation_of(facts.min_capability);
  const double pair =
      kind == CollectiveKind::all_to_all ? static_cast<double>(bytes) / n : static_cast<double>(bytes);
  const unsigned channels_of_pair = std::max(1U, std::bit_ceil(static_cast<unsigned>(facts.channels)) /
                                                     std::bit_ceil(static_cast<unsigned>(facts.ranks)));
  const bool ll = facts.nodes == 1 && pair <= kDirectLL * channels_of_pair;
  t.start_us = ll ? kDirectStart[gpu] : kDirectStartSimple[gpu];
  if (options.network && facts.nodes > 1)
    t.network_us = nccl::kNetLatency[1][2] + extra_hop_us(facts, network_us);
  t.latency_us = t.start_us + t.network_us;
  if (options.flags_on_wire && ll) t.wire = 2;
  if (kind != CollectiveKind::all_to_all) return t;
  if (facts.nodes > 1) {
    const double others = n - facts.min_local_ranks,         // of who has most of them
        nic = facts.nic_wire * 1e3 / facts.max_local_ranks;  // bytes a microsecond
    const double posting = facts.amd_host ? nccl::kNetOverheadAmd : nccl::kNetOverhead,
                 sending = nic > 0 ? static_cast<double>(bytes) / n / nic : 0;
    if (options.step_costs) t.post_us = std::max(0.0, posting - sending);
    t.latency_us += std::max(0.0, others - 1) * t.post_us;
    return t;  // what leaves the box is limited by its links
  }
  // What stays, and the own part, by the channels. Up to eight peers, oneself among them, share a channel
  // side by side: where the wires are slower than the threads the own part is done before the others.
  const bool nvidia = facts.min_capability > 0, nvlink = facts.ring.type_intra <= nccl::PathType::nvb;
  const double others = t.wire * (n - 1) / n, share = options.protocol_shares ? kDirectShare : 1;
  const double own = nvidia ? 1 / (n * kDirectOwnCopy[gpu] * facts.channels) : 0;
  const double links = share * facts.ring.bandwidth_intra * facts.ring.channels;
  double whole = own;
  if (nvlink && (nvidia || facts.mesh))
    whole += others / links;
  else if (!nvlink && facts.pcie_wire > 0)
    whole = std::max(own, others / facts.pcie_wire);
  t.cap = whole > 0 ? 1e9 / whole : 0;
  return t;
}
}  // namespace topsim::collective

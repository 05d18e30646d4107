#include "sim/collective/time_model.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "sim/collective/chunks.hpp"
#include "sim/collective/nccl/rccl.hpp"
#include "sim/collective/nccl/tuner_constants.hpp"

namespace topsim::collective {
namespace {

using nccl::CommunicatorFacts;
using nccl::gathers;
using nccl::least_known;
using nccl::log2_ceil;
using nccl::log2_floor;

// Every figure: what was read or fitted, on which public sweeps. "Sweeps" are nccl-tests out-of-place times
// of NCCL 2.27-2.29 on 2, 4 and 8 GPUs of A100, H100 and B200 boxes (ai-dynamo/aiconfigurator, commit
// 095f58a): all-reduce, all-gather, reduce-scatter and all-to-all of 512 B to 512 MiB.

// Microseconds to start and for each step inside the box, by GPU generation (rows: Volta as Ampere, Ampere,
// Hopper, Blackwell). LL and Simple: regression of small rings on their number of steps (all-reduce,
// all-gather and reduce-scatter on 2, 4 and 8 GPUs), residuals 2-6 %. LL128 and its share below: differences
// between neighbouring sizes of 2-16 MiB (A100: nine rows on 4 and 8 GPUs, starts 10-15 us; H100: six rows,
// starts 8-13 us). The tuner has 6.6 + 0.6, 14 + 1.9 and 8.4 + 3.4 for all of them. On B200 three rows at 8
// and 16 MiB fit no line: Ampere's first estimate stays, 35-40 % too fast there.
struct StepCosts {
  double ll, ll_step, ll128, ll128_step, simple, simple_step;
};
constexpr std::array<StepCosts, 4> kSteps = {{{8.4, 0.88, 12, 1.47, 25.2, 5.9},
                                              {8.4, 0.88, 12, 1.47, 25.2, 5.9},
                                              {4.6, 0.80, 11, 1.47, 16.2, 2.0},
                                              {7.7, 1.27, 22.2, 1.47, 13.7, 7.2}}};
// What is not NVIDIA's: RCCL's own figures over xGMI (ROCm/rccl, graph/tuning.cc, baseLat and
// tuning_model_5, gfx942).
constexpr StepCosts kRcclSteps = {12, 0.8, 12, 0.8, 17, 2.1};
// What LL moves over NVLink in all relative to the tuner's ceiling for its generation (107 to 87.7 GB/s on
// A100, 176 to 141 on H100, 310 to 282 on B200), and through one channel: a ninth of the ceiling (9.7 and 16
// GB/s at 64-256 KiB, where few channels work). Both are what threads reach; a wire that carries less is the
// limit instead, and LL fills it with as many flags as bytes.
constexpr double kLowLatencyTotal = 1.2, kLowLatencyChannels = 9;
// LL128's share of the tuner's rate over NVLink: the same differences, 0.64-0.74 (A100) and 0.90-0.98 (H100).
// Blackwell's is no measurement, its few LL128 rows fit no line: assumed between the two.
constexpr std::array<double, 4> kLL128Share = {0.70, 0.70, 0.97, 0.85};
// What a NIC gets out of its cables is perftest's share of them: 196 of 198.5 Gbit/s (HDR, Azure), 96.6 of
// 99.4 (EDR). In no constant: ten H100 with an NDR NIC each 48.8 GB/s of 49.6, 4090s on PCIe 4 25.3 of 25.5.
constexpr double kNicShare = 0.985;
// A ring's threads also copy the own n-th of the data without sending it: with Simple at this rate through a
// channel, GB/s, with LL at LL's. From what all-reduce, all-gather and reduce-scatter of 64 to 512 MiB over
// 2, 4 and 8 GPUs take beyond their links: medians of times 16 (A100), 27 (H100) and 45 (B200), of slopes
// from size to size 17, 40 and 26; in between where they differ, a choice (B200's times above 128 MiB alone:
// 34). So two GPUs reach 2/3 to 3/4 of what eight do. In no constant: two RTX PRO 6000 on one PCIe switch
// copy 25 GB/s a channel.
constexpr std::array<double, 4> kOwnCopy = {17, 17, 30, 36};
// Channels begin in step and copy at the same time; later they are apart, and one's copy passes while others
// send. Of a copy the links wait for 1 / sqrt(1 + loops / kLoopsInStep), a loop being one chunk of each rank
// on each channel. Read from 1 to 16 GiB of all-gather and reduce-scatter on four H100
// (xxrjun/nccl-tests-cluster), and with it most of the sweeps' slopes from 64 to 512 MiB ask for one rate
// where they asked for more the larger (two H100 gathering: 41, 38, 45, now 29.5, 29.6, 29.6). In no
// constant: 16 GiB on 8 H200 361 and 363 GB/s of bus bandwidth, 8 GiB of all-reduce on four GB200 663,
// vTrain's two A100.
constexpr double kLoopsInStep = 3;
// Where GPUs may not write to each other (NCCL: beyond a PCIe switch) a hop is written to host memory and
// read from it, and the reads are what takes long. Means of two boxes each: RTX PRO 6000 within a socket 30.3
// GB/s of bus bandwidth and over two 22.2, 39.3 and 37.6 once they may or have eight channels
// (voipmonitor/rtx6kpro, hardware/asus-esc8000a-e13p-broadcom-switches.md, pcie-bandwidth.md); RTX 5090 35
// and 28 (NCCL issue 1639).
constexpr double kHostMemory = (30.3 + 35) / 2, kHostMemoryOfTwoSockets = (22.2 + 28) / 2;
// Reduction in the NVSwitch reaches this share of the NVLinks at its traffic of 1 + 1/heads: slope of
// all-reduce from 256 to 512 MiB on 8 GPUs, Hopper 263 GB/s of 370.8, Blackwell 433 of 721.8.
constexpr std::array<double, 4> kNvlsShare = {0, 0, 0.80, 0.675};
// It works in rounds: every channel moves one chunk of every head. A round of small chunks takes longer than
// its bytes: slopes between the sizes that use one chunk, relative to 64 KiB. H100: 0.66 (16 KiB), 0.80
// (32 KiB); B200: 0.53, 0.56-0.70. In no constant: p5 (H100) 0.67, 0.83; H200 0.69, 0.81. Chunks of 128 KiB
// come with 64 of their rounds, beyond those sweeps: from 8 to 16 GiB p5 gains 486 GB/s of bus bandwidth,
// where the share above is 460, B200 (GKE) 851 of 758. In no constant: H200 487, GB200 of two trays 849. What
// it takes longer is no part of its bytes: in a domain of more heads than the sweeps' boxes a round carries
// more of these for it.
double nvls_chunk_share(std::int64_t chunk, double heads, std::size_t generation) {
  // Of chunks of 16, 32, 64 and 128 KiB; Hopper's and Blackwell's.
  constexpr std::array<std::array<double, 4>, 2> kShares = {{{0.66, 0.80, 1, 1.056}, {0.53, 0.63, 1, 1.123}}};
  const double share =
      kShares.at(generation == 3 ? 1 : 0).at(std::bit_width(static_cast<std::uint64_t>(chunk >> 14)) - 1);
  constexpr double kMostHeads = 8;  // of the sweeps' boxes
  return heads <= kMostHeads ? share : 1 / (1 + (1 / share - 1) * kMostHeads / heads);
}
// NVLSTree sends up and down beside it, with threads of the same channels: two boxes of H100 (OCI) gain 252
// GB/s from 8 to 16 GiB and two of H200 (Nebius) 258, where one in chunks of 64 KiB gains 264. In no
// constant: GB200, two domains of 64, 429 of 472.
constexpr double kNvlsTreeShare = 0.96;
// Before its first result stands the start of a Simple kernel, and rounds that fill the three stages
// (scatter, reduce and gather), at the full rate: what the lines through one chunk's sizes leave at zero
// bytes, less the start. H100: 10, 22 and 54 us for 16, 32 and 64 KiB, that is 1.3, 1.4 and 1.7 rounds;
// B200 2.9, 1.2 and 2.5. The tuner's 25 us stands for both.
constexpr std::array<double, 4> kNvlsFill = {1.5, 1.5, 1.5, 2};
// CollNetDirect: everybody to the heads and back takes 2 (n - 1)/n of the bytes over NVLink, of which it
// reaches this share: 110 GB/s of all-reduce on a DGX A100 with eight HDR NICs (NCCL's maintainer, NCCL issue
// 320), of 240 x 8/14.
constexpr double kCollNetShare = 0.80;
// Between boxes a GPU's proxy, one thread, posts a send and a receive for each of the other boxes' GPUs,
// which takes what a network operation takes in the tuner, or as long as the NIC needs for it. No sweep is
// public.

// GB/s over an edge of a ring as far as threads and NVLink let it, and over its wires; 0: not known, no
// limit.
struct RingRates {
  double threads = 0, wire = 0, own_copy = 0;
};
RingRates ring_rates(const Choice& choice, const CommunicatorFacts& facts, std::size_t gpu) {
  const bool one_box = facts.nodes == 1, alone = facts.max_local_ranks == 1;
  const bool nvlink = !alone && facts.ring.type_intra <= nccl::PathType::nvb;
  const double found = facts.ring.channels, local = facts.max_local_ranks;
  // Of a channel's hops between boxes one leaves by a NIC, so a GPU's NVLinks carry the others only.
  const double links = !nvlink   ? 0
                       : one_box ? found * facts.ring.bandwidth_intra
                                 : facts.nvlink_bandwidth * local / (local - 1);
  RingRates rates;
  const double used =
      std::min<double>(choice.channels, found) / std::max(1, facts.rings);  // of the rings' NICs
  rates.wire =
      least_known(alone || nvlink ? 0 : facts.pcie_wire, one_box ? 0 : used * kNicShare * facts.ring_wire);
  rates.own_copy = kOwnCopy[gpu] * choice.channels;
  const double host_memory = nvlink ? 0 : host_memory_rate(facts);
  switch (choice.protocol) {
    case Protocol::simple:
      // Behind NVSwitch it is not bound to a speed of NCCL's search either.
      rates.threads = kSimpleShare * (one_box && nvlink && facts.nvswitch ? facts.nvlink_bandwidth : links);
      // Of devices that are neither NVIDIA's nor AMD's nothing is known but their links.
      if (facts.min_capability == 0) rates.threads = facts.rccl ? links : 0, rates.own_copy = 0;
      if (host_memory > 0) rates.threads = host_memory;
      break;
    case Protocol::ll128:
      rates.threads = kLL128Share[gpu] * least_known(0.92 * links, found * nccl::kRingLL128[gpu][0]);
      rates.wire *= 120.0 / 128;
      rates.own_copy *= kLL128Share[gpu];
      if (facts.rccl) rates.threads = links * 120 / 128, rates.own_copy = 0;
      break;
    case Protocol::ll: {
      const double most = nccl::kLowLatencyMax[gpu][0];
      rates.own_copy = rates.threads =
          std::min(kLowLatencyTotal * most, choice.channels * most / kLowLatencyChannels);
      rates.threads = least_known(rates.threads, links / 2);
      rates.threads = least_known(rates.threads, host_memory / 2);
      if (!one_box && !facts.rccl)
        rates.threads =
            std::min(rates.threads, nccl::kLowLatencyMax[facts.amd_host ? 1 : 0][facts.nodes == 2 ? 1 : 2]);
      rates.wire /= 2;
      break;
    }
  }
  return rates;
}

// Hops from the end of a tree inside a box to its beginning: NCCL's is a chain; RCCL's, where all are linked
// with all, branches (src/graph/connect.cc, ncclTreeBasePostset).
int chain_of(const CommunicatorFacts& facts, int local) {
  return facts.rccl ? log2_ceil(local) : local - 1;
}

// Hops that follow each other on the critical path.
struct Hops {
  double inside = 0, between = 0;  // the box, boxes
};
Hops hops_of(CollectiveKind kind, const Choice& choice, const CommunicatorFacts& facts) {
  const int n = facts.ranks, nodes = facts.nodes;
  const double levels = log2_ceil(nodes), crossings = nodes - 1, steps = n - 1;
  switch (choice.algorithm) {
    case Algorithm::tree:
      return {2.0 * chain_of(facts, facts.max_local_ranks), 2 * levels};  // the furthest leaf's, to the root
    case Algorithm::nvls_tree:
      return {0, 2 * levels};
    case Algorithm::nvls:
    case Algorithm::collnet_direct:
    case Algorithm::collnet_chain:
      return {0, nodes > 1 ? 2.0 : 0};
    case Algorithm::pat:
      return {0, levels};
    case Algorithm::direct:
      return {kind == CollectiveKind::all_reduce ? 2.0 : 1.0, 0};
    default: {
      if (kind == CollectiveKind::all_reduce) return {2 * (steps - crossings), 2 * crossings};
      // A broadcast comes back to its root's box where the root is not the first there, a reduction where it
      // is not the last. Rank 0 is the first on the first channel; where GPUs come in several orders, not on
      // all.
      const bool first_everywhere = choice.channels == 1 || facts.ring.same_channels;
      const bool comes_back =
          nodes > 1 && n > nodes &&
          (kind == CollectiveKind::reduce || (kind == CollectiveKind::broadcast && !first_everywhere));
      const double between = crossings + (comes_back ? 1 : 0);
      return {steps - between, between};
    }
  }
}

// A hop between boxes of AMD's: RCCL's own figure. That of a Simple ring is none (rccl.hpp), NCCL's stays.
double rccl_net(bool tree, bool simple) {
  return !tree ? nccl::kRcclRingNet : simple ? nccl::kRcclTreeNetSimple : nccl::kRcclTreeNet;
}

// A chain of messages (ring, tree): its start and what a hop costs.
StepTiming hop_costs(const Choice& choice, const nccl::Tuner& tuner, double network_us,
                     const TimeOptions& options) {
  const CommunicatorFacts& facts = tuner.facts();
  const bool tree = choice.algorithm == Algorithm::tree;
  const std::size_t row = tree ? 0 : 1, p = static_cast<std::size_t>(choice.protocol);
  const StepCosts& costs =
      facts.min_capability == 0 ? kRcclSteps : kSteps[nccl::generation_of(facts.min_capability)];
  const double starts[] = {costs.ll, costs.ll128, costs.simple},
               steps[] = {costs.ll_step, costs.ll128_step, costs.simple_step};
  const nccl::PathType inside = (tree ? facts.tree : facts.ring).type_intra;
  // Alone on its box a GPU sends and receives at once, which hides nothing.
  const std::size_t net_row = facts.ranks == facts.nodes ? 0 : row;
  StepTiming t{nccl::kBaseLatency[row][p],
               (inside == nccl::PathType::nvl ? nccl::kNvlinkLatency : nccl::kPcieLatency)[row][p],
               facts.rccl && !(net_row == 1 && p == 2) ? rccl_net(net_row == 0, p == 2)
                                                       : nccl::kNetLatency[net_row][p]};
  if (facts.nodes > 1 && !tree)
    t.inside_us = std::max(t.inside_us,
                           (facts.amd_host ? nccl::kNetOverheadAmd : nccl::kNetOverhead) * (p == 2 ? 3 : 1));
  if (options.step_costs) {
    t.start_us = starts[p];
    // Between boxes the tuner's step already waits for the network. The sweeps' steps are NVLink's; of PCIe
    // NCCL's own stand.
    const bool nvlink = facts.max_local_ranks == 1 || inside <= nccl::PathType::nvb;
    if (nvlink && (facts.nodes == 1 || p == 0)) t.inside_us += steps[p] - nccl::kNvlinkLatency[row][p];
  }
  if (options.network) t.between_us += extra_hop_us(facts, network_us);
  return t;
}

// The speed of a tree that no search found, or not RCCL's, means nothing. A byte passes an inner box's wires
// twice each way; of two boxes none is an inner one. 0: not known either.
double unsearched_tree(const Choice& choice, const CommunicatorFacts& facts) {
  const RingRates rates = ring_rates(choice, facts, nccl::generation_of(facts.min_capability));
  const double rate = rates.wire > 0 ? rates.wire : rates.threads > 0 ? rates.threads : rates.own_copy;
  return facts.nodes == 2 ? rate : rate / 2;
}

}  // namespace

double exposed_share(double bytes, double loop) {
  const double loops = bytes / (loop * kLoopsInStep);
  return loops > 0 ? 2 * (std::sqrt(1 + loops) - 1) / loops : 1;
}

double host_memory_rate(const CommunicatorFacts& facts) {
  if (!facts.through_host_memory || facts.max_local_ranks == 1) return 0;
  return facts.ring.type_intra >= nccl::PathType::sys ? kHostMemoryOfTwoSockets : kHostMemory;
}

double extra_hop_us(const CommunicatorFacts& facts, double network_us) {
  return std::max({0.0, network_us, facts.hop_latency - kReferenceHop});
}

TreePipeline tree_pipeline(const Choice& choice, std::int64_t bytes, const nccl::Tuner& tuner) {
  const CommunicatorFacts& facts = tuner.facts();
  const double channels = choice.channels, share = static_cast<double>(bytes) / channels;
  const nccl::GraphSummary& graph = facts.tree;
  const auto tuned = [&](Protocol protocol) {
    return tuner.cost(CollectiveKind::all_reduce, Algorithm::tree, protocol).bandwidth;
  };
  // One half of a channel's threads sends up, the other down, so an edge has half of what a channel moves,
  // and no more than its part of the links where all channels run along the same chain.
  const double alone = tuner.tree_channel_bandwidth(choice.protocol) / 2;
  double together = graph.bandwidth_intra * graph.channels / channels;
  TreePipeline pipe;
  if (graph.bandwidth_intra <= nccl::kNoChannel || facts.rccl) {
    pipe.rate = unsearched_tree(choice, facts) * 1e9 / channels;
  } else if (facts.tree_wire > 0) {
    // As for rings, wires decide over PCIe, not the speeds that NCCL's search tries; the low-latency
    // protocols at the tuner's part of Simple.
    const double by_host = least_known(1, host_memory_rate(facts) / facts.pcie_wire);
    const double simple =
        std::min(facts.tree_wire * by_host, channels * tuner.tree_channel_bandwidth(Protocol::simple) / 2);
    pipe.rate = simple * tuned(choice.protocol) / tuned(Protocol::simple) * 1e9 / channels;
    together = facts.pcie_wire / (choice.protocol == Protocol::ll ? 2 : 1) / channels;
  } else {
    pipe.rate = tuned(choice.protocol) * 1e9 / channels;
  }
  if (pipe.rate > 0) pipe.hop_rate = std::max(pipe.rate, std::min(alone, together) * 1e9);
  const double chunk = static_cast<double>(chunk_bytes(CollectiveKind::all_reduce, choice.algorithm,
                                                       choice.protocol, choice.channels, bytes, facts));
  pipe.piece = std::min(share, piece_bytes(choice, share, chunk));
  return pipe;
}

double slowed(double cap, const CapParts& parts, double slow) {
  if (cap <= 0 || parts.wires <= 0) return cap;
  return 1 / (std::max(1 / cap - parts.own, parts.wires * slow) + parts.own);
}

Timing time_collective(CollectiveKind kind, const Choice& choice, std::int64_t bytes,
                       const nccl::Tuner& tuner, double network_us, const TimeOptions& options) {
  const CommunicatorFacts& facts = tuner.facts();
  const bool mesh = choice.algorithm == Algorithm::direct;
  const nccl::Cost& cost = tuner.cost(kind, mesh ? Algorithm::ring : choice.algorithm, choice.protocol);
  const double n = facts.ranks, s = static_cast<double>(bytes);
  const bool ring = choice.algorithm == Algorithm::ring, tree = choice.algorithm == Algorithm::tree;
  const bool chains = ring || tree || mesh;
  Timing t;
  t.latency_us = cost.latency - cost.told;
  t.cap = cost.bandwidth * 1e9;
  if (options.flags_on_wire)
    t.wire = choice.protocol == Protocol::ll ? 2 : choice.protocol == Protocol::ll128 ? 128.0 / 120 : 1;
  const Hops hops = hops_of(kind, choice, facts);
  double one_hop_us = 0;
  if (chains && options.step_costs) {
    const StepTiming hop = hop_costs(choice, tuner, network_us, options);
    t.latency_us = hop.start_us + hops.inside * hop.inside_us + hops.between * hop.between_us;
    one_hop_us =
        hop.start_us + std::max(hops.inside > 0 ? hop.inside_us : 0, hops.between > 0 ? hop.between_us : 0);
  } else {
    if (options.network) t.latency_us += hops.between * extra_hop_us(facts, network_us);
    const int rounded_off = log2_ceil(facts.nodes) - log2_floor(facts.nodes);
    if (choice.algorithm == Algorithm::nvls_tree) t.latency_us += 2 * rounded_off * nccl::kNetLatency[5][2];
    if (choice.algorithm == Algorithm::pat) t.latency_us += rounded_off * nccl::kNetLatency[6][2] / 3.5;
  }

  // The tuner's own corrections by size belong to the prediction too. For trees they stand for the pipeline's
  // fill: the first piece waits at every hop, the others follow it at the tree's rate.
  const double modelled = microseconds(choice.model_time);
  if (tree && options.tree_pipeline) {
    const TreePipeline pipe = tree_pipeline(choice, bytes, tuner);
    if (pipe.rate > 0)
      t.latency_us +=
          ((hops.inside + hops.between) * pipe.piece / pipe.hop_rate - pipe.piece / pipe.rate) * 1e6;
    t.cap = pipe.rate * choice.channels;
  } else if (tree) {
    t.cap = s / std::max(1e-9, (modelled - cost.latency) * 1e-6);
  }
  if (ring && choice.protocol == Protocol::simple && !facts.rccl)
    t.latency_us += std::max(0.0, modelled - cost.latency - s / t.cap * 1e6) * (1 - cost.told / cost.latency);

  const std::size_t gpu = nccl::generation_of(facts.min_capability);
  if (options.protocol_shares && (ring || mesh)) {
    const double bus = kind == CollectiveKind::all_reduce ? 2 * (n - 1) / n : gathers(kind) ? (n - 1) / n : 1;
    const RingRates rates = ring_rates(choice, facts, gpu);
    const auto per_byte = [](double rate) { return rate > 0 ? 1 / (rate * 1e9) : 0; };
    // What a broadcast or reduction sends it keeps in the same pass.
    double own = kind == CollectiveKind::all_reduce || gathers(kind) ? per_byte(rates.own_copy) / n : 0;
    if (ring && choice.protocol == Protocol::simple)
      own *= exposed_share(s, n * choice.channels *
                                  static_cast<double>(chunk_bytes(kind, choice.algorithm, choice.protocol,
                                                                  choice.channels, bytes, facts)));
    const double whole = bus * std::max(per_byte(rates.threads), per_byte(rates.wire)) + own;
    t.cap = whole > 0 ? 1 / whole : 0;
    t.cap_parts = {bus * per_byte(rates.wire), own};
  }
  // Broadcast and reduction: the first piece fills the ring hop by hop, the others follow it. In a queue of
  // them a rank begins the next when it has passed its part of one on, so that no hop but its own is waited
  // for. In no constant: 8 H800, 8 to 256 MiB: 70, 123, 226, 431, 838 and 1650 us; one alone takes 300 more.
  if (ring && t.cap > 0 && kind != CollectiveKind::all_reduce && !gathers(kind)) {
    const double share = s / choice.channels,
                 chunk = static_cast<double>(
                     chunk_bytes(kind, choice.algorithm, choice.protocol, choice.channels, bytes, facts));
    t.latency_us +=
        (n - 2) * std::min(share, piece_bytes(choice, share, chunk)) * choice.channels / t.cap * 1e6;
    if (options.step_costs) t.queued_us = t.latency_us - one_hop_us;
  }
  if (options.protocol_shares && choice.algorithm == Algorithm::collnet_direct && facts.max_local_ranks > 1) {
    const double local = facts.max_local_ranks;
    t.cap = std::min(t.cap, kCollNetShare * facts.nvlink_bandwidth * 1e9 * local / (2 * (local - 1)));
  }
  if (options.nvls_pipeline &&
      (choice.algorithm == Algorithm::nvls || choice.algorithm == Algorithm::nvls_tree)) {
    const double heads = std::max(1, facts.nvls_graph.channels);
    if (kind == CollectiveKind::all_reduce)
      t.cap = facts.nvlink_bandwidth * 1e9 * kNvlsShare[gpu] / (1 + 1 / heads);
    // Unregistered buffers pass through a channel's threads, at what one SM moves (NCCL issues 689 and 1649);
    // NCCL's own number of channels reaches the peak.
    t.cap *= std::min(
        1.0, choice.channels / static_cast<double>(tuner.channels(choice.algorithm, choice.protocol, bytes)));
    const std::int64_t chunk =
        chunk_bytes(kind, choice.algorithm, choice.protocol, choice.channels, bytes, facts);
    const double round =
        std::min(s, static_cast<double>(choice.channels) * heads * static_cast<double>(chunk));
    double fill = kNvlsFill[gpu] * round / t.cap;
    // Between boxes every level of the tree is one more stage, up and down, at the rate of the NICs.
    if (facts.nodes > 1) {
      const double nics = facts.nvls_graph.bandwidth_inter * 1e9 * heads;
      fill = kNvlsFill[gpu] * round / std::min(t.cap, nics) + hops.between * round / nics;
    }
    t.latency_us += kSteps[gpu].simple - nccl::kNvlinkLatency[4][2] + fill * 1e6;
    // NVLSTree gains nothing from chunks above 64 KiB.
    t.cap *= facts.nodes > 1 && choice.algorithm == Algorithm::nvls_tree
                 ? kNvlsTreeShare * std::min(1.0, nvls_chunk_share(chunk, heads, gpu))
                 : nvls_chunk_share(chunk, heads, gpu);
  }
  return t;
}

StepTiming time_steps(CollectiveKind kind, const Choice& choice, const nccl::Tuner& tuner, double network_us,
                      double latency_us, const TimeOptions& options) {
  const CommunicatorFacts& facts = tuner.facts();
  StepTiming t = hop_costs(choice, tuner, network_us, options);
  if (choice.algorithm == Algorithm::ring && kind <= CollectiveKind::reduce_scatter) {
    // The tuner counts two crossings per pair of boxes and stretches the sum for large rings; the longest
    // chain really crosses more often. Its steps share what the whole takes.
    const int hops = (kind == CollectiveKind::all_reduce ? 2 : 1) * (facts.ranks - 1);
    const int local = std::max(1, facts.ranks / facts.nodes);
    const int crossings = facts.nodes > 1 ? (hops - 1) / local + 1 : 0;
    const double chain = (hops - crossings) * t.inside_us + crossings * t.between_us;
    const double factor = std::max(0.0, latency_us - t.start_us) / chain;
    t.inside_us *= factor;
    t.between_us *= factor;
  }
  return t;
}
}  // namespace topsim::collective

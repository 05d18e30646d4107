#include "sim/collective/time_model.hpp"

#include <algorithm>
#include <array>

#include "sim/collective/chunks.hpp"
#include "sim/collective/nccl/rccl.hpp"
#include "sim/collective/nccl/tuner_constants.hpp"
#include "sim/collective/ring_rates.hpp"
#include "sim/collective/time_nvls.hpp"

namespace topsim::collective {
namespace {

using nccl::CommunicatorFacts;
using nccl::least_known;
using nccl::log2_ceil;
using nccl::log2_floor;

// Every figure below says what it was read or fitted from. "Sweeps" are nccl-tests out-of-place times of NCCL
// 2.27-2.29 on 2, 4 and 8 GPUs of A100, H100 and B200 boxes (ai-dynamo/aiconfigurator, commit 095f58a):
// all-reduce, all-gather, reduce-scatter and all-to-all of 512 B to 512 MiB.

// Microseconds to start and for each step inside the box, by GPU generation (rows: Volta as Ampere, Ampere,
// Hopper, Blackwell). LL and Simple: regression of small rings on their number of steps (all-reduce,
// all-gather and reduce-scatter on 2, 4 and 8 GPUs), residuals 2-6 %. LL128 and its share below: differences
// between neighbouring sizes of 2-16 MiB (A100: nine rows on 4 and 8 GPUs, starts 10-15 us; H100: six rows,
// starts 8-13 us). The tuner has 6.6 + 0.6, 14 + 1.9 and 8.4 + 3.4 for all generations. On B200 three rows at
// 8 and 16 MiB, where LL128 is chosen, fit no line: they look like Simple's (NCCL 2.29.2). Ampere's first
// estimate is used there, 35-40 % too fast.
struct StepCosts {
  double ll, ll_step, ll128, ll128_step, simple, simple_step;
};
constexpr std::array<StepCosts, 4> kSteps = {{{8.4, 0.88, 12, 1.47, 25.2, 5.9},
                                              {8.4, 0.88, 12, 1.47, 25.2, 5.9},
                                              {4.6, 0.80, 11, 1.47, 16.2, 2.0},
                                              {7.7, 1.27, 22.2, 1.47, 13.7, 7.2}}};
// Hardware other than NVIDIA's: RCCL's own figures over xGMI.
constexpr StepCosts kRcclSteps = {nccl::kRcclBase,       nccl::kRcclRingInside, nccl::kRcclBase,
                                  nccl::kRcclRingInside, nccl::kRcclBaseSimple, nccl::kRcclRingInsideSimple};
// CollNetDirect: sending to the heads and back takes 2 (n - 1)/n of the bytes over NVLink, of which it
// reaches this share: 110 GB/s of all-reduce on a DGX A100 with eight HDR NICs (NCCL's maintainer, NCCL issue
// 320), of 240 x 8/14.
constexpr double kCollNetShare = 0.80;

// In a Simple ring of GPUs that write to each other over PCIe a step is one of LL (a write that the receiver
// sees) and a fence between data and flag, which goes to the peer and back: four crossings of root ports of
// 0.3 us (host_latency in configs/hardware/links.json). NCCL's 5.7 us only rank. Not fitted: eight RTX 5090,
// 36 to 42 us from 8 to 64 KiB (NCCL 2.29.7), 45 to 47 here and 94 with 5.7. Through host memory NCCL's is
// kept: there the receiver's reads come on top, which nobody has timed.
constexpr double kPcieFence = 4 * 0.3;

// A hop of NVLSTree between boxes: that of the tuner's other trees and rings with Simple. The 20.9 us with
// which it ranks NVLSTree since NCCL 2.24 is 14 in earlier releases (NVIDIA/nccl, src/graph/tuning.cc,
// hwLat). Not fitted: two boxes of eight H20 take 46.4 us for 8 to 512 bytes (NCCL issue 1244), 44.2
// here, 58.0 with 20.9.
constexpr double kNvlsTreeHop = 14;

// Hops from one end of the tree's part in a box to the other: NCCL's is a chain; RCCL's has branches on full
// meshes (src/graph/connect.cc, ncclTreeBasePostset).
int chain_of(const CommunicatorFacts& facts, int local) {
  return facts.rccl ? log2_ceil(local) : local - 1;
}

// How often the last piece of a ring to arrive passes between boxes. A piece leaves out one edge of the ring
// in each round, and the last leaves out such as are inside boxes, where there are any. The tuner counts one
// crossing less per round, which only ranks.
int longest_crossings(int rounds, const CommunicatorFacts& facts) {
  if (facts.nodes == 1) return 0;
  const int hops = rounds * (facts.ranks - 1), local = std::max(1, facts.ranks / facts.nodes);
  return std::min((hops - 1) / local + 1, rounds * facts.nodes);
}

// The number of sequential hops on the critical path.
struct Hops {
  double inside = 0, between = 0;  // inside boxes, between boxes
};
Hops hops_of(CollectiveKind kind, const Choice& choice, const CommunicatorFacts& facts) {
  const int n = facts.ranks, nodes = facts.nodes;
  const double levels = log2_ceil(nodes), crossings = nodes - 1, steps = n - 1;
  switch (choice.algorithm) {
    case Algorithm::tree:
      return {2.0 * chain_of(facts, facts.max_local_ranks),
              2 * levels};  // from the furthest leaf to the root
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
    case Algorithm::ring:
    case Algorithm::torus:
    case Algorithm::one_shot:
    case Algorithm::two_shot:
    case Algorithm::multimem:
      break;
  }
  if (!rooted(kind)) {
    const int rounds = kind == CollectiveKind::all_reduce ? 2 : 1, hops = rounds * (n - 1);
    const int between = longest_crossings(rounds, facts);
    return {static_cast<double>(hops - between), static_cast<double>(between)};
  }
  // A broadcast returns to its root's box if the root is not the first rank there, a reduction if it is
  // not the last. Rank 0 is the first on the first channel; if channels have different orders, it is not
  // the first on all of them.
  const bool first_everywhere = choice.channels == 1 || facts.ring.same_channels;
  const bool comes_back =
      nodes > 1 && n > nodes &&
      (kind == CollectiveKind::reduce || (kind == CollectiveKind::broadcast && !first_everywhere));
  const double between = crossings + (comes_back ? 1 : 0);
  return {steps - between, between};
}

// A hop between AMD boxes: RCCL's own figure. A Simple ring has none (rccl.hpp), so NCCL's is used.
double rccl_net(bool tree, bool simple) {
  return !tree ? nccl::kRcclRingNet : simple ? nccl::kRcclTreeNetSimple : nccl::kRcclTreeNet;
}

// Costs of a chain of messages (ring, tree): its start and each hop.
StepTiming hop_costs(const Choice& choice, const nccl::Tuner& tuner, Microseconds network,
                     const TimeOptions& options) {
  const CommunicatorFacts& facts = tuner.facts();
  const bool tree = choice.algorithm == Algorithm::tree;
  const bool simple = choice.protocol == Protocol::simple;
  const auto figure = [&](const nccl::PerAlgorithm& table, bool of_tree) {
    return nccl::of(table, of_tree ? Algorithm::tree : Algorithm::ring, choice.protocol);
  };
  const StepCosts& costs =
      facts.min_capability == 0 ? kRcclSteps : kSteps[nccl::generation_of(facts.min_capability)];
  const nccl::PerProtocol starts = {costs.ll, costs.ll128, costs.simple},
                          steps = {costs.ll_step, costs.ll128_step, costs.simple_step};
  const nccl::PathType inside = (tree ? facts.tree : facts.ring).type_intra;
  // With one GPU per box sending and receiving overlap, so nothing is hidden: the tree's figure.
  const bool as_tree = tree || facts.ranks == facts.nodes;
  const bool rccl_hop = facts.rccl && (as_tree || !simple);
  StepTiming t{
      .start = Microseconds(figure(nccl::kBaseLatency, tree)),
      .inside = Microseconds(
          figure(inside == nccl::PathType::nvl ? nccl::kNvlinkLatency : nccl::kPcieLatency, tree)),
      .between = Microseconds(rccl_hop ? rccl_net(as_tree, simple) : figure(nccl::kNetLatency, as_tree))};
  if (facts.nodes > 1 && !tree) {
    const double posting = nccl::net_overhead(facts.amd_host);
    t.inside = std::max(t.inside, Microseconds(posting * (simple ? 3 : 1)));
  }
  if (options.step_costs) {
    const std::size_t p = nccl::row(choice.protocol);
    t.start = Microseconds(starts[p]);
    // Between boxes the tuner's step already contains the wait for the network; a Simple ring's is at least
    // what it takes inside. Not fitted: gathering 64 to 512 MiB on two boxes of B200 (nccl-gke-a4). The
    // sweeps' steps are for NVLink; for PCIe NCCL's own figures are used.
    const bool nvlink = facts.max_local_ranks == 1 || inside <= nccl::PathType::nvb;
    if (nvlink && (facts.nodes == 1 || choice.protocol == Protocol::ll))
      t.inside += Microseconds(steps[p] - figure(nccl::kNvlinkLatency, tree));
    else if (nvlink && simple && !tree)
      t.inside = std::max(t.inside, Microseconds(steps[p]));
  }
  const bool over_pcie = facts.max_local_ranks > 1 && inside > nccl::PathType::nvb;
  if (options.step_costs && simple && !tree && facts.nodes == 1 && over_pcie && !facts.through_host_memory)
    t.inside = Microseconds(nccl::of(nccl::kPcieLatency, Algorithm::ring, Protocol::ll) + kPcieFence);
  if (options.network) t.between += extra_hop(facts, network);
  return t;
}

}  // namespace

Microseconds low_latency_step(int capability) {
  const StepCosts& costs = kSteps[nccl::generation_of(capability)];
  return Microseconds(costs.ll + costs.ll_step);
}

Microseconds extra_hop(const CommunicatorFacts& facts, Microseconds network) {
  return std::max({Microseconds{}, network, Microseconds(facts.hop_latency) - kReferenceHop});
}

double slowed(double cap, const CapParts& parts, double slow) {
  if (cap <= 0 || parts.wires <= 0) return cap;
  return 1 / (std::max(1 / cap - parts.own, parts.wires * slow) + parts.own);
}

namespace {

// Adds the start and the hops: for chains by their steps, else the tuner's figure plus what the fabric adds.
// Returns the time of one rank's own hop, for chains.
Microseconds start_and_hops(const Choice& choice, const nccl::Tuner& tuner, const Hops& hops,
                            Microseconds network, const TimeOptions& options, Timing& t) {
  const CommunicatorFacts& facts = tuner.facts();
  const bool chains = choice.algorithm == Algorithm::ring || choice.algorithm == Algorithm::tree ||
                      choice.algorithm == Algorithm::direct;
  if (chains && options.step_costs) {
    const StepTiming hop = hop_costs(choice, tuner, network, options);
    constexpr Microseconds kNone{};
    t.latency = hop.start + hops.inside * hop.inside + hops.between * hop.between;
    return hop.start + std::max(hops.inside > 0 ? hop.inside : kNone, hops.between > 0 ? hop.between : kNone);
  }
  if (options.network) t.latency += hops.between * extra_hop(facts, network);
  const int rounded_off = log2_ceil(facts.nodes) - log2_floor(facts.nodes);
  if (choice.algorithm == Algorithm::nvls_tree) {
    // The tuner's figure has its own hops already, with the depth rounded down.
    const double told = nccl::of(nccl::kNetLatency, Algorithm::nvls_tree, Protocol::simple);
    t.latency += Microseconds(hops.between * kNvlsTreeHop - (hops.between - 2 * rounded_off) * told);
  }
  if (choice.algorithm == Algorithm::pat)
    t.latency += Microseconds(rounded_off * nccl::of(nccl::kNetLatency, Algorithm::pat, Protocol::simple) /
                              nccl::kPatOverlap);
  return {};
}

// The first piece waits at every hop, the others follow at the tree's rate.
void fill_tree(const TreePipeline& pipe, const Hops& hops, int channels, Timing& t) {
  if (pipe.rate > 0)
    t.latency += Microseconds(
        pipe.piece * (hops.inside / pipe.inside_rate + hops.between / pipe.between_rate - 1 / pipe.rate) *
        1e6);
  t.cap = pipe.rate * channels;
}

// RCCL's direct all-reduces under Simple (MSCCL's all-pairs), which it takes from 512 KiB to 20 MB: 227 GB/s
// of bus bandwidth on eight MI300X, of 336, and 320 on eight MI355X, of 399 (slopes from 2 to 16 MiB of the
// sweeps in configs/validation/rccl-mi355x.json): the mean of 0.68 and 0.80, as nothing says why they differ.
// Not fitted: 8 MiB on another eight MI300X, 91.1 us (crickett-hpe/hpc-ai-envs pull request 30), 81 here.
constexpr double kRcclDirectShare = 0.74;

// Limits of a ring: the threads and wires of an edge, and the copy of a rank's own part. `chunk`: bytes of
// one.
void pace_ring(CollectiveKind kind, const Choice& choice, const CommunicatorFacts& facts, double bytes,
               double chunk, Timing& t) {
  const double n = facts.ranks;
  const bool reduced = kind == CollectiveKind::all_reduce;
  const double bus = reduced ? 2 * (n - 1) / n : gathers(kind) ? (n - 1) / n : 1;
  RingRates rates = ring_rates(choice, facts, nccl::generation_of(facts.min_capability));
  if (facts.rccl && reduced && choice.algorithm == Algorithm::direct && choice.protocol == Protocol::simple)
    rates.threads *= kRcclDirectShare;
  const auto per_byte = [](double rate) { return rate > 0 ? 1 / (rate * 1e9) : 0; };
  // Broadcast and reduction keep what they send in the same pass.
  double own = reduced || gathers(kind) ? per_byte(rates.own_copy) / n : 0;
  if (choice.algorithm == Algorithm::ring && choice.protocol == Protocol::simple)
    own *= exposed_share(bytes, n * choice.channels * chunk);
  const double whole = bus * std::max(per_byte(rates.threads), per_byte(rates.wire)) + own;
  t.cap = whole > 0 ? 1 / whole : 0;
  t.cap_parts = {bus * per_byte(rates.wire), own};
}

// What hops add to a Simple ring over boxes of one GPU. A step sends a chunk in two slices (NCCL, ProtoSimple
// of CHUNKSTEPS / SLICESTEPS): it takes as long as the wire needs for the chunk, or as the first slice takes
// to arrive, to be copied by the channel's threads and to leave. Later rounds do not wait, because channels
// that share a NIC have drifted apart. In no constant: ten H100 with one NDR NIC each, 32 to 128 MiB
// (nccl-h100-10-nodes). In boxes of several GPUs the sweeps show all hops.
Microseconds exposed_hops(const Choice& choice, const CommunicatorFacts& facts, Microseconds hop,
                          double steps, double chunk) {
  const RingRates rates = ring_rates(choice, facts, nccl::generation_of(facts.min_capability));
  const double edge = least_known(rates.threads, rates.wire) * 1e3 / choice.channels,  // bytes a microsecond
      copy = rates.own_copy * 1e3 / choice.channels;
  if (edge <= 0 || copy <= 0) return steps * hop;
  return steps * std::max(Microseconds{}, Microseconds(chunk / 2 / copy - chunk / 2 / edge) + hop);
}

}  // namespace

Timing time_collective(CollectiveKind kind, const Choice& choice, std::int64_t bytes,
                       const nccl::Tuner& tuner, Microseconds network, const TimeOptions& options) {
  const CommunicatorFacts& facts = tuner.facts();
  const bool mesh = choice.algorithm == Algorithm::direct;
  const nccl::Cost& cost = tuner.cost(kind, mesh ? Algorithm::ring : choice.algorithm, choice.protocol);
  const double n = facts.ranks, s = static_cast<double>(bytes);
  const bool ring = choice.algorithm == Algorithm::ring, tree = choice.algorithm == Algorithm::tree;
  Timing t;
  t.latency = Microseconds(cost.latency - cost.told);
  t.cap = cost.bandwidth * 1e9;
  if (options.flags_on_wire) t.wire = carried_per_byte(choice.protocol);
  const Hops hops = hops_of(kind, choice, facts);
  const Microseconds one_hop = start_and_hops(choice, tuner, hops, network, options, t);

  // The tuner's own corrections by size belong to the prediction too. For trees they stand for the filling of
  // the pipeline.
  const double modelled = microseconds(choice.model_time);
  if (tree && options.tree_pipeline)
    fill_tree(tree_pipeline(choice, bytes, tuner), hops, choice.channels, t);
  else if (tree)
    t.cap = s / std::max(1e-9, (modelled - cost.latency) * 1e-6);
  const bool hides_hops = ring && choice.protocol == Protocol::simple && facts.ranks == facts.nodes &&
                          !rooted(kind) && !facts.rccl && options.step_costs && options.protocol_shares;
  if (ring && choice.protocol == Protocol::simple && !facts.rccl && !hides_hops)
    t.latency += Microseconds(std::max(0.0, modelled - cost.latency - s / t.cap * 1e6) *
                              (1 - cost.told / cost.latency));

  const double chunk = ring ? static_cast<double>(chunk_bytes(kind, choice.algorithm, choice.protocol,
                                                              choice.channels, bytes, facts))
                            : 0;
  if (options.protocol_shares && (ring || mesh)) pace_ring(kind, choice, facts, s, chunk, t);
  if (hides_hops) {
    const StepTiming hop = hop_costs(choice, tuner, network, options);
    t.latency = hop.start + exposed_hops(choice, facts, hop.between, hops.between,
                                         std::min(chunk, s / (n * choice.channels)));
  }
  // Broadcast and reduction: the first piece fills the ring hop by hop, the others follow. In a queue of
  // calls a rank begins the next call when it has passed on its part, so only its own hop counts. Not fitted:
  // 8 H800, 8 to 256 MiB: 70, 123, 226, 431, 838 and 1650 us; a single call takes 300 more.
  if (ring && t.cap > 0 && rooted(kind)) {
    const double share = s / choice.channels;
    t.latency += Microseconds((n - 2) * std::min(share, piece_bytes(choice, share, chunk)) * choice.channels /
                              t.cap * 1e6);
    if (options.step_costs) t.queued = t.latency - one_hop;
  }
  if (options.protocol_shares && choice.algorithm == Algorithm::collnet_direct && facts.max_local_ranks > 1) {
    const double local = facts.max_local_ranks;
    t.cap = std::min(t.cap, kCollNetShare * facts.nvlink_bandwidth * 1e9 * local / (2 * (local - 1)));
  }
  if (options.nvls_pipeline &&
      (choice.algorithm == Algorithm::nvls || choice.algorithm == Algorithm::nvls_tree)) {
    const Microseconds start(kSteps[nccl::generation_of(facts.min_capability)].simple -
                             nccl::of(nccl::kNvlinkLatency, Algorithm::nvls, Protocol::simple));
    sum_in_switches(kind, choice, bytes, tuner, start, hops.between, t);
  }
  return t;
}

StepTiming time_steps(CollectiveKind kind, const Choice& choice, const nccl::Tuner& tuner,
                      Microseconds network, Microseconds latency, const TimeOptions& options) {
  const CommunicatorFacts& facts = tuner.facts();
  StepTiming t = hop_costs(choice, tuner, network, options);
  if (choice.algorithm == Algorithm::ring && !rooted(kind)) {
    // The sum is stretched for large rings. The steps of the longest chain share the total time.
    const int rounds = kind == CollectiveKind::all_reduce ? 2 : 1, hops = rounds * (facts.ranks - 1);
    const int crossings = longest_crossings(rounds, facts);
    const Microseconds chain = (hops - crossings) * t.inside + crossings * t.between;
    const double factor = std::max(Microseconds{}, latency - t.start) / chain;
    t.inside *= factor;
    t.between *= factor;
  }
  return t;
}
}  // namespace topsim::collective

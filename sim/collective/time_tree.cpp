// Rates of a tree's pipeline.
#include <algorithm>

#include "sim/collective/chunks.hpp"
#include "sim/collective/nccl/tuner_constants.hpp"
#include "sim/collective/ring_rates.hpp"
#include "sim/collective/time_model.hpp"

namespace topsim::collective {
namespace {

using nccl::CommunicatorFacts;
using nccl::least_known;

// How often the busiest box sends a byte of a double tree to others, each half of the bytes along its own
// tree: two boxes are the root of one tree each; of three one is the middle of a chain, up and down, and an
// end of the other's; of more an inner box has two children and a parent.
double tree_crossings(int nodes) {
  return nodes == 2 ? 1 : nodes == 3 ? 1.5 : 2;
}

// The speed of a tree that no search found, or that is RCCL's, is meaningless; so is half of it with one GPU
// in a box, where no chain of GPUs has to send up and down. 0: not known either.
double unsearched_tree(const Choice& choice, const CommunicatorFacts& facts) {
  const RingRates rates = ring_rates(choice, facts, nccl::generation_of(facts.min_capability));
  const double rate = rates.wire > 0 ? rates.wire : rates.threads > 0 ? rates.threads : rates.own_copy;
  return rate / tree_crossings(facts.nodes);
}

}  // namespace

double carried_per_byte(Protocol protocol) {
  return protocol == Protocol::ll ? 2 : protocol == Protocol::ll128 ? 128.0 / 120 : 1;
}

TreePipeline tree_pipeline(const Choice& choice, std::int64_t bytes, const nccl::Tuner& tuner) {
  const CommunicatorFacts& facts = tuner.facts();
  const double channels = choice.channels, share = static_cast<double>(bytes) / channels;
  const nccl::GraphSummary& graph = facts.tree;
  const auto tuned = [&](Protocol protocol) {
    return tuner.cost(CollectiveKind::all_reduce, Algorithm::tree, protocol).bandwidth;
  };
  // Half of a channel's threads send up, the other half down, so an edge has half of a channel's rate, and at
  // most its part of the links where all channels run along the same chain.
  const double alone = tuner.tree_channel_bandwidth(choice.protocol) / 2;
  double together = graph.bandwidth_intra * facts.nvlink_share * graph.channels / channels;
  const bool over_pcie = facts.tree_wire > 0;
  const double by_host = over_pcie ? least_known(1, host_memory_rate(facts) / facts.pcie_wire) : 1;
  const double chain = facts.tree_wire * by_host;  // all channels, up and down
  TreePipeline pipe;
  if (graph.bandwidth_intra <= nccl::kNoChannel || facts.rccl || facts.max_local_ranks == 1) {
    pipe.rate = unsearched_tree(choice, facts) * 1e9 / channels;
  } else if (over_pcie && facts.nodes == 1) {
    // As for rings, over PCIe the wires decide, not the speeds that NCCL's search tries; LL and LL128 get the
    // tuner's share of Simple. A piece that is alone does not fill the host's memory.
    const double simple = std::min(chain, channels * tuner.tree_channel_bandwidth(Protocol::simple) / 2);
    pipe.rate = simple * tuned(choice.protocol) / tuned(Protocol::simple) * 1e9 / channels;
    together = facts.pcie_wire / (choice.protocol == Protocol::ll ? 2 : 1) / channels;
  } else if (choice.protocol == Protocol::simple && facts.nodes > 1 && facts.nic_wire > 0) {
    // Nor between boxes: NICs, threads, and NVLinks, over which a GPU of a chain sends up and down. Not
    // fitted: three GB200 partitions of 4 and 8 with NVLS off, 16 GiB at 128 and 253 GB/s (NCCL issue 1801),
    // 0.98 and 0.97 of this. In LL128 measured trees stay below, so the tuner's speed is kept for it and LL.
    const double nics = kNicShare * facts.nic_wire / tree_crossings(facts.nodes);
    const double inside = over_pcie ? chain : kSimpleShare * facts.nvlink_bandwidth / 2;
    pipe.rate = std::min(std::min(nics, inside) / channels, alone) * 1e9;
  } else {
    const double most = over_pcie ? chain / tuned(Protocol::simple) : 1;
    pipe.rate = std::min(1.0, most) * tuned(choice.protocol) * 1e9 / channels;
  }
  double between = together;
  if (facts.nodes > 1 && facts.nic_wire > 0 && facts.max_local_ranks > 1 && !facts.rccl) {
    // The search settles on what the slowest of both carries; a hop takes its own wire's time.
    const double carried = channels * carried_per_byte(choice.protocol);
    together = (over_pcie ? facts.pcie_wire * by_host : kSimpleShare * facts.nvlink_bandwidth) / carried;
    // All channels' first pieces leave a box at once; of two boxes, each the root of half of the trees, half
    // of them do on their way up, and all on their way down, when others still go up.
    const double at_once = facts.nodes == 2 ? (0.5 + 1) / 2 : 1;
    between = kNicShare * facts.nic_wire / (at_once * carried);
  }
  if (pipe.rate > 0) {
    pipe.inside_rate = std::max(pipe.rate, std::min(alone, together) * 1e9);
    pipe.between_rate = std::max(pipe.rate, std::min(alone, between) * 1e9);
  }
  const double chunk = static_cast<double>(chunk_bytes(CollectiveKind::all_reduce, choice.algorithm,
                                                       choice.protocol, choice.channels, bytes, facts));
  pipe.piece = std::min(share, piece_bytes(choice, share, chunk));
  return pipe;
}
}  // namespace topsim::collective

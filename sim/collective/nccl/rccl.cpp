#include "sim/collective/nccl/rccl.hpp"

#include <algorithm>
#include <array>

namespace topsim::collective::nccl {
namespace {

// One box: MSCCL's all-pairs all-reduce (eight GPUs; in LL below half a MiB), direct gathers, and reductions
// in LL, bytes; LL of a rank.
constexpr std::int64_t kAllPairs = 20'000'000, kAllPairsLL = 512 << 10, kDirectGather = 4 << 20,
                       kScatterLL = 352'128;
// LL where a message between two GPUs is at most this for each of its channels (NCCL's P2P_LL_THRESHOLD).
constexpr std::int64_t kDirectLL = 16 << 10;

// Several boxes: protocol by size, of the whole (all-reduce) or of a rank.
struct Range {
  std::int64_t ll, ll128;  // up to
};
constexpr Range kReduce = {1 << 20, 9'437'184}, kGather = {98'304, 5'046'272},
                kScatter = {131'072, 3'211'264};
constexpr double kMoreBoxes = 3.8;  // of an all-reduce's LL128, beyond two boxes

// Its ranking of all-reduce: microseconds and shares of 161.4 GB/s (a box of MI300X), LL and Simple.
struct Ranked {
  double base, inside, between, share_of_two, share;
  std::array<double, 27> correction;  // of the share, by log2(bytes / 64)
};
constexpr double kBase = 161.4;
constexpr std::array<Ranked, 2> kTree = {
    {{12, 0.9, 10.5, 0.06, 0.06, {.1, .1, .1, .1, .1, .1, 1,  1,  1,  1,  1,  .6, 1, .9,
                                  1,  1,  .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1}},
     {17, 2.3, 25, 0.11, 0.59, {.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1,
                                .1, .7, 1,  1,  1,  1,  1,  .7, .7, .5, .6, .6, .6}}}};
constexpr std::array<Ranked, 2> kRing = {
    {{12, 0.8, 9.5, 0.08, 0.08, {.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, 1,  .2, 1,
                                 .4, .4, .1, .2, .2, .1, .1, .1, .1, .1, .1, .1, .1}},
     {17, 2.1, 320, 1, 1, {.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1,
                           .1, .1, .1, .1, .1, .1, .1, .1, 1,  .8, 1,  1,  1}}}};

double rank_of(const Ranked& r, bool ring, bool simple, double bytes, const CommunicatorFacts& facts) {
  const double n = facts.ranks, nodes = facts.nodes;
  const int size = std::clamp(log2_floor(static_cast<std::int64_t>(bytes) >> 6), 0,
                              static_cast<int>(r.correction.size()) - 1);
  const double share = (facts.nodes <= 2 ? r.share_of_two : r.share) *
                       r.correction[static_cast<std::size_t>(size)] * (ring ? n / (2 * (n - 1)) : 0.5);
  const double posting = (facts.amd_host ? 2.0 : 1.0) * (simple ? 3 : 1);
  const double boxes = log2_floor(facts.nodes);
  const double chain = ring ? 2 * (n - nodes) * std::max(r.inside, posting) + 2 * (nodes - 1) * r.between
                            : 2 * ((n / nodes - 1) * r.inside + boxes * r.between);
  return r.base + chain + bytes / (1000 * kBase * share);
}

Algorithm least(std::int64_t bytes, const CommunicatorFacts& facts) {
  double best[2];
  for (const bool ring : {false, true}) {
    const auto& rows = ring ? kRing : kTree;
    best[ring] = std::min(rank_of(rows[0], ring, false, static_cast<double>(bytes), facts),
                          rank_of(rows[1], ring, true, static_cast<double>(bytes), facts));
  }
  return best[1] < best[0] ? Algorithm::ring : Algorithm::tree;
}

Protocol by_size(std::int64_t bytes, std::int64_t ll, double ll128) {
  if (bytes <= ll) return Protocol::ll;
  return static_cast<double>(bytes) <= ll128 ? Protocol::ll128 : Protocol::simple;
}

}  // namespace

std::optional<RcclChoice> rccl_choice(CollectiveKind kind, std::int64_t bytes,
                                      const CommunicatorFacts& facts) {
  const std::int64_t of_rank = bytes / facts.ranks;
  if (facts.nodes == 1) {
    const bool eight = facts.ranks == 8;
    if (kind == CollectiveKind::all_reduce && eight)
      return bytes <= kAllPairs
                 ? RcclChoice{Algorithm::direct, bytes < kAllPairsLL ? Protocol::ll : Protocol::simple}
                 : RcclChoice{};
    if (kind == CollectiveKind::all_gather && eight)
      return bytes <= kDirectGather
                 ? RcclChoice{Algorithm::direct,
                              of_rank <= kDirectLL * facts.channels ? Protocol::ll : Protocol::simple}
                 : RcclChoice{};
    if (kind == CollectiveKind::reduce_scatter)
      return RcclChoice{Algorithm::ring, of_rank <= kScatterLL ? Protocol::ll : Protocol::simple};
    return std::nullopt;
  }
  switch (kind) {
    case CollectiveKind::all_reduce: {
      const double ll128 = static_cast<double>(kReduce.ll128) * (facts.nodes > 2 ? kMoreBoxes : 1);
      return RcclChoice{least(bytes, facts), by_size(bytes, kReduce.ll, ll128)};
    }
    case CollectiveKind::all_gather:
      return RcclChoice{Algorithm::ring, by_size(of_rank, kGather.ll, static_cast<double>(kGather.ll128))};
    case CollectiveKind::reduce_scatter:
      return RcclChoice{Algorithm::ring, by_size(of_rank, kScatter.ll, static_cast<double>(kScatter.ll128))};
    default:
      return std::nullopt;
  }
}
}  // namespace topsim::collective::nccl

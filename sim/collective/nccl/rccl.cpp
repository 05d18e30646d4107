#include "sim/collective/nccl/rccl.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "sim/collective/nccl/tuner_constants.hpp"

namespace topsim::collective::nccl {
namespace {

// On one box of eight: up to how many bytes MSCCL's all-pairs all-reduce is used, and up to how many in LL.
constexpr std::int64_t kAllPairs = 20'000'000, kAllPairsLL = 512 << 10;
constexpr double kMoreBoxes = 3.8;  // factor on an all-reduce's LL128 limit beyond two boxes

// The figures by which RCCL ranks the algorithms of an all-reduce: microseconds and shares of a box's rate.
struct Ranked {
  double base, inside, between, share_of_two, share;
  std::array<double, 27> correction;  // of the share, by log2(bytes / 64)
};
using RankedProtocols = std::array<Ranked, 3>;
// Several boxes: protocol by size, of the whole buffer (all-reduce) or of a rank's part.
struct Range {
  std::int64_t ll, ll128;  // largest size
};
struct Gfx {
  double rate;  // GB/s: as set (baseBw); from gfx950 on seven links of 48 (graph/topo.h, GFX95X_XGMI_WIDTH)
  std::int64_t direct_gather, ring_gather_ll,
      scatter_ll;  // one box, up to: all, of a rank, of a rank; -1: as NCCL
  Range reduce, gather, scatter;
  RankedProtocols tree, ring;
};

constexpr std::array<double, 27> kTreeLow = {.1, .1, .1, .1, .1, .1, 1,  1,  1,  1,  1,  .6, 1, .9,
                                             1,  1,  .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1},
                                 kRingLow = {.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, 1,  .2, 1,
                                             .4, .4, .1, .2, .2, .1, .1, .1, .1, .1, .1, .1, .1};
constexpr Ranked tree_low(const std::array<double, 27>& correction) {
  return {kRcclBase, 0.9, kRcclTreeNet, 0.06, 0.06, correction};
}
constexpr Ranked ring_low(const std::array<double, 27>& correction) {
  return {kRcclBase, kRcclRingInside, kRcclRingNet, 0.08, 0.08, correction};
}
constexpr Ranked tree_simple(const std::array<double, 27>& correction) {
  return {kRcclBaseSimple, 2.3, kRcclTreeNetSimple, 0.11, 0.59, correction};
}
constexpr Ranked ring_simple(const std::array<double, 27>& correction) {
  return {kRcclBaseSimple, kRcclRingInsideSimple, kRcclRingNetSimple, 1, 1, correction};
}

constexpr Gfx kGfx942 = {.rate = 161.4,
                         .direct_gather = 4 << 20,
                         .ring_gather_ll = -1,
                         .scatter_ll = 352'128,
                         .reduce = {1 << 20, 9'437'184},
                         .gather = {98'304, 5'046'272},
                         .scatter = {131'072, 3'211'264},
                         .tree = {tree_low(kTreeLow), tree_low(kTreeLow),
                                  tree_simple({.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1,
                                               .1, .7, 1,  1,  1,  1,  1,  .7, .7, .5, .6, .6, .6})},
                         .ring = {ring_low(kRingLow), ring_low(kRingLow),
                                  ring_simple({.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1,
                                               .1, .1, .1, .1, .1, .1, .1, .1, 1,  .8, 1,  1,  1})}};
constexpr Gfx kGfx950 = {
    .rate = 7 * 48,
    .direct_gather = 8 << 20,
    .ring_gather_ll = 88'448,
    .scatter_ll = 175'488,
    .reduce = {256 << 10, 70'640'910},
    .gather = {65'536, 8'388'608},
    .scatter = {65'536, 8'388'608},
    .tree = {tree_low(kTreeLow), tree_low({.1, .1, .1, .1, .1, .1, 1, 1, 1,  1,  1,  .6, 1, .9,
                                           1,  1,  1,  1,  1,  2,  2, 1, .1, .9, .9, .1, .1}),
             tree_simple({.1, .1, .1, .1, .1, .1, .1, .1, .1, .1,  .1, .1, .1, .1,
                          .1, .7, 1,  .1, .1, .1, .1, .1, .7, .15, .6, .1, .6})},
    .ring = {ring_low(kRingLow), ring_low({.1, .1, .1, .1, .1, .1, .1, .1, .1,  .1, .1, 1, .2, 1,
                                           .4, .4, .1, .2, .1, .1, .1, .1, 5.5, .1, .1, 1, 1}),
             ring_simple({.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1,
                          .1, .1, .1, .1, .1, .1, .9, .1, 1,  .1, .6, 1,  1})}};
// GB/s. The links of gfx950 run at 38.4 Gbit/s per lane, those of gfx942 at 32, with sixteen lanes; older
// ones at 25.
constexpr double kLinkOfGfx942 = 64;
const Gfx& gfx_of(const CommunicatorFacts& facts) {
  return facts.infinity_fabric > kLinkOfGfx942 ? kGfx950 : kGfx942;
}

double rank_of(const Ranked& r, double rate, bool ring, bool simple, double bytes,
               const CommunicatorFacts& facts) {
  const double n = facts.ranks, nodes = facts.nodes;
  const int size = std::clamp(log2_floor(static_cast<std::int64_t>(bytes) >> 6), 0,
                              static_cast<int>(r.correction.size()) - 1);
  const double share = (facts.nodes <= 2 ? r.share_of_two : r.share) *
                       r.correction[static_cast<std::size_t>(size)] * (ring ? n / (2 * (n - 1)) : 0.5);
  const double posting = net_overhead(facts.amd_host) * (simple ? 3 : 1);
  const double boxes = log2_floor(facts.nodes);
  const double chain = ring ? 2 * (n - nodes) * std::max(r.inside, posting) + 2 * (nodes - 1) * r.between
                            : 2 * ((n / nodes - 1) * r.inside + boxes * r.between);
  return r.base + chain + bytes / (1000 * rate * share);
}

Algorithm least(std::int64_t bytes, const CommunicatorFacts& facts) {
  const Gfx& gfx = gfx_of(facts);
  double best[2];
  for (const bool ring : {false, true}) {
    const RankedProtocols& rows = ring ? gfx.ring : gfx.tree;
    best[ring] = std::numeric_limits<double>::infinity();
    for (std::size_t p = 0; p < rows.size(); ++p)
      best[ring] = std::min(best[ring], rank_of(rows[p], gfx.rate, ring, p == row(Protocol::simple),
                                                static_cast<double>(bytes), facts));
  }
  return best[1] < best[0] ? Algorithm::ring : Algorithm::tree;
}

Protocol by_size(std::int64_t bytes, std::int64_t ll, double ll128) {
  if (bytes <= ll) return Protocol::ll;
  return static_cast<double>(bytes) <= ll128 ? Protocol::ll128 : Protocol::simple;
}

}  // namespace

bool joins_cdna3_or_later(const CommunicatorFacts& facts) {
  return facts.infinity_fabric >= kLinkOfGfx942;
}

std::optional<RcclChoice> rccl_choice(CollectiveKind kind, std::int64_t bytes,
                                      const CommunicatorFacts& facts) {
  const std::int64_t of_rank = bytes / facts.ranks;
  const Gfx& gfx = gfx_of(facts);
  if (facts.nodes == 1) {
    const bool eight = facts.ranks == 8;
    if (kind == CollectiveKind::all_reduce && eight)
      return bytes <= kAllPairs
                 ? RcclChoice{Algorithm::direct, bytes < kAllPairsLL ? Protocol::ll : Protocol::simple}
                 : RcclChoice{};
    if (kind == CollectiveKind::all_gather && eight)
      return bytes <= gfx.direct_gather
                 ? RcclChoice{Algorithm::direct,
                              of_rank <= kPointToPointLL * facts.channels ? Protocol::ll : Protocol::simple}
                 : RcclChoice{};
    if (kind == CollectiveKind::all_gather && of_rank <= gfx.ring_gather_ll)
      return RcclChoice{Algorithm::ring, Protocol::ll};
    if (kind == CollectiveKind::reduce_scatter)
      return RcclChoice{Algorithm::ring, of_rank <= gfx.scatter_ll ? Protocol::ll : Protocol::simple};
    return std::nullopt;
  }
  switch (kind) {
    case CollectiveKind::all_reduce: {
      const double ll128 = static_cast<double>(gfx.reduce.ll128) * (facts.nodes > 2 ? kMoreBoxes : 1);
      return RcclChoice{least(bytes, facts), by_size(bytes, gfx.reduce.ll, ll128)};
    }
    case CollectiveKind::all_gather:
      return RcclChoice{Algorithm::ring,
                        by_size(of_rank, gfx.gather.ll, static_cast<double>(gfx.gather.ll128))};
    case CollectiveKind::reduce_scatter:
      return RcclChoice{Algorithm::ring,
                        by_size(of_rank, gfx.scatter.ll, static_cast<double>(gfx.scatter.ll128))};
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::all_to_all:
    case CollectiveKind::send_recv:
    case CollectiveKind::barrier:
      break;
  }
  return std::nullopt;
}
}  // namespace topsim::collective::nccl

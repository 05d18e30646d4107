// Ring: in each channel every rank sends to the next. All-reduce passes every chunk around twice except for
// the last steps: 2(n-1)/n bytes per byte and edge; all-gather and reduce-scatter once: (n-1)/n. Broadcast
// and reduce are pipelines along the ring: 1 byte on every edge but the one that would close the ring at the
// root (rank 0). The channels share the bytes evenly.
#include "sim/collective/lowering.hpp"
#include "sim/collective/wiring.hpp"

namespace topsim::collective {
namespace {

// How many channels run over the graph's channel `index`.
int count_of(int index, int found, int channels) {
  int count = 0;
  for (int c = index; c < channels; c += found) ++count;
  return count;
}

}  // namespace

void lower_ring(CollectiveKind kind, const Placement& placement, int channels, UsageBuilder& usage) {
  const double n = placement.ranks;
  const bool pipeline = rooted(kind);
  const double per_edge = pipeline ? 1 : (kind == CollectiveKind::all_reduce ? 2 : 1) * (n - 1) / n;
  const int found = placement.tuner->facts().ring.channels;
  for (int c = 0; c < std::min(found, channels); ++c) {
    const int count = count_of(c, found, channels);
    usage.open(count);
    for (const Hop& hop : ring_of(placement, c)) {
      const bool closes_at_root = pipeline && hop.to_rank == 0;
      if (!closes_at_root) usage.add_channels(hop.query(c), per_edge * count / channels, count, found);
    }
  }
}
}  // namespace topsim::collective

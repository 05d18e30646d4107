// Point-to-point schedules: all-to-all, neighbour exchange, and PAT's logarithmic gathers.
#include <span>

#include "sim/collective/lowering.hpp"

namespace topsim::collective {

// Every rank sends 1/n of its buffer to each of the others. Between boxes, with PXN, the data for GPU j of
// another box first moves over NVLink to the local GPU whose NIC is on j's rail, and all of it leaves from
// there.
void lower_all_to_all(const Placement& placement, bool pxn, UsageBuilder& usage) {
  const std::uint32_t n = placement.ranks;
  const bool inside_only = lower_alike(placement, pxn, usage);
  for (const PlacedBox& from : placement.boxes)
    for (std::size_t i = 0; i < from.gpus.size(); ++i)
      for (const PlacedBox& to : inside_only ? std::span(&from, 1) : std::span(placement.boxes))
        for (std::size_t k = 0; k < to.gpus.size(); ++k)
          if (from.ranks[i] != to.ranks[k])
            usage.add_message({.from = from.gpus[i],
                               .to = to.gpus[k],
                               .connection = direct_connection((to.ranks[k] + n - from.ranks[i]) % n),
                               .allow_pxn = pxn,
                               .even = true},
                              1.0 / n);
}

// Every rank sends 1/n to each other; for all-reduce twice: parts to be reduced, then the results.
void lower_mesh(CollectiveKind kind, const Placement& placement, UsageBuilder& usage) {
  const double per_pair = (kind == CollectiveKind::all_reduce ? 2.0 : 1.0) / placement.ranks;
  for (const DeviceId a : placement.boxes.front().gpus)
    for (const DeviceId b : placement.boxes.front().gpus)
      if (a != b) usage.add({.from = a, .to = b}, per_pair);
}

// Every rank sends all its bytes to the next one and receives from the previous one (sendrecv of nccl-tests).
void lower_neighbours(std::span<const DeviceId> gpus, bool pxn, UsageBuilder& usage) {
  for (std::size_t i = 0; i < gpus.size(); ++i)
    if (const DeviceId to = gpus[(i + 1) % gpus.size()]; to != gpus[i])
      usage.add_message({.from = gpus[i], .to = to, .connection = direct_connection(1), .allow_pxn = pxn}, 1);
}

// In step k every rank passes on what it holds, up to 2^k shares of 1/n, to the rank 2^k further on; in the
// last step only the missing shares.
void lower_pat(const Placement& placement, int channels, UsageBuilder& usage) {
  const std::uint32_t n = placement.ranks;
  std::vector<DeviceId> gpu(n);
  for (const PlacedBox& box : placement.boxes)
    for (std::size_t i = 0; i < box.gpus.size(); ++i) gpu[box.ranks[i]] = box.gpus[i];
  for (std::uint32_t distance = 1; distance < n; distance *= 2) {
    const double shares = std::min(distance, n - distance);
    for (std::uint32_t r = 0; r < n; ++r)
      usage.add_channels({.from = gpu[r], .to = gpu[(r + distance) % n], .connection = distance}, shares / n,
                         channels, static_cast<int>(n));
  }
}
}  // namespace topsim::collective

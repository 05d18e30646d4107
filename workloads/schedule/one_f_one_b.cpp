#include <algorithm>

#include "workloads/schedule/families.hpp"

namespace topsim::workloads::schedule {

std::vector<StageTask> gpipe(int micro_batches) {
  std::vector<StageTask> order;
  for (int i = 0; i < micro_batches; ++i) order.push_back({Action::forward, i, 0});
  for (int i = micro_batches - 1; i >= 0; --i) order.push_back({Action::backward, i, 0});
  return order;
}

// 1F1B is interleaving with one chunk: the virtual order is that of the micro-batches, the warm-up p-1-r.
std::vector<StageTask> interleaved(int stage, int stages, int micro_batches, int chunks) {
  // Groups of p micro-batches run through all chunks before the next group begins.
  std::vector<StageTask> forward, backward;
  for (int first = 0; first < micro_batches; first += stages) {
    const int last = std::min(first + stages, micro_batches);
    for (int chunk = 0; chunk < chunks; ++chunk)
      for (int i = first; i < last; ++i) {
        forward.push_back({Action::forward, i, chunk});
        backward.push_back({Action::backward, i, chunks - 1 - chunk});
      }
  }
  const int total = micro_batches * chunks;
  const int ahead = chunks == 1 ? stages - 1 - stage : 2 * (stages - stage - 1) + (chunks - 1) * stages;
  const int warm_up = std::min(ahead, total);
  std::vector<StageTask> order(forward.begin(), forward.begin() + warm_up);
  for (int i = 0; i < total; ++i) {
    if (i + warm_up < total) order.push_back(forward[static_cast<std::size_t>(i + warm_up)]);
    order.push_back(backward[static_cast<std::size_t>(i)]);
  }
  return order;
}
}  // namespace topsim::workloads::schedule

#include "workloads/schedule/schedule.hpp"

#include "sim/base/error.hpp"
#include "workloads/schedule/families.hpp"

namespace topsim::workloads {

std::vector<StageTask> order_of(Schedule kind, int stage, int stages, int micro_batches, int chunks) {
  switch (kind) {
    case Schedule::gpipe:
      return schedule::gpipe(micro_batches);
    case Schedule::one_f_one_b:
      return schedule::interleaved(stage, stages, micro_batches, 1);
    case Schedule::interleaved:
      return schedule::interleaved(stage, stages, micro_batches, chunks);
    case Schedule::zb_h1:
    case Schedule::zb_1p:
      return schedule::zb_h1(stage, stages, micro_batches);
    case Schedule::zb_2p:
      return schedule::zb_2p(stage, stages, micro_batches);
    case Schedule::zb_v:
      return schedule::zb_v(stage, stages, micro_batches);
    case Schedule::dualpipe:
      return schedule::dualpipe(stage, stages, micro_batches);
  }
  throw InternalError("unknown schedule");
}
}  // namespace topsim::workloads

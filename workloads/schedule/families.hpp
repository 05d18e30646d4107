// One function per family of schedules; schedule.cpp chooses.
#pragma once

#include "workloads/schedule/schedule.hpp"

namespace topsim::workloads::schedule {

std::vector<StageTask> gpipe(int micro_batches);
std::vector<StageTask> interleaved(int stage, int stages, int micro_batches, int chunks);  // 1F1B: one chunk
std::vector<StageTask> zb_h1(int stage, int stages, int micro_batches);
std::vector<StageTask> zb_2p(int stage, int stages, int micro_batches);  // for equal times
std::vector<StageTask> zb_v(int stage, int stages, int micro_batches);
std::vector<StageTask> dualpipe(int stage, int stages, int micro_batches);
}  // namespace topsim::workloads::schedule

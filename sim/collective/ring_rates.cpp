#include "sim/collective/ring_rates.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/collective/nccl/tuner_constants.hpp"
#include "sim/collective/time_model.hpp"

namespace topsim::collective {
namespace {

using nccl::CommunicatorFacts;
using nccl::least_known;

// "Sweeps" are the measurements listed in time_model.cpp; GPU generations: Volta, Ampere, Hopper, Blackwell.

// LL's rate over NVLink, relative to the tuner's ceiling for its generation: in total (107 to 87.7 GB/s on
// A100, 176 to 141 on H100, 310 to 282 on B200), and through one channel: a ninth of the ceiling (9.7 and 16
// GB/s at 64-256 KiB, where few channels work). Both are the rates of the threads; a slower wire is the limit
// instead, and LL fills it with as many flags as bytes.
constexpr double kLowLatencyTotal = 1.2, kLowLatencyChannels = 9;
// LL128's share of the tuner's rate over NVLink, from the same differences: 0.64-0.74 (A100) and 0.90-0.98
// (H100). Blackwell's is not measured, because its few LL128 rows fit no line: assumed between the two.
constexpr std::array<double, 4> kLL128Share = {0.70, 0.70, 0.97, 0.85};
// A ring's threads also copy the rank's own n-th of the data without sending it: with Simple at this rate per
// channel, GB/s, with LL at LL's. From the time that all-reduce, all-gather and reduce-scatter of 64 to 512
// MiB over 2, 4 and 8 GPUs take beyond their links: medians of times 16 (A100), 27 (H100) and 45 (B200), of
// slopes from size to size 17, 40 and 26; where they differ, a value in between was chosen (B200's times
// above 128 MiB alone: 34). So two GPUs reach 2/3 to 3/4 of what eight do. Not fitted: two RTX PRO 6000 on
// one PCIe switch copy 25 GB/s per channel.
constexpr std::array<double, 4> kOwnCopy = {17, 17, 30, 36};
// Channels begin in step and copy at the same time; later they drift apart, and one channel's copy overlaps
// with the sending of others. The links wait for 1 / sqrt(1 + loops / kLoopsInStep) of a copy, where a loop
// is one chunk of each rank on each channel. Read from 1 to 16 GiB of all-gather and reduce-scatter on four
// H100 (xxrjun/nccl-tests-cluster). With it most of the sweeps' slopes from 64 to 512 MiB give one copy rate,
// where they gave a higher rate for larger sizes (all-gather on two H100: 41, 38, 45, now 29.5, 29.6, 29.6).
// Not fitted: 16 GiB on 8 H200, 361 and 363 GB/s of bus bandwidth; 8 GiB of all-reduce on four GB200, 663;
// vTrain's two A100.
constexpr double kLoopsInStep = 3;
// Where GPUs may not write to each other (NCCL: beyond a PCIe switch) a hop is written to host memory and
// read from it, and the reads take most of the time. Means of two boxes each: RTX PRO 6000 within a socket
// 30.3 GB/s of bus bandwidth and over two 22.2 (39.3 and 37.6 if they may write to each other or have eight
// channels; voipmonitor/rtx6kpro, hardware/asus-esc8000a-e13p-broadcom-switches.md, pcie-bandwidth.md); RTX
// 5090 35 and 28 (NCCL issue 1639).
constexpr double kHostMemory = (30.3 + 35) / 2, kHostMemoryOfTwoSockets = (22.2 + 28) / 2;

}  // namespace

RingRates ring_rates(const Choice& choice, const CommunicatorFacts& facts, std::size_t gpu) {
  const bool one_box = facts.nodes == 1, alone = facts.max_local_ranks == 1;
  const bool nvlink = !alone && facts.ring.type_intra <= nccl::PathType::nvb;
  const double found = facts.ring.channels, local = facts.max_local_ranks;
  // One of a channel's hops leaves the box by a NIC, so a GPU's NVLinks carry only the others.
  const double links = !nvlink   ? 0
                       : one_box ? found * facts.ring.bandwidth_intra * facts.nvlink_share
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
      // Behind an NVSwitch the speeds that NCCL's search tries are no limit either.
      rates.threads = kSimpleShare * (one_box && nvlink && facts.nvswitch ? facts.nvlink_bandwidth : links);
      // For devices that are neither NVIDIA's nor AMD's only the links are known.
      if (facts.min_capability == 0) rates.threads = facts.rccl ? links : 0, rates.own_copy = 0;
      if (host_memory > 0) rates.threads = host_memory;
      break;
    case Protocol::ll128:
      rates.threads =
          kLL128Share[gpu] * least_known(0.92 * links, choice.channels / 2.0 * nccl::kRingLL128[gpu][0]);
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

double exposed_share(double bytes, double loop) {
  const double loops = bytes / (loop * kLoopsInStep);
  return loops > 0 ? 2 * (std::sqrt(1 + loops) - 1) / loops : 1;
}

double host_memory_rate(const CommunicatorFacts& facts) {
  if (!facts.through_host_memory || facts.max_local_ranks == 1) return 0;
  return facts.ring.type_intra >= nccl::PathType::sys ? kHostMemoryOfTwoSockets : kHostMemory;
}
}  // namespace topsim::collective

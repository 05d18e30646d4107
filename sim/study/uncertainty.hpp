// How a sample of an ensemble differs from the scenario itself: by its position in every range that the
// catalogue's sources leave open, and by what follows from a seed.
#pragma once

#include <string>
#include <vector>

#include "sim/report/interval.hpp"
#include "sim/scenario/run/simulate.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/catalogue.hpp"

namespace topsim::study {

// How far a switch hop's latency may be from the usual one: as far as the catalogue's sources differ on the
// switch's port-to-port time, whether the hop is a sum of parts or one measurement. Zero width where the
// scenario states it.
struct HopRange {
  report::Interval seconds;  // beside the usual hop
  std::string id;            // of the switch: the same draw for all that have it
  [[nodiscard]] bool varies() const { return seconds.low < seconds.high; }
};

// The same for the two ends of a message: NICs, hosts and their software. InfiniBand and RoCE were measured
// by different people on different NICs, so they draw independently.
struct BaseRange {
  report::Interval seconds;
  std::string id;  // of the link
};

// Kernel times as multiples of the usual ones: the usual rate of a large matrix product, in the scenario's
// precision, over the rates that the catalogue's other sources state. The same draw for all candidates with
// that accelerator; 1 where the scenario states times.
struct KernelRange {
  report::Interval factor{1, 1, 1};
  std::string id;
};

// What the catalogue leaves open about a candidate.
struct Ranges {
  HopRange hop;
  BaseRange base;
  KernelRange kernels;
  [[nodiscard]] bool vary() const {
    return hop.varies() || base.seconds.low < base.seconds.high || kernels.factor.low < kernels.factor.high;
  }
};
[[nodiscard]] Ranges ranges_of(const scenario::Scenario& scenario, const topology::Topology& topology,
                               const topology::Catalogue& catalogue);

// What differs from sample to sample besides ranges.
struct Chances {
  bool hashes = false;      // ECMP could have sent the run's traffic another way
  bool meets = false;       // flows met: the calibrated loss has an interval
  bool packets = false;     // every packet was simulated: its hashes, marks and losses follow from the seed
  bool placements = false;  // ranks are placed at random
  [[nodiscard]] bool any() const { return hashes || meets || packets || placements; }
};
// `usual`: the scenario's own run.
[[nodiscard]] Chances chances_of(const scenario::Scenario& scenario, const topology::Topology& topology,
                                 const scenario::Simulated& usual);

// One phrase for each thing drawn, for the remarks of a comparison.
[[nodiscard]] std::vector<std::string> in_words(const Ranges& ranges, const Chances& chances);

// The cluster and its program with what this sample draws. All candidates draw the same place in a range of
// the same name (common random numbers), so that the spread of their difference is the difference's own.
[[nodiscard]] scenario::Prepared drawn(const Ranges& ranges, std::size_t sample,
                                       const scenario::Prepared& usual);

// Of the calibrated loss where flows meet: a quarter of the samples takes the low end, a quarter the high.
[[nodiscard]] network::Bound drawn_contention(std::size_t sample);
}  // namespace topsim::study

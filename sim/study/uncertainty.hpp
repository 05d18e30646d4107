// What one sample of an ensemble has otherwise than the scenario itself: a place in every range that the
// catalogue's sources leave open, and what follows from a seed.
#pragma once

#include <string>
#include <vector>

#include "sim/report/interval.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/simulate.hpp"
#include "topology/catalogue.hpp"

namespace topsim::study {

// What the latency of a switch hop may be: the catalogue's range of the switch's port-to-port time, around
// the usual one, whether hops are added up from parts or measured as a whole. Zero width where the user gave
// it.
struct HopRange {
  report::Interval seconds;  // beside the usual hop
  std::string id;            // of the switch: the same draw for everybody who has it
  [[nodiscard]] bool varies() const { return seconds.low < seconds.high; }
};

// The same of what lies before the first link and behind the last: both NICs, hosts, their software.
// InfiniBand and RoCE were measured by different people on different NICs, so each draws for itself.
struct BaseRange {
  report::Interval seconds;
  std::string id;  // of the link
};

// How long kernels take, beside the usual: the rate of a large matrix product in the scenario's precision, as
// far as the catalogue's sources are apart on it. The same draw for everybody who has the accelerator.
// Nothing where times were measured or given by the user.
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

// What besides ranges differs from sample to sample.
struct Chances {
  bool hashes = false;      // ECMP could have sent the run's traffic another way
  bool meets = false;       // flows met: what that costs is calibrated, with a spread
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

// The calibrated loss where flows meet: its interval's ends stand for a quarter of the samples each.
[[nodiscard]] network::Bound drawn_contention(std::size_t sample);
}  // namespace topsim::study

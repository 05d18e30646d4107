// How much of a long run is training: arithmetic on the simulated step, not a simulation.
//
// Interruptions come at rate L = sum over kinds of parts of (how many) x (failures a year), M = 1 / L apart
// on average, at random (Poisson). A checkpoint of d seconds is written after every t seconds of training; an
// interruption costs a restart of R seconds and the work since the last checkpoint. Then (Daly 2006,
// doi 10.1016/j.future.2004.11.016, the complete model) the share of time that trains is
//
//   g(t) = t / (M e^(R/M) (e^((t+d)/M) - 1))
//
// and is largest near   t = sqrt(2 d M) (1 + sqrt(d/2M)/3 + (d/2M)/9) - d   for d < 2 M, else t = M;
// its first term alone is Young's (1974).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/config/object.hpp"
#include "sim/report/interval.hpp"
#include "topology/catalogue.hpp"
#include "topology/topology.hpp"

namespace topsim::report {

// The `reliability` section of a scenario.
struct ReliabilitySpec {
  double days = 30;                             // that the run lasts
  Duration checkpoint_time{};                   // how long training stops for one
  Duration restart{};                           // from the failure to training again, without the lost work
  std::optional<Duration> checkpoint_interval;  // of training between two; unset: Daly's optimum
  std::map<std::string, double> failures_per_year;  // of one such thing, instead of the catalogue's
  friend bool operator==(const ReliabilitySpec&, const ReliabilitySpec&) = default;
};
[[nodiscard]] const config::Object<ReliabilitySpec>& table(config::Type<ReliabilitySpec> type);

// Parts of one kind and how often one of them ends the job.
struct FailureSource {
  std::string id;  // of configs/hardware/reliability.json
  std::int64_t count = 0;
  Interval per_year;
};
// What `count` counts.
[[nodiscard]] std::string_view counted_of(std::string_view id);

struct Goodput {
  std::vector<FailureSource> sources;
  double days = 0;                 // that the run lasts
  Interval interruptions_per_day;  // low, usual and high published rates
  double checkpoint_interval = 0;  // seconds
  bool optimum = true;             // Daly's
  Interval share;                  // of the time that trains; low where failures are many
  std::int64_t known_losses = 0;   // times at which `faults` takes accelerators away during the run
};

// Seconds all. REQUIRES: interval > 0, mean_between > 0.
[[nodiscard]] double goodput_share(double interval, double checkpoint, double restart, double mean_between);
[[nodiscard]] double daly_interval(double checkpoint, double mean_between);

// The parts of this cluster that can end the job: accelerators, NICs and cables of the nodes that hold ranks.
// A NIC with cables to several leaves survives the loss of one.
[[nodiscard]] std::vector<FailureSource> failure_sources(const topology::Topology& topology,
                                                         const topology::Catalogue& catalogue,
                                                         const ReliabilitySpec& spec);
// `losses`: when accelerators are known to be lost, from the beginning of the run. Those after its end do not
// count, those at one time count once. Of the work since a checkpoint only what was done since training last
// went on can be lost.
[[nodiscard]] Goodput goodput(std::vector<FailureSource> sources, const ReliabilitySpec& spec,
                              const std::vector<Duration>& losses);
}  // namespace topsim::report

#include "sim/report/reliability.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/base/suggest.hpp"
#include "topology/catalogue/price_entry.hpp"

namespace topsim::report {
namespace {
using topology::DeviceKind;

// The kinds that are counted, in the order of the list. The published causes are disjoint: a failed switch is
// counted with the cables of the NICs that it cut off.
enum Kind : std::size_t { kAccelerator, kSoftware, kNic, kLink, kKinds };
constexpr const char* kIds[kKinds] = {"accelerator", "software-and-host", "nic", "fabric-link"};

constexpr std::string_view kCounted[kKinds] = {"accelerators", "accelerators, whose hosts these are", "NICs",
                                               "cables that join a NIC to its only leaf"};

struct Counts {
  std::int64_t of[kKinds] = {};
};

Counts count_parts(const topology::Topology& t) {
  std::set<std::uint32_t> nodes;
  Counts counts;
  for (const DeviceId rank : t.accelerators()) nodes.insert(t.device(rank).node);
  counts.of[kAccelerator] = counts.of[kSoftware] = static_cast<std::int64_t>(t.accelerators().size());
  for (std::size_t i = 0; i < t.devices().size(); ++i) {
    const topology::Device& device = t.devices()[i];
    if (device.kind != DeviceKind::nic || !nodes.contains(device.node)) continue;
    std::set<DeviceId> leaves;
    std::int64_t cables = 0;
    for (const LinkId l : t.links_from(DeviceId(i))) {
      if (t.device(t.link(l).to).kind != DeviceKind::fabric_switch) continue;
      leaves.insert(t.link(l).to);
      cables += t.link(l).count;
    }
    counts.of[kNic] += device.count;
    if (leaves.size() == 1) counts.of[kLink] += cables;
  }
  return counts;
}

struct KnownLosses {
  std::int64_t interruptions = 0;
  double lost = 0;  // seconds
};
// Checkpoints are counted from when training last went on; what is lost before it goes on again begins the
// restart anew. Devices lost at one time interrupt once, and no restart lasts beyond the run.
KnownLosses known_losses(const std::vector<Duration>& losses, double interval, double checkpoint,
                         double restart, double run) {
  KnownLosses known;
  double resumed = 0;
  for (const Duration each : std::set<Duration>(losses.begin(), losses.end())) {
    const double at = seconds(each);
    if (at >= run) break;
    ++known.interruptions;
    if (at > resumed) known.lost += std::min(std::fmod(at - resumed, interval + checkpoint), interval);
    const double until = std::min(at + restart, run);
    known.lost += until - std::max(at, resumed);
    resumed = until;
  }
  return known;
}

}  // namespace

double goodput_share(double interval, double checkpoint, double restart, double mean_between) {
  const double m = mean_between;
  return interval / (m * std::exp(restart / m) * std::expm1((interval + checkpoint) / m));
}

double daly_interval(double checkpoint, double mean_between) {
  if (checkpoint >= 2 * mean_between) return mean_between;
  const double x = std::sqrt(checkpoint / (2 * mean_between));
  return std::sqrt(2 * checkpoint * mean_between) * (1 + x / 3 + x * x / 9) - checkpoint;
}

std::vector<FailureSource> failure_sources(const topology::Topology& topology,
                                           const topology::Catalogue& catalogue,
                                           const ReliabilitySpec& spec) {
  const Counts counts = count_parts(topology);
  std::vector<FailureSource> sources;
  for (std::size_t k = 0; k < kKinds; ++k) {
    FailureSource source{kIds[k], counts.of[k], {}};
    const topology::FailureRate* published = catalogue.failure_rate(kIds[k]);
    if (const auto own = spec.failures_per_year.find(kIds[k]); own != spec.failures_per_year.end())
      source.per_year = {own->second, own->second, own->second};
    else if (published != nullptr)
      source.per_year = {published->low, published->per_year, published->high};
    if (source.count > 0) sources.push_back(std::move(source));
  }
  return sources;
}

Goodput goodput(std::vector<FailureSource> sources, const ReliabilitySpec& spec,
                const std::vector<Duration>& losses) {
  Goodput result;
  result.days = spec.days;
  const auto per_day = [&](double Interval::*end) {
    double sum = 0;
    for (const FailureSource& each : sources)
      sum += static_cast<double>(each.count) * (each.per_year.*end) / kDaysPerYear;
    return sum;
  };
  result.interruptions_per_day = {per_day(&Interval::low), per_day(&Interval::usual),
                                  per_day(&Interval::high)};
  result.sources = std::move(sources);
  const double checkpoint = seconds(spec.checkpoint_time), restart = seconds(spec.restart);
  const double all = spec.days * kSecondsPerDay;
  const double usual = result.interruptions_per_day.usual;
  result.optimum = !spec.checkpoint_interval;
  result.checkpoint_interval = spec.checkpoint_interval ? seconds(*spec.checkpoint_interval)
                               : usual > 0              ? daly_interval(checkpoint, kSecondsPerDay / usual)
                                                        : all;
  // Checkpoints that cost nothing are written continuously.
  result.checkpoint_interval = std::max(result.checkpoint_interval, 1e-3);
  const KnownLosses known = known_losses(losses, result.checkpoint_interval, checkpoint, restart, all);
  result.known_losses = known.interruptions;
  const auto share = [&](double failures_per_day) {
    const double interval = result.checkpoint_interval;
    const double trains =
        failures_per_day > 0 ? goodput_share(interval, checkpoint, restart, kSecondsPerDay / failures_per_day)
                             : interval / (interval + checkpoint);
    return trains * std::max(0.0, 1 - known.lost / all);
  };
  result.share = {share(result.interruptions_per_day.high), share(usual),
                  share(result.interruptions_per_day.low)};
  return result;
}

const config::Object<ReliabilitySpec>& table(config::Type<ReliabilitySpec>) {
  static const auto object =
      config::Object<ReliabilitySpec>(
          "reliability",
          "What failures and checkpoints leave of a run of days: arithmetic on the "
          "simulated step")
          .field("days", &ReliabilitySpec::days, "how long the run takes", config::positive())
          .field("checkpoint_time", &ReliabilitySpec::checkpoint_time,
                 "for which training stands still to write one", config::required(),
                 config::example("\"30 s\""))
          .field("restart", &ReliabilitySpec::restart,
                 "from a failure until training goes on, without the work that is repeated",
                 config::required(), config::example("\"10 min\""))
          .field("checkpoint_interval", &ReliabilitySpec::checkpoint_interval,
                 "training time between two checkpoints", config::positive(),
                 config::default_text("Daly's optimum"))
          .field("failures_per_year", &ReliabilitySpec::failures_per_year,
                 "of one part that end the job, by kind: accelerator, software-and-host, nic, fabric-link",
                 config::map_of(config::codec_for<double>(config::at_least(0))),
                 config::default_text("published rates, configs/hardware/reliability.json"),
                 config::example(R"({"accelerator": 0.11})"))
          .check([](const ReliabilitySpec& spec, const config::Node& node, config::Reader& reader) {
            const std::vector<std::string> known(std::begin(kIds), std::end(kIds));
            for (const auto& [id, rate] : spec.failures_per_year) {
              if (std::find(known.begin(), known.end(), id) != known.end()) continue;
              const auto close = closest(id, known);
              reader.problem(node.find("failures_per_year").find(id),
                             "no failures are counted of \"" + id + '"',
                             close ? "did you mean \"" + *close + "\"?" : "", "kinds: " + join(known));
            }
          });
  return object;
}

std::string_view counted_of(std::string_view id) {
  const auto* const kind = std::find(std::begin(kIds), std::end(kIds), id);
  return kind == std::end(kIds) ? std::string_view{} : kCounted[kind - std::begin(kIds)];
}
}  // namespace topsim::report

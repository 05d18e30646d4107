#include "sim/scenario/bench/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "sim/collective/nccl/tuner.hpp"
#include "sim/collective/searches.hpp"
#include "sim/executor/step_messages.hpp"
#include "sim/network/factory.hpp"
#include "sim/scenario/bench/bench_contention.hpp"
#include "sim/scenario/bench/idle_network.hpp"
#include "sim/scenario/cluster/faults.hpp"
#include "sim/scenario/cluster/load_topology.hpp"
#include "sim/scenario/cluster/unreachable.hpp"
#include "sim/scenario/findings/cable_findings.hpp"
#include "sim/scenario/findings/fabric_software.hpp"
#include "sim/scenario/findings/forced_findings.hpp"
#include "sim/scenario/findings/packet_findings.hpp"
#include "topology/build.hpp"
#include "topology/catalogue/node_recipe.hpp"
#include "topology/placement.hpp"
#include "topology/routes.hpp"

namespace topsim::scenario {
namespace {

using collective::CollectiveKind;

constexpr std::int64_t kElement = 4;  // float

// One launch of several by one thread. On a DGX A100 (NVIDIA/nccl-tests issue 123) -g 8 takes 33.7 us, each
// GPU from the fourth on 4.2 of them, where a thread per GPU takes 21 us with the same protocol.
constexpr Duration kLaunch = std::chrono::nanoseconds(4200);

struct BenchRun {
  const Scenario& scenario;
  const topology::Router& router;
  const collective::NcclModel& nccl;
  std::vector<DeviceId> gpus;
  executor::Progress* progress;
  std::vector<executor::CapacityChange> slower = {};  // links that are slower for the whole run
  Duration launches{};                                // of one call, by one thread
  [[nodiscard]] bool stopped() const { return progress != nullptr && progress->stopped(); }
};

std::vector<network::Usage> usage_of(const collective::Activity& activity) {
  std::vector<network::Usage> usage;
  for (const topology::LinkShare& use : activity.usage) usage.push_back({use.link.value, use.share});
  return usage;
}

// Runs the network until nothing moves, or it is stopped. `arrived(tag, time)` may start more messages;
// `messages` is their total number.
template <class Arrived>
SimTime drain(const executor::MadeNetwork& made, const BenchRun& run, std::size_t messages,
              const Arrived& arrived) {
  SimTime now{};
  std::size_t count = 0;
  std::vector<network::Completion> completed;
  for (SimTime next = made.network->next_event(); next != kNever && !run.stopped();
       next = made.network->next_event()) {
    completed.clear();
    made.network->advance(next, completed);
    count += completed.size();
    for (const network::Completion& c : completed) {
      now = c.time;
      arrived(c.tag, c.time);
    }
  }
  if (!run.stopped()) require_all_arrived(made, count, messages);
  return now;
}

Duration pipelined_time(const BenchRun& run, const collective::Activity& activity, Bytes bytes,
                        BenchContention& contention) {
  const std::vector<network::Usage> usage = usage_of(activity);
  const auto made = idle_network(run.scenario, run.router, run.slower);
  contention.begin({{usage, bytes}}, *made.network);
  network::Transfer transfer;
  transfer.bytes = static_cast<double>(bytes.value());
  transfer.usage = usage;
  transfer.rate_cap = activity.cap.value();
  transfer.weight = activity.weight;
  transfer.latency = activity.latency - activity.queued;  // nccl-tests times twenty in a row
  made.network->start(transfer, SimTime{});
  return drain(made, run, 1, [](std::uint64_t, SimTime) {}).time_since_epoch();
}

Duration stepwise_time(const BenchRun& run, const collective::StepPlan& plan) {
  std::vector<DeviceId> ends = run.gpus;  // followed by switches that reduce
  ends.insert(ends.end(), plan.devices.begin(), plan.devices.end());
  executor::StepOrder order = executor::order_of(plan);
  const auto made = idle_network(run.scenario, run.router, run.slower);
  const auto send = [&](std::uint32_t m, SimTime now) {
    const collective::StepMessage& message = plan.messages[m];
    executor::NamedWay path;
    if (message.names_links()) {
      path = executor::way_over(plan.ways[message.way]);
    } else {
      collective::Activity activity;
      run.nccl.lower_step(message, run.gpus, activity);
      path.usage = usage_of(activity);
    }
    network::Transfer transfer = executor::transfer_of(message, ends, run.nccl.allows_pxn());
    transfer.usage = path.usage;
    transfer.way = path.way;
    transfer.tag = m;
    made.network->start(transfer, now);
  };
  for (std::uint32_t m = 0; m < plan.messages.size(); ++m) {
    if (order.missing[m] == 0) send(m, SimTime{});
  }
  return drain(made, run, plan.messages.size(),
               [&](std::uint64_t tag, SimTime now) {
                 for (const std::uint32_t follower : order.followers_of(static_cast<std::uint32_t>(tag)))
                   if (--order.missing[follower] == 0) send(follower, now);
               })
      .time_since_epoch();
}

// The sizes that nccl-tests uses: collectives that split the buffer use multiples of 16 bytes per rank.
BenchRow row_of(CollectiveKind kind, std::int64_t size, std::int64_t ranks) {
  BenchRow row;
  const bool split = kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter ||
                     kind == CollectiveKind::all_to_all;
  if (split) {
    row.count = size / kElement / ranks / 4 * 4;
    row.size = Bytes(row.count * ranks * kElement);
  } else {
    row.count = size / kElement;
    row.size = Bytes(row.count * kElement);
  }
  return row;
}

// NCCL discards a collective of nothing before it starts anything (enqueue.cc, taskAppend), all-to-all among
// them since it is one (2.28); a send of nothing it makes.
bool discarded(CollectiveKind kind, const BenchRow& row) {
  return row.count == 0 && kind != CollectiveKind::send_recv;
}

bool is_another(const collective::Overrides& forced, CollectiveKind kind, const collective::Choice& choice) {
  if (kind == CollectiveKind::all_to_all || kind == CollectiveKind::send_recv) return false;  // have neither
  return (forced.algorithm && *forced.algorithm != choice.algorithm) ||
         (forced.protocol && *forced.protocol != choice.protocol);
}

std::string_view why_not(const collective::Overrides& forced, CollectiveKind kind) {
  using collective::Algorithm, collective::Protocol;
  const Algorithm algorithm = forced.algorithm.value_or(Algorithm::ring);
  const bool low_latency = forced.protocol.value_or(Protocol::simple) != Protocol::simple;
  const bool tree = algorithm == Algorithm::tree;
  const bool there = algorithm == Algorithm::ring || (tree && kind == CollectiveKind::all_reduce);
  return there || (low_latency && !tree) ? collective::nccl::kLowLatencyNeeds
                                         : collective::nccl::needs_of(algorithm);
}

// NCCL too refuses to start if nothing that NCCL_ALGO and NCCL_PROTO name is available.
void refuse_another(const collective::Overrides& forced, CollectiveKind kind,
                    const collective::Choice& choice) {
  if (!is_another(forced, kind, choice)) return;
  throw ConfigError(fmt::format("this collective knows no {}{}{} here",
                                forced.algorithm ? collective::name_of(*forced.algorithm) : "",
                                forced.algorithm && forced.protocol ? " with " : "",
                                forced.protocol ? collective::name_of(*forced.protocol) : ""),
                    fmt::format("{} {} would be chosen; {}", collective::name_of(choice.algorithm),
                                collective::name_of(choice.protocol), why_not(forced, kind)));
}

// The number of NICs of a node, and how many of them the collective does not use.
std::pair<int, int> nics_of_node(const topology::Topology& topology, std::uint32_t node,
                                 const collective::Activity& activity) {
  const auto nics = topology.nics_of_node(node);
  const auto idle = std::count_if(nics.begin(), nics.end(), [&](DeviceId nic) {
    return std::none_of(activity.usage.begin(), activity.usage.end(), [&](const topology::LinkShare& use) {
      const topology::Link link = topology.link(use.link);
      return link.from == nic || link.to == nic;
    });
  });
  return {static_cast<int>(nics.size()), static_cast<int>(idle)};
}

// Throws collective::Stopped where the run is stopped while routes are looked up.
void add_rows(const BenchRun& run, CollectiveKind kind, const BenchSizes& sizes,
              std::vector<BenchRow>& rows) {
  const bool in_steps = run.scenario.network.collectives == CollectiveForm::steps ||
                        network::find_model(run.scenario.network.model).messages_only;
  std::vector<BenchRow> asked;
  std::vector<collective::CollectiveCall> calls;
  for (double size = static_cast<double>(sizes.first.value());
       size <= static_cast<double>(sizes.last.value()); size *= sizes.factor) {
    asked.push_back(row_of(kind, std::llround(size), static_cast<std::int64_t>(run.gpus.size())));
    calls.push_back({kind, asked.back().size});
  }
  const collective::LoweredCalls lowered = run.nccl.lower(calls, run.gpus);  // sizes with equal paths share
  BenchContention contention(run.scenario, run.router.topology(), run.slower);
  for (std::size_t i = 0; i < asked.size() && !run.stopped(); ++i) {
    BenchRow row = asked[i];
    collective::Activity activity = lowered.calls[i].activity;
    activity.usage = lowered.ways[lowered.calls[i].way];
    const collective::Overrides& forced = run.scenario.network.nccl;
    const collective::Choice choice = run.nccl.choose(kind, row.size, run.gpus);
    row.rules = run.nccl.rules(run.gpus);
    row.host_copies = activity.host_copies;
    if (row.host_copies) {
      const topology::Topology& topology = run.router.topology();
      std::tie(row.nics, row.idle_nics) =
          nics_of_node(topology, topology.device(run.gpus.front()).node, activity);
    }
    if (in_steps) {
      const collective::StepPlan plan = run.nccl.steps(kind, row.size, run.gpus);
      row.choice = plan.choice;
      if (plan.choice.algorithm != choice.algorithm) row.replaced = choice.algorithm;
      // A choice without a message form is replaced by another one.
      if (is_another(forced, kind, plan.choice)) refuse_another(forced, kind, choice);
      if (!discarded(kind, row)) row.time = stepwise_time(run, plan);
    } else {
      row.choice = choice;
      refuse_another(forced, kind, choice);
      if (!discarded(kind, row)) row.time = pipelined_time(run, activity, row.size, contention);
    }
    if (run.stopped()) break;  // stopped: the row's time would be incomplete
    // Calls are queued, so the host launches the next one while this one runs.
    if (row.time > Duration{}) row.time = std::max(row.time, run.launches);
    if (row.time > Duration{}) {
      row.bytes_per_second = static_cast<double>(row.size.value()) / seconds(row.time);
    }
    row.bus_bytes_per_second = row.bytes_per_second * activity.bus_factor;
    rows.push_back(row);
    if (run.progress != nullptr) run.progress->worth_printing = 1;
  }
}

std::vector<BenchRow> rows_of(const BenchRun& run, CollectiveKind kind, const BenchSizes& sizes) {
  std::vector<BenchRow> rows;
  try {
    add_rows(run, kind, sizes, rows);
  } catch (const collective::Stopped&) {
    // What there is will do.
  }
  return rows;
}

// The launches of one thread for the GPUs of its node. Throws ConfigError if no node has so many.
Duration launches_of(const Scenario& scenario, const topology::Topology& topology,
                     const std::vector<DeviceId>& gpus) {
  const int asked = scenario.network.nccl.gpus_per_thread.value_or(1);
  if (asked == 1) return {};
  std::map<std::uint32_t, int> of_node;
  for (const DeviceId gpu : gpus) ++of_node[topology.device(gpu).node];
  int most = 0;
  for (const auto& [node, count] : of_node) most = std::max(most, count);
  if (asked > most)
    throw ConfigError(fmt::format("one thread launches for {} GPUs, and a node has {}", asked, most),
                      fmt::format("network.nccl.gpus_per_thread (-g) is at most {} here", most));
  return asked * kLaunch;
}
}  // namespace

std::int64_t faults_left_out(const Scenario& scenario) {
  return std::count_if(scenario.faults.begin(), scenario.faults.end(), std::not_fn(holds_throughout));
}

namespace {
void require_partners(const topology::Topology& topology) {
  if (topology.accelerators().size() < 2)
    throw ConfigError(fmt::format("a collective is among several accelerators, and the topology has {}",
                                  topology.accelerators().empty() ? "none" : "one"),
                      "choose a larger topology, such as topsim bench all_reduce hgx-h100");
}

// NCCL swaps two rings on every second node (graph/connect.cc), so on rails that nothing joins a ring closes
// only over an even number of nodes. Whether that is what is wrong: without the last node it would.
bool odd_on_rails(const BenchRun& run, CollectiveKind kind, const BenchSizes& sizes) {
  const topology::Topology& topology = run.router.topology();
  if (topology.fabric_kind != topology::FabricKind::rail_only || topology.nodes() % 2 == 0) return false;
  std::vector<DeviceId> fewer;
  for (const DeviceId gpu : run.gpus)
    if (topology.device(gpu).node + 1 < topology.nodes()) fewer.push_back(gpu);
  try {
    collective::Activity activity;
    for (const Bytes size : {sizes.first, sizes.last}) run.nccl.lower(kind, size, fewer, activity);
  } catch (const ConfigError&) {
    return false;
  }
  return true;
}

// Says why ranks do not reach each other rather than which channel would have joined them.
std::vector<BenchRow> rows_or_why(const BenchRun& run, const topology::Catalogue& catalogue,
                                  CollectiveKind kind, const BenchSizes& sizes) {
  try {
    return rows_of(run, kind, sizes);
  } catch (const ConfigError& error) {
    const std::string& node = run.scenario.topology.node.use;
    if (const auto why = unreachable_rank(run.router, !run.scenario.faults.empty(),
                                          node.empty() ? "" : catalogue.node(node).default_link))
      throw ConfigError({*why});
    if (!odd_on_rails(run, kind, sizes)) throw;
    std::vector<Problem> problems = error.problems();
    problems.front().help =
        "NCCL's rings keep to their rails over an even number of nodes: one node fewer or more, or kind rail";
    throw ConfigError(std::move(problems));
  }
}
}  // namespace

Bench bench(const Scenario& scenario, const topology::Catalogue& catalogue, CollectiveKind kind,
            const BenchSizes& sizes, executor::Progress* progress,
            const std::shared_ptr<collective::Searches>& searches) {
  try {
    topology::Topology topology = topology::build(scenario.topology, catalogue, build_options(scenario));
    require_partners(topology);
    as_packets_choose(scenario, topology);
    executor::RunOptions changed;
    const AppliedFaults faults = apply_faults(scenario, topology, changed, holds_throughout);
    const topology::Router router(topology, scenario.run.seed, faults.dead,
                                  scenario.network.packet.queue_pairs(), faults.slow);
    collective::TimeOptions time;
    time.pair_channels = true;
    collective::NcclModel nccl(router, scenario.network.nccl, time,
                               collective::searches_without(searches, faults.dead));
    if (progress != nullptr)
      nccl.stop_at(progress->stop_all != nullptr ? *progress->stop_all : progress->stop);
    std::vector<DeviceId> gpus = topology::place_ranks(scenario.topology, topology, scenario.run.seed);
    const Duration launches = launches_of(scenario, topology, gpus);
    const BenchRun run{scenario, router, nccl, std::move(gpus), progress, std::move(changed.capacity_changes),
                       launches};
    std::vector<report::Finding> findings = unmet_settings(scenario.network.nccl, topology);
    if (nccl.found_no_channel(run.gpus))
      findings.push_back({report::Severity::warning,
                          "NCCL's search finds no channel as fast as the slowest that it tries here (18 GB/s "
                          "from Blackwell on) and counts on 0.1 GB/s: it leaves LL much too early",
                          "topology.node",
                          "--protocol ll (NCCL_PROTO) shows what small messages would take"});
    for (report::Finding& each : cable_findings(scenario, topology, catalogue))
      findings.push_back(std::move(each));
    for (report::Finding& each : fabric_software_findings(topology, catalogue))
      findings.push_back(std::move(each));
    for (report::Finding& each : packet_findings(scenario, topology)) findings.push_back(std::move(each));
    return {rows_or_why(run, catalogue, kind, sizes), std::move(findings)};
  } catch (const ConfigError& error) {
    throw located(error, scenario);
  }
}
}  // namespace topsim::scenario

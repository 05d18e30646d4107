#include "sim/metrics/critical_path.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "topology/link_name.hpp"

namespace topsim::metrics {
namespace {
using executor::Outcome;
using executor::PathLeg;
using program::Op;
using program::OpKind;

std::string describe(const PathLeg& leg, const Op* op, const program::Program& program) {
  if (op == nullptr || leg.reason == executor::Reason::host) return std::string(name_of(leg.reason));
  if (op->label < program.labels.size()) return program.labels[op->label];
  return std::string(name_of(leg.reason));
}

std::vector<PathShare> sorted(const std::map<std::string, Duration>& sums) {
  Duration total{};
  for (const auto& [what, time] : sums) total += time;
  std::vector<PathShare> shares;
  for (const auto& [what, time] : sums) {
    if (time > Duration{}) shares.push_back({what, time, seconds(time) / seconds(total)});
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const PathShare& a, const PathShare& b) { return a.time > b.time; });
  return shares;
}
}  // namespace

const Op* op_of(const PathLeg& leg, const Outcome& outcome, const program::Program& program) {
  if (leg.rank_class >= outcome.ranks.size()) return nullptr;
  const auto& ops = program.classes[outcome.ranks[leg.rank_class].program_class].ops;
  return leg.op < ops.size() ? &ops[leg.op] : nullptr;
}

std::vector<PathShare> path_by_op(const Outcome& outcome, const program::Program& program) {
  std::map<std::string, Duration> sums;
  for (const PathLeg& leg : outcome.critical_path) {
    sums[describe(leg, op_of(leg, outcome, program), program)] += leg.share;
  }
  return sorted(sums);
}

std::string as_driven(const std::string& library, bool links) {
  const char* whose = links ? "their library" : "its library";
  return fmt::format(", as {} drives {}", library.empty() ? whose : library, links ? "them" : "it");
}

// Latency of wires and switches, and the library's time to start and per step, whatever the bytes.
constexpr const char* kLatency = "latency of messages and of collectives' steps";

std::vector<PathShare> path_by_link(const Outcome& outcome, const program::Program& program,
                                    const topology::Topology& topology, const std::string& library) {
  std::map<std::string, Duration> sums;
  std::map<std::pair<LinkId, bool>, Duration> links;  // each name is looked up once: a path has many legs
  for (const PathLeg& leg : outcome.critical_path) {
    const Op* op = op_of(leg, outcome, program);
    const LinkId link = leg.limiting_link.valid() ? leg.limiting_link : leg.paced_link;
    if (link.valid()) {
      const bool paced = !leg.limiting_link.valid() && (op == nullptr || op->kind != OpKind::host_copy);
      sums[kLatency] += leg.latency;
      const bool own_kernels = op != nullptr && op->has_own_kernels();
      (paced && own_kernels ? sums["kernels of DeepEP or HybridEP"] : links[{link, paced}]) +=
          leg.share - leg.latency;
    } else if (leg.for_units) {
      sums["computation that keeps collectives' kernels waiting"] += leg.share;
    } else if (leg.reason == executor::Reason::host) {
      sums["host"] += leg.share;
    } else if (op != nullptr && op->kind == OpKind::compute) {
      sums["computation"] += leg.share - leg.slowed;
      sums["computation, slowed by communication beside it"] += leg.slowed;
    } else {
      sums[kLatency] += leg.share;
    }
  }
  for (const auto& [key, time] : links) {
    const auto& [link, paced] = key;
    sums[name_with_speed(topology, topology.link(link)) + (paced ? as_driven(library) : "")] += time;
  }
  return sorted(sums);
}
}  // namespace topsim::metrics

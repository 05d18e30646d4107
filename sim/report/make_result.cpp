#include "sim/report/make_result.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/report/findings.hpp"
#include "sim/report/spans.hpp"
#include "sim/report/version.hpp"
#include "topology/link_name.hpp"

namespace topsim::report {
namespace {
using executor::Outcome;
using topology::Topology;

template <class Id>
std::string members_text(const std::vector<Id>& members) {
  std::vector<std::uint32_t> numbers(members.size());
  std::transform(members.begin(), members.end(), numbers.begin(), [](Id id) { return id.value; });
  return to_spans(numbers);
}

std::vector<RankRow> rank_rows(const Outcome& outcome, const Topology& topology,
                               const program::Program& program) {
  std::vector<RankRow> rows;
  for (const executor::RankClass& each : outcome.ranks) {
    if (each.members.empty()) continue;
    const std::size_t rank = each.members.front().index();
    const DeviceId device = topology.accelerators()[rank];
    RankRow row;
    row.rank = static_cast<std::uint32_t>(rank);
    row.count = static_cast<std::uint32_t>(each.members.size());
    row.node = topology.device(device).node;
    row.device = topology.name(device);
    row.program = program.classes[each.program_class].name;
    row.account = metrics::mean_account(each);
    row.members = members_text(each.members);
    rows.push_back(std::move(row));
  }
  std::sort(rows.begin(), rows.end(), [](const RankRow& a, const RankRow& b) { return a.rank < b.rank; });
  return rows;
}

std::vector<LinkRow> link_rows(const Outcome& outcome, const Topology& topology) {
  const double window = seconds(outcome.end - outcome.measured_begin);
  std::vector<LinkRow> rows;
  rows.reserve(outcome.links.size());
  for (const executor::LinkClass& each : outcome.links) {
    const Bytes carried(std::llround(each.bytes));
    if (each.members.empty() || carried <= Bytes{}) continue;
    const LinkId id = each.members.front();
    const topology::Link& link = topology.link(id);
    LinkRow row;
    row.id = topology.name(id);
    row.count = static_cast<std::uint32_t>(each.members.size());
    row.kind = link.kind;
    row.type = name_with_speed(topology, link);
    row.from = topology.name(link.from);
    row.to = topology.name(link.to);
    row.capacity = link.capacity.value();
    row.bytes = carried;
    row.utilization = window > 0 ? each.bytes / (row.capacity * window) : 0;
    row.peak_utilization = each.peak_rate / row.capacity;
    row.busy = each.busy;
    row.members = members_text(each.members);
    rows.push_back(std::move(row));
  }
  std::vector<LinkRow*> order;  // rows are large
  for (LinkRow& row : rows) order.push_back(&row);
  std::stable_sort(order.begin(), order.end(), [](const LinkRow* a, const LinkRow* b) {
    return a->utilization != b->utilization ? a->utilization > b->utilization : a->id < b->id;
  });
  std::vector<LinkRow> sorted;
  sorted.reserve(rows.size());
  for (LinkRow* row : order) sorted.push_back(std::move(*row));
  return sorted;
}

std::vector<CollectiveRow> collective_rows(const Outcome& outcome, std::size_t ranks) {
  // A trace may name groups without a purpose; a group smaller than the world is shown under this name.
  constexpr const char* kNamed = "process_group";
  std::vector<CollectiveRow> rows;
  for (const executor::CollectiveRecord& each : outcome.collectives) {
    if (each.calls == 0) continue;
    CollectiveRow row;
    const bool part = each.dimension == program::Dimension::world && each.group_size < ranks;
    row.group = part ? kNamed : name_of(each.dimension);
    row.kind = name_of(each.kind);
    row.group_size = each.group_size;
    row.bytes = each.bytes;
    row.calls = each.calls;
    row.each = each.each;
    row.bus_bandwidth = each.seconds > 0
                            ? static_cast<double>(each.bytes.value()) * static_cast<double>(each.calls) /
                                  each.seconds * each.bus_factor
                            : 0;
    row.algorithm = name_of(each.choice.algorithm);
    row.protocol = name_of(each.choice.protocol);
    row.channels = each.choice.channels;
    rows.push_back(std::move(row));
  }
  return rows;
}
}  // namespace

Result make_result(const ScenarioFacts& facts, const Topology& topology, const program::Program& program,
                   Memory memory, const Outcome& outcome) {
  Result result;
  result.name = facts.name;
  result.headline = facts.headline;
  result.complete = outcome.complete;
  result.seed = facts.seed;
  result.version = version();
  result.commit = commit();
  result.step = metrics::mean_step(outcome.step_times);
  result.step_times = outcome.step_times;
  result.throughput = metrics::throughput(program.facts, result.step, program.ranks);
  result.memory = std::move(memory);
  result.accelerators = program.ranks;
  result.called = facts.called, result.library = facts.library;
  result.account = metrics::mean_account(outcome.ranks);
  result.ranks = rank_rows(outcome, topology, program);
  result.links = link_rows(outcome, topology);
  result.collectives = collective_rows(outcome, program.ranks);
  result.critical_path = metrics::path_by_op(outcome, program);
  result.critical_path_links = metrics::path_by_link(outcome, program, topology, facts.library);
  result.network_model = facts.network_model;
  result.collective_form = executor::name_of(outcome.form);
  result.trace = facts.trace;
  result.flows = outcome.flows;
  result.packets = outcome.packets;
  result.scenario = facts.scenario;
  result.left_open = facts.left_open;
  result.findings = findings({facts, topology, program, outcome, result});
  return result;
}

RunRecord make_run_record(const Outcome& outcome, double wall_seconds) {
  RunRecord record;
  record.wall_seconds = wall_seconds;
  record.peak_rss_bytes = peak_resident_bytes();
  record.events = outcome.events;
  record.folded = outcome.folded;
  record.rank_classes = outcome.ranks.size();
  record.link_classes = outcome.links.size();
  record.group_classes = outcome.group_classes;
  return record;
}
}  // namespace topsim::report

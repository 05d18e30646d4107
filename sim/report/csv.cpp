#include "sim/report/csv.hpp"

#include <fmt/core.h>

#include <iterator>
#include <string_view>

#include "sim/report/si.hpp"

namespace topsim::report {
namespace {

template <class... Values>
void row(std::string& out, fmt::format_string<Values...> format, Values&&... values) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Values>(values)...);
  out += '\n';
}
}  // namespace

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string summary_csv(const Result& result) {
  std::string out = "scenario,metric,value\n";
  const std::string name = csv_field(result.name);
  // If a run was stopped before a measured step ended, the figures of the step are empty.
  const bool stepless = result.step <= Duration{};
  const auto fact = [&](std::string_view key, double value) { row(out, "{},{},{}", name, key, value); };
  const auto metric = [&](std::string_view key, double value) {
    stepless ? row(out, "{},{},", name, key) : fact(key, value);
  };
  fact("complete", result.complete ? 1 : 0);
  metric("step.seconds", si(result.step));
  metric("throughput.samples_per_second", result.throughput.samples_per_second);
  metric("throughput.tokens_per_second", result.throughput.tokens_per_second);
  metric("throughput.tokens_per_second_per_accelerator", result.throughput.tokens_per_second_per_accelerator);
  metric("throughput.model_tflops_per_accelerator", result.throughput.model_tflops_per_accelerator);
  metric("throughput.mfu", result.throughput.mfu);
  metric("throughput.mfu_full_attention", result.throughput.mfu_full_attention);
  fact("memory.fits", result.memory.fits ? 1 : 0);
  fact("memory.per_accelerator_bytes", static_cast<double>(result.memory.per_accelerator.value()));
  fact("memory.capacity_bytes", static_cast<double>(result.memory.capacity.value()));
  fact("accelerators.count", result.accelerators);
  metric("accelerators.idle_fraction", stepless ? 0 : si(result.account.idle_total()) / si(result.step));
  metric("accelerators.busy_seconds", si(result.account.busy));
  metric("accelerators.slowed_seconds", si(result.account.slowed));
  metric("accelerators.communication_seconds", si(result.account.communication));
  metric("accelerators.hidden_communication_seconds", si(result.account.hidden_communication));
  for (std::size_t i = 0; i < result.account.idle.size(); ++i) {
    metric(fmt::format("accelerators.idle_seconds.{}", name_of(static_cast<executor::Reason>(i))),
           si(result.account.idle[i]));
  }
  return out;
}

std::string links_csv(const Result& result) {
  std::string out =
      "scenario,id,count,kind,type,from,to,capacity,bytes,utilization,peak_utilization,busy_seconds\n";
  for (const LinkRow& each : result.links) {
    row(out, "{},{},{},{},{},{},{},{},{},{},{},{}", csv_field(result.name), csv_field(each.id), each.count,
        name_of(each.kind), csv_field(each.type), csv_field(each.from), csv_field(each.to), each.capacity,
        each.bytes.value(), each.utilization, each.peak_utilization, si(each.busy));
  }
  return out;
}

std::string ranks_csv(const Result& result) {
  std::string out = "scenario,rank,count,node,device,program,busy_seconds";
  for (std::size_t i = 0; i < executor::kReasons; ++i) {
    out += fmt::format(",idle_{}_seconds", name_of(static_cast<executor::Reason>(i)));
  }
  out += ",slowed_seconds,communication_seconds,hidden_communication_seconds\n";
  for (const RankRow& each : result.ranks) {
    std::string idle;
    for (Duration time : each.account.idle) idle += fmt::format(",{}", si(time));
    row(out, "{},{},{},{},{},{},{}{},{},{},{}", csv_field(result.name), each.rank, each.count, each.node,
        csv_field(each.device), csv_field(each.program), si(each.account.busy), idle, si(each.account.slowed),
        si(each.account.communication), si(each.account.hidden_communication));
  }
  return out;
}

std::string collectives_csv(const Result& result) {
  std::string out =
      "scenario,group,kind,group_size,bytes,calls,seconds_each,bus_bandwidth,algorithm,protocol,channels\n";
  for (const CollectiveRow& each : result.collectives) {
    row(out, "{},{},{},{},{},{},{},{},{},{},{}", csv_field(result.name), each.group, each.kind,
        each.group_size, each.bytes.value(), each.calls, si(each.each), each.bus_bandwidth, each.algorithm,
        each.protocol, each.channels);
  }
  return out;
}

std::string timeline_csv(const std::string& scenario, const Timeline& timeline) {
  std::string out = "scenario,rank,count,stream,name,phase,step,begin_seconds,ready_seconds,end_seconds\n";
  for (const Slice& each : timeline.slices) {
    const Lane& lane = timeline.lanes[each.lane];
    row(out, "{},{},{},{},{},{},{},{},{},{}", csv_field(scenario), lane.rank, lane.count,
        csv_field(lane.streams[each.stream]), csv_field(timeline.names[each.name]), each.phase, each.step,
        si(each.begin), si(each.ready), si(each.end));
  }
  return out;
}
}  // namespace topsim::report

#include "sim/report/json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/report/member.hpp"
#include "sim/report/row_text.hpp"
#include "sim/report/si.hpp"

namespace topsim::report {
namespace {
using nlohmann::json;

json idle_json(const metrics::Account& account) {
  json idle = json::object();
  for (std::size_t i = 0; i < account.idle.size(); ++i) {
    idle[std::string(name_of(static_cast<executor::Reason>(i)))] = si(account.idle[i]);
  }
  return idle;
}

json step_json(const Result& result) {
  json each = json::array();
  for (Duration time : result.step_times) each.push_back(si(time));
  return {{"seconds", si(result.step)}, {"per_step", std::move(each)}};
}

json throughput_json(const metrics::Throughput& rates) {
  return {{"samples_per_second", rates.samples_per_second},
          {"tokens_per_second", rates.tokens_per_second},
          {"tokens_per_second_per_accelerator", rates.tokens_per_second_per_accelerator},
          {"model_tflops_per_accelerator", rates.model_tflops_per_accelerator},
          {"mfu", rates.mfu},
          {"mfu_full_attention", rates.mfu_full_attention}};
}

json memory_json(const Memory& memory) {
  json parts = json::object();
  for (const MemoryPart& part : memory.parts) parts[part.name] = part.bytes.value();
  json result = {{"fits", memory.fits},
                 {"per_accelerator_bytes", memory.per_accelerator.value()},
                 {"capacity_bytes", memory.capacity.value()}};
  if (memory.usable > Bytes{}) result["usable_bytes"] = memory.usable.value();
  result["parts"] = std::move(parts);
  return result;
}

json range_json(const Interval& range) {
  return {{"low", range.low}, {"usual", range.usual}, {"high", range.high}};
}

json goodput_json(const Goodput& goodput) {
  json sources = json::array();
  for (const FailureSource& each : goodput.sources)
    sources.push_back({{"id", each.id},
                       {"count", each.count},
                       {"counted", counted_of(each.id)},
                       {"per_year", range_json(each.per_year)}});
  return {{"days", goodput.days},
          {"goodput", range_json(goodput.share)},
          {"interruptions_per_day", range_json(goodput.interruptions_per_day)},
          {"checkpoint_interval_seconds", goodput.checkpoint_interval},
          {"checkpoint_interval_is_optimum", goodput.optimum},
          {"known_losses", goodput.known_losses},
          {"sources", std::move(sources)}};
}

json accelerators_json(const Result& result) {
  const double step = si(result.step);
  return {{"count", result.accelerators},
          {"called", result.called},
          {"library", result.library},
          {"busy_seconds", si(result.account.busy)},
          {"slowed_seconds", si(result.account.slowed)},
          {"communication_seconds", si(result.account.communication)},
          {"hidden_communication_seconds", si(result.account.hidden_communication)},
          {"idle_fraction", step > 0 ? si(result.account.idle_total()) / step : 0.0},
          {"idle_seconds", idle_json(result.account)}};
}

// The reasons sorted by name.
std::vector<executor::Reason> sorted_reasons() {
  std::vector<executor::Reason> all;
  for (std::size_t i = 0; i < metrics::Account{}.idle.size(); ++i)
    all.push_back(static_cast<executor::Reason>(i));
  std::sort(all.begin(), all.end(),
            [](executor::Reason a, executor::Reason b) { return name_of(a) < name_of(b); });
  return all;
}

void add(const RankRow& row, RowText& out) {
  static const std::vector<executor::Reason> reasons = sorted_reasons();
  out.add("busy_seconds", si(row.account.busy));
  out.add("communication_seconds", si(row.account.communication));
  out.add("count", row.count);
  out.add("device", row.device);
  out.add("hidden_communication_seconds", si(row.account.hidden_communication));
  out.begin_object("idle_seconds");
  for (const executor::Reason reason : reasons)
    out.add(name_of(reason), si(row.account.idle[static_cast<std::size_t>(reason)]));
  out.end_object();
  out.add("members", row.members);
  out.add("node", row.node);
  out.add("program", row.program);
  out.add("rank", row.rank);
  out.add("slowed_seconds", si(row.account.slowed));
}

void add(const LinkRow& row, RowText& out) {
  out.add("busy_seconds", si(row.busy));
  out.add("bytes", row.bytes.value());
  out.add("capacity", row.capacity);
  out.add("count", row.count);
  out.add("from", row.from);
  out.add("id", row.id);
  out.add("kind", name_of(row.kind));
  out.add("members", row.members);
  out.add("peak_utilization", row.peak_utilization);
  out.add("to", row.to);
  out.add("type", row.type);
  out.add("utilization", row.utilization);
}

template <class Row>
std::string list_of(const std::vector<Row>& rows) {
  RowText text;
  for (const Row& row : rows) {
    text.begin_row();
    add(row, text);
    text.end_row();
  }
  return std::move(text).list();
}

template <class Row>
std::string list_of(const std::vector<std::pair<Row, std::uint32_t>>& rows) {
  RowText text;
  for (const auto& [row, alike] : rows) {
    text.begin_row();
    text.add("alike", alike);
    add(row, text);
    text.end_row();
  }
  return std::move(text).list();
}

// Inserts the two lists into the document. A line that begins like this is neither in a string nor nested
// deeper.
std::string with_lists(json document, const std::string& ranks, const std::string& links) {
  document["ranks"] = document["links"] = nullptr;
  std::string text = document.dump(1) + '\n';
  for (const auto& [name, list] :
       {std::pair("\n \"ranks\": ", &ranks), std::pair("\n \"links\": ", &links)}) {
    const std::string_view nothing = "null";
    text.replace(text.find(name + std::string(nothing)) + std::string_view(name).size(), nothing.size(),
                 *list);
  }
  return text;
}

json collectives_json(const std::vector<CollectiveRow>& rows) {
  json collectives = json::array();
  for (const CollectiveRow& row : rows) {
    collectives.push_back({{"group", row.group},
                           {"kind", row.kind},
                           {"group_size", row.group_size},
                           {"bytes", row.bytes.value()},
                           {"calls", row.calls},
                           {"seconds_each", si(row.each)},
                           {"bus_bandwidth", row.bus_bandwidth},
                           {"algorithm", row.algorithm},
                           {"protocol", row.protocol},
                           {"channels", row.channels}});
  }
  return collectives;
}

json path_json(const std::vector<metrics::PathShare>& shares) {
  json path = json::array();
  for (const metrics::PathShare& each : shares) {
    path.push_back({{"what", each.what}, {"seconds", si(each.time)}, {"share", each.share}});
  }
  return path;
}

json findings_json(const std::vector<Finding>& findings) {
  json list = json::array();
  for (const Finding& each : findings) {
    list.push_back({{"severity", name_of(each.severity)},
                    {"message", each.message},
                    {"path", each.path},
                    {"remedy", each.remedy},
                    {"id", each.id},
                    {"assumed", each.assumed}});
  }
  return list;
}
}  // namespace

std::string to_json(const Result& result) {
  json document = {
      {"format", "topsim.result/1"},
      {"name", result.name},
      {"headline", result.headline},
      {"complete", result.complete},
      {"seed", result.seed},
      {"topsim", {{"version", result.version}, {"commit", result.commit}}},
      {"step", step_json(result)},
      {"throughput", throughput_json(result.throughput)},
      {"memory", memory_json(result.memory)},
      {"accelerators", accelerators_json(result)},
      {"collectives", collectives_json(result.collectives)},
      {"critical_path", path_json(result.critical_path)},
      {"critical_path_links", path_json(result.critical_path_links)},
      {"findings", findings_json(result.findings)},
      {"network",
       {{"model", result.network_model},
        {"collectives", result.collective_form},
        {"flows", result.flows},
        {"packets", result.packets}}},
      {"left_open", json::parse(result.left_open)},
      {"scenario", result.scenario.empty() ? json::object() : json::parse(result.scenario)},
  };
  if (result.goodput) document["reliability"] = goodput_json(*result.goodput);
  return with_lists(std::move(document), list_of(result.ranks), list_of(result.links));
}

std::string to_json(const Members& members) {
  json document = json::object();
  document["format"] = "topsim.members/1";
  return with_lists(std::move(document), list_of(members.ranks), list_of(members.links));
}

std::string to_json(const RunRecord& record) {
  const json document = {
      {"wall_seconds", record.wall_seconds},
      {"peak_rss_bytes", record.peak_rss_bytes},
      {"events", record.events},
      {"folded", record.folded},
      {"classes",
       {{"ranks", record.rank_classes}, {"links", record.link_classes}, {"groups", record.group_classes}}}};
  return document.dump(1) + '\n';
}
}  // namespace topsim::report

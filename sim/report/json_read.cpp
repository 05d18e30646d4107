#include <fmt/core.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/base/error.hpp"
#include "sim/report/json.hpp"

namespace topsim::report {
namespace {
using nlohmann::json;

Duration time_of(const json& value) {
  return from_seconds(value.get<double>());
}

metrics::Account account_of(const json& value) {
  metrics::Account account;
  account.busy = time_of(value.at("busy_seconds"));
  account.slowed = from_seconds(value.value("slowed_seconds", 0.0));
  account.communication = from_seconds(value.value("communication_seconds", 0.0));
  account.hidden_communication = from_seconds(value.value("hidden_communication_seconds", 0.0));
  for (std::size_t i = 0; i < account.idle.size(); ++i) {
    const std::string reason(name_of(static_cast<executor::Reason>(i)));
    if (value.at("idle_seconds").contains(reason))
      account.idle[i] = time_of(value.at("idle_seconds").at(reason));
  }
  return account;
}

metrics::Throughput throughput_of(const json& value) {
  return {value.at("samples_per_second"),
          value.at("tokens_per_second"),
          value.at("tokens_per_second_per_accelerator"),
          value.at("model_tflops_per_accelerator"),
          value.at("mfu"),
          value.at("mfu_full_attention")};
}

Memory memory_of(const json& value) {
  Memory memory{value.at("fits"),
                Bytes(value.at("per_accelerator_bytes").get<std::int64_t>()),
                Bytes(value.at("capacity_bytes").get<std::int64_t>()),
                {}};
  for (const auto& [name, bytes] : value.at("parts").items()) {
    memory.parts.push_back({name, Bytes(bytes.get<std::int64_t>())});
  }
  memory.usable = Bytes(value.value("usable_bytes", std::int64_t{0}));
  return memory;
}

RankRow rank_of(const json& value) {
  return {value.at("rank"),    value.at("count"), value.at("node"),          value.at("device"),
          value.at("program"), account_of(value), value.value("members", "")};
}

LinkRow link_of(const json& value) {
  LinkRow row;
  row.id = value.at("id");
  row.count = value.at("count");
  row.kind = topology::link_kind(value.at("kind").get<std::string>()).value_or(topology::LinkKind::other);
  row.type = value.at("type");
  row.from = value.at("from");
  row.to = value.at("to");
  row.capacity = value.at("capacity");
  row.bytes = Bytes(value.at("bytes").get<std::int64_t>());
  row.utilization = value.at("utilization");
  row.peak_utilization = value.at("peak_utilization");
  row.busy = time_of(value.at("busy_seconds"));
  row.members = value.value("members", "");
  return row;
}

CollectiveRow collective_of(const json& value) {
  CollectiveRow row;
  row.group = value.at("group");
  row.kind = value.at("kind");
  row.group_size = value.at("group_size");
  row.bytes = Bytes(value.at("bytes").get<std::int64_t>());
  row.calls = value.at("calls");
  row.each = time_of(value.at("seconds_each"));
  row.bus_bandwidth = value.at("bus_bandwidth");
  row.algorithm = value.at("algorithm");
  row.protocol = value.at("protocol");
  row.channels = value.at("channels");
  return row;
}

metrics::PathShare path_of(const json& value) {
  return {value.at("what"), time_of(value.at("seconds")), value.at("share")};
}

Finding finding_of(const json& value) {
  Finding finding{value.at("severity") == "warning" ? Severity::warning : Severity::note, value.at("message"),
                  value.at("path"), value.at("remedy")};
  finding.id = value.value("id", std::string());
  finding.assumed = value.value("assumed", std::vector<std::string>());
  return finding;
}

template <class Row>
std::vector<Row> rows_of(const json& list, Row (*read)(const json&)) {
  std::vector<Row> rows;
  for (const json& each : list) rows.push_back(read(each));
  return rows;
}

Interval range_of(const json& value) {
  return {value.at("low"), value.at("usual"), value.at("high")};
}

Goodput goodput_of(const json& value) {
  Goodput goodput;
  goodput.days = value.at("days");
  goodput.share = range_of(value.at("goodput"));
  goodput.interruptions_per_day = range_of(value.at("interruptions_per_day"));
  goodput.checkpoint_interval = value.at("checkpoint_interval_seconds");
  goodput.optimum = value.at("checkpoint_interval_is_optimum");
  goodput.known_losses = value.at("known_losses");
  for (const json& each : value.at("sources"))
    goodput.sources.push_back({each.at("id"), each.at("count"), range_of(each.at("per_year"))});
  return goodput;
}

Result read(const json& document) {
  Result result;
  result.name = document.at("name");
  result.headline = document.at("headline");
  result.complete = document.at("complete");
  result.seed = document.at("seed");
  result.trace = document.at("scenario").contains(json::json_pointer("/workload/trace")) &&
                 !document.at("scenario").at("workload").at("trace").is_null();
  result.version = document.at("topsim").at("version");
  result.commit = document.at("topsim").at("commit");
  result.step = time_of(document.at("step").at("seconds"));
  result.step_times = rows_of(document.at("step").at("per_step"), time_of);
  result.throughput = throughput_of(document.at("throughput"));
  result.memory = memory_of(document.at("memory"));
  result.accelerators = document.at("accelerators").at("count");
  result.called = document.at("accelerators").value("called", result.called);
  result.library = document.at("accelerators").value("library", "");
  result.account = account_of(document.at("accelerators"));
  result.ranks = rows_of(document.at("ranks"), rank_of);
  result.links = rows_of(document.at("links"), link_of);
  result.collectives = rows_of(document.at("collectives"), collective_of);
  result.critical_path = rows_of(document.at("critical_path"), path_of);
  result.critical_path_links = rows_of(document.at("critical_path_links"), path_of);
  result.findings = rows_of(document.at("findings"), finding_of);
  result.network_model = document.at("network").at("model");
  result.collective_form = document.at("network").value("collectives", "");
  result.flows = document.at("network").at("flows");
  result.packets = document.at("network").at("packets");
  result.scenario = document.at("scenario").dump();
  if (const auto at = document.find("left_open"); at != document.end()) result.left_open = at->dump();
  if (const auto at = document.find("reliability"); at != document.end()) result.goodput = goodput_of(*at);
  return result;
}

// The error's message without the library's codes: "key 'name' not found", "type must be number, but is
// string".
std::string words_of(const json::exception& error) {
  const std::string text = error.what();
  const std::size_t code = text.find("] ");
  return code == std::string::npos ? text : text.substr(code + 2);
}

[[noreturn]] void refuse(const std::string& file, std::string message, std::string help) {
  throw ConfigError({Problem{Place{file, 0, 0, 1}, {}, std::move(message), {}, std::move(help), {}}});
}
}  // namespace

Result result_from_json(std::string_view text, const std::string& file) {
  constexpr std::string_view kMake = "make one with: topsim run SCENARIO.json --format json > result.json";
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) refuse(file, file + " is not a JSON object", std::string(kMake));
  const auto format = document.find("format");
  if (format == document.end() || *format != "topsim.result/1") {
    refuse(file, file + " is not a result of topsim (format \"topsim.result/1\")", std::string(kMake));
  }
  try {
    return read(document);
  } catch (const json::exception& error) {
    refuse(file, fmt::format("{} is a damaged result: {}", file, words_of(error)), std::string(kMake));
  }
}

void require_step(const Result& result, const std::string& file) {
  if (result.step > Duration{}) return;
  refuse(file,
         result.complete
             ? fmt::format("{} has no step to compare or explain: step.seconds is {}", file,
                           seconds(result.step))
             : fmt::format("{} has no step to compare or explain yet: its run was stopped before one ended",
                           file),
         "run it again, to its end: topsim run SCENARIO --out DIR");
}

Result read_result(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) refuse(file, "cannot read " + file, "is the path right?");
  std::ostringstream text;
  text << stream.rdbuf();
  return result_from_json(text.str(), file);
}
}  // namespace topsim::report

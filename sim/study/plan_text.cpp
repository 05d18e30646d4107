#include "sim/study/plan_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/report/findings.hpp"
#include "sim/report/reason_text.hpp"
#include "sim/report/si.hpp"
#include "sim/report/text.hpp"
#include "sim/scenario/read/read.hpp"

namespace topsim::study {
namespace {
using report::pad_left;
using report::si;

std::string schedule_words(const PlanChoice& choice) {
  if (choice.pp == 1) return "-";
  std::string words(name_of(choice.schedule));
  if (traits(choice.schedule).second_chunk == workloads::SecondChunk::next)
    words += fmt::format(" x{}", choice.virtual_stages);
  return words;
}

bool nearly_full(const PlanRow& row) {
  const report::Memory& memory = row.result.memory;
  return memory.capacity > Bytes{} && memory.per_accelerator / memory.capacity >= report::kNearlyFull;
}

std::vector<std::string> cells_of(const PlanRow& row, std::size_t rank) {
  const PlanChoice& c = row.choice;
  const report::Result& r = row.result;
  const double idle = r.step > Duration{} ? si(r.account.idle_total()) / si(r.step) : 0;
  return {rank > 0 ? std::to_string(rank) : "own",
          std::to_string(c.tp),
          std::to_string(c.pp),
          std::to_string(row.dp),
          std::to_string(c.cp),
          std::to_string(c.ep),
          std::to_string(c.micro_batch),
          recompute_words(c),
          schedule_words(c),
          std::to_string(c.zero),
          report::duration_text(r.step),
          report::percent_text(r.throughput.mfu),
          report::percent_text(idle),
          report::memory_text(r.memory.per_accelerator) + (nearly_full(row) ? " !" : "")};
}

bool needs_zero_bubble_runtime(const PlanChoice& choice) {
  return choice.pp > 1 && traits(choice.schedule).splits_weights;
}

nlohmann::json json_of(const PlanRow& row) {
  const PlanChoice& c = row.choice;
  return {{"plan",
           {{"tp", c.tp},
            {"pp", c.pp},
            {"dp", row.dp},
            {"cp", c.cp},
            {"ep", c.ep},
            {"virtual_stages", c.virtual_stages},
            {"micro_batch", c.micro_batch},
            {"recompute", recompute_words(c)},
            {"schedule", name_of(c.schedule)},
            {"zero", c.zero}}},
          {"step_seconds", si(row.result.step)},
          {"first_step_seconds", si(row.first_step)},
          {"bound_seconds", si(row.bound)},
          {"mfu", row.result.throughput.mfu},
          {"tokens_per_second", row.result.throughput.tokens_per_second},
          {"idle_fraction",
           row.result.step > Duration{} ? si(row.result.account.idle_total()) / si(row.result.step) : 0.0},
          {"memory_bytes", row.result.memory.per_accelerator.value()}};
}
}  // namespace

std::string plan_words(const PlanRow& row) {
  const PlanChoice& c = row.choice;
  std::string words = fmt::format("tp {} pp {} dp {}", c.tp, c.pp, row.dp);
  if (c.cp > 1) words += fmt::format(" cp {}", c.cp);
  if (c.ep > 1) words += fmt::format(" ep {}", c.ep);
  words += fmt::format(", micro-batch {}, recompute {}", c.micro_batch, recompute_words(c));
  if (c.pp > 1) words += ", " + schedule_words(c);
  return words;
}

std::string why_slower(const PlanRow& row, const PlanRow& best) {
  const metrics::Account& mine = row.result.account;
  const metrics::Account& theirs = best.result.account;
  std::vector<std::pair<Duration, std::string>> parts{
      {mine.busy - theirs.busy, recompute_words(row.choice) != recompute_words(best.choice)
                                    ? "computing, recompute " + recompute_words(row.choice)
                                    : "computing"}};
  for (std::size_t i = 0; i < executor::kReasons; ++i) {
    parts.emplace_back(mine.idle[i] - theirs.idle[i], report::reason_text(static_cast<executor::Reason>(i)));
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  const Duration lost = row.result.step - best.result.step;
  std::string text;
  // Names parts until they add up to the difference; parts below a tenth of it are not named.
  Duration named{};
  for (const auto& [time, reason] : parts) {
    if (time <= Duration{} || time * 10 < lost || named >= lost) break;
    text += fmt::format("{}+{} {}", text.empty() ? "" : ", ", report::duration_text(time), reason);
    named += time;
  }
  // Gains elsewhere are named if they cancel most of the losses named.
  for (auto gain = parts.rbegin(); gain != parts.rend() && named > 2 * lost; ++gain) {
    if (gain->first >= Duration{} || -gain->first * 10 < named) break;
    text += fmt::format(", -{} {}", report::duration_text(-gain->first), gain->second);
    named += gain->first;
  }
  return text;
}

std::string plan_table(const PlanReport& report, std::size_t columns) {
  const std::string heading = fmt::format(
      "{}: {} plan{} for {}: {} do not divide or are not supported, {} do not fit the memory, "
      "{} cannot be among the best by their bound, {} simulated{}",
      report.scenario, report::exact_count_text(report.choices), report.choices == 1 ? "" : "s",
      report::plural(static_cast<double>(report.accelerators), "accelerator"),
      report::exact_count_text(report.impossible), report::exact_count_text(report.too_large),
      report::exact_count_text(report.cut), report::exact_count_text(report.simulated),
      report.complete ? "" : " (interrupted)");
  std::string text;
  for (const std::string& line : report::wrap(heading, columns, 2)) text += line + '\n';
  if (!report.network.empty() && report.network != network::name_of(kSearchModel))
    text += fmt::format("judged with the {} model; the scenario says {}\n", network::name_of(kSearchModel),
                        report.network);
  text += '\n';
  if (report.rows.empty()) return text;
  std::vector<std::vector<std::string>> lines{{"", "tp", "pp", "dp", "cp", "ep", "mb", "recompute",
                                               "schedule", "zero", "step", "MFU", "idle", "memory"}};
  for (std::size_t i = 0; i < report.rows.size(); ++i) lines.push_back(cells_of(report.rows[i], i + 1));
  if (report.own) lines.push_back(cells_of(*report.own, 0));
  // Dimensions that no plan uses are left out.
  std::vector<bool> shown(lines.front().size(), true);
  for (const std::size_t column : {std::size_t{4}, std::size_t{5}}) {
    shown[column] =
        std::any_of(lines.begin() + 1, lines.end(), [&](const auto& line) { return line[column] != "1"; });
  }
  std::vector<std::size_t> widths(lines.front().size());
  for (const auto& line : lines) {
    for (std::size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], report::width(line[c]));
  }
  std::size_t taken = 0;
  for (std::size_t c = 0; c < widths.size(); ++c) taken += shown[c] ? widths[c] + 2 : 0;
  const char* const gap = taken - 2 > columns ? " " : "  ";
  for (const auto& line : lines) {
    std::string row;
    for (std::size_t c = 0; c < line.size(); ++c) {
      if (shown[c]) row += (c == 0 ? "" : gap) + pad_left(line[c], widths[c]);
    }
    text += row + '\n';
  }
  text += "\nwhy the others are slower than 1\n";
  for (std::size_t i = 1; i < report.rows.size() + (report.own ? 1 : 0); ++i) {
    const bool own = i == report.rows.size();
    const PlanRow& row = own ? *report.own : report.rows[i];
    if (row.result.step <= report.rows.front().result.step) continue;
    const double more = si(row.result.step) / si(report.rows.front().result.step) - 1;
    const std::string line =
        fmt::format("  {:>3}  {}: {}", own ? "own" : std::to_string(i + 1), report::signed_percent_text(more),
                    why_slower(row, report.rows.front()));
    for (const std::string& part : report::wrap(line, columns, 7)) text += part + '\n';
  }
  const auto any = [&](bool (*holds)(const PlanRow&)) {
    return std::any_of(report.rows.begin(), report.rows.end(), holds);
  };
  std::vector<std::string> notes;
  if (any(nearly_full))
    notes.push_back(
        fmt::format("! {:.0f} % of the memory or more: contexts, communication buffers and "
                    "fragmentation commonly take the rest",
                    100 * report::kNearlyFull));
  if (any([](const PlanRow& row) { return row.choice.ep > 1; }))
    notes.emplace_back(
        "note: how tokens reach their experts (token_dispatcher, precision.dispatch) stays as the scenario "
        "has it, and schedule dualpipe is not searched");
  if (needs_zero_bubble_runtime(report.rows.front().choice))
    notes.emplace_back(
        "note: zero-bubble schedules need a runtime that has them; --schedules 1f1b,interleaved searches "
        "without");
  for (const std::string& note : notes)
    for (const std::string& part : report::wrap(note, columns, 2)) text += part + '\n';
  return text;
}

std::string plan_json(const PlanReport& report) {
  using nlohmann::json;
  json document = {{"format", "topsim.plan/1"},
                   {"scenario", report.scenario},
                   {"accelerators", report.accelerators},
                   {"complete", report.complete},
                   {"space",
                    {{"plans", report.choices},
                     {"impossible", report.impossible},
                     {"too_large", report.too_large},
                     {"cut", report.cut},
                     {"simulated", report.simulated}}},
                   {"rows", json::array()},
                   {"own", nullptr}};
  if (!report.assumed_release.empty()) document["assumed_release"] = report.assumed_release;
  for (const PlanRow& row : report.rows) {
    json each = json_of(row);
    each["why"] = why_slower(row, report.rows.front());
    document["rows"].push_back(std::move(each));
  }
  if (report.own && !report.rows.empty()) {
    document["own"] = json_of(*report.own);
    document["own"].erase("first_step_seconds");
    document["own"]["why"] = why_slower(*report.own, report.rows.front());
  }
  return document.dump(1) + '\n';
}

std::string best_plan_json(const PlanReport& report) {
  scenario::Scenario best = report.best;
  best.description = fmt::format("{} on {}: the fastest plan that topsim plan found, {}.", report.scenario,
                                 report::plural(static_cast<double>(report.accelerators), "accelerator"),
                                 plan_words(report.rows.front()));
  return scenario::standalone_json(best);
}
}  // namespace topsim::study

#include "sim/scenario/bench/bench_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/lower_case.hpp"
#include "sim/base/suggest.hpp"

namespace topsim::scenario {
namespace {
using collective::Algorithm;
using collective::CollectiveKind;
using collective::Protocol;

constexpr BenchCollective kCollectives[] = {{CollectiveKind::all_reduce, "all_reduce", "sum", -1},
                                            {CollectiveKind::all_gather, "all_gather", "none", -1},
                                            {CollectiveKind::reduce_scatter, "reduce_scatter", "sum", -1},
                                            {CollectiveKind::broadcast, "broadcast", "none", 0},
                                            {CollectiveKind::reduce, "reduce", "sum", 0},
                                            {CollectiveKind::all_to_all, "alltoall", "none", -1},
                                            {CollectiveKind::send_recv, "sendrecv", "sum", -1}};

constexpr Algorithm kLastOfNccl = Algorithm::pat;  // those after it are not NCCL's to choose

ConfigError unknown(const std::string& what, const std::string& text, const std::vector<std::string>& known) {
  const auto close = closest(text, known);
  return ConfigError("no " + what + " \"" + text + '"',
                     (close ? "did you mean " + *close + "? " : std::string()) + what + "s: " + join(known));
}

// The value whose NCCL name is `text`, ignoring case.
template <class Enum>
Enum value_named(const std::string& what, const std::string& text, Enum last) {
  std::vector<std::string> known;
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    const auto value = static_cast<Enum>(i);
    std::string word = lower_case(text);  // nvls-tree, as in network.nccl, or NVLSTree
    std::erase(word, '-');
    if (lower_case(collective::name_of(value)) == word) return value;
    known.emplace_back(collective::name_of(value));
  }
  throw unknown(what, text, known);
}
template <class Enum>
std::vector<std::string> words_up_to(Enum last) {
  std::vector<std::string> words;
  for (int i = 0; i <= static_cast<int>(last); ++i)
    words.push_back(lower_case(collective::name_of(static_cast<Enum>(i))));
  return words;
}

// A figure in seven columns, as in nccl-tests: the larger, the fewer decimals.
std::string time_text(double us) {
  return fmt::format("{:.{}f}", us, us >= 1e4 ? 0 : us >= 1e2 ? 1 : 2);
}
// What the rows mean: above the table whose rules chose and what was sent instead of a choice that has no
// message form, below it what limits.
struct Remarks {
  std::vector<std::string> above, below;
};
Remarks remarks_on(const std::vector<BenchRow>& rows) {
  Remarks all;
  if (rows.empty()) return all;
  const std::string_view rules = rows.front().rules;
  const auto replaced =
      std::find_if(rows.begin(), rows.end(), [](const BenchRow& row) { return row.replaced.has_value(); });
  if (!rules.empty())
    all.above.push_back(fmt::format("by the rules of {}", rules));
  else if (replaced == rows.end())
    all.above.emplace_back("by no library's rules: along the axes of a torus");
  if (replaced != rows.end())
    all.above.push_back(fmt::format("{} has no message form here: {} stands in for it",
                                    collective::name_of(*replaced->replaced),
                                    collective::name_of(replaced->choice.algorithm)));
  const auto copied =
      std::find_if(rows.rbegin(), rows.rend(), [](const BenchRow& row) { return row.host_copies; });
  if (copied == rows.rend()) return all;
  all.below.emplace_back(
      "TCP: limited by the hosts' copies (network.nccl.socket_nthreads: NCCL_SOCKET_NTHREADS)");
  // Bytes go to host memory and back over one PCIe link, so half of the NICs are enough for them, and NCCL's
  // search keeps what it found first.
  if (copied->idle_nics > 0)
    all.below.push_back(
        fmt::format("{} of a node's {} NICs idle: NCCL found channels of the same sum without them, and "
                    "only accelerators that send copy",
                    copied->idle_nics, copied->nics));
  return all;
}
std::string comments(const std::vector<std::string>& remarks) {
  std::string text;
  for (const std::string& each : remarks) text += "# " + each + '\n';
  return text;
}
}  // namespace

std::span<const BenchCollective> bench_collectives() {
  return kCollectives;
}

const BenchCollective& bench_collective(const std::string& text) {
  std::vector<std::string> known;
  for (const BenchCollective& named : kCollectives) {
    if (text == named.name) return named;
    known.emplace_back(named.name);
  }
  throw unknown("collective", text, known);
}

Bytes bench_size(const std::string& text) {
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string unit = lower_case(std::string_view(rest, text.data() + text.size()));
  constexpr std::string_view kUnits = "bkmgt";
  const std::size_t power = unit.empty() ? 0 : kUnits.find(unit.front());
  const bool known = unit.size() <= 1 || unit.substr(1) == "b" || unit.substr(1) == "ib";
  if (error != std::errc{} || !known || power == std::string_view::npos ||
      !(number * std::pow(1024, power) >= 1 && number * std::pow(1024, power) <= 1e15)) {
    throw ConfigError("no size \"" + text + '"',
                      "write bytes, or K, M, G for powers of 1024, as nccl-tests: 8, 64K, 16M (or 16MB), 8G");
  }
  return Bytes(std::llround(number * std::pow(1024, power)));
}

std::vector<std::string> algorithm_words() {
  return words_up_to(kLastOfNccl);
}

std::vector<std::string> protocol_words() {
  return words_up_to(Protocol::simple);
}

void refuse_choices(std::string_view what, const std::string& algorithm, const std::string& protocol,
                    int channels) {
  for (const auto& [choice, given] : {std::pair("algorithm", !algorithm.empty()),
                                      {"protocol", !protocol.empty()},
                                      {"channels", channels > 0}})
    if (given)
      throw ConfigError(
          fmt::format("{} has no effect on {}, whose messages go straight to their receivers", choice, what),
          "leave it out");
}

void force(Scenario& scenario, const BenchCollective& what, const std::string& algorithm,
           const std::string& protocol, int channels) {
  constexpr int kMostChannels = 64;
  if (channels < 0 || channels > kMostChannels)
    throw ConfigError(fmt::format("channels is {}, and NCCL has 1 to {}", channels, kMostChannels),
                      "leave it out, and NCCL chooses");
  if (what.kind == CollectiveKind::all_to_all || what.kind == CollectiveKind::send_recv)
    refuse_choices(what.name, algorithm, protocol, channels);
  collective::Overrides& forced = scenario.network.nccl;
  if (!algorithm.empty()) forced.algorithm = value_named("algorithm", algorithm, kLastOfNccl);
  if (!protocol.empty()) forced.protocol = value_named("protocol", protocol, Protocol::simple);
  if (channels > 0) forced.channels = channels;
}

std::string bench_json(const std::vector<BenchRow>& rows, bool complete, std::int64_t left_out) {
  nlohmann::ordered_json json = {{"format", "topsim.bench/1"}, {"complete", complete}};
  if (left_out > 0) json["faults_left_out"] = left_out;
  const Remarks remarks = remarks_on(rows);
  json["notes"] = remarks.above;
  for (const std::string& each : remarks.below) json["notes"].push_back(each);
  json["rows"] = nlohmann::ordered_json::array();
  for (const BenchRow& row : rows) {
    json["rows"].push_back({{"size", row.size.value()},
                            {"time_us", microseconds(row.time)},
                            {"algbw", row.bytes_per_second / 1e9},
                            {"busbw", row.bus_bytes_per_second / 1e9},
                            {"algorithm", collective::name_of(row.choice.algorithm)},
                            {"protocol", collective::name_of(row.choice.protocol)},
                            {"channels", row.choice.channels}});
  }
  return json.dump(2) + '\n';
}

std::string bench_table(const BenchCollective& what, const std::vector<BenchRow>& rows) {
  // The same columns twice: out of place, in place. Nothing is really sent, so errors are N/A.
  const auto twice = [](const std::string& columns) { return columns + columns; };
  const auto names = [&](const char* time, const char* algbw, const char* busbw, const char* wrong) {
    return twice(fmt::format("  {:>7}  {:>6}  {:>6} {:>6}", time, algbw, busbw, wrong));
  };
  const Remarks remarks = remarks_on(rows);
  std::string text = comments(remarks.above) +
                     fmt::format("#{:65}{:<34}{}\n", "", "out-of-place", "in-place") +
                     fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}{}  {:<13}  {:<8}  {:>8}\n", "size",
                                 "count", "type", "redop", "root", names("time", "algbw", "busbw", "#wrong"),
                                 "algorithm", "protocol", "channels") +
                     fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}{}\n", "(B)", "(elements)", "", "", "",
                                 names("(us)", "(GB/s)", "(GB/s)", ""));
  double sum = 0;
  for (const BenchRow& row : rows) {
    const double algbw = row.bytes_per_second / 1e9, busbw = row.bus_bytes_per_second / 1e9;
    sum += busbw;
    text += fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}{}  {:<13}  {:<8}  {:>8}\n", row.size.value(),
                        row.count, "float", what.operation, what.root,
                        twice(fmt::format("  {:>7}  {:>6.2f}  {:>6.2f}  {:>5}",
                                          time_text(microseconds(row.time)), algbw, busbw, "N/A")),
                        collective::name_of(row.choice.algorithm), collective::name_of(row.choice.protocol),
                        row.choice.channels);
  }
  text += "# Out of bounds values : 0 OK\n";
  text += comments(remarks.below);
  if (!rows.empty())
    text += fmt::format("# Avg bus bandwidth    : {:g}\n", sum / static_cast<double>(rows.size()));
  return text + "#\n";
}
}  // namespace topsim::scenario

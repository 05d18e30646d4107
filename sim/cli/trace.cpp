// topsim trace: shows the contents of a workload trace, or converts it to another format.
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>

#include "sim/base/error.hpp"
#include "sim/base/suggest.hpp"
#include "sim/cli/commands.hpp"
#include "sim/cli/declare.hpp"
#include "sim/cli/output_format.hpp"
#include "sim/cli/outputs.hpp"
#include "sim/cli/scenario_options.hpp"
#include "sim/config/value.hpp"
#include "sim/report/text.hpp"
#include "sim/report/write.hpp"
#include "sim/scenario/read/read.hpp"
#include "workloads/trace/formats.hpp"
#include "workloads/trace/load.hpp"
#include "workloads/trace/replay.hpp"

namespace topsim::cli {
namespace {

namespace trace = workloads::trace;

struct Options {
  std::string file, from, groups, to, out, format = "table";
  std::uint32_t ranks = 0;
};

trace::Trace load(const Options& options) {
  workloads::TraceSpec spec;
  spec.path = options.file;
  std::error_code error;
  if (!std::filesystem::exists(options.file, error))
    if (const std::string shipped = scenario::find_shipped(options.file, shipped_library()); !shipped.empty())
      spec.path = shipped;
  if (!options.from.empty() && trace::find_format(options.from) == nullptr)
    throw ConfigError("no trace format \"" + options.from + '"', "formats: " + join(trace::format_names()));
  spec.format = options.from;
  spec.groups = options.groups;
  trace::Trace loaded = trace::load(spec, {}, options.ranks);
  trace::require_an_end(loaded);
  return loaded;
}

struct Row {
  std::uint64_t count = 0;
  double bytes = 0;
};

struct Totals {
  std::array<std::uint64_t, 7> nodes{};    // by kind
  std::map<std::string, Row> collectives;  // by kind and group
  Row messages;
  double compute = 0, operations = 0;
};

Totals totals_of(const trace::Trace& t) {
  Totals sum;
  for (const trace::RankTrace& program : t.programs) {
    const auto ranks = static_cast<double>(program.ranks.size());
    for (const trace::Node& node : program.nodes) {
      sum.nodes[static_cast<std::size_t>(node.kind)] += program.ranks.size();
      const auto bytes = static_cast<double>(node.bytes);
      if (node.kind == trace::Kind::collective) {
        Row& row = sum.collectives[fmt::format("{} over {}", program::name_of(node.collective),
                                               t.groups[node.group].name)];
        row.count += program.ranks.size();
        row.bytes += ranks * bytes;
      }
      if (node.kind == trace::Kind::send)
        sum.messages.count += program.ranks.size(), sum.messages.bytes += ranks * bytes;
      if (node.kind == trace::Kind::compute)
        sum.compute += ranks * seconds(node.duration), sum.operations += ranks * node.operations;
    }
  }
  return sum;
}

config::Value json_of(const trace::Trace& t, const Totals& sum) {
  using config::Value;
  const auto whole = [](std::uint64_t n) { return Value::of(static_cast<std::int64_t>(n)); };
  const auto amount = [&](const char* name, const Row& row) {
    Value value(config::Kind::object);
    value.add(name, whole(row.count));
    value.add("bytes", Value::of(row.bytes));
    return value;
  };
  Value kinds(config::Kind::object), calls(config::Kind::object), root(config::Kind::object);
  for (std::size_t k = 0; k < sum.nodes.size(); ++k)
    kinds.add(std::string(name_of(static_cast<trace::Kind>(k))), whole(sum.nodes[k]));
  for (const auto& [name, row] : sum.collectives) calls.add(name, amount("calls", row));
  root.add("format", Value::of(t.format));
  root.add("ranks", whole(t.ranks));
  root.add("nodes", std::move(kinds));
  root.add("messages", amount("count", sum.messages));
  root.add("collectives", std::move(calls));
  root.add("compute_seconds", Value::of(sum.compute));
  root.add("operations", Value::of(sum.operations));
  return root;
}

std::string text_of(const trace::Trace& t, const Totals& sum) {
  std::uint64_t all = 0;
  for (const std::uint64_t count : sum.nodes) all += count;
  std::string out = fmt::format("{} trace of {} ranks, {} nodes\n", t.format, t.ranks, all);
  for (std::size_t k = 0; k < sum.nodes.size(); ++k)
    if (sum.nodes[k] > 0)
      out += fmt::format("  {:<12}{:>12}\n", name_of(static_cast<trace::Kind>(k)), sum.nodes[k]);
  if (sum.compute > 0)
    out += fmt::format("  computes    {:>12}  a rank in the mean\n",
                       report::duration_text(from_seconds(sum.compute / std::max(1U, t.ranks))));
  if (sum.operations > 0)
    out += fmt::format("  operations  {:>12.4g}  timed by the accelerator's roofline\n", sum.operations);
  if (sum.messages.count > 0)
    out += fmt::format("  messages    {:>12}  carry {}\n", sum.messages.count,
                       report::bytes_text(sum.messages.bytes));
  for (const auto& [name, row] : sum.collectives)
    out += fmt::format("  {:<30}{:>8} calls, {} in all\n", name, row.count, report::bytes_text(row.bytes));
  for (const std::string& note : t.notes) out += "  note: " + note + '\n';
  return out;
}

int info(const Options& options) {
  check_format(options.format, kTableJson);
  const trace::Trace t = load(options);
  const Totals sum = totals_of(t);
  std::cout << (options.format == "json" ? config::to_text(json_of(t, sum)) + '\n' : text_of(t, sum));
  return kOk;
}

void write(const std::string& path, const std::string& text) {
  report::write_file(path, text);
  std::cerr << "wrote " << path << '\n';
}

int convert(const Options& options) {
  const trace::Format* format = trace::find_format(options.to);
  if (format == nullptr || (format->write == nullptr && format->write_ranks == nullptr))
    throw ConfigError("no trace is written as \"" + options.to + '"',
                      "formats: " + join(trace::written_names()));
  check_outputs({"the trace", {options.file, options.groups}}, {{"-o", options.out}});
  const trace::Trace t = load(options);
  for (const std::string& note : t.notes) std::cerr << "note: " << note << '\n';
  if (format->left_out != nullptr)
    for (const std::string& note : format->left_out(t)) std::cerr << "note: " << note << '\n';
  if (format->write_ranks != nullptr) {
    if (options.out.empty())
      throw ConfigError("a Chakra trace is one file a rank", "name them: -o folder/name");
    const trace::ChakraFiles files = format->write_ranks(t);
    for (std::size_t r = 0; r < files.ranks.size(); ++r)
      write(fmt::format("{}.{}.et", options.out, r), files.ranks[r]);
    write(options.out + ".json", files.groups);
    return kOk;
  }
  const std::string text = format->write(t);
  if (options.out.empty()) {
    std::cout << text;
  } else {
    write(options.out, text);
  }
  return kOk;
}

}  // namespace

Action configure_trace(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  Subcommands commands(app);
  CLI::App& tell = commands.add("info", "What a trace holds", [options] { return info(*options); });
  CLI::App& change =
      commands.add("convert", "The same trace in another format", [options] { return convert(*options); });
  for (CLI::App* command : {&tell, &change}) {
    add_option(*command, "FILE", options->file, "A trace; Chakra: its folder, or the files without .0.et")
        .required();
    add_option(*command, "--from", options->from, "Its format (default: by its content)")
        .type_name(word_list(trace::format_names()));
    add_option(*command, "--groups", options->groups, "Chakra: JSON file of process groups")
        .type_name("FILE");
    add_option(*command, "--ranks", options->ranks, "Ranks of a job whose trace does not say (aicb)")
        .type_name("N");
  }
  add_format_option(tell, options->format, kTableJson);
  add_option(change, "--to", options->to, "Format to write")
      .type_name(word_list(trace::written_names()))
      .required();
  add_option(change, "-o,--out", options->out,
             "Write there instead of stdout; Chakra: folder/name of the files")
      .type_name("FILE");
  return commands.chosen();
}
}  // namespace topsim::cli

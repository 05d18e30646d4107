#include "workloads/trace/load.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>

#include "sim/base/error.hpp"
#include "sim/base/suggest.hpp"
#include "topology/import/encoding.hpp"
#include "workloads/trace/formats.hpp"

namespace topsim::workloads::trace {
namespace {
namespace fs = std::filesystem;

constexpr std::size_t kMostBytes = std::size_t{4} << 30;

// Reads plain or gzip-compressed files.
std::string read_file(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) fail(path, "is a folder, not a trace", "name the file");
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file)
    fail(path, "cannot read the trace",
         "looked for " + fs::absolute(path, error).lexically_normal().string());
  std::string text;
  std::array<char, 1 << 16> buffer;
  for (;;) {
    const int got = gzread(file.get(), buffer.data(), static_cast<unsigned>(buffer.size()));
    if (got < 0) fail(path, "the gzip data is damaged", "unpack it with gunzip to see where");
    if (got == 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > kMostBytes) fail(path, "the trace is larger than 4 GiB", "cut it into fewer steps");
  }
  int state = Z_OK;
  gzerror(file.get(), &state);
  if (state != Z_OK && state != Z_STREAM_END) fail(path, "the gzip data breaks off", "is the file cut off?");
  return text;
}

// JSON from which others make the traces that are read. Their names: mlcommons/chakra, pyproject.toml.
void refuse_others_json(std::string_view text, const std::string& path) {
  constexpr std::size_t kHead = 4096;  // characters; formats name themselves there
  const std::string_view head = text.substr(0, kHead);
  const auto has = [&](std::string_view word) { return head.find(word) != std::string_view::npos; };
  if (has("topsim.trace")) return;
  if (has("\"traceEvents\"") || has("\"schemaVersion\""))
    fail(path, "is a trace of PyTorch's profiler (Kineto)",
         "chakra_trace_link joins it with the execution trace of the same run, and chakra_converter PyTorch "
         "makes NAME.<rank>.et of that");
  if (has("\"schema\""))
    fail(
        path, "is an execution trace of PyTorch",
        "chakra_converter PyTorch makes NAME.<rank>.et of it, after chakra_trace_link has joined it with the "
        "profiler's trace");
  if (has("\"globalMetadata\"") || has("_COLL_NODE\"") || has("COMP_NODE\""))
    fail(path, "is Chakra's JSON, which is for people to read",
         "name the NAME.<rank>.et of which chakra_jsonizer made it");
}

// "all_reduce.3.et.gz" -> ("all_reduce", 3); rank -1: the name has another form.
std::pair<std::string, int> rank_of(std::string name) {
  const auto cut = [&](std::string_view tail) {
    if (name.size() <= tail.size() || name.compare(name.size() - tail.size(), tail.size(), tail) != 0)
      return false;
    name.resize(name.size() - tail.size());
    return true;
  };
  cut(".gz");
  if (!cut(".et")) return {name, -1};
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot + 1 == name.size() || name.size() - dot > 8 ||
      name.find_first_not_of("0123456789", dot + 1) != std::string::npos)
    return {name, -1};
  return {name.substr(0, dot), std::stoi(name.substr(dot + 1))};
}

struct ChakraPaths {
  std::vector<std::string> ranks;
  std::string prefix;  // with its folder
};

ChakraPaths chakra_paths(const std::string& path) {
  std::error_code error;
  fs::path folder = path;
  std::string prefix;
  if (!fs::is_directory(path, error)) {
    folder = fs::path(path).parent_path();
    const std::string name = fs::path(path).filename().string();
    const auto [base, rank] = rank_of(name);
    prefix = rank >= 0 ? base : name;
  }
  if (folder.empty()) folder = ".";
  std::map<std::string, std::map<int, std::string>> found;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto [base, rank] = rank_of(entry.path().filename().string());
    if (rank >= 0 && (prefix.empty() || base == prefix)) found[base].emplace(rank, entry.path().string());
  }
  if (std::error_code none; found.empty() && fs::is_regular_file(path, none))
    fail(path, "is no file of a Chakra trace, which are called NAME.0.et, NAME.1.et, ...",
         fmt::format("its content looks like format \"{}\"", detect_format(path)));
  if (error || found.empty())
    fail(path,
         fs::is_directory(path, error)
             ? "no Chakra trace in this folder: no file is called NAME.0.et"
             : fmt::format("no such file, and no Chakra trace of that name: there is no {}.0.et", path),
         "name a trace, the folder of a Chakra trace, or its files without .0.et");
  if (found.size() > 1)
    fail(path, fmt::format("the folder holds {} traces", found.size()),
         fmt::format("name one: {}", (folder / found.begin()->first).string()));
  ChakraPaths result;
  result.prefix = (folder / found.begin()->first).string();
  for (const auto& [rank, file] : found.begin()->second) {
    if (rank != static_cast<int>(result.ranks.size()))
      fail(path, fmt::format("the file of rank {} is missing", result.ranks.size()),
           fmt::format("the next is {}", file));
    result.ranks.push_back(file);
  }
  return result;
}

// The file of process groups; empty if there is none.
std::string groups_file(const TraceSpec& spec, const ChakraPaths& paths, const std::string& folder) {
  std::error_code error;
  if (!spec.groups.empty()) return find_path(spec.groups, folder);
  const std::string usual = paths.prefix + ".json";
  return fs::is_regular_file(usual, error) ? usual : std::string();
}

Trace load_ranks(const Format& format, const TraceSpec& spec, const std::string& path,
                 const std::string& folder) {
  const ChakraPaths paths = chakra_paths(path);
  std::vector<std::string> bytes;
  for (const std::string& file : paths.ranks) bytes.push_back(read_file(file));
  const std::string groups = groups_file(spec, paths, folder);
  const std::string text = groups.empty() ? std::string() : read_file(groups);
  return format.read_ranks(paths.ranks, bytes, text, groups.empty() ? paths.prefix + ".json" : groups);
}

// As detect_format(), of a file's text.
const Format& format_of(const std::string& text, const std::string& path) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) fail(path, "the file is empty");
  topology::refuse_utf16(text, path);
  const std::string_view begin = std::string_view(text).substr(first);
  if (begin.front() == '{') refuse_others_json(begin, path);
  for (const bool loose : {false, true})
    for (const Format& each : formats())
      if (each.loose == loose && each.is != nullptr && each.is(begin)) return each;
  std::vector<std::string> known;
  for (const Format& each : formats())
    known.push_back(each.sign.empty() ? std::string(each.name)
                                      : fmt::format("{} ({})", each.name, each.sign));
  fail(path, "no trace that topsim knows", "formats: " + join(known));
}

// The format that the trace is said to have, else the one that it has.
const Format& format_of(const TraceSpec& spec, const std::string& path) {
  const std::string name = spec.format.empty() ? detect_format(path) : spec.format;
  if (const Format* format = find_format(name)) return *format;
  throw ConfigError("no trace format \"" + name + '"', "formats: " + join(format_names()));
}
}  // namespace

std::string find_path(const std::string& path, const std::string& folder) {
  std::error_code error;
  if (fs::path(path).is_absolute() || folder.empty()) return path;
  const std::string beside = (fs::path(folder) / path).lexically_normal().string();
  const fs::path parent = fs::path(beside).parent_path();
  // A Chakra prefix is not a file, so its folder decides.
  if (fs::exists(beside, error)) return beside;
  if (fs::exists(path, error)) return path;
  return fs::is_directory(parent.empty() ? fs::path(".") : parent, error) ? beside : path;
}

std::string detect_format(const std::string& path) {
  std::error_code error;
  const bool file = fs::is_regular_file(path, error);
  if (!file || rank_of(fs::path(path).filename().string()).second >= 0) return "chakra";
  return std::string(format_of(read_file(path), path).name);
}

std::vector<std::string> files_of(const TraceSpec& spec, const std::string& folder) {
  const std::string path = find_path(spec.path, folder);
  if (format_of(spec, path).read != nullptr) return {path};
  const ChakraPaths paths = chakra_paths(path);
  std::vector<std::string> files = paths.ranks;
  if (const std::string groups = groups_file(spec, paths, folder); !groups.empty()) files.push_back(groups);
  return files;
}

namespace {
// Reports a file of another format than stated, before its first line is reported as a mistake.
void check_format(const std::string& path, const std::string& said) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return;
  std::string seen;
  try {
    seen = detect_format(path);
  } catch (const ConfigError&) {
    return;  // its reader says what is wrong
  }
  if (seen != said)
    fail(path, fmt::format("looks like format \"{}\", not \"{}\"", seen, said),
         "change workload.trace.format");
}
}  // namespace

Trace load(const TraceSpec& spec, const std::string& folder, std::uint32_t ranks) {
  const std::string path = find_path(spec.path, folder);
  const Format& format = format_of(spec, path);
  if (format.read_ranks != nullptr) return load_ranks(format, spec, path, folder);
  if (!spec.format.empty()) check_format(path, spec.format);
  return format.read(read_file(path), path, ranks);
}
}  // namespace topsim::workloads::trace

#include "sim/report/write.hpp"

#include <fmt/core.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "sim/base/error.hpp"
#include "sim/report/csv.hpp"
#include "sim/report/json.hpp"
#include "sim/report/trace.hpp"

namespace topsim::report {
namespace {
bool ends_with(std::string_view text, std::string_view ending) {
  return text.size() >= ending.size() && text.substr(text.size() - ending.size()) == ending;
}

constexpr std::string_view kPacked = ".gz";
constexpr const char* kTimeline = "timeline.csv";
constexpr const char* kPackedTimeline = "timeline.csv.gz";
std::string_view unpacked_name(std::string_view file) {
  return ends_with(file, kPacked) ? file.substr(0, file.size() - kPacked.size()) : file;
}

// Equal texts give equal bytes: gzopen() writes a header without a time.
void write_packed(const std::string& file, std::string_view text) {
  check_place(file);
  std::unique_ptr<gzFile_s, int (*)(gzFile)> stream(gzopen(file.c_str(), "wb"), gzclose);
  const bool written = stream && gzfwrite(text.data(), 1, text.size(), stream.get()) == text.size();
  if (!written || gzclose(stream.release()) != Z_OK)
    throw ConfigError(fmt::format("cannot write {}: {}", file, std::strerror(errno)));
}
}  // namespace

void check_place(const std::string& file) {
  if (file == "-")
    throw ConfigError("\"-\" is no name of a file", "name one; standard output has what --format says");
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  std::error_code error;
  if (!folder.empty() && !std::filesystem::is_directory(folder, error))
    throw ConfigError("cannot write " + file, "there is no folder " + folder.string() + ": make it first");
}

void write_file(const std::string& file, std::string_view text) {
  check_place(file);
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  stream.write(text.data(), static_cast<std::streamsize>(text.size()));
  stream.close();
  if (!stream) throw ConfigError(fmt::format("cannot write {}: {}", file, std::strerror(errno)));
}

void make_directory(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw ConfigError(fmt::format("cannot make the folder {}: {}", directory, error.message()));
}

std::string write_directory(const std::string& directory, const Result& result, const RunRecord& record,
                            const Timeline* timeline, std::size_t largest_plain) {
  const std::filesystem::path folder(directory);
  make_directory(directory);
  write_file(folder / "run.json", to_json(record));
  write_file(folder / "links.csv", links_csv(result));
  write_file(folder / "ranks.csv", ranks_csv(result));
  write_file(folder / "collectives.csv", collectives_csv(result));
  // Removes both forms of an earlier run's timeline.
  for (const char* const form : {kTimeline, kPackedTimeline}) std::filesystem::remove(folder / form);
  if (timeline != nullptr) {
    const std::string table = timeline_csv(result.name, *timeline);
    if (table.size() > largest_plain)
      write_packed(folder / kPackedTimeline, table);
    else
      write_file(folder / kTimeline, table);
  }
  const std::string main = folder / "result.json";
  write_file(main, to_json(result));
  return main;
}

bool has_packed_timeline(const std::string& directory) {
  return std::filesystem::exists(std::filesystem::path(directory) / kPackedTimeline);
}

void check_trace(const std::string& file) {
  const std::string_view name = unpacked_name(file);
  if (!ends_with(name, ".pftrace") && !ends_with(name, ".json"))
    throw ConfigError("unknown kind of trace: " + file,
                      "end it in .pftrace (Perfetto) or .json (Chrome), with .gz behind it to pack it");
  check_place(file);
}

void write_trace(const std::string& file, const Timeline& timeline) {
  check_trace(file);
  const std::string text =
      ends_with(unpacked_name(file), ".pftrace") ? to_perfetto(timeline) : to_chrome_trace(timeline);
  if (ends_with(file, kPacked)) return write_packed(file, text);
  write_file(file, text);
}
}  // namespace topsim::report

#include "sim/scenario/cluster/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

#include "sim/base/suggest.hpp"
#include "sim/config/document.hpp"
#include "sim/config/reader.hpp"
#include "sim/scenario/read/directories.hpp"

namespace topsim::scenario {
namespace {
constexpr std::array kColumns = {"fabric",
                                 "routing",
                                 "oversubscription",
                                 "incast_degree",
                                 "flows_per_port",
                                 "queue_pairs",
                                 "queue",
                                 "bytes",
                                 "efficiency",
                                 "low",
                                 "high"};
constexpr const char* kRemedy = "topsim calibrate writes this file";

// Reads the cells of a row, from the left.
class Cells {
 public:
  Cells(const config::Node& row, config::Reader& reader) : row_(row), reader_(reader) {}

  std::string name(const std::vector<std::string>& known) {
    const config::Node cell = row_[at_++];
    const std::string text = cell.is(config::Kind::string) ? cell.text() : std::string();
    if (std::find(known.begin(), known.end(), text) == known.end())
      problem(cell, fmt::format("must be one of {}", join(known)));
    return text;
  }
  std::int64_t whole(std::int64_t least, std::int64_t most) {
    const config::Node cell = row_[at_++];
    if (cell.is(config::Kind::integer) && cell.integer() >= least && cell.integer() <= most)
      return cell.integer();
    problem(cell, fmt::format("must be a whole number from {} to {}", least, most));
    return least;
  }
  double ratio(double most) {
    const config::Node cell = row_[at_++];
    const double value = cell.is(config::Kind::integer) ? static_cast<double>(cell.integer())
                         : cell.is_number()             ? cell.number()
                                                        : 0;
    if (value > 0 && value <= most) return value;
    problem(cell, fmt::format("must be a number above 0, at most {:g}", most));
    return 1;
  }

 private:
  void problem(const config::Node& cell, const std::string& what) {
    reader_.problem(cell, fmt::format("\"{}\" {}", kColumns[at_ - 1], what), {}, kRemedy);
  }
  const config::Node& row_;
  config::Reader& reader_;
  std::size_t at_ = 0;
};

network::CongestionEntry read_entry(const config::Node& row, config::Reader& reader) {
  static const std::vector<std::string> kFabrics = {"roce", "infiniband"};
  static const std::vector<std::string> kRoutings = {"any", "ecmp", "static", "adaptive", "spray", "bundle"};
  constexpr std::int64_t kMostPorts = 1 << 20, kMostBytes = std::int64_t{1} << 50;
  Cells cells(row, reader);
  network::CongestionEntry entry;
  entry.fabric = cells.name(kFabrics);
  entry.routing = cells.name(kRoutings);
  entry.oversubscription = cells.ratio(kMostPorts);
  entry.incast_degree = static_cast<int>(cells.whole(1, kMostPorts));
  entry.flows_per_port = static_cast<int>(cells.whole(1, kMostPorts));
  entry.queue_pairs = static_cast<int>(cells.whole(1, kMostPorts));
  entry.queue = Bytes(cells.whole(0, kMostBytes));
  entry.bytes = Bytes(cells.whole(1, kMostBytes));
  entry.efficiency = cells.ratio(1);
  entry.low = cells.ratio(1);
  entry.high = cells.ratio(1);
  return entry;
}

// Whether the file has the keys and the columns that the rows are read by.
bool check_table(const config::Node& root, config::Reader& reader) {
  static const std::vector<std::string> kKeys = {"description", "command", "columns", "rows"};
  if (!root.is(config::Kind::object)) {
    reader.problem(root, "a table of congestion is an object", {}, kRemedy);
    return false;
  }
  for (std::size_t i = 0; i < root.size(); ++i) {
    const std::string& key = root[i].key();
    if (config::is_remark(key) || std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end()) continue;
    reader.problem_at_key(root[i], fmt::format("unknown key \"{}\"", key), suggestion(key, kKeys),
                          "known: " + join(kKeys));
  }
  for (const char* key : {"columns", "rows"})
    if (!root.find(key).is(config::Kind::array))
      reader.problem(root.find(key) ? root.find(key) : root, fmt::format("\"{}\" must be a list", key), {},
                     kRemedy);
  if (!reader.ok()) return false;
  const config::Node columns = root.find("columns");
  bool alike = columns.size() == kColumns.size();
  for (std::size_t i = 0; alike && i < kColumns.size(); ++i)
    alike = columns[i].is(config::Kind::string) && columns[i].text() == kColumns[i];
  if (!alike)
    reader.problem(columns, "other columns than are read", {},
                   fmt::format("they are {}", fmt::join(kColumns, ", ")));
  return alike;
}
}  // namespace

network::CongestionTable read_congestion(const std::string& path) {
  const config::Document document = config::Document::read_file(path);
  config::Reader reader;
  std::vector<network::CongestionEntry> entries;
  if (check_table(document.root(), reader)) {
    const config::Node rows = document.root().find("rows");
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const config::Node row = rows[i];
      if (row.is(config::Kind::array) && row.size() == kColumns.size()) {
        entries.push_back(read_entry(row, reader));
      } else {
        reader.problem(row, fmt::format("a row has {} columns", kColumns.size()), {}, kRemedy);
      }
    }
  }
  reader.finish();
  return network::CongestionTable(std::move(entries));
}

// Reading 1,000 rows takes 3 ms, as long as a small point of a sweep, so a file is read again only when it
// has changed. Which file counts is asked every time: what was simulated before has no say.
std::shared_ptr<const network::CongestionTable> shipped_congestion() {
  using Version = std::pair<std::string, std::filesystem::file_time_type>;
  static std::map<Version, std::shared_ptr<const network::CongestionTable>> read;
  static std::mutex one_at_a_time;
  for (const std::string& directory : config_directories()) {
    std::error_code missing;
    const std::filesystem::path path =
        std::filesystem::absolute(directory, missing) / "calibration" / "congestion.json";
    const auto changed = std::filesystem::last_write_time(path, missing);
    if (missing) continue;
    const std::lock_guard lock(one_at_a_time);
    auto& table = read[{path.string(), changed}];
    if (!table) table = std::make_shared<const network::CongestionTable>(read_congestion(path.string()));
    return table;
  }
  return nullptr;
}

std::string congestion_json(const network::CongestionTable& table) {
  std::string text = fmt::format(
      "{{\n  \"description\": \"Share of a port's capacity that flows keep where they meet, packets against "
      "a "
      "fluid; regenerate with the command\",\n  \"command\": \"topsim calibrate --format json > "
      "configs/calibration/congestion.json\",\n  \"columns\": [\"{}\"],\n  \"rows\": [\n",
      fmt::join(kColumns, "\", \""));
  for (std::size_t i = 0; i < table.entries().size(); ++i) {
    const network::CongestionEntry& e = table.entries()[i];
    text += fmt::format("    [\"{}\", \"{}\", {:g}, {}, {}, {}, {}, {}, {:.4f}, {:.4f}, {:.4f}]{}\n",
                        e.fabric, e.routing, e.oversubscription, e.incast_degree, e.flows_per_port,
                        e.queue_pairs, e.queue.value(), e.bytes.value(), e.efficiency, e.low, e.high,
                        i + 1 == table.entries().size() ? "" : ",");
  }
  return text + "  ]\n}\n";
}

std::string congestion_text(const network::CongestionTable& table) {
  constexpr const char* kHead = "{:<11}{:<9}{:>6}{:>7}{:>6}{:>6}{:>6}{:>10}{:>6}{:>6}{:>6}\n";  // 79 columns
  std::string text =
      fmt::format(kHead, "", "", "over-", "incast", "flows", "queue", "MB at", "", "effi-", "", "") +
      fmt::format(kHead, "fabric", "routing", "subs.", "degree", "/port", "pairs", "pause", "bytes", "cien.",
                  "least", "most");
  for (const network::CongestionEntry& e : table.entries()) {
    text += fmt::format(
        "{:<11}{:<9}{:>6g}{:>7}{:>6}{:>6}{:>6}{:>10}{:>6.3f}{:>6.3f}{:>6.3f}\n", e.fabric, e.routing,
        e.oversubscription, e.incast_degree, e.flows_per_port, e.queue_pairs,
        e.queue > Bytes{} ? fmt::format("{:g}", static_cast<double>(e.queue.value()) * 1e-6) : "any",
        e.bytes.value(), e.efficiency, e.low, e.high);
  }
  return text;
}
}  // namespace topsim::scenario

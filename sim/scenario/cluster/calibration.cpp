#include "sim/scenario/cluster/calibration.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "sim/config/document.hpp"
#include "sim/config/reader.hpp"
#include "sim/scenario/read/directories.hpp"

namespace topsim::scenario {
namespace {
constexpr const char* kColumns =
    R"(["fabric", "routing", "oversubscription", "incast_degree", "flows_per_port", "queue_pairs", "queue", "bytes", "efficiency", "low", "high"])";
constexpr std::size_t kColumnCount = 11;

double number_of(const config::Node& node, config::Reader& reader) {
  if (node.is_number())
    return node.is(config::Kind::integer) ? static_cast<double>(node.integer()) : node.number();
  reader.problem(node, "a number is expected");
  return 1;
}
}  // namespace

network::CongestionTable read_congestion(const std::string& path) {
  const config::Document document = config::Document::read_file(path);
  config::Reader reader;
  std::vector<network::CongestionEntry> entries;
  const config::Node rows = document.root().find("rows");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const config::Node row = rows[i];
    if (!row.is(config::Kind::array) || row.size() != kColumnCount) {
      reader.problem(row, fmt::format("a row has {} columns", kColumnCount), {},
                     "topsim calibrate writes this file");
      continue;
    }
    network::CongestionEntry entry;
    entry.fabric = row[0].text();
    entry.routing = row[1].text();
    entry.oversubscription = number_of(row[2], reader);
    entry.incast_degree = static_cast<int>(number_of(row[3], reader));
    entry.flows_per_port = static_cast<int>(number_of(row[4], reader));
    entry.queue_pairs = static_cast<int>(number_of(row[5], reader));
    entry.queue = Bytes(static_cast<std::int64_t>(number_of(row[6], reader)));
    entry.bytes = Bytes(static_cast<std::int64_t>(number_of(row[7], reader)));
    entry.efficiency = number_of(row[8], reader);
    entry.low = number_of(row[9], reader);
    entry.high = number_of(row[10], reader);
    entries.push_back(std::move(entry));
  }
  reader.finish();
  return network::CongestionTable(std::move(entries));
}

// Kept for the process, like the tables built into the program: it never changes, and reading its 800 rows
// takes 3 ms, as long as a small point of a sweep.
std::shared_ptr<const network::CongestionTable> shipped_congestion() {
  static const std::shared_ptr<const network::CongestionTable> shipped =
      []() -> std::shared_ptr<const network::CongestionTable> {
    for (const std::string& directory : config_directories()) {
      const std::filesystem::path path = std::filesystem::path(directory) / "calibration" / "congestion.json";
      if (std::filesystem::exists(path))
        return std::make_shared<const network::CongestionTable>(read_congestion(path.string()));
    }
    return nullptr;
  }();
  return shipped;
}

std::string congestion_json(const network::CongestionTable& table) {
  std::string text = fmt::format(
      "{{\n  \"description\": \"Share of a port's capacity that flows keep where they meet, packets against "
      "a "
      "fluid; regenerate with the command\",\n  \"command\": \"topsim calibrate --format json > "
      "configs/calibration/congestion.json\",\n  \"columns\": {},\n  \"rows\": [\n",
      kColumns);
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

#include "sim/validation/case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>

#include "sim/base/suggest.hpp"
#include "sim/config/document.hpp"
#include "sim/config/object.hpp"

namespace topsim::validation {

const config::Object<Bar>& table(config::Type<Bar>) {
  static const auto object =
      config::Object<Bar>("bar", "The largest error of a family, as shares of the published figures")
          .field("mean", &Bar::mean, "mean of the absolute errors")
          .field("median", &Bar::median, "median of the absolute errors")
          .field("percentile_90", &Bar::percentile_90, "90th percentile of the absolute errors")
          .field("max", &Bar::max, "largest absolute error")
          .field("bias", &Bar::bias, "absolute value of the mean error")
          .field("tau", &Bar::tau, "Kendall's tau of layouts, at least")
          .field("slope", &Bar::slope, "difference of the slopes of scaling series");
  return object;
}
const config::Object<LeftOut>& table(config::Type<LeftOut>) {
  static const auto object =
      config::Object<LeftOut>("left out", "Rows of the source that are not in the table")
          .field("rows", &LeftOut::rows, "how many", config::required())
          .field("why", &LeftOut::why, "why", config::required());
  return object;
}

namespace {
using config::Kind;
using config::Node;
using config::Reader;

template <class T>
void read_member(const Node& root, const char* key, T& out, Reader& reader) {
  if (const Node node = root.find(key)) config::codec_for<T>()->read(node, out, reader);
}

Duration duration_of(const Node& node, Reader& reader) {
  Duration value{};
  config::codec_for<Duration>()->read(node, value, reader);
  return value;
}

std::optional<program::CollectiveKind> collective_of(const Node& node, Reader& reader) {
  std::vector<std::string> known;
  for (int i = 0; i <= static_cast<int>(program::CollectiveKind::send_recv); ++i) {
    const auto kind = static_cast<program::CollectiveKind>(i);
    if (node.is(Kind::string) && program::name_of(kind) == node.text()) return kind;
    known.emplace_back(program::name_of(kind));
  }
  reader.problem(node, "no such collective", "", "collectives: " + join(known));
  return std::nullopt;
}

std::optional<Share> share_of(const std::string& column) {
  for (std::size_t i = 0; i < kShares; ++i)
    if (const auto share = static_cast<Share>(i); column == name_of(share)) return share;
  return std::nullopt;
}

class TableReader {
 public:
  TableReader(const Node& root, CaseFile& file, Reader& reader) : root_(root), file_(file), reader_(reader) {}

  void read() {
    const Node columns = root_.find("columns"), rows = root_.find("rows"), base = root_.find("base");
    if (!columns.is(Kind::array) || !rows.is(Kind::array) || !base.is(Kind::object)) {
      reader_.problem(root_, "a case file needs \"base\", \"columns\" and \"rows\"");
      return;
    }
    base_ = config::to_text(base.value());
    for (std::size_t i = 0; i < columns.size(); ++i) columns_.push_back(columns[i].text());
    if (rows.size() == 0) reader_.problem(rows, "there are no rows", "one for each measurement");
    for (std::size_t i = 0; i < rows.size(); ++i) read_row(rows[i]);
    for (const auto& [row, at] : read_) check(row, file_.cases[at]);
  }

 private:
  void read_row(const Node& row) {
    if (!row.is(Kind::array) || row.size() != columns_.size()) {
      reader_.problem(
          row, "a row needs one value for each of the " + std::to_string(columns_.size()) + " columns");
      return;
    }
    Case result;
    result.family = file_.name;
    result.source = file_.source;
    result.base = base_;
    result.directory = file_.directory;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (!row[i].is(Kind::null)) read_cell(columns_[i], row[i], result);
    }
    if (!names_.emplace(result.name, file_.cases.size()).second)
      reader_.problem(row, "the name \"" + result.name + "\" is taken");
    if (!result.compared_with.empty()) compared_.insert(result.compared_with);
    read_.emplace_back(row, file_.cases.size());
    file_.cases.push_back(std::move(result));
  }

  // What rows say of each other.
  void check(const Node& row, const Case& c) {
    const bool figure = c.published > Duration{} || c.memory || !c.shares.empty() || c.ratio;
    if (c.collective ? c.points.empty() : !figure && !compared_.contains(c.name))
      reader_.problem(row, "a row needs a published figure", "",
                      "\"published\", \"ratio\", a share, or \"collective\" and \"points\"");
    if (c.ratio && c.compared_with.empty())
      reader_.problem(row, "a ratio is to another row", "", "\"compared_with\" names it");
    if (c.compared_with.empty()) return;
    const auto other = names_.find(c.compared_with);
    if (other == names_.end() || c.compared_with == c.name)
      return reader_.problem(row, "no other row is named \"" + c.compared_with + '"');
    const Case& base = file_.cases[other->second];
    if (!c.ratio && (c.published <= Duration{} || base.published <= Duration{}))
      reader_.problem(row, "a comparison needs the times of both rows, or a ratio");
  }

  void read_cell(const std::string& column, const Node& cell, Case& out) {
    if (column == "name") {
      out.name = cell.text();
    } else if (column == "family") {
      out.family = cell.text();
    } else if (column == "release") {
      out.release = cell.text();
    } else if (column == "source") {
      out.source = file_.source.empty() ? cell.text() : file_.source + ", " + cell.text();
    } else if (column == "published") {
      out.published = duration_of(cell, reader_);
    } else if (column == "memory") {
      Bytes value{};
      config::codec_for<Bytes>()->read(cell, value, reader_);
      out.memory = value;
    } else if (const auto share = share_of(column)) {
      config::codec_for<double>()->read(cell, out.shares[*share], reader_);
    } else if (column == "compared_with") {
      out.compared_with = cell.text();
    } else if (column == "ratio") {
      config::codec_for<double>()->read(cell, out.ratio.emplace(), reader_);
    } else if (column == "collective") {
      out.collective = collective_of(cell, reader_);
    } else if (column == "points") {
      read_points(cell, out);
    } else {
      out.assignments.push_back(column + '=' + value_of(column, cell));
    }
  }

  void read_points(const Node& cell, Case& out) {
    for (std::size_t i = 0; i < cell.size(); ++i) {
      const config::ParsedQuantity size = config::parse_quantity(config::Dimension::size, cell[i].key());
      if (size.error)
        reader_.problem_at_key(cell[i], size.error->message, size.error->label, size.error->help);
      out.points.push_back({Bytes(size.exact), duration_of(cell[i], reader_)});
    }
  }

  std::string value_of(const std::string& column, const Node& cell) const {
    if (cell.is(Kind::string)) {
      // Not at_path(), because the columns' names contain dots.
      if (const Node named = root_.find("named").find(column).find(cell.text()))
        return config::to_text(named.value(), 0);
    }
    return config::to_text(cell.value(), 0);
  }

  Node root_;
  CaseFile& file_;
  Reader& reader_;
  std::string base_;
  std::vector<std::string> columns_;
  std::map<std::string, std::size_t> names_;  // to file_.cases
  std::set<std::string> compared_;            // what rows are compared with
  std::vector<std::pair<Node, std::size_t>> read_;
};

// The families of a row's predictions.
std::set<std::string> families_of(const Case& c) {
  std::set<std::string> families;
  if (c.published > Duration{}) families.insert(c.family);
  if (c.memory) families.insert(c.family + "/memory");
  if (!c.compared_with.empty()) families.insert(c.family + "/compared");
  for (const auto& [share, value] : c.shares) families.insert(c.family + '/' + name_of(share));
  for (const Point& point : c.points) families.insert(band_of(c.family, point.size));
  return families;
}

bool names(const std::string& word, const CaseFile& file, const Case& c) {
  return word == file.name || word == c.family || word == c.name || families_of(c).contains(word);
}

void check_key(const Node& at, std::string_view what, const std::vector<std::string>& known, Reader& reader) {
  const std::string& key = at.key();
  if (config::is_remark(key) || std::find(known.begin(), known.end(), key) != known.end()) return;
  const auto close = closest(key, known);
  reader.problem_at_key(at, fmt::format("unknown {} \"{}\"", what, key),
                        close ? fmt::format("did you mean \"{}\"?", *close) : std::string(),
                        "known: " + join(known));
}

// A bar under another name than its family's would check nothing.
void check_keys(const Node& root, const CaseFile& file, Reader& reader) {
  static const std::vector<std::string> kKeys = {"description", "source", "bars",  "goals",   "left_out",
                                                 "scored",      "base",   "named", "columns", "rows"};
  for (std::size_t i = 0; i < root.size(); ++i) check_key(root[i], "key", kKeys, reader);
  if (!reader.ok()) return;  // a row that cannot be read may be the only one of its family
  std::set<std::string> families;
  for (const Case& c : file.cases) families.merge(families_of(c));
  const std::vector<std::string> known(families.begin(), families.end());
  for (const char* limits : {"bars", "goals"})
    if (const Node list = root.find(limits); list.is(Kind::object))
      for (std::size_t i = 0; i < list.size(); ++i) check_key(list[i], "family", known, reader);
}

// The library's cases that have one of these names; all without names.
std::vector<CaseFile> shipped_cases(const std::vector<std::string>& wanted, const config::Library& library) {
  std::vector<CaseFile> files;
  std::vector<std::string> known;
  for (const std::string& name : library.names("validation")) {
    files.push_back(read_case_file(library.find("validation", name)));
    known.push_back(name);
  }
  if (files.empty())
    throw ConfigError("there are no validation cases",
                      "they live in the folder validation of topsim's configs");
  if (wanted.empty()) return files;
  std::set<std::string> used;
  for (CaseFile& file : files) {
    std::set<std::string> kept;
    for (const Case& c : file.cases) {
      for (const std::string& word : wanted) {
        if (!names(word, file, c)) continue;
        kept.insert({c.name, c.compared_with});
        used.insert(word);
      }
    }
    std::erase_if(file.cases, [&](const Case& c) { return !kept.contains(c.name); });
  }
  for (const std::string& word : wanted) {
    if (used.contains(word)) continue;
    const auto close = closest(word, known);
    throw ConfigError("no validation case, family or file \"" + word + '"',
                      (close ? "did you mean " + *close + "? " : std::string()) + "files: " + join(known));
  }
  std::erase_if(files, [](const CaseFile& file) { return file.cases.empty(); });
  return files;
}

// Rows of two files under one bar would be neither's.
void refuse_shared_families(const std::vector<CaseFile>& files) {
  std::map<std::string, std::string> owners;
  for (const CaseFile& file : files) {
    const std::string path = (std::filesystem::path(file.directory) / (file.name + ".json")).string();
    for (const Case& c : file.cases)
      if (const std::string& owner = owners.emplace(c.family, path).first->second; owner != path)
        throw ConfigError(fmt::format("family {} is in two files: {} and {}", c.family, owner, path),
                          "rename a file or the family, or validate them one by one");
  }
}
}  // namespace

std::string name_of(Share share) {
  constexpr std::array<const char*, kShares> kNames{"idle", "communication", "communication_busy",
                                                    "overlapped", "communication_of_kernels"};
  return kNames.at(static_cast<std::size_t>(share));
}

CaseFile read_case_file(const std::string& path) {
  const config::Document document = config::Document::read_file(path);
  const Node root = document.root();
  CaseFile file;
  file.name = std::filesystem::path(path).stem().string();
  file.directory = std::filesystem::path(path).parent_path().string();
  Reader reader;
  read_member(root, "description", file.description, reader);
  read_member(root, "source", file.source, reader);
  read_member(root, "bars", file.bars, reader);
  read_member(root, "goals", file.goals, reader);
  read_member(root, "left_out", file.left_out, reader);
  read_member(root, "scored", file.scored, reader);
  TableReader(root, file, reader).read();
  check_keys(root, file, reader);
  reader.finish();
  return file;
}

std::vector<CaseFile> find_cases(const std::vector<std::string>& wanted, const config::Library& library) {
  namespace fs = std::filesystem;
  const std::vector<std::string> shipped = library.names("validation");
  const auto is_shipped = [&](const std::string& name) {
    return std::find(shipped.begin(), shipped.end(), name) != shipped.end();
  };
  std::vector<CaseFile> files;
  std::vector<std::string> names_wanted;
  std::set<fs::path> read;
  std::error_code error;
  for (const std::string& word : wanted) {
    const fs::path path(word);
    if (path.extension() != ".json") {
      names_wanted.push_back(word);
    } else if (fs::is_regular_file(path, error)) {
      if (read.insert(fs::weakly_canonical(path, error)).second) files.push_back(read_case_file(word));
    } else if (is_shipped(path.stem().string()) &&  // configs/validation/NAME.json is NAME from anywhere
               (!path.has_parent_path() || path.parent_path().filename() == "validation")) {
      names_wanted.push_back(path.stem().string());
    } else {
      throw ConfigError("no such file: " + word, "topsim validate NAME finds the shipped files by name");
    }
  }
  if (wanted.empty() || !names_wanted.empty())
    for (CaseFile& file : shipped_cases(names_wanted, library))
      if (read.insert(fs::weakly_canonical(library.find("validation", file.name), error)).second)
        files.push_back(std::move(file));
  refuse_shared_families(files);
  return files;
}

std::string band_of(const std::string& family, Bytes size) {
  constexpr Bytes kMedium{std::int64_t{64} << 10}, kLarge{16'000'000};
  return family + (size < kMedium ? "/small" : size < kLarge ? "/medium" : "/large");
}
}  // namespace topsim::validation

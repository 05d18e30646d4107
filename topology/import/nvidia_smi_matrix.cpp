// A heading names the devices, and each has a row: its name, a cell for each device, affinities. Tabs or
// spaces, and some versions join wide cells ("PXBNODE"). Pasted matrices keep the "> " or "| " of the paste.
#include "topology/import/nvidia_smi_matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/error.hpp"
#include "topology/import/encoding.hpp"

namespace topsim::topology::smi {
namespace {

constexpr const char* kWhole = "keep every line whole, as nvidia-smi topo -m > topo.txt writes it";

struct Word {
  std::string_view text;
  int column = 1;
};

std::vector<Word> words_of(std::string_view line) {
  constexpr std::string_view kBetween = " \t\r|>";
  std::vector<Word> words;
  for (std::size_t begin = 0; (begin = line.find_first_not_of(kBetween, begin)) != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(kBetween, begin), line.size());
    words.push_back({line.substr(begin, end - begin), static_cast<int>(begin) + 1});
    begin = end;
  }
  return words;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_gpu(std::string_view word) {
  return word.starts_with("GPU") && word.size() > 3 && std::all_of(word.begin() + 3, word.end(), is_digit);
}
bool is_cpus(std::string_view word) {
  return is_digit(word.front()) && word.find_first_not_of("0123456789,-") == std::string_view::npos;
}

// The cells that a word joins; none if it is something else.
std::vector<std::string> cells_of(std::string_view word) {
  // Drivers up to 2017 say SOC for SYS.
  constexpr std::array<std::string_view, 7> kCells{"X", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC"};
  std::vector<std::string> cells;
  while (!word.empty()) {
    std::size_t length = 0;
    for (const std::string_view each : kCells)
      if (word.starts_with(each)) length = each.size();
    if (word.starts_with("NV")) {
      constexpr std::size_t kLongest = 5;  // three digits
      length = 2;
      while (length < std::min(word.size(), kLongest) && is_digit(word[length])) ++length;
      if (length == 2) length = 0;
    }
    if (length == 0) return {};
    const std::string_view cell = word.substr(0, length);
    cells.emplace_back(cell == "SOC" ? "SYS" : cell);
    word.remove_prefix(length);
  }
  return cells;
}

// Underlined headings and a byte order mark, blanked out so that columns stay.
std::string plain(std::string_view text) {
  std::string result(text);
  if (result.starts_with("\xef\xbb\xbf")) result.replace(0, 3, 3, ' ');
  for (std::size_t at = 0; (at = result.find("\x1b[", at)) != std::string::npos;) {
    const std::size_t end = result.find_first_not_of("0123456789;", at + 2);
    const std::size_t length = std::min(end, result.size() - 1) + 1 - at;
    result.replace(at, length, length, ' ');
  }
  return result;
}

class Matrix {
 public:
  explicit Matrix(const ImportOptions& options) : options_(options) {}

  std::vector<Row> read(std::string_view text) {
    for (std::size_t start = 0; start < text.size();) {
      const std::size_t end = std::min(text.find('\n', start), text.size());
      ++number_;
      line_ = text.substr(start, end - start);
      start = end + 1;
      if (line_.find("Legend") != std::string_view::npos) break;
      line(words_of(line_));
    }
    if (std::none_of(rows_.begin(), rows_.end(), [](const Row& row) { return row.is_gpu(); }))
      fail(0, 0, "no GPU row found", "expected the matrix that nvidia-smi topo -m prints");
    in_order();
    square();
    return std::move(rows_);
  }

 private:
  [[noreturn]] void fail(int line, int column, std::string message, std::string help) const {
    const bool here = line > 0 && line == number_;
    throw ConfigError({Problem{{options_.name, line, column, 1},
                               {},
                               std::move(message),
                               {},
                               std::move(help),
                               here ? std::string(line_) : std::string()}});
  }

  void line(const std::vector<Word>& words) {
    if (words.empty()) return;
    const bool cells = words.size() > 1 && !cells_of(words[1].text).empty();
    if (!cells && is_gpu(words[0].text) && heading_.empty() && rows_.empty()) return heading(words);
    const bool named = std::find(heading_.begin(), heading_.end(), words[0].text) != heading_.end();
    if (named) return row(words);
    const bool numbered = std::any_of(words[0].text.begin(), words[0].text.end(), is_digit);
    if (!cells || !numbered) return;  // a prompt, a remark
    if (!heading_.empty())
      fail(number_, words[0].column,
           fmt::format("a row of {}, which the heading does not name", words[0].text), kWhole);
    row(words);
  }

  void heading(const std::vector<Word>& words) {
    for (const Word& word : words) {
      if (word.text == "CPU" || word.text == "NUMA" || word.text == "GPU" || word.text == "Affinity") break;
      if (std::find(heading_.begin(), heading_.end(), word.text) != heading_.end())
        fail(number_, word.column, fmt::format("the heading names {} twice", word.text), kWhole);
      heading_.emplace_back(word.text);
    }
  }

  void row(const std::vector<Word>& words) {
    Row row{std::string(words[0].text), {}, {}, number_};
    if (std::any_of(rows_.begin(), rows_.end(), [&](const Row& each) { return each.name == row.name; }))
      fail(number_, words[0].column, fmt::format("{} has two rows", row.name),
           "one machine is read: give the matrix of one");
    constexpr std::size_t kMost = 512;  // of one machine, with all its NICs' ports
    if (rows_.size() == kMost)
      fail(number_, words[0].column, fmt::format("more than {} devices", kMost), "one machine is read");
    std::size_t at = 1;
    for (; at < words.size() && (heading_.empty() || row.cells.size() < heading_.size()); ++at) {
      const std::vector<std::string> cells = cells_of(words[at].text);
      row.cells.insert(row.cells.end(), cells.begin(), cells.end());
      if (!cells.empty()) continue;
      if (is_cpus(words[at].text) || words[at].text == "N/A") break;
      fail(number_, words[at].column, fmt::format("\"{}\" is no cell of the matrix", words[at].text),
           "X, NV#, PIX, PXB, PHB, NODE, SYS or SOC; if the terminal broke the line: nvidia-smi topo -m > "
           "topo.txt");
    }
    if (!heading_.empty() && row.cells.size() != heading_.size())
      fail(number_, words[0].column,
           fmt::format("the row of {} has {} cells, and the heading names {} devices", row.name,
                       row.cells.size(), heading_.size()),
           kWhole);
    if (at < words.size() && words[at].text == "N/A") ++at;  // then the NUMA node may be told
    if (at < words.size() && is_cpus(words[at].text)) row.affinity = words[at].text;
    rows_.push_back(std::move(row));
  }

  void in_order() {
    if (heading_.empty()) return;
    const auto place = [&](const std::string& name) {
      return std::find(heading_.begin(), heading_.end(), name);
    };
    for (const std::string& name : heading_)
      if (std::none_of(rows_.begin(), rows_.end(), [&](const Row& row) { return row.name == name; }))
        fail(0, 0, fmt::format("the row of {} is missing, which the heading names", name),
             "the file is cut off: keep all that nvidia-smi topo -m prints");
    std::sort(rows_.begin(), rows_.end(),
              [&](const Row& a, const Row& b) { return place(a.name) < place(b.name); });
  }

  void square() const {
    for (std::size_t a = 0; a < rows_.size(); ++a) {
      const Row& row = rows_[a];
      if (row.cells.size() != rows_.size())
        fail(row.line, 1,
             fmt::format("the row of {} has {} cells, and the matrix {} rows", row.name, row.cells.size(),
                         rows_.size()),
             kWhole);
      for (std::size_t b = 0; b < rows_.size(); ++b)
        if ((row.cells[b] == "X") != (a == b))
          fail(row.line, 1,
               fmt::format("the row of {} has {} where the column of {} is", row.name, row.cells[b],
                           rows_[b].name),
               "X stands where a device's row meets its column, and only there");
    }
  }

  const ImportOptions& options_;
  std::vector<std::string> heading_;
  std::vector<Row> rows_;
  std::string_view line_;
  int number_ = 0;
};

}  // namespace

std::vector<Row> read_matrix(std::string_view text, const ImportOptions& options) {
  refuse_utf16(text, options.name);
  return Matrix(options).read(plain(text));
}
}  // namespace topsim::topology::smi

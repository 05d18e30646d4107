#include "sim/cli/table.hpp"

#include <algorithm>
#include <iostream>

#include "sim/cli/output_format.hpp"
#include "sim/report/text.hpp"

namespace topsim::cli {

void print_table(const TableRow& head, std::vector<TableRow> rows) {
  std::vector<std::size_t> widths;
  rows.insert(rows.begin(), head);
  const std::size_t columns = columns_for_people();
  for (std::size_t column = 0; column < head.size(); ++column) {
    std::size_t widest = 0;
    for (const TableRow& row : rows) widest = std::max(widest, report::width(row[column]));
    widths.push_back(widest);
  }
  constexpr std::size_t kLeast = 40, kIndent = 4;
  std::size_t before = 0;
  for (std::size_t column = 0; column + 1 < head.size(); ++column) before += widths[column] + 2;
  const bool narrow = before + std::min(kLeast, widths.back()) > columns;
  for (const TableRow& row : rows) {
    std::string line;
    if (narrow) {
      for (std::size_t column = 0; column + 1 < row.size(); ++column)
        line += (line.empty() ? "" : "  ") + row[column];
      for (const std::string& part : report::wrap(line, columns, kIndent)) std::cout << part << '\n';
      const std::string rest = std::string(kIndent, ' ') + row.back();
      for (const std::string& part : report::wrap(rest, columns, kIndent)) std::cout << part << '\n';
      continue;
    }
    for (std::size_t column = 0; column + 1 < row.size(); ++column)
      line += report::pad_right(row[column], widths[column] + 2);
    for (const std::string& part : report::wrap(line + row.back(), columns, before))
      std::cout << part << '\n';
  }
}
}  // namespace topsim::cli

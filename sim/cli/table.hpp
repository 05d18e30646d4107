// A table for people, and for grep and sort in a pipe.
#pragma once

#include <string>
#include <vector>

namespace topsim::cli {
using TableRow = std::vector<std::string>;

// On stdout, as wide as columns_for_people(). Only the last column is wrapped; where little room is left for
// it, an entry is its other columns, and under them the last.
void print_table(const TableRow& head, std::vector<TableRow> rows);
}  // namespace topsim::cli

// The committed tables of what NCCL itself chooses (tests/golden/nccl) and the boxes they are about.
#pragma once

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace topsim::test {

inline std::string golden(const std::string& name) {
  return TOPSIM_SOURCE_DIR "/tests/golden/nccl/" + name;
}

inline std::string text_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Rows of a CSV file without comments and without its header.
inline std::vector<std::vector<std::string>> rows_of(const std::string& path) {
  std::stringstream text(text_of(path));
  std::vector<std::vector<std::string>> rows;
  bool header = true;
  for (std::string line; std::getline(text, line);) {
    if (line.empty() || line.front() == '#') continue;
    if (std::exchange(header, false)) continue;
    std::vector<std::string> row;
    std::stringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) row.push_back(field);
    rows.push_back(std::move(row));
  }
  return rows;
}
}  // namespace topsim::test

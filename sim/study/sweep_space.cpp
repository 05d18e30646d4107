#include "sim/study/sweep_space.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "sim/base/error.hpp"
#include "sim/config/document.hpp"
#include "sim/config/reader.hpp"

namespace topsim::study {
namespace {
using config::Kind;
using config::Node;

std::vector<std::string> split_values(std::string_view text) {
  std::vector<std::string> values(1);
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\' && i + 1 < text.size()) {
        values.back() += c;
        ++i;
      } else if (c == '"') {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      values.emplace_back();
      continue;
    }
    values.back() += text[i];
  }
  return values;
}

// Splits a line of CSV; quoted cells may contain commas and doubled quotes.
std::vector<std::string> split_cells(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += line[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  return cells;
}

SweepSpace points_of_csv(const std::string& file, std::istream& stream) {
  SweepSpace space;
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (number == 1 && line.starts_with("\xef\xbb\xbf"))
      line.erase(0, 3);  // spreadsheets write a byte order mark
    if (line.empty() || line == "\r") continue;
    std::vector<std::string> cells = split_cells(line);
    if (space.paths.empty()) {
      space.paths = std::move(cells);
      for (std::size_t i = 1; i < space.paths.size(); ++i)
        if (std::find(space.paths.begin(), space.paths.begin() + static_cast<std::ptrdiff_t>(i),
                      space.paths[i]) != space.paths.begin() + static_cast<std::ptrdiff_t>(i))
          throw ConfigError(file + ":1 names " + space.paths[i] + " twice", "one column a path");
      continue;
    }
    if (cells.size() != space.paths.size()) {
      const auto plural = [](std::size_t n, const char* what) {
        return std::to_string(n) + what + (n == 1 ? "" : "s");
      };
      throw ConfigError(file + ':' + std::to_string(number) + " has " + plural(cells.size(), " cell") +
                            ", the first line names " + plural(space.paths.size(), " path"),
                        "cells with commas need quotes");
    }
    space.points.push_back(std::move(cells));
  }
  return space;
}

SweepSpace points_of_json(const std::string& file) {
  const config::Document document = config::Document::read_file(file);
  const Node list = document.root();
  config::Reader reader;
  SweepSpace space;
  if (!list.is(Kind::array)) reader.problem(list, "a list of points is expected", "", R"([{"PATH": VALUE}])");
  for (std::size_t i = 0; reader.ok() && i < list.size(); ++i) {
    const Node point = list[i];
    if (!point.is(Kind::object)) {
      reader.problem(point, "a point is an object", "", R"({"workload.plan.tp": 4})");
      break;
    }
    if (i == 0) {
      for (std::size_t k = 0; k < point.size(); ++k) space.paths.push_back(point[k].key());
    }
    std::vector<std::string> values;
    for (const std::string& path : space.paths) {
      const Node value = point.find(path);
      if (!value) {
        reader.problem(point, "this point leaves out \"" + path + "\", which the first one names");
        break;
      }
      values.push_back(config::to_text(value.value(), 0));
    }
    if (reader.ok() && point.size() != space.paths.size())
      reader.problem(point, "this point names more paths than the first one");
    space.points.push_back(std::move(values));
  }
  reader.finish();
  return space;
}
}  // namespace

std::vector<std::string> SweepSpace::assignments(std::size_t point) const {
  std::vector<std::string> result;
  for (std::size_t p = 0; p < paths.size(); ++p) result.push_back(paths[p] + '=' + points[point][p]);
  return result;
}

SweepSpace vary(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    throw ConfigError("--vary \"" + text + "\" needs PATH=V1,V2", "e.g. --vary workload.plan.tp=1,2,4,8");
  SweepSpace space;
  space.paths.push_back(text.substr(0, equals));
  for (std::string& value : split_values(std::string_view(text).substr(equals + 1))) {
    if (value.empty())
      throw ConfigError("--vary \"" + text + "\" has an empty value", "an empty string is written \"\"");
    space.points.push_back({std::move(value)});
  }
  return space;
}

SweepSpace read_points(const std::string& file) {
  SweepSpace space;
  if (std::filesystem::path(file).extension() == ".json") {
    space = points_of_json(file);
  } else {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) throw ConfigError("no such file: \"" + file + '"', "a list of points, JSON or CSV");
    space = points_of_csv(file, stream);
  }
  if (space.points.empty()) throw ConfigError(file + " holds no points", R"([{"PATH": VALUE}, ...])");
  return space;
}

SweepSpace product(const SweepSpace& slow, const SweepSpace& fast) {
  if (slow.paths.empty()) return fast;
  SweepSpace space{slow.paths, {}};
  for (const std::string& path : fast.paths) {
    if (std::find(slow.paths.begin(), slow.paths.end(), path) != slow.paths.end())
      throw ConfigError("\"" + path + "\" is varied twice", "put all its values into one --vary");
    space.paths.push_back(path);
  }
  space.points.reserve(slow.points.size() * fast.points.size());
  for (const auto& outer : slow.points) {
    for (const auto& inner : fast.points) {
      space.points.push_back(outer);
      space.points.back().insert(space.points.back().end(), inner.begin(), inner.end());
    }
  }
  return space;
}

config::Value value_of(const std::string& text) {
  try {
    return config::Document::parse(text, "value").root().value().copy();
  } catch (const ConfigError&) {
    return config::Value::of(std::string_view(text));
  }
}

std::string plain(const std::string& text) {
  const config::Value value = value_of(text);
  return value.kind == Kind::string ? value.text : config::to_text(value, 0);
}
}  // namespace topsim::study

// JSON Schemas of the files of configs/hardware, for who adds an entry in an editor.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace topsim::topology {

struct Schema {
  const char* name;  // of the file, without ".json"
  std::string (*make)(std::string_view name);
};
[[nodiscard]] std::span<const Schema> hardware_schemas();
}  // namespace topsim::topology

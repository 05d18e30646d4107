// The files of configs/hardware as they are written: sources, and sections of entries by id.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/config/object.hpp"

namespace topsim::topology {

// Each file's struct adds its sections.
struct HardwareFile {
  std::map<std::string, std::string> sources;
  std::map<std::string, std::vector<std::string>> also_called;
};

// The entries that people call so, by a file's "also_called"; capitals and marks are no difference.
[[nodiscard]] std::vector<std::string> entries_called(const config::Node& file, std::string_view name);

// The table of a file, which the caller adds the sections to.
template <class File>
[[nodiscard]] config::Object<File> hardware_file(std::string name, std::string description) {
  return config::Object<File>(std::move(name), std::move(description))
      .field("sources", &HardwareFile::sources,
             "texts that figures name: \"read: \", \"recalled: \", \"derived: \" or \"measured: \" and where "
             "from")
      .field("also_called", &HardwareFile::also_called,
             "names of an entry in shops, clouds and manuals: none is read, all are understood in errors");
}

// Calls each(entry as written, entry as read) for a section, in the order of their ids.
template <class T, class Each>
void for_each_entry(const config::Node& section, std::map<std::string, T>& entries, const Each& each) {
  for (auto& [id, entry] : entries) each(section.find(id), entry);
}

// The JSON Schema of a file, from the table that it is read with; beside its reader.
[[nodiscard]] std::string accelerators_schema(std::string_view name);
[[nodiscard]] std::string cables_schema(std::string_view name);
[[nodiscard]] std::string cpus_schema(std::string_view name);
[[nodiscard]] std::string fabrics_schema(std::string_view name);
[[nodiscard]] std::string links_schema(std::string_view name);
[[nodiscard]] std::string nics_schema(std::string_view name);
[[nodiscard]] std::string nodes_schema(std::string_view name);
[[nodiscard]] std::string prices_schema(std::string_view name);
[[nodiscard]] std::string reliability_schema(std::string_view name);
[[nodiscard]] std::string switches_schema(std::string_view name);
}  // namespace topsim::topology

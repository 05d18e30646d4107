#include "sim/scenario/read/directories.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace topsim::scenario {
namespace {
namespace fs = std::filesystem;

std::string beside(fs::path start) {
  std::error_code error;
  for (fs::path at = std::move(start); !at.empty(); at = at.parent_path()) {
    for (const fs::path& candidate : {at / "share/topsim/configs", at / "configs"}) {
      if (fs::is_directory(candidate / "hardware", error)) return candidate.string();
    }
    if (at == at.parent_path()) break;
  }
  return {};
}

fs::path this_library() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&config_directories), &info) == 0 || info.dli_fname == nullptr)
    return {};
  std::error_code error;
  return fs::canonical(info.dli_fname, error);
}
}  // namespace

std::vector<std::string> config_directories() {
  std::vector<std::string> directories;
  if (const char* path = std::getenv("TOPSIM_CONFIG_PATH")) {
    std::istringstream words(path);
    for (std::string word; std::getline(words, word, ':');) {
      if (!word.empty()) directories.push_back(word);
    }
  }
  std::error_code error;
  const auto known = [&](const std::string& found) {
    return std::any_of(directories.begin(), directories.end(), [&](const std::string& each) {
      std::error_code ignored;
      return fs::equivalent(each, found, ignored);
    });
  };
  for (const fs::path& start : {fs::path(fs::read_symlink("/proc/self/exe", error)), this_library()}) {
    const std::string found = start.empty() ? std::string() : beside(start.parent_path());
    if (found.empty()) continue;
    if (!known(found)) directories.push_back(found);
    break;
  }
  return directories;
}

std::vector<std::string> catalogue_layers(std::span<const std::string> directories) {
  std::vector<std::string> layers;
  std::error_code error;
  for (const std::string& directory : directories)
    if (fs::is_directory(fs::path(directory) / "hardware", error)) layers.push_back(directory);
  return layers;
}
}  // namespace topsim::scenario

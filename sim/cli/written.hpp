// "wrote report.html, run.pftrace" on stderr: whoever asked for files is told where they are.
#pragma once

#include <initializer_list>
#include <iostream>
#include <string>

namespace topsim::cli {

// Once all is said on stdout. Empty names are files that nobody asked for.
inline void say_written(bool quiet, std::initializer_list<std::string> files) {
  std::string names;
  for (const std::string& file : files)
    if (!file.empty()) names += (names.empty() ? "" : ", ") + file;
  if (!quiet && !names.empty()) std::cerr << "wrote " << names << '\n';
}
}  // namespace topsim::cli

// "wrote report.html, run.pftrace" on stderr tells users where their files are.
#pragma once

#include <initializer_list>
#include <iostream>
#include <string>

namespace topsim::cli {

// Called after all output to stdout. Empty names are files that were not asked for.
inline void say_written(bool quiet, std::initializer_list<std::string> files) {
  std::string names;
  for (const std::string& file : files)
    if (!file.empty()) names += (names.empty() ? "" : ", ") + file;
  if (!quiet && !names.empty()) std::cerr << "wrote " << names << '\n';
}
}  // namespace topsim::cli

// "wrote report.html, run.pftrace" on stderr: whoever asked for files is told where they are.
#pragma once

#include <iostream>
#include <string>

namespace topsim::cli {

class Written {
 public:
  explicit Written(bool quiet) : quiet_(quiet) {}
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;
  void add(const std::string& file) { files_ += (files_.empty() ? "" : ", ") + file; }
  // Once all is said on stdout.
  void say() const {
    if (!quiet_ && !files_.empty()) std::cerr << "wrote " << files_ << '\n';
  }

 private:
  bool quiet_;
  std::string files_;
};
}  // namespace topsim::cli

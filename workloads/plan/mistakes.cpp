#include "workloads/plan/parts.hpp"

namespace topsim::workloads {

void Mistakes::add(std::string path, std::string message, std::string help) {
  Problem problem;
  problem.path = "workload." + std::move(path);
  problem.message = std::move(message);
  problem.help = std::move(help);
  problems_.push_back(std::move(problem));
}

void Mistakes::finish() const {
  if (!problems_.empty()) throw ConfigError(problems_);
}
}  // namespace topsim::workloads

// Refuses outputs that would overwrite an input or another output, or whose name is of another kind: before
// the command simulates.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/scenario.hpp"

namespace topsim::cli {

enum class OutputKind { page, trace, scenario, other };

struct Output {
  const char* option;  // "--html"
  std::string file;    // empty: not asked for
  OutputKind kind = OutputKind::other;
};

struct Inputs {
  std::string what;  // "the scenario": its name in messages
  std::vector<std::string> files;

  void add(const scenario::Scenario& scenario);  // what it includes, and its trace
};

void check_outputs(const Inputs& inputs, const std::vector<Output>& outputs);
// The files of a run's --out DIR.
void check_folder(const Inputs& inputs, const std::string& directory);
}  // namespace topsim::cli

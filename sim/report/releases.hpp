// Which release of its framework a run took. A framework that is named alone ("megatron") means a release
// that depends on the accelerators and on settings (workloads::set_of), and releases differ by more than most
// settings do: runs that are compared should be of one.
#pragma once

#include <set>
#include <string>

#include "sim/report/result.hpp"

namespace topsim::report {
struct Release {
  std::string name;      // "megatron@2024-core0.6"; empty: no framework has a part in it
  bool assumed = false;  // the scenario names the framework alone
};
[[nodiscard]] Release release_of(const Result& result);

// The releases of the first framework that is there with releases of several years; empty where none is. A
// set for GPUs beside one for TPUs is no other year.
[[nodiscard]] std::set<std::string> of_several_years(const std::set<std::string>& releases);

// "points are assumed to run megatron@2023 or megatron@2024, ...": what it means, and what gives all of them
// one. Empty where there are none.
[[nodiscard]] std::string several_releases(const std::set<std::string>& releases);
}  // namespace topsim::report

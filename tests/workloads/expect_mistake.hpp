// That a plan for eight accelerators has one mistake, where it is, and what would do.
#pragma once

#include <gmock/gmock.h>

#include <string>

#include "sim/base/error.hpp"
#include "workloads/plan.hpp"

namespace topsim::workloads::testing {

inline void expect_mistake(const WorkloadSpec& workload, const std::string& path, const std::string& help) {
  try {
    (void)resolve(workload, 8);
    FAIL() << path << ": accepted";
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.problems().size(), 1u) << error.what();
    EXPECT_EQ(error.problems()[0].path, "workload." + path);
    EXPECT_THAT(error.problems()[0].help, ::testing::HasSubstr(help));
  }
}
}  // namespace topsim::workloads::testing

#include "topology/generation.hpp"

#include <gtest/gtest.h>

namespace topsim::topology::generation_test {

// V100, A100, RTX 3090, L40S, H100, B200, GB300, RTX 5090; and another maker's, which has no capability.
TEST(Generation, FollowsTheComputeCapability) {
  const struct {
    int capability;
    bool nvidia, before_ampere, from_ampere, a100, hopper, from_hopper, from_blackwell, data_center_blackwell;
    int succeeded;
  } rows[] = {
      {0, false, false, false, false, false, false, false, false, 0},
      {70, true, true, false, false, false, false, false, false, 2020},
      {80, true, false, true, true, false, false, false, false, 2022},
      {86, true, false, true, false, false, false, false, false, 2022},
      {89, true, false, true, false, false, false, false, false, 2025},
      {90, true, false, true, false, true, true, false, false, 2024},
      {100, true, false, true, false, false, true, true, true, 0},
      {103, true, false, true, false, false, true, true, true, 0},
      {120, true, false, true, false, false, true, true, false, 0},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.capability);
    Accelerator accelerator;
    accelerator.compute_capability = row.capability;
    EXPECT_EQ(is_nvidia(accelerator), row.nvidia);
    EXPECT_EQ(is_before_ampere(accelerator), row.before_ampere);
    EXPECT_EQ(is_from_ampere(accelerator), row.from_ampere);
    EXPECT_EQ(is_a100(accelerator), row.a100);
    EXPECT_EQ(is_hopper(accelerator), row.hopper);
    EXPECT_EQ(is_from_hopper(accelerator), row.from_hopper);
    EXPECT_EQ(is_from_blackwell(accelerator), row.from_blackwell);
    EXPECT_EQ(is_data_center_blackwell(accelerator), row.data_center_blackwell);
    EXPECT_EQ(succeeded_in(accelerator), row.succeeded);
  }
}
}  // namespace topsim::topology::generation_test

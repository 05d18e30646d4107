#include "sim/report/releases.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace topsim::report::releases_test {
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Release release(const std::string& scenario, const std::string& left_open) {
  Result result;
  result.scenario = scenario;
  result.left_open = left_open;
  return release_of(result);
}

TEST(Releases, ARunsReleaseIsAssumedWhereItsScenarioNamesTheFrameworkAlone) {
  const Release assumed =
      release(R"({"workload": {"framework": "megatron"}})", R"({"framework": "megatron@2024"})");
  EXPECT_EQ(assumed.name, "megatron@2024");
  EXPECT_TRUE(assumed.assumed);
  const Release year = release(R"({"workload": {"framework": "megatron@2020"}})",
                               R"({"framework": "megatron@2021"})");  // a year's own set
  EXPECT_EQ(year.name, "megatron@2021");
  EXPECT_FALSE(year.assumed);
  EXPECT_EQ(release(R"({"workload": {"framework": "megatron@2024"}})", "{}").name, "megatron@2024");
  for (const char* trace : {R"({"workload": {"trace": {}, "framework": "megatron"}})", "{}", "", "[1]"})
    EXPECT_FALSE(release(trace, "{}").assumed) << trace;
}

TEST(Releases, OnlyYearsOfOneFrameworkAreApart) {
  EXPECT_THAT(of_several_years({"", "megatron@2023", "megatron@2024-core0.6", "fsdp@2025-eager"}),
              ElementsAre("megatron@2023", "megatron@2024-core0.6"));
  EXPECT_THAT(of_several_years({"megatron@2025", "megatron@2025-fsdp", "fsdp@2024"}), IsEmpty());
  EXPECT_THAT(of_several_years({"maxtext@2025", "maxtext@2024-gpu"}), IsEmpty());  // GPUs beside TPUs
  EXPECT_THAT(of_several_years({"", "megatron"}), IsEmpty());
}

TEST(Releases, ASentenceNamesThemAndTheNewestAsWhatGivesAllOne) {
  EXPECT_EQ(
      several_releases({"megatron@2023", "megatron@2024"}),
      "points are assumed to run megatron@2023 or megatron@2024: they differ by the release, too; --set "
      "workload.framework=megatron@2024 gives all of them one");
  EXPECT_EQ(several_releases({}), "");
}
}  // namespace topsim::report::releases_test

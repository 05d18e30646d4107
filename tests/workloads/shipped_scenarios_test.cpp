// Every scenario in configs/ is a valid program that fits its accelerators.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "sim/base/error.hpp"
#include "sim/scenario/read/read.hpp"
#include "sim/scenario/scenario.hpp"
#include "tests/workloads/replay.hpp"
#include "topology/build.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::shipped_scenarios_test {

const std::string kConfigs = TOPSIM_SOURCE_DIR "/configs";

class ShippedScenario : public ::testing::TestWithParam<std::string> {};

TEST_P(ShippedScenario, IsAValidProgramThatFits) {
  const config::Library library({kConfigs});
  const auto catalogue = topology::Catalogue::load(kConfigs);
  const scenario::Scenario scenario = scenario::read_scenario(kConfigs + "/" + GetParam(), {}, library);
  const WorkloadSpec& what = scenario.workload;
  const auto cluster = topology::build(scenario.topology, catalogue);
  const auto accelerators = static_cast<std::uint32_t>(cluster.accelerators().size());
  const auto& accelerator = catalogue.accelerator(cluster.model_of(cluster.accelerators().front()));
  EXPECT_NO_THROW(require_fit(what, accelerator, accelerators));

  const auto program = training_step(what, cluster, catalogue);
  program::validate(program);
  // Without a network the step is kernels and launches. Its utilisation is below the peak and above a tenth
  // of it. A decode step may be lower: it reads all weights for 64 rows, where an H100 needs 295 to be
  // limited by compute.
  const auto result = testing::free_network().run(program);
  const double utilisation = program.facts.model_flops.value() / seconds(result.step) / accelerators /
                             program.facts.peak_per_accelerator.value();
  RecordProperty("utilisation", std::to_string(utilisation));
  EXPECT_GT(utilisation, what.task == Task::decode ? 0.05 : 0.1);
  EXPECT_LT(utilisation, 0.9);
}

std::vector<std::string> shipped() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kConfigs))
    if (entry.path().extension() == ".json") names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}
std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Configs, ShippedScenario, ::testing::ValuesIn(shipped()), test_name);
}  // namespace topsim::workloads::shipped_scenarios_test

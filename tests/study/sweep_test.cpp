#include "sim/study/sweep.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sim/base/error.hpp"
#include "sim/scenario/read/read.hpp"
#include "sim/scenario/run/simulate.hpp"
#include "sim/study/sweep_database.hpp"
#include "sim/study/sweep_figures.hpp"
#include "sim/study/sweep_text.hpp"
#include "tests/study/two_boxes.hpp"

namespace topsim::study::sweep_test {
using testing::Each;
using testing::HasSubstr;

class Sweeps : public testing::Test {
 protected:
  void SetUp() override {
    base_.catalogue = &catalogue_;
    base_.inputs = inputs_digest(std::vector<std::string>{"configs"});
    base_.read = [this](std::span<const std::string> assignments) {
      return scenario::parse_scenario(kTwoBoxes, "two", assignments, library_);
    };
    std::filesystem::remove(file_);
  }
  std::string csv(const SweepSpace& space, SweepStore& store, int jobs) {
    run_sweep(space, base_, store, jobs, progress_);
    return sweep_csv({"two", space, store.rows(), 0, {}, true});
  }

  config::Library library_{{"configs"}};
  topology::Catalogue catalogue_ = topology::Catalogue::load("configs");
  SweepBase base_;
  SweepProgress progress_;
  std::string file_ = testing::TempDir() + "/sweep_" +
                      testing::UnitTest::GetInstance()->current_test_info()->name() + ".sqlite";
};

TEST_F(Sweeps, RowsDoNotDependOnHowManyRunAtOnceNorOnWhereTheyAreKept) {
  const SweepSpace space = product(vary("workload.plan.tp=1,2,8"), vary("run.seed=1,2"));
  const SweepIdentity identity = sweep_identity(space, base_);
  SweepStore in_memory("", space, identity), in_file(file_, space, identity);
  const std::string one = csv(space, in_memory, 1);
  EXPECT_EQ(csv(space, in_file, 2), one);
}

TEST_F(Sweeps, ARowSaysWhatARunOfItsPointSays) {
  const SweepSpace space = vary("workload.plan.micro_batch=1,2");
  SweepStore store("", space, {});
  run_sweep(space, base_, store, 1, progress_);
  const auto rows = store.rows();
  ASSERT_EQ(rows.size(), 2u);
  const std::string two = "workload.plan.micro_batch=2";
  const report::Result result =
      scenario::simulate(base_.read(std::span(&two, 1)), catalogue_, {}, nullptr).result;
  EXPECT_EQ(*rows[1].figures[sweep_figure("step_seconds")], static_cast<double>(result.step.count()) / 1e12);
  EXPECT_EQ(*rows[1].figures[sweep_figure("mfu")], result.throughput.mfu);
}

TEST_F(Sweeps, WhatCannotRunIsARowWithItsSentence) {
  const SweepSpace space = vary("workload.plan.pp=1,2");  // tp 8 x pp 2 x dp 2 = 32 accelerators, 16 exist
  SweepStore store("", space, {});
  run_sweep(space, base_, store, 2, progress_);
  const auto rows = store.rows();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_TRUE(rows[0].ok);
  EXPECT_FALSE(rows[1].ok);
  EXPECT_THAT(rows[1].message, HasSubstr("32 accelerators, the topology has 16"));
  EXPECT_EQ(progress_.failed, 1u);
}

TEST_F(Sweeps, AStoredRowIsNotRunAgain) {
  const SweepSpace space = vary("run.seed=1,2,3");
  const SweepIdentity identity = sweep_identity(space, base_);
  std::string first;
  {
    SweepStore store(file_, space, identity);
    first = csv(space, store, 2);
    EXPECT_EQ(progress_.found, 0u);
  }
  SweepStore store(file_, space, identity);
  EXPECT_EQ(store.stored_before(), 3u);
  EXPECT_EQ(csv(space, store, 2), first);
  EXPECT_EQ(progress_.found, 3u);
}

TEST_F(Sweeps, AGridWithOneMoreValueRunsOnlyWhatIsNew) {
  for (const char* values : {"run.seed=1,2", "run.seed=0,1,2"}) {
    const SweepSpace space = vary(values);
    SweepStore store(file_, space, sweep_identity(space, base_));
    run_sweep(space, base_, store, 1, progress_);
    EXPECT_EQ(store.rows().size(), space.points.size());
  }
  EXPECT_EQ(progress_.found, 2u);
}

TEST_F(Sweeps, PointsThatLeaveTheTableAreCounted) {
  for (const auto& [values, left] :
       {std::pair{"run.seed=1,2,3", 0u}, {"run.seed=3,4", 2u}, {"run.seed=4,3,5", 0u}}) {
    const SweepSpace space = vary(values);
    SweepStore store(file_, space, sweep_identity(space, base_));
    EXPECT_EQ(store.left_out(), left) << values;
    run_sweep(space, base_, store, 1, progress_);
  }
  EXPECT_EQ(progress_.found, 3u);  // 3, then 3 and 4
}

TEST_F(Sweeps, TheTableOfAnotherScenarioOrOfOtherPathsIsNotReplaced) {
  const SweepSpace space = vary("run.seed=1");
  const std::string rows =
      csv(space, *std::make_unique<SweepStore>(file_, space, sweep_identity(space, base_)), 1);
  const SweepSpace other = vary("run.steps=1");
  EXPECT_THROW(SweepStore(file_, other, sweep_identity(other, base_)), ConfigError);
  const auto given = base_.read;
  base_.read = [given](std::span<const std::string> assignments) {
    std::vector<std::string> all{"workload.plan.micro_batch=2"};
    all.insert(all.end(), assignments.begin(), assignments.end());
    return given(all);
  };
  EXPECT_THROW(SweepStore(file_, space, sweep_identity(space, base_)), ConfigError);
  base_.read = given;
  SweepStore store(file_, space, sweep_identity(space, base_));
  EXPECT_EQ(csv(space, store, 1), rows);
  EXPECT_EQ(progress_.found, 1u);
}

// The path of a Chakra trace is the prefix of its files, not a file.
TEST_F(Sweeps, ATraceWhoseFilesChangedIsRunAgain) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "sweep_traces";
  std::filesystem::create_directories(folder);
  const auto write = [&](const std::string& bytes) {
    std::ofstream(folder / "job.0.et", std::ios::binary) << bytes;
  };
  base_.read = [&](std::span<const std::string>) {
    scenario::Scenario scenario = scenario::parse_scenario(kTwoBoxes, "two", {}, library_);
    scenario.workload.trace.emplace().path = (folder / "job").string();
    return scenario;
  };
  const auto key = [&] { return point_key(base_, {}); };
  write("one");
  const std::string first = key();
  EXPECT_EQ(key(), first);
  write("two");
  EXPECT_NE(key(), first);
  write("one");
  std::ofstream(folder / "job.json") << "{}";  // process groups, read if they lie beside the trace
  EXPECT_NE(key(), first);
  std::filesystem::remove_all(folder);
}

TEST_F(Sweeps, PointsThatAreTheSameScenarioRunOnce) {
  // The same value twice is the same scenario. (dp left out and dp = 2, with tp 8 on 16 accelerators, are the
  // same job but not the same scenario.)
  const SweepSpace space = vary("run.seed=5,5,5");
  SweepStore store("", space, {});
  run_sweep(space, base_, store, 1, progress_);
  EXPECT_EQ(progress_.found, 2u);
  EXPECT_EQ(store.rows().size(), 3u);
}

TEST_F(Sweeps, AStoppedSweepKeepsWholeRowsOnly) {
  const SweepSpace space = vary("run.seed=1,2,3,4");
  SweepStore store("", space, {});
  progress_.stop = true;
  run_sweep(space, base_, store, 2, progress_);
  EXPECT_TRUE(store.rows().empty());
}

TEST_F(Sweeps, PathsAndValuesThatNoScenarioHasAreRefusedAtOnce) {
  for (const char* bad : {"workload.plan.tpp=1", "workload.plan.tp=many", "topology.nods=1"})
    EXPECT_THROW(check_values(vary(bad), base_), ConfigError) << bad;
  EXPECT_NO_THROW(check_values(vary("workload.plan.tp=3,5"), base_));  // the plan is wrong, not the value
}

TEST_F(Sweeps, DataParallelismOfTheFileFollowsWhereTheSpaceChangesTheReplica) {
  const SweepSpace space = vary("workload.plan.tp=4,8");
  ASSERT_TRUE(let_data_parallel_follow(space, base_));
  SweepStore store("", space, {});
  run_sweep(space, base_, store, 2, progress_);
  for (const SweepRow& row : store.rows()) EXPECT_TRUE(row.ok) << row.message;
  EXPECT_FALSE(let_data_parallel_follow(vary("run.seed=1"), base_));
  EXPECT_FALSE(let_data_parallel_follow(product(space, vary("workload.plan.dp=2")), base_));
}

TEST_F(Sweeps, DataParallelismThatIsSetHoldsHoweverItWasWritten) {
  const auto follows = [&](const std::string& setting) {
    SweepBase base = base_;
    base.read = [this, setting](std::span<const std::string> assignments) {
      std::vector<std::string> all{setting};
      all.insert(all.end(), assignments.begin(), assignments.end());
      return scenario::parse_scenario(kTwoBoxes, "two", all, library_);
    };
    return let_data_parallel_follow(vary("workload.plan.tp=4,8"), base);
  };
  EXPECT_FALSE(follows("workload.plan.dp=2"));
  EXPECT_FALSE(follows(R"(workload.plan={"dp": 2, "micro_batch": 1, "global_batch": 8})"));
  EXPECT_TRUE(follows("workload.plan.micro_batch=2"));  // its dp is the file's
}

// The base names megatron alone. On V100 that is the set of 2021, on H100 the newest; a longer sequence on an
// A100 wants FlashAttention, which came later.
TEST_F(Sweeps, PointsMayBeAssumedToRunOtherReleases) {
  using Releases = std::set<std::string>;
  const SweepSpace machines = vary("topology.node=hgx-h100,dgx-1-v100,hgx-h200");
  EXPECT_EQ(assumed_releases(machines, base_), (Releases{"megatron@2021", "megatron@2025"}));
  const SweepSpace chips = vary("topology.node.accelerator=h100-sxm5,a100-sxm4-80gb");
  EXPECT_EQ(assumed_releases(chips, base_), (Releases{"megatron@2023", "megatron@2025"}));
  const SweepSpace lengths = product(vary("topology.node=dgx-a100"), vary("workload.sequence=2048,8192"));
  EXPECT_EQ(assumed_releases(lengths, base_), (Releases{"megatron@2023", "megatron@2024"}));
  EXPECT_EQ(assumed_releases(vary("workload.plan.tp=1,2"), base_), Releases{});
  const SweepSpace both = product(machines, vary("workload.framework=internevo,megatron"));
  EXPECT_EQ(assumed_releases(both, base_), (Releases{"megatron@2021", "megatron@2025"}));
  const SweepSpace stated = product(machines, vary("workload.framework=megatron@2023"));
  EXPECT_EQ(assumed_releases(stated, base_), Releases{});
}

// A graph of kernels, which none of the releases before 2024 has, is on an A100 another release's, too.
TEST_F(Sweeps, RowsSayWhichReleaseTheyRanWhereNobodyNamedOne) {
  const SweepSpace space =
      product(vary("topology.node=dgx-a100"), vary("workload.compute.cuda_graph=false,true"));
  SweepStore store(file_, space, {});
  run_sweep(space, base_, store, 2, progress_);
  SweepReport report{"two", space, store.rows(), 0, {}, true};
  ASSERT_EQ(report.rows.size(), 2u);
  EXPECT_EQ(report.rows[0].assumed_release, "megatron@2023");
  EXPECT_EQ(report.rows[1].assumed_release, "megatron@2024");
  report.assumed_releases = assumed_releases(report.rows);
  EXPECT_EQ(report.assumed_releases, assumed_releases(space, base_));
  constexpr std::size_t kWide = 400;
  const std::string table = sweep_table(report, 0, kWide);
  EXPECT_THAT(table, HasSubstr("assumed"));
  EXPECT_THAT(table, HasSubstr("\nnote: points are assumed to run megatron@2023 or megatron@2024"));
  EXPECT_THAT(sweep_json(report), HasSubstr("\"points are assumed to run megatron@2023 or"));
  EXPECT_THAT(sweep_csv(report), HasSubstr(",true,megatron@2023,"));
  const Database file(file_);
  Statement query(file, "SELECT assumed_release FROM rows");
  query.step();
  EXPECT_EQ(query.text(0), "megatron@2023");

  const SweepSpace stated = product(space, vary("workload.framework=megatron@2024"));
  SweepStore named("", stated, {});
  run_sweep(stated, base_, named, 2, progress_);
  report = {"two", stated, named.rows(), 0, {}, true};
  for (const SweepRow& row : report.rows) EXPECT_EQ(row.assumed_release, "");
  report.assumed_releases = assumed_releases(report.rows);
  EXPECT_THAT(sweep_table(report, 0, kWide), testing::Not(HasSubstr("assumed")));
  EXPECT_THAT(sweep_csv(report), HasSubstr(",true,,"));
}

TEST_F(Sweeps, TheCsvHasTheColumnsOfTheStoresView) {
  const SweepSpace space = vary("run.seed=1");
  SweepStore store(file_, space, {});
  const Database file(file_);
  Statement query(file, "SELECT name FROM pragma_table_info('rows')");
  std::string names;
  while (query.step()) names += (names.empty() ? "" : ",") + query.text(0);
  EXPECT_EQ(sweep_csv({"two", space, {}, 0, {}, true}), names + '\n');
}

TEST_F(Sweeps, AFileOfSomethingElseIsRefused) {
  const SweepSpace space = vary("run.seed=1");
  EXPECT_THROW(SweepStore("configs/8xH100-ib.json", space, {}), ConfigError);
  EXPECT_THROW(SweepStore("/no/such/folder/x.sqlite", space, {}), ConfigError);
  // A foreign database must stay as it is, including its journal.
  const auto file = std::filesystem::temp_directory_path() / "topsim-foreign.sqlite";
  std::filesystem::remove(file);
  Database(file.string()).run("CREATE TABLE theirs (x)");
  const auto bytes = [&] {
    std::ifstream in(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string before = bytes();
  EXPECT_THROW(SweepStore(file.string(), space, {}), ConfigError);
  EXPECT_EQ(bytes(), before);
  std::filesystem::remove(file);
}
}  // namespace topsim::study::sweep_test

#include "sim/scenario/scenario.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "sim/scenario/read/read.hpp"
#include "sim/scenario/read/schema.hpp"
#include "sim/scenario/read/tables.hpp"
#include "topology/catalogue/schemas.hpp"

namespace topsim::scenario::scenario_test {
namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path kRoot = TOPSIM_SOURCE_DIR;
const fs::path kFull = kRoot / "tests/scenario/data/full.json";

config::Library library() {
  return config::Library({(kRoot / "configs").string()});
}

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A temporary folder, removed at the end.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / "topsim-test") { fs::create_directories(path_); }
  ~Folder() { fs::remove_all(path_); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return (path_ / name).string();
  }

 private:
  fs::path path_;
};

TEST(Scenario, EveryShapeOfValueIsRead) {
  const Scenario s = read_scenario(kFull.string(), {}, library());
  EXPECT_EQ(s.name, "full");
  EXPECT_EQ(s.topology.node.use, "hgx-h100");
  EXPECT_EQ(s.topology.nodes, 8);
  EXPECT_EQ(s.topology.fabric.link.latency, Duration(700'000));
  EXPECT_EQ(s.topology.placement.nodes.size(), 8U);
  EXPECT_EQ(s.workload.model.layers, 40);
  EXPECT_EQ(s.workload.model.hidden, 8192);  // from configs/models/llama3-70b.json
  EXPECT_EQ(s.workload.plan.recompute->layers, 3);
  EXPECT_EQ(s.workload.precision.gemm, workloads::Precision::fp8);
  EXPECT_EQ(s.network.nccl.algorithm, collective::Algorithm::ring);
  EXPECT_EQ(s.network.nccl.nvls, false);
  EXPECT_EQ(s.network.packet.mtu, Bytes(4096));
  EXPECT_EQ(s.faults.at(0).lasts, Duration(1'000'000'000'000));
  EXPECT_EQ(s.run.seed, 7U);
}

TEST(Scenario, TheEchoReadsBackToItself) {
  const Scenario s = read_scenario(kFull.string(), {}, library());
  const std::string echo = to_json(s);
  EXPECT_EQ(to_json(parse_scenario(echo, "echo", {}, library())), echo);
}

TEST(Scenario, NcclsChoicesAreReadInItsOwnSpellingToo) {
  const auto read = [](const std::string& algorithm, const std::string& protocol) {
    const std::vector<std::string> changes = {"network.nccl.algorithm=" + algorithm,
                                              "network.nccl.protocol=" + protocol};
    return read_scenario(kFull.string(), changes, library()).network.nccl;
  };
  EXPECT_EQ(read("NVLSTree", "LL128").algorithm, collective::Algorithm::nvls_tree);
  EXPECT_EQ(read("Ring", "LL128").protocol, collective::Protocol::ll128);
  EXPECT_EQ(read("ring", "ll128").protocol, collective::Protocol::ll128);
  EXPECT_THROW((void)read("Rings", "LL128"), ConfigError);
}

TEST(Scenario, SetChangesWhatTheFileSays) {
  const std::vector<std::string> changes = {"topology.nodes=16", "topology.fabric.link=roce-400g",
                                            "workload.plan.tp=4", "network.model=analytic",
                                            "topology.fabric.link.latency=1 us"};
  const Scenario s = read_scenario(kFull.string(), changes, library());
  EXPECT_EQ(s.topology.nodes, 16);
  EXPECT_EQ(s.topology.fabric.link.use, "roce-400g");
  EXPECT_EQ(s.topology.fabric.link.latency, Duration(1'000'000));
  EXPECT_EQ(s.workload.plan.tp, 4);
  EXPECT_EQ(s.network.model, "analytic");
}

TEST(Scenario, AnErrorInSetShowsTheWordsOfTheCommandLine) {
  const std::vector<std::string> changes = {"workload.plan.tp=many"};
  try {
    (void)read_scenario(kFull.string(), changes, library());
    FAIL();
  } catch (const ConfigError& error) {
    const std::string picture = config::picture(error.problems());
    EXPECT_THAT(picture, HasSubstr("--set:1:18   at workload.plan.tp"));
    EXPECT_THAT(picture, HasSubstr(" 1 | workload.plan.tp=many\n"));
  }
}

TEST(Scenario, AFileMayBuildOnAnother) {
  const Folder folder;
  folder.write("base.json", content(kFull));
  folder.write("run.json", R"({"steps": 5, "seed": 9})");
  const std::string path = folder.write(
      "mine.json",
      R"({"file": "base.json", "topology": {"nodes": 16}, "run": {"file": "run.json", "seed": 3}})");
  const Scenario s = read_scenario(path, {}, library());
  EXPECT_EQ(s.topology.nodes, 16);
  EXPECT_EQ(s.topology.node.use, "hgx-h100");
  EXPECT_EQ(s.run.steps, 5);
  EXPECT_EQ(s.run.seed, 3U);
  EXPECT_EQ(s.run.warmup, 1);
}

TEST(Scenario, ANodeOfTheCatalogueIsAClusterOfOneAndNoScenario) {
  const std::vector<std::string> two = {"topology.nodes=2"};
  const Scenario box = read_cluster("hgx-h100", {}, library()),
                 boxes = read_cluster("hgx-h100", two, library());
  EXPECT_EQ(box.topology.node.use, "hgx-h100");
  EXPECT_EQ(box.topology.nodes, 1);
  EXPECT_EQ(box.name, "hgx-h100");
  EXPECT_EQ(boxes.topology.nodes, 2);
  try {
    (void)read_scenario("hgx-h100", {}, library());
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"hgx-h100\" is a node"));
  }
  try {
    (void)read_cluster("hgx-h10", {}, library());
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.problems().front().help, HasSubstr("did you mean the node hgx-h100?"));
  }
}

TEST(Scenario, IncludesThatGoRoundAreFoundOut) {
  const Folder folder;
  folder.write("a.json", R"({"file": "b.json"})");
  folder.write("b.json", R"({"file": "a.json"})");
  try {
    (void)read_scenario(folder.write("c.json", R"({"file": "a.json"})"), {}, library());
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.problems().front().message, HasSubstr("includes itself"));
  }
}

TEST(Scenario, AProblemFoundLaterGetsThePlaceInTheFile) {
  const Scenario s = read_scenario(kFull.string(), {}, library());
  std::vector<Problem> problems(1);
  problems[0].path = "workload.plan.dp";
  problems[0].message = "too many";
  const Problem found = located(ConfigError(std::move(problems)), s).problems().front();
  EXPECT_EQ(found.place.line, 10);
  EXPECT_THAT(found.source_line, HasSubstr("\"dp\": 4"));
}

// `topsim schema` is committed for editors. If this fails: build/release/topsim schema NAME > that file.
TEST(Schema, TheCommittedFilesAreThoseOfTheTables) {
  std::vector<std::string> names{"scenario", "workload", "model"};
  for (const topology::Schema& file : topology::hardware_schemas()) names.emplace_back(file.name);
  for (const std::string& name : names)
    EXPECT_EQ(content(kRoot / "configs/schema" / (name + ".schema.json")), schema(name)) << name;
}

// The schema prints the defaults of a table's struct alone; here it is part of another.
TEST(Schema, ItsDefaultsOfDcqcnAreThoseInForce) {
  EXPECT_EQ(config::write(network::packet::CongestionControl{}.dcqcn),
            config::write(network::packet::Dcqcn{}));
}

TEST(Schema, AnUnknownNameIsAnError) {
  EXPECT_THROW((void)schema("scenarios"), ConfigError);
}
}  // namespace topsim::scenario::scenario_test

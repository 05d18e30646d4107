// What `topsim bench` does with a forced algorithm or protocol.
#include "sim/scenario/bench.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "tests/topology/fixtures.hpp"

namespace topsim::scenario::bench_test {

using collective::Algorithm;
using collective::CollectiveKind;
using collective::Protocol;

collective::Choice ran(const char* node, int nodes, CollectiveKind kind,
                       const collective::Overrides& overrides, CollectiveForm form) {
  Scenario scenario;
  scenario.topology = topology::test::cluster(node, nodes, nodes > 1 ? "rail" : "none");
  scenario.network.model = "flow";
  scenario.network.nccl = overrides;
  scenario.network.collectives = form;
  return bench(scenario, topology::test::catalogue(), kind, {Bytes(1 << 20), Bytes(1 << 20), 2})[0].choice;
}

collective::Overrides forced(Algorithm algorithm, std::optional<Protocol> protocol = {}) {
  collective::Overrides overrides;
  overrides.algorithm = algorithm;
  overrides.protocol = protocol;
  return overrides;
}

// An A100's NVSwitches sum nothing, a broadcast has no tree, in whichever form it would be sent.
TEST(Bench, WhatIsForcedAndUnavailableIsRefusedInBothForms) {
  for (const CollectiveForm form : {CollectiveForm::pipelined, CollectiveForm::steps}) {
    EXPECT_THROW(ran("dgx-a100", 1, CollectiveKind::all_reduce, forced(Algorithm::nvls), form), ConfigError);
    EXPECT_THROW(ran("hgx-h100", 2, CollectiveKind::broadcast, forced(Algorithm::tree), form), ConfigError);
    EXPECT_THROW(ran("hgx-h100", 1, CollectiveKind::all_reduce, forced(Algorithm::nvls, Protocol::ll), form),
                 ConfigError);
  }
}

// Each names what it lacks, and no other's.
TEST(Bench, WhatIsRefusedSaysWhatItNeeds) {
  const auto help = [](CollectiveKind kind, Algorithm algorithm) {
    try {
      (void)ran("hgx-h100", 2, kind, forced(algorithm), CollectiveForm::pipelined);
    } catch (const ConfigError& error) {
      return error.problems()[0].help;
    }
    return std::string("it runs");
  };
  EXPECT_NE(help(CollectiveKind::all_gather, Algorithm::pat).find("one accelerator"), std::string::npos);
  EXPECT_NE(help(CollectiveKind::all_gather, Algorithm::tree).find("all-reduces alone"), std::string::npos);
  EXPECT_NE(help(CollectiveKind::all_reduce, Algorithm::nvls).find("sharp"), std::string::npos);
}

// NVLS in one box and PAT have no messages: a ring or a tree stands in, and the row says so.
TEST(Bench, WhatIsAvailableButHasNoMessagesIsStoodInFor) {
  EXPECT_EQ(ran("hgx-h100", 1, CollectiveKind::all_reduce, forced(Algorithm::nvls), CollectiveForm::pipelined)
                .algorithm,
            Algorithm::nvls);
  EXPECT_NE(ran("hgx-h100", 1, CollectiveKind::all_reduce, forced(Algorithm::nvls), CollectiveForm::steps)
                .algorithm,
            Algorithm::nvls);
  EXPECT_EQ(ran("h100x1", 4, CollectiveKind::all_gather, forced(Algorithm::pat), CollectiveForm::pipelined)
                .algorithm,
            Algorithm::pat);
  EXPECT_EQ(
      ran("h100x1", 4, CollectiveKind::all_gather, forced(Algorithm::pat), CollectiveForm::steps).algorithm,
      Algorithm::ring);
}

// Posting a message costs the host the same whatever it holds; only what a rank's NICs send meanwhile hides
// it.
TEST(Bench, AnAllToAllIsNoFasterWithMoreBytes) {
  Scenario scenario;
  scenario.topology = topology::test::cluster("a40-8gpu", 2, "rail");
  scenario.network.model = "flow";
  Duration before{};
  for (const BenchRow& row : bench(scenario, topology::test::catalogue(), CollectiveKind::all_to_all,
                                   {Bytes(8), Bytes(1 << 24), 4})) {
    EXPECT_GE(row.time, before) << row.size.value() << " bytes";
    before = row.time;
  }
}
}  // namespace topsim::scenario::bench_test

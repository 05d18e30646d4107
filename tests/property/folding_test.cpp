// Folding is exact (sim/fold/README.md): random clusters run folded and unfolded and must agree for every
// rank and link.
#include <gtest/gtest.h>

#include <cstdlib>

#include "sim/base/error.hpp"
#include "tests/property/per_item.hpp"
#include "tests/property/random_cluster.hpp"

namespace topsim::property::folding_test {

// The cases are split into shards that run side by side.
constexpr int kShards = 6;

class Folding : public testing::TestWithParam<int> {
 protected:
  static const topology::Catalogue& catalogue() {
    static const topology::Catalogue instance = topology::Catalogue::load(TOPSIM_SOURCE_DIR "/configs");
    return instance;
  }
  // Shared by all cases, since searching the channels of a node takes most of the time of a small one.
  static const std::shared_ptr<collective::Searches>& searches() {
    static const std::shared_ptr<collective::Searches> instance = collective::no_searches_yet();
    return instance;
  }

  void compare(Case c) {
    const topology::Topology topology = topology::build(c.topology, catalogue());
    disturb(c, topology, catalogue());
    SCOPED_TRACE(c.text);
    const topology::Router router(topology, c.options.seed);
    const collective::NcclModel nccl(router, {}, {}, searches());
    program::Program program = workloads::training_step(c.workload, topology, catalogue());
    const auto run = [&](bool fold) {
      executor::RunOptions options = c.options;
      options.fold = fold;
      try {
        return executor::simulate(program, router, nccl, options, nullptr);
      } catch (const ConfigError& error) {
        ADD_FAILURE() << error.what() << ": " << error.problems()[0].help;
        throw;
      }
    };
    const executor::Outcome a = run(true), b = run(false);
    folded_classes_ += a.ranks.size();
    unfolded_classes_ += b.ranks.size();
    const PerItem folded = spread(a, program.ranks), unfolded = spread(b, program.ranks);
    const double limit = allowed(program, unfolded);
    if (time_difference(folded, unfolded) > limit) {
      // Chaotic if one picosecond more on one op moves the unfolded run itself by more than that.
      program.classes[0].ops[0].duration += Duration(1);
      const PerItem shifted = spread(run(false), program.ranks);
      ASSERT_GT(time_difference(shifted, unfolded), limit)
          << "folding changed times by " << time_difference(folded, unfolded) << " ps";
      ++chaotic_;
      return;
    }
    EXPECT_LT(link_difference(folded, unfolded), 1e-9);
    ++compared_;
  }
  // Of at least `least` cases nearly all were compared, and they folded.
  void expect_compared(int least, double most_classes = 0.5) const {
    EXPECT_GE(compared_ + chaotic_, least);
    EXPECT_LE(chaotic_, (compared_ + chaotic_) / 40);
    EXPECT_LT(static_cast<double>(folded_classes_), most_classes * static_cast<double>(unfolded_classes_))
        << "the sample hardly folds: it does not test folding";
  }

  int compared_ = 0, chaotic_ = 0;
  std::size_t folded_classes_ = 0, unfolded_classes_ = 0;
};

TEST_P(Folding, AgreesWithTheUnfoldedRunForEveryRankAndLink) {
  const bool full = std::getenv("TOPSIM_FULL") != nullptr;
  const int cases = ((full ? 10000 : 300) + kShards - 1) / kShards;
  for (int n = 0; n < cases && !HasFailure(); ++n) {
    const int i = GetParam() * cases + n;
    // One case in sixteen has up to 512 ranks, the others up to 64, since unfolded runs take most of the
    // time.
    compare(random_case(static_cast<std::uint64_t>(i), i % 16 == 0 ? 64 : 8));
  }
  RecordProperty("chaotic", chaotic_);
  expect_compared(cases);
}

TEST_P(Folding, AgreesWhereReplicasLieAcrossNvlinkDomains) {
  const bool full = std::getenv("TOPSIM_FULL") != nullptr;
  const int cases = ((full ? 1000 : 24) + kShards - 1) / kShards;
  for (int n = 0; n < cases && !HasFailure(); ++n)
    compare(across_domains_case(static_cast<std::uint64_t>(GetParam() * cases + n)));
  expect_compared(cases, 0.95);  // hardly two replicas are alike
}

// Two nodes of eight NICs a group; of three groups and more, those between two divide over the others, too.
TEST_P(Folding, AgreesOnDragonflies) {
  const bool full = std::getenv("TOPSIM_FULL") != nullptr;
  const int cases = ((full ? 1000 : 60) + kShards - 1) / kShards;
  for (int n = 0; n < cases && !HasFailure(); ++n) {
    Case c = random_case(static_cast<std::uint64_t>(GetParam() * cases + n), 16);
    if (c.topology.nodes == 1) continue;
    topology::FabricSpec fabric;
    fabric.kind = topology::FabricKind::dragonfly;
    fabric.link = c.topology.fabric.link;
    fabric.routing = topology::Routing::adaptive;
    const int groups = std::max(3, c.topology.nodes / 2 + 1);
    fabric.dimensions = {groups, 2, 8, groups / 2 + 1};
    c.topology.fabric = fabric;
    compare(c);
  }
  expect_compared(cases / 2);  // the others have one node
}
INSTANTIATE_TEST_SUITE_P(shard, Folding, testing::Range(0, kShards));
}  // namespace topsim::property::folding_test

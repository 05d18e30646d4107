// Folding is exact (sim/fold/README.md): random clusters run folded and unfolded and must agree for every
// rank and link.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>

#include "sim/base/error.hpp"
#include "tests/property/random_cluster.hpp"

namespace topsim::property::folding_test {

struct PerItem {
  std::vector<double> ranks;  // picoseconds: busy, communication, hidden of it, idle by reason; rank by rank
  std::map<std::uint32_t, double> bytes;  // by link
  double end = 0;                         // picoseconds
  std::uint64_t events = 0;
};

PerItem spread(const executor::Outcome& outcome, std::uint32_t ranks) {
  constexpr std::size_t kColumns = executor::kReasons + 3;
  PerItem result;
  result.ranks.assign(ranks * kColumns, 0.0);
  for (const auto& cls : outcome.ranks) {
    for (RankId member : cls.members) {
      double* row = &result.ranks[member.index() * kColumns];
      for (const auto& step : cls.steps) {
        row[0] += static_cast<double>(step.busy.count());
        row[1] += static_cast<double>(step.communication.count());
        row[2] += static_cast<double>(step.hidden_communication.count());
        for (std::size_t r = 0; r < executor::kReasons; ++r)
          row[r + 3] += static_cast<double>(step.idle[r].count());
      }
    }
  }
  for (const auto& cls : outcome.links) {
    for (LinkId member : cls.members) result.bytes[member.value] = cls.bytes;
  }
  result.end = static_cast<double>(outcome.end.time_since_epoch().count());
  result.events = outcome.events;
  return result;
}

// Largest difference of any time, picoseconds.
double time_difference(const PerItem& a, const PerItem& b) {
  double worst = std::abs(a.end - b.end);
  for (std::size_t i = 0; i < a.ranks.size(); ++i) worst = std::max(worst, std::abs(a.ranks[i] - b.ranks[i]));
  return worst;
}

double byte_difference(const PerItem& a, const PerItem& b) {
  double worst = a.bytes.size() == b.bytes.size() ? 0 : 1;
  for (const auto& [link, bytes] : a.bytes) {
    const auto other = b.bytes.find(link);
    worst = std::max(worst,
                     other == b.bytes.end() ? 1.0 : std::abs(other->second - bytes) / std::max(bytes, 1.0));
  }
  return worst;
}

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
    // Times are rounded to picoseconds at every event of a chain. A chain has at most the ops of all rank
    // programs in a row.
    std::size_t chain = 0;
    for (const auto& cls : program.classes) chain += cls.ops.size();
    const double allowed = std::max(1e-9 * unfolded.end, static_cast<double>(2 * chain));
    if (time_difference(folded, unfolded) > allowed) {
      // Chaotic if one picosecond more on one op moves the unfolded run itself by more than that.
      program.classes[0].ops[0].duration += Duration(1);
      const PerItem shifted = spread(run(false), program.ranks);
      ASSERT_GT(time_difference(shifted, unfolded), allowed)
          << "folding changed times by " << time_difference(folded, unfolded) << " ps";
      ++chaotic_;
      return;
    }
    EXPECT_LT(byte_difference(folded, unfolded), 1e-9);
  }

  int chaotic_ = 0;
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
  EXPECT_LE(chaotic_, (cases + 49) / 50);
  EXPECT_LT(folded_classes_, unfolded_classes_ / 2) << "the sample hardly folds: it does not test folding";
}

TEST_P(Folding, AgreesWhereReplicasLieAcrossNvlinkDomains) {
  const bool full = std::getenv("TOPSIM_FULL") != nullptr;
  const int cases = ((full ? 1000 : 24) + kShards - 1) / kShards;
  for (int n = 0; n < cases && !HasFailure(); ++n)
    compare(across_domains_case(static_cast<std::uint64_t>(GetParam() * cases + n)));
  EXPECT_LE(chaotic_, (cases + 49) / 50);
}
// Two nodes of eight NICs a group; of three groups and more, those between two divide over the others, too.
TEST_P(Folding, AgreesOnDragonflies) {
  const bool full = std::getenv("TOPSIM_FULL") != nullptr;
  const int cases = ((full ? 1000 : 60) + kShards - 1) / kShards;
  for (int n = 0; n < cases && !HasFailure(); ++n) {
    Case c = random_case(static_cast<std::uint64_t>(GetParam() * cases + n), 16);
    if (c.topology.nodes == 1) continue;
    topology::FabricSpec fabric;
    fabric.kind = "dragonfly";
    fabric.link = c.topology.fabric.link;
    fabric.routing = topology::Routing::adaptive;
    const int groups = std::max(3, c.topology.nodes / 2 + 1);
    fabric.dimensions = {groups, 2, 8, groups / 2 + 1};
    c.topology.fabric = fabric;
    compare(c);
  }
  EXPECT_LE(chaotic_, (cases + 49) / 50);
}
INSTANTIATE_TEST_SUITE_P(shard, Folding, testing::Range(0, kShards));
}  // namespace topsim::property::folding_test

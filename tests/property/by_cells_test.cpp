// Folding starts from whole nodes and switches (sim/fold/alike.hpp). Its result must equal, to the bit, that
// of refining every single rank, group and link.
#include <gtest/gtest.h>

#include <cstdlib>

#include "sim/base/error.hpp"
#include "sim/fold/fold.hpp"
#include "tests/property/random_cluster.hpp"

namespace topsim::property::by_cells_test {

template <class Rows, class Check>
void expect_rows(const Rows& a, const Rows& b, Check check) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) check(a[i], b[i]);
}

void expect_same_usage(const fold::Activity::Usages& a, const fold::Activity::Usages& b) {
  expect_rows(fold::Activity::view(a), fold::Activity::view(b), [](const auto& x, const auto& y) {
    EXPECT_EQ(x.link, y.link);
    EXPECT_EQ(x.coefficient, y.coefficient);
  });
}

void expect_same(const fold::System& a, const fold::System& b) {
  expect_rows(a.ranks, b.ranks, [](const auto& x, const auto& y) {
    EXPECT_EQ(x.members, y.members);
    EXPECT_EQ(x.slowdown, y.slowdown);
    EXPECT_EQ(x.program_class, y.program_class);
  });
  expect_rows(a.links, b.links, [](const auto& x, const auto& y) {
    EXPECT_EQ(x.members, y.members);
    EXPECT_EQ(x.capacity, y.capacity);
  });
  expect_rows(a.groups, b.groups, [](const auto& x, const auto& y) {
    EXPECT_EQ(x.count, y.count);
    EXPECT_EQ(x.members, y.members);
    EXPECT_EQ(x.activities, y.activities);
    EXPECT_EQ(x.communicator, y.communicator);
  });
  expect_rows(a.activities, b.activities, [](const auto& x, const auto& y) {
    EXPECT_EQ(x.latency, y.latency);
    EXPECT_EQ(x.rate_cap, y.rate_cap);
    expect_same_usage(x.usage, y.usage);
    expect_same_usage(x.own_usage, y.own_usage);
  });
  EXPECT_EQ(a.group_of, b.group_of);
  EXPECT_EQ(a.out_edge, b.out_edge);
  EXPECT_EQ(a.in_edge, b.in_edge);
  EXPECT_EQ(a.host_group, b.host_group);
}

TEST(FoldingByCells, ComesToTheClassesOfSingleLinks) {
  const topology::Catalogue catalogue = topology::Catalogue::load(TOPSIM_SOURCE_DIR "/configs");
  std::size_t classes = 0, ranks = 0, refined = 0, single = 0;
  int folded = 0;
  const std::uint64_t cases = std::getenv("TOPSIM_FULL") != nullptr ? 2000 : 64;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    Case c = random_case(seed, seed % 16 == 0 ? 64 : 8);
    const topology::Topology topology = topology::build(c.topology, catalogue);
    disturb(c, topology, catalogue);
    SCOPED_TRACE(c.text);
    // Two cases in eight have a cable that is down from the start: routes are searched, or take another NIC.
    std::vector<LinkId> dead;
    const auto to_a_switch_from = [&](topology::DeviceKind kind) {
      for (std::size_t l = 0; l < topology.links().size() && dead.empty(); ++l) {
        const topology::Link& link = topology.link(LinkId(l));
        if (topology.device(link.from).kind == kind &&
            topology.device(link.to).kind == topology::DeviceKind::fabric_switch)
          dead = {LinkId(l)};
      }
    };
    if (seed % 8 == 1) to_a_switch_from(topology::DeviceKind::fabric_switch);
    if (seed % 8 == 2) to_a_switch_from(topology::DeviceKind::nic);
    const topology::Router router(topology, c.options.seed, dead);
    const collective::NcclModel nccl(router, {});
    const program::Program program = workloads::training_step(c.workload, topology, catalogue);
    fold::FoldOptions options;
    options.slow_ranks = c.options.slow_ranks;
    for (const auto& change : c.options.capacity_changes)
      options.marked_links.emplace_back(change.link, static_cast<std::uint32_t>(options.marked_links.size()));
    for (const auto& change : c.options.pace_changes) options.marked_ranks.push_back(change.rank);
    // Where the dead cable cuts ranks off, both must refuse with the same message.
    const auto fold = [&](bool by_cells, fold::System& system) -> std::string {
      options.by_cells = by_cells;
      try {
        system = fold::fold(program, router, nccl, options);
      } catch (const ConfigError& error) {
        return error.what();
      }
      return "";
    };
    fold::System by_cells, one_by_one;
    const std::string refused = fold(true, by_cells);
    EXPECT_EQ(refused, fold(false, one_by_one));
    expect_same(by_cells, one_by_one);
    if (!refused.empty()) continue;
    ++folded;
    classes += by_cells.ranks.size();
    ranks += program.ranks;
    refined += by_cells.refined, single += one_by_one.refined;
    if (HasFailure()) break;
  }
  EXPECT_GT(folded, 50);
  EXPECT_LT(refined, single * 4 / 5) << "hardly any case began with whole nodes";
  EXPECT_LT(classes, ranks / 2) << "the sample hardly folds: it does not test folding";
}
}  // namespace topsim::property::by_cells_test

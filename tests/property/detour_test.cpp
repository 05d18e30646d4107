// Cables that fail for a while: folded and unfolded runs do the same although paths change under running
// collectives.
#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "tests/property/per_item.hpp"
#include "tests/property/random_cluster.hpp"

namespace topsim::property::detour_test {

// All cables, of both directions, between the two ends of a link of the fabric.
std::vector<LinkId> cables_beside(const topology::Topology& topology, LinkId link) {
  std::vector<LinkId> cables;
  const topology::Link one = topology.link(link);
  for (std::size_t l = 0; l < topology.links().size(); ++l) {
    const topology::Link& other = topology.links()[l];
    if ((other.from == one.from && other.to == one.to) || (other.from == one.to && other.to == one.from))
      cables.emplace_back(l);
  }
  return cables;
}

TEST(Detours, OfRandomClustersFoldExactly) {
  const topology::Catalogue catalogue = topology::Catalogue::load(TOPSIM_SOURCE_DIR "/configs");
  int moved = 0, detoured = 0, folded_less = 0;
  for (int i = 0; i < 60; ++i) {
    Case c = random_case(static_cast<std::uint64_t>(5000 + i), 8);
    const topology::Topology topology = topology::build(c.topology, catalogue);
    disturb(c, topology, catalogue);
    SCOPED_TRACE(c.text);
    const topology::Router router(topology, c.options.seed);
    const auto searches = collective::no_searches_yet();
    const collective::NcclModel nccl(router, {}, {}, searches);
    const program::Program program = workloads::training_step(c.workload, topology, catalogue);
    std::vector<LinkId> fabric;
    for (std::size_t l = 0; l < topology.links().size(); ++l)
      if (topology.device(topology.links()[l].to).kind == topology::DeviceKind::fabric_switch)
        fabric.emplace_back(l);
    if (fabric.empty()) continue;
    const executor::Outcome whole = executor::simulate(program, router, nccl, c.options, nullptr);
    const auto part = [&](double share) {
      return SimTime(Duration(
          static_cast<std::int64_t>(share * static_cast<double>(whole.end.time_since_epoch().count()))));
    };
    // The cables stop at 0.2 of the run, routes avoid them from 0.3 on, and at 0.6 cables and routes are
    // back.
    executor::RunOptions options = c.options;
    const std::vector<LinkId> dead =
        cables_beside(topology, fabric[static_cast<std::size_t>(i * 7) % fabric.size()]);
    for (const LinkId link : dead) {
      options.capacity_changes.push_back({part(0.2), link, 0});
      options.capacity_changes.push_back({part(0.6), link, 1});
    }
    executor::Detour detour;
    detour.router = std::make_shared<const topology::Router>(topology, c.options.seed, dead);
    detour.nccl = std::make_shared<const collective::NcclModel>(*detour.router, collective::Overrides{},
                                                                collective::TimeOptions{}, searches);
    options.detours.push_back(detour);
    options.route_changes = {{part(0.3), 0, false}, {part(0.6), executor::RouteChange::kFirst, true}};
    const executor::Outcome folded = executor::simulate(program, router, nccl, options, nullptr);
    options.fold = false;
    const executor::Outcome unfolded = executor::simulate(program, router, nccl, options, nullptr);
    const PerItem each = spread(folded, program.ranks), single = spread(unfolded, program.ranks);
    EXPECT_LE(time_difference(each, single), allowed(program, single));
    EXPECT_LT(link_difference(each, single), 1e-9);
    // Without another way what is under way waits for the cables.
    options.fold = true;
    options.route_changes.clear();
    detoured += folded.end < executor::simulate(program, router, nccl, options, nullptr).end;
    moved += folded.end != whole.end;
    folded_less += folded.ranks.size() < unfolded.ranks.size();
  }
  EXPECT_GT(moved, 10) << "the sample hardly meets its faults";
  EXPECT_GT(detoured, 10) << "the sample hardly takes another way";
  EXPECT_GT(folded_less, 10) << "the sample hardly folds";
}
}  // namespace topsim::property::detour_test

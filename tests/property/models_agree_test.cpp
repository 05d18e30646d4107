// Where nothing is shared the analytic model equals the flow model; where links are shared it is a lower
// bound.
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "tests/property/random_cluster.hpp"

namespace topsim::property::models_agree_test {

const topology::Catalogue& catalogue() {
  static const topology::Catalogue instance = topology::Catalogue::load(TOPSIM_SOURCE_DIR "/configs");
  return instance;
}

executor::Outcome run(const Case& c, const std::string& model) {
  const topology::Topology topology = topology::build(c.topology, catalogue());
  const topology::Router router(topology, c.options.seed);
  const collective::NcclModel nccl(router, {});
  const program::Program program = workloads::training_step(c.workload, topology, catalogue());
  executor::RunOptions options = c.options;
  options.network = model;
  return executor::simulate(program, router, nccl, options, nullptr);
}

using LinkBytes = std::map<std::uint32_t, double>;  // by link

LinkBytes bytes_of(const executor::Outcome& outcome) {
  LinkBytes bytes;
  for (const executor::LinkClass& each : outcome.links)
    for (const LinkId member : each.members) bytes[member.value] = each.bytes;
  return bytes;
}

double sum(const LinkBytes& bytes) {
  double all = 0;
  for (const auto& [link, sent] : bytes) all += sent;
  return all;
}

void expect_same(const LinkBytes& a, const LinkBytes& b) {
  EXPECT_EQ(a.size(), b.size());
  for (const auto& [link, sent] : a) {
    const auto found = b.find(link);
    EXPECT_NEAR(found == b.end() ? 0 : found->second, sent, 1e-9 * sent + 1) << link;
  }
}

TEST(Models, AgreeToThePicosecondWhereOneCollectiveRunsAtATime) {
  // One box, tensor parallelism alone: a layer's collectives follow each other, each alone on the NVLinks.
  Case c = random_case(1, 1);
  c.workload.plan = {};
  c.workload.plan.tp = 8;
  c.workload.plan.grad_accumulation = 2;
  c.options.slow_ranks.clear();
  const auto analytic = run(c, "analytic"), flow = run(c, "flow");
  EXPECT_EQ(analytic.end, flow.end);
  const auto a = bytes_of(analytic), b = bytes_of(flow);
  EXPECT_GT(sum(a), 1e6);
  expect_same(a, b);
}

// Folded or not, the analytic model must count the same bytes on every link: those of the flow model.
TEST(Models, AnalyticBooksTheSameBytesFoldedOrNot) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Case c = random_case(seed, 4);
    SCOPED_TRACE(c.text);
    const auto bytes = [&](bool fold, const char* model) {
      c.options.fold = fold;
      return bytes_of(run(c, model));
    };
    const LinkBytes unfolded = bytes(false, "analytic");
    EXPECT_GT(sum(unfolded), 1e5);
    expect_same(bytes(true, "analytic"), unfolded);
    expect_same(bytes(false, "flow"), unfolded);
  }
}

TEST(Models, SharingNeverEndsBeforeTheAnalyticBound) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Case c = random_case(seed, 4);
    SCOPED_TRACE(c.text);
    const auto analytic = run(c, "analytic"), flow = run(c, "flow");
    // Rounding takes at most a picosecond an event.
    EXPECT_LE(analytic.end, flow.end + Duration(static_cast<std::int64_t>(flow.events)));
  }
}

// Links of every kind of bound: line and headers alone, what a NIC loses, a capacity that is stated.
TEST(Models, NoLinkCarriesMoreThanItsCapacityForTheTimeThatItIsBusy) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Case c = random_case(seed, 2);
    if (c.topology.nodes == 1) continue;
    c.topology.fabric.link.use = std::array{"ib-ndr", "ib-edr", "efa-400g", "roce-100g"}[seed % 4];
    if (seed % 8 >= 4) c.topology.fabric.link.capacity = BytesPerSecond(7e9);
    SCOPED_TRACE(c.text);
    const topology::Topology topology = topology::build(c.topology, catalogue());
    std::vector<double> moved;
    for (const char* model : {"flow", "packet"}) {
      const executor::Outcome outcome = run(c, model);
      moved.push_back(sum(bytes_of(outcome)));
      for (const executor::LinkClass& link : outcome.links) {
        const double capacity = topology.link(link.members.front()).capacity.value();
        EXPECT_LE(link.peak_rate, capacity * 1.00001) << model;
        EXPECT_LE(link.bytes, capacity * seconds(link.busy) * 1.00001 + 1) << model;
      }
    }
    EXPECT_GT(moved[0], 1e5);
    EXPECT_NEAR(moved[1], moved[0], 0.05 * moved[0]);
  }
}
}  // namespace topsim::property::models_agree_test

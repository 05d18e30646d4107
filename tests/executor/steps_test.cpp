// Collectives sent message by message, in cases with a simple expected result.
#include <gtest/gtest.h>

#include <map>

#include "sim/executor/carrier.hpp"
#include "sim/executor/simulate.hpp"
#include "sim/network/factory.hpp"
#include "topology/build.hpp"
#include "topology/catalogue.hpp"

namespace topsim::executor::steps_test {

// One all-reduce of 64 MiB among all ranks.
program::Program all_reduce(std::uint32_t ranks) {
  program::Program program;
  program.ranks = ranks;
  program.class_of_rank.assign(ranks, 0);
  program.communicator_slots.assign(1, std::vector<CommunicatorId>(ranks, CommunicatorId(0)));
  program.communicators.push_back({program::Dimension::data, 0, ranks});
  for (std::uint32_t r = 0; r < ranks; ++r) program.members.push_back(RankId(r));
  program::RankProgramBuilder builder(program, "rank");
  builder.stream("compute");
  program::Op op;
  op.kind = program::OpKind::collective;
  op.collective = program::CollectiveKind::all_reduce;
  op.stream = builder.stream("communication");
  op.bytes = Bytes(64 << 20);
  builder.add(op);
  builder.finish();
  return program;
}

topology::Topology two_nodes(const std::string& node) {
  topology::TopologySpec spec;
  spec.node.use = node;
  spec.nodes = 2;
  spec.fabric.kind = topology::FabricKind::fat_tree;
  spec.fabric.link.use = "ib-hdr";
  return topology::build(spec, topology::Catalogue::load(TOPSIM_SOURCE_DIR "/configs"));
}

Outcome run(const topology::Topology& topology, std::uint32_t ranks, CollectiveForm form) {
  const topology::Router router(topology, 1);
  const collective::NcclModel nccl(router, {});
  RunOptions options;
  options.collectives = form;
  options.warmup = 0;
  options.steps = 1;
  return simulate(all_reduce(ranks), router, nccl, options, nullptr);
}

// With one rank nothing is sent or waited for, and the program has nothing else: the step takes no time.
TEST(Steps, ACommunicatorOfOneRankHasNothingToWaitFor) {
  const topology::Topology topology = two_nodes("azure-ndv4");
  for (const CollectiveForm form : {CollectiveForm::steps, CollectiveForm::hops})
    EXPECT_EQ(run(topology, 1, form).step_times.front(), Duration{});
}

// Over TCP with one GPU a box the hops of a ring hide behind its chunks, so that its messages have no latency
// of their own. They still move at the channel's rate, which one thread's copies limit (3.57 GB/s where it
// sends and receives): 64 MiB on four boxes pass each NIC 1.5 times, at least 100.7 MB / 3.57 GB/s = 28.2 ms.
TEST(Steps, MessagesWhoseHopsHideKeepTheRateOfTheirChannel) {
  topology::TopologySpec spec;
  spec.node.use = "a100x1", spec.nodes = 4, spec.fabric.kind = topology::FabricKind::rail,
  spec.fabric.link.use = "eth-100g";
  const topology::Topology topology =
      topology::build(spec, topology::Catalogue::load(TOPSIM_SOURCE_DIR "/configs"));
  const Duration whole = run(topology, 4, CollectiveForm::pipelined).step_times.front(),
                 apart = run(topology, 4, CollectiveForm::steps).step_times.front();
  EXPECT_GT(seconds(whole), 0.0282);
  EXPECT_NEAR(seconds(apart) / seconds(whole), 1, 0.05);
}

// 3 us on the first routes and 5 on those of a detour, in both forms; where the detour connects no path and
// none follows, the call can never end.
TEST(Steps, ACallOfNoBytesTakesTheLatencyOfTheRoutesInForce) {
  const topology::Topology topology = two_nodes("azure-ndv4");
  const topology::Router router(topology, 1);
  const collective::NcclModel nccl(router, {});
  const program::Program program = all_reduce(2);
  const Duration first = from_microseconds(3), moved = from_microseconds(5);
  fold::System system;
  fold::Activity& call = system.activities.emplace_back();
  call.latency = first;
  call.detours = {{{}, {}, moved, ""}, {{}, {}, first, "no path"}};
  const auto network = network::find_model("flow").make({});
  const RunOptions options;
  std::vector<std::unique_ptr<Carrier>> forms;
  forms.push_back(pipelined_carrier(system, *network, false, nullptr));
  forms.push_back(step_carrier(program, system, nccl, *network, options, {}));
  for (const auto& carrier : forms) {
    EXPECT_EQ(carrier->latency(0), first);
    carrier->change_routes({.at = {}, .detour = 0}, SimTime{});
    EXPECT_EQ(carrier->latency(0), moved);
    carrier->change_routes({.at = {}, .detour = 1, .last = true}, SimTime{});
    EXPECT_THROW(static_cast<void>(carrier->latency(0)), CutOff);
  }
}

// On a p5 an accelerator has four NICs, which NCCL uses as one port; its channels leave by all four, so each
// carries a quarter of the hops' bytes. A ring of two sends 2 (n - 1) / n = 1 byte per byte, and LL128,
// preferred at AWS's latency, 16 bytes for 15: 16 MiB x 16 / 15 by each NIC.
TEST(Steps, HopsLeaveByTheNicsThatTheirChannelsName) {
  topology::Topology topology = two_nodes("p5");
  topology = topology.with_ranks_on({topology.accelerators()[0], topology.accelerators()[8]});
  const Outcome outcome = run(topology, 2, CollectiveForm::hops);
  std::vector<double> sent;
  for (const LinkClass& link : outcome.links)
    for (const LinkId member : link.members) {
      const topology::Link& cable = topology.link(member);
      const topology::Device& from = topology.device(cable.from);
      if (from.kind == topology::DeviceKind::nic && from.node == 0 &&
          topology.device(cable.to).kind == topology::DeviceKind::fabric_switch && link.bytes > 0)
        sent.push_back(link.bytes);
    }
  ASSERT_EQ(sent.size(), 4U);
  for (const double bytes : sent) EXPECT_NEAR(bytes, (16 << 20) * 16.0 / 15, 2);
}
// Rank 0 sends 64 MiB to rank 1.
program::Program send() {
  program::Program program;
  program.ranks = 2;
  program.class_of_rank = {0, 1};
  program.peer_slots = {{RankId(1), RankId()}, {RankId(), RankId(0)}};  // next, previous
  program.peer_counterpart = {1, 0};
  program.peer_dimension.assign(2, program::Dimension::pipeline);
  for (const program::OpKind kind : {program::OpKind::send, program::OpKind::recv}) {
    program::RankProgramBuilder builder(program, "rank");
    builder.stream("compute");
    program::Op op;
    op.kind = kind;
    op.stream = builder.stream("communication");
    op.slot = kind == program::OpKind::send ? 0 : 1;
    op.bytes = Bytes(64 << 20);
    builder.add(op);
    builder.finish();
  }
  return program;
}

// The four NICs carry a quarter of the message each, over one connection each; ECMP draws the path of every
// connection.
TEST(Steps, APartOfAMessageTakesThePathOfOneConnection) {
  topology::TopologySpec spec;
  spec.node.use = "p5";
  spec.nodes = 2;
  spec.fabric.kind = topology::FabricKind::fat_tree;
  spec.fabric.link.use = "efa-100g";
  spec.fabric.tiers = 2;
  spec.fabric.nodes_per_leaf = 1;
  spec.fabric.routing = topology::Routing::ecmp;
  topology::Topology topology =
      topology::build(spec, topology::Catalogue::load(TOPSIM_SOURCE_DIR "/configs"));
  topology = topology.with_ranks_on({topology.accelerators()[0], topology.accelerators()[8]});
  const topology::Router router(topology, 1);
  const collective::NcclModel nccl(router, {});
  std::map<LinkId, double> expected;
  for (std::uint64_t connection = 0; connection < 4; ++connection) {
    topology::Route route;
    router.route(
        {.from = topology.accelerators()[0], .to = topology.accelerators()[1], .connection = connection},
        route);
    for (const topology::LinkShare& use : route.links) expected[use.link] += use.share * (16 << 20);
  }
  for (const CollectiveForm form : {CollectiveForm::steps, CollectiveForm::hops}) {
    RunOptions options;
    options.collectives = form;
    options.warmup = 0;
    options.steps = 1;
    std::map<LinkId, double> sent;
    for (const LinkClass& link : simulate(send(), router, nccl, options, nullptr).links)
      if (link.bytes > 0) sent[link.members.front()] = link.bytes;
    EXPECT_EQ(sent.size(), expected.size());
    for (const auto& [link, bytes] : expected) EXPECT_NEAR(sent[link], bytes, 1);
  }
}
}  // namespace topsim::executor::steps_test

// Collectives sent message by message, where a pencil says what must come out.
#include <gtest/gtest.h>

#include "sim/executor/simulate.hpp"
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
  spec.fabric.kind = "fat-tree";
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

// Nothing is sent, nothing is waited for: the step is as long as the program without the call, nothing.
TEST(Steps, a_communicator_of_one_rank_has_nothing_to_wait_for) {
  const topology::Topology topology = two_nodes("azure-ndv4");
  for (const CollectiveForm form : {CollectiveForm::steps, CollectiveForm::hops})
    EXPECT_EQ(run(topology, 1, form).step_times.front(), Duration{});
}

// An accelerator of a p5 has four NICs beside it, and NCCL's channels leave by all of them: hops between the
// same two ranks carry a quarter of the bytes by each. A ring of two sends 2 (n - 1) / n = 1 byte a byte.
TEST(Steps, hops_leave_by_the_nics_that_their_channels_name) {
  topology::Topology topology = two_nodes("p5");
  topology = topology.with_ranks_on({topology.accelerators()[0], topology.accelerators()[8]});
  const Outcome outcome = run(topology, 2, CollectiveForm::hops);
  std::vector<double> sent;
  for (const LinkClass& link : outcome.links) {
    const topology::Link& cable = topology.link(link.members.front());
    const topology::Device& from = topology.device(cable.from);
    if (from.kind == topology::DeviceKind::nic && from.node == 0 &&
        topology.device(cable.to).kind == topology::DeviceKind::fabric_switch)
      sent.push_back(link.bytes);
  }
  ASSERT_EQ(sent.size(), 4U);
  for (const double bytes : sent) EXPECT_NEAR(bytes, 16 << 20, 1);
}
}  // namespace topsim::executor::steps_test

// A run with figures that are easy to check: two nodes, each of one accelerator and one NIC under a leaf of
// its own, one spine above; two steps of 10 ms.
#pragma once

#include "sim/report/make_result.hpp"
#include "topology/topology.hpp"

namespace topsim::testing {
using namespace topsim::literals;
using executor::Reason;
using topology::DeviceKind;
using topology::LinkKind;

// Leaf to spine has half the capacity of NIC to leaf, 2:1. `nic_pcie`: capacity of every NIC's slot;
// `spines`: how many switches the one above stands for.
inline topology::Topology two_nodes(BytesPerSecond nic_pcie = 55_GBps, std::uint16_t spines = 1) {
  topology::TopologyBuilder builder;
  builder.set_nodes(2);
  const auto ndr = builder.link_type({"ib-ndr", "NDR 400 Gbit/s", "test"});
  const auto slot = builder.link_type({"pcie5-x16", "PCIe 5 x16", "test"});
  const auto gpu = builder.model("h100-sxm5");
  const auto nic = builder.model("connectx-7");
  const auto box = builder.model("qm9700");
  DeviceId leaves[2];
  DeviceId nics[2];
  for (std::uint32_t node = 0; node < 2; ++node) {
    const DeviceId a = builder.device({DeviceKind::accelerator, 0, 1, node, 0, gpu});
    nics[node] = builder.device({DeviceKind::nic, 0, 1, node, 0, nic});
    builder.cable({a, nics[node], LinkKind::pcie, 1, slot, {}, nic_pcie, nic_pcie, 0_ns});
  }
  for (std::uint32_t leaf = 0; leaf < 2; ++leaf) {
    leaves[leaf] = builder.device({DeviceKind::fabric_switch, 1, 1, Id<void>::kNone, leaf, box});
  }
  const DeviceId spine = builder.device({DeviceKind::fabric_switch, 2, spines, Id<void>::kNone, 0, box});
  for (std::uint32_t i = 0; i < 2; ++i) {
    builder.cable({nics[i], leaves[i], LinkKind::infiniband, 1, ndr, {}, 50_GBps, 50_GBps, 1_us});
    builder.cable({leaves[i], spine, LinkKind::infiniband, 1, ndr, {}, 25_GBps, 25_GBps, 1_us});
  }
  return std::move(builder).finish();
}

// Forward, a send of 1 MiB from rank 0 to rank 1, an all-reduce of both.
inline program::Program two_ranks() {
  using program::Op;
  using program::OpKind;
  program::Program program;
  program.ranks = 2;
  program.class_of_rank = {0, 1};
  program.communicators = {{program::Dimension::data, 0, 2}};
  program.members = {RankId(0), RankId(1)};
  program.communicator_slots = {{CommunicatorId(0), CommunicatorId(0)}};
  program.peer_slots = {{RankId(1), RankId(0)}};
  program.peer_counterpart = {0};
  program.peer_dimension = {program::Dimension::pipeline};
  for (int stage = 0; stage < 2; ++stage) {
    program::RankProgramBuilder builder(program, stage == 0 ? "stage 0" : "stage 1");
    const auto compute = builder.stream("compute");
    const auto wire = builder.stream("data");
    Op forward;
    forward.stream = compute;
    forward.phase = program::Phase::forward;
    forward.label = builder.label("layer forward");
    forward.duration = 6_ms;
    Op message;
    message.kind = stage == 0 ? OpKind::send : OpKind::recv;
    message.stream = wire;
    message.phase = program::Phase::transfer;
    message.label = builder.label(stage == 0 ? "send activations" : "receive activations");
    message.bytes = 1_MiB;
    Op reduce;
    reduce.kind = OpKind::collective;
    reduce.stream = wire;
    reduce.phase = program::Phase::gradient_sync;
    reduce.label = builder.label("gradient all_reduce");
    reduce.bytes = 128_MiB;
    const std::uint32_t first[] = {builder.add(forward)};
    builder.add(message, first);
    builder.add(reduce);
    builder.finish();
  }
  program.facts.samples = 4;
  program.facts.tokens = 4000;
  program.facts.model_flops = Flops(4e12);
  program.facts.model_flops_full_attention = Flops(5e12);
  program.facts.peak_per_accelerator = FlopsPerSecond(1e15);
  return program;
}

inline executor::StepAccount account(Duration busy, std::initializer_list<std::pair<Reason, Duration>> idle) {
  executor::StepAccount account;
  account.busy = busy;
  for (const auto& [reason, time] : idle) account.idle[static_cast<std::size_t>(reason)] = time;
  return account;
}

inline LinkId link_between(const topology::Topology& topology, const char* from, const char* to) {
  return topology.find_link(*topology.find_device(from), *topology.find_device(to)).value();
}

// `topology` as two_nodes() makes it. Two steps of 10 ms after a warm-up of 10 ms.
inline executor::Outcome two_steps(const topology::Topology& topology) {
  executor::Outcome outcome;
  outcome.step_times = {10_ms, 10_ms};
  outcome.measured_begin = SimTime(10_ms);
  outcome.end = SimTime(30_ms);
  const auto first = account(6_ms, {{Reason::data_parallel, 4_ms}});
  const auto second = account(
      5_ms, {{Reason::data_parallel, 3_ms}, {Reason::straggler, 1_ms}, {Reason::pipeline_bubble, 1_ms}});
  outcome.ranks = {{0, {RankId(0)}, {first, first}}, {1, {RankId(1)}, {second, second}}};
  // 0.5 GB over 20 ms is 25 GB/s: half of the NIC's cable, all of the leaf's uplink.
  outcome.links = {{{link_between(topology, "node0/nic0", "leaf0")}, 0.5e9, 50e9, 12_ms},
                   {{link_between(topology, "leaf0", "spine0"), link_between(topology, "leaf1", "spine0")},
                    0.5e9,
                    25e9,
                    20_ms}};
  outcome.collectives = {{program::Dimension::data,
                          program::CollectiveKind::all_reduce,
                          128_MiB,
                          2,
                          2,
                          4_ms,
                          seconds(8_ms),
                          1.0,
                          {collective::Algorithm::ring, collective::Protocol::simple, 8, 4_ms}}};
  const auto at = [](Duration time) { return SimTime(time); };
  outcome.timeline = {{0, 0, 1, 0, at(10_ms), at(16_ms), at(10_ms)},
                      {0, 1, 1, 1, at(16_ms), at(17_ms), at(16_ms)},
                      {1, 1, 1, 1, at(12_ms), at(17_ms), at(16_ms)},
                      {1, 2, 1, 1, at(17_ms), at(20_ms), at(18_ms)}};
  outcome.idle = {{1, Reason::straggler, at(17_ms), at(18_ms)}};
  outcome.link_samples = {{0, at(10_ms), 50e9}, {0, at(12_ms), 0}};
  const LinkId uplink = link_between(topology, "leaf0", "spine0");
  outcome.critical_path = {{0, 0, 12_ms, Reason::other, {}}, {0, 2, 8_ms, Reason::data_parallel, uplink}};
  outcome.events = 12;
  outcome.flows = 4;
  outcome.group_classes = 1;
  return outcome;
}

inline report::ScenarioFacts facts() {
  report::ScenarioFacts facts;
  facts.name = "two-nodes";
  facts.headline = "2 x H100 (2 nodes) over InfiniBand NDR";
  facts.called = "GPU";
  facts.library = "NCCL";
  facts.scenario = R"({"topology":{"nodes":2}})";
  facts.seed = 1;
  facts.equal_bubble_known = true;
  facts.pipeline_stages = 2;
  facts.micro_batches = 8;
  return facts;
}

inline report::Memory memory(Bytes used = 40_GiB) {
  return {true, used, 80_GiB, {{"weights", used - 10_GiB}, {"activations", 10_GiB}}};
}

inline report::Result sample_result() {
  const topology::Topology topology = two_nodes();
  return make_result(facts(), topology, two_ranks(), memory(), two_steps(topology));
}
}  // namespace topsim::testing

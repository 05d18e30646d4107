// What collectives put on links, derived with a pencil, and how long they take on an idle network in both
// forms.
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "sim/collective/collective.hpp"
#include "sim/scenario/bench.hpp"
#include "tests/topology/fixtures.hpp"

namespace topsim::collective::lowering_test {

using topology::DeviceKind;

topology::TopologySpec boxes(const char* node, std::uint32_t count, const char* link = "ib-ndr") {
  topology::TopologySpec spec;
  spec.node.use = node;
  spec.nodes = count;
  spec.fabric.kind = count == 1 ? "none" : "rail";
  if (count > 1) spec.fabric.link.use = link;
  return spec;
}

struct Cluster {
  explicit Cluster(const topology::TopologySpec& spec, Overrides forced = {})
      : topology(topology::build(spec, topology::test::catalogue())),
        router(topology, 1),
        nccl(router, forced) {}
  // Bytes that each GPU sends to (or, `out` false, takes from) the NVSwitches of its box per byte.
  [[nodiscard]] std::map<DeviceId, double> on_nvlink(const Activity& activity, bool out) const {
    std::map<DeviceId, double> sums;
    for (const topology::LinkShare& use : activity.usage) {
      const topology::Link& link = topology.link(use.link);
      const DeviceId near = out ? link.from : link.to, far = out ? link.to : link.from;
      if (topology.device(near).kind == DeviceKind::accelerator &&
          topology.device(far).kind == DeviceKind::nvswitch)
        sums[near] += use.share;
    }
    return sums;
  }
  topology::Topology topology;
  topology::Router router;
  NcclModel nccl;
};

Overrides forced(Algorithm algorithm, Protocol protocol = Protocol::simple) {
  Overrides overrides;
  overrides.algorithm = algorithm;
  overrides.protocol = protocol;
  return overrides;
}

Activity lowered(const Cluster& cluster, CollectiveKind kind, std::size_t gpus,
                 std::int64_t bytes = 64 << 20) {
  Activity activity;
  cluster.nccl.lower(kind, Bytes(bytes), cluster.topology.accelerators().subspan(0, gpus), activity);
  return activity;
}

void expect_each(const std::map<DeviceId, double>& shares, std::size_t devices, double share) {
  EXPECT_EQ(shares.size(), devices);
  for (const auto& [device, has] : shares) EXPECT_NEAR(has, share, 1e-9);
}

// A ring passes every chunk 2(n-1) times, an n-th each: 2 x 7/8 = 1.75 out of and into every GPU.
TEST(Lowering, RingAllReduceUsesEachGpusLinksTwiceNMinusOneOverN) {
  const Cluster box(boxes("hgx-h100", 1), forced(Algorithm::ring));
  const Activity activity = lowered(box, CollectiveKind::all_reduce, 8);
  for (const bool out : {true, false}) {
    const auto sums = box.on_nvlink(activity, out);
    expect_each(sums, 8, 1.75);
  }
}

// Gathers pass every chunk once: (n-1)/n. All-to-all sends an n-th to each of n-1 others: the same.
TEST(Lowering, GathersAndAllToAllUseEachGpusLinksNMinusOneOverN) {
  const Cluster box(boxes("hgx-h100", 1), forced(Algorithm::ring));
  for (const CollectiveKind kind :
       {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_to_all}) {
    const auto sums = box.on_nvlink(lowered(box, kind, 8), true);
    expect_each(sums, 8, 0.875);
  }
}

// A GPU sends its data once to be summed, and as head of an eighth that eighth's sum: 1 + 1/8.
TEST(Lowering, NvlsSendsOnePlusOneOverHeads) {
  const Cluster box(boxes("hgx-h100", 1), forced(Algorithm::nvls));
  for (const bool out : {true, false}) {
    const auto sums = box.on_nvlink(lowered(box, CollectiveKind::all_reduce, 8), out);
    expect_each(sums, 8, 1.125);
  }
}

// A chain of eight has seven edges, each with one byte up and one down: 14 bytes leave GPUs in all.
TEST(Lowering, TreeInABoxCarriesOneByteUpAndOneDownEachEdge) {
  const Cluster box(boxes("hgx-h100", 1), forced(Algorithm::tree));
  double sum = 0;
  for (const auto& [gpu, share] : box.on_nvlink(lowered(box, CollectiveKind::all_reduce, 8), true))
    sum += share;
  EXPECT_NEAR(sum, 14, 1e-9);
}

// Two boxes: each head sends its eighth to the other box's head and gets the sum of that tree back: over both
// trees an eighth out of every NIC.
TEST(Lowering, NvlsTreeOverTwoBoxesSendsAnEighthOutOfEveryNic) {
  const Cluster two(boxes("hgx-h100", 2), forced(Algorithm::nvls_tree));
  std::map<DeviceId, double> sent;
  for (const topology::LinkShare& use : lowered(two, CollectiveKind::all_reduce, 16).usage) {
    const topology::Link& link = two.topology.link(use.link);
    if (two.topology.device(link.from).kind == DeviceKind::nic &&
        two.topology.device(link.to).node == DeviceId::kNone)
      sent[link.from] += use.share;
  }
  expect_each(sent, 16, 0.125);
}

// What leaves every NIC, and what of it goes from switch to switch, per byte.
struct OnFabric {
  std::map<DeviceId, double> nics;
  double between_switches = 0;
};
OnFabric on_fabric(const Cluster& cluster, const Activity& activity) {
  OnFabric result;
  for (const topology::LinkShare& use : activity.usage) {
    const topology::Link& link = cluster.topology.link(use.link);
    const DeviceKind from = cluster.topology.device(link.from).kind,
                     to = cluster.topology.device(link.to).kind;
    if (to != DeviceKind::fabric_switch) continue;
    if (from == DeviceKind::nic) result.nics[link.from] += use.share;
    if (from == DeviceKind::fabric_switch) result.between_switches += use.share;
  }
  return result;
}

// Two boxes of eight on rails: every GPU has a sixteenth for each of the eight GPUs over there, so eight
// sixteenths leave each NIC. With PXN seven of a GPU's eight go over NVLink to the GPU on the receiver's rail
// (with seven for its own box: 14/16) and no byte changes its rail; without, only those of its own box (7/16)
// take NVLink, and of eight sixteenths out of a NIC seven cross to another rail.
TEST(Lowering, PxnTakesAllToAllToTheRailOfItsReceiverOverNvlink) {
  const Cluster two(boxes("hgx-h100", 2));
  const Activity activity = lowered(two, CollectiveKind::all_to_all, 16);
  for (const bool out : {true, false}) {
    const auto sums = two.on_nvlink(activity, out);
    expect_each(sums, 16, 14.0 / 16);
  }
  const OnFabric fabric = on_fabric(two, activity);
  expect_each(fabric.nics, 16, 0.5);
  EXPECT_EQ(fabric.between_switches, 0);
}

TEST(Lowering, WithoutPxnAllToAllLeavesByTheNearestNicAndChangesRailInTheFabric) {
  Overrides overrides;
  overrides.pxn = false;
  const Cluster two(boxes("hgx-h100", 2), overrides);
  const Activity activity = lowered(two, CollectiveKind::all_to_all, 16);
  const auto sums = two.on_nvlink(activity, true);
  expect_each(sums, 16, 7.0 / 16);
  const OnFabric fabric = on_fabric(two, activity);
  expect_each(fabric.nics, 16, 0.5);
  EXPECT_NEAR(fabric.between_switches, 2 * 16 * 7.0 / 16, 1e-9);  // up to a spine and down again
}

// The last GPU of a box sends to the first of the next: its byte changes to rail 0 over NVLink, or, without
// PXN, up to a spine and down again. Two boxes, two such bytes.
TEST(Lowering, NeighboursChangeRailInTheFabricOnlyWithoutPxn) {
  for (const bool pxn : {true, false}) {
    Overrides overrides;
    overrides.pxn = pxn;
    const Cluster two(boxes("hgx-h100", 2), overrides);
    const OnFabric fabric = on_fabric(two, lowered(two, CollectiveKind::send_recv, 16));
    EXPECT_EQ(fabric.between_switches, pxn ? 0 : 2 * 2);
  }
}

TEST(Lowering, ASubgroupLeavesTheLinksOfOthersAlone) {
  const Cluster box(boxes("hgx-h100", 1));
  for (const CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::all_to_all})
    for (const bool out : {true, false})
      for (const auto& [gpu, share] : box.on_nvlink(lowered(box, kind, 4), out)) {
        bool member = false;
        for (const DeviceId m : box.topology.accelerators().subspan(0, 4)) member |= m == gpu;
        EXPECT_TRUE(member);
      }
}

// Groups inside a node are lowered once a kind of node (twins.hpp): what a model that has seen node 0 says of
// node 2 is what one says that has seen nothing.
TEST(Lowering, AGroupInsideANodeIsLoweredAsItsTwinElsewhere) {
  for (const char* node : {"hgx-h100", "dgx-a100", "srv-8x4090-dual"}) {
    const Cluster three(boxes(node, 3));
    const auto gpus = three.topology.accelerators();
    const std::size_t size = gpus.size() / 3;
    for (const std::size_t members : {size, size / 2}) {
      const std::vector<CollectiveCall> calls = {{CollectiveKind::all_reduce, Bytes(1 << 16)},
                                                 {CollectiveKind::all_reduce, Bytes(64 << 20)},
                                                 {CollectiveKind::all_to_all, Bytes(1 << 20)}};
      const NcclModel fresh(three.router, {}), warm(three.router, {});
      (void)warm.lower(calls, gpus.subspan(0, members));
      const LoweredCalls expected = fresh.lower(calls, gpus.subspan(2 * size, members)),
                         moved = warm.lower(calls, gpus.subspan(2 * size, members));
      ASSERT_EQ(expected.ways.size(), moved.ways.size()) << node;
      for (std::size_t c = 0; c < calls.size(); ++c) {
        EXPECT_EQ(expected.calls[c].way, moved.calls[c].way) << node;
        EXPECT_EQ(expected.calls[c].choice.algorithm, moved.calls[c].choice.algorithm) << node;
        EXPECT_EQ(expected.calls[c].activity.cap, moved.calls[c].activity.cap) << node;
        EXPECT_EQ(expected.calls[c].activity.latency, moved.calls[c].activity.latency) << node;
      }
      for (std::size_t w = 0; w < expected.ways.size(); ++w) {
        ASSERT_EQ(expected.ways[w].size(), moved.ways[w].size()) << node;
        for (std::size_t i = 0; i < expected.ways[w].size(); ++i) {
          EXPECT_EQ(expected.ways[w][i].link, moved.ways[w][i].link) << node;
          EXPECT_EQ(expected.ways[w][i].share, moved.ways[w][i].share) << node;
        }
      }
    }
  }
}

// Eight ranks in one box and four in the next: the ring still closes, and all of them take part.
TEST(Lowering, UnevenGroupsReachAllTheirMembers) {
  const Cluster two(boxes("hgx-h100", 2), forced(Algorithm::ring));
  const auto sums = two.on_nvlink(lowered(two, CollectiveKind::all_reduce, 12), true);
  EXPECT_EQ(sums.size(), 12U);
}

struct Form {
  const char* node;
  std::uint32_t nodes;
  const char* link;
  Algorithm algorithm;
  Protocol protocol;
  double tolerance;
  CollectiveKind kind = CollectiveKind::all_reduce;
};

std::vector<scenario::BenchRow> bench(const Form& form, bool in_steps, scenario::BenchSizes sizes) {
  scenario::Scenario scenario;
  scenario.topology = boxes(form.node, form.nodes, form.link);
  scenario.network.model = "flow";
  scenario.network.nccl = forced(form.algorithm, form.protocol);
  if (in_steps) scenario.network.collectives = scenario::CollectiveForm::steps;
  if (form.algorithm == Algorithm::direct) scenario.network.nccl = {};
  return scenario::bench(scenario, topology::test::catalogue(), form.kind, sizes);
}

// Design goal: 2 %. One GPU a box, LL: four loops of a ring fit its slots, so its two hops (10 us each)
// overlap and the pipelined form counts one too many: of 66 us at 1 MiB 15 %. A chain inside one box sends
// both ways over each GPU's links, which the fill of its pipeline does not foresee: 7 % with LL128, which
// NCCL does not choose there.
TEST(Lowering, StepByStepTakesAsLongAsThePipelinedForm) {
  for (const Form& form :
       {Form{"hgx-h100", 1, "", Algorithm::ring, Protocol::simple, 0.02},
        Form{"hgx-h100", 2, "ib-ndr", Algorithm::ring, Protocol::simple, 0.02},
        Form{"dgx-a100", 2, "ib-hdr", Algorithm::ring, Protocol::ll128, 0.02},
        Form{"hgx-h100", 2, "ib-ndr", Algorithm::tree, Protocol::ll128, 0.02},
        Form{"dgx-a100", 2, "ib-hdr", Algorithm::tree, Protocol::simple, 0.02},
        Form{"hgx-h100", 1, "", Algorithm::tree, Protocol::simple, 0.025},
        Form{"hgx-h100", 1, "", Algorithm::tree, Protocol::ll128, 0.08},
        Form{"hgx-h100", 2, "ib-ndr", Algorithm::ring, Protocol::simple, 0.02, CollectiveKind::all_gather},
        Form{"hgx-h100", 2, "ib-ndr", Algorithm::ring, Protocol::simple, 0.02,
             CollectiveKind::reduce_scatter},
        Form{"h100x1", 2, "ib-ndr", Algorithm::ring, Protocol::simple, 0.02},
        Form{"h100x1", 2, "ib-ndr", Algorithm::ring, Protocol::ll, 0.16},
        Form{"h100x1", 4, "ib-ndr", Algorithm::ring, Protocol::simple, 0.02},
        Form{"hgx-h100", 1, "", Algorithm::direct, Protocol::simple, 0.02, CollectiveKind::all_to_all},
        // Four NICs a GPU, and every message leaves by all of them.
        Form{"p5", 2, "efa-100g", Algorithm::direct, Protocol::simple, 0.02, CollectiveKind::send_recv},
        Form{"p5", 2, "efa-100g", Algorithm::direct, Protocol::simple, 0.02, CollectiveKind::all_to_all}}) {
    const scenario::BenchSizes sizes{Bytes(1 << 20), Bytes(16 << 20), 4};
    const auto whole = bench(form, false, sizes), steps = bench(form, true, sizes);
    for (std::size_t i = 0; i < whole.size(); ++i)
      EXPECT_NEAR(seconds(steps[i].time) / seconds(whole[i].time), 1, form.tolerance)
          << form.node << " x" << form.nodes << ' ' << name_of(form.kind) << ' ' << name_of(form.algorithm)
          << ' ' << name_of(form.protocol) << ' ' << whole[i].size.value() << " B";
  }
}

// A kernel starts once, and up to eight peers a channel are served side by side. Of 1 MiB 32 ranks send 24/32
// out of their box: 786 kB at 48 GB/s = 16 us behind one start (7.4 us) and one crossing (14 us), in both
// forms. A start and a crossing for every eight peers would be 3 x 21 us more. At 1 GiB nobody idles at the
// end.
TEST(Lowering, AllToAllPaysItsStartOnceWhateverTheNumberOfPeers) {
  for (const std::uint32_t boxes : {2U, 4U, 8U}) {
    const Form form{
        "hgx-h100", boxes, "ib-ndr", Algorithm::direct, Protocol::simple, 0.02, CollectiveKind::all_to_all};
    const scenario::BenchSizes sizes{Bytes(1 << 10), Bytes(1 << 30), 1024};
    const auto whole = bench(form, false, sizes), steps = bench(form, true, sizes);
    for (std::size_t i = 0; i < whole.size(); ++i)
      EXPECT_NEAR(seconds(steps[i].time) / seconds(whole[i].time), 1, form.tolerance)
          << boxes << ' ' << whole[i].size.value() << " B";
  }
}

// Each of a GPU's messages to other boxes is posted by the host, 1 us (NCCL's own figure): 8 of two boxes, 56
// of eight. Where a message takes the NIC longer than its posting, 4 MB at 49 GB/s, that does not count.
TEST(Lowering, AllToAllPostsAMessageForEveryGpuOfOtherBoxes) {
  const auto us = [](std::uint32_t boxes, std::int64_t bytes) {
    const Form form{
        "hgx-h100", boxes, "ib-ndr", Algorithm::direct, Protocol::simple, 0, CollectiveKind::all_to_all};
    return microseconds(bench(form, false, {Bytes(bytes), Bytes(bytes), 2})[0].time);
  };
  EXPECT_NEAR(us(8, 1 << 10) - us(2, 1 << 10), 56 - 8, 1);
  // 1 GiB of 16 and of 64 ranks: 8/16 and 56/64 of it leave.
  const double all = (1 << 30) / 49.6e3;
  EXPECT_NEAR((us(8, 1 << 30) - us(2, 1 << 30)) / (all * (56.0 / 64 - 8.0 / 16)), 1, 0.01);
}

// Four channels serve 32 peers at a time, so that of 63 messages 31 wait for an earlier one; the host posts
// on meanwhile. The last is posted 62 us after the first, 1 us each (NCCL's own figure), in both forms.
TEST(Lowering, WhoWaitsForAnEarlierMessageWasPostedMeanwhile) {
  const Form form{"h100x1", 64, "ib-ndr", Algorithm::direct, Protocol::simple, 0, CollectiveKind::all_to_all};
  const scenario::BenchSizes size{Bytes(64 << 10), Bytes(64 << 10), 2};
  const double whole = microseconds(bench(form, false, size)[0].time),
               steps = microseconds(bench(form, true, size)[0].time);
  EXPECT_NEAR(steps, whole, 1);
}

// No ring is found over eight GPUs on two sockets, and NCCL says 0.1 GB/s; messages do not take it. Two GPUs
// share a PCIe switch, whose uplink carries six eighths of 256 MiB for each of them: 402.65 MB at 55.06 GB/s
// (what copies reach over PCIe 5 x16) are 7313 us, behind a start of 19. nccl-tests, RTX PRO 6000 Server
// Edition: 12.8 ms.
TEST(Lowering, AllToAllOverPcieRunsAtTheRateOfTheLinks) {
  const Form form{"rtx-pro-6000-8gpu",       1, "", Algorithm::direct, Protocol::simple, 0,
                  CollectiveKind::all_to_all};
  const double us = microseconds(bench(form, false, {Bytes(256 << 20), Bytes(256 << 20), 2})[0].time);
  EXPECT_NEAR(us, 7313 + 19, 5);
}

// A broadcast's (or reduction's) first piece passes 15 hops before the last rank has any of it: Simple's
// chunk of 512 KiB, of which a channel of 16 has 128 in 1 GiB (14 / 128 = 11 % more), LL128's pass of 640
// threads.
TEST(Lowering, BothFormsOfABroadcastFillTheirRingHopByHop) {
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::reduce})
    for (const Protocol protocol : {Protocol::simple, Protocol::ll128, Protocol::ll}) {
      const Form form{"hgx-h100", 2, "ib-ndr", Algorithm::ring, protocol, 0.03, kind};
      const scenario::BenchSizes sizes{Bytes(64 << 10), Bytes(2 << 20), 32};
      const auto whole = bench(form, false, sizes), steps = bench(form, true, sizes);
      for (std::size_t i = 0; i < whole.size(); ++i)
        EXPECT_NEAR(seconds(steps[i].time) / seconds(whole[i].time), 1, form.tolerance)
            << name_of(kind) << ' ' << name_of(protocol) << ' ' << whole[i].size.value() << " B";
    }
}

// Sixteen boxes of one H100: 15 hops of 5 us (NCCL's LL between boxes, one GPU a box) behind a start of 4.6
// us. NCCL ranks broadcasts by one hop, whatever the length of the ring.
TEST(Lowering, ABroadcastTakesAllHopsOfItsRing) {
  const Form form{"h100x1", 16, "ib-ndr", Algorithm::ring, Protocol::ll, 0, CollectiveKind::broadcast};
  const double us = microseconds(bench(form, false, {Bytes(8), Bytes(8), 2})[0].time);
  EXPECT_GE(us, 4.6 + 15 * 5);
  EXPECT_LT(us, 1.2 * (4.6 + 15 * 5));
}

// binary_tree(3) hangs box 1 below box 2 below box 0, as deep as that of four; of five to eight it has three
// levels. LL crosses each twice, 5 us.
TEST(Lowering, ATreeCostsItsDepthWhateverTheNumberOfBoxes) {
  std::map<std::uint32_t, double> us;
  for (const std::uint32_t nodes : {2U, 3U, 4U, 5U, 8U})
    us[nodes] = microseconds(bench({"hgx-h100", nodes, "ib-ndr", Algorithm::tree, Protocol::ll, 0}, false,
                                   {Bytes(8), Bytes(8), 2})[0]
                                 .time);
  EXPECT_NEAR(us[3] - us[2], 10, 0.1);
  EXPECT_NEAR(us[4] - us[3], 0, 0.1);
  EXPECT_NEAR(us[5] - us[4], 10, 0.1);
  EXPECT_NEAR(us[8] - us[5], 0, 0.1);
}

// Eight GPUs in one box and four in the next: the furthest leaf is seven hops from its head, as with eight
// and eight.
TEST(Lowering, ATreeIsAsDeepAsItsLongestChain) {
  const Cluster two(boxes("hgx-h100", 2), forced(Algorithm::tree, Protocol::ll));
  EXPECT_EQ(lowered(two, CollectiveKind::all_reduce, 12, 8).latency,
            lowered(two, CollectiveKind::all_reduce, 16, 8).latency);
}

// Posting is a fixed cost of messages, not of the fabric: 1 us for each but the first. Of eight boxes of
// eight every GPU has 56 to post, of a box of eight and one of four those of the four have eight.
TEST(Lowering, WithoutTheCostsOfStepsNobodyPosts) {
  TimeOptions without;
  without.step_costs = false;
  for (const auto& [nodes, gpus, others] : {std::tuple(8U, 64U, 56), std::tuple(2U, 12U, 8)}) {
    const Cluster cluster(boxes("hgx-h100", nodes));
    const NcclModel nccl(cluster.router, {}, without);
    Activity unposted;
    nccl.lower(CollectiveKind::all_to_all, Bytes(1 << 10), cluster.topology.accelerators().subspan(0, gpus),
               unposted);
    const Activity posted = lowered(cluster, CollectiveKind::all_to_all, gpus, 1 << 10);
    EXPECT_NEAR(microseconds(posted.latency - unposted.latency), others - 1, 0.1);
  }
}

// NCCL's search finds no tree in eight boxes of MI250X and says 0.1 GB/s, at which 2 KiB more would take 20
// us a hop. One ring runs, then, and its NIC carries 24.5 GB/s (200 Gbit/s less headers), 0.985 of it in
// practice: 12.07 each way. 2 KiB more pass 20 hops (seven in a box and three levels, both ways): 3.4 us.
TEST(Lowering, ATreeThatNoSearchFoundRunsAtTheRateOfItsWires) {
  scenario::Scenario scenario;
  scenario.topology = boxes("mi250x-4", 8);
  scenario.topology.fabric = {};
  scenario.topology.fabric.use = "frontier";
  scenario.network.model = "flow";
  scenario.network.nccl = forced(Algorithm::tree);
  const auto rows = scenario::bench(scenario, topology::test::catalogue(), CollectiveKind::all_reduce,
                                    {Bytes(2 << 10), Bytes(4 << 10), 2});
  EXPECT_NEAR(microseconds(rows[1].time - rows[0].time), 3.4, 0.2);
}

// Two accelerators that nobody knows, each alone on its node and cabled to a switch without a NIC: of its
// threads, links and wires nothing is known, so nothing but the cables limits it: a byte of 50 GB/s each way.
TEST(Lowering, OfUnknownAcceleratorsOnlyTheCablesLimitTheRate) {
  topology::TopologyBuilder builder;
  const DeviceId hub = builder.device({.kind = DeviceKind::fabric_switch});
  const std::uint16_t type = builder.link_type({"cable", "a cable", "this test"});
  const std::uint32_t unknown = builder.model("unknown");
  for (std::uint32_t node = 0; node < 2; ++node) {
    const DeviceId gpu =
        builder.device({.kind = DeviceKind::accelerator, .node = node, .local = 0, .model = unknown});
    topology::Link cable;
    cable.from = gpu, cable.to = hub;
    cable.kind = topology::LinkKind::ethernet, cable.type = type;
    cable.line_rate = cable.capacity = BytesPerSecond(50e9);
    builder.cable(cable);
  }
  builder.set_nodes(2);
  builder.facts().fabric_kind = "explicit";
  const topology::Topology t = std::move(builder).finish();
  const topology::Router router(t, 1);
  for (const Algorithm algorithm : {Algorithm::tree, Algorithm::ring}) {
    const NcclModel nccl(router, forced(algorithm));
    Activity activity;
    nccl.lower(CollectiveKind::all_reduce, Bytes(16 << 20), t.accelerators(), activity);
    EXPECT_EQ(activity.cap.value(), 0) << name_of(algorithm);
    // RCCL's start of 17 us and two hops of 14; a ring is stretched by 0.4 of NCCL's 8.4 + 2 x 14.
    EXPECT_NEAR(microseconds(activity.latency), algorithm == Algorithm::tree ? 45 : 45 + 0.4 * 36.4, 0.1);
    const StepPlan plan = nccl.steps(CollectiveKind::all_reduce, Bytes(16 << 20), t.accelerators());
    EXPECT_FALSE(plan.messages.empty());
    for (const StepMessage& message : plan.messages) EXPECT_EQ(message.rate_cap.value(), 0);
  }
}

TEST(Lowering, MoreBytesAreNeverFasterWithinOneChoice) {
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::tree}) {
    const Form form{"hgx-h100", 2, "ib-ndr", algorithm, Protocol::simple, 0};
    Duration last{};
    for (const scenario::BenchRow& row : bench(form, false, {Bytes(1 << 10), Bytes(1 << 30), 2})) {
      EXPECT_GE(row.time, last) << name_of(algorithm) << ' ' << row.size.value();
      last = row.time;
    }
  }
}

// 2 x 7/8 S at NCCL's 360 GB/s of ring on eight H100 (its own table: 12 channels of 30 GB/s): the slope
// between 512 MiB and 1 GiB, in which latency cancels. 3 % below is the time model's share inside a box.
TEST(Lowering, RingAllReduceInABoxRunsAtTheRingsBandwidth) {
  const Form form{"hgx-h100", 1, "", Algorithm::ring, Protocol::simple, 0};
  const auto rows = bench(form, false, {Bytes(512 << 20), Bytes(1 << 30), 2});
  const double slope = (seconds(rows[1].time) - seconds(rows[0].time)) / (512.0 * (1 << 20));
  // The copy of the own eighth, which sends nothing: an eighth at 2.5 times the rate.
  const double expected = (1.75 + 1 / (8 * 2.5)) / (0.97 * 360e9);
  EXPECT_NEAR(slope / expected, 1, 0.02);
}

// LL moves a flag for every four bytes, so PCIe 4 x8 (12.7 GB/s) lets 6.37 GB/s of payload pass; its threads
// copy the own half at 9.7 GB/s a channel, over two channels: S/6.37 + S/2/19.5. The slope between 64 and 128
// KiB, in which latency cancels: 65.5 kB x 0.183 ns = 12.0 us.
TEST(Lowering, LowLatencyRingsOverPcieAreLimitedByTheWireNotByASharePerChannel) {
  const Form form{"ws-2x4090", 1, "", Algorithm::ring, Protocol::ll, 0};
  const auto rows = bench(form, false, {Bytes(64 << 10), Bytes(128 << 10), 2});
  EXPECT_NEAR(microseconds(rows[1].time - rows[0].time), 12.0, 0.3);
}

// Whatever NCCL chooses next, more bytes do not arrive earlier.
TEST(Lowering, MoreBytesAreNotFasterOverPcie) {
  for (const char* node : {"ws-2x4090", "srv-8x4090-direct", "pcie-l40s"}) {
    scenario::Scenario scenario;
    scenario.topology = boxes(node, 1);
    scenario.network.model = "flow";
    Duration last{};
    for (const scenario::BenchRow& row :
         scenario::bench(scenario, topology::test::catalogue(), CollectiveKind::all_reduce,
                         {Bytes(8), Bytes(256 << 20), 2})) {
      EXPECT_GE(row.time, last) << node << ' ' << row.size.value();
      last = row.time;
    }
  }
}

// Ten boxes with one H100 and one NDR NIC each, ring and Simple, 8 GiB: 48.8 GB/s of bus bandwidth
// (nccl-tests on a university's cluster); the search's speed for it is 40. Four 4090 on PCIe 4, 256
// MiB: 25.3.
TEST(Lowering, RingsReachWhatTheirWiresCarry) {
  struct Case {
    const char* node;
    std::uint32_t nodes;
    int gpus;
    std::int64_t bytes;
    double published;
  };
  for (const Case& c : {Case{"h100x1", 10, 10, std::int64_t{8} << 30, 48.8},
                        Case{"srv-8x4090-direct", 1, 4, 256 << 20, 25.3}}) {
    scenario::Scenario scenario;
    scenario.topology = boxes(c.node, c.nodes);
    scenario.topology.accelerators = c.gpus;
    scenario.network.model = "flow";
    scenario.network.nccl = forced(Algorithm::ring);
    const auto rows = scenario::bench(scenario, topology::test::catalogue(), CollectiveKind::all_reduce,
                                      {Bytes(c.bytes), Bytes(c.bytes), 2});
    const double bus =
        2 * (c.gpus - 1.0) / c.gpus * static_cast<double>(c.bytes) / (seconds(rows[0].time) * 1e9);
    EXPECT_NEAR(bus / c.published, 1, 0.05) << c.node;
  }
}

// Eight MI355X, all linked with all: seven rings use each of the 56 links once, so 7 x 57 = 399 GB/s of ring.
// Published, 8 GiB: all-reduce 36863 us, all-to-all 20839 us (Oracle, RCCL); two such boxes with eight 400
// Gbit/s NICs each, all-reduce: 43674 us. NCCL's search leaves a third of the links idle.
TEST(Lowering, MeshesWithoutSwitchUseAllTheirLinks) {
  const Cluster box(boxes("mi355x-8", 1), forced(Algorithm::ring));
  std::map<LinkId, double> shares;
  for (const topology::LinkShare& use : lowered(box, CollectiveKind::all_reduce, 8).usage)
    shares[use.link] += use.share;
  EXPECT_EQ(shares.size(), 56U);
  for (const auto& [link, share] : shares) EXPECT_NEAR(share, 1.75 / 7, 1e-9);

  const scenario::BenchSizes size{Bytes(std::int64_t{8} << 30), Bytes(std::int64_t{8} << 30), 2};
  const auto us = [&](std::uint32_t nodes, CollectiveKind kind) {
    scenario::Scenario scenario;
    scenario.topology = boxes("mi355x-8", nodes, "roce-400g");
    scenario.network.model = "flow";
    return microseconds(scenario::bench(scenario, topology::test::catalogue(), kind, size)[0].time);
  };
  EXPECT_NEAR(us(1, CollectiveKind::all_reduce) / 36863, 1, 0.05);
  EXPECT_NEAR(us(1, CollectiveKind::all_to_all) / 20839, 1, 0.06);
  EXPECT_NEAR(us(2, CollectiveKind::all_reduce) / 43674, 1, 0.06);
}

// A Gaudi 2 has three ports of 100 Gbit/s out of its box, 24 a box: 24 x 12.26 = 294 GB/s (packets of 4096
// bytes with 82 of headers), 0.985 of it in practice.
TEST(Lowering, GaudiUsesAllItsPortsBetweenBoxes) {
  const Cluster two(boxes("gaudi2-8", 2, "gaudi-100g"), forced(Algorithm::ring));
  const Activity activity = lowered(two, CollectiveKind::all_reduce, 16);
  expect_each(on_fabric(two, activity).nics, 48, 2 * 15.0 / 16 / 24);
  EXPECT_NEAR(activity.cap.value() * 2 * 15 / 16 / (0.985 * 24 * 12.5e9 * 4096 / 4178), 1, 0.001);
}

// nccl-tests on eight H100 and p5 (aiconfigurator 095f58a; awsome-distributed-training 7217859f), NVLS
// all-reduce.
TEST(Lowering, NvlsOnEightH100IsWithinTenPercentOfTwoPublishedSweeps) {
  const std::map<std::int64_t, std::pair<double, double>> measured = {
      {2 << 20, {38.2, 43.5}},     {4 << 20, {50.5, 55.4}},      {8 << 20, {78.9, 84.3}},
      {16 << 20, {121.9, 124.0}},  {32 << 20, {199.8, 198.6}},   {64 << 20, {324.5, 326.6}},
      {128 << 20, {578.7, 592.8}}, {256 << 20, {1092.1, 1121.4}}};
  const Form form{"hgx-h100", 1, "", Algorithm::nvls, Protocol::simple, 0};
  for (const scenario::BenchRow& row : bench(form, false, {Bytes(2 << 20), Bytes(256 << 20), 2})) {
    const auto& [one, other] = measured.at(row.size.value());
    EXPECT_NEAR(microseconds(row.time) / one, 1, 0.10) << row.size.value();
    EXPECT_NEAR(microseconds(row.time) / other, 1, 0.10) << row.size.value();
  }
}

// Bytes that each NIC sends into the fabric, per byte.
std::map<DeviceId, double> leaving(const Cluster& cluster, const Activity& activity) {
  std::map<DeviceId, double> sums;
  for (const topology::LinkShare& use : activity.usage) {
    const topology::Link& link = cluster.topology.link(use.link);
    if (cluster.topology.device(link.from).kind == DeviceKind::nic &&
        cluster.topology.device(link.to).kind == DeviceKind::fabric_switch)
      sums[link.from] += use.share;
  }
  return sums;
}

TEST(Lowering, AMessageLeavesByAllTheNicsThatItsAcceleratorHasToItself) {
  // A p5 has 32 adapters for 8 accelerators, four behind each PCIe switch: a quarter of the bytes each.
  const Cluster cluster(boxes("p5", 2, "efa-100g"));
  const auto gpus = cluster.topology.accelerators();
  Activity activity;
  cluster.nccl.lower_message(gpus[0], gpus[8], 0, activity);
  expect_each(leaving(cluster, activity), 4, 0.25);
  const std::vector<StepMessage> parts = cluster.nccl.message_parts(Bytes(10), gpus[0], gpus[8]);
  std::int64_t bytes = 0;
  for (const StepMessage& part : parts) bytes += part.bytes.value();
  EXPECT_EQ(parts.size(), 4U);
  EXPECT_EQ(bytes, 10);
  EXPECT_EQ(cluster.nccl.message_parts(Bytes(10), gpus[0], gpus[1]).size(), 1U);  // NVLink
}

TEST(Lowering, AllToAllUsesEveryNicOfABoxAlike) {
  // 16 ranks on two boxes: each of 8 GPUs sends 8/16 of its buffer to the other box, 4 bytes over 32 NICs.
  const Cluster cluster(boxes("p5", 2, "efa-100g"));
  expect_each(leaving(cluster, lowered(cluster, CollectiveKind::all_to_all, 16)), 64, 4.0 / 32);
}

// 31/32 of a byte leave each rank, however far each step goes.
TEST(Lowering, PatLeavesByEveryNic) {
  const Cluster cluster(boxes("p5", 32, "efa-100g"), forced(Algorithm::pat));
  std::vector<DeviceId> group;
  for (std::size_t box = 0; box < 32; ++box) group.push_back(cluster.topology.accelerators()[8 * box]);
  ASSERT_EQ(cluster.nccl.choose(CollectiveKind::all_gather, Bytes(1 << 20), group).algorithm, Algorithm::pat);
  Activity activity;
  cluster.nccl.lower(CollectiveKind::all_gather, Bytes(1 << 20), group, activity);
  expect_each(leaving(cluster, activity), 32 * 4, 31.0 / 32 / 4);
}

TEST(Lowering, GroupsOfOneGpuABoxUseDifferentNicsOfTheirSwitch) {
  // A DGX A100 has two GPUs and two NICs behind each PCIe switch: GPU 0's ring and GPU 1's must not meet.
  const Cluster cluster(boxes("dgx-a100", 4, "ib-hdr"));
  const auto gpus = cluster.topology.accelerators();
  std::map<DeviceId, double> used;
  for (const std::size_t first : {0U, 1U}) {
    const std::vector<DeviceId> group{gpus[first], gpus[first + 8], gpus[first + 16], gpus[first + 24]};
    Activity activity;
    cluster.nccl.lower(CollectiveKind::reduce_scatter, Bytes(256 << 20), group, activity);
    for (const auto& [nic, share] : leaving(cluster, activity)) used[nic] += share;
  }
  expect_each(used, 8, 3.0 / 4);  // (n - 1)/n bytes a rank
}

// Four a box: a ring of sixteen passes 2 x 15/16 of every byte on, a quarter by each.
TEST(Lowering, OmniPathPortsAreNics) {
  const Cluster cluster(boxes("hgx-a100-omni-path", 2, "omni-path-100"), forced(Algorithm::ring));
  expect_each(leaving(cluster, lowered(cluster, CollectiveKind::all_reduce, 16)), 8, 2 * 15.0 / 16 / 4);
}
}  // namespace topsim::collective::lowering_test

// Point-to-point messages and all-to-all, and the NICs by which they and small groups leave a box.
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "tests/collective/lowering_fixtures.hpp"

namespace topsim::collective::messages_test {

using namespace fixtures;
using topology::DeviceKind;

// All-to-all over two boxes of eight on rails: each of 16 GPUs has S/16 for every other, so 8/16 S leave by
// its NIC. With PXN the data for seven of the eight GPUs over there first goes over NVLink to the GPU on the
// receiver's rail: with the 7/16 for its own box 14/16 on NVLink, and no byte changes rail in the fabric.
TEST(Messages, PxnTakesAllToAllToTheRailOfItsReceiverOverNvlink) {
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

// Without PXN only the 7/16 for a GPU's own box take NVLink. Of the 8/16 that leave by its NIC 7/16 change to
// another rail.
TEST(Messages, WithoutPxnAllToAllLeavesByTheNearestNicAndChangesRailInTheFabric) {
  Overrides overrides;
  overrides.pxn = false;
  const Cluster two(boxes("hgx-h100", 2), overrides);
  const Activity activity = lowered(two, CollectiveKind::all_to_all, 16);
  const auto sums = two.on_nvlink(activity, true);
  expect_each(sums, 16, 7.0 / 16);
  const OnFabric fabric = on_fabric(two, activity);
  expect_each(fabric.nics, 16, 0.5);
  EXPECT_NEAR(fabric.between_switches, 2 * 16 * 7.0 / 16, 1e-9);  // 16 GPUs, up to a spine and down again
}

// So many accelerators around one switch, each with a link of 12.5 GB/s.
scenario::Scenario star(int gpus, int capability) {
  scenario::Scenario scenario;
  topology::TopologySpec& spec = scenario.topology;
  spec.models = {{.id = "gpu", .compute_capability = capability, .gpu_direct = true, .cpu_family = {}}};
  spec.devices.emplace_back();
  spec.devices[0].name = "switch";
  spec.devices[0].kind = "nvswitch";
  spec.devices[0].node = 0;
  for (int i = 0; i < gpus; ++i) {
    topology::DeviceSpec device;
    device.name = "gpu" + std::to_string(i);
    device.kind = "accelerator";
    device.model = "gpu";
    device.node = 0;
    spec.devices.push_back(device);
    topology::LinkSpec link;
    link.from = device.name;
    link.to = "switch";
    link.kind = "nvlink";
    link.link.bandwidth = link.link.capacity = BytesPerSecond(12.5e9);
    spec.links.push_back(link);
  }
  scenario.network.model = "flow";
  return scenario;
}
double seconds_of_a_gigabyte(const scenario::Scenario& scenario, CollectiveKind kind) {
  const Bytes size(std::int64_t{1'000'000'000});
  return seconds(scenario::bench(scenario, topology::test::catalogue(), kind, {size, size, 2}).rows[0].time);
}

// A rank's own part is copied within its memory while the links carry the rest, so n GPUs send (n - 1)/n of
// 1 GB at 12.5 GB/s: 40, 60 and 70 ms. The same for NVIDIA's, whose two channels copy at 2 x 18 GB/s, and for
// others.
TEST(Messages, OnSlowLinksAnAllToAllTakesItsLinksTimeAlone) {
  for (const int capability : {0, 80})
    for (const int gpus : {2, 4, 8})
      EXPECT_NEAR(seconds_of_a_gigabyte(star(gpus, capability), CollectiveKind::all_to_all) /
                      ((gpus - 1.0) / gpus / 12.5),
                  1, 0.002)
          << capability << ' ' << gpus;
}

// Rings of devices of which only the links are known run at the links' 12.5 GB/s, not at the 12 GB/s that
// NCCL's search tries: all-reduce 2 (n - 1)/n of 1 GB, all-gather (n - 1)/n.
TEST(Messages, RingsOfUnknownDevicesTakeTheirLinksTimeAlone) {
  for (const int gpus : {2, 4, 8}) {
    const double part = (gpus - 1.0) / gpus / 12.5;
    EXPECT_NEAR(seconds_of_a_gigabyte(star(gpus, 0), CollectiveKind::all_reduce) / (2 * part), 1, 0.005);
    EXPECT_NEAR(seconds_of_a_gigabyte(star(gpus, 0), CollectiveKind::all_gather) / part, 1, 0.005);
  }
}

// Both forms agree because the kernel starts once and each channel serves up to eight peers side by side.
// 1 MiB on 32 ranks: 24/32 of it leave the box, 786 kB at 48 GB/s = 16 us, behind one start (13.3 us), one
// crossing (14 us) and the posting of messages. A start and a crossing for every eight peers would be
// 3 x 27 us more. At 1 GiB no NIC may idle at the end.
TEST(Messages, AllToAllPaysItsStartOnceWhateverTheNumberOfPeers) {
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

// The host posts each message to another box in 1 us (NCCL's figure): a GPU has 8 of them over two boxes and
// 56 over eight. This does not show where the NIC needs longer for a message: at 1 GiB 17 MB or more at
// 49 GB/s.
TEST(Messages, AllToAllPostsAMessageForEveryGpuOfOtherBoxes) {
  const auto us = [](std::uint32_t boxes, std::int64_t bytes) {
    const Form form{
        "hgx-h100", boxes, "ib-ndr", Algorithm::direct, Protocol::simple, 0, CollectiveKind::all_to_all};
    return microseconds(bench(form, false, {Bytes(bytes), Bytes(bytes), 2})[0].time);
  };
  EXPECT_NEAR(us(8, 1 << 10) - us(2, 1 << 10), 56 - 8, 1);
  // Of 1 GiB 8/16 leave the box with 16 ranks and 56/64 with 64, at 0.985 of the cables' 49.6 GB/s
  // (perftest).
  const double all = (1 << 30) / (0.985 * 49.6e3);
  EXPECT_NEAR((us(8, 1 << 30) - us(2, 1 << 30)) / (all * (56.0 / 64 - 8.0 / 16)), 1, 0.01);
}

// RTX PRO 6000 Server Edition, eight GPUs on two sockets. NCCL finds no ring and reports 0.1 GB/s; messages
// do not depend on it. Of the S = 268.4 MB of each GPU, two limits:
//   - The link from a socket to a PCIe switch with two GPUs: each GPU receives 2/8 S from the socket's other
//     switch, in packets of 64 bytes that take 1.2766 times as much, and 4/8 S from the other socket through
//     memory. 2 x (2 x 1.2766 + 4) / 8 x S = 439.8 MB at 55.07 GB/s (copies over PCIe 5 x16) = 7985 us.
//   - Host memory, the slower: 7/8 S at 25.1 GB/s a GPU over two sockets = 9358 us, after a start of 16.2.
// nccl-tests measured 12.8 ms.
TEST(Messages, AllToAllOverPcieRunsAtTheRateOfTheLinksAndOfHostMemory) {
  const Form form{"rtx-pro-6000-8gpu",       1, "", Algorithm::direct, Protocol::simple, 0,
                  CollectiveKind::all_to_all};
  const double us = microseconds(bench(form, false, {Bytes(256 << 20), Bytes(256 << 20), 2})[0].time);
  EXPECT_NEAR(us, 9358 + 16.2, 5);
}

TEST(Messages, AMessageLeavesByAllTheNicsThatItsAcceleratorHasToItself) {
  // A p5 has 32 adapters for 8 accelerators, four behind each PCIe switch: a quarter of the bytes by each.
  const Cluster cluster(boxes("p5", 2, "efa-100g"));
  const auto gpus = cluster.topology.accelerators();
  Activity activity;
  cluster.nccl.lower_message(gpus[0], gpus[8], 0, activity);
  expect_each(on_fabric(cluster, activity).nics, 4, 0.25);
  const std::vector<StepMessage> parts = cluster.nccl.message_parts(Bytes(10), gpus[0], gpus[8]);
  std::int64_t bytes = 0;
  for (const StepMessage& part : parts) bytes += part.bytes.value();
  EXPECT_EQ(parts.size(), 4U);
  EXPECT_EQ(bytes, 10);
  EXPECT_EQ(cluster.nccl.message_parts(Bytes(10), gpus[0], gpus[1]).size(), 1U);  // NVLink
  EXPECT_EQ(cluster.nccl.message_parts(Bytes(3), gpus[0], gpus[8]).size(), 3U);   // none is empty
  EXPECT_EQ(cluster.nccl.message_parts(Bytes(0), gpus[0], gpus[8]).size(), 1U);
}

TEST(Messages, AllToAllUsesEveryNicOfABoxAlike) {
  // 16 ranks on two boxes: each of 8 GPUs sends 8/16 of its buffer to the other box, 4 S out of a box by 32
  // NICs.
  const Cluster cluster(boxes("p5", 2, "efa-100g"));
  expect_each(on_fabric(cluster, lowered(cluster, CollectiveKind::all_to_all, 16)).nics, 64, 4.0 / 32);
}

TEST(Messages, GroupsOfOneGpuABoxUseDifferentNicsOfTheirSwitch) {
  // A DGX A100 has two GPUs and two NICs behind each PCIe switch: GPU 0's ring and GPU 1's must not meet.
  const Cluster cluster(boxes("dgx-a100", 4, "ib-hdr"));
  const auto gpus = cluster.topology.accelerators();
  std::map<DeviceId, double> used;
  for (const std::size_t first : {0U, 1U}) {
    const std::vector<DeviceId> group{gpus[first], gpus[first + 8], gpus[first + 16], gpus[first + 24]};
    Activity activity;
    cluster.nccl.lower(CollectiveKind::reduce_scatter, Bytes(256 << 20), group, activity);
    for (const auto& [nic, share] : on_fabric(cluster, activity).nics) used[nic] += share;
  }
  expect_each(used, 8, 3.0 / 4);  // (n - 1)/n bytes a rank
}

// Four Omni-Path ports a box: a ring of 16 ranks sends 2 x 15/16 S out of each box, a quarter by each port.
TEST(Messages, OmniPathPortsAreNics) {
  const Cluster cluster(boxes("hgx-a100-omni-path", 2, "omni-path-100"), forced(Algorithm::ring));
  expect_each(on_fabric(cluster, lowered(cluster, CollectiveKind::all_reduce, 16)).nics, 8,
              2 * 15.0 / 16 / 4);
}

// In a box NCCL sends up to 16 KiB per pair with LL, for eight ranks a buffer of 128 KiB. Half of LL's bytes
// are flags, so 7/8 S are twice that on the wire.
TEST(Messages, SmallOnesInABoxTravelWithAFlagForEveryFourBytes) {
  const Cluster box(boxes("hgx-h100", 1));
  const auto sent = [&](std::int64_t bytes) {
    return box.on_nvlink(lowered(box, CollectiveKind::all_to_all, 8, bytes), true).begin()->second;
  };
  EXPECT_NEAR(sent(128 << 10), 2 * 7.0 / 8, 1e-9);
  EXPECT_NEAR(sent(256 << 10), 7.0 / 8, 1e-9);
}

// PAT gathers over 32 boxes of one GPU: 31/32 S leave each rank, by four NICs, whatever the distances of its
// steps.
TEST(Messages, PatLeavesByEveryNic) {
  const Cluster cluster(boxes("p5", 32, "efa-100g"), forced(Algorithm::pat));
  std::vector<DeviceId> group;
  for (std::size_t box = 0; box < 32; ++box) group.push_back(cluster.topology.accelerators()[8 * box]);
  ASSERT_EQ(cluster.nccl.choose(CollectiveKind::all_gather, Bytes(1 << 20), group).algorithm, Algorithm::pat);
  Activity activity;
  cluster.nccl.lower(CollectiveKind::all_gather, Bytes(1 << 20), group, activity);
  expect_each(on_fabric(cluster, activity).nics, 32 * 4, 31.0 / 32 / 4);
}

// Four channels serve 32 peers at a time, so that of 63 messages 31 wait for an earlier one to end. The host
// goes on posting meanwhile, 1 us each (NCCL's figure): the last is posted 62 us after the first, in both
// forms.
TEST(Messages, WhoWaitsForAnEarlierMessageWasPostedMeanwhile) {
  const Form form{"h100x1", 64, "ib-ndr", Algorithm::direct, Protocol::simple, 0, CollectiveKind::all_to_all};
  const scenario::BenchSizes size{Bytes(64 << 10), Bytes(64 << 10), 2};
  const double whole = microseconds(bench(form, false, size)[0].time),
               steps = microseconds(bench(form, true, size)[0].time);
  EXPECT_NEAR(steps, whole, 1);
}

// Posting is a cost of messages, not of the fabric: 1 us for each but the first. Over eight boxes of eight
// every GPU posts 56. Over a box of eight and one of four the GPUs of the four post most, eight.
TEST(Messages, WithoutTheCostsOfStepsNobodyPosts) {
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

// Each box sends over its own NICs. Two full boxes send half of every GPU's bytes over a NIC each. Of 17 GPUs
// on three boxes the one alone is last: it sends 16/17 of its bytes to the others over its NIC, where a GPU
// of a full box sends 9/17. Of 20 (8 + 8 + 4) the four are, with 16/20.
TEST(Messages, BoxesThatAreFilledUnevenlySendOverTheirOwnNics) {
  const Cluster cluster(boxes("hgx-h100", 3));
  const auto cap = [&](std::size_t gpus) {
    return lowered(cluster, CollectiveKind::all_to_all, gpus).cap.value();
  };
  EXPECT_NEAR(cap(17) * 16 / 17 / (cap(16) / 2), 1, 1e-9);
  EXPECT_NEAR(cap(20) * 16 / 20 / (cap(16) / 2), 1, 1e-9);
}

// An exchange by kernels of its own takes their time, whatever NCCL's channels would do, after NCCL's start.
// Over boxes the NICs remain a limit, 8/16 of the bytes at 0.88 of what 50 GB/s carry, but no proxy posts
// messages.
TEST(Messages, KernelsOfItsOwnReplaceNcclsChannelsAndPosts) {
  const auto lowered_with = [](const Cluster& cluster, std::size_t gpus, Duration kernels) {
    const CollectiveCall call{CollectiveKind::all_to_all, Bytes(1 << 26), kernels};
    const auto lowered =
        cluster.nccl.lower(std::span(&call, 1), cluster.topology.accelerators().subspan(0, gpus)).calls[0];
    EXPECT_EQ(lowered.choice.channels == 0, kernels > Duration{});
    return lowered.activity;
  };
  using namespace topsim::literals;
  const Cluster box(boxes("hgx-h100", 1)), two(boxes("hgx-h100", 2));
  for (const Duration kernels : {100_us, 1_ms})
    EXPECT_DOUBLE_EQ(lowered_with(box, 8, kernels).cap.value(), (1 << 26) / seconds(kernels));
  const Activity by_nccl = lowered_with(two, 16, {}), fast = lowered_with(two, 16, 1_us);
  EXPECT_DOUBLE_EQ(fast.cap.value(), 0.88 / 0.985 * by_nccl.cap.value());
  EXPECT_LE(fast.latency, by_nccl.latency);
  EXPECT_DOUBLE_EQ(lowered_with(two, 16, 10_ms).cap.value(), (1 << 26) / 10e-3);
}

// NCCL 2.30 counts one channel for each 64 KiB of a message over NVLink and uses LL up to 16 KiB per channel:
// 16 KiB per pair, whatever the number of ranks. The figures for A100 are of NCCL 2.27, which counted all
// channels of a pair: of 24, rounded to 32, two GPUs have 16, so 256 KiB.
TEST(Messages, GoWithLLAsFarAsNcclSendsThemSo) {
  const auto protocol = [](const char* node, std::size_t gpus, CollectiveKind kind, std::int64_t bytes) {
    const Cluster box(boxes(node, 1));
    return box.nccl.choose(kind, Bytes(bytes), box.topology.accelerators().subspan(0, gpus)).protocol;
  };
  for (const std::size_t gpus : {2U, 8U}) {
    const auto pairs = static_cast<std::int64_t>(gpus);
    for (const char* node : {"hgx-h100", "hgx-b200"}) {
      EXPECT_EQ(protocol(node, gpus, CollectiveKind::all_to_all, pairs << 14), Protocol::ll) << node << gpus;
      EXPECT_EQ(protocol(node, gpus, CollectiveKind::all_to_all, pairs << 15), Protocol::simple)
          << node << gpus;
    }
  }
  EXPECT_EQ(protocol("hgx-h100", 2, CollectiveKind::send_recv, 1 << 14), Protocol::ll);
  EXPECT_EQ(protocol("hgx-a100", 2, CollectiveKind::send_recv, 256 << 10), Protocol::ll);
  EXPECT_EQ(protocol("hgx-a100", 2, CollectiveKind::send_recv, 512 << 10), Protocol::simple);
}

// Each GPU sends S to the next. The last one of a box sends to the first one of the next box, on another
// rail: with PXN the bytes change rail over NVLink, without in the fabric, up to a spine and down. Two boxes:
// 2 x 2 S.
TEST(Messages, NeighboursChangeRailInTheFabricOnlyWithoutPxn) {
  for (const bool pxn : {true, false}) {
    Overrides overrides;
    overrides.pxn = pxn;
    const Cluster two(boxes("hgx-h100", 2), overrides);
    const OnFabric fabric = on_fabric(two, lowered(two, CollectiveKind::send_recv, 16));
    EXPECT_EQ(fabric.between_switches, pxn ? 0 : 2 * 2);
  }
}

// bench lowers the capacity of ports as a run does. On 4:1 oversubscribed uplinks flows are hashed onto the
// same ports, which lose part of their capacity with RoCE; on rails of their own no flows meet.
TEST(Messages, FlowsOfABenchThatMeetLoseWhatTheyLoseInARun) {
  const auto us = [](topology::FabricKind kind, double oversubscription, scenario::ContentionForm form) {
    scenario::Scenario scenario;
    scenario.topology = boxes("hgx-h100-roce", 8, "roce-400g");
    scenario.topology.fabric.kind = kind;
    scenario.topology.fabric.routing = topology::Routing::ecmp;
    scenario.topology.fabric.nodes_per_leaf = 2;
    if (oversubscription > 1) scenario.topology.fabric.oversubscription = {oversubscription};
    if (oversubscription == 1) scenario.topology.fabric.nodes_per_leaf.reset();
    scenario.network.contention = form;
    const scenario::BenchSizes size{Bytes(256 << 20), Bytes(256 << 20), 2};
    return microseconds(
        scenario::bench(scenario, topology::test::catalogue(), CollectiveKind::all_to_all, size)
            .rows[0]
            .time);
  };
  using scenario::ContentionForm;
  EXPECT_GT(us(topology::FabricKind::fat_tree, 4, ContentionForm::calibrated),
            1.1 * us(topology::FabricKind::fat_tree, 4, ContentionForm::ideal));
  EXPECT_EQ(us(topology::FabricKind::rail, 1, ContentionForm::calibrated),
            us(topology::FabricKind::rail, 1, ContentionForm::ideal));
}

// NCCL gives every channel its own connection to a peer (transport/net.cc), and ECMP hashes connections. So
// both forms must put the same bytes on every cable of the fabric, also where connections meet: several of 32
// channels go through the same GPUs and NICs.
TEST(Messages, ChannelsAreHashedOneByOneInBothForms) {
  for (const auto& [node, count, kind, algorithm] :
       {std::tuple{"dgx-a100", 2U, CollectiveKind::all_gather, Algorithm::ring},
        std::tuple{"hgx-h100", 4U, CollectiveKind::reduce_scatter, Algorithm::ring},
        std::tuple{"dgx-a100", 3U, CollectiveKind::all_reduce, Algorithm::tree},
        std::tuple{"hgx-h100", 4U, CollectiveKind::all_to_all, Algorithm::direct},
        std::tuple{"hgx-h100", 2U, CollectiveKind::send_recv, Algorithm::direct}}) {
    SCOPED_TRACE(node);
    topology::TopologySpec spec = boxes(node, count, "roce-400g");
    spec.fabric.kind = topology::FabricKind::fat_tree;
    spec.fabric.routing = topology::Routing::ecmp;
    spec.fabric.nodes_per_leaf = 1;
    Overrides overrides = forced(algorithm);
    overrides.channels = 32;
    const Cluster cluster(spec, overrides);
    const auto gpus = cluster.topology.accelerators();
    const auto in_fabric = [&](LinkId link) {
      return cluster.topology.device(cluster.topology.link(link).from).kind == DeviceKind::fabric_switch;
    };
    std::map<LinkId, double> as_messages, as_a_whole;
    const double bytes = 64 << 20;
    const StepPlan plan = cluster.nccl.steps(kind, Bytes(64 << 20), gpus);
    for (const StepMessage& message : plan.messages) {
      Activity hop;
      cluster.nccl.lower_step(message, gpus, hop);
      for (const topology::LinkShare& use : hop.usage)
        if (in_fabric(use.link))
          as_messages[use.link] += use.share * static_cast<double>(message.bytes.value()) / bytes;
    }
    for (const topology::LinkShare& use : lowered(cluster, kind, gpus.size()).usage)
      if (in_fabric(use.link)) as_a_whole[use.link] += use.share;
    EXPECT_EQ(as_messages.size(), as_a_whole.size());
    for (const auto& [link, share] : as_a_whole) EXPECT_NEAR(as_messages[link], share, 1e-3 * share);
  }
}
}  // namespace topsim::collective::messages_test

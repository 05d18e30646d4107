// What a run reports about hardware that cannot do what is asked of it.
#include "sim/scenario/findings/hardware_findings.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/scenario/read/read.hpp"
#include "sim/scenario/run/simulate.hpp"

namespace topsim::scenario::hardware_findings_test {
using testing::HasSubstr;
using testing::IsEmpty;

std::string words(const std::vector<std::string>& changes, const char* file = "configs/8xH100-ib.json") {
  const config::Library library({"configs"});
  static const topology::Catalogue catalogue = topology::Catalogue::load("configs");
  const Scenario scenario = read_scenario(file, changes, library);
  std::string all;
  for (const report::Finding& finding :
       hardware_findings(scenario, prepare(scenario, catalogue, {}).topology, catalogue))
    all += finding.message + "\n";
  return all;
}

TEST(HardwareFindings, NothingOfHardwareThatFits) {
  EXPECT_THAT(words({}), IsEmpty());
  EXPECT_THAT(words({"workload.precision=fp8"}), IsEmpty());
}

// A ConnectX-7 has ports of 400 Gbit/s, a Spectrum-4 is an Ethernet switch. Gaudi2 has 8-bit units without
// scales of blocks, and an Ascend 910B none; of their makers' software nothing is known that would refuse.
TEST(HardwareFindings, SayWhatCannotBe) {
  EXPECT_THAT(words({"topology.fabric.link=ib-xdr"}),
              HasSubstr("runs at 400 Gbit/s, which is what InfiniBand XDR 800 Gbit/s carries"));
  EXPECT_THAT(words({"topology.fabric.switch=sn5600"}), HasSubstr("has no ports for InfiniBand NDR"));
  EXPECT_THAT(words({"workload.precision=mxfp8"}, "configs/gaudi2.json"),
              HasSubstr("has fp8 units, but none that scale blocks of 32"));
  EXPECT_THAT(
      words({"topology={\"node\": \"ascend-910b-8\"}", "workload.plan.dp=1", "workload.precision=fp8"},
            "configs/gaudi2.json"),
      HasSubstr("has no fp8 units"));
}

// EFA's second NIC has 100 Gbit/s, a ConnectX-7 400; eight of either.
TEST(HardwareFindings, SayWhatANicInAnothersPlaceBrings) {
  EXPECT_THAT(words({"topology.node={\"use\": \"hgx-h100\", \"nic\": \"efa-v2\"}"}),
              HasSubstr("efa-v2 brings 800 Gbit/s to a node (8 NICs of 100); hgx-h100 has 8 of 400 itself"));
  EXPECT_THAT(words({"topology.node={\"use\": \"hgx-h100\", \"nic\": \"bluefield-3\"}"}),
              testing::Not(HasSubstr("to a node (")));
}

// The example's sequences have 8192 tokens.
TEST(HardwareFindings, SayWhichOfTwoSequencesCounts) {
  const char* model = "workload.model={\"use\": \"llama3-70b\", \"sequence\": 4096}";
  EXPECT_THAT(words({model}), HasSubstr("sequences have the 8192 tokens of workload.sequence, not the 4096"));
  EXPECT_THAT(words({model, "workload.sequence=4096"}), testing::Not(HasSubstr("sequences have")));
}

// The 64 nodes fill two groups of 128 NICs. Of two groups none is a third; of three one is.
TEST(HardwareFindings, SayHowMessagesBetweenGroupsOfADragonflyAreRouted) {
  const char* dragonfly = "configs/dragonfly.json";
  EXPECT_THAT(words({}, dragonfly), testing::Not(HasSubstr("of the dragonfly")));
  const char* three = "topology.fabric.dimensions=[3, 16, 8, 17]";
  EXPECT_THAT(words({three}, dragonfly), HasSubstr("goes through third groups"));
  EXPECT_THAT(words({three, "topology.nodes=32", "workload.plan.dp=32"}, dragonfly),
              testing::Not(HasSubstr("of the dragonfly")));
  EXPECT_THAT(words({three, "network.model=packet"}, dragonfly),
              HasSubstr("packets between groups of the dragonfly take its shortest paths only"));
}

// EFA, TCPXO and Slingshot need NICs of their own, and EFA's do no RoCE; TCP runs on all Ethernet.
TEST(HardwareFindings, SayWhichNicsDoNotDoALink) {
  const auto on = [](const char* link) {
    return std::string("topology.fabric={\"kind\": \"fat-tree\", \"link\": \"") + link + "\"}";
  };
  EXPECT_THAT(words({on("efa-100g")}), HasSubstr("400GbE does not do AWS EFA 100 Gbit/s"));
  EXPECT_THAT(words({on("tcpxo-200g")}), HasSubstr("does not do GPUDirect-TCPXO"));
  EXPECT_THAT(words({on("slingshot-200")}), HasSubstr("does not do Slingshot-11"));
  EXPECT_THAT(words({"topology.node=p5", on("roce-100g")}), HasSubstr("AWS EFA v2 (P5) does not do RoCEv2"));
  for (const char* link : {"roce-400g", "roce-100g", "eth-100g"})
    EXPECT_THAT(words({on(link)}), testing::Not(HasSubstr("does not do"))) << link;
  EXPECT_THAT(words({"topology.node=p5", on("efa-100g")}), testing::Not(HasSubstr("does not do")));
  EXPECT_THAT(words({"topology.node=p5", on("eth-100g")}), testing::Not(HasSubstr("does not do")));
}

// Ports of hgx-h100-200g run at half of what its NICs can.
TEST(HardwareFindings, SayWhichPortsOfANodeRunSlower) {
  const char* roce = "topology.fabric={\"kind\": \"rail\", \"link\": \"roce-400g\"}";
  EXPECT_THAT(words({"topology.node=hgx-h100-200g", roce}),
              HasSubstr("runs at 200 Gbit/s in this node, which is what RoCEv2 on 400GbE carries here"));
  EXPECT_THAT(words({"topology.node=hgx-h100", roce}), testing::Not(HasSubstr("runs at")));
}

// Said only of ecmp on InfiniBand: not of a routing that InfiniBand has, nor of the default, nor on Ethernet,
// whose switches hash.
TEST(HardwareFindings, SayThatInfinibandHashesNothing) {
  const char* said = "InfiniBand's switches hash no queue pairs";
  EXPECT_THAT(words({"topology.fabric.routing=ecmp"}), HasSubstr(said));
  EXPECT_THAT(words({"topology.fabric.routing=static"}), testing::Not(HasSubstr(said)));
  EXPECT_THAT(words({"topology.fabric={\"kind\": \"rail\", \"link\": \"ib-ndr\"}"}),
              testing::Not(HasSubstr(said)));
  EXPECT_THAT(words({"topology.fabric={\"kind\": \"rail\", \"link\": \"roce-400g\", \"routing\": \"ecmp\"}"}),
              testing::Not(HasSubstr(said)));
}

// 31 packets of 4 KiB there and back. 300 m between two switches of 0.25 us take 3.5 us: 290 Gbit/s. 200 m
// take 2.5 us, less than the 2.556 for which 31 packets last at the 49.68 GB/s of NDR's payload.
TEST(HardwareFindings, SayWhichInfinibandCablesAreTooLongForTheirCredits) {
  const auto far = [](const char* link, int metres) {
    return words({fmt::format(R"(topology.fabric={{"kind": "rail", "link": "{}", "length": "{} m", )"
                              R"("switch": {{"latency": "250 ns"}}}})",
                              link, metres)});
  };
  EXPECT_THAT(far("ib-ndr", 300),
              HasSubstr("from leaf0 to spine0 carries 290 of 400 Gbit/s: there and back take 3.5 us"));
  EXPECT_THAT(far("ib-ndr", 200), testing::Not(HasSubstr("on the way")));
  EXPECT_THAT(far("roce-400g", 300), testing::Not(HasSubstr("on the way")));
}

// A spine above eight leaves of eight boxes has 64 cables. With 0.6 us of a switch, 10 km put 3 x 50 GB/s
// x 50.6 us on each, 485.8 MB of the 160 MB of an SN5600; 2 km 101.8.
TEST(HardwareFindings, SayWhereCablesAreTooLongForTheHeadroomOfPfc) {
  const auto far = [](int kilometres, const char* pfc) {
    return words({fmt::format(R"(topology.fabric={{"kind": "rail", "link": "roce-400g", "length": "{} km", )"
                              R"("switch": {{"use": "sn5600", "latency": "600 ns"}}}})",
                              kilometres),
                  pfc});
  };
  const char *on = "network.packet.pfc.enabled=true", *off = "network.packet.pfc.enabled=false";
  EXPECT_THAT(far(10, on), HasSubstr("the 64 cables of spine0 is 486 MB, and its ports share 160 MB"));
  EXPECT_THAT(far(2, on), testing::Not(HasSubstr("under way on")));
  EXPECT_THAT(far(10, off), testing::Not(HasSubstr("under way on")));
}

// A V100's fp16 units compute no bf16 (10.65 TFLOP/s measured).
TEST(HardwareFindings, SayWhichUnitsComputeBf16) {
  const std::vector<std::string> volta = {"topology.node=dgx-1-v100", "workload.model=llama3-8b"};
  EXPECT_THAT(words(volta), HasSubstr("has no bf16 units: products in bf16 run on its fp32 units, at 10.7"));
  EXPECT_THAT(words({volta[0], volta[1], "workload.precision=fp16"}), testing::Not(HasSubstr("units")));
}

// Blackwell's tensor cores scale blocks; Transformer Engine runs on Ampere and later.
TEST(HardwareFindings, SayWhatAGenerationLacks) {
  const std::vector<std::string> b200 = {"topology.node=hgx-b200", "workload.precision=mxfp8"};
  EXPECT_THAT(words(b200), testing::Not(HasSubstr("blocks of 32")));
  const std::vector<std::string> ring = {"workload.plan.tp_overlap=userbuffers"},
                                 volta = {ring[0], "topology.node=dgx-1-v100", "workload.model=llama3-8b"};
  EXPECT_THAT(words(ring), testing::Not(HasSubstr("Transformer Engine")));
  EXPECT_THAT(words(volta), HasSubstr("Transformer Engine's, which does not run on NVIDIA V100"));
}

// User buffers need all ranks of a tensor group in one NVLink domain: not eight over two nodes of four GH200,
// nor four in a box without NVLink, nor 16 on boxes of eight MI300X; but four GH200, eight GPUs of trays in
// one NVL72, and one box of MI300X.
TEST(HardwareFindings, SayWhereUserBuffersCannotBe) {
  const auto on = [](const char* node, int nodes, int tp) {
    return words(
        {"workload.model=llama3-8b", "workload.sequence=2048",
         fmt::format(R"(topology={{"node": "{}", "nodes": {}, "fabric": "rail"}})", node, nodes),
         fmt::format(
             R"(workload.plan={{"tp": {}, "micro_batch": 1, "global_batch": 144, "zero": 1, "recompute": "full",
                                                 "tp_overlap": "userbuffers", "sequence_parallel": true}})",
             tp)});
  };
  EXPECT_THAT(
      on("gh200x4-slingshot", 4, 8),
      HasSubstr(
          "need one NVLink domain that holds a whole tensor group, and none holds ranks 0 and 4 of tp 8"));
  EXPECT_THAT(on("l40s-4gpu", 4, 4), HasSubstr("none holds ranks 0 and 1 of tp 4"));
  EXPECT_THAT(on("mi300x-8", 4, 16), HasSubstr("need one scale-up domain"));
  EXPECT_THAT(on("gh200x4-slingshot", 4, 4), testing::Not(HasSubstr("user buffers")));
  EXPECT_THAT(on("gb200-nvl72", 18, 8), testing::Not(HasSubstr("user buffers")));
  EXPECT_THAT(on("mi300x-8", 4, 8), testing::Not(HasSubstr("user buffers")));
}

// Two NVL72 hold 4.5 expert groups of 16 each, so ranks 64 to 79 lie in both; groups of 8 divide them.
TEST(HardwareFindings, SayWhereExpertGroupsLieAcrossDomains) {
  const auto with = [](int ep) {
    return words({"workload.model=qwen3-30b-a3b", "workload.sequence=2048",
                  R"(topology={"node": "gb200-nvl72", "nodes": 36, "fabric": "rail"})",
                  fmt::format(R"(workload.plan={{"ep": {}, "micro_batch": 1, "global_batch": 144}})", ep)});
  };
  EXPECT_THAT(with(16),
              HasSubstr("expert groups of 16 ranks do not divide scale-up domains of 72: ranks 64 to "
                        "79 lie in two"));
  EXPECT_THAT(with(8), testing::Not(HasSubstr("expert groups")));
}

TEST(HardwareFindings, SayWhichPartsOfAModelAreDescribedButSwitchedOff) {
  EXPECT_THAT(words({R"(workload.model={"use": "llama3-8b", "experts": {"top_k": 2}})"}),
              HasSubstr("the model is dense"));
  EXPECT_THAT(words({R"(workload.model={"use": "llama3-8b", "attention": {"kv_lora_rank": 512}})"}),
              HasSubstr("keys and values are not compressed"));
}

// 64 accelerators fill 8 of 16 nodes, even with placement spread. With 4 accelerators in each node all are
// used.
TEST(HardwareFindings, SayWhichNodesHaveNoRank) {
  const std::vector<std::string> half = {"topology.nodes=16", "topology.accelerators=64",
                                         "topology.placement=spread"};
  EXPECT_THAT(words(half), HasSubstr("64 accelerators fill 8 of the 16 nodes, 8 in each"));
  const std::vector<std::string> parts = {"topology.nodes=16", "topology.node.accelerators=4"};
  EXPECT_THAT(words(parts), testing::Not(HasSubstr("nodes, ")));
}

TEST(HardwareFindings, SayThatTimesOfTrainiumAreNotHeldToMeasurements) {
  EXPECT_THAT(words({"topology.node=trn2", "topology.nodes=4"}), HasSubstr("follow the links of its torus"));
  EXPECT_THAT(words({"topology.nodes=8"}), testing::Not(HasSubstr("torus")));
}

// TPU v5p joins the ends of whole cubes of 4 x 4 x 4.
TEST(HardwareFindings, SayWhichAxesOfATorusAreLines) {
  const std::string slice = "topology.fabric.dimensions=[2, 8, 8]",
                    said = "ends of the axes of 8 and 8 are not";
  EXPECT_THAT(words({slice}, "configs/tpu-v5p.json"), HasSubstr(said));
  EXPECT_THAT(words({slice, "topology.fabric.rings=true"}, "configs/tpu-v5p.json"),
              testing::Not(HasSubstr(said)));
  EXPECT_THAT(words({}, "configs/tpu-v5p.json"), testing::Not(HasSubstr("not joined")));
}

// One thread copies 1 / (1/5.25 + 1/11.125) = 3.57 GB/s each way: more than a cable of 25 Gbit/s carries,
// less than one of 100. Four threads per connection copy 21.
TEST(HardwareFindings, SayWhereHostsCopyLessThanTcpCablesCarry) {
  EXPECT_THAT(
      words({"topology.fabric.link=eth-100g", "topology.fabric.switch=sn2700"}),
      HasSubstr("TCP: limited by the hosts' copies: the one thread of an accelerator that serves NCCL's "
                "sockets copies 3.57 GB/s each way"));
  for (const std::vector<std::string>& changes :
       {std::vector<std::string>{"topology.fabric.link=eth-25g", "topology.fabric.switch=tor-25g"},
        std::vector<std::string>{"topology.fabric.link=eth-100g", "topology.fabric.switch=sn2700",
                                 "network.nccl.socket_nthreads=4"},
        std::vector<std::string>{"topology.fabric.link=roce-400g", "topology.fabric.switch=sn5400"}})
    EXPECT_THAT(words(changes), testing::Not(HasSubstr("TCP")));
}

TEST(HardwareFindings, SayThatAPluginsHopDoesNotFollowTheCables) {
  const std::vector<std::string> efa = {"topology.node=p5en", R"(topology.fabric={"kind": "rail"})"};
  std::vector<std::string> shorter = {
      efa[0], R"(topology.fabric={"kind": "rail", "link": {"use": "efa-200g", "latency": "1 us"}})"};
  EXPECT_THAT(words(efa), testing::Not(HasSubstr("plugin")));
  EXPECT_THAT(words(shorter), HasSubstr("takes the 35 us of AWS' network plugin"));
}

// Eight H100 nodes: NVLS works within a box; CollNet needs SHARP in the fabric.
TEST(HardwareFindings, SayWhatWasForcedAndNotDone) {
  const config::Library library({"configs"});
  static const topology::Catalogue catalogue = topology::Catalogue::load("configs");
  const auto forced = [&](const std::string& change, const char* file = "configs/8xH100-ib.json") {
    const std::vector<std::string> changes = {change, "run.steps=1", "run.warmup=0"};
    const Scenario scenario = read_scenario(file, changes, library);
    std::string all;
    for (const report::Finding& finding : simulate(scenario, catalogue, {}, nullptr).result.findings)
      all += finding.message + "\n";
    return all;
  };
  EXPECT_THAT(forced("network.nccl.algorithm=collnet-direct"),
              HasSubstr("no collective ran with CollNetDirect"));
  EXPECT_THAT(forced("network.nccl.sharp=true"), HasSubstr("the fabric's switches do not sum"));
  EXPECT_THAT(forced("network.nccl.algorithm=ring"), testing::Not(HasSubstr("no collective ran")));
  const char* chunks = "network.nccl.nvls_chunksize=512 KiB";
  EXPECT_THAT(forced(chunks), testing::Not(HasSubstr("no NVSwitch here sums")));
  EXPECT_THAT(forced(chunks, "configs/16xA100-hdr.json"),
              HasSubstr("network.nccl.nvls_chunksize is set, and no NVSwitch here sums"));
  // ZeRO 1 scatters and gathers, which SHARP does not sum; it sums only the norm of 4 B.
  EXPECT_THAT(forced("topology.fabric.sharp=true"),
              HasSubstr("topology.fabric.sharp changes next to nothing"));
  EXPECT_THAT(forced("topology.fabric.sharp=false"), testing::Not(HasSubstr("changes next to nothing")));
}

// 4:1 needs 2.5 cables up for ten ports; three are built, 3.33:1.
TEST(HardwareFindings, SayWhichRatioWasBuiltWhereCablesDoNotMakeTheOneAskedFor) {
  const std::vector<std::string> ten = {"topology.nodes=10", "workload.plan.dp=5",
                                        "workload.plan.global_batch=160"};
  std::vector<std::string> four = ten, two = ten;
  four.push_back("topology.fabric.oversubscription=4");
  two.push_back("topology.fabric.oversubscription=2");
  EXPECT_THAT(words(four), HasSubstr("the leaves are built 3.33:1 oversubscribed, not 4:1 as asked"));
  EXPECT_THAT(words(two), IsEmpty());
}

// 256 ports at 2:1 fill six leaves of 40 and leave 16 on a seventh, which is not another ratio: the full ones
// have the one asked for. 1000:1 would be a twenty-fifth of a cable.
TEST(HardwareFindings, CompareTheRatioOfFullLeavesWithTheOneAskedFor) {
  const std::vector<std::string> many = {"topology.nodes=32", "workload.plan.dp=null",
                                         "workload.plan.global_batch=null", "topology.fabric.kind=fat-tree",
                                         "topology.fabric.tiers=2"};
  std::vector<std::string> two = many, thousand = many;
  two.push_back("topology.fabric.oversubscription=2");
  thousand.push_back("topology.fabric.oversubscription=1000");
  EXPECT_THAT(words(two), testing::Not(HasSubstr("as asked")));
  EXPECT_THAT(words(thousand), HasSubstr("not 1000:1 as asked"));
}

// Eight nodes with one leaf per rail and no spines: nothing can be oversubscribed.
TEST(HardwareFindings, SayThatARatioHasNothingToActOn) {
  EXPECT_THAT(words({"topology.fabric.kind=rail-only", "topology.fabric.oversubscription=4"}),
              HasSubstr("nothing is oversubscribed 4:1: the leaves"));
  EXPECT_THAT(words({"topology.fabric.oversubscription=[2, 7]"}),
              HasSubstr("nothing is oversubscribed 7:1: the spines"));
  EXPECT_THAT(words({"topology.fabric.oversubscription=4"}), IsEmpty());
}

// Four HGX H100 have 4 x 8 = 32 ports, which fit the half of a leaf's 64 that does not lead up: a spine above
// it would pass nothing on. Two leaves have one, and on rails every NIC of a node has a leaf of its own.
TEST(HardwareFindings, SayThatTiersAreNotBuiltAboveOneLeaf) {
  const std::vector<std::string> four = {"topology.nodes=4", "workload.plan.dp=2",
                                         "workload.plan.global_batch=64", "topology.fabric.tiers=2"};
  std::vector<std::string> tree = four, apart = four;
  tree.push_back("topology.fabric.kind=fat-tree");
  apart.push_back("topology.fabric.kind=rail-only");
  EXPECT_THAT(words(tree), HasSubstr("one tier of switches, not 2 as asked: one leaf serves all nodes"));
  EXPECT_THAT(words(apart), HasSubstr("nothing joins rails"));
  tree.push_back("topology.fabric.nodes_per_leaf=2");
  EXPECT_THAT(words(tree), testing::Not(HasSubstr("as asked")));
  EXPECT_THAT(words(four), testing::Not(HasSubstr("as asked")));
}

// A rate given in the scenario is the one that ports must carry.
TEST(HardwareFindings, HoldTheRateThatTheScenarioSays) {
  EXPECT_THAT(words({R"(topology.fabric.link={"use": "ib-ndr", "bandwidth": "800 Gbit/s"})"}),
              HasSubstr("runs at 400 Gbit/s"));
  EXPECT_THAT(words({R"(topology.fabric.link={"use": "ib-xdr", "bandwidth": "400 Gbit/s"})",
                     "topology.fabric.switch=qm9700"}),
              testing::Not(HasSubstr("runs at 400")));
}
}  // namespace topsim::scenario::hardware_findings_test

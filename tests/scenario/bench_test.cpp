// What `topsim bench` does with a forced algorithm or protocol.
#include "sim/scenario/bench/bench.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "sim/scenario/bench/bench_text.hpp"
#include "sim/scenario/cluster/calibration.hpp"
#include "sim/scenario/read/read.hpp"
#include "tests/topology/fixtures.hpp"

namespace topsim::scenario::bench_test {

using collective::Algorithm;
using collective::CollectiveKind;
using collective::Protocol;

collective::Choice ran(const char* node, int nodes, CollectiveKind kind,
                       const collective::Overrides& overrides, CollectiveForm form) {
  Scenario scenario;
  scenario.topology = topology::test::cluster(
      node, nodes, nodes > 1 ? topology::FabricKind::rail : topology::FabricKind::none);
  scenario.network.model = "flow";
  scenario.network.nccl = overrides;
  scenario.network.collectives = form;
  return bench(scenario, topology::test::catalogue(), kind, {Bytes(1 << 20), Bytes(1 << 20), 2})
      .rows[0]
      .choice;
}

collective::Overrides forced(Algorithm algorithm, std::optional<Protocol> protocol = {}) {
  collective::Overrides overrides;
  overrides.algorithm = algorithm;
  overrides.protocol = protocol;
  return overrides;
}

// Refused in both forms: NVLS on an A100, whose NVSwitches sum nothing; a broadcast by tree; NVLS with
// protocol LL.
TEST(Bench, WhatIsForcedAndUnavailableIsRefusedInBothForms) {
  for (const CollectiveForm form : {CollectiveForm::pipelined, CollectiveForm::steps}) {
    EXPECT_THROW(ran("dgx-a100", 1, CollectiveKind::all_reduce, forced(Algorithm::nvls), form), ConfigError);
    EXPECT_THROW(ran("hgx-h100", 2, CollectiveKind::broadcast, forced(Algorithm::tree), form), ConfigError);
    EXPECT_THROW(ran("hgx-h100", 1, CollectiveKind::all_reduce, forced(Algorithm::nvls, Protocol::ll), form),
                 ConfigError);
  }
}

// The flow model has no packets, so that none is lost.
TEST(Bench, SettingsOfPacketsWithoutThemAreSaidToChangeNothing) {
  Scenario scenario = parse_scenario(R"({"topology": {"node": "hgx-h100", "nodes": 2,
      "fabric": {"kind": "rail", "link": "roce-400g"}}, "network": {"packet": {"loss": {"probability": 0.01}}},
      "workload": {"model": "llama3-8b", "plan": {"tp": 8}}})",
                                     "lossy", {}, config::Library({"configs"}));
  const auto findings = [&] {
    std::string text;
    for (const report::Finding& each : bench(scenario, topology::test::catalogue(),
                                             CollectiveKind::all_reduce, {Bytes(1 << 20), Bytes(1 << 20), 2})
                                           .findings)
      text += each.message + '\n';
    return text;
  };
  EXPECT_NE(findings().find("network.packet.loss changes nothing: network.model is flow"), std::string::npos);
  scenario.network.model = "packet";
  EXPECT_EQ(findings().find("changes nothing"), std::string::npos);
}

// One thread launches eight kernels of 4.2 us each, 33.6 us, in whichever form 1 KiB travels. What takes
// longer than that hides them.
TEST(Bench, OneThreadForAllGpusLimitsSmallMessages) {
  for (const CollectiveForm form : {CollectiveForm::pipelined, CollectiveForm::steps}) {
    Scenario scenario;
    scenario.topology = topology::test::cluster("hgx-h100", 1, topology::FabricKind::none);
    scenario.network.model = "flow";
    scenario.network.collectives = form;
    const BenchSizes sizes{Bytes(1 << 10), Bytes(64 << 20), 1 << 16};
    const auto own = bench(scenario, topology::test::catalogue(), CollectiveKind::all_reduce, sizes).rows;
    scenario.network.nccl.gpus_per_thread = 8;
    const auto shared = bench(scenario, topology::test::catalogue(), CollectiveKind::all_reduce, sizes).rows;
    EXPECT_LT(own[0].time, std::chrono::microseconds(20));
    EXPECT_EQ(shared[0].time, std::chrono::nanoseconds(33600));
    EXPECT_DOUBLE_EQ(shared[0].bytes_per_second, 1024 / 33.6e-6);
    EXPECT_EQ(shared[1].time, own[1].time);
    scenario.network.nccl.gpus_per_thread = 9;  // a node has eight
    EXPECT_THROW(bench(scenario, topology::test::catalogue(), CollectiveKind::all_reduce, sizes),
                 ConfigError);
  }
}

// Each message names what the algorithm lacks, and not what another one lacks.
TEST(Bench, WhatIsRefusedSaysWhatItNeeds) {
  const auto help = [](CollectiveKind kind, Algorithm algorithm) {
    try {
      (void)ran("hgx-h100", 2, kind, forced(algorithm), CollectiveForm::pipelined);
    } catch (const ConfigError& error) {
      return error.problems()[0].help;
    }
    return std::string("it runs");
  };
  EXPECT_NE(help(CollectiveKind::all_gather, Algorithm::pat).find("one accelerator"), std::string::npos);
  EXPECT_NE(help(CollectiveKind::all_gather, Algorithm::tree).find("all-reduces alone"), std::string::npos);
  EXPECT_NE(help(CollectiveKind::all_reduce, Algorithm::nvls).find("sharp"), std::string::npos);
}

// A channel is a thread block: 4 channels move a quarter of what NCCL's usual 16 move, and more than 16 move
// no more.
TEST(Bench, FewerChannelsOfNvlsAreSlower) {
  for (const int nodes : {1, 2}) {
    Scenario scenario;
    scenario.topology = topology::test::cluster(
        "hgx-h100", nodes, nodes > 1 ? topology::FabricKind::rail : topology::FabricKind::none);
    scenario.network.model = "flow";
    scenario.network.nccl = forced(nodes > 1 ? Algorithm::nvls_tree : Algorithm::nvls);
    std::map<int, double> time;
    for (const int channels : {1, 4, 16, 32}) {
      scenario.network.nccl.channels = channels;
      time[channels] = seconds(bench(scenario, topology::test::catalogue(), CollectiveKind::all_reduce,
                                     {Bytes(1LL << 30), Bytes(1LL << 30), 2})
                                   .rows[0]
                                   .time);
    }
    EXPECT_GT(time[1], 3 * time[4]);
    EXPECT_GE(time[32], time[16]);
    if (nodes == 1) {  // between boxes the NICs, not the channels, set the limit
      EXPECT_NEAR(time[4] / time[16], 4, 0.2);
    }
    scenario.network.nccl.channels.reset();
    EXPECT_EQ(time[16], seconds(bench(scenario, topology::test::catalogue(), CollectiveKind::all_reduce,
                                      {Bytes(1LL << 30), Bytes(1LL << 30), 2})
                                    .rows[0]
                                    .time));
  }
}

// 72 GPUs in one NVLink domain need no NIC; in two domains they do.
TEST(Bench, ADomainIsNoSlowerThanTwo) {
  const config::Library library({"configs"});
  const topology::Catalogue catalogue = topology::Catalogue::load("configs");
  const auto time = [&](const char* nodes) {
    const Scenario scenario =
        read_scenario("configs/gb200-nvl72.json", std::vector<std::string>{nodes}, library);
    return bench(scenario, catalogue, CollectiveKind::all_reduce, {Bytes(256 << 20), Bytes(256 << 20), 2})
        .rows[0]
        .time;
  };
  EXPECT_LT(time("topology.nodes=18"), time("topology.nodes=36"));
}

// NVLS in one box and PAT have no message form: a ring or a tree stands in, and the row names it.
TEST(Bench, WhatIsAvailableButHasNoMessagesIsStoodInFor) {
  EXPECT_EQ(ran("hgx-h100", 1, CollectiveKind::all_reduce, forced(Algorithm::nvls), CollectiveForm::pipelined)
                .algorithm,
            Algorithm::nvls);
  EXPECT_NE(ran("hgx-h100", 1, CollectiveKind::all_reduce, forced(Algorithm::nvls), CollectiveForm::steps)
                .algorithm,
            Algorithm::nvls);
  EXPECT_EQ(ran("h100x1", 4, CollectiveKind::all_gather, forced(Algorithm::pat), CollectiveForm::pipelined)
                .algorithm,
            Algorithm::pat);
  EXPECT_EQ(
      ran("h100x1", 4, CollectiveKind::all_gather, forced(Algorithm::pat), CollectiveForm::steps).algorithm,
      Algorithm::ring);
}

// Posting a message costs the host the same whatever its size. It is hidden only behind what the rank's NICs
// send meanwhile, at the rate they really send: counted 1 % too fast, each of 128 ranks would gain that 119
// times, and more bytes would take less time.
TEST(Bench, AnAllToAllIsNoFasterWithMoreBytes) {
  for (const auto& [node, nodes] : {std::pair{"a40-8gpu", 2}, {"hgx-h100", 16}}) {
    Scenario scenario;
    scenario.topology = topology::test::cluster(node, nodes, topology::FabricKind::rail);
    scenario.network.model = "flow";
    Duration before{};
    for (const BenchRow& row : bench(scenario, topology::test::catalogue(), CollectiveKind::all_to_all,
                                     {Bytes(8), Bytes(1 << 24), 4})
                                   .rows) {
      EXPECT_GE(row.time, before) << node << ", " << row.size.value() << " bytes";
      before = row.time;
    }
  }
}

std::vector<BenchRow> rows_of(const char* node, int nodes, CollectiveKind kind, std::int64_t bytes) {
  Scenario scenario;
  scenario.topology = topology::test::cluster(
      node, nodes, nodes > 1 ? topology::FabricKind::rail : topology::FabricKind::none);
  scenario.network.model = "flow";
  return bench(scenario, topology::test::catalogue(), kind, {Bytes(bytes), Bytes(bytes), 2}).rows;
}

// Of 8 bytes, 16 ranks have none each when nccl-tests deals out multiples of 16 bytes, and of one byte nobody
// has a float. NCCL drops a collective of nothing; it sends a message of nothing.
TEST(Bench, ACollectiveOfNothingTakesNoTime) {
  for (const CollectiveKind kind :
       {CollectiveKind::all_to_all, CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    const BenchRow row = rows_of("hgx-h100", 2, kind, 8)[0];
    EXPECT_EQ(row.count, 0);
    EXPECT_EQ(row.time, Duration{});
    EXPECT_EQ(row.bytes_per_second, 0);
    EXPECT_GT(rows_of("hgx-h100", 2, kind, 256)[0].time, Duration{});
  }
  EXPECT_EQ(rows_of("hgx-h100", 2, CollectiveKind::all_reduce, 1)[0].time, Duration{});
  EXPECT_GT(rows_of("hgx-h100", 2, CollectiveKind::send_recv, 1)[0].time, Duration{});
}

// The widest figures that rows have.
TEST(Bench, TheTableOfTheCalibrationFitsAScreen) {
  const network::CongestionEntry widest{
      "infiniband", "adaptive", 1.25, 32, 128, 4, Bytes(256 << 20), 1, 1, 1, Bytes(2'200'000)};
  std::istringstream text(congestion_text(network::CongestionTable({widest})));
  for (std::string line; std::getline(text, line);) EXPECT_LE(line.size(), 79) << line;
}

TEST(Bench, SaysWhoseRulesChose) {
  const auto first_line = [](const char* node) {
    const std::string table =
        bench_table(bench_collective("all_reduce"), rows_of(node, 1, CollectiveKind::all_reduce, 1 << 20));
    return table.substr(0, table.find('\n'));
  };
  EXPECT_EQ(first_line("hgx-h100"), "# by the rules of NCCL 2.30");
  EXPECT_EQ(first_line("mi300x-8"), "# by the rules of RCCL");
  EXPECT_EQ(first_line("trn2"), "# by no library's rules: along the axes of a torus");
}

// Under message models there is no torus, and it is not announced.
TEST(Bench, SaysWhatStandsInForAChoiceWithoutAMessageForm) {
  Scenario scenario;
  scenario.topology = topology::test::cluster("trn2", 1, topology::FabricKind::rail);
  scenario.network.collectives = CollectiveForm::steps;
  const Bytes size(1 << 20);
  const auto rows =
      bench(scenario, topology::test::catalogue(), CollectiveKind::all_reduce, {size, size, 2}).rows;
  const std::string table = bench_table(bench_collective("all_reduce"), rows);
  EXPECT_EQ(table.substr(0, table.find('\n')),
            fmt::format("# Torus has no message form here: {} stands in for it",
                        collective::name_of(rows.front().choice.algorithm)));
}

// A ring of 1 GiB over two boxes sends 2 x 15/16 of it over eight NICs, 251.7 MB each. With one NIC down
// there are seven rings, 287.6 MB each at 49.685 GB/s: 5.79 ms, and up to 8 % more for threads and start. A
// NIC of half the rate keeps its ring and takes 10.13 ms. A fault that begins later has no effect on a bench.
TEST(Bench, FaultsThatHoldAllTheTimeAreThere) {
  const auto ms = [](std::vector<FaultSpec> faults) {
    Scenario scenario;
    scenario.topology = topology::test::cluster("hgx-h100", 2, topology::FabricKind::rail);
    scenario.network.model = "flow";
    scenario.network.nccl = forced(Algorithm::ring, Protocol::simple);
    scenario.faults = std::move(faults);
    const Bytes size(std::int64_t{1} << 30);
    return microseconds(
               bench(scenario, topology::test::catalogue(), CollectiveKind::all_reduce, {size, size, 2})
                   .rows[0]
                   .time) /
           1000;
  };
  FaultSpec fault;
  fault.kind = FaultKind::nic_down;
  fault.target = "node0/nic0";
  const double lost = ms({fault});
  Scenario later;
  later.faults = {fault, fault};
  later.faults[1].at = std::chrono::seconds(1);
  EXPECT_EQ(faults_left_out(later), 1);
  EXPECT_GT(lost, 5.79);
  EXPECT_LT(lost, 5.79 * 1.08);
  fault.at = std::chrono::seconds(1);
  EXPECT_EQ(ms({fault}), ms({}));
  fault.at = {};
  fault.kind = FaultKind::link_degraded;
  fault.target = "node0/nic0 -> leaf0";
  fault.factor = 0.5;
  const double slower = ms({fault});
  EXPECT_GT(slower, 10.13);
  EXPECT_LT(slower, 10.13 * 1.05);
}

// Over TCP every byte passes host memory, and so the one link of its PCIe switch up to twice. Four channels
// of 40 GB/s then equal eight of 20, and NCCL's search keeps the first that it found, which leaves four NICs
// idle. With 100 Gbit/s cables eight channels take all NICs.
TEST(Bench, OverTcpSaysHowManyNicsNoChannelTakes) {
  for (const auto& [link, idle] : {std::pair{"eth-400g", 4}, {"eth-100g", 0}}) {
    Scenario scenario;
    scenario.topology = topology::test::cluster("hgx-h100", 2, topology::FabricKind::rail);
    scenario.topology.fabric.link.use = link;
    scenario.network.model = "flow";
    const Bytes size(std::int64_t{1} << 30);
    const BenchRow row =
        bench(scenario, topology::test::catalogue(), CollectiveKind::all_gather, {size, size, 2}).rows[0];
    EXPECT_EQ(row.nics, 8) << link;
    EXPECT_EQ(row.idle_nics, idle) << link;
  }
}

// NCCL leaves out ports that are down at the start. Without one rail's leaf the rings are those of nodes with
// seven NICs. If nodes miss different numbers of NICs, all run as many rings as the smallest has: two NICs
// down in one node and one in another leave six rings of eight, which carry 1/6 instead of 1/8.
TEST(Bench, ARailThatIsDownIsAsIfNoNodeHadANicOnIt) {
  const auto ms = [](int nics, const std::vector<std::string>& dead) {
    Scenario scenario;
    scenario.topology = topology::test::cluster("hgx-h100", 4, topology::FabricKind::rail);
    if (nics < 8) scenario.topology.node.nics = nics;
    scenario.network.model = "flow";
    scenario.network.nccl = forced(Algorithm::ring, Protocol::simple);
    for (const std::string& target : dead) {
      FaultSpec fault;
      fault.kind = target.starts_with("leaf") ? FaultKind::switch_down : FaultKind::nic_down;
      fault.target = target;
      scenario.faults.push_back(fault);
    }
    const Bytes size(std::int64_t{4} << 30);
    return microseconds(
               bench(scenario, topology::test::catalogue(), CollectiveKind::all_gather, {size, size, 2})
                   .rows[0]
                   .time) /
           1000;
  };
  const double whole = ms(8, {});
  EXPECT_EQ(ms(8, {"leaf0"}), ms(7, {}));
  const double six = ms(8, {"node0/nic0", "node0/nic1", "node2/nic5"});
  EXPECT_NEAR(six / whole, 8.0 / 6, 0.03);
}

// 16384 accelerators exchange 2.7e8 messages, which take minutes to list.
TEST(Bench, StopsBeforeItsFirstRowToo) {
  Scenario scenario;
  scenario.topology = topology::test::cluster("hgx-h100", 2, topology::FabricKind::rail);
  executor::Progress progress;
  const auto rows = [&](const char* model) {
    scenario.network.model = model;
    return bench(scenario, topology::test::catalogue(), CollectiveKind::all_to_all,
                 {Bytes(1 << 20), Bytes(1 << 20), 2}, &progress)
        .rows.size();
  };
  for (const char* model : {"flow", "packet"}) {
    progress.stop = false, progress.worth_printing = 0;
    EXPECT_EQ(rows(model), 1u) << model;
    EXPECT_EQ(progress.worth_printing, 1u) << model;
    progress.stop = true, progress.worth_printing = 0;
    EXPECT_EQ(rows(model) + progress.worth_printing, 0u) << model;
  }
}

TEST(Bench, ForcesOnlyWhatNcclHas) {
  Scenario scenario;
  const auto forced = [&](const char* what, const char* algorithm, const char* protocol, int channels) {
    force(scenario, bench_collective(what), algorithm, protocol, channels);
  };
  for (const int channels : {-1, 65, 1'000'000})
    EXPECT_THROW(forced("all_reduce", "", "", channels), ConfigError) << channels;
  for (const char* what : {"alltoall", "sendrecv"}) {
    EXPECT_THROW(forced(what, "tree", "", 0), ConfigError);
    EXPECT_THROW(forced(what, "", "ll", 0), ConfigError);
    EXPECT_THROW(forced(what, "", "", 2), ConfigError);
    EXPECT_NO_THROW(forced(what, "", "", 0));
  }
  EXPECT_FALSE(scenario.network.nccl.channels.has_value());
  forced("all_reduce", "ring", "simple", 64);
  EXPECT_EQ(scenario.network.nccl.channels, 64);
}
}  // namespace topsim::scenario::bench_test

// From the topology file of a box alone, our model of NCCL finds the graphs, cost tables and choices that
// NCCL 2.30.7 itself finds (tests/golden/nccl): all graphs, and at least 95 % of the choices for each box and
// collective.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "sim/collective/nccl/communicator.hpp"
#include "sim/collective/nccl/tuner.hpp"
#include "tests/collective/lowering_fixtures.hpp"
#include "tests/collective/nccl_tables.hpp"
#include "topology/import/nccl_xml.hpp"

namespace topsim::nccl_choices_test {

using namespace collective;
using namespace collective::nccl;

struct Model {
  Box box;
  CommunicatorFacts facts;
  Tuner tuner;
};

// `nodes` equal boxes, every GPU of each.
const Model& model_of(const std::string& box_name, int nodes, bool sharp) {
  static std::map<std::tuple<std::string, bool, bool>, Box> boxes;
  static std::map<std::tuple<std::string, int, bool>, Model> models;
  const auto key = std::tuple(box_name, nodes, sharp);
  if (const auto known = models.find(key); known != models.end()) return known->second;
  const auto box_key = std::tuple(box_name, nodes > 1, sharp);
  auto box = boxes.find(box_key);
  if (box == boxes.end()) {
    topology::NcclXmlOptions how;
    how.in_network_reduction = sharp;
    const auto import = topology::read_nccl_xml(test::text_of(test::golden(box_name + ".xml")), how);
    const std::uint32_t node = 0;
    box = boxes
              .emplace(box_key, make_box(System(import.topology, std::span(&node, 1),
                                                import.topology.accelerators(), nodes > 1, Detours{}),
                                         import.topology.nvlink_sharp, sharp))
              .first;
  }
  const int local = box->second.system.gpus();
  const CommunicatorFacts facts = agree({&box->second}, nodes, nodes * local, local, local, sharp);
  return models.emplace(key, Model{box->second, facts, Tuner(facts)}).first->second;
}

CollectiveKind kind_of(const std::string& name) {
  if (name == "AllReduce") return CollectiveKind::all_reduce;
  return name == "AllGather" ? CollectiveKind::all_gather : CollectiveKind::reduce_scatter;
}

Algorithm algorithm_of(const std::string& name) {
  for (int a = 0; a < kAlgorithms; ++a)
    if (name_of(static_cast<Algorithm>(a)) == name) return static_cast<Algorithm>(a);
  throw std::runtime_error("no algorithm " + name);
}

Protocol protocol_of(const std::string& name) {
  for (int p = 0; p < kProtocols; ++p)
    if (name_of(static_cast<Protocol>(p)) == name) return static_cast<Protocol>(p);
  throw std::runtime_error("no protocol " + name);
}

TEST(NcclTables, EveryGraphHasTheChannelsSpeedsAndPathTypesThatNcclFinds) {
  int graphs = 0;
  for (const auto& row : test::rows_of(test::golden("graphs.csv"))) {
    const Model& model = model_of(row[0], std::stoi(row[1]), row[2] == "1");
    const std::string where = row[0] + " x" + row[1] + (row[2] == "1" ? " sharp " : " ") + row[3];
    if (row[3] == "total") {
      EXPECT_EQ(model.facts.channels, std::stoi(row[5])) << where;
      EXPECT_NEAR(model.box.system.max_bandwidth(), std::stod(row[6]), 0.06) << where;
      EXPECT_NEAR(model.box.system.total_bandwidth(), std::stod(row[7]), 0.06) << where;
      continue;
    }
    const ChannelGraph& graph = row[3] == "ring"           ? model.box.ring
                                : row[3] == "tree"         ? model.box.tree
                                : row[3] == "nvls"         ? model.box.nvls
                                : row[3] == "collnetchain" ? model.box.collnet_chain
                                                           : model.box.collnet_direct;
    ++graphs;
    if (row[5] == "0") {
      EXPECT_EQ(graph.count(), 0) << where;
      continue;
    }
    EXPECT_EQ(static_cast<int>(graph.pattern), std::stoi(row[4])) << where;
    EXPECT_EQ(graph.count(), std::stoi(row[5])) << where;
    EXPECT_FLOAT_EQ(graph.bandwidth_intra, std::stof(row[6])) << where;
    EXPECT_FLOAT_EQ(graph.bandwidth_inter, std::stof(row[7])) << where;
    EXPECT_EQ(static_cast<int>(graph.type_intra), std::stoi(row[8])) << where;
    EXPECT_EQ(static_cast<int>(graph.type_inter), std::stoi(row[9])) << where;
    EXPECT_EQ(graph.cross_nic, std::stoi(row[10])) << where;
  }
  EXPECT_GT(graphs, 200);
}

TEST(NcclTables, LatenciesAndBandwidthsAreThoseOfTheTuner) {
  int rows = 0;
  for (const auto& row : test::rows_of(test::golden("costs.csv"))) {
    const Model& model = model_of(row[0], std::stoi(row[1]), row[2] == "1");
    const Cost& cost = model.tuner.cost(kind_of(row[3]), algorithm_of(row[4]), protocol_of(row[5]));
    const std::string where = fmt::format("{}", fmt::join(row, " "));
    EXPECT_NEAR(cost.latency, std::stod(row[6]), 0.051) << where;  // printed with one decimal
    EXPECT_NEAR(cost.bandwidth, std::stod(row[7]), 0.051) << where;
    ++rows;
  }
  EXPECT_GT(rows, 800);
}

TEST(NcclTables, AlgorithmProtocolAndChannelsAgree) {
  struct Tally {
    int rows = 0, agree = 0;
  };
  std::map<std::pair<std::string, std::string>, Tally> tallies;
  std::string disagreements;
  for (const auto& row : test::rows_of(test::golden("choices.csv"))) {
    const Model& model = model_of(row[0], std::stoi(row[1]), row[2] == "1");
    Tally& tally = tallies[{row[0], row[3]}];
    for (std::int64_t bytes = std::stoll(row[4]); bytes <= std::stoll(row[5]); bytes *= 2) {
      const Choice choice = model.tuner.choose(kind_of(row[3]), bytes, {});
      ++tally.rows;
      const bool same = name_of(choice.algorithm) == row[6] && name_of(choice.protocol) == row[7] &&
                        choice.channels == std::stoi(row[8]);
      tally.agree += same ? 1 : 0;
      if (!same)
        disagreements += fmt::format("{} x{} sharp {} {} {} B: {}/{} on {} channels, NCCL {}/{} on {}\n",
                                     row[0], row[1], row[2], row[3], bytes, name_of(choice.algorithm),
                                     name_of(choice.protocol), choice.channels, row[6], row[7], row[8]);
    }
  }
  int rows = 0;
  for (const auto& [key, tally] : tallies) {
    rows += tally.rows;
    const double share = static_cast<double>(tally.agree) / tally.rows;
    fmt::print("{:16} {:14} {:5} of {:5} rows agree ({:.1f} %)\n", key.first, key.second, tally.agree,
               tally.rows, 100 * share);
    EXPECT_GE(share, 0.95) << key.first << " " << key.second;
  }
  EXPECT_GT(rows, 4800);
  fmt::print("{}", disagreements);
}

// NCCL sums in the NVSwitches for any number of GPUs, but gathers and scatters through them among up to 32
// (NCCL_MAX_NVLS_ARITY).
TEST(NcclChoices, GathersInLargeNvlinkDomainsAreRings) {
  const fixtures::Cluster cluster(fixtures::boxes("gb200-nvl72", 18));
  const auto chosen = [&](CollectiveKind kind, std::size_t gpus) {
    return cluster.nccl.choose(kind, Bytes(4 << 20), cluster.topology.accelerators().subspan(0, gpus))
        .algorithm;
  };
  EXPECT_EQ(chosen(CollectiveKind::all_reduce, 72), Algorithm::nvls);
  for (const auto kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    EXPECT_EQ(chosen(kind, 32), Algorithm::nvls);
    EXPECT_EQ(chosen(kind, 36), Algorithm::ring);
    EXPECT_EQ(chosen(kind, 72), Algorithm::ring);
  }
}
}  // namespace topsim::nccl_choices_test

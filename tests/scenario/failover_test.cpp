// Parts that fail for good during a run: messages on their way wait for the failover time, then take another
// way.
#include <gmock/gmock.h>

#include <fstream>

#include "sim/base/error.hpp"
#include "sim/scenario/read/read.hpp"
#include "sim/scenario/run/simulate.hpp"

namespace topsim::scenario::failover_test {
using testing::HasSubstr;

const std::string kConfigs = std::string(TOPSIM_SOURCE_DIR) + "/configs";

const topology::Catalogue& catalogue() {
  static const topology::Catalogue loaded = topology::Catalogue::load(kConfigs);
  return loaded;
}

// One message of 10^9 bytes from the first GPU of the first node to the first of the second.
const std::string& message_trace() {
  static const std::string path = [] {
    const std::string file =
        testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name() + ".goal";
    std::ofstream out(file);
    out << "num_ranks 32\n";
    for (int rank = 0; rank < 32; ++rank) {
      out << "rank " << rank << " {\n"
          << (rank == 0   ? "s: send 1000000000b to 8 tag 0"
              : rank == 8 ? "r: recv 1000000000b from 0 tag 0"
                          : "c: calc 1000")
          << "\n}\n";
    }
    return file;
  }();
  return path;
}

// Four nodes, each on a leaf of its own, below two spines.
std::string fabric(const std::string& link, const std::string& routing) {
  return R"("topology": {"node": "hgx-h100", "nodes": 4, "fabric": {"kind": "fat-tree", "link": ")" + link +
         R"(", "switch": {"use": "qm9700", "ports": 16}, "tiers": 2, "nodes_per_leaf": 1, "routing": ")" +
         routing + "\"}}";
}

report::Result result_of(const std::string& text, bool fold = true) {
  SimulateOptions options;
  options.fold = fold;
  return simulate(parse_scenario(text, "test", {}, config::Library({kConfigs})), catalogue(), options,
                  nullptr)
      .result;
}

report::Result message_over(const std::string& faults, const std::string& network, bool fold = true,
                            const std::string& link = "ib-ndr", const std::string& routing = "static") {
  return result_of("{" + fabric(link, routing) + R"(, "workload": {"trace": {"format": "goal", "path": ")" +
                       message_trace() + R"("}}, "network": {"model": ")" + network +
                       R"("}, "run": {"steps": 1, "warmup": 0}, "faults": )" + faults + "}",
                   fold);
}

// Bytes over the first leaf's cables to a spine.
double carried(const report::Result& result, const std::string& spine) {
  double bytes = 0;
  for (const report::LinkRow& link : result.links)
    if (link.from == "leaf0" && link.to == spine) bytes += static_cast<double>(link.bytes.value());
  return bytes;
}

// 10^9 B at 49.685 GB/s (400 Gbit/s, 4096 of 4122 bytes) take 20.13 ms. Nothing moves from 5 ms to 15 ms, so
// all arrives exactly 10 ms later. In packets what was on the way is sent again: under credits what three
// links buffer, below 1 MB or 20 us; under PFC what a switch of 32 MB lets wait at one port, 4 MB or 80 us.
TEST(Failover, AMessageGoesOnOverTheOtherSpineAfterTheFailoverTime) {
  const std::string fails =
      R"([{"kind": "switch_down", "target": "spine0", "at": "5 ms", "failover": "10 ms"}])";
  const report::Result fluid = message_over("[]", "flow");
  for (const bool fold : {true, false}) {
    const report::Result moved = message_over(fails, "flow", fold);
    EXPECT_NEAR(static_cast<double>((moved.step - fluid.step).count()), 10e9, 2);  // picoseconds
    EXPECT_NEAR(carried(moved, "spine0"), 0.005 * 4e11 / 8 * 4096 / 4122, 2e-4 * 1e9)
        << "what passed in 5 ms";
    EXPECT_NEAR(carried(moved, "spine0") + carried(moved, "spine1"), 1e9, 1);
  }
  for (const char* link : {"ib-ndr", "roce-400g"}) {
    for (const char* routing : {"static", "ecmp", "adaptive"}) {
      SCOPED_TRACE(std::string(link) + " " + routing);
      const Duration whole = message_over("[]", "packet", true, link, routing).step;
      const report::Result both = message_over(
          R"([{"kind": "switch_down", "target": "spine0", "at": "5 ms", "failover": "10 ms"},
              {"kind": "switch_down", "target": "spine1", "at": "5 ms", "failover": "10 ms", "for": "10 ms"}])",
          "packet", true, link, routing);
      EXPECT_GE(both.step, whole + std::chrono::milliseconds(10));
      const bool credits = std::string(link) == "ib-ndr";
      EXPECT_LT(both.step, whole + std::chrono::microseconds(10'000 + (credits ? 20 : 80)));
    }
  }
}

// If a NIC or the far end of its cable fails, the next NIC of the node takes over.
TEST(Failover, AnotherNicOfTheNodeTakesOver) {
  for (const char* target :
       {R"("nic_down", "target": "node0/nic0")", R"("link_down", "target": "leaf1 - node1/nic0")"}) {
    const std::string fails =
        std::string(R"([{"kind": )") + target + R"(, "at": "5 ms", "failover": "10 ms"}])";
    for (const char* network : {"flow", "packet", "analytic"}) {
      SCOPED_TRACE(std::string(network) + " " + target);
      const report::Result moved = message_over(fails, network);
      EXPECT_NEAR(microseconds(moved.step - message_over("[]", network).step), 10'000, 20);
    }
    const report::Result moved = message_over(fails, "flow");
    const bool sender = std::string(target).find("node0") != std::string::npos;
    // The NIC that took over carries what was left after 5 of 20.13 ms.
    const double late = 1e9 - 0.005 * 4e11 / 8 * 4096 / 4122;
    const std::string by = sender ? "node0/nic1" : "leaf1";
    double bytes = 0;
    for (const report::LinkRow& link : moved.links)
      if (link.from == by && (sender ? link.to == "leaf0" : link.to == "node1/nic1"))
        bytes += static_cast<double>(link.bytes.value());
    EXPECT_NEAR(bytes, late, 2e-4 * 1e9);
  }
}

TEST(Failover, WithoutAnotherWayTheRunEndsWithTheRanksAndTheTime) {
  for (const char* network : {"flow", "packet", "analytic"}) {
    try {
      static_cast<void>(message_over(
          R"([{"kind": "switch_down", "target": "leaf1", "at": "5 ms", "failover": "10 ms"}])", network));
      FAIL() << network;
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.problems().at(0).path, "faults[0].target");
      EXPECT_THAT(error.problems().at(0).message, HasSubstr("leaf1 stays down from 0.005 s on"));
      EXPECT_THAT(error.problems().at(0).message, HasSubstr("node0/gpu0 cannot reach node1/gpu0"));
    }
  }
}

// Down for 20 ms without another way, or for less than the failover time: messages wait and go on where they
// were.
TEST(Failover, WhatComesBackIsWaitedFor) {
  for (const char* network : {"flow", "packet"}) {
    const Duration whole = message_over("[]", network).step;
    const auto late = [&](const std::string& more) {
      return microseconds(
          message_over(R"([{"kind": "switch_down", "at": "5 ms", )" + more + "}]", network).step - whole);
    };
    EXPECT_NEAR(late(R"("target": "leaf1", "failover": "10 ms", "for": "20 ms")"), 20'000, 1);
    EXPECT_NEAR(late(R"("target": "spine0", "for": "3 ms")"), 3'000, 1);
  }
}

// A spine that fails changes the paths of some rings and not of others, so ranks that were alike differ. The
// folded run must give the unfolded step.
TEST(Failover, AFoldedStepIsTheUnfoldedOne) {
  const auto step = [](const std::string& faults, bool fold) {
    return result_of("{" + fabric("ib-ndr", "ecmp") +
                         R"(, "workload": {"model": "llama3-8b", "sequence": 4096, "framework": "megatron",
                              "plan": {"tp": 8, "dp": 4, "micro_batch": 1, "global_batch": 8, "zero": 1}},
                             "run": {"steps": 2, "warmup": 1}, "faults": )" +
                         faults + "}",
                     fold)
        .step;
  };
  const Duration whole = step("[]", true);
  for (const char* target : {"spine0", "spine1"}) {
    const std::string fails =
        std::string(R"([{"kind": "switch_down", "at": "200 ms", "failover": "5 ms", "target": ")") + target +
        "\"}]";
    const Duration folded = step(fails, true);
    EXPECT_NEAR(microseconds(folded), microseconds(step(fails, false)), 1e-9 * microseconds(folded));
    EXPECT_GT(folded, whole) << "one spine carries what two carried";
  }
}

// A job that sums in the switches ends when a link of its tree fails, even one that comes back. A job that
// starts while the link is down builds trees around it; without SHARP messages take the other spine.
TEST(Failover, StopsAJobWhoseSharpTreeLosesALink) {
  const auto run = [](const std::string& sharp, const std::string& faults, const std::string& network) {
    return result_of(R"({"topology": {"node": "hgx-h100", "nodes": 4, "fabric": {"kind": "fat-tree",
        "link": "ib-ndr", "switch": {"use": "qm9700", "ports": 16}, "tiers": 2, "nodes_per_leaf": 1,
        "routing": "adaptive", "sharp": )" +
                     sharp + R"(}}, "workload": {"model": "opt-125m", "sequence": 1024,
        "framework": "megatron", "plan": {"tp": 1, "dp": 32, "micro_batch": 1, "global_batch": 32, "zero": 0}},
        "network": {"model": ")" +
                     network + R"("}, "run": {"steps": 1, "warmup": 0}, "faults": )" + faults + "}");
  };
  const std::string down = R"("kind": "switch_down", "target": "spine0")";
  for (const char* network : {"flow", "packet"}) {
    for (const char* when : {R"(, "at": "1 ms")", R"(, "at": "1 ms", "for": "1 ms")"}) {
      try {
        static_cast<void>(run("true", "[{" + down + when + "}]", network));
        FAIL() << network << when;
      } catch (const ConfigError& error) {
        EXPECT_EQ(error.problems().at(0).path, "faults");
        EXPECT_THAT(error.problems().at(0).message, HasSubstr("spine0 fails at 0.001 s"));
        EXPECT_THAT(error.problems().at(0).message, HasSubstr("SHARP stops a job"));
      }
    }
    EXPECT_NO_THROW(static_cast<void>(run("true", "[{" + down + "}]", network)));
    EXPECT_NO_THROW(static_cast<void>(run("true", "[{" + down + R"(, "at": "1 h"}])", network)));
    EXPECT_NO_THROW(static_cast<void>(run("false", "[{" + down + R"(, "at": "1 ms"}])", network)));
  }
}

// Two spines over four cables each; the cables to one have a twentieth of their rate left, 9.9 of 198.7 GB/s.
// Adaptive switches send it 0.05 / 1.05 of the packets, so that a message at one NIC's rate goes on as
// before. Oblivious ones send it half, 24.8 GB/s, and the message takes 1 / 0.4 of its time.
TEST(Failover, AdaptiveRoutingSendsLessOverASpineThatIsSlow) {
  const std::string slow = R"([{"kind": "link_degraded", "target": "leaf0 - spine0", "factor": 0.05)";
  for (const bool fold : {true, false}) {
    const report::Result whole = message_over("[]", "flow", fold, "ib-ndr", "adaptive");
    const report::Result throughout = message_over(slow + "}]", "flow", fold, "ib-ndr", "adaptive");
    EXPECT_NEAR(microseconds(throughout.step), microseconds(whole.step), 0.01);
    EXPECT_NEAR(carried(throughout, "spine0"), 1e9 * 0.05 / 1.05, 2);
    // From a quarter of the time on: half until then, 0.05 / 1.05 of the rest.
    const report::Result later =
        message_over(slow + R"(, "at": "5 ms"}])", "flow", fold, "ib-ndr", "adaptive");
    EXPECT_NEAR(microseconds(later.step), microseconds(whole.step), 0.01);
    const double until = 49.685e9 * 5e-3;
    EXPECT_NEAR(carried(later, "spine0"), until / 2 + (1e9 - until) * 0.05 / 1.05,
                1e6);  // begins after latency
    const report::Result back =
        message_over(slow + R"(, "at": "5 ms", "for": "5 ms"}])", "flow", fold, "ib-ndr", "adaptive");
    EXPECT_NEAR(microseconds(back.step), microseconds(whole.step), 0.01);
    EXPECT_NEAR(carried(back, "spine0"), (1e9 - until) / 2 + until * 0.05 / 1.05, 1e6);
    const report::Result oblivious = message_over(slow + "}]", "flow", fold, "ib-ndr", "spray");
    EXPECT_NEAR(microseconds(oblivious.step) / microseconds(whole.step), 1 / 0.4, 0.01);
  }
}

// Two spines over three cables each. The third cable that fails takes the link: three thirds are a whole, and
// what used it takes the other spine, at once or after the failover time.
TEST(Failover, CablesThatFailOneByOneAreTheLinkOnceAllHave) {
  const auto result = [](const std::string& targets, const std::string& when) {
    std::string faults;
    for (const char cable : targets)
      faults += std::string(faults.empty() ? "" : ", ") +
                R"({"kind": "link_down", "target": "leaf0 -> spine0)" +
                (cable == '*' ? "" : std::string(" #") + cable) + '"' + when + '}';
    return result_of(
        R"({"topology": {"node": "hgx-h100", "nodes": 4, "fabric": {"kind": "fat-tree", "tiers": 2,
        "link": "ib-ndr", "switch": {"use": "qm9700", "ports": 14}, "oversubscription": 1.34,
        "routing": "adaptive"}}, "workload": {"trace": {"format": "goal", "path": ")" +
        message_trace() + R"("}}, "run": {"steps": 1, "warmup": 0}, "faults": [)" + faults + "]}");
  };
  const report::Result whole = result("", "");
  EXPECT_GT(carried(whole, "spine0"), 1e8);
  for (const char* when : {"", R"(, "at": "5 ms")", R"(, "at": "5 ms", "failover": "2 ms")",
                           R"(, "at": "5 ms", "for": "4 ms", "failover": "1 ms")"}) {
    SCOPED_TRACE(when);
    const report::Result link = result("*", when), cables = result("012", when), two = result("02", when);
    EXPECT_EQ(cables.step, link.step);
    EXPECT_NEAR(carried(cables, "spine0"), carried(link, "spine0"), 1);
    EXPECT_GT(carried(two, "spine0"), carried(cables, "spine0"));
  }
}
}  // namespace topsim::scenario::failover_test

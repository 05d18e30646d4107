#include "sim/study/explain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/scenario/read/read.hpp"
#include "sim/study/what_if.hpp"

namespace topsim::study::explain_test {
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kTwoBoxes = R"({
  "topology": {"node": "hgx-h100", "nodes": 2, "fabric": {"kind": "rail", "link": "ib-ndr", "switch": "qm9700"}},
  "workload": {"model": {"layers": 1, "hidden": 1024, "heads": 8, "vocab": 8192}, "sequence": 512,
               "plan": {"tp": 8, "micro_batch": 1, "global_batch": 2}},
  "run": {"steps": 1, "warmup": 0}})";

TEST(Explain, NamesTheLinksWithWhoseSpeedsNcclPlansAsCriticalPathsDo) {
  const config::Library library{{"configs"}};
  const WhatIfs found = what_if_faster(scenario::parse_scenario(kTwoBoxes, "two", {}, library),
                                       topology::Catalogue::load("configs"), 1.1);
  const auto planned = [&](const std::string& name) {
    const auto part = std::find_if(found.parts.begin(), found.parts.end(),
                                   [&](const WhatIf& each) { return each.part == name; });
    return part == found.parts.end() ? std::vector<std::string>{"no such part"} : part->planned_links;
  };
  EXPECT_THAT(planned("NIC to leaf links"), Contains("InfiniBand NDR 400 Gbit/s"));
  EXPECT_THAT(planned("NVLink"), Contains(HasSubstr("NVLink 4")));
  EXPECT_THAT(planned("computation"), IsEmpty());
}

// The remark needs a link that is a twentieth of the critical path, under the name it has there, and that
// gains nothing when faster.
TEST(Explain, SaysWhyAFasterLinkThatTheStepWaitsForBuysNothing) {
  const auto text = [](const std::string& what, double share, double gain, const char* library = "NCCL") {
    report::Result result;
    result.library = library;
    result.critical_path_links = {{what, from_microseconds(1), share}};
    WhatIfs faster;
    faster.parts = {{"NIC to leaf links", from_microseconds(10), gain, {}, {"InfiniBand HDR 200 Gbit/s"}}};
    return explain_text(result, faster, 200);
  };
  const auto remark = HasSubstr("NCCL plans with speeds from a fixed list");
  EXPECT_THAT(text("InfiniBand HDR 200 Gbit/s, as NCCL drives it", 0.15, 0), remark);
  EXPECT_THAT(text("InfiniBand HDR 200 Gbit/s", 0.15, 0), remark);
  EXPECT_THAT(text("InfiniBand HDR 200 Gbit/s, as NCCL drives it", 0.04, 0), Not(remark));
  EXPECT_THAT(text("InfiniBand HDR 200 Gbit/s, as NCCL drives it", 0.15, 0.01), Not(remark));
  EXPECT_THAT(text("InfiniBand HDR 200 Gbit/s x2", 0.15, 0), Not(remark));
  EXPECT_THAT(text("InfiniBand HDR 200 Gbit/s, as RCCL drives it", 0.15, 0, "RCCL"),
              HasSubstr("RCCL plans with speeds from a fixed list"));
  EXPECT_THAT(text("InfiniBand HDR 200 Gbit/s, as HCCL drives it", 0.15, 0, "HCCL"),
              HasSubstr("collectives are planned here as NCCL does, with speeds from a fixed list"));
}

report::Result with_path(const std::string& what) {
  report::Result result;
  result.critical_path_links = {{what, from_microseconds(1), 0.5}};
  return result;
}

// 45 characters and 20 for the figures fit in 80 columns. Of a name of 100 characters there is room for 60.
TEST(Explain, CutsNoNameThatTheWindowHasRoomFor) {
  const std::string longest = "latency of messages and of collectives' steps";
  EXPECT_THAT(explain_text(with_path(longest), {}, 80), HasSubstr("  " + longest + "   1.00 us  50.0 %\n"));
  EXPECT_THAT(explain_text(with_path(std::string(100, 'x')), {}, 80), Not(HasSubstr(std::string(61, 'x'))));
}

TEST(Explain, SendsNobodyToItself) {
  report::Result result = with_path("computation");
  result.findings = {{report::Severity::note, "links limit", "links", "topsim explain says what"},
                     {report::Severity::note, "others wait", "ranks", "look for slow accelerators"}};
  EXPECT_THAT(explain_text(result, {}, 80),
              testing::AllOf(HasSubstr("links limit"), Not(HasSubstr("topsim explain")),
                             HasSubstr("what to do: look for slow accelerators")));
}
}  // namespace topsim::study::explain_test

// Findings: what a reader of the numbers might miss, computed from this run, with figures and a remedy. A
// finding is one function in findings.cpp (workload and host), pipeline_findings.cpp or fabric_findings.cpp
// (links and fabric); the tables at the end of findings.cpp list them all, in the order in which they are
// printed.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "sim/report/make_result.hpp"

namespace topsim::report {

struct FindingContext {
  const ScenarioFacts& facts;
  const topology::Topology& topology;
  const program::Program& program;
  const executor::Outcome& outcome;
  const Result& result;  // complete but for its findings
};
using Findings = std::vector<Finding>;

// From this share of the memory on a run warns: the rest is commonly taken by what is not counted.
inline constexpr double kNearlyFull = 0.92;

// Warnings first; of those on a share of the step the largest first.
[[nodiscard]] Findings findings(const FindingContext& context);
// How its message begins: comparisons look for it, in results read from files too.
inline constexpr std::string_view kFabricUnused = "the fabric carried no traffic";
// A chosen interval between checkpoints that leaves much less to training than Daly's optimum.
[[nodiscard]] std::optional<Finding> far_from_optimum(const ReliabilitySpec& spec, const Goodput& goodput);
// The order of a screen, where the last findings may not fit. Otherwise unchanged.
void warnings_first(Findings& findings);

// The single finders; each appends its findings.
void find_unused_fabric(const FindingContext& context, Findings& out);
void find_oversubscription(const FindingContext& context, Findings& out);
void find_narrow_pcie(const FindingContext& context, Findings& out);
void find_limiting_link(const FindingContext& context, Findings& out);
void find_bubble(const FindingContext& context, Findings& out);

// Of the mean step, what accelerators are idle for this reason on average.
[[nodiscard]] double share_of_step(const Result& result, executor::Reason reason);

// A cable or a switch between nodes, not a bus inside one.
[[nodiscard]] bool is_fabric(const topology::Topology& topology, const topology::Link& link);

// Faster fabric ports would find no wider way into some node.
[[nodiscard]] bool pcie_hardly_wider(const topology::Topology& topology);

// Share of pipeline_bubble in a step of equal stages without transfer time: (p-1)/(v m+p-1) for 1F1B and its
// interleaved form (v virtual stages), GPipe likewise (Narayanan 2021, arXiv 2104.04473, section 2.2).
// Zero-bubble schedules have no such form here: returns a negative number.
[[nodiscard]] double closed_form_bubble(const ScenarioFacts& facts);
}  // namespace topsim::report

#include "sim/study/what_if.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "sim/base/parallel.hpp"
#include "sim/report/findings.hpp"
#include "sim/report/text.hpp"
#include "sim/scenario/run/facts.hpp"
#include "sim/scenario/run/simulate.hpp"
#include "topology/link_name.hpp"

namespace topsim::study {
namespace {
using topology::DeviceKind;
using topology::Link;
using topology::LinkKind;
using topology::Topology;

Duration divided(Duration time, double factor) {
  return from_seconds(seconds(time) / factor);
}

// One part made faster: the change to the machine, to the program, or to both.
struct Part {
  std::string name;
  std::function<Topology(const Topology&)> machine;
  std::function<void(program::Program&)> work;
  std::vector<std::string> planned_links = {};
};

// NCCL's search knows the links within a node and those of its NICs.
bool plans_with(const Topology& topology, const Link& link) {
  const auto is_nic = [&](DeviceId id) { return topology.device(id).kind == DeviceKind::nic; };
  return link.kind == LinkKind::nvlink || link.kind == LinkKind::pcie || is_nic(link.from) || is_nic(link.to);
}

// The role of a link in words; links with the same words are the same part.
std::string role_of(const Topology& topology, const Link& link) {
  constexpr std::string_view kTiers[] = {"NIC", "leaf", "spine", "core"};
  const auto end = [&](DeviceId id) -> std::size_t {
    const topology::Device& device = topology.device(id);
    return device.kind == DeviceKind::fabric_switch ? std::min<std::size_t>(device.tier, 3) : 0;
  };
  if (report::is_fabric(topology, link)) {
    const std::size_t from = end(link.from);
    const std::size_t to = end(link.to);
    return std::string(kTiers[std::min(from, to)]) + " to " + std::string(kTiers[std::max(from, to)]) +
           " links";
  }
  switch (link.kind) {
    case LinkKind::nvlink:
      return "NVLink";
    case LinkKind::pcie:
      return "PCIe";
    case LinkKind::c2c:
    case LinkKind::infinity_fabric:
    case LinkKind::socket:
    case LinkKind::memory:
    case LinkKind::infiniband:
    case LinkKind::ethernet:
    case LinkKind::torus:
    case LinkKind::other:
      break;
  }
  return std::string(name_of(link.kind)) + " links";
}

std::vector<Part> parts_of(const Topology& topology, const program::Program& program, double factor) {
  std::vector<Part> parts;
  parts.push_back({"computation", nullptr, [factor](program::Program& faster) {
                     for (program::RankProgram& each : faster.classes) {
                       for (program::Op& op : each.ops) {
                         if (op.kind == program::OpKind::compute) op.duration = divided(op.duration, factor);
                       }
                     }
                   }});
  const auto any = [&](const auto& holds) {
    return std::any_of(program.classes.begin(), program.classes.end(), [&](const program::RankProgram& each) {
      return std::any_of(each.ops.begin(), each.ops.end(), holds);
    });
  };
  // Kernels that are as fast as the memory; none is taken to reach another limit on the way.
  if (any([](const program::Op& op) { return op.memory_bound > 0; })) {
    parts.push_back({"accelerator memory", nullptr, [factor](program::Program& faster) {
                       for (program::RankProgram& each : faster.classes) {
                         for (program::Op& op : each.ops)
                           op.duration =
                               from_seconds(seconds(op.duration) * (1 - op.memory_bound * (1 - 1 / factor)));
                       }
                     }});
  }
  if (any([](const program::Op& op) { return op.launch > Duration{}; })) {
    parts.push_back({"host launch", nullptr, [factor](program::Program& faster) {
                       for (program::RankProgram& each : faster.classes) {
                         for (program::Op& op : each.ops) op.launch = divided(op.launch, factor);
                       }
                     }});
  }
  std::map<std::string, std::set<std::string>> roles;
  for (const Link& link : topology.links()) {
    std::set<std::string>& planned = roles[role_of(topology, link)];
    if (plans_with(topology, link)) planned.insert(name_with_speed(topology, link));
  }
  for (const auto& [role, planned] : roles) {
    parts.push_back({role,
                     [role = role, factor](const Topology& from) {
                       return from.with_links([&](Link& link) {
                         if (role_of(from, link) != role) return;
                         link.capacity = link.capacity * factor;
                         link.line_rate = link.line_rate * factor;
                       });
                     },
                     nullptr,
                     {planned.begin(), planned.end()}});
  }
  parts.push_back({"latency of wires, switches and NICs",
                   [factor](const Topology& from) {
                     Topology faster =
                         from.with_links([&](Link& link) { link.latency = divided(link.latency, factor); });
                     faster.nic_latency = divided(from.nic_latency, factor);
                     return faster;
                   },
                   nullptr});
  return parts;
}

struct Step {
  Duration time{};
  std::vector<executor::CollectiveRecord> collectives;
};

Step step_of(const scenario::Scenario& scenario, const topology::Catalogue& catalogue,
             const scenario::Prepared& prepared, const Part* part, const scenario::SimulateOptions& how,
             executor::Progress* progress) {
  Step step;
  const auto simulate = [&](const scenario::Prepared& machine) {
    step.time = scenario::step_of(scenario, catalogue, machine, how, progress, &step.collectives)
                    .value_or(Duration{});
  };
  if (part == nullptr) {
    simulate(prepared);
    return step;
  }
  scenario::Prepared faster = prepared;
  if (part->machine) faster.topology = part->machine(prepared.topology);
  if (part->work) part->work(faster.program);
  simulate(faster);
  return step;
}

std::string choice_text(const collective::Choice& choice) {
  return fmt::format("{} {} of {}", name_of(choice.algorithm), name_of(choice.protocol),
                     report::plural(choice.channels, "channel"));
}

// Among the collectives for which the library chose differently, the one that takes longest, and how many
// there are.
std::string other_choices(const std::vector<executor::CollectiveRecord>& usual,
                          const std::vector<executor::CollectiveRecord>& faster, const std::string& library) {
  using Call = std::tuple<program::Dimension, program::CollectiveKind, std::int64_t, std::uint32_t>;
  const auto call_of = [](const executor::CollectiveRecord& each) {
    return Call(each.dimension, each.kind, each.bytes.value(), each.group_size);
  };
  std::map<Call, std::set<std::string>> choices;
  for (const auto& each : faster) choices[call_of(each)].insert(choice_text(each.choice));
  const executor::CollectiveRecord* longest = nullptr;
  int changed = 0;
  for (const auto& each : usual) {
    const auto now = choices.find(call_of(each));
    if (now == choices.end() || now->second.contains(choice_text(each.choice))) continue;
    ++changed;
    if (longest == nullptr || each.seconds > longest->seconds) longest = &each;
  }
  if (longest == nullptr) return {};
  return fmt::format("{} chooses otherwise: {} of {} over {}, {} in place of {}{}",
                     library.empty() ? "the library" : library, name_of(longest->kind),
                     report::bytes_text(static_cast<double>(longest->bytes.value())), longest->group_size,
                     *choices[call_of(*longest)].begin(), choice_text(longest->choice),
                     changed > 1 ? fmt::format("; {} more", changed - 1) : "");
}
}  // namespace

WhatIfs what_if_faster(const scenario::Scenario& scenario, const topology::Catalogue& catalogue,
                       double factor, executor::Progress* progress) {
  scenario::SimulateOptions how;
  how.allow_oom = true;  // the result exists, so this was decided before
  const scenario::Prepared prepared = scenario::prepare(scenario, catalogue, how);
  const std::vector<Part> parts = parts_of(prepared.topology, prepared.program, factor);
  std::vector<Step> steps(parts.size() + 1);
  if (progress != nullptr) progress->runs_total += steps.size();
  const auto run = [&](std::size_t i) {
    executor::RunOfStudy own(progress);
    steps[i] = step_of(scenario, catalogue, prepared, i == 0 ? nullptr : &parts[i - 1], how, &own.progress);
    if (progress != nullptr) ++progress->runs_done;
  };
  parallel::in_order(steps.size(), 0, run, [&] { return progress != nullptr && progress->stop; });
  const std::string library = scenario::words_of(prepared.topology, catalogue).library;
  WhatIfs result;
  result.step = steps[0].time;
  result.factor = factor;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Step& faster = steps[i + 1];
    if (faster.time == Duration{}) continue;  // stopped before its end
    const double gain = result.step > Duration{} ? 1 - seconds(faster.time) / seconds(result.step) : 0;
    result.parts.push_back({parts[i].name, faster.time, gain,
                            other_choices(steps[0].collectives, faster.collectives, library),
                            parts[i].planned_links});
  }
  std::stable_sort(result.parts.begin(), result.parts.end(),
                   [](const WhatIf& a, const WhatIf& b) { return a.gain > b.gain; });
  return result;
}
}  // namespace topsim::study

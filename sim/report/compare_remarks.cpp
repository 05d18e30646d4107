#include "sim/report/compare_remarks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/report/compare_work.hpp"
#include "sim/report/findings.hpp"
#include "sim/report/text.hpp"

namespace topsim::report {
namespace {
// The table shows one sample, the first; the others have other seeds.
std::string first_sample(const Comparison& comparison, std::span<const Candidate> candidates, std::size_t c) {
  if (comparison.samples < 2) return "";
  const double median = comparison.step_relative[c].usual;
  const double first = relative_step(candidates[c], candidates[0], 0, comparison.per_token);
  if (signed_percent_text(first) == signed_percent_text(median)) return "";
  return fmt::format(
      "the table is of one sample, the scenarios' own seeds and usual figures: {} takes {} per {} there, {} "
      "in the median of {} samples, which the sentences count",
      comparison.names[c], signed_percent_text(first), comparison.per_token ? "token" : "step",
      signed_percent_text(median), comparison.samples);
}

const BomItem* server_of(const Candidate& each) {
  if (!each.cost) return nullptr;
  const auto& items = each.cost->bill.items;
  const auto server = std::find_if(items.begin(), items.end(), [](const BomItem& item) {
    return item.category == BomCategory::server && item.price;
  });
  return server == items.end() ? nullptr : &*server;
}

// List prices are higher than what is paid, so they compare badly with street offers.
std::string other_basis(std::span<const Candidate> candidates, std::size_t c) {
  const BomItem *a = server_of(candidates[0]), *b = server_of(candidates[c]);
  if (a == nullptr || b == nullptr || a->basis == b->basis) return "";
  const auto words = [](const BomItem& item) -> std::string {
    switch (item.basis.value_or(PriceBasis::estimate)) {
      case PriceBasis::list:
        return item.id + " stands at its list price";
      case PriceBasis::street:
        return item.id + " at what buyers were offered";
      case PriceBasis::quote:
        return item.id + " at your quote";
      case PriceBasis::estimate:
        break;
    }
    return item.id + " at estimates";
  };
  return fmt::format("prices of different kinds: {}, {}; quotes for both (cost.prices) would compare alike",
                     words(*a), words(*b));
}

// Not even the price of the fabric: it has the NICs of one and, in the servers, not of the other.
std::string servers_apart(const Comparison& comparison, std::span<const Candidate> candidates,
                          std::size_t c) {
  if (!candidates[0].cost || !candidates[c].cost) return "";
  const bool first = candidates[0].cost->bill.has_servers();
  if (first == candidates[c].cost->bill.has_servers()) return "";
  return fmt::format(
      "price of the fabric and power of {} and {} are not compared: {}'s servers contain NICs and "
      "hosts, and {}'s are not known",
      comparison.names[0], comparison.names[c], comparison.names[first ? 0 : c],
      comparison.names[first ? c : 0]);
}

bool reduces_in_switches(const Candidate& each) {
  static const nlohmann::json::json_pointer sharp("/topology/fabric/sharp");
  const nlohmann::json scenario =
      nlohmann::json::parse(each.result.scenario, nullptr, /*allow_exceptions=*/false);
  return scenario.contains(sharp) && scenario.at(sharp) == true;
}

// A setting of InfiniBand that the comparison leaves unchanged; of libraries NCCL alone is modelled with it.
std::string sharp_hint(const Result& result) {
  const bool infiniband = std::any_of(result.links.begin(), result.links.end(), [](const LinkRow& l) {
    return l.kind == topology::LinkKind::infiniband;
  });
  if (!infiniband || result.library != "NCCL") return "";
  return " reduces in its NICs and accelerators: --with topology.fabric.sharp=true adds it with SHARP in the "
         "switches";
}

bool is_of_unused_fabric(const Finding& finding) {
  return finding.message.starts_with(kFabricUnused);
}
// Empty where some candidate used its fabric.
std::string unused_fabrics(const Comparison& comparison, std::span<const Candidate> candidates) {
  const bool all = std::all_of(candidates.begin(), candidates.end(), [](const Candidate& each) {
    return std::any_of(each.result.findings.begin(), each.result.findings.end(), is_of_unused_fabric);
  });
  if (!all) return "";
  const auto& steps = comparison.step_relative;
  const bool same =
      std::all_of(steps.begin(), steps.end(), [](const Interval& each) { return each == Interval{}; });
  return fmt::format("{}; {}", kFabricUnused,
                     same ? "this comparison cannot differ" : "what differs here is not the fabric's");
}

// Warnings of a candidate's run; those that hold for all candidates are stated once. `fabric`: also that its
// fabric carried nothing, which is otherwise said of all.
std::vector<std::string> warnings(const Comparison& comparison, std::span<const Candidate> candidates,
                                  std::size_t c, bool fabric) {
  const auto warns = [](const Result& result, const std::string& message) {
    return std::any_of(result.findings.begin(), result.findings.end(), [&](const Finding& each) {
      return each.severity == Severity::warning && each.message == message;
    });
  };
  std::vector<std::string> list;
  for (const Finding& each : candidates[c].result.findings) {
    if (!warns(candidates[c].result, each.message) || (!fabric && is_of_unused_fabric(each))) continue;
    const bool everybody = std::all_of(candidates.begin(), candidates.end(), [&](const Candidate& other) {
      return warns(other.result, each.message);
    });
    list.push_back(everybody ? each.message : comparison.names[c] + ": " + each.message);
  }
  return list;
}

std::string other_network(const Comparison& comparison, std::span<const Candidate> candidates,
                          std::size_t c) {
  const std::string &base = candidates[0].result.network_model, &other = candidates[c].result.network_model;
  if (base == other) return "";
  return fmt::format("{} is simulated with network model {}, {} with {}: a part of the difference is theirs",
                     comparison.names[0], base, comparison.names[c], other);
}

}  // namespace

std::vector<std::string> remarks(const Comparison& comparison, std::span<const Candidate> candidates) {
  std::vector<std::string> list;
  std::set<std::string> said;
  const auto add = [&](const std::string& remark) {
    if (said.insert(remark).second) list.push_back(remark);
  };
  const std::string unused = unused_fabrics(comparison, candidates);
  if (!unused.empty()) add(unused);
  for (std::size_t c = 1; c < candidates.size(); ++c)
    if (const std::string said_of = first_sample(comparison, candidates, c); !said_of.empty()) add(said_of);
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    const Candidate& each = candidates[c];
    if (!each.result.complete) add(comparison.names[c] + " was stopped before its end");
    for (const std::string& warning : warnings(comparison, candidates, c, unused.empty())) add(warning);
    if (const std::string said_of = other_work(comparison, candidates, c); !said_of.empty()) add(said_of);
    if (const std::string said_of = other_network(comparison, candidates, c); !said_of.empty()) add(said_of);
    if (const std::string said_of = other_basis(candidates, c); !said_of.empty()) add(said_of);
    if (const std::string said_of = servers_apart(comparison, candidates, c); !said_of.empty()) add(said_of);
    if (each.result.accelerators != candidates[0].result.accelerators) {
      add(fmt::format("{} has {}, {} has {}", comparison.names[0],
                      plural(static_cast<double>(candidates[0].result.accelerators), "accelerator"),
                      comparison.names[c], each.result.accelerators));
    }
    if (std::none_of(candidates.begin(), candidates.end(), reduces_in_switches))
      if (const std::string hint = sharp_hint(each.result); !hint.empty()) add(comparison.names[c] + hint);
    for (const std::string& range : each.drawn) add("samples draw " + range);
    if (each.cost) {
      for (const std::string& remark : each.cost->bill.remarks) add(comparison.names[c] + ": " + remark);
    }
  }
  return list;
}
}  // namespace topsim::report

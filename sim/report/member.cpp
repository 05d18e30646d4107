#include "sim/report/member.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/error.hpp"
#include "sim/report/per_step.hpp"
#include "sim/report/reason_text.hpp"
#include "sim/report/spans.hpp"
#include "sim/report/text.hpp"
#include "topology/link_name.hpp"
#include "topology/named_link.hpp"

namespace topsim::report {
namespace {

const RankRow& class_of(const Result& result, std::uint32_t rank) {
  for (const RankRow& row : result.ranks)
    if (in_spans(row.members, rank)) return row;
  throw no_such_rank(rank, result.accelerators);
}

// Null if the link carried nothing.
const LinkRow* class_of(const Result& result, LinkId link) {
  for (const LinkRow& row : result.links)
    if (in_spans(row.members, link.value)) return &row;
  return nullptr;
}

std::string text_of(const RankRow& rank, std::uint32_t alike) {
  std::string text = fmt::format("rank {} on {}, {}{}\n  {:<35}{:>9} a step\n", rank.rank, rank.device,
                                 rank.program, alike > 1 ? fmt::format("; {} ranks behave alike", alike) : "",
                                 "busy", duration_text(rank.account.busy));
  if (rank.account.slowed > Duration{})
    text += fmt::format("  {:<35}{:>9}\n", "  of which: slowed by communication",
                        duration_text(rank.account.slowed));
  for (std::size_t i = 0; i < rank.account.idle.size(); ++i) {
    if (rank.account.idle[i] == Duration{}) continue;
    text += fmt::format("  {:<35}{:>9}\n", reason_text(static_cast<executor::Reason>(i)),
                        duration_text(rank.account.idle[i]));
  }
  if (rank.account.communication > Duration{})
    text += fmt::format("  {:<35}{:>9}, {} of it hidden\n", "communication",
                        duration_text(rank.account.communication),
                        duration_text(rank.account.hidden_communication));
  return text;
}

std::string text_of(const LinkRow& link, std::uint32_t alike, double steps) {
  if (link.bytes <= Bytes{}) return fmt::format("{} ({}) carried nothing\n", link.id, link.type);
  return fmt::format("{} ({}){}\n  carried {} a step, mean {}, peak {}\n", link.id, link.type,
                     alike > 1 ? fmt::format("; {} links behave alike", alike) : "",
                     bytes_text(static_cast<double>(link.bytes.value()) / steps),
                     percent_text(link.utilization), percent_text(link.peak_utilization));
}
}  // namespace

ConfigError no_such_rank(std::uint32_t rank, std::size_t ranks) {
  return ConfigError(fmt::format("the job has no rank {}", rank),
                     fmt::format("its ranks are 0 to {}", ranks - 1));
}

Members find_members(const Result& result, const topology::Topology& topology,
                     std::span<const std::uint32_t> ranks, std::span<const std::string> links) {
  Members members;
  members.steps = measured_steps(result);
  for (const std::uint32_t rank : ranks) {
    RankRow row = class_of(result, rank);
    const std::uint32_t alike = row.count;
    const DeviceId device = topology.accelerators()[rank];
    row.rank = rank;
    row.count = 1;
    row.members = to_spans(std::array{rank});
    row.node = topology.device(device).node;
    row.device = topology.name(device);
    members.ranks.emplace_back(std::move(row), alike);
  }
  for (const std::string& id : links) {
    for (const topology::NamedLink& each : topology::named_links(topology, id)) {
      const LinkRow* const known = class_of(result, each.link);
      LinkRow row = known != nullptr ? *known : LinkRow{};
      const std::uint32_t alike = known != nullptr ? known->count * each.of : 0;
      topology::Link facts = topology.link(each.link);
      facts.count = static_cast<std::uint16_t>(std::max(1U, facts.count / each.of));
      facts.capacity = facts.capacity / each.of, facts.line_rate = facts.line_rate / each.of;
      row.id = each.of > 1 ? each.from + " -> " + each.to + each.cable : topology.name(each.link);
      row.count = 1;
      row.members = to_spans(std::array{each.link.value});
      row.kind = facts.kind;
      row.type = name_with_speed(topology, facts);
      row.from = each.from;
      row.to = each.to;
      row.capacity = facts.capacity.value();
      row.bytes = Bytes(std::llround(static_cast<double>(row.bytes.value()) / each.of));
      members.links.emplace_back(std::move(row), alike);
    }
  }
  return members;
}

std::string to_text(const Members& members) {
  std::string text;
  for (const auto& [row, alike] : members.ranks) text += text_of(row, alike);
  for (const auto& [row, alike] : members.links) text += text_of(row, alike, members.steps);
  return text;
}
}  // namespace topsim::report

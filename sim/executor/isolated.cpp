#include "sim/executor/isolated.hpp"

#include <algorithm>

namespace topsim::executor {
namespace {

constexpr std::uint32_t kNone = fold::System::kNone;
constexpr std::uint32_t kMany = kNone - 1;

// The slots that some program class calls from more than one stream.
std::vector<bool> overlapping_slots(const program::Program& program) {
  std::vector<bool> overlapping(program.communicator_slots.size());
  for (const program::RankProgram& cls : program.classes) {
    std::vector<std::uint32_t> stream(overlapping.size(), kNone);
    for (const program::Op& op : cls.ops) {
      if (op.kind != program::OpKind::collective) continue;
      if (stream[op.slot] == kNone) stream[op.slot] = op.stream;
      if (stream[op.slot] != op.stream) overlapping[op.slot] = true;
    }
  }
  return overlapping;
}
}  // namespace

IsolatedGroups::IsolatedGroups(const program::Program& program, const fold::System& system,
                               const std::vector<CapacityChange>& changes, Carrier& carrier, bool allowed)
    : system_(system),
      isolated_(system.groups.size(), allowed),
      running_(system.groups.size()),
      user_(system.links.size(), kNone),
      alone_(system.activities.size()),
      ended_(system.activities.size()) {
  if (!allowed) return;
  for (std::uint32_t g = 0; g < system.groups.size(); ++g) {
    if (!system.groups[g].communicator.valid()) isolated_[g] = false;
    const auto use_links = [&](const fold::Activity::Usages& usage) {
      for (const network::Usage& use : fold::Activity::view(usage))
        user_[use.link] = user_[use.link] == kNone || user_[use.link] == g ? g : kMany;
    };
    for (const std::uint32_t a : system.groups[g].activities) {
      use_links(system.activities[a].usage);
      for (const fold::Activity::Detour& detour : system.activities[a].detours) {
        use_links(detour.usage);
        isolated_[g] = false;
      }
    }
  }
  for (const CapacityChange& change : changes)
    for (std::uint32_t l = 0; l < system.links.size(); ++l)
      if (std::binary_search(system.links[l].members.begin(), system.links[l].members.end(), change.link))
        user_[l] = kMany;
  for (std::uint32_t l = 0; l < system.links.size(); ++l)
    if (carrier.varies(l)) user_[l] = kMany;
  const std::vector<bool> overlapping = overlapping_slots(program);
  for (std::size_t slot = 0; slot < overlapping.size(); ++slot)
    for (const std::uint32_t g : system.group_of[slot])
      if (g != kNone && overlapping[slot]) isolated_[g] = false;
  for (std::uint32_t g = 0; g < system.groups.size(); ++g) {
    for (const std::uint32_t a : system.groups[g].activities)
      for (const network::Usage& use : fold::Activity::view(system.activities[a].usage))
        if (user_[use.link] != g) isolated_[g] = false;
    for (const std::uint32_t a : system.groups[g].activities) {
      if (!isolated_[g] || system.activities[a].bytes == Bytes(0)) continue;
      auto call = carrier.alone(g, a);
      isolated_[g] = call.has_value();
      if (call) alone_[a] = std::move(*call);
    }
  }
}

std::uint64_t IsolatedGroups::transfers() const {
  std::uint64_t sum = 0;
  for (std::size_t a = 0; a < ended_.size(); ++a) sum += ended_[a] * alone_[a].transfers;
  for (const Running& last : running_)
    if (last.activity != kNone) sum += alone_[last.activity].transfers;
  return sum;
}

void IsolatedGroups::begin(std::uint32_t group, std::uint32_t activity, SimTime now) {
  Running& last = running_[group];
  if (last.activity != kNone) ++ended_[last.activity];
  last = {activity, now};
}

network::LinkRecord IsolatedGroups::record(std::uint32_t link, SimTime now) const {
  network::LinkRecord record;
  const std::uint32_t group = user_[link];
  if (group >= kMany || !isolated_[group]) return record;
  const Running& last = running_[group];
  for (const std::uint32_t a : system_.groups[group].activities) {
    const AloneCall& call = alone_[a];
    const bool current = last.activity == a;
    if ((ended_[a] == 0 && !current) || call.moving == Duration{}) continue;
    const double part = current ? seconds(std::min(now - last.begin, call.moving)) / seconds(call.moving) : 0;
    for (const AloneCall::Share& share : call.links) {
      if (share.link != link) continue;
      record.busy += share.record.busy * static_cast<std::int64_t>(ended_[a]);
      record.busy += share.record.busy == call.moving && current
                         ? std::min(now - last.begin, call.moving)
                         : from_seconds(seconds(share.record.busy) * part);
      record.bytes += share.record.bytes * (static_cast<double>(ended_[a]) + part);
      record.peak_rate = std::max(record.peak_rate, share.record.peak_rate);
    }
  }
  return record;
}
}  // namespace topsim::executor

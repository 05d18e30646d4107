#include "sim/executor/isolated.hpp"

#include <algorithm>

#include "sim/executor/circles.hpp"

namespace topsim::executor {
namespace {

constexpr std::uint32_t kNone = fold::System::kNone;

// The slots that some program class uses on more than one stream.
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
      users_(allowed ? system.links.size() : 0),
      varies_(users_.size()),
      disturbs_(system.groups.size()),
      others_(system.groups.size()),
      alone_(system.activities.size()),
      ended_(system.activities.size()),
      carried_(users_.size()) {
  if (!allowed) return;
  find_users(changes, carrier);
  const std::vector<bool> overlapping = overlapping_slots(program);
  for (std::size_t slot = 0; slot < overlapping.size(); ++slot)
    for (const std::uint32_t g : system.group_of[slot])
      if (g != kNone && overlapping[slot]) isolated_[g] = false;
  for (std::uint32_t g = 0; g < system.groups.size(); ++g) {
    if (!system.groups[g].communicator.valid()) isolated_[g] = false;
    bool shares = false;
    for (const std::uint32_t a : system.groups[g].activities) {
      if (!system.activities[a].detours.empty()) isolated_[g] = false;
      for (const network::Usage& use : fold::Activity::view(system.activities[a].usage)) {
        if (varies_[use.link]) isolated_[g] = false;
        shares |= users_[use.link].size() > 1;
      }
    }
    if (shares && !carrier.goes_on()) isolated_[g] = false;
  }
  isolate_at_times();
  for (std::uint32_t g = 0; g < system.groups.size(); ++g) {
    for (const std::uint32_t a : system.groups[g].activities) {
      if (!isolated_[g] || system.activities[a].bytes == Bytes(0)) continue;
      auto call = carrier.alone(g, a);
      isolated_[g] = call.has_value();
      if (call) alone_[a] = std::move(*call);
    }
    if (!isolated_[g]) continue;
    for (const std::uint32_t a : system_.groups[g].activities)
      for (std::uint32_t s = 0; s < alone_[a].links.size(); ++s)
        carried_[alone_[a].links[s].link].push_back({g, a, s});
  }
}

void IsolatedGroups::find_users(const std::vector<CapacityChange>& changes, const Carrier& carrier) {
  for (std::uint32_t g = 0; g < system_.groups.size(); ++g) {
    const auto use_links = [&](const fold::Activity::Usages& usage) {
      for (const network::Usage& use : fold::Activity::view(usage)) {
        auto& users = users_[use.link];
        if (users.empty() || users.back() != g) users.push_back(g);
      }
    };
    for (const std::uint32_t a : system_.groups[g].activities) {
      use_links(system_.activities[a].usage);
      for (const fold::Activity::Detour& detour : system_.activities[a].detours) use_links(detour.usage);
    }
  }
  for (std::uint32_t l = 0; l < system_.links.size(); ++l) {
    const auto& members = system_.links[l].members;
    varies_[l] = carrier.varies(l) || std::any_of(changes.begin(), changes.end(), [&](const auto& change) {
                   return std::binary_search(members.begin(), members.end(), change.link);
                 });
  }
}

// Two isolated groups must not meet on a link, because the network would not see it. Of the groups that share
// a link only the first stays isolated, and those whose calls are made in turn by one team (lock_step.hpp):
// with the same members, or in one circle.
void IsolatedGroups::isolate_at_times() {
  std::vector<std::vector<std::uint32_t>> there(users_.size());  // by link: isolated groups
  Circles circles(system_);
  for (std::uint32_t g = 0; g < system_.groups.size(); ++g) {
    if (!isolated_[g]) continue;
    const auto each_link = [&](const auto& act) {
      for (const std::uint32_t a : system_.groups[g].activities)
        for (const network::Usage& use : fold::Activity::view(system_.activities[a].usage)) act(use.link);
    };
    std::vector<std::uint32_t> sharing;
    each_link([&](std::uint32_t l) {
      for (const std::uint32_t other : there[l])
        if (other != g && system_.groups[other].members != system_.groups[g].members &&
            std::find(sharing.begin(), sharing.end(), other) == sharing.end())
          sharing.push_back(other);
    });
    if (!sharing.empty() && !circles.join(g, sharing)) isolated_[g] = false;
    if (!isolated_[g]) continue;
    each_link([&](std::uint32_t l) {
      if (there[l].empty() || there[l].back() != g) there[l].push_back(g);
      for (const std::uint32_t user : users_[l]) {
        auto& disturbed = disturbs_[user];
        if (user != g && std::find(disturbed.begin(), disturbed.end(), g) == disturbed.end())
          disturbed.push_back(g);
      }
    });
  }
  circles_ = circles.take();
}

std::uint64_t IsolatedGroups::transfers() const {
  std::uint64_t sum = 0;
  for (std::size_t a = 0; a < ended_.size(); ++a) sum += ended_[a] * alone_[a].transfers;
  for (const Running& last : running_)
    if (last.activity != kNone) sum += alone_[last.activity].transfers;
  return sum;
}

void IsolatedGroups::begin(std::uint32_t group, std::uint32_t activity, SimTime now, std::uint32_t call,
                           engine::Handle event) {
  Running& last = running_[group];
  if (last.activity != kNone) ++ended_[last.activity];
  last = {activity, call, now, event};
}

double IsolatedGroups::left(const Running& last, SimTime now) const {
  const AloneCall& alone = alone_[last.activity];
  if (now - last.begin >= alone.moving) return 0;
  const auto bytes = static_cast<double>(system_.activities[last.activity].bytes.value());
  const double rate = alone.rate > 0 ? alone.rate : bytes / seconds(alone.moving);
  return std::max(bytes - rate * seconds(now - last.begin), 0.0);
}

std::optional<IsolatedGroups::Met> IsolatedGroups::meet(std::uint32_t group, SimTime now) {
  Running& last = running_[group];
  if (last.event == engine::kNoHandle) return std::nullopt;
  const AloneCall& alone = alone_[last.activity];
  const auto bytes = static_cast<double>(system_.activities[last.activity].bytes.value());
  const double rest = left(last, now);
  if (!(rest > 0)) return std::nullopt;
  for (const AloneCall::Share& share : alone.links) {
    if (now == last.begin) continue;
    network::LinkRecord& record = met_[share.link];
    record.bytes += share.record.bytes * (1 - rest / bytes);
    record.busy += now - last.begin;
    record.peak_rate = std::max(record.peak_rate, share.record.peak_rate);
  }
  const Met met{last.call, last.activity, rest, last.event};
  last = {};
  return met;
}

network::LinkRecord IsolatedGroups::record(std::uint32_t link, SimTime now) const {
  network::LinkRecord record;
  if (carried_.empty()) return record;
  if (const auto met = met_.find(link); met != met_.end()) record = met->second;
  for (const Carried& each : carried_[link]) add(each, now, record);
  return record;
}

void IsolatedGroups::add(const Carried& carried, SimTime now, network::LinkRecord& record) const {
  const std::uint32_t a = carried.activity;
  const Running& last = running_[carried.group];
  const AloneCall& call = alone_[a];
  const bool current = last.activity == a;
  if ((ended_[a] == 0 && !current) || call.moving == Duration{}) return;
  const auto bytes = static_cast<double>(system_.activities[a].bytes.value());
  const double part = current ? 1 - left(last, now) / bytes : 0;
  const network::LinkRecord& whole = call.links[carried.share].record;
  record.busy += whole.busy * static_cast<std::int64_t>(ended_[a]);
  record.busy += whole.busy == call.moving && current ? std::min(now - last.begin, call.moving)
                                                      : from_seconds(seconds(whole.busy) * part);
  record.bytes += whole.bytes * (static_cast<double>(ended_[a]) + part);
  record.peak_rate = std::max(record.peak_rate, whole.peak_rate);
}
}  // namespace topsim::executor

// Twins: regions that begin at the same instant with the same messages, as rings on similar rails do. One of
// them is simulated for all (episodes.hpp).
#include <algorithm>
#include <utility>

#include "sim/network/packet/episodes.hpp"

namespace topsim::network::packet {
namespace {
// When the first message was that only one of them has had.
SimTime part_at(const Region& a, const Region& b) {
  const Region& more = a.inputs.size() > b.inputs.size() ? a : b;
  const std::size_t common = std::min(a.inputs.size(), b.inputs.size());
  return common < more.inputs.size() ? more.at(more.inputs[common].time) : kNever;
}

bool draws(const Region& region) {
  return region.workplace && region.engine().counters().draws > 0;
}
}  // namespace

// The engine is created when time advances: further messages of the same instant may join regions.
void Episodes::simulate_alone(Region& region) {
  if (region.leader != nullptr) std::erase(region.leader->twins, &region);
  region.mode = Region::Mode::simulated;
  region.followed = nullptr;
  region.leader = nullptr;
}

void Episodes::simulate(Region& region) {
  simulate_alone(region);
  if (!region.recording || become_twin(region)) return;
  leaders_.emplace(region.first(), &region);
}

bool Episodes::become_twin(Region& region) {
  const auto [first, last] = leaders_.equal_range(region.first());
  for (auto at = first; at != last; ++at) {
    Region& leader = *at->second;
    // A leader's number is lower: where all regions are visited, it comes before its twins.
    if (leader.begin != region.begin || leader.number >= region.number || draws(leader)) continue;
    if (part_at(leader, region) < all_sent_before_ || !agree(leader, region, 0)) continue;
    region.mode = Region::Mode::twin;
    region.leader = &leader;
    leader.twins.push_back(&region);
    for (const Record::Output& output : leader.outputs)
      hand_out(region, output.input, leader.at(output.time));
    return true;
  }
  return false;
}

void Episodes::leave(Region& twin) {
  simulate_alone(twin);
  if (!follow(twin, now_)) simulate(twin);
}

// `input` is the latest message of the region, a leader or a twin.
void Episodes::compare_twins(Region& region, std::uint32_t input) {
  if (region.leader != nullptr && !agree(region, *region.leader, input)) leave(region);
  const std::vector<Region*> twins = region.twins;
  for (Region* twin : twins)
    if (!agree(*twin, region, input)) leave(*twin);
}

// No further message starts before that time.
void Episodes::part_before(SimTime time) {
  const bool later = time > all_sent_before_;
  all_sent_before_ = time;
  if (!later) return;
  for (const auto& [number, region] : regions_)
    if (region->leader != nullptr && part_at(*region, *region->leader) < time) leave(*region);
}

// Random numbers are the port's own, so what they decide holds for the leader alone.
void Episodes::part_if_drawn(Region& leader) {
  if (leader.twins.empty() || !draws(leader)) return;
  const std::vector<Region*> twins = leader.twins;
  for (Region* twin : twins) leave(*twin);
}

void Episodes::tell_twins(Region& leader, std::uint32_t input, SimTime time) {
  for (Region* twin : leader.twins) hand_out(*twin, input, time);
}

// Before the network changes: every region has an engine of its own.
void Episodes::part_all() {
  for (const auto& [number, region] : regions_) {
    if (region->mode != Region::Mode::twin) continue;
    simulate_alone(*region);
    advance(*region, now_);
  }
}

void Episodes::replay_twins(Region& leader, const Record& record) {
  for (Region* twin : std::exchange(leader.twins, {})) {
    twin->mode = Region::Mode::replayed;
    twin->followed = &record;
    twin->leader = nullptr;
    twin->next_output = record.outputs.size();  // all told
  }
}

void Episodes::withdraw(Region& region) {
  simulate_alone(region);
  if (!skip_) return;
  const auto [first, last] = leaders_.equal_range(region.first());
  for (auto at = first; at != last;) at = at->second == &region ? leaders_.erase(at) : std::next(at);
  std::vector<Region*> twins = std::exchange(region.twins, {});
  std::sort(twins.begin(), twins.end(),
            [](const Region* a, const Region* b) { return a->number < b->number; });
  for (Region* twin : twins) {
    twin->leader = nullptr;
    simulate(*twin);
  }
}
}  // namespace topsim::network::packet

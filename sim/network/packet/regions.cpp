// Regions: which messages touch each other, and their engines.
#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/network/packet/episodes.hpp"

namespace topsim::network::packet {

// The region that the channel touches; several are joined into one; a new one if there is none.
Region& Episodes::region_for(const Channel& channel, SimTime now) {
  const std::vector<std::uint32_t> touched = touched_by(channel, now);
  Region* region = nullptr;
  if (touched.empty()) {
    auto fresh = std::make_unique<Region>();
    fresh->number = next_region_++;
    fresh->begin = now;
    region = fresh.get();
    regions_.emplace(region->number, std::move(fresh));
  } else {
    region = touched.size() == 1 ? regions_.at(touched.front()).get() : &join(touched);
  }
  claim(*region, channel);
  return *region;
}

// The current regions that hold one of the channel's claims.
std::vector<std::uint32_t> Episodes::touched_by(const Channel& channel, SimTime now) {
  std::vector<std::uint32_t> touched;
  if (apart_) {
    for (const PortIndex claim : channel.claims)
      if (claimed_[claim] != kNone) touched.push_back(claimed_[claim]);
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  } else if (!regions_.empty()) {
    touched.push_back(regions_.begin()->first);
  }
  std::erase_if(touched, [&](std::uint32_t number) {
    const auto at = regions_.find(number);
    if (at == regions_.end()) return true;  // a leader that ended with its twin
    Region& region = *at->second;
    if ((region.leader != nullptr ? *region.leader : region).waits(now)) return false;
    advance(region, now);
    return close(region, now);
  });
  return touched;
}

void Episodes::claim(Region& region, const Channel& channel) {
  for (const PortIndex claim : channel.claims) {
    if (claimed_[claim] == region.number) continue;
    claimed_[claim] = region.number;
    region.claims.push_back(claim);
    share_buffers(region, claim);
  }
}

void Episodes::add_input(Region& region, const Channel& channel, Bytes bytes, Duration extra, SimTime now) {
  const auto fresh_number = static_cast<std::uint32_t>(region.channels.size());
  const auto [local, fresh] = region.local.try_emplace(channel.number, fresh_number);
  if (fresh) {
    region.channels.push_back(&channel);
    region.words.push_back(region.names.read(channel, graph_, classes_));
  }
  region.inputs.push_back({region.since_begin(now), local->second, bytes, extra});
  region.least_extra = std::min(region.least_extra, extra);
}

// What happened in each region before they met did not depend on the others.
Region& Episodes::join(const std::vector<std::uint32_t>& numbers) {
  struct Part {
    SimTime time;
    const Channel* channel;
    Bytes bytes;
    Duration extra;
    Region::Message message;
  };
  std::vector<Part> parts;
  auto joined = std::make_unique<Region>();
  joined->number = next_region_++;
  joined->begin = kNever;
  joined->recording = true;
  for (const std::uint32_t number : numbers) {
    Region& region = *regions_.at(number);
    withdraw(region);
    joined->begin = std::min(joined->begin, region.begin);
    joined->recording = joined->recording && region.recording;
    for (std::size_t i = 0; i < region.inputs.size(); ++i) {
      const Input& input = region.inputs[i];
      parts.push_back({region.at(input.time), region.channels[input.channel], input.bytes, input.extra,
                       region.messages[i]});
    }
    stop_sharing(region);
    for (const PortIndex claim : region.claims) {
      claimed_[claim] = joined->number;
      joined->claims.push_back(claim);
      share_buffers(*joined, claim);
    }
    if (region.workplace) spent_ += region.engine().counters().events;
    regions_.erase(number);
  }
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.message.arrival < b.message.arrival; });
  for (const Part& part : parts) {
    add_input(*joined, *part.channel, part.bytes, part.extra, part.time);
    joined->messages.push_back(part.message);
  }
  Region& region = *regions_.emplace(joined->number, std::move(joined)).first->second;
  if (!region.recording || !follow(region, now_)) simulate(region);
  return region;
}

void Episodes::attach(Region& region) {
  if (idle_.empty()) {
    region.workplace = std::make_unique<Workplace>(graph_, spec_);
    region.engine().stop_when(stopped_);
  } else {
    region.workplace = std::move(idle_.back());
    idle_.pop_back();
  }
  // The network as it was at the region's first message: an idle engine may have later changes.
  Workplace& work = *region.workplace;
  for (; work.changes > 0 && changes_[work.changes - 1].arrival > region.messages.front().arrival;
       --work.changes)
    make(work, changes_[work.changes - 1], true, work.engine.now());
  region.shift = region.begin - work.engine.now();
  region.outputs.clear();
  for (Region::Message& message : region.messages) message.parts = 0;
  for (std::uint32_t input = 0; input < region.inputs.size(); ++input) {
    follow_changes(region, region.messages[input].arrival);
    work.engine.run_until(region.at(region.inputs[input].time) - region.shift);
    collect(region);
    send(region, input);
  }
  follow_changes(region, arrivals_);
}

void Episodes::follow_changes(Region& region, std::uint64_t arrival) {
  if (!region.workplace) return;
  Workplace& work = *region.workplace;
  for (; work.changes < changes_.size() && changes_[work.changes].arrival < arrival; ++work.changes) {
    const Change& change = changes_[work.changes];
    // For an engine that was idle at the time, the change lies in the past.
    const SimTime time = std::max(change.time - region.shift, work.engine.now());
    work.engine.run_until(time);
    collect(region);
    make(work, change, false, time);
  }
  region.look_at_engine();
}

void Episodes::make(Workplace& work, const Change& change, bool undo, SimTime time) {
  if (!change.ways) return work.engine.set_rate(change.port, undo ? change.before : change.after, time);
  const auto pairs = work.pairs.find(change.ways->channel);
  if (pairs == work.pairs.end()) return;
  const std::vector<Channel::Ends>& ways = undo ? change.ways->before : change.ways->after;
  for (std::size_t k = 0; k < ways.size(); ++k) work.engine.move(pairs->second[k], ways[k].connection, time);
}

const std::vector<Channel::Ends>& Episodes::ways_in(const Workplace& work, const Channel& channel) const {
  for (std::size_t c = work.changes; c < changes_.size(); ++c)
    if (changes_[c].ways && changes_[c].ways->channel == channel.number) return changes_[c].ways->before;
  return channel.pairs;
}

void Episodes::move(const Channel& channel, const std::vector<Connection>& connections, SimTime now) {
  now_ = std::max(now_, now);
  Channel other;
  find_ways(connections, other);
  const auto same = [](const Channel::Ends& a, const Channel::Ends& b) {
    return a.there == b.there && a.back == b.back;
  };
  if (std::equal(channel.pairs.begin(), channel.pairs.end(), other.pairs.begin(), other.pairs.end(), same))
    return;
  part_before(now_);
  settle();
  part_all();
  Channel& moved = channels_[channel.number];
  changes_.push_back({now_, arrivals_++});
  changes_.back().ways =
      std::make_shared<const Change::Ways>(Change::Ways{moved.number, moved.pairs, other.pairs});
  Channel both = moved;
  moved.pairs = std::move(other.pairs);
  moved.claims = std::move(other.claims);
  moved.off_way = std::move(other.off_way);
  moved.one_path = other.one_path, moved.path_latency = other.path_latency;
  changed();
  // From now on its messages in flight also touch what its new paths touch.
  const bool busy = !apart_ || std::any_of(regions_.begin(), regions_.end(), [&](const auto& region) {
    return region.second->local.count(moved.number) > 0;
  });
  if (!apart_ || !busy) return;
  both.claims.insert(both.claims.end(), moved.claims.begin(), moved.claims.end());
  const std::vector<std::uint32_t> touched = touched_by(both, now_);
  if (touched.empty()) return;
  Region& region = touched.size() == 1 ? *regions_.at(touched.front()) : join(touched);
  claim(region, moved);
  keep_apart(region);
}

// Records and current episodes belong to the network before the change.
void Episodes::changed() {
  for (const auto& [number, region] : regions_) {
    region->recording = false;
    follow_changes(*region, arrivals_);
  }
  leaders_.clear();
  records_.clear();
  by_first_.clear();
  recorded_inputs_ = 0;
}

void Episodes::send(Region& region, std::uint32_t number) {
  const Input& input = region.inputs[number];
  const Channel& channel = *region.channels[input.channel];
  auto& pairs = region.workplace->pairs[channel.number];
  if (pairs.empty()) {
    for (const Channel::Ends& pair : ways_in(*region.workplace, channel))
      pairs.push_back(region.engine().connect(pair.connection));
  }
  const auto count = static_cast<std::int64_t>(pairs.size());
  const std::int64_t bytes = input.bytes.value(), parts = std::clamp<std::int64_t>(bytes, 1, count);
  region.messages[number].parts = static_cast<std::uint32_t>(parts);
  const SimTime time = region.at(input.time) - region.shift;
  if (time < region.engine().now())
    throw InternalError("a message of the packet model starts when its region is further already");
  for (std::int64_t k = 0; k < parts; ++k) {
    const std::int64_t part = bytes * (k + 1) / parts - bytes * k / parts;
    region.engine().send(pairs[static_cast<std::size_t>(k)], Bytes(part), time, number);
  }
  region.rests = kNever;
  region.look_at_engine();
}

void Episodes::hand_out(Region& region, std::uint32_t input, SimTime time) {
  Region::Message& message = region.messages[input];
  if (message.told) return;
  if (time < told_until_)
    throw InternalError("a message of the packet model is found complete at a time that has passed");
  message.told = true;
  done_.push_back({time, message.order, message.tag});
}

void Episodes::collect(Region& region) {
  part_if_drawn(region);
  for (const Completion& part : region.engine().delivered()) {
    const auto input = static_cast<std::uint32_t>(part.tag);
    if (--region.messages[input].parts > 0) continue;
    const SimTime time = part.time + region.shift + region.inputs[input].extra;
    region.outputs.push_back({region.since_begin(time), input});
    hand_out(region, input, time);
    tell_twins(region, input, time);
  }
  region.engine().delivered().clear();
  region.engine().acknowledged().clear();
  region.to_collect = false;
  region.look_at_engine();
}

void Episodes::release(Region& region) {
  withdraw(region);
  stop_sharing(region);
  for (const PortIndex claim : region.claims) claimed_[claim] = kNone;
  regions_.erase(region.number);
}
}  // namespace topsim::network::packet

#include "sim/network/packet/episodes.hpp"

#include <algorithm>

namespace topsim::network::packet {

Episodes::Episodes(const Graph& graph, const PacketSpec& spec, bool skip)
    : graph_(graph),
      spec_(spec),
      apart_(spec.loss.probability == 0),
      skip_(skip && apart_),
      planner_(graph, spec),
      classes_(graph, planner_),
      claimed_(graph.ports.size(), kNone),
      sharers_(graph.devices),
      totals_(graph.ports.size()) {}
Episodes::~Episodes() = default;

const Channel& Episodes::open(const std::vector<Connection>& connections) {
  Channel channel;
  channel.number = static_cast<std::uint32_t>(channels_.size());
  find_ways(connections, channel);
  channels_.push_back(std::move(channel));
  return channels_.back();
}

void Episodes::find_ways(const std::vector<Connection>& connections, Channel& channel) {
  channel.one_path = true;
  for (const Connection& connection : connections) {
    const PairIndex pair = planner_.connect(connection);
    Channel::Ends ends{connection, {}, {}};
    channel.one_path &= planner_.ways(pair, ends.there, ends.back);
    for (const auto* ports : {&ends.there, &ends.back})
      channel.claims.insert(channel.claims.end(), ports->begin(), ports->end());
    channel.path_latency = planner_.path_latency(pair);
    channel.pairs.push_back(std::move(ends));
  }
  const auto sort = [](std::vector<PortIndex>& ports) {
    std::sort(ports.begin(), ports.end());
    ports.erase(std::unique(ports.begin(), ports.end()), ports.end());
  };
  sort(channel.claims);
  for (const PortIndex port : channel.claims) {
    const PortSpec& spec = graph_.ports[port];
    if (spec.flow_control == FlowControl::pfc &&
        !std::binary_search(channel.claims.begin(), channel.claims.end(), spec.reverse))
      channel.off_way.push_back(spec.reverse);
  }
  channel.claims.insert(channel.claims.end(), channel.off_way.begin(), channel.off_way.end());
  sort(channel.claims);
}

void Episodes::start(const Channel& channel, Bytes bytes, Duration extra, std::uint64_t tag,
                     std::uint64_t order, SimTime now) {
  now_ = std::max(now_, now);
  part_before(now_);
  Region& region = region_for(channel, now);
  const bool first = region.inputs.empty();
  region.messages.push_back({tag, order, arrivals_++});
  add_input(region, channel, bytes, extra, now);
  const auto input = static_cast<std::uint32_t>(region.inputs.size() - 1);
  if (!first) compare_twins(region, input);
  if (region.workplace) {
    send(region, input);
  } else if (first) {
    begin(region);
  } else if (region.mode == Region::Mode::replayed) {
    const Record& record = *region.followed;
    const bool expected =
        record.inputs.size() > input && agree(region, record, input) && region.draws_like(record);
    if (!expected && !follow(region, now)) simulate(region);
  }
  keep_apart(region);
}

SimTime Episodes::next(const Region& region) const {
  if (region.leader != nullptr) return kNever;  // nothing without the leader
  if (region.mode == Region::Mode::simulated) {
    return region.workplace ? region.due : std::max(region.begin, now_);
  }
  const Record& record = *region.followed;
  // After the last completion acknowledgements and credits are still in flight.
  if (region.next_output == record.outputs.size() && region.inputs.size() == record.inputs.size())
    return std::max(region.at(record.end), now_);
  SimTime next = kNever;
  if (region.next_output < record.outputs.size()) next = region.at(record.outputs[region.next_output].time);
  // If the next recorded message has not come by its time, the region leaves the record.
  if (region.inputs.size() < record.inputs.size())
    next = std::min(next, region.at(record.inputs[region.inputs.size()].time + 1));
  return next;
}

SimTime Episodes::next_event() const {
  SimTime first = kNever;
  for (const auto& [number, region] : regions_) first = std::min(first, next(*region));
  return std::max(first, now_);  // an engine that was stopped may be behind
}

// Others may be simulated up to then: when the region could complete a message at the earliest, or, where it
// shares a buffer, kMostAhead.
SimTime Episodes::next_completion(const Region& region, SimTime next) {
  const Duration extra =
      region.buffers.empty() ? region.least_extra : std::min<Duration>(region.least_extra, kMostAhead);
  return next == kNever ? kNever : next + extra;
}

// A region may be simulated up to the first time at which another region could complete a message: only a
// completion lets the caller send.
SimTime Episodes::run_ahead(SimTime limit) {
  part_before(limit);
  while (!stopped_ || !stopped_()) {
    const Region* furthest_behind = nullptr;
    SimTime first = kNever, second = kNever;  // possible completions
    for (const auto& [number, region] : regions_) {
      const SimTime next = this->next(*region);
      if (region->mode == Region::Mode::replayed) limit = std::min(limit, next);
      if (region->mode != Region::Mode::simulated) continue;
      const SimTime possible = next_completion(*region, next);
      if (possible < first) {
        second = first;
        first = possible;
        furthest_behind = region.get();
      } else {
        second = std::min(second, possible);
      }
    }
    if (furthest_behind == nullptr || first > limit) return limit;
    const std::size_t before = done_.size();
    for (const auto& [number, region] : regions_) {
      if (region->mode != Region::Mode::simulated) continue;
      // Twins that draw random numbers may complete something before their leader does.
      const bool furthest = region.get() == furthest_behind && region->twins.empty();
      run_to_delivery(*region, std::min(limit, furthest ? second : first));
    }
    // A region may have come far while another had nothing to do, so what it has found counts only now.
    while (!keep_all_apart()) {
    }
    for (const auto& [number, region] : regions_)
      if (region->to_collect) collect(*region);
    for (std::size_t i = before; i < done_.size(); ++i) limit = std::min(limit, done_[i].time);
  }
  return next_event();
}

// What it finds complete is left with the engine.
void Episodes::run_to_delivery(Region& region, SimTime time) {
  if (next(region) > time) return;
  if (!region.workplace) return attach(region);  // which sends the messages so far, and may complete some
  region.engine().run_to_delivery(region.in_engine(time));
  region.to_collect = true;
  region.look_at_engine();
}

void Episodes::advance(SimTime now) {
  now_ = std::max(now_, now);
  part_before(now_);
  do {
    for (auto at = regions_.begin(); at != regions_.end();) {
      const auto [number, region] = std::pair(at->first, at->second.get());
      advance(*region, now);
      close(*region, now);
      at = regions_.upper_bound(number);
    }
  } while (!keep_all_apart());
  told_until_ = now_;
}

void Episodes::advance(Region& region, SimTime now) {
  if (region.mode == Region::Mode::replayed) {
    const Record& record = *region.followed;
    const bool missed = region.inputs.size() < record.inputs.size() &&
                        record.inputs[region.inputs.size()].time < region.since_begin(now);
    if (missed && !follow(region, now)) simulate(region);
  }
  while (region.leader != nullptr) {
    const Region* leader = region.leader;
    advance(*region.leader, now);
    if (region.leader == leader) return;  // it has not left
  }
  if (region.mode == Region::Mode::replayed) {
    for (; region.next_output < region.followed->outputs.size(); ++region.next_output) {
      const Record::Output& output = region.followed->outputs[region.next_output];
      if (output.time > region.since_begin(now)) break;
      hand_out(region, output.input, region.at(output.time));
    }
    return;
  }
  if (!region.workplace) attach(region);
  if (region.due > now) return;
  region.engine().run_until(now - region.shift);
  collect(region);
}

// An episode ends at rest; a message that starts later begins another one.
bool Episodes::close(Region& region, SimTime now) {
  if (region.leader != nullptr && !close(*region.leader, now)) return false;
  if (region.mode == Region::Mode::replayed) {
    const Record& record = *region.followed;
    if (region.inputs.size() < record.inputs.size() || region.since_begin(now) < record.end) return false;
    for (; region.next_output < record.outputs.size(); ++region.next_output) {
      const Record::Output& output = record.outputs[region.next_output];
      hand_out(region, output.input, region.at(output.time));
    }
    add(in_place(region, record.usage));
    ++skipped_;
    release(region);
    return true;
  }
  if (!region.workplace || region.due != kNever) return false;
  Engine& engine = region.engine();
  if (region.rests == kNever) {
    const SimTime rests = engine.rests_from();
    if (rests != kNever) region.rests = rests + region.shift;
    // A network that never rests keeps its region; its messages have been reported.
    if (!apart_) region.inputs.clear(), region.messages.clear(), region.outputs.clear();
  }
  if (region.rests > now || region.rests == kNever) return false;
  engine.rest();
  Tally usage = engine.take();
  add(usage);
  simulated_ += usage.counters.events;
  if (region.recording) replay_twins(region, keep(region, std::move(usage)));
  idle_.push_back(std::move(region.workplace));
  release(region);
  return true;
}

}  // namespace topsim::network::packet

#include "sim/network/packet/episodes.hpp"

#include <algorithm>

namespace topsim::network::packet {

Episodes::Episodes(const Graph& graph, const PacketSpec& spec, bool skip)
    : graph_(graph),
      spec_(spec),
      apart_(spec.loss.probability == 0),
      skip_(skip && apart_),
      classes_(graph, spec),
      planner_(graph, spec),
      claimed_(graph.ports.size() + graph.devices, kNone),
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
  const auto claim = [&](PortIndex port) {
    channel.claims.push_back(port);
    if (graph_.ports[port].flow_control != FlowControl::credit)
      channel.claims.push_back(static_cast<std::uint32_t>(graph_.ports.size()) + graph_.ports[port].to);
  };
  channel.one_path = true;
  for (const Connection& connection : connections) {
    const PairIndex pair = planner_.connect(connection);
    Channel::Ends ends{connection, {}, {}};
    channel.one_path &= planner_.ways(pair, ends.there, ends.back);
    for (const PortIndex port : ends.there) claim(port);
    for (const PortIndex port : ends.back) claim(port);
    channel.path_latency = planner_.path_latency(pair);
    channel.pairs.push_back(std::move(ends));
  }
  std::sort(channel.claims.begin(), channel.claims.end());
  channel.claims.erase(std::unique(channel.claims.begin(), channel.claims.end()), channel.claims.end());
}

void Episodes::start(const Channel& channel, Bytes bytes, Duration extra, std::uint64_t tag,
                     std::uint64_t order, SimTime now) {
  now_ = std::max(now_, now);
  Region& region = region_for(channel, now);
  const bool first = region.inputs.empty();
  region.messages.push_back({tag, order, arrivals_++});
  add_input(region, channel, bytes, extra, now);
  const auto input = static_cast<std::uint32_t>(region.inputs.size() - 1);
  if (region.workplace) {
    send(region, input);
  } else if (first) {
    begin(region);
  } else if (region.mode == Region::Mode::replayed) {
    const Record& record = *region.followed;
    const bool expected =
        record.inputs.size() > input && record.inputs[input] == region.inputs[input] &&
        record.words[region.inputs[input].channel] == region.words[region.inputs[input].channel];
    if (!expected && !follow(region, now)) simulate(region);
  }
}

SimTime Episodes::next(const Region& region) const {
  if (region.mode == Region::Mode::simulated) {
    if (!region.workplace) return std::max(region.begin, now_);
    const SimTime next = region.engine().next_event();
    return next == kNever ? kNever : next + region.shift;
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

// A region may be simulated up to the first time at which another region could complete a message: only a
// completion lets the caller send.
void Episodes::run_ahead(SimTime limit) {
  for (const auto& [number, region] : regions_) {
    if (region->mode == Region::Mode::replayed) limit = std::min(limit, next(*region));
  }
  for (;;) {
    Region* furthest_behind = nullptr;
    SimTime first = kNever, second = kNever;  // possible completions
    for (const auto& [number, region] : regions_) {
      if (region->mode == Region::Mode::replayed) continue;
      const SimTime event = next(*region);
      if (event == kNever) continue;
      const SimTime possible = event + region->least_extra;
      if (possible < first) {
        second = first;
        first = possible;
        furthest_behind = region.get();
      } else {
        second = std::min(second, possible);
      }
    }
    if (furthest_behind == nullptr || first > limit || (stopped_ && stopped_())) return;
    Region& region = *furthest_behind;
    const std::size_t before = done_.size();  // attach() sends the messages so far, which may complete some
    if (!region.workplace) attach(region);
    for (std::size_t i = before; i < done_.size(); ++i) limit = std::min(limit, done_[i].time);
    region.engine().run_to_delivery(std::min(limit, second) - region.shift);
    collect(region);
    for (std::size_t i = before; i < done_.size(); ++i) limit = std::min(limit, done_[i].time);
  }
}

void Episodes::advance(SimTime now) {
  now_ = std::max(now_, now);
  for (auto at = regions_.begin(); at != regions_.end();) {
    Region& region = *(at++)->second;  // close() may remove it
    advance(region, now);
    close(region, now);
  }
  told_until_ = now_;
}

void Episodes::advance(Region& region, SimTime now) {
  if (region.mode == Region::Mode::replayed) {
    const Record& record = *region.followed;
    const bool missed = region.inputs.size() < record.inputs.size() &&
                        record.inputs[region.inputs.size()].time < region.since_begin(now);
    if (missed && !follow(region, now)) simulate(region);
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
  if (region.engine().next_event() > now - region.shift) return;
  region.engine().run_until(now - region.shift);
  collect(region);
}

// An episode ends at rest; a message that starts later begins another one.
bool Episodes::close(Region& region, SimTime now) {
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
  if (!region.workplace || region.engine().next_event() != kNever) return false;
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
  if (region.recording) keep(region, std::move(usage));
  idle_.push_back(std::move(region.workplace));
  release(region);
  return true;
}

}  // namespace topsim::network::packet

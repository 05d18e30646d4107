#include "sim/network/packet/episodes.hpp"

#include <algorithm>

namespace topsim::network::packet {
namespace {
// Congestion control that time does not bring back, and loss: every queue pair has a history.
bool forgetful(const Graph& graph, const PacketSpec& spec) {
  const CongestionControlKind kind = settled_congestion_control(graph, spec);
  return spec.loss.probability == 0 &&
         (kind == CongestionControlKind::none || kind == CongestionControlKind::dcqcn ||
          kind == CongestionControlKind::infiniband);
}
}  // namespace

Episodes::Episodes(const Graph& graph, const PacketSpec& spec, bool skip)
    : graph_(graph),
      spec_(spec),
      skip_(skip && forgetful(graph, spec)),
      apart_(forgetful(graph, spec)),
      classes_(graph),
      planner_(graph, spec),
      claimed_(graph.ports.size() + graph.devices, kNone),
      totals_(graph.ports.size()) {}
Episodes::~Episodes() = default;

const Channel& Episodes::open(const std::vector<Connection>& connections) {
  Channel channel;
  channel.number = static_cast<std::uint32_t>(channels_.size());
  const auto claim = [&](PortIndex port) {
    channel.claims.push_back(port);
    if (graph_.ports[port].flow_control != FlowControl::credit)
      channel.claims.push_back(static_cast<std::uint32_t>(graph_.ports.size()) + graph_.ports[port].to);
  };
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
  channels_.push_back(std::move(channel));
  return channels_.back();
}

void Episodes::start(const Channel& channel, Bytes bytes, Duration extra, std::uint64_t tag,
                     std::uint64_t order, SimTime now) {
  now_ = std::max(now_, now);
  Region& region = region_for(channel, now);
  const bool first = region.inputs.empty();
  region.messages.push_back({tag, order, arrivals_++});
  add_input(region, channel, bytes, extra, now);
  const auto input = static_cast<std::uint32_t>(region.inputs.size() - 1);
  if (first) {
    begin(region);
  } else if (region.mode == Region::Mode::replayed) {
    const Record& record = *region.followed;
    const bool expected =
        record.inputs.size() > input && record.inputs[input] == region.inputs[input] &&
        record.words[region.inputs[input].channel] == region.words[region.inputs[input].channel];
    if (!expected && !follow(region, now)) simulate(region, now);
  } else if (region.workplace) {
    send(region, input);
  }
}

// The region that the channel touches, made one where there are several; a new one where there is none.
Region& Episodes::region_for(const Channel& channel, SimTime now) {
  std::vector<std::uint32_t> touched;
  if (apart_) {
    for (const std::uint32_t claim : channel.claims)
      if (claimed_[claim] != kNone) touched.push_back(claimed_[claim]);
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  } else if (!regions_.empty()) {
    touched.push_back(regions_.begin()->first);
  }
  std::erase_if(touched, [&](std::uint32_t number) {
    Region& region = *regions_.at(number);
    advance(region, now);
    return close(region, now);
  });
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

void Episodes::claim(Region& region, const Channel& channel) {
  for (const std::uint32_t claim : channel.claims) {
    if (claimed_[claim] == region.number) continue;
    claimed_[claim] = region.number;
    region.claims.push_back(claim);
  }
}

void Episodes::add_input(Region& region, const Channel& channel, Bytes bytes, Duration extra, SimTime now) {
  const auto known = std::find(region.channels.begin(), region.channels.end(), &channel);
  const auto local = static_cast<std::uint32_t>(known - region.channels.begin());
  if (known == region.channels.end()) {
    region.channels.push_back(&channel);
    region.words.push_back(region.names.read(channel, graph_, classes_));
  }
  region.inputs.push_back({region.since_begin(now), local, bytes, extra});
  region.least_extra = std::min(region.least_extra, extra);
}

// What happened in each before they met did not depend on the others.
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
  for (const std::uint32_t number : numbers) {
    const Region& region = *regions_.at(number);
    joined->begin = std::min(joined->begin, region.begin);
    for (std::size_t i = 0; i < region.inputs.size(); ++i) {
      const Input& input = region.inputs[i];
      parts.push_back({region.at(input.time), region.channels[input.channel], input.bytes, input.extra,
                       region.messages[i]});
    }
    for (const std::uint32_t claim : region.claims) claimed_[claim] = joined->number;
    joined->claims.insert(joined->claims.end(), region.claims.begin(), region.claims.end());
  }
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.message.arrival < b.message.arrival; });
  for (const Part& part : parts) {
    add_input(*joined, *part.channel, part.bytes, part.extra, part.time);
    joined->messages.push_back(part.message);
  }
  joined->recording = true;
  for (const std::uint32_t number : numbers) {
    joined->recording = joined->recording && regions_.at(number)->recording;
    regions_.erase(number);
  }
  Region& region = *regions_.emplace(joined->number, std::move(joined)).first->second;
  if (!region.recording || !follow(region, now_)) simulate(region, now_);
  return region;
}

void Episodes::attach(Region& region) {
  if (idle_.empty()) {
    region.workplace = std::make_unique<Workplace>(graph_, spec_);
    for (const auto& [port, rate] : rates_) region.engine().set_rate(port, rate, SimTime{});
  } else {
    region.workplace = std::move(idle_.back());
    idle_.pop_back();
  }
  region.shift = region.begin - region.engine().now();
  region.outputs.clear();
  for (Region::Message& message : region.messages) message.parts = 0;
  for (std::uint32_t input = 0; input < region.inputs.size(); ++input) {
    region.engine().run_until(region.at(region.inputs[input].time) - region.shift);
    collect(region);
    send(region, input);
  }
}

void Episodes::send(Region& region, std::uint32_t number) {
  const Input& input = region.inputs[number];
  const Channel& channel = *region.channels[input.channel];
  auto& pairs = region.workplace->pairs[channel.number];
  if (pairs.empty()) {
    for (const Channel::Ends& pair : channel.pairs) pairs.push_back(region.engine().connect(pair.connection));
  }
  const auto count = static_cast<std::int64_t>(pairs.size());
  const std::int64_t bytes = input.bytes.value(), parts = std::clamp<std::int64_t>(bytes, 1, count);
  region.messages[number].parts = static_cast<std::uint32_t>(parts);
  const SimTime time = region.at(input.time) - region.shift;
  for (std::int64_t k = 0; k < parts; ++k) {
    const std::int64_t part = bytes * (k + 1) / parts - bytes * k / parts;
    region.engine().send(pairs[static_cast<std::size_t>(k)], Bytes(part), time, number);
  }
  region.quiet = kNever;
}

void Episodes::hand_out(Region& region, std::uint32_t input, SimTime time) {
  Region::Message& message = region.messages[input];
  if (message.told) return;
  message.told = true;
  done_.push_back({time, message.order, message.tag});
}

void Episodes::collect(Region& region) {
  for (const Completion& part : region.engine().delivered()) {
    const auto input = static_cast<std::uint32_t>(part.tag);
    if (--region.messages[input].parts > 0) continue;
    const SimTime time = part.time + region.shift + region.inputs[input].extra;
    region.outputs.push_back({region.since_begin(time), input});
    hand_out(region, input, time);
  }
  region.engine().delivered().clear();
  region.engine().acknowledged().clear();
}

SimTime Episodes::next(const Region& region) const {
  if (region.mode == Region::Mode::simulated) {
    if (!region.workplace) return region.begin;
    const SimTime next = region.engine().next_event();
    return next == kNever ? kNever : next + region.shift;
  }
  const Record& record = *region.followed;
  // Behind the last completion acknowledgements and credits are still under way.
  if (region.next_output == record.outputs.size() && region.inputs.size() == record.inputs.size())
    return std::max(region.at(record.end), now_);
  SimTime next = kNever;
  if (region.next_output < record.outputs.size()) next = region.at(record.outputs[region.next_output].time);
  // A message that should have come by then and has not leaves the record.
  if (region.inputs.size() < record.inputs.size())
    next = std::min(next, region.at(record.inputs[region.inputs.size()].time + 1));
  return next;
}

SimTime Episodes::next_event() const {
  SimTime first = kNever;
  for (const auto& [number, region] : regions_) first = std::min(first, next(*region));
  return first;
}

// A region may be simulated up to the first moment at which another one could complete something, since only
// that lets the caller send.
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
    if (furthest_behind == nullptr || first > limit) return;
    Region& region = *furthest_behind;
    if (!region.workplace) attach(region);
    const std::size_t before = done_.size();
    region.engine().run_to_delivery(std::min(limit, second) - region.shift);
    collect(region);
    for (std::size_t i = before; i < done_.size(); ++i) limit = std::min(limit, done_[i].time);
  }
}

void Episodes::advance(SimTime now) {
  now_ = std::max(now_, now);
  for (auto at = regions_.begin(); at != regions_.end();) {
    Region& region = *(at++)->second;  // it may go
    advance(region, now);
    close(region, now);
  }
}

void Episodes::advance(Region& region, SimTime now) {
  if (region.mode == Region::Mode::simulated) {
    if (!region.workplace) attach(region);
    if (region.engine().next_event() + region.shift > now) return;
    region.engine().run_until(now - region.shift);
    collect(region);
    return;
  }
  const Record& record = *region.followed;
  const bool missed = region.inputs.size() < record.inputs.size() &&
                      record.inputs[region.inputs.size()].time < region.since_begin(now);
  if (missed && !follow(region, now)) {
    simulate(region, now);
    return;
  }
  for (; region.next_output < region.followed->outputs.size(); ++region.next_output) {
    const Record::Output& output = region.followed->outputs[region.next_output];
    if (output.time > region.since_begin(now)) break;
    hand_out(region, output.input, region.at(output.time));
  }
}

// An episode ends at rest; what starts later begins another one.
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
  if (region.quiet == kNever) {
    if (!engine.at_rest(kNever)) return false;  // a deadlock stays
    region.quiet = engine.quiet_since() + region.shift;
  }
  if (region.quiet > now) return false;
  if (!engine.rest(now - region.shift)) {  // what has not recovered stays where it is
    if (!apart_) region.inputs.clear(), region.messages.clear(), region.outputs.clear();
    return false;
  }
  Tally usage = engine.take();
  add(usage);
  simulated_ += usage.counters.events;
  if (region.recording) keep(region, std::move(usage));
  idle_.push_back(std::move(region.workplace));
  release(region);
  return true;
}

void Episodes::release(Region& region) {
  for (const std::uint32_t claim : region.claims) claimed_[claim] = kNone;
  regions_.erase(region.number);
}
}  // namespace topsim::network::packet

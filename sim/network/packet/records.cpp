// Records of episodes: made, followed, abandoned; and the totals of all episodes.
#include <algorithm>

#include "sim/network/packet/episodes.hpp"

namespace topsim::network::packet {
namespace {
constexpr std::size_t kMostRecordedInputs = 4'000'000;  // about 200 MB of records

void merge(Tally::Row& sum, const Tally::Row& more) {
  sum.pauses += more.pauses, sum.drops += more.drops;
  sum.wire_bytes += more.wire_bytes, sum.payload_bytes += more.payload_bytes;
  sum.busy += more.busy, sum.paused += more.paused;
  sum.most_waiting = std::max(sum.most_waiting, more.most_waiting);
}
}  // namespace

void Episodes::begin(Region& region) {
  region.recording = skip_ && recorded_inputs_ < kMostRecordedInputs;
  if (!region.recording || !follow(region, region.begin)) simulate(region);
}

// Finds a record that agrees with the messages so far and expects none before now that has not come. Equal
// messages give equal completions.
bool Episodes::follow(Region& region, SimTime now) {
  const std::int64_t time = region.since_begin(now);
  const auto [first, last] = by_first_.equal_range(region.first());
  for (auto at = first; at != last; ++at) {
    const Record& record = *at->second;
    const std::size_t known = region.inputs.size();
    if (record.inputs.size() < known || !agree(region, record, 0) || !region.draws_like(record)) continue;
    if (record.inputs.size() > known && record.inputs[known].time < time) continue;
    region.mode = Region::Mode::replayed;
    region.followed = &record;
    region.next_output = 0;
    while (region.next_output < record.outputs.size() &&
           record.outputs[region.next_output].input < region.messages.size() &&
           region.messages[record.outputs[region.next_output].input].told)
      ++region.next_output;
    return true;
  }
  return false;
}

const Record& Episodes::keep(Region& region, Tally usage) {
  const auto [first, last] = by_first_.equal_range(region.first());
  for (auto at = first; at != last; ++at) {
    const Record& known = *at->second;
    if (known.inputs.size() == region.inputs.size() && agree(region, known, 0) && region.draws_like(known))
      return known;
  }
  Record record;
  record.words = region.words;
  record.inputs = region.inputs;
  record.outputs = region.outputs;
  std::sort(record.outputs.begin(), record.outputs.end(),
            [](const Record::Output& a, const Record::Output& b) {
              return std::pair(a.time, a.input) < std::pair(b.time, b.input);
            });
  record.end = region.since_begin(region.rests);
  record.draws = usage.counters.draws > 0;
  if (record.draws) record.ports = region.names.ports();
  for (Tally::Row& row : usage.ports) row.port = region.names.local(row.port);
  std::sort(usage.ports.begin(), usage.ports.end(),
            [](const Tally::Row& a, const Tally::Row& b) { return a.port < b.port; });
  record.buffers.resize(region.names.devices().size());
  for (const auto& [device, use] : usage.buffers) record.buffers[region.names.local_device(device)] = use;
  usage.buffers.clear();
  record.usage = std::move(usage);
  recorded_inputs_ += record.inputs.size();
  records_.push_back(std::move(record));
  by_first_.emplace(region.first(), &records_.back());
  return records_.back();
}

Tally Episodes::in_place(const Region& region, const Tally& local) const {
  Tally tally = local;
  for (Tally::Row& row : tally.ports) row.port = region.names.ports()[row.port];
  return tally;
}

void Episodes::add(const Tally& tally) {
  for (const Tally::Row& row : tally.ports) merge(totals_[row.port], row);
  counters_ += tally.counters;
}

void Episodes::settle() {
  for (auto at = regions_.begin(); at != regions_.end();) {
    const auto [number, region] = std::pair(at->first, at->second.get());
    if (region->mode != Region::Mode::replayed || !close(*region, now_)) {
      if (region->mode == Region::Mode::replayed) simulate(*region);
      advance(*region, now_);
    }
    at = regions_.upper_bound(number);
  }
}

Region* Episodes::owner(PortIndex port) const {
  const std::uint32_t number = apart_ ? claimed_[port] : regions_.empty() ? kNone : regions_.begin()->first;
  return number == kNone ? nullptr : regions_.at(number).get();
}

Tally::Row Episodes::sum(PortIndex port) const {
  Tally::Row sum = totals_[port];
  const Region* region = owner(port);
  if (region == nullptr) return sum;
  if (region->leader != nullptr) {
    const Region& leader = *region->leader;
    if (leader.workplace) merge(sum, leader.engine().tally(leader.names.ports()[region->names.local(port)]));
    return sum;
  }
  if (region->workplace) merge(sum, region->engine().tally(port));
  if (region->mode == Region::Mode::simulated || region->followed->end == 0) return sum;
  const std::vector<Tally::Row>& rows = region->followed->usage.ports;
  const auto row =
      std::lower_bound(rows.begin(), rows.end(), region->names.local(port),
                       [](const Tally::Row& at, std::uint32_t local) { return at.port < local; });
  if (row == rows.end() || row->port != region->names.local(port)) return sum;
  const double share = std::min(
      1.0, static_cast<double>(region->since_begin(now_)) / static_cast<double>(region->followed->end));
  const auto shared = [&](Duration whole) {
    return Duration(static_cast<std::int64_t>(share * static_cast<double>(whole.count())));
  };
  Tally::Row part = *row;
  part.payload_bytes = static_cast<std::uint64_t>(share * static_cast<double>(row->payload_bytes));
  part.busy = shared(row->busy);
  part.paused = shared(row->paused);
  merge(sum, part);
  return sum;
}

LinkRecord Episodes::record(PortIndex port) const {
  const Tally::Row sum = this->sum(port);
  return link_record(sum.payload_bytes, sum.busy);
}

Bytes Episodes::most_waiting(PortIndex port) const {
  return Bytes(sum(port).most_waiting);
}

Duration Episodes::paused(PortIndex port) const {
  return sum(port).paused;
}

Counters Episodes::counters() const {
  Counters sum = counters_;
  for (const auto& [number, region] : regions_) {
    const Region& simulated = region->leader != nullptr ? *region->leader : *region;
    if (simulated.workplace) sum += simulated.engine().counters();
  }
  return sum;
}

std::uint64_t Episodes::work() const {
  std::uint64_t sum = spent_ + counters_.events;
  for (const auto& [number, region] : regions_)
    if (region->workplace) sum += region->engine().counters().events;
  return sum;
}

std::vector<Deadlock> Episodes::deadlocks() const {
  std::vector<Deadlock> all;
  for (const auto& [number, region] : regions_) {
    const Region& simulated = region->leader != nullptr ? *region->leader : *region;
    if (!simulated.workplace) continue;
    for (Deadlock deadlock : simulated.engine().deadlocks()) {
      deadlock.found += simulated.shift;
      if (region->leader != nullptr)
        for (PortIndex& port : deadlock.cycle) port = region->names.ports()[simulated.names.local(port)];
      all.push_back(std::move(deadlock));
    }
  }
  return all;
}

void Episodes::set_rate(PortIndex port, BytesPerSecond rate, SimTime now) {
  now_ = std::max(now_, now);
  part_before(now_);
  settle();
  part_all();
  const auto last = std::find_if(changes_.rbegin(), changes_.rend(),
                                 [&](const Change& change) { return change.port == port; });
  const BytesPerSecond before = last == changes_.rend() ? graph_.ports[port].rate : last->after;
  changes_.push_back({now_, arrivals_++, port, before, rate});
  classes_.set_apart(port);
  changed();
}
}  // namespace topsim::network::packet

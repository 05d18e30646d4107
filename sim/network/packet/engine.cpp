#include "sim/network/packet/engine.hpp"

#include "sim/network/packet/hop.hpp"

namespace topsim::network::packet {

Engine::Engine(const Graph& graph, const PacketSpec& spec) : core_(std::make_unique<Core>(graph, spec)) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;

PairIndex Engine::connect(const Connection& connection) {
  return core_->connect(connection);
}

void Engine::send(PairIndex pair, Bytes bytes, SimTime start, std::uint64_t tag) {
  core_->send(pair, bytes, start, tag);
}

SimTime Engine::next_event() const {
  return core_->events.empty() ? kNever : SimTime(Duration(core_->events.next_time()));
}

void Engine::move(PairIndex pair, const Connection& connection, SimTime now) {
  core_->move(pair, connection, now.time_since_epoch().count());
}

void Engine::run_until(SimTime time) {
  core_->run_until(time.time_since_epoch().count());
}

void Engine::run_to_delivery(SimTime limit) {
  core_->run_until(limit.time_since_epoch().count(), true);
}

void Engine::stop_when(std::function<bool()> stopped) {
  core_->cancelled = std::move(stopped);
}

Duration Engine::path_latency(PairIndex pair) const {
  return Duration(core_->pairs()[pair].path_latency);
}

std::vector<Completion>& Engine::delivered() {
  return core_->delivered;
}

std::vector<Completion>& Engine::acknowledged() {
  return core_->acknowledged;
}

LinkRecord link_record(std::uint64_t payload_bytes, Duration busy) {
  LinkRecord record;
  record.bytes = static_cast<double>(payload_bytes);
  record.busy = busy;
  if (busy > Duration{}) record.peak_rate = record.bytes / seconds(record.busy);
  return record;
}

LinkRecord Engine::record(PortIndex port) const {
  const Port& row = core_->ports[port];
  return link_record(row.payload_bytes, Duration(row.busy));
}

Bytes Engine::most_waiting(PortIndex port) const {
  return Bytes(core_->ports[port].most_waiting);
}

Duration Engine::paused(PortIndex port) const {
  return Duration(core_->records[port].paused_time);
}

std::uint64_t Engine::drops(PortIndex port) const {
  return core_->records[port].drops;
}

Bytes Engine::received(PairIndex pair) const {
  return Bytes(std::int64_t{core_->pairs()[pair].expected} * core_->settings.mtu);
}

const Counters& Engine::counters() const {
  return core_->counters;
}

const std::vector<Deadlock>& Engine::deadlocks() const {
  return core_->deadlocks;
}

void Engine::set_rate(PortIndex port, BytesPerSecond rate, SimTime now) {
  core_->set_rate(port, rate, now.time_since_epoch().count());
}

SimTime Engine::now() const {
  return SimTime(Duration(core_->now));
}

SimTime Engine::rests_from() const {
  const Picoseconds since = core_->rests_from();
  return since == kForever ? kNever : SimTime(Duration(since));
}

void Engine::rest() {
  core_->rest();
}

Tally::Row Engine::tally(PortIndex p) const {
  const Port& port = core_->ports[p];
  const PortRecord& record = core_->records[p];
  return {.port = p,
          .pauses = record.pauses,
          .drops = record.drops,
          .most_waiting = port.most_waiting,
          .wire_bytes = port.wire_bytes,
          .payload_bytes = port.payload_bytes,
          .busy = Duration(port.busy),
          .paused = Duration(record.paused_time)};
}

Tally Engine::take() {
  Tally tally;
  for (PortIndex p = 0; p < core_->ports.size(); ++p) {
    Port& port = core_->ports[p];
    PortRecord& record = core_->records[p];
    if (port.wire_bytes == 0 && record.paused_time == 0 && record.drops == 0) continue;
    tally.ports.push_back(this->tally(p));
    port.wire_bytes = port.payload_bytes = 0;
    port.busy = 0;
    port.most_waiting = 0;
    record = {};
  }
  for (DeviceIndex d = 0; d < core_->graph.devices; ++d)
    if (core_->device(d).fullest > 0 || core_->device(d).most_used > 0)
      tally.buffers.emplace_back(d, core_->forget_use(d));
  tally.counters = core_->counters;
  core_->counters = {};
  return tally;
}

Bytes Engine::shared_buffer(DeviceIndex device) const {
  return Bytes(static_cast<std::int64_t>(core_->device(device).shared_total));
}

Bytes Engine::largest_packet() const {
  return Bytes(std::int64_t{core_->settings.mtu} + core_->settings.header);
}

BufferUse Engine::buffer_use(DeviceIndex device) const {
  return {core_->device(device).most_used, core_->device(device).fullest};
}

bool Engine::ways(PairIndex pair, std::vector<PortIndex>& there, std::vector<PortIndex>& back) const {
  return core_->ways(pair, there, back);
}

std::string Engine::leak() const {
  return core_->leak();
}

std::size_t Engine::bytes() const {
  return core_->bytes();
}
}  // namespace topsim::network::packet

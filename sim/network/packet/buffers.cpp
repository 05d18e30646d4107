// Who may send: shared switch buffers with PFC, and credits. Admission of [HPCC] switch-mmu, credits of
// IBTA 7.9.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/error.hpp"
#include "sim/config/quantity.hpp"
#include "sim/network/packet/hop.hpp"
#include "sim/network/packet/pfc_queue.hpp"
#include "topology/credits.hpp"

namespace topsim::network::packet {
namespace {
static_assert(kBlock == topology::kCreditBlock);

// Adaptive switches grade the queues of their ports and take any port of the best grade: eight grades
// (quality bands 0 to 7 of dynamic load balancing, docs of Junos egress-quantization; NVIDIA's graded ports,
// US 2025/0039109), here eighths of what a lane of default size holds.
constexpr double kGrades = 8;

// Bytes that one port may hold of a shared buffer, whatever its size: Ingress counts in 32 bits.
constexpr double kMostOfAPort = 2e9;

[[noreturn]] void refuse_lanes(std::uint32_t blocks, std::uint32_t needed) {
  Problem problem;
  problem.path = "network.packet.virtual_lanes.buffer";
  problem.message =
      fmt::format("a lane of {} blocks of {} B holds no whole packet: nothing could move", blocks, kBlock);
  problem.label = fmt::format("a full packet here takes {} B", needed * kBlock);
  problem.help = fmt::format("give the lanes {} B or more, or leave the key out", needed * kBlock);
  throw ConfigError({problem});
}

[[noreturn]] void refuse_buffer(const char* key, const std::string& message, const std::string& label,
                                const std::string& help) {
  Problem problem;
  problem.path = std::string("network.packet.") + key;
  problem.message = message;
  problem.label = label;
  problem.help = help;
  throw ConfigError({problem});
}
}  // namespace

void Core::set_up_buffers() {
  const auto reserve = static_cast<std::uint32_t>(spec.buffer.reserve.value());
  const auto lanes = static_cast<std::uint32_t>(spec.lanes.count);
  const auto frame = settings.mtu + settings.header;
  double slowest = 0;
  for (const PortSpec& port : graph.ports) {
    if (port.framed && (slowest == 0 || port.rate.value() < slowest)) slowest = port.rate.value();
  }
  std::vector<std::int64_t> kept(graph.devices, 0);
  std::vector<std::uint32_t> pausing(graph.devices, 0);  // ports that come in under PFC
  for (PortIndex p = 0; p < ports.size(); ++p) {
    const PortSpec& port = graph.ports[p];
    const double packet = static_cast<double>(frame);
    ports[p].alpha = static_cast<float>(alpha_of(port.rate.value(), slowest, spec.pfc));
    const double headroom =
        headroom_of(port.rate, port.latency, graph.ports[port.reverse].latency, packet, spec.buffer);
    ports[p].headroom = static_cast<std::uint32_t>(headroom);
    const double deep = usual_lane(
        port.rate.value(), seconds(port.latency) + seconds(graph.ports[port.reverse].latency), packet);
    grade_[p] = std::max<Picoseconds>(
        1, static_cast<Picoseconds>(1e12 * deep / kGrades / std::max(port.rate.value(), 1.0)));
    if (port.flow_control == FlowControl::pfc) {
      kept[port.to] += lanes * (std::int64_t{ports[p].headroom} + reserve);
      ++pausing[port.to];
    }
    if (port.flow_control != FlowControl::credit) continue;
    // A round trip of data and credit, plus room for packets that wait briefly without stopping the link.
    double buffer = deep;
    if (port.framed) {
      if (spec.lanes.buffer) buffer = static_cast<double>(spec.lanes.buffer->value()) * port.cables;
      buffer = std::min(buffer, 1.0 * topology::kMostCredits * kBlock * port.cables);
    }
    credit_total_[p] = static_cast<std::uint32_t>(buffer / kBlock);
    if (credit_total_[p] < most_blocks_) refuse_lanes(credit_total_[p], most_blocks_);
    time_blocks(p);
    for (std::uint32_t lane = 1; lane < settings.classes; ++lane) {
      credits_[p * settings.classes + lane].limit = credit_total_[p];
      credits_[p * settings.classes + lane].way_back = graph.ports[port.reverse].latency.count();
    }
  }
  for (DeviceIndex d = 0; d < graph.devices; ++d) {
    devices_[d].shared_total = static_cast<std::uint64_t>(
        std::max<std::int64_t>(graph.buffer_of(d, spec.buffer).value() - kept[d], 0));
  }
  check_parts(pausing);
  for (PortIndex p = 0; p < ports.size(); ++p) check_room(p);
}

// What the ports keep for themselves must be there, and a static threshold must be within what they share, on
// every switch. `count`: ports that come in under PFC. Headroom that follows from long cables is set aside
// whatever the switch has; a finding says so (README.md).
void Core::check_parts(const std::vector<std::uint32_t>& count) const {
  const std::int64_t headroom = spec.buffer.headroom ? spec.buffer.headroom->value() : 0;
  const std::int64_t each = spec.buffer.reserve.value() + headroom;
  const auto fits = [&](DeviceIndex d) {
    return graph.buffer_of(d, spec.buffer).value() / (std::int64_t{count[d]} * spec.lanes.count);
  };
  std::optional<DeviceIndex> tight, least;
  for (DeviceIndex d = 0; d < graph.devices; ++d) {
    if (count[d] > 0 && (!tight || fits(d) < fits(*tight))) tight = d;
    // Ends of a fabric have one or two ports, and nothing meets there.
    if (count[d] > 2 && (!least || devices_[d].shared_total < devices_[*least].shared_total)) least = d;
  }
  if (tight && each > fits(*tight)) {
    const Bytes total = graph.buffer_of(*tight, spec.buffer);
    const std::string priorities =
        spec.lanes.count == 1 ? "" : fmt::format(" of {} priorities", spec.lanes.count);
    refuse_buffer(
        spec.buffer.reserve.value() > headroom ? "switch_buffer.reserve" : "switch_buffer.headroom",
        fmt::format("{} ports{} cannot keep {} each for themselves: their switch has {}", count[*tight],
                    priorities, config::to_text(Bytes(each)), config::to_text(total)),
        fmt::format("reserve {}, headroom {}", config::to_text(spec.buffer.reserve),
                    spec.buffer.headroom ? config::to_text(Bytes(headroom)) : "by the cable"),
        fmt::format("give both together {} or less, or a larger switch_buffer.total",
                    config::to_text(Bytes(fits(*tight)))));
  }
  if (!spec.pfc.xoff || !least) return;
  const Bytes shared(static_cast<std::int64_t>(devices_[*least].shared_total));
  if (*spec.pfc.xoff <= shared) return;
  refuse_buffer("pfc.xoff",
                fmt::format("the threshold of {} is never reached: the {} ports of a switch share {}",
                            config::to_text(*spec.pfc.xoff), count[*least], config::to_text(shared)),
                fmt::format("reserves and headroom take the rest of {}",
                            config::to_text(graph.buffer_of(*least, spec.buffer))),
                fmt::format("give {} or less, or a larger switch_buffer", config::to_text(shared)));
}

// A packet that fits nowhere in an empty buffer would be sent again for ever.
void Core::check_room(PortIndex p) const {
  const Port& port = ports[p];
  if (port.flow_control == FlowControl::credit) return;
  std::uint32_t largest = settings.mtu + settings.header;
  if (!settings.control_first) largest = std::max({largest, settings.ack, settings.cnp});
  const Device& device = devices_[port.to];
  std::uint64_t room = device.shared_total;
  if (port.flow_control == FlowControl::pfc) {
    const std::uint64_t reserve = static_cast<std::uint64_t>(spec.buffer.reserve.value());
    room = std::max<std::uint64_t>(reserve + threshold(p, 0), port.headroom);
  }
  if (room >= largest) return;
  refuse_buffer("switch_buffer",
                fmt::format("a port that may hold {} of the buffer holds no whole packet: nothing could move",
                            config::to_text(Bytes(static_cast<std::int64_t>(room)))),
                fmt::format("a full packet here takes {} B", largest),
                "give a larger switch_buffer, or leave the key out");
}

// Of all packet sizes, those that just begin another block take the most blocks per time.
void Core::time_blocks(PortIndex p) {
  const Port& port = ports[p];
  const std::uint32_t smallest = std::min({settings.header - port.discount, settings.ack, settings.cnp});
  ports[p].block_time = static_cast<std::uint32_t>(
      std::min<std::uint64_t>((std::min(smallest, kBlock / 2) * port.cost) >> kPointBits, ~std::uint32_t{0}));
}

// What an ingress that has `shared` bytes of the pool may have of it: its threshold, if that much is free.
std::uint32_t Core::threshold(PortIndex in, std::uint32_t shared) const {
  const Device& device = devices_[ports[in].to];
  const std::uint64_t left =
      device.shared_total > device.shared_used ? device.shared_total - device.shared_used : 0;
  const double limit = spec.pfc.xoff ? static_cast<double>(spec.pfc.xoff->value())
                                     : double{ports[in].alpha * static_cast<float>(left)};
  return static_cast<std::uint32_t>(std::min({limit, static_cast<double>(shared + left), kMostOfAPort}));
}

// Adds the packet's bytes to the buffer of the device behind `in`. False: no room, the packet is dropped.
bool Core::admit(std::uint32_t packet, PortIndex in) {
  const Packet& row = packets_[packet];
  const FlowControl control = ports[in].flow_control;
  Device& device = devices_[ports[in].to];
  const std::uint32_t bytes = row.bytes;
  if (control == FlowControl::none && row.lane != 0) {
    if (device.shared_used + bytes > device.shared_total) {
      settle(ports[in].to);
      if (device.shared_used + bytes > device.shared_total) return false;
    }
    device.shared_used += bytes;
    device.most_used = std::max(device.most_used, device.shared_used);
    return true;
  }
  if (control != FlowControl::pfc || row.lane == 0) return true;
  const auto reserve = static_cast<std::uint32_t>(spec.buffer.reserve.value());
  Ingress& share = ingress_[in * settings.classes + row.lane];
  if (share.used + bytes <= reserve) {
    share.used += bytes;
    return true;
  }
  device.fullest = std::max(device.fullest, share.used + bytes - reserve);
  std::uint32_t limit = threshold(in, share.shared(reserve));
  if (share.used + bytes - reserve > limit) {
    settle(ports[in].to);
    limit = threshold(in, share.shared(reserve));
  }
  if (share.used + bytes > reserve + limit) {
    if (share.headroom + bytes > ports[in].headroom) return false;
    share.headroom += bytes;
    return true;
  }
  device.shared_used += std::min(bytes, share.used + bytes > reserve ? share.used + bytes - reserve : 0);
  device.most_used = std::max(device.most_used, device.shared_used);
  share.used += bytes;
  return true;
}

// Sends XOFF once an ingress exceeds its threshold. Lazy departures make the usage look larger than it is,
// never smaller, so it is brought up to date only where it looks full.
void Core::pause_if_full(PortIndex in, unsigned lane) {
  Ingress& share = ingress_[in * settings.classes + lane];
  const auto reserve = static_cast<std::uint32_t>(spec.buffer.reserve.value());
  const auto full = [&] {
    const std::uint32_t shared = share.shared(reserve);
    return share.headroom > 0 || (shared > 0 && shared >= threshold(in, shared));
  };
  if (share.pausing || !full()) return;
  settle(ports[in].to);
  if (!full()) return;
  share.pausing = true;
  expect_exactly(ports[in].to);
  signal(in, lane, PacketKind::pause);
}

// A packet that came in through `in` leaves the device at `time`, which frees its buffer space.
void Core::release(PortIndex in, unsigned lane, std::uint32_t bytes, Picoseconds time) {
  const Port& port = ports[in];
  if (lane == 0) return;
  if (port.flow_control == FlowControl::none) {
    devices_[port.to].shared_used -= bytes;
    return;
  }
  if (port.flow_control == FlowControl::credit) {
    give_back(in, lane, bytes, time);
    return;
  }
  const auto reserve = static_cast<std::uint32_t>(spec.buffer.reserve.value());
  Ingress& share = ingress_[in * settings.classes + lane];
  const std::uint32_t from_headroom = std::min(share.headroom, bytes);
  const std::uint32_t rest = bytes - from_headroom;
  const std::uint32_t above = share.shared(reserve);
  share.headroom -= from_headroom;
  share.used -= rest;
  devices_[port.to].shared_used -= std::min(rest, above);
  if (!share.pausing || share.headroom > 0) return;
  const std::uint32_t shared = share.shared(reserve);
  const auto offset = static_cast<std::uint32_t>(spec.pfc.resume_offset.value());
  if (shared != 0 && shared + offset > threshold(in, shared)) return;
  share.pausing = false;
  --devices_[port.to].exact;
  signal(in, lane, PacketKind::resume);
}

// Performs all departures of a device that are due, before thresholds are compared.
void Core::settle(DeviceIndex device) {
  if (devices_[device].lazy == 0) return;
  for (std::uint32_t o = out_begin_[device]; o < out_begin_[device + 1]; ++o) {
    if (ports[out_[o]].occupied != 0 && !ports[out_[o]].ahead) update(out_[o]);
  }
}

// From now on every departure here has an event. REQUIRES: settled.
void Core::expect_exactly(DeviceIndex device) {
  if (++devices_[device].exact > 1) return;
  settle(device);  // gives each departure its event
}

// Sends XOFF or XON to the sender of `in`: a frame in the reverse direction, ahead of all others.
void Core::signal(PortIndex in, unsigned lane, PacketKind kind) {
  const std::uint32_t frame = new_packet(kind, 0, static_cast<std::uint32_t>(settings.framing.pause.value()));
  packets_[frame].hop = kNone;
  packets_[frame].pair = lane;
  if (kind == PacketKind::pause) ++counters.pauses;
  enqueue(ports[in].reverse, frame);
}

void Core::hear_pause(PortIndex p, unsigned lane, bool stop) {
  interrupt(p);
  Port& port = ports[p];
  PortRecord& record = records[p];
  const auto bit = static_cast<ClassMask>(1U << lane);
  if (stop) {
    if (port.paused == 0) record.paused_since = now;
    ++record.pauses;
    port.paused |= bit;
    watch_for_deadlock();
    return;
  }
  port.paused &= static_cast<ClassMask>(~bit);
  if (port.paused == 0) record.paused_time += now - record.paused_since;
  update(p);
}

void Core::return_later(PortIndex p, unsigned lane, const Returns::Row& row) {
  Credit& credit = credits_[p * settings.classes + lane];
  const Picoseconds due = row.time;
  // Few rows stay in the cache: credits that are back before the next departure are merged.
  if (credit.returning.rows().size() >= 16) {
    const Picoseconds back = ports[p].ahead ? now : std::min(now, ports[p].free_at);
    while (!credit.returning.empty() && credit.returning.front().time <= back) take_first(credit);
  }
  credit.returning.insert(row);
  if (!credit.starved) return;
  Port& port = ports[p];
  Picoseconds wake = due;
  if (port.ahead) {
    wake = credits_at(credit, blocks_of(packets_[waiting_[p * settings.classes + lane].list.head].bytes));
  } else if (port.flight.head != kNone && devices_[port.from].exact == 0) {
    return;
  }
  wake = std::max(wake, now);
  if (wake < port.wake) {
    port.wake = wake;
    events.push(wake, kPort | p);
  }
}

// The sender begins to wait for blocks.
void Core::starve(PortIndex p, Credit& credit, Picoseconds since) {
  credit.starved = true;
  settle(ports[p].to);
  expect_exactly(ports[p].to);
  if (records[p].paused_since == 0) records[p].paused_since = since;
  watch_for_deadlock();
}

// When the lane has the blocks for a packet that could otherwise leave at `start`; kForever: not known yet.
Picoseconds Core::credit_time(PortIndex p, unsigned lane, std::uint32_t bytes, Picoseconds start) {
  Credit& credit = credits_[p * settings.classes + lane];
  const std::uint32_t blocks = blocks_of(bytes);
  if (!has_credits(credit, blocks, start)) {
    if (!credit.starved) {
      settle(ports[p].to);
      if (!has_credits(credit, blocks, start)) starve(p, credit, start);
    }
    const Picoseconds due = credits_at(credit, blocks);
    if (due > now) return due;
    start = std::max(start, due);
    static_cast<void>(has_credits(credit, blocks, start));
  }
  wait_no_longer(p, lane, start);
  return start;
}

// The lane has its blocks, or no longer needs them.
void Core::wait_no_longer(PortIndex p, unsigned lane, Picoseconds since) {
  Credit& credit = credits_[p * settings.classes + lane];
  if (!credit.starved) return;
  credit.starved = false;
  --devices_[ports[p].to].exact;
  records[p].paused_time += std::max<Picoseconds>(since - records[p].paused_since, 0);
  records[p].paused_since = 0;
}
}  // namespace topsim::network::packet

#include <fmt/core.h>

#include <map>

#include "sim/base/protobuf_writer.hpp"
#include "sim/report/trace.hpp"

namespace topsim::report {
namespace {
// Field numbers of perfetto/trace/trace.proto, trace_packet.proto,
// track_event/{track_descriptor,track_event}.proto.
namespace field {
constexpr std::uint32_t trace_packet = 1;
constexpr std::uint32_t packet_timestamp = 8, packet_sequence = 10, packet_event = 11, packet_track = 60;
constexpr std::uint32_t track_uuid = 1, track_name = 2, track_parent = 5, track_counter = 8;
constexpr std::uint32_t track_child_order = 11, track_order = 12;
constexpr std::uint32_t counter_unit_name = 6;
constexpr std::uint32_t event_type = 9, event_track = 11, event_category = 22, event_name = 23;
constexpr std::uint32_t event_counter = 44, event_flow = 47, event_flow_end = 48;
}  // namespace field
enum EventType : std::uint64_t { slice_begin = 1, slice_end = 2, counter = 4 };
constexpr std::uint64_t kExplicitOrder = 3;  // of ChildTracksOrdering: children by their rank, not by name

struct Flow {
  std::uint64_t id = 0;  // 0: none
  bool ends = false;
};

class PerfettoTrace {
 public:
  std::uint64_t track(const std::string& name, std::uint64_t parent, const char* unit = nullptr) {
    const std::uint64_t uuid = ++tracks_;
    ProtobufWriter descriptor;
    descriptor.integer(field::track_uuid, uuid);
    descriptor.text(field::track_name, name);
    if (parent != 0) descriptor.integer(field::track_parent, parent);
    if (unit != nullptr) {
      ProtobufWriter kind;
      kind.text(field::counter_unit_name, unit);
      descriptor.message(field::track_counter, kind);
    }
    if (unit == nullptr) descriptor.integer(field::track_child_order, kExplicitOrder);
    descriptor.integer(field::track_order, uuid);
    ProtobufWriter packet;
    packet.message(field::packet_track, descriptor);
    add(packet);
    return uuid;
  }

  void begin(std::uint64_t track, SimTime time, std::string_view name, std::string_view category,
             Flow flow = {}) {
    ProtobufWriter event = start_event(slice_begin, track);
    event.text(field::event_category, category);
    event.text(field::event_name, name);
    if (flow.id != 0) event.fixed64(flow.ends ? field::event_flow_end : field::event_flow, flow.id);
    add_event(event, time);
  }
  void end(std::uint64_t track, SimTime time) { add_event(start_event(slice_end, track), time); }
  void count(std::uint64_t track, SimTime time, double value) {
    ProtobufWriter event = start_event(counter, track);
    event.real(field::event_counter, value);
    add_event(event, time);
  }
  [[nodiscard]] const std::string& bytes() const { return trace_.bytes(); }

 private:
  static ProtobufWriter start_event(EventType type, std::uint64_t track) {
    ProtobufWriter event;
    event.integer(field::event_type, type);
    event.integer(field::event_track, track);
    return event;
  }
  void add_event(const ProtobufWriter& event, SimTime time) {
    ProtobufWriter packet;
    packet.integer(field::packet_timestamp,
                   static_cast<std::uint64_t>(time.time_since_epoch().count()) / 1000);
    packet.message(field::packet_event, event);
    add(packet);
  }
  void add(ProtobufWriter& packet) {
    packet.integer(field::packet_sequence, 1);
    trace_.message(field::trace_packet, packet);
  }

  ProtobufWriter trace_;
  std::uint64_t tracks_ = 0;
};

struct LaneTracks {
  std::vector<std::uint64_t> streams;
  std::uint64_t idle = 0;
};

std::vector<LaneTracks> add_lanes(PerfettoTrace& trace, const Timeline& timeline, std::uint64_t root) {
  std::map<std::uint32_t, std::uint64_t> nodes;
  std::vector<LaneTracks> tracks;
  for (const Lane& lane : timeline.lanes) {
    std::uint64_t& node = nodes[lane.node];
    if (node == 0) node = trace.track(fmt::format("node {}", lane.node), root);
    const std::string alike = lane.count > 1 ? fmt::format(", one of {} alike", lane.count) : "";
    const std::uint64_t gpu =
        trace.track(fmt::format("rank {} {} ({}{})", lane.rank, lane.device, lane.program, alike), node);
    LaneTracks own;
    for (const std::string& stream : lane.streams) own.streams.push_back(trace.track(stream, gpu));
    own.idle = trace.track("idle because", gpu);
    tracks.push_back(std::move(own));
  }
  return tracks;
}

void add_counters(PerfettoTrace& trace, const Timeline& timeline, std::uint64_t root) {
  if (timeline.samples.empty()) return;
  const std::uint64_t all = trace.track("links", root);
  std::map<std::string, std::uint64_t> kinds;
  std::vector<std::uint64_t> tracks;
  for (const LinkCounter& link : timeline.links) {
    std::uint64_t& kind = kinds[link.type];
    if (kind == 0) kind = trace.track(link.type, all);
    const std::string alike = link.count > 1 ? fmt::format(" (one of {} alike)", link.count) : "";
    tracks.push_back(trace.track(link.id + alike, kind, "%"));
  }
  for (const CounterSample& sample : timeline.samples) {
    trace.count(tracks[sample.link], sample.time, sample.utilization * 100);
  }
}

// A receive is often posted before its send begins, and Perfetto drops an arrow that ends before it begins.
// So the arrow ends at a separate part of the receive, one tick of Perfetto's clock after the send.
constexpr Duration kTick = Duration(1000);
}  // namespace

std::string to_perfetto(const Timeline& timeline) {
  PerfettoTrace trace;
  const std::uint64_t root = trace.track("cluster", 0);
  const std::vector<LaneTracks> lanes = add_lanes(trace, timeline, root);
  for (const Slice& each : timeline.slices) {
    const std::uint64_t track = lanes[each.lane].streams[each.stream];
    const bool arrives = each.receives && each.flow != 0 && each.end > each.ready + kTick;
    trace.begin(track, each.begin, timeline.names[each.name], each.phase,
                arrives ? Flow{} : Flow{each.flow, each.receives});
    if (each.waits) {
      trace.begin(track, each.begin, "waiting for the others", "wait");
      trace.end(track, each.ready);
    }
    if (arrives) {
      trace.begin(track, each.ready + kTick, "arriving", "wire", {each.flow, true});
      trace.end(track, each.end);
    }
    trace.end(track, each.end);
  }
  for (const IdleSlice& each : timeline.idle) {
    trace.begin(lanes[each.lane].idle, each.begin, name_of(each.reason), "idle");
    trace.end(lanes[each.lane].idle, each.end);
  }
  add_counters(trace, timeline, root);
  return trace.bytes();
}
}  // namespace topsim::report

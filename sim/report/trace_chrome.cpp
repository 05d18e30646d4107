#include <fmt/core.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/report/trace.hpp"

namespace topsim::report {
namespace {
std::string quoted(std::string_view text) {
  return nlohmann::json(text).dump();
}

// Converts picoseconds to microseconds without a double.
std::string stamp(std::int64_t picoseconds) {
  return fmt::format("{}.{:06}", picoseconds / 1000000, picoseconds % 1000000);
}
std::string stamp(SimTime time) {
  return stamp(time.time_since_epoch().count());
}

// Nodes are Chrome's processes, streams of rank classes their threads; links are in a separate process.
class ChromeTrace {
 public:
  static constexpr std::uint32_t kLinks = 0x7FFFFFFF;

  static std::uint32_t thread(std::uint32_t lane, std::size_t stream) {
    return lane << 16U | static_cast<std::uint32_t>(stream);  // 65,535: the idle reasons
  }
  static constexpr std::size_t kIdle = 65535;

  void name_process(std::uint32_t process, std::string_view name) {
    event(R"("ph":"M","name":"process_name","pid":{},"args":{{"name":{}}})", process, quoted(name));
  }
  void name_thread(std::uint32_t process, std::uint32_t thread, std::string_view name) {
    event(R"("ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}})", process, thread,
          quoted(name));
    event(R"("ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}})", process,
          thread, thread);
  }
  void slice(std::uint32_t process, std::uint32_t thread, std::string_view name, std::string_view category,
             SimTime begin, SimTime end) {
    event(R"("ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{})", quoted(name), category,
          process, thread, stamp(begin), stamp((end - begin).count()));
  }
  void flow(bool ends, std::uint64_t id, std::uint32_t process, std::uint32_t thread, SimTime time) {
    event(R"("ph":"{}","name":"message","cat":"transfer","id":{},"pid":{},"tid":{},"ts":{}{})",
          ends ? 'f' : 's', id, process, thread, stamp(time), ends ? R"(,"bp":"e")" : "");
  }
  void count(std::string_view name, SimTime time, double percent) {
    event(R"("ph":"C","name":{},"pid":{},"ts":{},"args":{{"%":{}}})", quoted(name), kLinks, stamp(time),
          percent);
  }
  [[nodiscard]] std::string finish() && {
    return "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" + text_ + "\n]}\n";
  }

 private:
  template <class... Values>
  void event(fmt::format_string<Values...> format, Values&&... values) {
    text_ += text_.empty() ? "{" : ",\n{";
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
    text_ += '}';
  }
  std::string text_;
};

void name_tracks(ChromeTrace& trace, const Timeline& timeline) {
  std::set<std::uint32_t> nodes;
  for (std::uint32_t i = 0; i < timeline.lanes.size(); ++i) {
    const Lane& lane = timeline.lanes[i];
    if (nodes.insert(lane.node).second) trace.name_process(lane.node, fmt::format("node {}", lane.node));
    const std::string who = fmt::format("rank {} ({}, {})", lane.rank, lane.program,
                                        lane.count > 1 ? fmt::format("one of {}", lane.count) : lane.device);
    for (std::size_t s = 0; s < lane.streams.size(); ++s) {
      trace.name_thread(lane.node, ChromeTrace::thread(i, s), who + " " + lane.streams[s]);
    }
    trace.name_thread(lane.node, ChromeTrace::thread(i, ChromeTrace::kIdle), who + " idle because");
  }
  if (!timeline.samples.empty()) trace.name_process(ChromeTrace::kLinks, "links");
}
}  // namespace

std::string to_chrome_trace(const Timeline& timeline) {
  ChromeTrace trace;
  name_tracks(trace, timeline);
  for (const Slice& each : timeline.slices) {
    const std::uint32_t node = timeline.lanes[each.lane].node;
    const std::uint32_t thread = ChromeTrace::thread(each.lane, each.stream);
    trace.slice(node, thread, timeline.names[each.name], each.phase, each.begin, each.end);
    if (each.waits) trace.slice(node, thread, "waiting for the others", "wait", each.begin, each.ready);
    if (each.flow != 0)
      trace.flow(each.receives, each.flow, node, thread, each.receives ? each.end : each.begin);
  }
  for (const IdleSlice& each : timeline.idle) {
    trace.slice(timeline.lanes[each.lane].node, ChromeTrace::thread(each.lane, ChromeTrace::kIdle),
                name_of(each.reason), "idle", each.begin, each.end);
  }
  for (const CounterSample& each : timeline.samples) {
    trace.count(timeline.links[each.link].id, each.time, each.utilization * 100);
  }
  return std::move(trace).finish();
}
}  // namespace topsim::report

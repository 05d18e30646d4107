#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/scenario/bench/traffic.hpp"

namespace topsim::scenario {
namespace {
constexpr TrafficName kNames[] = {
    {TrafficPattern::point_to_point, "p2p",
     "latency and bandwidth between two ports, as perftest prints them"},
    {TrafficPattern::incast, "incast", "many ports send to one"},
    {TrafficPattern::permutation, "permutation",
     "every port sends to another one (of its rail, where there are rails), drawn by the seed"},
    {TrafficPattern::all_to_all, "all_to_all",
     "every port sends to every other (of its rail, where there are rails); NCCL's collective is alltoall"},
    {TrafficPattern::parking_lot, "parking_lot",
     "three senders behind a trunk and a local one share a receiver"},
    {TrafficPattern::victim_flow, "victim", "a flow to an idle host behind flows to a congested one"}};

constexpr std::size_t kMostRows = 24;  // more flows than this are summarised

const char* verb_name(Verb verb) {
  return verb == Verb::send ? "send" : "write";
}

double gbit(double bytes_per_second) {
  return bytes_per_second * 8e-9;
}
}  // namespace

std::span<const TrafficName> traffic_names() {
  return kNames;
}

const TrafficName* find_traffic(const std::string& name) {
  const auto found = std::find_if(std::begin(kNames), std::end(kNames),
                                  [&](const TrafficName& n) { return n.name == name; });
  return found == std::end(kNames) ? nullptr : found;
}

std::string point_to_point_table(const PointToPoint& result) {
  std::string text = fmt::format("# {} -> {}", result.from, result.to);
  if (!result.over.empty())
    text += fmt::format(" over {}, as p2pBandwidthLatencyTest\n", result.over);
  else if (result.without_nic)
    text += ", one message after another\n";
  else
    text += fmt::format(", as ib_{0}_lat and ib_{0}_bw, one queue pair\n", verb_name(result.verb));
  if (!result.note.empty()) text += "# " + result.note + '\n';
  text += "# bytes: of each message, -b to -e\n";
  text += fmt::format("#{:>11} {:>12} {:>16} {:>17} {:>17} {:>13} {:>13}\n", "bytes", "#iterations",
                      "t_typical[usec]", "BW average[Gb/s]", "BW average[GB/s]", "MsgRate[Mpps]",
                      "library[usec]");
  for (const PointToPointRow& row : result.rows) {
    text += fmt::format("{:>12} {:>12} {:>16.2f} {:>17.2f} {:>17.3f} {:>13.4f} {:>13.2f}\n", row.size.value(),
                        row.iterations, microseconds(row.latency), gbit(row.bandwidth), row.bandwidth / 1e9,
                        row.message_rate / 1e6, microseconds(row.library));
  }
  return text;
}

std::string point_to_point_json(const PointToPoint& result) {
  nlohmann::ordered_json json = {{"format", "topsim.bench/1"},
                                 {"pattern", "p2p"},
                                 {"from", result.from},
                                 {"to", result.to},
                                 {"verb", verb_name(result.verb)},
                                 {"complete", result.complete},
                                 {"rows", nlohmann::ordered_json::array()}};
  if (!result.note.empty()) json["note"] = result.note;
  for (const PointToPointRow& row : result.rows) {
    json["rows"].push_back({{"size", row.size.value()},
                            {"iterations", row.iterations},
                            {"time_us", microseconds(row.latency)},
                            {"library_us", microseconds(row.library)},
                            {"bandwidth", row.bandwidth / 1e9},
                            {"bandwidth_gbps", gbit(row.bandwidth)},
                            {"message_rate_mpps", row.message_rate / 1e6}});
  }
  return json.dump(2) + '\n';
}

std::string traffic_table(const TrafficName& what, const Traffic& traffic) {
  std::string text =
      fmt::format("# {}: {}\n", what.name, what.summary) + fmt::format("# {}\n", traffic.where);
  double least = traffic.flows.empty() ? 0 : traffic.flows.front().goodput, most = 0, sum = 0;
  for (const TrafficFlow& flow : traffic.flows) {
    least = std::min(least, flow.goodput);
    most = std::max(most, flow.goodput);
    sum += flow.goodput;
  }
  if (traffic.flows.size() <= kMostRows) {
    std::size_t width = 4;
    for (const TrafficFlow& flow : traffic.flows) width = std::max({width, flow.from.size(), flow.to.size()});
    text += traffic.window > Duration{} ? "# bytes: what each flow delivered in the --window\n"
                                        : "# bytes: of each flow, -b\n";
    text += fmt::format("#{:>{}}  {:>{}} {:>12} {:>13} {:>13} {:>14}\n", "from", width, "to", width, "bytes",
                        "delivered(us)", "acked(us)", "goodput(Gb/s)");
    for (const TrafficFlow& flow : traffic.flows) {
      const auto us = [](const std::optional<Duration>& time) {
        return time && *time > Duration{} ? fmt::format("{:.2f}", microseconds(*time)) : std::string("-");
      };
      text +=
          fmt::format(" {:>{}}  {:>{}} {:>12} {:>13} {:>13} {:>14.2f}\n", flow.from, width, flow.to, width,
                      flow.bytes.value(), us(flow.delivered), us(flow.acknowledged), gbit(flow.goodput));
    }
  }
  text +=
      fmt::format("# flows {}, goodput least {:.2f}, mean {:.2f}, most {:.2f} Gb/s, fairness (Jain) {:.4f}\n",
                  traffic.flows.size(), gbit(least),
                  gbit(sum / static_cast<double>(std::max<std::size_t>(traffic.flows.size(), 1))), gbit(most),
                  traffic.fairness);
  if (traffic.last > Duration{}) text += fmt::format("# completion {:.2f} us\n", microseconds(traffic.last));
  if (traffic.queues) {
    const TrafficQueues& q = *traffic.queues;
    text += fmt::format(
        "# longest queue {:.1f} KB, pauses {}, ports stopped for {:.1f} us in all, marks {}, notifications "
        "{}, "
        "drops {}, sent again {}\n",
        static_cast<double>(q.longest.value()) / 1e3, q.pauses, microseconds(q.paused), q.marks,
        q.notifications, q.drops, q.repeats);
  }
  for (const std::string& finding : traffic.findings) text += "# " + finding + '\n';
  return text;
}

std::string traffic_json(const TrafficName& what, const Traffic& traffic) {
  nlohmann::ordered_json json = {{"format", "topsim.bench/1"},
                                 {"pattern", what.name},
                                 {"where", traffic.where},
                                 {"complete", traffic.complete},
                                 {"rows", nlohmann::ordered_json::array()}};
  for (const TrafficFlow& flow : traffic.flows) {
    nlohmann::ordered_json row = {{"from", flow.from}, {"to", flow.to}, {"size", flow.bytes.value()}};
    if (flow.delivered > Duration{}) row["time_us"] = microseconds(flow.delivered);
    if (flow.acknowledged && *flow.acknowledged > Duration{})
      row["acknowledged_us"] = microseconds(*flow.acknowledged);
    row["goodput_gbps"] = gbit(flow.goodput);
    json["rows"].push_back(std::move(row));
  }
  json["summary"] = {{"flows", traffic.flows.size()}, {"fairness", traffic.fairness}};
  if (traffic.last > Duration{}) json["summary"]["completion_us"] = microseconds(traffic.last);
  if (traffic.queues) {
    const TrafficQueues& q = *traffic.queues;
    json["summary"].update({{"longest_queue_bytes", q.longest.value()},
                            {"paused_us", microseconds(q.paused)},
                            {"pauses", q.pauses},
                            {"marks", q.marks},
                            {"notifications", q.notifications},
                            {"drops", q.drops},
                            {"repeats", q.repeats}});
  }
  json["findings"] = traffic.findings;
  return json.dump(2) + '\n';
}
}  // namespace topsim::scenario

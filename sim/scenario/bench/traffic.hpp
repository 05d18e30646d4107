// Messages instead of a workload: standard patterns for judging fabrics. Point-to-point, incast, permutation
// and all-to-all run between the network ports (NICs) of the scenario's own topology, from and to the memory
// behind their slots, on the packet or the flow model; parking lot, victim flow and, where asked for, incast
// on the textbook's fabric (sim/network/packet/experiments.hpp), whose cables take rate, latency and flow
// control from the scenario's fabric.
#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/report/result.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/catalogue.hpp"

namespace topsim::scenario {

enum class TrafficPattern : std::uint8_t {
  point_to_point,
  incast,
  permutation,
  all_to_all,
  parking_lot,
  victim_flow
};

// What a point-to-point message is: perftest's ib_send_lat or ib_write_lat.
enum class Verb : std::uint8_t { send, write };

struct TrafficOptions {
  std::vector<Bytes> sizes;  // point-to-point: a row each; others: the first one, every flow
  int senders = 0;           // incast; 0: every port that may send
  bool textbook = false;     // incast around one switch instead of on the scenario's topology
  Duration window{};         // parking lot, victim flow: observed time; 0: 10 ms
  int victim_lane = 0;       // victim flow: its virtual lane or priority
  std::string from, to;      // point-to-point: devices by name; empty: the first ports of nodes 0 and 1
  Verb verb = Verb::send;    // point-to-point
};

struct TrafficFlow {
  std::string from, to;
  Bytes bytes{};
  Duration delivered{};                  // last byte at the receiver; 0: not within the window
  std::optional<Duration> acknowledged;  // last acknowledgement at the sender, where the model knows it
  double goodput = 0;                    // bytes/s
};

// Figures that only the packet model has.
struct TrafficQueues {
  Bytes longest{};    // at any port of a switch
  Duration paused{};  // sum over ports: stopped by PFC or for want of credits
  std::uint64_t pauses = 0, marks = 0, notifications = 0, drops = 0, repeats = 0;
};

struct Traffic {
  std::string where;  // which fabric it ran on, in a sentence
  std::vector<TrafficFlow> flows;
  Duration window{};    // sent for so long; 0: until all of it was delivered
  Duration last{};      // last delivery
  double fairness = 1;  // Jain's index over goodput
  std::optional<TrafficQueues> queues;
  std::vector<std::string> findings;
  bool complete = true;  // false: stopped before everything was delivered
};

struct PointToPointRow {
  Bytes size{};
  int iterations = 0;  // messages back to back behind the bandwidth
  // One message on the idle path: the time of perftest, from memory to memory by the NICs' own figures (over
  // NVLink: of p2pBandwidthLatencyTest), and that of a communication library, whose software is in the link's
  // `nic_base` (which runs use).
  Duration latency{}, library{};
  double bandwidth = 0;     // bytes/s, of one queue pair
  double message_rate = 0;  // 1/s
};

struct PointToPoint {
  std::string from, to;
  Verb verb = Verb::send;
  std::string over;          // what joins two accelerators that need no NIC: "NVLink", "PCIe"; else empty
  bool without_nic = false;  // nor are there such copies: ports of chips
  std::vector<PointToPointRow> rows;
  std::string note;  // where `latency` is what a library sees, because what perftest would print is not known
  std::vector<report::Finding> findings;  // on the cluster's cables
  bool complete = true;                   // false: stopped, rows are missing
};

// Whether a pattern runs on the textbook's fabric, where a run cannot be stopped.
[[nodiscard]] bool on_textbook(TrafficPattern pattern, bool asked);

// REQUIRES: pattern is not point_to_point. Throws ConfigError with places. `stop` may be null; when it rises
// what was delivered so far comes back.
[[nodiscard]] Traffic run_traffic(const Scenario& scenario, const topology::Catalogue& catalogue,
                                  TrafficPattern pattern, const TrafficOptions& options,
                                  const std::atomic<bool>* stop = nullptr);
[[nodiscard]] PointToPoint point_to_point(const Scenario& scenario, const topology::Catalogue& catalogue,
                                          const TrafficOptions& options,
                                          const std::atomic<bool>* stop = nullptr);

// Names users type, and what is printed.
struct TrafficName {
  TrafficPattern pattern;
  const char *name, *summary;
};
[[nodiscard]] std::span<const TrafficName> traffic_names();
[[nodiscard]] const TrafficName* find_traffic(const std::string& name);  // null: no pattern of this name

[[nodiscard]] std::string traffic_table(const TrafficName& what, const Traffic& traffic);
[[nodiscard]] std::string traffic_json(const TrafficName& what, const Traffic& traffic);
[[nodiscard]] std::string point_to_point_table(const PointToPoint& result);
[[nodiscard]] std::string point_to_point_json(const PointToPoint& result);
}  // namespace topsim::scenario

// The result of a run: frozen, self-contained, the same whether it was just simulated or read from a file.
// Times are whole picoseconds (busy and idle sum to the step exactly), everything else is SI. The JSON form,
// topsim.result/1, is described in README.md beside this file.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/executor/outcome.hpp"
#include "sim/metrics/accounting.hpp"
#include "sim/metrics/critical_path.hpp"
#include "sim/metrics/throughput.hpp"
#include "sim/report/reliability.hpp"
#include "topology/topology.hpp"

namespace topsim::report {

struct MemoryPart {
  std::string name;  // weights, gradients, optimizer, activations, ...
  Bytes bytes{};
  friend bool operator==(const MemoryPart&, const MemoryPart&) = default;
};

// The fullest accelerator's memory.
struct Memory {
  bool fits = true;
  Bytes per_accelerator{}, capacity{};
  std::vector<MemoryPart> parts;
  Bytes usable{};                 // of the capacity, where engines that serve leave a part; zero: all of it
  Bytes host{}, host_capacity{};  // offloaded, per node, and what a node has (0: not known); for findings
};

// "80.0 GiB", or "80.0 GiB, of which engines fill 72.0 GiB".
[[nodiscard]] std::string capacity_text(const Memory& memory);

// Ranks that behave alike; the figures are those of each member.
struct RankRow {
  std::uint32_t rank = 0;   // the first member
  std::uint32_t count = 1;  // members
  std::uint32_t node = 0;
  std::string device;   // "node0/gpu3"
  std::string program;  // "stage 1"
  metrics::Account account;
  std::string members;  // their ranks (spans.hpp)
};

// Links that behave alike; the figures are those of each member, over the measured steps.
struct LinkRow {
  std::string id;  // of the first member: "node0/gpu3 -> node0/nvswitch0"
  std::uint32_t count = 1;
  topology::LinkKind kind = topology::LinkKind::other;
  std::string type;  // what people call it: "NDR 400 Gbit/s"
  std::string from, to;
  double capacity = 0;                           // bytes/s that payload can use
  Bytes bytes{};                                 // to the nearest whole one
  double utilization = 0, peak_utilization = 0;  // shares of the capacity
  Duration busy{};
  std::string members;  // their numbers in the topology (spans.hpp)
};

struct CollectiveRow {
  std::string group;  // why the communicator exists: tensor, data, ...
  std::string kind;   // all_reduce, ...
  std::uint32_t group_size = 0;
  Bytes bytes{};
  std::uint64_t calls = 0;   // over the measured steps, all communicators
  Duration each{};           // mean of one call, from its last member's arrival
  double bus_bandwidth = 0;  // bytes/s that a link carries for it: nccl-tests' busbw, mean of the calls
  std::string algorithm, protocol;
  std::uint32_t channels = 0;
};

enum class Severity : std::uint8_t { note, warning };
[[nodiscard]] constexpr std::string_view name_of(Severity severity) {
  return severity == Severity::warning ? "warning" : "note";
}
struct Finding {
  Severity severity = Severity::note;
  std::string message;  // one sentence with its figures, no full stop
  std::string path;     // where in the scenario: topology.fabric.oversubscription
  std::string remedy;   // what to do about it
  double share = 0;     // of the step that it is about, which orders findings; not printed
  std::string id{};     // by which programs know it, whatever its words; empty: none looks for it
  std::vector<std::string> assumed{};  // settings left open, by path, that it says were assumed
};

struct Result {
  std::string name;      // the scenario file's stem, or "scenario"
  std::string headline;  // "64 x H100 (8 nodes) over ..."
  bool complete = true;
  std::uint64_t seed = 0;
  std::string version, commit;

  Duration step{};                   // mean of the measured steps
  std::vector<Duration> step_times;  // each
  metrics::Throughput throughput;
  Memory memory;
  std::optional<Goodput> goodput;  // where the scenario has a `reliability` section

  std::uint32_t accelerators = 0;
  std::string called = "accelerator";  // one of them, as the catalogue has it: "GPU", "chip"
  std::string library;                 // that moves their collectives: "NCCL"; empty: not known
  metrics::Account account;            // mean over accelerators and steps
  std::vector<RankRow> ranks;
  std::vector<LinkRow> links;  // those that carried bytes, most utilised first
  std::vector<CollectiveRow> collectives;
  std::vector<metrics::PathShare> critical_path, critical_path_links;
  std::vector<Finding> findings;

  bool trace = false;  // replayed, not computed from a model
  std::string network_model, collective_form;
  std::uint64_t flows = 0, packets = 0;
  std::string scenario;  // the resolved scenario, JSON text
  std::string left_open =
      "{}";  // what its workload leaves to the framework's release, as it was run; JSON text
};

// How the run itself went; never part of the result, whose bytes must not depend on it.
struct RunRecord {
  double wall_seconds = 0;
  std::uint64_t peak_rss_bytes = 0;
  std::uint64_t events = 0;
  bool folded = true;
  std::uint64_t rank_classes = 0, link_classes = 0, group_classes = 0;
};
[[nodiscard]] RunRecord make_run_record(const executor::Outcome& outcome, double wall_seconds);
}  // namespace topsim::report

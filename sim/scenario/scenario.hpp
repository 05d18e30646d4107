// A whole scenario: the cluster, the workload, the network model, and how long it runs. Plain structs;
// nothing is resolved or checked against the catalogue yet.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/collective/collective.hpp"
#include "sim/config/document.hpp"
#include "sim/executor/options.hpp"
#include "sim/network/factory.hpp"
#include "sim/network/packet/spec.hpp"
#include "sim/report/cost_spec.hpp"
#include "sim/report/reliability.hpp"
#include "topology/spec.hpp"
#include "workloads/spec.hpp"

namespace topsim::scenario {

// `network.packet`: PacketSpec, and the figures of its framing that people change one by one.
struct PacketSection {
  network::packet::PacketSpec spec;
  // `header` is all that is sent around a payload; with it the gap is 0 unless given too.
  std::optional<Bytes> mtu, header, gap, ack, cnp, telemetry;
  // The framing with these figures in it, unset when nothing was said.
  [[nodiscard]] network::packet::PacketSpec resolved(bool infiniband) const;
  // Of a connection, on every model.
  [[nodiscard]] std::uint32_t queue_pairs() const { return static_cast<std::uint32_t>(spec.queue_pairs); }
};

using CollectiveForm = executor::CollectiveForm;
enum class ContentionForm : std::uint8_t { calibrated, ideal };

struct NetworkSpec {
  std::string model{network::name_of(network::kDefaultModel)};  // of network::models()
  std::optional<CollectiveForm> collectives;                    // the model's own (executor::form_of)
  ContentionForm contention = ContentionForm::calibrated;
  PacketSection packet;
  collective::Overrides nccl;

  [[nodiscard]] const network::Model& traits() const { return network::find_model(model); }
  // Flows that meet lose what packets lose.
  [[nodiscard]] bool calibrated() const {
    return contention == ContentionForm::calibrated && traits().calibrated;
  }
};

struct RunSpec {
  int steps = 2;   // measured
  int warmup = 1;  // before them
  std::uint64_t seed = 1;
};

enum class FaultKind : std::uint8_t {
  link_down,
  link_degraded,
  link_flapping,
  gpu_slow,
  nic_down,
  switch_down,
  gpu_down
};

struct FaultSpec {
  FaultKind kind = FaultKind::link_down;
  Duration at{};                         // from the beginning of the run
  std::optional<Duration> lasts;         // unset: to the end
  std::string target;                    // "node0/nic1 -> leaf1" or "node0/nic1"
  std::optional<double> factor;          // link_degraded, gpu_slow: see left()
  std::optional<Duration> period, down;  // flapping: from outage to outage, and how long each lasts
  // From the failure until other paths carry what was on the way. NCCL_IB_TIMEOUT is 20 by default (NCCL
  // 2.23 and later, net_ib.cc): the NIC sends again after 4.096 us x 2^20 (IBTA, section 9.7.6.1.3). The
  // fabric itself is faster: milliseconds to a second (RFC 7938 section 7).
  Duration failover = std::chrono::nanoseconds(4'294'967'296);

  [[nodiscard]] bool has_factor() const {
    return kind == FaultKind::link_degraded || kind == FaultKind::gpu_slow;
  }
  // The remaining share of a degraded link's capacity, or of a slow accelerator's speed.
  [[nodiscard]] double left() const { return factor.value_or(0.5); }
};

struct Scenario {
  std::string name = "scenario";  // the file's stem
  std::string description;
  topology::TopologySpec topology;
  workloads::WorkloadSpec workload;
  NetworkSpec network;
  RunSpec run;
  std::vector<FaultSpec> faults;
  report::CostSpec cost;
  std::optional<report::ReliabilitySpec> reliability;

  // Where it was read from; null for a scenario made in code. Gives places to checks made later.
  std::shared_ptr<const config::Document> document;
};

// Settings of the job for the library: network.nccl, and serving engines' own all-reduces in inference.
[[nodiscard]] collective::Overrides library_choices(const Scenario& scenario);
// The packet section with the run's seed.
[[nodiscard]] network::packet::PacketSpec packet_spec(const Scenario& scenario, bool infiniband);

// The files it was read from, with what it includes and its trace.
[[nodiscard]] std::vector<std::string> files_read(const Scenario& scenario);

// " at 14:9" where the scenario's own file has this path; else empty.
[[nodiscard]] std::string place_text(const Scenario& scenario, const std::string& path);

// The error with the places of this scenario's file filled in.
[[nodiscard]] ConfigError located(const ConfigError& error, const Scenario& scenario);

// Returns what `work` returns; its ConfigErrors get the places of the scenario's file.
template <class Work>
auto with_places(const Scenario& scenario, const Work& work) {
  try {
    return work();
  } catch (const ConfigError& error) {
    throw located(error, scenario);
  }
}
}  // namespace topsim::scenario

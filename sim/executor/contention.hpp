// Flows that meet on a port of the fabric leave some of its capacity unused. A fluid model cannot show that;
// the packet model does, and its results come as a table (sim/network/congestion_table.hpp).
//
//   offer(A)  = min(1, 1 / demand of the most wanted NIC port that A sends through)
//   demand(P) = sum over running activities A of  usage(A, P) / own(A) / C_P,   P: from a NIC to the fabric
//   load(L)   = sum over running activities A of  usage(A, L) / own(A) / C_L x offer(A)
//   size(L)   = geometric mean, weighted by load, of own(A) x bytes(A), how long A sends at full speed,
//               in bytes that a port of the table carries meanwhile
//
// where own(A) is the most seconds a byte of one activity alone keeps a port of its own NICs busy: the load
// is 2 where two senders at full speed meet, and 1 where both leave through one NIC, which sends at full
// speed once. The link then has capacity C_L x efficiency(queue, load, size), with the queue at which PFC
// stops the senders of the lower switch (packet/pfc_queue.hpp). Usage and own usage are the same for all
// members of a class, so folded and unfolded runs agree.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/executor/options.hpp"
#include "sim/executor/outcome.hpp"
#include "sim/executor/switch_buffers.hpp"
#include "sim/fold/fold.hpp"
#include "sim/network/network.hpp"
#include "topology/topology.hpp"

namespace topsim::executor {

class Contention {
 public:
  Contention(const fold::System& system, const topology::Topology& topology, const RunOptions& options);

  // Changes take effect in settle(), which runs before the network is asked for its next event.
  void started(std::uint32_t activity) { change(activity, 1); }
  void ended(std::uint32_t activity) { change(activity, -1); }
  // Other routes hold from now on. REQUIRES: activities whose path changes have been ended().
  void change_routes(std::uint32_t detour);
  // From now on a fault leaves the link `factor` of its capacity, against which load and loss are counted.
  void scale(std::uint32_t link, double factor);
  void settle(network::Network& network, SimTime now);
  [[nodiscard]] bool governs(std::uint32_t link) const { return ports_[link].curve != nullptr; }
  // The lowest efficiency of any link so far; 1: no flows met.
  [[nodiscard]] double least() const { return least_; }
  // Ports into a NIC whose senders have more for them than they carry, where nothing slows senders.
  [[nodiscard]] std::vector<std::uint32_t> overfull() const;
  // As given to the network; 0 where it is not contention's to set.
  [[nodiscard]] double capacity(std::uint32_t link) const { return ports_[link].given; }
  // Of the ports whose senders no congestion control slows.
  [[nodiscard]] std::optional<Crowd> longest_crowd(SimTime end) const;

 private:
  // Loads and demands in 2^-32: their sums are exact, in whatever order flows come and go.
  using Fixed = std::int64_t;
  static constexpr std::uint32_t kNone = fold::System::kNone;
  struct Share {
    network::LinkIndex link;
    double load;
  };
  struct Flow {                  // an activity
    std::vector<Share> ports;    // of the fabric that it loads
    std::vector<Share> sources;  // ports of NICs that it leaves through
    double log_bytes = 0;        // its size, to base 2
    double offer = 1;
    int running = 0;
    bool known = false, concerned = false;
  };
  struct Port {
    double capacity = 0, factor = 1, given = 0;
    Fixed load = 0, weighted_size = 0;  // load x logarithm of bytes
    const network::CongestionStack* curve = nullptr;
    std::uint32_t buffer = 0;     // of buffers_
    std::uint32_t crowd = kNone;  // of crowds_
    bool changed = false;
  };
  struct CrowdedPort {
    Crowd crowd;
    std::optional<SimTime> since;  // now
  };
  struct Source {
    double capacity = 0;    // 0: no port from a NIC to the fabric
    double table_port = 0;  // what a port of the fabric's rows in the table carries
    Fixed demand = 0;
    std::vector<std::uint32_t> flows;  // that run
    bool changed = false;
  };

  Flow& flow_of(std::uint32_t activity);
  void change(std::uint32_t activity, int by);
  void add(const Flow& flow, int times);
  void count_crowd(const Port& port, SimTime now);
  [[nodiscard]] double offer_of(const Flow& flow) const;
  [[nodiscard]] double efficiency_of(const Port& port);
  [[nodiscard]] double table_efficiency(const Port& port) const;

  const fold::System& system_;
  std::vector<network::CongestionStack> curves_;
  std::vector<SwitchBuffer> buffers_;
  std::vector<Port> ports_;      // by link class
  std::vector<Source> sources_;  // by link class
  std::vector<CrowdedPort> crowds_;
  std::vector<Flow> flows_;  // by activity
  struct Remembered {
    const network::CongestionStack* curve = nullptr;
    std::uint32_t buffer = 0;
    Fixed load = 0, weighted_size = 0;
    double factor = 0, efficiency = 1;
  };
  static constexpr int kRememberedBits = 8;
  std::vector<Remembered> remembered_;  // what the table was asked last, by hash
  std::vector<std::uint32_t> changed_ports_, changed_sources_, concerned_;
  std::uint32_t detour_ = RouteChange::kFirst;
  double least_ = 1;
};
}  // namespace topsim::executor

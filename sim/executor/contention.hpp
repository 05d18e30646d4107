// Flows that meet on a port of the fabric leave some of its capacity unused: a fluid does not know, the
// packet model does, and its findings come as a table (sim/network/congestion_table.hpp).
//
//   load(L) = sum over running activities A of  usage(A, L) / own(A) x C_nic / C_L
//
// where own(A) is what one activity puts on a port of its own NIC: 2 where two senders at full speed meet.
// The link then has capacity C_L x efficiency(load). An activity whose NIC ports carry nobody else leaves
// loads at 1 or below and capacities alone. Usage and own usage are the same for all members of a class, so
// folded and unfolded runs agree.
#pragma once

#include <vector>

#include "sim/executor/options.hpp"
#include "sim/fold/fold.hpp"
#include "sim/network/network.hpp"
#include "topology/topology.hpp"

namespace topsim::executor {

class Contention {
 public:
  Contention(const fold::System& system, const topology::Topology& topology, const RunOptions& options);

  void started(std::uint32_t activity, network::Network& network, SimTime now);
  void ended(std::uint32_t activity, network::Network& network, SimTime now);
  // Other routes hold; what runs and takes other ways there has been told as ended.
  void change_routes(std::uint32_t detour);
  // A fault leaves a link `factor` of its capacity, from now on: its load and what it has to lose follow.
  void scale(std::uint32_t link, double factor, network::Network& network, SimTime now);
  [[nodiscard]] bool governs(std::uint32_t link) const { return ports_[link].curve != nullptr; }
  // Least efficiency any link had so far; 1: nothing met.
  [[nodiscard]] double least() const { return least_; }

 private:
  struct Share {
    network::LinkIndex link;
    double load;
  };
  struct Port {
    double capacity = 0, factor = 1, load = 0, efficiency = 1;
    int activities = 0;
    const network::CongestionCurve* curve = nullptr;
  };

  const std::vector<Share>& shares_of(std::uint32_t activity);
  [[nodiscard]] static double efficiency_of(const Port& port);
  void change(std::uint32_t activity, int by, network::Network& network, SimTime now);

  const fold::System& system_;
  std::vector<network::CongestionCurve> curves_;
  std::vector<Port> ports_;       // by link class
  std::vector<double> from_nic_;  // capacity of link classes that leave a NIC for the fabric, else 0
  std::vector<std::vector<Share>> shares_;
  std::vector<char> known_;
  std::uint32_t detour_ = RouteChange::kFirst;
  double least_ = 1;
};
}  // namespace topsim::executor

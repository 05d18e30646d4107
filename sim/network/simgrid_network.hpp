// SimGrid as a Network: a child process (topsim-simgrid, see simgrid/main.cpp for the lines exchanged) that
// is told what starts and asked what ends next. The independent oracle of the flow model, and `--network
// simgrid`.
//
// It carries messages on single paths with unit weight, a rate cap as a private link of that capacity;
// anything else is a ConfigError that names it.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "sim/engine/indexed_heap.hpp"
#include "sim/network/network.hpp"

namespace topsim::network {

// Beside the program or on PATH.
[[nodiscard]] bool simgrid_is_installed();

class SimGridNetwork final : public Network {
 public:
  // Throws ConfigError when there is no topsim-simgrid beside the program or on PATH.
  explicit SimGridNetwork(std::span<const double> capacities);
  ~SimGridNetwork() override;
  SimGridNetwork(const SimGridNetwork&) = delete;
  SimGridNetwork& operator=(const SimGridNetwork&) = delete;

  void start(const Transfer& transfer, SimTime now) override;
  // May go ahead of the caller, to the first completion: REQUIRES that nothing is started before it.
  [[nodiscard]] SimTime next_event() override { return next_event_before(kNever); }
  [[nodiscard]] SimTime next_event_before(SimTime horizon) override;
  void advance(SimTime now, std::vector<Completion>& completed) override;
  void set_capacity(LinkIndex link, double bytes_per_second, SimTime now) override;
  void reroute(const Transfer& again, SimTime now) override;
  [[nodiscard]] LinkRecord record(LinkIndex link) const override;
  [[nodiscard]] std::uint64_t events() const override { return events_; }

 private:
  struct Message {  // by the number that the child knows it by
    std::uint64_t tag, order;
    Duration latency;
  };
  void move_to(SimTime now);
  bool go_on(SimTime limit);
  void send() const;
  std::string ask(const std::string& line) const;

  int socket_ = -1, child_ = -1;
  mutable std::string out_, in_;  // not sent, and not read yet
  std::map<std::vector<LinkIndex>, std::size_t> paths_;
  std::vector<Message> messages_;
  std::vector<std::uint32_t> free_;
  engine::IndexedHeap<SimTime> latencies_;  // of messages whose last byte has left
  std::vector<std::uint32_t> arrived_;
  mutable std::vector<LinkRecord> records_;  // asked for when somebody wants them
  mutable bool recorded_ = false;
  SimTime now_{};              // the child's
  std::size_t under_way_ = 0;  // messages whose last byte has not left
  std::uint64_t started_ = 0, events_ = 0;
};
}  // namespace topsim::network

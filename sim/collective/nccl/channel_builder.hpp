// One attempt of the search: builds channels depth first at fixed speed, path types and NIC rule, and keeps
// the best set that it finds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/collective/nccl/graph.hpp"
#include "sim/collective/nccl/search.hpp"

namespace topsim::collective::nccl {

// What an attempt is allowed to do.
struct Attempt {
  Pattern pattern = Pattern::ring;
  float intra = 0, inter = 0;  // GB/s of one channel
  PathType type_intra = PathType::loc, type_inter = PathType::loc;
  int cross_nic = 0;
  bool same_channels = true;
  int min_channels = 1, max_channels = 1;
};

class ChannelBuilder {
 public:
  ChannelBuilder(const System& system, bool in_network_reduction);

  // Improves `best` in place. Returns what is left of the budget of visits, kPerfect when no better set can
  // exist, 0 when the budget ran out.
  static constexpr int kPerfect = -1;
  static constexpr int kOrderAsWiredBudget = 1 << 10;  // visits granted to the attempt in the wiring's order
  int improve(const Attempt& attempt, int budget, ChannelGraph& best);

 private:
  enum class Order { free, as_wired, as_before };
  struct Turns {  // steps at which the channel turns to the NIC or back to its first GPU; -1: never
    int to_net = -1, to_first = -1;
  };

  void next_channel();
  void start_at_ports(Turns turns);
  void start_inside(Turns turns);
  bool start_head(int port, Turns turns, int ports);
  void start_chain(int port, Turns turns);
  void enter_from(const Path& path, bool intra, bool from_gpu, const Path& back, int gpu, int step,
                  Turns turns, Order order);
  void enter(int gpu, int step, Turns turns, Order order);
  void visit(int gpu, int step, Turns turns, Order order);
  void leave_box(int gpu, int step, Turns turns, Order order);
  void reduce_at_switch(int head);
  void exchange_with_all(int head);
  void channel_complete();
  [[nodiscard]] bool better() const;
  [[nodiscard]] bool may_leave_by(int port, int step) const;

  // Orders in which candidates are tried, computed once.
  struct Partner {
    int gpu, bandwidth, hops;
  };
  const std::vector<int>& ports_of(int gpu);
  const std::vector<Partner>& ranked(int gpu, int port);
  template <class Go>
  void each_candidate(int gpu, int net_order, const Go& go);

  // Takes `speed` on every link of the path, or nothing.
  bool take(const Path& path, bool from_gpu, float speed);
  void give_back(const Path& path, bool from_gpu, float speed) {
    walk(path, path.edges.size(), from_gpu, -speed);
  }
  std::size_t walk(const Path& path, std::size_t links, bool from_gpu, float speed);
  bool allowed(const Path& path, const Path& back, bool intra) const;

  Channel& current() { return now_.channels[static_cast<std::size_t>(complete_)]; }

  struct Wire {
    std::size_t reverse;  // the other direction
    bool pci, into_intel, into_old_gpu;
  };

  const System& system_;
  bool in_network_reduction_;
  std::vector<float> free_;                                  // bandwidth left on each edge
  std::vector<Wire> wires_;                                  // what is read of an edge when it is charged
  std::vector<float> net_free_;                              // bandwidth left on each port
  std::vector<std::uint64_t> used_;                          // bit per channel that already visits the GPU
  std::vector<std::optional<std::vector<int>>> ports_;       // by GPU (-1: all) and worst path type
  std::vector<std::optional<std::vector<Partner>>> ranked_;  // by port (-1: none) and GPU
  Attempt attempt_;
  ChannelGraph now_;  // complete channels, then the one being built
  int complete_ = 0;
  ChannelGraph* best_ = nullptr;
  int budget_ = 0;
};
}  // namespace topsim::collective::nccl

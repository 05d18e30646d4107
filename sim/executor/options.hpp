// How a run is executed, and how the outside watches and stops it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/units.hpp"
#include "sim/network/congestion_table.hpp"
#include "sim/network/packet/spec.hpp"

namespace topsim::topology {
class Router;
}
namespace topsim::collective {
class NcclModel;
}

namespace topsim::executor {

// What contention needs to know of an accelerator model.
struct AcceleratorFacts {
  int compute_units = 0;  // SMs or CUs; 0: communication takes none
  BytesPerSecond memory_bandwidth{};
};

// A link's capacity is multiplied by `factor` from `at` on (faults; 1 restores it).
struct CapacityChange {
  SimTime at;
  LinkId link;
  double factor;
};

// Routes when some links have failed and others are known to be left.
struct Detour {
  std::shared_ptr<const topology::Router> router;
  std::shared_ptr<const collective::NcclModel> nccl;
};
// From `at` on the routes of a detour hold, or the first ones again.
struct RouteChange {
  static constexpr std::uint32_t kFirst = 0xffffffffU;
  SimTime at;
  std::uint32_t detour = kFirst;  // index of RunOptions::detours
  bool last = false;              // no others follow
};

// An accelerator computes at `pace` of its speed from `at` on (throttling; 1 restores it).
struct PaceChange {
  SimTime at;
  RankId rank;
  double pace;
};

// What a collective is to the network.
enum class CollectiveForm : std::uint8_t {
  pipelined,  // one activity that loads all its links in lock-step
  steps,      // every chunk of every step a message
  hops,       // every hop one message of all its bytes, side by side, at the rate of all its channels
};

struct RunOptions {
  std::string network = "flow";        // a name of network::models()
  network::packet::PacketSpec packet;  // network == "packet"
  CollectiveForm collectives = CollectiveForm::pipelined;
  int warmup = 1, steps = 2;
  std::uint64_t seed = 1;
  // What flows that meet lose, for the flow model with pipelined collectives; null: nothing.
  std::shared_ptr<const network::CongestionTable> congestion;
  network::Bound congestion_bound = network::Bound::middle;
  bool fold = true;
  bool timeline = false;  // keep every op's interval; REQUIRES explained
  // Why the time passed: waits and their reasons, ranks, links, the critical path. False: step times alone,
  // the same ones.
  bool explained = true;
  std::vector<std::pair<RankId, double>> slow_ranks;  // compute takes `second` times longer
  std::vector<CapacityChange> capacity_changes;
  std::vector<PaceChange> pace_changes;
  std::vector<Detour> detours;
  std::vector<RouteChange> route_changes;      // by time
  std::vector<AcceleratorFacts> accelerators;  // by Device::model; empty: no contention
};

// Why a run is not one of a few classes of ranks.
enum class Apart : std::uint8_t { by_place, by_hash, by_choice, by_packet };

// Shared with another thread (progress line, Ctrl-C). The simulation polls the flags at every event.
struct Progress {
  std::atomic<bool> stop{false};
  // Of who runs many at once: stops this one, too. Simulations that shared a whole Progress would have their
  // threads write to one cache line at every event; a flag is only read.
  const std::atomic<bool>* stop_all = nullptr;
  [[nodiscard]] bool stopped() const {
    return stop.load(std::memory_order_relaxed) ||
           (stop_all != nullptr && stop_all->load(std::memory_order_relaxed));
  }
  std::atomic<std::uint64_t> ops_done{0}, ops_total{0}, events{0};
  std::atomic<std::int64_t> now_ps{0};
  std::atomic<int> step{0}, steps{0};                    // how many are over, and of how many
  std::atomic<std::size_t> runs_done{0}, runs_total{0};  // of studies that simulate many times
  // Known once it is folded, and when the first op began.
  std::atomic<std::uint32_t> ranks{0}, rank_classes{0};
  std::atomic<Apart> apart{Apart::by_place};
  std::atomic<std::chrono::steady_clock::time_point> began{};

  // look(this), and of a study look(each run under way).
  template <class Look>
  void each_run(const Look& look) const {
    look(*this);
    const std::lock_guard lock(runs_mutex_);
    for (const Progress* run : runs_) look(*run);
  }

 private:
  friend class RunOfStudy;
  mutable std::mutex runs_mutex_;
  std::vector<const Progress*> runs_;
};

// One run of a study, as long as it lives: the study's flag stops it, who watches the study sees it.
class RunOfStudy {
 public:
  explicit RunOfStudy(Progress* study) : study_(study) {
    if (study_ == nullptr) return;
    progress.stop_all = &study_->stop;
    const std::lock_guard lock(study_->runs_mutex_);
    study_->runs_.push_back(&progress);
  }
  ~RunOfStudy() {
    if (study_ == nullptr) return;
    const std::lock_guard lock(study_->runs_mutex_);
    std::erase(study_->runs_, &progress);
  }
  RunOfStudy(const RunOfStudy&) = delete;
  RunOfStudy& operator=(const RunOfStudy&) = delete;

  Progress progress;

 private:
  Progress* study_;
};
}  // namespace topsim::executor

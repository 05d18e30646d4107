// How the outside watches and stops a run.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

namespace topsim::executor {

// Why a run is not one of a few classes of ranks.
enum class UnfoldedReason : std::uint8_t { by_place, by_hash, by_choice, by_packet };

// Thrown by a run that was stopped, where nobody wants what it had done until then.
struct Stopped {};

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
  // False: a stopped run throws Stopped as soon as it can, in place of a partial result, also while it is
  // being prepared. Set before the run.
  bool partial = true;
  void end_if_stopped() const {
    if (!partial && stopped()) throw Stopped{};
  }
  std::atomic<std::uint64_t> ops_done{0}, ops_total{0}, events{0};
  std::atomic<std::int64_t> now_ps{0};
  // Not 0 once a partial result is worth its time: the tables of very many ranks take seconds, and say little
  // before a step has ended.
  std::atomic<std::uint64_t> worth_printing{0};
  std::atomic<int> step{0}, steps{0};                    // how many are over, and of how many
  std::atomic<std::size_t> runs_done{0}, runs_total{0};  // of studies that simulate many times
  // Known once it is folded, and when the first op began.
  std::atomic<std::uint32_t> ranks{0}, rank_classes{0};
  std::atomic<UnfoldedReason> unfolded_by{UnfoldedReason::by_place};
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

#include "sim/base/parallel.hpp"

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>

#ifdef TOPSIM_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace topsim::parallel {
namespace {

// Tells the thread sanitizer what libtbb cannot: every body sees what was written before the loop, and after
// the loop everything that bodies wrote is visible.
class Loop {
 public:
#ifdef TOPSIM_THREAD_SANITIZER
  Loop() {
    __tsan_release(&begin_);
  }
  ~Loop() {
    __tsan_acquire(&end_);
  }
  void enter() {
    __tsan_acquire(&begin_);
  }
  void leave() {
    __tsan_release(&end_);
  }

 private:
  char begin_ = 0, end_ = 0;
#else
  void enter() {}
  void leave() {}
#endif
};

// Keeps the exception of the lowest index. Bodies of lower indices still run after one was kept, because
// their exception would replace it.
class FirstError {
 public:
  void keep(std::size_t index) {
    const std::lock_guard lock(mutex_);
    if (index >= index_) return;
    index_ = index;
    error_ = std::current_exception();
  }
  [[nodiscard]] bool before(std::size_t index) const { return index_ < index; }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::atomic<std::size_t> index_{std::numeric_limits<std::size_t>::max()};
  std::exception_ptr error_;
};
}  // namespace

namespace tbb = oneapi::tbb;

int lanes(int jobs) {
  const int cores = tbb::this_task_arena::max_concurrency();
  return jobs > 0 ? std::min(jobs, cores) : cores;
}

void for_each(std::size_t count, const std::function<void(std::size_t)>& body) {
  FirstError error;
  {
    Loop loop;
    tbb::parallel_for(std::size_t{0}, count, [&](std::size_t i) {
      if (error.before(i)) return;
      loop.enter();
      try {
        body(i);
      } catch (...) {
        error.keep(i);
      }
      loop.leave();
    });
  }
  error.rethrow();
}

void in_order(std::size_t count, int jobs, const std::function<void(std::size_t)>& body,
              const std::function<bool()>& stop) {
  std::atomic<std::size_t> next{0};
  FirstError error;
  {
    Loop loop;
    const auto lane = [&](int) {
      loop.enter();
      for (std::size_t i = next++; i < count && !error.before(i) && !(stop && stop()); i = next++) {
        try {
          tbb::this_task_arena::isolate([&] { body(i); });
        } catch (...) {
          error.keep(i);
        }
      }
      loop.leave();
    };
    const int at_once = lanes(jobs);
    tbb::task_arena arena(at_once);
    arena.execute([&] { tbb::parallel_for(0, at_once, lane); });
  }
  error.rethrow();
}
}  // namespace topsim::parallel

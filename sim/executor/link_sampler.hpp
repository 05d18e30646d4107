// Mean rate of every link class over equal windows of time, for traces and heat maps. The number of
// windows is bounded for any length of run: when there are too many, neighbours are joined and the window
// doubles.
#pragma once

#include <functional>
#include <vector>

#include "sim/executor/outcome.hpp"
#include "sim/network/network.hpp"

namespace topsim::executor {

class LinkSampler {
 public:
  LinkSampler(std::size_t links, SimTime begin) : begin_(begin), bytes_(links, 0.0), windows_(links) {}

  // Bytes a link carried before `begin`.
  void skip(std::size_t link, double bytes) { bytes_[link] = bytes; }
  // When it is due to sample the links next.
  [[nodiscard]] SimTime next() const { return begin_ + window_ * static_cast<std::int64_t>(count_ + 1); }
  // REQUIRES: now == next(), the network has been advanced to now.
  void sample(const std::function<double(std::uint32_t link)>& bytes_carried);
  // The run is over: what is left since the last sample is a window of its own, shorter than the others.
  // REQUIRES: nothing is sampled afterwards.
  void finish(SimTime now, const std::function<double(std::uint32_t link)>& bytes_carried);
  // Changes of rate from `begin` on, by link; `index[l]` is the row of link l in the outcome, or none.
  [[nodiscard]] std::vector<LinkSample> samples(const std::vector<std::uint32_t>& index) const;
  static constexpr std::uint32_t kNoRow = 0xffffffffU;

 private:
  void close_window(const std::function<double(std::uint32_t link)>& bytes_carried);
  static constexpr std::size_t kMostWindows = 512;
  SimTime begin_;
  Duration window_{10'000'000};  // 10 us to begin with
  std::size_t count_ = 0;
  Duration rest_{};                          // of the last, shorter window
  std::vector<double> bytes_;                // by link: up to the last sample
  std::vector<std::vector<float>> windows_;  // by link: bytes in each window
};
}  // namespace topsim::executor

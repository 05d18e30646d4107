#include "sim/executor/link_sampler.hpp"

#include <algorithm>

namespace topsim::executor {

void LinkSampler::close_window(const std::function<double(std::uint32_t)>& bytes_carried) {
  for (std::size_t l = 0; l < bytes_.size(); ++l) {
    const double bytes = bytes_carried(static_cast<std::uint32_t>(l));
    windows_[l].push_back(static_cast<float>(bytes - bytes_[l]));
    bytes_[l] = bytes;
  }
}

void LinkSampler::sample(const std::function<double(std::uint32_t)>& bytes_carried) {
  close_window(bytes_carried);
  if (++count_ < kMostWindows) return;
  for (auto& link : windows_) {
    for (std::size_t w = 0; w < kMostWindows / 2; ++w) link[w] = link[2 * w] + link[2 * w + 1];
    link.resize(kMostWindows / 2);
  }
  count_ = kMostWindows / 2;
  window_ *= 2;
}

void LinkSampler::finish(SimTime now, const std::function<double(std::uint32_t)>& bytes_carried) {
  rest_ = now - (begin_ + window_ * static_cast<std::int64_t>(count_));
  if (rest_ > Duration{}) close_window(bytes_carried);
}

std::vector<LinkSample> LinkSampler::samples(const std::vector<std::uint32_t>& index) const {
  std::vector<LinkSample> result;
  std::vector<double> last(windows_.size(), 0);
  for (std::size_t w = 0; w < count_ + (rest_ > Duration{} ? 1 : 0); ++w) {
    const double length = seconds(w < count_ ? window_ : rest_);
    for (std::size_t l = 0; l < windows_.size(); ++l) {
      const double rate = static_cast<double>(windows_[l][w]) / length;
      if (index[l] == kNoRow || rate == last[l]) continue;
      last[l] = rate;
      result.push_back({index[l], begin_ + window_ * static_cast<std::int64_t>(w), rate});
    }
  }
  return result;
}
}  // namespace topsim::executor

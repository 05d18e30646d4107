#include "sim/executor/link_sampler.hpp"

#include <algorithm>

namespace topsim::executor {

void LinkSampler::sample(const std::function<double(std::uint32_t)>& bytes_carried) {
  for (std::size_t l = 0; l < bytes_.size(); ++l) {
    const double bytes = bytes_carried(static_cast<std::uint32_t>(l));
    windows_[l].push_back(static_cast<float>(bytes - bytes_[l]));
    bytes_[l] = bytes;
  }
  if (++count_ < kMostWindows) return;
  for (auto& link : windows_) {
    for (std::size_t w = 0; w < kMostWindows / 2; ++w) link[w] = link[2 * w] + link[2 * w + 1];
    link.resize(kMostWindows / 2);
  }
  count_ = kMostWindows / 2;
  window_ *= 2;
}

std::vector<LinkSample> LinkSampler::samples(const std::vector<std::uint32_t>& index) const {
  std::vector<LinkSample> result;
  std::vector<float> last(windows_.size(), 0);
  for (std::size_t w = 0; w < count_; ++w) {
    for (std::size_t l = 0; l < windows_.size(); ++l) {
      if (index[l] == kNoRow || windows_[l][w] == last[l]) continue;
      last[l] = windows_[l][w];
      result.push_back({index[l], begin_ + window_ * static_cast<std::int64_t>(w),
                        static_cast<double>(last[l]) / seconds(window_)});
    }
  }
  return result;
}
}  // namespace topsim::executor

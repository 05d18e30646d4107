#include "sim/fold/refine.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace topsim::fold {
namespace {
constexpr Colour scramble(
    Colour x) {  // the finaliser of splitmix64: every input bit reaches every output bit
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

std::size_t distinct(std::vector<Colour> colours) {
  std::sort(colours.begin(), colours.end());
  return static_cast<std::size_t>(std::unique(colours.begin(), colours.end()) - colours.begin());
}
}  // namespace

Colour mix(Colour a, Colour b) {
  return scramble(a + 0x9e3779b97f4a7c15ULL + scramble(b ^ 0xd1b54a32d192ed03ULL));
}

std::uint32_t LabelledGraph::add(Colour initial) {
  colours_.push_back(initial);
  return static_cast<std::uint32_t>(colours_.size() - 1);
}

std::vector<std::uint32_t> LabelledGraph::classes(bool fold) const {
  std::vector<std::uint32_t> result(colours_.size());
  if (!fold) {
    std::iota(result.begin(), result.end(), 0U);
    return result;
  }
  std::vector<Colour> now = colours_;
  std::vector<Colour> sums(now.size());
  std::size_t count = distinct(now);
  while (true) {
    std::fill(sums.begin(), sums.end(), 0);
    for (const Edge& e : edges_) {
      const Colour label = Colour{e.label} << 1;
      sums[e.from] += scramble(now[e.to] + scramble(label));
      sums[e.to] += scramble(now[e.from] + scramble(label | 1));
    }
    for (std::size_t i = 0; i < now.size(); ++i) now[i] = mix(now[i], sums[i]);
    const std::size_t refined = distinct(now);
    if (refined == count) break;
    count = refined;
  }
  std::unordered_map<Colour, std::uint32_t> number;
  number.reserve(count);
  for (std::size_t i = 0; i < now.size(); ++i) {
    result[i] = number.try_emplace(now[i], static_cast<std::uint32_t>(number.size())).first->second;
  }
  return result;
}
}  // namespace topsim::fold

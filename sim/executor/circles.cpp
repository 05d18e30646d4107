#include "sim/executor/circles.hpp"

#include <algorithm>
#include <utility>

namespace topsim::executor {
namespace {
constexpr std::uint32_t kNone = fold::System::kNone;
// Rank classes; the more there are, the more seldom they agree.
constexpr std::size_t kMost = 32;

// Called in every layer: the members go through layers together.
bool within_layers(program::Dimension dimension) {
  using program::Dimension;
  return dimension == Dimension::tensor || dimension == Dimension::context || dimension == Dimension::expert;
}
}  // namespace

Circles::Circles(const fold::System& system) : system_(system), circle_of_(system.ranks.size(), kNone) {}

// Groups of one kind are called at the same time, and those without a common member by different teams.
bool Circles::in_turn(std::uint32_t group, std::uint32_t other) const {
  const fold::GroupClass &a = system_.groups[group], &b = system_.groups[other];
  return a.dimension != b.dimension && within_layers(a.dimension) && within_layers(b.dimension) &&
         std::find_first_of(a.members.begin(), a.members.end(), b.members.begin(), b.members.end()) !=
             a.members.end();
}

bool Circles::join(std::uint32_t group, const std::vector<std::uint32_t>& sharing) {
  if (!std::all_of(sharing.begin(), sharing.end(),
                   [&](std::uint32_t other) { return in_turn(group, other); }))
    return false;
  std::vector<std::uint32_t> all;
  const auto add = [&](std::uint32_t g) {
    for (const std::uint32_t rank : system_.groups[g].members) {
      all.push_back(rank);
      if (circle_of_[rank] == kNone) continue;
      const auto& circle = circles_[circle_of_[rank]];
      all.insert(all.end(), circle.begin(), circle.end());
    }
  };
  add(group);
  std::for_each(sharing.begin(), sharing.end(), add);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  const fold::RankClass& one = system_.ranks[all.front()];
  const auto alike = [&](std::uint32_t rank) {
    const fold::RankClass& its = system_.ranks[rank];
    return its.program_class == one.program_class && its.slowdown == one.slowdown;
  };
  if (all.size() > kMost || !std::all_of(all.begin(), all.end(), alike)) return false;
  for (const std::uint32_t rank : all) {
    if (circle_of_[rank] != kNone) circles_[circle_of_[rank]].clear();
    circle_of_[rank] = static_cast<std::uint32_t>(circles_.size());
  }
  circles_.push_back(std::move(all));
  return true;
}

std::vector<std::vector<std::uint32_t>> Circles::take() {
  std::erase_if(circles_, [](const auto& circle) { return circle.empty(); });
  return std::move(circles_);
}
}  // namespace topsim::executor

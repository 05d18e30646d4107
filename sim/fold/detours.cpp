#include "sim/fold/detours.hpp"

#include <algorithm>

#include "sim/base/error.hpp"

namespace topsim::fold {
namespace {

bool same(const collective::LoweredCalls& a, const collective::LoweredCalls& b) {
  const auto same_share = [](const topology::LinkShare& x, const topology::LinkShare& y) {
    return x.link == y.link && x.share == y.share;
  };
  const auto same_way = [&](const auto& x, const auto& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), same_share);
  };
  const auto same_call = [](const auto& x, const auto& y) {
    return x.way == y.way && x.activity.latency == y.activity.latency;
  };
  return std::equal(a.calls.begin(), a.calls.end(), b.calls.begin(), b.calls.end(), same_call) &&
         std::equal(a.ways.begin(), a.ways.end(), b.ways.begin(), b.ways.end(), same_way);
}
}  // namespace

Detours::Detours(const program::Program& program, const std::vector<const collective::NcclModel*>& models) {
  for (const collective::NcclModel* model : models) lowerings_.emplace_back(program, model->router(), *model);
}

std::vector<Detours::Other> Detours::of(const Group& group, const collective::LoweredCalls& lowered) const {
  std::vector<Other> others(lowerings_.size());
  for (std::size_t d = 0; d < others.size(); ++d) {
    try {
      others[d].lowered = lowerings_[d].lower(group);
      others[d].same = same(others[d].lowered, lowered);
    } catch (const ConfigError& error) {
      others[d].cut = error.problems().front().message;
      others[d].same = false;
    }
  }
  if (std::all_of(others.begin(), others.end(), [](const Other& other) { return other.same; })) return {};
  return others;
}
}  // namespace topsim::fold

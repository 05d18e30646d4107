#include "topology/routing/group_routes.hpp"

#include <algorithm>
#include <numeric>

namespace topsim::topology {

GroupRoutes::GroupRoutes(const Topology& t, const FabricPorts& ports, const Hops& hops,
                         std::span<const std::uint32_t> vertex_of, std::span<const SlowLink> slow)
    : hops_(&hops),
      capacities_(t, hops, slow),
      switches_(static_cast<std::uint32_t>(t.dragonfly_dimensions[1])),
      groups_(static_cast<std::uint32_t>(t.dragonfly_dimensions[0])),
      cables_(std::size_t{groups_} * groups_),
      sent_(groups_),
      sent_by_switch_(hops.size()) {
  for (std::uint32_t at = 0; at < hops.size(); ++at)
    for (const PathCapacities::Hop& hop : hops[at])
      if (const double carries = capacities_.of(hop.link); group(at) != group(hop.to) && carries > 0)
        cables_[group(at) * groups_ + group(hop.to)].push_back({hop.link, at, hop.to, carries, at});
  for (std::uint32_t port = 0; port < ports.size(); ++port)
    for (const FabricPorts::Cable& cable : ports.cables_of(port))
      sent_by_switch_[vertex_of[cable.at.index()]] += t.link(cable.up).capacity.value();
  for (std::uint32_t g = 0; g < groups_; ++g)
    deal(g, std::span(sent_by_switch_).subspan(g * switches_, switches_));
}

void GroupRoutes::deal(std::uint32_t g, std::span<const double> sent) {
  sent_[g] = std::accumulate(sent.begin(), sent.end(), 0.0);
  if (sent_[g] <= 0) return;
  std::vector<Cable*> all;
  for (std::uint32_t other = 0; other < groups_; ++other)
    for (Cable& cable : cables_[g * groups_ + other]) all.push_back(&cable);
  std::vector<std::size_t> left(switches_);  // by switch: how many it is still to be dealt
  double before = 0;
  const auto cables_for = [&](double part) {
    return static_cast<std::size_t>(part / sent_[g] * static_cast<double>(all.size()) + 0.5);
  };
  for (std::uint32_t s = 0; s < switches_; ++s) {
    left[s] = cables_for(before + sent[s]) - cables_for(before);
    before += sent[s];
  }
  std::vector<Cable*> others;
  for (Cable* cable : all)
    if (std::size_t& own = left[cable->from % switches_]; own > 0)
      --own;
    else
      others.push_back(cable);
  std::uint32_t next = 0;
  for (Cable* cable : others) {  // as many as are left
    while (left[next] == 0) next = (next + 1) % switches_;
    cable->user = g * switches_ + next;
    --left[next];
    next = (next + 1) % switches_;
  }
}

std::vector<GroupRoutes::Path> GroupRoutes::direct(std::uint32_t from, std::uint32_t to) const {
  std::vector<Path> paths;
  for (const Cable& cable : cables(group(from), group(to))) paths.push_back({&cable, nullptr, cable.carries});
  return paths;
}

std::vector<GroupRoutes::Path> GroupRoutes::detours(std::uint32_t from, std::uint32_t to) const {
  std::vector<Path> paths;
  for (std::uint32_t third = 0; third < groups_; ++third) {
    if (third == group(from) || third == group(to)) continue;
    const std::vector<Cable>&there = cables(group(from), third), &onwards = cables(third, group(to));
    if (there.empty() || onwards.empty()) continue;
    const double each =
        std::min(1.0, static_cast<double>(onwards.size()) / static_cast<double>(there.size()));
    for (std::size_t i = 0; i < there.size(); ++i) {
      const Cable& second = onwards[i % onwards.size()];
      paths.push_back({&there[i], &second, std::min(there[i].carries, each * second.carries)});
    }
  }
  return paths;
}

// Few paths are used by all switches of the group; of many, each uses those that it was dealt.
void GroupRoutes::keep_own(std::uint32_t from, std::vector<Path>& paths) {
  constexpr std::size_t kFew = 64;
  const auto is_other = [&](const Path& path) { return path.first->user != from; };
  if (paths.size() <= kFew || std::all_of(paths.begin(), paths.end(), is_other)) return;
  paths.erase(std::remove_if(paths.begin(), paths.end(), is_other), paths.end());
}

// Over all links of the group that leave `from`, or where that is none lead to `to`, if these carry less than
// the NICs of the switch. False: there are none.
bool GroupRoutes::add_local(std::uint32_t from, std::uint32_t to, double share,
                            std::vector<LinkShare>& out) const {
  const bool leaving = from != DeviceId::kNone;
  const std::uint32_t end = leaving ? from : to, first = group(end) * switches_;
  std::vector<LinkId> links;
  double all = 0;
  for (std::uint32_t at = leaving ? end : first; at < (leaving ? end + 1 : first + switches_); ++at)
    for (const PathCapacities::Hop& hop : (*hops_)[at])
      if (group(hop.to) == group(end) && (leaving || hop.to == end) && capacities_.of(hop.link) > 0) {
        links.push_back(hop.link);
        all += capacities_.of(hop.link);
      }
  if (share <= 0 || all >= sent_by_switch_[end]) return true;
  for (const LinkId link : links) out.push_back({link, share * capacities_.of(link) / all});
  return !links.empty();
}

bool GroupRoutes::append(std::uint32_t from, std::uint32_t to, std::vector<LinkShare>& out) const {
  if (group(from) == group(to)) return false;
  std::vector<Path> straight = direct(from, to), around = detours(from, to);
  if (around.empty()) return false;
  const auto weight_of = [](const std::vector<Path>& paths) {
    double sum = 0;
    for (const Path& path : paths) sum += path.weight;
    return sum;
  };
  const double most = std::min(sent_[group(from)], sent_[group(to)]);
  const double part = most > 0 ? std::min(1.0, weight_of(straight) / most) : 1;
  keep_own(from, straight);
  keep_own(from, around);
  std::vector<LinkShare> first, second;  // global cables
  double leaving = 0, arriving = 0;      // over other switches of the two groups
  const auto use = [&](const std::vector<Path>& paths, double share) {
    const double all = weight_of(paths);
    for (const Path& path : paths) {
      const double own = share * path.weight / all;
      const Cable& last = path.second == nullptr ? *path.first : *path.second;
      first.push_back({path.first->link, own});
      if (path.second != nullptr) second.push_back({path.second->link, own});
      if (path.first->from != from) leaving += own;
      if (last.to != to) arriving += own;
    }
  };
  if (part > 0) use(straight, part);
  if (part < 1) use(around, 1 - part);
  // Several paths may share a cable onwards.
  std::sort(second.begin(), second.end(),
            [](const LinkShare& a, const LinkShare& b) { return a.link < b.link; });
  std::vector<LinkShare> route;
  if (!add_local(from, DeviceId::kNone, leaving, route)) return false;
  route.insert(route.end(), first.begin(), first.end());
  for (const LinkShare& each : second)
    if (route.back().link == each.link)
      route.back().share += each.share;
    else
      route.push_back(each);
  if (!add_local(DeviceId::kNone, to, arriving, route)) return false;
  out.insert(out.end(), route.begin(), route.end());
  return true;
}
}  // namespace topsim::topology

// Cycles of ports that wait for each other. A port waits for the downstream ports that hold packets which
// came through it.
#include <algorithm>

#include "sim/network/packet/core.hpp"

namespace topsim::network::packet {

void Core::watch_for_deadlock() {
  deadlock_check_at_ = std::min(deadlock_check_at_, now + spec.pfc.deadlock_after.count());
}

void Core::check_deadlock() {
  deadlock_check_at_ = kForever;
  bool stopped = false, long_stopped = false;
  for (PortIndex p = 0; p < ports.size(); ++p) {
    if (!is_stopped(p)) continue;
    stopped = true;
    if (now - records[p].paused_since >= spec.pfc.deadlock_after.count()) long_stopped = true;
  }
  if (!stopped) return;
  if (long_stopped) {
    const auto cycle = find_cycle();
    const bool known =
        std::any_of(deadlocks.begin(), deadlocks.end(), [&](const Deadlock& d) { return d.cycle == cycle; });
    if (!cycle.empty() && !known) deadlocks.push_back({SimTime(Duration(now)), cycle});
    if (!cycle.empty()) return;  // a cycle stays; searching again finds nothing new
  }
  watch_for_deadlock();
}

bool Core::is_stopped(PortIndex p) const {
  if (ports[p].paused != 0) return true;
  if (ports[p].flow_control != FlowControl::credit) return false;
  for (std::uint32_t lane = 1; lane < settings.classes; ++lane) {
    if (credits_[p * settings.classes + lane].starved) return true;
  }
  return false;
}

// Depth-first search from every stopped port along "waits for".
std::vector<PortIndex> Core::find_cycle() const {
  enum : char { kNew, kOpen, kDone };
  std::vector<char> state(ports.size(), kNew);
  std::vector<std::vector<PortIndex>> waits_for(ports.size());
  for (PortIndex p = 0; p < ports.size(); ++p) {
    if (!is_stopped(p)) continue;
    for (std::uint32_t lane = 1; lane < settings.classes; ++lane) {
      for (std::uint32_t k = waiting_[p * settings.classes + lane].list.head;
           k != kNone && (ports[p].occupied >> lane & 1U) != 0; k = packets_[k].next) {
        const PortIndex in = packets_[k].in_port;
        if (in != kNone && is_stopped(in)) waits_for[in].push_back(p);
      }
    }
  }
  for (auto& list : waits_for) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  std::vector<PortIndex> path;
  std::vector<std::size_t> at;
  for (PortIndex root = 0; root < ports.size(); ++root) {
    if (state[root] != kNew || waits_for[root].empty()) continue;
    path.assign(1, root);
    at.assign(1, 0);
    state[root] = kOpen;
    while (!path.empty()) {
      const PortIndex p = path.back();
      if (at.back() == waits_for[p].size()) {
        state[p] = kDone;
        path.pop_back();
        at.pop_back();
        continue;
      }
      const PortIndex next = waits_for[p][at.back()++];
      if (state[next] == kOpen) return {std::find(path.begin(), path.end(), next), path.end()};
      if (state[next] == kDone) continue;
      state[next] = kOpen;
      path.push_back(next);
      at.push_back(0);
    }
  }
  return {};
}
}  // namespace topsim::network::packet

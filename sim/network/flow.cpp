#include "sim/network/flow.hpp"

#include <algorithm>
#include <cassert>

namespace topsim::network {

// Changes of an earlier instant take effect at that instant, not now.
void FlowNetwork::change(SimTime now) {
  assert(now >= now_);
  if (now > now_) sharing_.solve(now_);
  now_ = now;
}

void FlowNetwork::start(const Transfer& transfer, SimTime now) {
  change(now);
  const std::uint64_t order = started_++;
  if (transfer.line != 0) {
    const auto [line, idle] = lines_.try_emplace(transfer.line);
    if (!idle) {
      line->second.push_back({transfer, {transfer.usage.begin(), transfer.usage.end()}, order});
      return;
    }
  }
  send(transfer, order, now);
}

void FlowNetwork::send_next(std::uint64_t line, SimTime now) {
  const auto at = lines_.find(line);
  if (at->second.empty()) {
    lines_.erase(at);
    return;
  }
  Waiting next = std::move(at->second.front());
  at->second.pop_front();
  next.transfer.usage = next.usage;
  send(next.transfer, next.order, now);
}

void FlowNetwork::send(const Transfer& transfer, std::uint64_t order, SimTime now) {
  std::span<const Usage> usage = transfer.usage;
  LinkIndex cap = MaxMin::kNone;
  if (transfer.bytes > 0 && transfer.rate_cap > 0) {
    cap = sharing_.add_link(transfer.rate_cap);
    capped_usage_.assign(usage.begin(), usage.end());
    capped_usage_.push_back({cap, 1});
    usage = capped_usage_;
  }
  if (!(transfer.bytes > 0) || usage.empty()) {  // nothing to carry, or nothing that limits it
    arrive(transfer.tag, order, now + transfer.latency);
    if (transfer.line != 0) send_next(transfer.line, now);
    return;
  }
  const MaxMin::Activity activity = sharing_.start(transfer.bytes, transfer.weight, usage, now);
  if (activity >= active_.size()) active_.resize(activity + 1);
  active_[activity] = {transfer.tag, order, transfer.latency, cap, transfer.line, true};
}

void FlowNetwork::arrive(std::uint64_t tag, std::uint64_t order, SimTime time) {
  if (free_arrivals_.empty()) {
    free_arrivals_.push_back(static_cast<std::uint32_t>(arrivals_.size()));
    arrivals_.emplace_back();
  }
  const std::uint32_t arrival = free_arrivals_.back();
  free_arrivals_.pop_back();
  arrivals_[arrival] = {tag, order, time};
  latencies_.set(arrival, time);
}

SimTime FlowNetwork::next_event() {
  sharing_.solve(now_);
  return std::min(sharing_.next_end(), latencies_.empty() ? kNever : latencies_.top().key);
}

void FlowNetwork::advance(SimTime now, std::vector<Completion>& completed) {
  sharing_.solve(now_);
  now_ = now;
  ended_.clear();
  done_.clear();
  sharing_.end_due(now, ended_);
  events_ += ended_.size();
  for (const MaxMin::Activity activity : ended_) {
    Active& active = active_[activity];
    active.sending = false;
    if (bottlenecks_ != nullptr) (*bottlenecks_)[active.tag] = sharing_.bottleneck(activity);
    if (active.cap != MaxMin::kNone) sharing_.release_link(active.cap);
    if (active.latency > Duration{})
      arrive(active.tag, active.order, now + active.latency);
    else
      done_.push_back({active.tag, active.order, now});
    if (active.line != 0) lines_ended_.push_back(active.line);
  }
  for (const std::uint64_t line : lines_ended_) send_next(line, now);
  lines_ended_.clear();
  arrived_.clear();
  latencies_.take_until(now, arrived_);
  events_ += arrived_.size();
  for (const std::uint32_t arrival : arrived_) {
    done_.push_back(arrivals_[arrival]);
    free_arrivals_.push_back(arrival);
  }
  const auto earlier = [](const Arrival& a, const Arrival& b) {
    return a.time != b.time ? a.time < b.time : a.order < b.order;
  };
  if (!std::is_sorted(done_.begin(), done_.end(), earlier)) std::sort(done_.begin(), done_.end(), earlier);
  for (const Arrival& arrival : done_) completed.push_back({arrival.tag, arrival.time});
}

void FlowNetwork::set_capacity(LinkIndex link, double bytes_per_second, SimTime now) {
  change(now);
  sharing_.set_capacity(link, bytes_per_second, now);
}

void FlowNetwork::reroute(const Transfer& again, SimTime now) {
  change(now);
  const auto active = std::find_if(active_.begin(), active_.end(),
                                   [&](const Active& a) { return a.sending && a.tag == again.tag; });
  if (active == active_.end()) {
    const auto line = lines_.find(again.line);
    if (line == lines_.end()) return;
    for (Waiting& waiting : line->second) {
      if (waiting.transfer.tag != again.tag) continue;
      waiting.transfer = again;
      waiting.usage.assign(again.usage.begin(), again.usage.end());
    }
    return;
  }
  sharing_.solve(now);
  const Active before = *active;
  active->sending = false;
  Transfer rest = again;
  rest.bytes = sharing_.take(static_cast<MaxMin::Activity>(active - active_.begin()), now);
  if (before.cap != MaxMin::kNone) sharing_.release_link(before.cap);
  send(rest, before.order, now);
}
}  // namespace topsim::network

#include "sim/network/analytic.hpp"

#include <algorithm>
#include <limits>

#include "sim/network/rounding.hpp"

namespace topsim::network {

AnalyticNetwork::AnalyticNetwork(std::span<const double> capacities) : links_(capacities.size()) {
  for (std::size_t link = 0; link < capacities.size(); ++link) links_[link].capacity = capacities[link];
}

double AnalyticNetwork::rate_of(const Active& active) const {
  double rate = active.cap > 0 ? active.cap : std::numeric_limits<double>::infinity();
  for (const Usage& use : active.own) rate = std::min(rate, links_[use.link].capacity / use.coefficient);
  return rate;
}

void AnalyticNetwork::take_usage(Active& active, const Transfer& transfer) {
  const auto own = transfer.own_usage.empty() ? transfer.usage : transfer.own_usage;
  active.usage.assign(transfer.usage.begin(), transfer.usage.end());
  active.own.assign(own.begin(), own.end());
}

// Adds `rate` to what the activity puts on its links.
void AnalyticNetwork::load(const Active& active, double rate, SimTime now) {
  for (const Usage& use : active.usage) {
    Link& link = links_[use.link];
    if (now > link.load_at) {
      link.bytes += link.load * seconds(now - link.load_at);
      link.peak = std::max(link.peak, link.load);
      if (link.load > 0) link.busy += now - link.load_at;
      link.load_at = now;
    }
    link.load = link.active == 0 ? 0 : link.load + rate * use.coefficient;
  }
}

void AnalyticNetwork::start(const Transfer& transfer, SimTime now) {
  now_ = now;
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(active_.size()));
    active_.emplace_back();
  }
  const std::uint32_t number = free_.back();
  free_.pop_back();
  Active& active = active_[number];
  active.tag = transfer.tag;
  active.order = started_++;
  active.left = transfer.bytes;
  active.cap = transfer.rate_cap;
  active.latency = transfer.latency;
  active.since = now;
  take_usage(active, transfer);
  active.rate = rate_of(active);
  active.sending = transfer.bytes > 0 && active.rate < std::numeric_limits<double>::infinity();
  if (active.sending) {
    for (const Usage& use : active.usage) ++links_[use.link].active;
    load(active, active.rate, now);
    ends_.set(number, after_seconds(now, active.left / active.rate));
  } else {
    ends_.set(number, now + active.latency);
  }
}

SimTime AnalyticNetwork::next_event() {
  return ends_.empty() ? kNever : ends_.top().key;
}

void AnalyticNetwork::finish_sending(std::uint32_t number, SimTime now) {
  Active& active = active_[number];
  active.sending = false;
  const double residue = active.left - active.rate * seconds(now - active.since);
  for (const Usage& use : active.usage) {
    --links_[use.link].active;
    links_[use.link].bytes += residue * use.coefficient;
  }
  load(active, -active.rate, now);
}

void AnalyticNetwork::advance(SimTime now, std::vector<Completion>& completed) {
  now_ = now;
  due_.clear();
  ends_.take_until(now, due_);
  std::size_t arrived = 0;
  for (const std::uint32_t number : due_) {
    Active& active = active_[number];
    ++events_;
    const bool sent = active.sending;
    if (sent) finish_sending(number, now);
    if (sent && active.latency > Duration{})
      ends_.set(number, now + active.latency);
    else
      due_[arrived++] = number;
  }
  due_.resize(arrived);
  std::sort(due_.begin(), due_.end(),
            [this](std::uint32_t a, std::uint32_t b) { return active_[a].order < active_[b].order; });
  for (const std::uint32_t number : due_) {
    completed.push_back({active_[number].tag, now});
    free_.push_back(number);
  }
}

void AnalyticNetwork::change_rate(std::uint32_t number, SimTime now) {
  Active& active = active_[number];
  const double rate = rate_of(active);
  if (rate == active.rate) return;
  active.left -= active.rate * seconds(now - active.since);
  active.since = now;
  load(active, rate - active.rate, now);
  active.rate = rate;
  ends_.set(number, after_seconds(now, active.left / rate));
}

void AnalyticNetwork::set_capacity(LinkIndex index, double bytes_per_second, SimTime now) {
  now_ = now;
  links_[index].capacity = bytes_per_second;
  for (std::uint32_t number = 0; number < active_.size(); ++number)
    if (active_[number].sending) change_rate(number, now);
}

void AnalyticNetwork::reroute(const Transfer& again, SimTime now) {
  now_ = now;
  const auto found = std::find_if(active_.begin(), active_.end(),
                                  [&](const Active& a) { return a.sending && a.tag == again.tag; });
  if (found == active_.end()) return;
  Active& active = *found;
  active.left -= active.rate * seconds(now - active.since);
  active.since = now;
  for (const Usage& use : active.usage) --links_[use.link].active;
  load(active, -active.rate, now);
  // The bytes sent so far stay counted on the links that carried them.
  take_usage(active, again);
  active.cap = again.rate_cap, active.latency = again.latency;
  for (const Usage& use : active.usage) ++links_[use.link].active;
  active.rate = rate_of(active);
  load(active, active.rate, now);
  ends_.set(static_cast<std::uint32_t>(found - active_.begin()),
            after_seconds(now, active.left / active.rate));
}

LinkRecord AnalyticNetwork::record(LinkIndex index) const {
  const Link& link = links_[index];
  LinkRecord record{link.bytes, link.peak, link.busy};
  if (link.load > 0 && now_ > link.load_at) {
    record.bytes += link.load * seconds(now_ - link.load_at);
    record.peak_rate = std::max(record.peak_rate, link.load);
    record.busy += now_ - link.load_at;
  }
  return record;
}
}  // namespace topsim::network

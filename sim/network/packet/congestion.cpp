#include "sim/network/packet/congestion.hpp"

#include <algorithm>
#include <cmath>

namespace topsim::network::packet {
namespace {
constexpr double k25G = 25e9 / 8;
}  // namespace

Congestion::Congestion(CongestionControlKind kind, const CongestionControl& spec, double slowest_nic,
                       std::uint32_t mtu, Picoseconds idle)
    : kind_(kind), spec_(spec), scale_(slowest_nic / k25G), mtu_(mtu), idle_(idle) {}

void Congestion::add(QueuePair& pair, double line_rate, Picoseconds base_round_trip) {
  if (!active()) return;
  State s{};
  s.line = s.rate = s.target = s.current = line_rate;
  s.round_trip = base_round_trip;
  const double product = line_rate * static_cast<double>(base_round_trip) * 1e-12;
  const auto scaled = [&](const std::optional<BytesPerSecond>& given, double mbit_at_25g) {
    return given ? given->value() : mbit_at_25g * 1e6 / 8 * scale_;
  };
  switch (kind_) {
    case CongestionControlKind::dcqcn:
      s.additive = scaled(spec_.dcqcn.additive_increase, 5);
      s.hyper = scaled(spec_.dcqcn.hyper_increase, 50);
      s.minimum = spec_.dcqcn.min_rate.value();
      s.alpha = spec_.dcqcn.initial_alpha;
      s.timer_at = kForever;
      if (spec_.dcqcn.window) s.window = product / mtu_;
      break;
    case CongestionControlKind::hpcc:
      s.additive = scaled(spec_.hpcc.additive_increase, 10);
      s.minimum = spec_.hpcc.min_rate.value();
      s.window = product / mtu_;
      break;
    case CongestionControlKind::timely:
      s.additive = scaled(spec_.timely.additive_increase, 25);
      s.hyper = scaled(spec_.timely.hyper_increase, 125);
      s.minimum = spec_.timely.min_rate.value();
      break;
    case CongestionControlKind::dctcp:
      s.additive = spec_.dctcp.additive_increase.value();
      s.minimum = spec_.dctcp.min_rate.value();
      s.window = product / mtu_;
      break;
    case CongestionControlKind::none:
    case CongestionControlKind::infiniband:
      break;
  }
  set_rate(pair, s, line_rate);
  states_.push_back(s);
}

void Congestion::set_rate(QueuePair& pair, State& s, double rate) const {
  s.rate = std::clamp(rate, std::min(s.minimum, s.line), s.line);
  pair.pace = pair.pace_cap;
  if (s.rate < s.line) pair.pace = std::max(pair.pace, static_cast<std::uint64_t>(time_of_byte(s.rate)));
  if (s.window > 0)
    pair.window = static_cast<std::uint32_t>(std::max(1.0, std::ceil(s.window * s.rate / s.line)));
}

void Congestion::before_send(std::uint32_t index, QueuePair& pair, std::uint32_t bytes, Picoseconds time) {
  State& s = states_[index];
  if (kind_ == CongestionControlKind::dcqcn && s.congested) {
    advance_dcqcn(s, time);
    if (spec_.dcqcn.byte_counter.value() > 0) {
      s.byte_count += bytes;
      if (s.byte_count >= static_cast<double>(spec_.dcqcn.byte_counter.value())) {
        s.byte_count = 0;
        raise(s);
        ++s.byte_stage;
      }
    }
    set_rate(pair, s, s.rate);
  } else if (kind_ == CongestionControlKind::infiniband) {
    forget(pair, s, time);
  } else if (keeps_averages() && pair.unacknowledged + 1 == pair.next && time >= s.heard_at + idle_) {
    renew(index, pair, pair.unacknowledged);
  }
}

Picoseconds Congestion::next_rise(std::uint32_t index, const QueuePair& pair) const {
  const State& s = states_[index];
  const Picoseconds wait = pair.next_send - pair.last_send;
  if (kind_ == CongestionControlKind::dcqcn)
    return s.congested && wait > spec_.dcqcn.increase_period.count() ? s.timer_at : kForever;
  if (kind_ == CongestionControlKind::infiniband)
    return s.index > 0 && wait > spec_.infiniband.timer.count() ? s.index_at : kForever;
  return kForever;
}

void Congestion::review(std::uint32_t index, QueuePair& pair, Picoseconds time) {
  State& s = states_[index];
  if (kind_ == CongestionControlKind::dcqcn && s.congested) {
    advance_dcqcn(s, time);
    set_rate(pair, s, s.rate);
  } else if (kind_ == CongestionControlKind::infiniband) {
    forget(pair, s, time);
  }
}

// Whether a target that timers alone have raised since that stage and value comes to the line rate at all.
// After fast recovery every step is as large as the last one or larger; without any it stays where it is.
bool Congestion::rises(const State& s, int stage, double target) const {
  constexpr int kMost = 1'000'000;  // periods: so many are as good as for ever, and take long to play
  if (s.cut_flag || s.timer_stage != stage + 1) return true;
  if (stage <= spec_.dcqcn.threshold) return spec_.dcqcn.threshold - stage < kMost;
  return (s.target - target) * kMost > s.line - s.target;
}

Picoseconds Congestion::recovers_at(std::uint32_t index) const {
  if (kind_ == CongestionControlKind::none) return 0;
  State s = states_[index];
  if (kind_ == CongestionControlKind::infiniband)
    return s.index == 0 ? 0 : s.index_at + (s.index - 1) * spec_.infiniband.timer.count();
  if (keeps_averages()) return s.heard_at + idle_;
  Picoseconds time = 0;
  while (s.congested && (s.cut_flag || s.rate < s.line)) {
    time = std::min(s.timer_at, s.cut_flag ? s.cut_at : kForever);
    if (time == kForever) return kForever;
    const int stage = s.timer_stage;
    const double target = s.target;
    advance_dcqcn(s, time);
    if (s.target < s.line && !rises(s, stage, target)) return kForever;
  }
  return time;
}

void Congestion::renew(std::uint32_t index, QueuePair& pair, std::uint32_t next) {
  if (!active()) return;
  State& s = states_[index];
  s.congested = s.alpha_flag = s.cut_flag = false;
  s.alpha = spec_.dcqcn.initial_alpha;
  s.target = s.line;
  s.timer_at = kForever;
  s.timer_stage = s.byte_stage = 0;
  s.byte_count = 0;
  s.index = 0;
  if (keeps_averages()) {
    s.alpha = 1;
    s.update_after = s.marked = s.batch = s.reduced_until = 0;
    s.reduced = false;
    s.current = s.line;
    s.utilisation = s.last_round_trip = s.gradient = 0;
    s.stage = 0;
    s.last.hops = 0;
    s.first = next;
  }
  set_rate(pair, s, s.line);
}

// The index falls by one per timer period.
void Congestion::forget(QueuePair& pair, State& s, Picoseconds time) const {
  if (s.index == 0 || time < s.index_at) return;
  const Picoseconds period = spec_.infiniband.timer.count();
  const auto steps = (time - s.index_at) / period + 1;
  s.index = static_cast<int>(std::max<Picoseconds>(s.index - steps, 0));
  s.index_at += steps * period;
  set_rate(pair, s, s.line / (1.0 + InfinibandCc::delay(s.index)));
}

void Congestion::notified(std::uint32_t index, QueuePair& pair, Picoseconds time) {
  State& s = states_[index];
  if (kind_ == CongestionControlKind::infiniband) {
    forget(pair, s, time);
    if (s.index == 0) s.index_at = time + spec_.infiniband.timer.count();
    s.index = std::min(s.index + spec_.infiniband.increase, spec_.infiniband.limit);
    set_rate(pair, s, s.line / (1.0 + InfinibandCc::delay(s.index)));
    return;
  }
  if (kind_ != CongestionControlKind::dcqcn) return;
  const Dcqcn& rules = spec_.dcqcn;
  if (rules.rules == Dcqcn::Rules::paper) {
    // Rt = Rc; Rc *= 1 - a/2; a = (1 - g) a + g; timers and stages start again.
    if (s.congested) advance_dcqcn(s, time);
    s.congested = true;
    cut(s, time);
    s.alpha = (1 - rules.g) * s.alpha + rules.g;
    s.alpha_at = time + rules.alpha_period.count();
  } else if (!s.congested) {
    s.congested = true;
    s.alpha = rules.initial_alpha;
    s.cut_flag = true;
    s.alpha_at = time + rules.alpha_period.count();
    s.cut_at = time + rules.decrease_period.count() + 1000;  // after the alpha update of the same instant
  } else {
    advance_dcqcn(s, time);
    s.alpha_flag = s.cut_flag = true;
  }
  set_rate(pair, s, s.rate);
}

void Congestion::cut(State& s, Picoseconds time) const {
  const Dcqcn& rules = spec_.dcqcn;
  if (rules.rules == Dcqcn::Rules::paper || s.timer_stage > 0 || s.byte_stage > 0) s.target = s.rate;
  s.rate = std::max(s.minimum, s.rate * (1 - std::min(s.alpha / 2, rules.max_cut)));
  s.timer_stage = s.byte_stage = 0;
  s.byte_count = 0;
  s.timer_at = time + rules.increase_period.count();
}

// One rate-increase event. Fast recovery up to F stages, then additive, then hyper increase of the target.
void Congestion::raise(State& s) const {
  const Dcqcn& rules = spec_.dcqcn;
  const int most = std::max(s.timer_stage, s.byte_stage), least = std::min(s.timer_stage, s.byte_stage);
  if (rules.rules == Dcqcn::Rules::paper) {
    if (least > rules.threshold) {
      s.target += (least - rules.threshold) * s.hyper;
    } else if (most >= rules.threshold) {
      s.target += s.additive;
    }
  } else if (most > rules.threshold) {
    s.target += s.hyper;
  } else if (most == rules.threshold) {
    s.target += s.additive;
  }
  s.target = std::min(s.target, s.line);
  s.rate = (s.rate + s.target) / 2;
  if (s.target - s.rate <= 1e-9 * s.target)
    s.rate = s.target;  // rounding may keep the mean of two neighbouring doubles at the lower one for ever
}

// Every timer expiry up to `time`, in order.
void Congestion::advance_dcqcn(State& s, Picoseconds time) const {
  const Dcqcn& rules = spec_.dcqcn;
  const Picoseconds alpha_period = rules.alpha_period.count(), cut_period = rules.decrease_period.count();
  const auto decay = [&](Picoseconds until) {
    if (s.alpha_flag && s.alpha_at <= until) {
      s.alpha = (1 - rules.g) * s.alpha + rules.g;
      s.alpha_flag = false;
      s.alpha_at += alpha_period;
    }
    if (s.alpha_at > until) return;
    const Picoseconds steps = (until - s.alpha_at) / alpha_period + 1;
    s.alpha *= std::pow(1 - rules.g, static_cast<double>(steps));
    s.alpha_at += steps * alpha_period;
  };
  for (;;) {
    const Picoseconds cut_due = s.cut_flag ? s.cut_at : kForever;
    const Picoseconds due = std::min(s.timer_at, cut_due);
    if (due > time) break;
    if (due == cut_due) {
      decay(due);
      cut(s, due);
      s.cut_flag = false;
      s.cut_at += cut_period;
    } else {
      raise(s);
      ++s.timer_stage;
      s.timer_at += rules.increase_period.count();
    }
  }
  if (rules.rules == Dcqcn::Rules::connectx && !s.cut_flag && s.cut_at <= time) {
    s.cut_at += ((time - s.cut_at) / cut_period + 1) * cut_period;
  }
  decay(time);
}

void Congestion::acknowledged(std::uint32_t index, QueuePair& pair, const Acknowledgement& ack,
                              Picoseconds time) {
  State& s = states_[index];
  s.heard_at = time;
  switch (kind_) {
    case CongestionControlKind::dcqcn:
      if (spec_.dcqcn.cnp_in_ack && ack.marked) notified(index, pair, time);
      break;
    case CongestionControlKind::hpcc:
      hpcc(pair, s, ack);
      break;
    case CongestionControlKind::timely:
      timely(pair, s, ack, time);
      break;
    case CongestionControlKind::dctcp:
      dctcp(pair, s, ack);
      break;
    case CongestionControlKind::none:
    case CongestionControlKind::infiniband:
      break;
  }
}

// u = min(q) / (B T) + txRate / B of the worst link; U its moving average with tau / T;
// W = Wc / (U / eta) + W_ai when U >= eta, else Wc + W_ai; Wc follows W once a round trip.
void Congestion::hpcc(QueuePair& pair, State& s, const Acknowledgement& ack) {
  const Telemetry& now = *ack.telemetry;
  const bool full = ack.number > s.update_after;
  if (s.update_after == 0) {
    s.last = now;
    s.update_after = pair.next;
    return;
  }
  double worst = 0, elapsed = 0;
  for (std::size_t hop = 0; hop < std::min(now.hops, s.last.hops); ++hop) {
    const auto& a = s.last.entry[hop];
    const auto& b = now.entry[hop];
    const double tau = static_cast<double>(b.time - a.time) * 1e-12;
    // Packets that took other paths, or overtook, say nothing about one port ([HPCC] compares path IDs).
    if (tau <= 0 || a.port != b.port) continue;
    const double rate = static_cast<double>(b.sent - a.sent) / tau;
    const double product = s.line * static_cast<double>(s.round_trip) * 1e-12;
    const double u = rate / b.rate + std::min(a.queue, b.queue) * s.line / b.rate / product;
    if (u > worst) worst = u, elapsed = tau;
  }
  s.last = now;
  const double trip = static_cast<double>(s.round_trip) * 1e-12;
  elapsed = std::min(elapsed, trip);
  s.utilisation = (s.utilisation * (trip - elapsed) + worst * elapsed) / trip;
  const double excess = s.utilisation / spec_.hpcc.target_utilisation;
  const bool multiply = excess >= 1 || s.stage >= spec_.hpcc.max_stage;
  set_rate(pair, s, (multiply ? s.current / std::max(excess, 1e-9) : s.current) + s.additive);
  if (full) {
    s.current = s.rate;
    s.stage = multiply ? 0 : s.stage + 1;
    s.update_after = std::max(s.update_after, pair.next);
  }
}

// Uses the gradient of the round-trip time between t_low and t_high, once per window.
void Congestion::timely(QueuePair& pair, State& s, const Acknowledgement& ack, Picoseconds time) {
  if (ack.number <= s.update_after) return;
  const Timely& rules = spec_.timely;
  const double trip = static_cast<double>(time - ack.sent);
  if (s.update_after != 0) {
    s.gradient = (1 - rules.alpha) * s.gradient + rules.alpha * (trip - s.last_round_trip);
    const double slope = s.gradient / static_cast<double>(rules.min_rtt.count());
    const double high = static_cast<double>(rules.t_high.count());
    double factor = 1;
    if (trip >= static_cast<double>(rules.t_low.count())) {
      if (trip > high) {
        factor = 1 - rules.beta * (1 - high / trip);
      } else if (slope > 0) {
        factor = std::max(0.0, 1 - rules.beta * slope);
      }
    }
    if (factor == 1) {
      set_rate(pair, s, s.rate + (s.stage < 5 ? s.additive : s.hyper));
      ++s.stage;
    } else {
      set_rate(pair, s, s.rate * factor);
      s.stage = 0;
    }
  }
  s.update_after = pair.next;
  s.last_round_trip = trip;
}

// alpha follows the share of marked packets, once per window; at most one cut by alpha / 2 per window.
void Congestion::dctcp(QueuePair& pair, State& s, const Acknowledgement& ack) {
  const double g = spec_.dctcp.g;
  s.marked += ack.marked ? 1U : 0U;
  const bool new_window = ack.number > s.update_after;
  if (new_window) {
    if (s.update_after != 0) {
      s.alpha = (1 - g) * s.alpha + g * std::min(1.0, static_cast<double>(s.marked) / std::max(s.batch, 1U));
      s.marked = 0;
      s.batch = pair.next - ack.number + 1;
    } else {
      s.batch = pair.next - s.first + 1;
    }
    s.update_after = pair.next;
  }
  if (s.reduced && ack.number > s.reduced_until) s.reduced = false;
  if (ack.marked && !s.reduced) {
    set_rate(pair, s, s.rate * (1 - s.alpha / 2));
    s.reduced = true;
    s.reduced_until = pair.next;
  }
  if (!s.reduced && new_window) set_rate(pair, s, s.rate + s.additive);
}
}  // namespace topsim::network::packet

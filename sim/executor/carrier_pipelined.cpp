#include <algorithm>
#include <limits>

#include "sim/executor/carrier.hpp"

namespace topsim::executor {
namespace {

class Pipelined final : public Carrier {
 public:
  Pipelined(const fold::System& system, network::Network& network, bool alone,
            std::unique_ptr<Contention> contention)
      : system_(system), network_(network), alone_(alone), contention_(std::move(contention)) {
    remembers_ = contention_ || std::any_of(system.activities.begin(), system.activities.end(),
                                            [](const fold::Activity& a) { return !a.detours.empty(); });
    network_.note_bottlenecks(bottlenecks_);
  }

  bool start(std::uint32_t call, std::uint32_t, std::uint32_t activity, SimTime now) override {
    go_on(call, activity, static_cast<double>(system_.activities[activity].bytes.value()), now);
    return true;
  }

  [[nodiscard]] Duration latency(std::uint32_t activity) const override {
    return latency_of(system_.activities[activity], routes_);
  }

  [[nodiscard]] bool goes_on() const override { return true; }
  void go_on(std::uint32_t call, std::uint32_t activity, double bytes, SimTime now) override {
    if (bottlenecks_.size() <= call) bottlenecks_.resize(call + 1U);
    bottlenecks_[call] = fold::System::kNone;
    network::Transfer transfer = transfer_of(call, activity);
    transfer.bytes = bytes;
    network_.start(transfer, now);
    ++transfers_;
    if (!remembers_) return;
    if (calls_.size() <= call) calls_.resize(call + 1U);
    calls_[call] = {activity, true};
    if (contention_) contention_->started(activity);
  }

  void advance(SimTime now, std::vector<std::uint32_t>& done) override {
    completed_.clear();
    network_.advance(now, completed_);
    for (const network::Completion& c : completed_) {
      const auto call = static_cast<std::uint32_t>(c.tag);
      done.push_back(call);
      if (!remembers_) continue;
      calls_[call].runs = false;
      if (contention_) contention_->ended(calls_[call].activity);
    }
  }

  void change_routes(const RouteChange& change, SimTime now) override {
    const auto each_concerned = [&](const auto& act) {
      for (std::uint32_t call = 0; call < calls_.size(); ++call)
        if (calls_[call].runs && !system_.activities[calls_[call].activity].detours.empty())
          act(call, calls_[call].activity);
    };
    if (contention_) each_concerned([&](std::uint32_t, std::uint32_t a) { contention_->ended(a); });
    routes_ = change;
    if (contention_) contention_->change_routes(change.detour);
    each_concerned([&](std::uint32_t call, std::uint32_t a) {
      network_.reroute(transfer_of(call, a), now);
      if (contention_) contention_->started(a);
    });
  }

  void scale_capacity(std::uint32_t link, double factor, SimTime now) override {
    factors_.resize(system_.links.size(), 1);
    factors_[link] = factor;
    if (varies(link))
      contention_->scale(link, factor);
    else
      network_.set_capacity(link, system_.links[link].capacity.value() * factor, now);
  }

  void settle(SimTime now) override {
    if (contention_) contention_->settle(network_, now);
  }

  // What max-min sharing gives an activity alone on its links: its bytes at the lowest limit, then its
  // latency.
  [[nodiscard]] std::optional<AloneCall> alone(std::uint32_t, std::uint32_t activity) override {
    const fold::Activity& a = system_.activities[activity];
    const auto usages = fold::Activity::view(a.usage);
    double rate = a.rate_cap > 0 ? a.rate_cap : std::numeric_limits<double>::infinity();
    double level = rate / a.weight;  // rounded as max-min sharing does
    for (const network::Usage& use : usages) {
      const double capacity = system_.links[use.link].capacity.value();
      rate = std::min(rate, capacity / use.coefficient);
      level = std::min(level, capacity / (a.weight * use.coefficient));
    }
    AloneCall call;
    const auto bytes = static_cast<double>(a.bytes.value());
    call.rate = rate;
    call.moving = from_seconds(bytes / a.weight / level);
    call.duration = call.moving + a.latency;
    for (const network::Usage& use : usages)
      call.links.push_back({use.link, {bytes * use.coefficient, rate * use.coefficient, call.moving}});
    return call;
  }

  [[nodiscard]] std::uint32_t bottleneck(std::uint32_t call) const override { return bottlenecks_[call]; }
  [[nodiscard]] double least_efficiency() const override { return contention_ ? contention_->least() : 1; }
  [[nodiscard]] std::optional<Crowd> crowd(SimTime end) const override {
    return contention_ ? contention_->longest_crowd(end) : std::nullopt;
  }
  [[nodiscard]] bool varies(std::uint32_t link) const override {
    return contention_ && contention_->governs(link);
  }

 private:
  struct CallState {
    std::uint32_t activity = 0;
    bool runs = false;
  };

  [[nodiscard]] network::Transfer transfer_of(std::uint32_t call, std::uint32_t activity) const {
    const fold::Activity& a = system_.activities[activity];
    network::Transfer transfer;
    transfer.bytes = static_cast<double>(a.bytes.value());
    transfer.usage = fold::Activity::view(a.usage);
    if (alone_) transfer.own_usage = fold::Activity::view(a.own_usage);
    transfer.weight = a.weight;
    transfer.latency = a.latency;
    transfer.tag = call;
    if (const fold::Activity::Detour* detour = detour_of(a, routes_)) {
      transfer.usage = fold::Activity::view(detour->usage);
      if (alone_) transfer.own_usage = fold::Activity::view(detour->own_usage);
      transfer.latency = detour->latency;
    }
    transfer.rate_cap =
        collective::slowed(a.rate_cap, a.cap_parts, slowdown(alone_ ? transfer.own_usage : transfer.usage));
    return transfer;
  }

  // By what factor faults have slowed its tightest link. A call that runs when a fault comes keeps its rate
  // cap; only the link's capacity slows it.
  [[nodiscard]] double slowdown(std::span<const network::Usage> usages) const {
    if (factors_.empty()) return 1;
    double healthy = std::numeric_limits<double>::infinity(), now = healthy;
    for (const network::Usage& use : usages) {
      const double rate = system_.links[use.link].capacity.value() / use.coefficient;
      healthy = std::min(healthy, rate);
      now = std::min(now, rate * factors_[use.link]);
    }
    return now > 0 && now < healthy ? healthy / now : 1;
  }

  const fold::System& system_;
  network::Network& network_;
  bool alone_;
  std::unique_ptr<Contention> contention_;
  bool remembers_ = false;       // whether running calls are recorded in calls_
  RouteChange routes_;           // now in force
  std::vector<double> factors_;  // what faults leave of each link class; empty before the first
  std::vector<CallState> calls_;
  std::vector<network::Completion> completed_;
  std::vector<network::LinkIndex> bottlenecks_;  // by call
};
}  // namespace

std::unique_ptr<Carrier> pipelined_carrier(const fold::System& system, network::Network& network, bool alone,
                                           std::unique_ptr<Contention> contention) {
  return std::make_unique<Pipelined>(system, network, alone, std::move(contention));
}
}  // namespace topsim::executor

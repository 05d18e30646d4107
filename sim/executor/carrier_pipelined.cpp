#include <algorithm>
#include <limits>

#include "sim/executor/carrier.hpp"

namespace topsim::executor {
namespace {

class Pipelined final : public Carrier {
 public:
  Pipelined(const fold::System& system, network::Network& network, bool alone,
            std::unique_ptr<Contention> contention)
      : system_(system), network_(network), alone_(alone), contention_(std::move(contention)) {}

  void start(std::uint32_t call, std::uint32_t, std::uint32_t activity, SimTime now) override {
    const fold::Activity& a = system_.activities[activity];
    network::Transfer transfer;
    transfer.bytes = static_cast<double>(a.bytes.value());
    transfer.usage = fold::Activity::view(alone_ ? a.own_usage : a.usage);
    transfer.rate_cap = a.rate_cap;
    transfer.weight = a.weight;
    transfer.latency = a.latency;
    transfer.tag = call;
    network_.start(transfer, now);
    ++transfers_;
    if (!contention_) return;
    if (activity_of_.size() <= call) activity_of_.resize(call + 1U);
    activity_of_[call] = activity;
    contention_->started(activity, network_, now);
  }

  void advance(SimTime now, std::vector<std::uint32_t>& done) override {
    completed_.clear();
    network_.advance(now, completed_);
    for (const network::Completion& c : completed_) {
      const auto call = static_cast<std::uint32_t>(c.tag);
      done.push_back(call);
      if (contention_) contention_->ended(activity_of_[call], network_, now);
    }
  }

  // What max-min sharing gives an activity that is alone: its bytes at its lowest limit, then its latency.
  [[nodiscard]] std::optional<AloneCall> alone(std::uint32_t, std::uint32_t activity) override {
    const fold::Activity& a = system_.activities[activity];
    const auto usages = fold::Activity::view(a.usage);
    double rate = a.rate_cap > 0 ? a.rate_cap : std::numeric_limits<double>::infinity();
    for (const network::Usage& use : usages)
      rate = std::min(rate, system_.links[use.link].capacity.value() / use.coefficient);
    AloneCall call;
    const auto bytes = static_cast<double>(a.bytes.value());
    call.moving = from_seconds(bytes / rate);
    call.duration = call.moving + a.latency;
    for (const network::Usage& use : usages)
      call.links.push_back({use.link, {bytes * use.coefficient, rate * use.coefficient, call.moving}});
    return call;
  }

  [[nodiscard]] double least_efficiency() const override { return contention_ ? contention_->least() : 1; }
  [[nodiscard]] bool varies(std::uint32_t link) const override {
    return contention_ && contention_->governs(link);
  }

 private:
  const fold::System& system_;
  network::Network& network_;
  bool alone_;
  std::unique_ptr<Contention> contention_;
  std::vector<std::uint32_t> activity_of_;  // by call
  std::vector<network::Completion> completed_;
};
}  // namespace

std::unique_ptr<Carrier> pipelined_carrier(const fold::System& system, network::Network& network, bool alone,
                                           std::unique_ptr<Contention> contention) {
  return std::make_unique<Pipelined>(system, network, alone, std::move(contention));
}
}  // namespace topsim::executor

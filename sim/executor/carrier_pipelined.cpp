#include "sim/executor/carrier.hpp"

namespace topsim::executor {
namespace {

class Pipelined final : public Carrier {
 public:
  Pipelined(const fold::System& system, network::Network& network, bool alone)
      : system_(system), network_(network), alone_(alone) {}

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
  }

  void advance(SimTime now, std::vector<std::uint32_t>& done) override {
    completed_.clear();
    network_.advance(now, completed_);
    for (const network::Completion& c : completed_) done.push_back(static_cast<std::uint32_t>(c.tag));
  }

 private:
  const fold::System& system_;
  network::Network& network_;
  bool alone_;
  std::vector<network::Completion> completed_;
};
}  // namespace

std::unique_ptr<Carrier> pipelined_carrier(const fold::System& system, network::Network& network,
                                           bool alone) {
  return std::make_unique<Pipelined>(system, network, alone);
}
}  // namespace topsim::executor

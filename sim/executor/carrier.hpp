// Between calls and the network: a call becomes one activity (pipelined), or its steps one message each.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/collective/collective.hpp"
#include "sim/executor/contention.hpp"
#include "sim/executor/options.hpp"
#include "sim/fold/fold.hpp"
#include "sim/network/network.hpp"

namespace topsim::executor {

// A call that has its links to itself; it is the same every time.
struct AloneCall {
  struct Share {
    std::uint32_t link;
    network::LinkRecord record;
  };
  Duration duration{};
  Duration moving{};  // part of it: bytes are moving, at an even rate for reports
  double rate = 0;    // where the call can go on in the network: bytes/s meanwhile
  std::vector<Share> links;
  std::uint64_t transfers = 1;
};

// Ranks that must talk cannot reach each other any more; the message says which, and why.
class CutOff : public ConfigError {
  using ConfigError::ConfigError;
};

// The activity on the routes in force; null: as on the first ones. Throws CutOff where its members have no
// path there and will not have one again.
[[nodiscard]] inline const fold::Activity::Detour* detour_of(const fold::Activity& activity,
                                                             const RouteChange& routes) {
  const fold::Activity::Detour* detour = activity.on(routes.detour);
  if (detour != nullptr && routes.last && !detour->cut.empty()) throw CutOff(detour->cut, "");
  return detour;
}
[[nodiscard]] inline Duration latency_of(const fold::Activity& activity, const RouteChange& routes) {
  const fold::Activity::Detour* detour = detour_of(activity, routes);
  return detour != nullptr ? detour->latency : activity.latency;
}

class Carrier {
 public:
  virtual ~Carrier() = default;
  // advance() returns `call` in `done` when its last byte has arrived. False: it has nothing to send.
  [[nodiscard]] virtual bool start(std::uint32_t call, std::uint32_t group, std::uint32_t activity,
                                   SimTime now) = 0;
  // What a call of 0 bytes takes, by the routes in force; it does not meet others, so that no network knows
  // it.
  [[nodiscard]] virtual Duration latency(std::uint32_t activity) const = 0;
  // Whether a call can begin in the middle; go_on() begins one with so many bytes left.
  [[nodiscard]] virtual bool goes_on() const { return false; }
  virtual void go_on(std::uint32_t /*call*/, std::uint32_t /*activity*/, double /*bytes*/, SimTime /*now*/) {}
  virtual void advance(SimTime now, std::vector<std::uint32_t>& done) = 0;
  // All calls of this instant have begun or ended; the network is asked for its next event after this.
  virtual void settle(SimTime /*now*/) {}
  // Other routes hold from now on, also for running calls. Throws CutOff for a call that has no path and will
  // not have one again; from then on start() does so too.
  virtual void change_routes(const RouteChange& change, SimTime now) = 0;
  // A fault leaves a link class `factor` of its capacity.
  virtual void scale_capacity(std::uint32_t link, double factor, SimTime now) = 0;
  [[nodiscard]] std::uint64_t transfers() const { return transfers_; }
  // The call when nothing else uses its links; nullopt: only the network can tell.
  [[nodiscard]] virtual std::optional<AloneCall> alone(std::uint32_t group, std::uint32_t activity) = 0;
  // What a call became on the wire; null: what NCCL chose for it.
  [[nodiscard]] virtual const collective::Choice* choice(std::uint32_t /*activity*/) const { return nullptr; }
  // The link class that limited the call at its end; a number beyond them: its own cap; kNone: not known.
  [[nodiscard]] virtual std::uint32_t bottleneck(std::uint32_t /*call*/) const { return fold::System::kNone; }
  [[nodiscard]] virtual double least_efficiency() const { return 1; }  // of links that flows met on
  [[nodiscard]] virtual std::optional<Crowd> crowd(SimTime /*end*/) const { return std::nullopt; }
  // What the carrier does not model of the calls, one sentence each.
  [[nodiscard]] virtual std::vector<std::string> remarks() const { return {}; }
  // Whether what a link class can carry depends on what runs.
  [[nodiscard]] virtual bool varies(std::uint32_t /*link*/) const { return false; }

 protected:
  std::uint64_t transfers_ = 0;
};

// Every call is one activity over link classes. `alone`: without the share of its siblings (for models that
// do not share links). `contention` may be null.
[[nodiscard]] std::unique_ptr<Carrier> pipelined_carrier(const fold::System& system,
                                                         network::Network& network, bool alone,
                                                         std::unique_ptr<Contention> contention);
// What becomes of the messages of a step plan.
struct StepForm {
  bool hops = false;          // one message for all that goes from one rank to another; implies plain
  bool plain = false;         // of weight 1
  bool fluid_nvlink = false;  // those that stay on NVLink share it as the fluid model says
};
// Every call is its step plan. REQUIRES: system is unfolded with all links, so that link classes are the
// topology's links.
[[nodiscard]] std::unique_ptr<Carrier> step_carrier(const program::Program& program,
                                                    const fold::System& system,
                                                    const collective::NcclModel& nccl,
                                                    network::Network& network, const RunOptions& options,
                                                    const StepForm& form);
}  // namespace topsim::executor

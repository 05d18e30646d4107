// The interface of the network models. They differ only in how concurrent transfers share links; all have the
// same links and the same clock.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/units.hpp"

namespace topsim::network {

// A link as the network sees it: possibly a whole class of links that behave alike (folding), so it has ids
// of its own.
using LinkIndex = std::uint32_t;
struct Usage {
  LinkIndex link;
  // Bytes on the link per unit of progress, already times the class's multiplicity n(L,A).
  double coefficient;
};

// A transfer or a pipelined collective (README.md beside this file). Units of progress are bytes.
struct Transfer {
  double bytes = 0;              // work W
  std::span<const Usage> usage;  // copied by start() unless the model documents otherwise
  double rate_cap = 0;           // bytes/s; 0 = none
  double weight = 1;
  Duration latency{};     // added after the last byte: completion = end of work + latency
  std::uint64_t tag = 0;  // given back on completion

  // The packet model, which routes every packet of a point-to-point message itself: its ends.
  DeviceId from{}, to{};
  std::uint64_t connection = 0;
  std::uint32_t slot = 0;         // messages of one connection keep their order within a slot only
  DeviceId from_nic{}, to_nic{};  // where the connection names them
  bool allow_pxn = true;          // where it does not
  // Links in order, where an end is a switch and no route is known.
  std::span<const LinkIndex> way{};

  // The flow model: transfers of one line are sent one after the other, while latencies overlap; 0: none.
  std::uint64_t line = 0;

  // The analytic model: where `usage` includes its siblings' work (folding), its own, which alone sets its
  // rate. Empty: usage.
  std::span<const Usage> own_usage{};
};

struct Completion {
  std::uint64_t tag;
  SimTime time;
};

// What a link did, for reports. Time integrals are exact per rate interval.
struct LinkRecord {
  double bytes = 0;
  double peak_rate = 0;  // bytes/s
  Duration busy{};       // time with a rate above zero
};

class Network {
 public:
  virtual ~Network() = default;
  // REQUIRES: time never runs backwards over calls.
  virtual void start(const Transfer& transfer, SimTime now) = 0;
  // Time of the next thing that happens inside, kNever when idle.
  [[nodiscard]] virtual SimTime next_event() = 0;
  // The same for a caller that starts nothing before `horizon` unless something completes: a model with many
  // small events may go ahead to its first completion or the horizon, and return that.
  [[nodiscard]] virtual SimTime next_event_before([[maybe_unused]] SimTime horizon) { return next_event(); }
  // Advances to `now` (<= next_event()) and appends what completed at or before it, in (time, start order).
  virtual void advance(SimTime now, std::vector<Completion>& completed) = 0;
  virtual void set_capacity(LinkIndex link, double bytes_per_second, SimTime now) = 0;
  // From now on, when the last byte of a transfer leaves, the link that limited it is written to `by_tag` at
  // its tag; a number beyond the links is its rate cap. Only models that share links write there.
  virtual void note_bottlenecks(std::vector<LinkIndex>& /*by_tag*/) {}
  // The rest of the running transfer with this tag continues as `again` says (usage, cap, latency); no effect
  // where its last byte has left. REQUIRES: tags of running transfers differ.
  virtual void reroute(const Transfer& again, SimTime now) = 0;
  // For models that find paths themselves: from now on they use those of another router that they were given,
  // also for running transfers.
  virtual void take_routes(std::uint32_t /*detour*/, SimTime /*now*/) {}
  // Models that skip repetitions catch up, so that record() is exact and not interpolated.
  virtual void settle() {}
  // Byte integrals up to the last advance().
  [[nodiscard]] virtual LinkRecord record(LinkIndex link) const = 0;
  [[nodiscard]] virtual std::uint64_t events() const = 0;
};
}  // namespace topsim::network

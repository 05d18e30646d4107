// How a run is executed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/units.hpp"
#include "sim/network/congestion_table.hpp"
#include "sim/network/factory.hpp"
#include "sim/network/packet/spec.hpp"

namespace topsim::topology {
class Router;
}
namespace topsim::collective {
class NcclModel;
}

namespace topsim::executor {

// What contention needs to know of an accelerator model.
struct AcceleratorFacts {
  int compute_units = 0;  // SMs or CUs; 0: communication takes none
  BytesPerSecond memory_bandwidth{};
  friend bool operator==(const AcceleratorFacts&, const AcceleratorFacts&) = default;
};

// A link's capacity is multiplied by `factor` from `at` on (faults; 1 restores it).
struct CapacityChange {
  SimTime at;
  LinkId link;
  double factor;
};

// The routes when some links have failed.
struct Detour {
  std::shared_ptr<const topology::Router> router;
  std::shared_ptr<const collective::NcclModel> nccl;
};
// From `at` on the routes of a detour hold, or the first ones again.
struct RouteChange {
  static constexpr std::uint32_t kFirst = 0xffffffffU;
  SimTime at;
  std::uint32_t detour = kFirst;  // index of RunOptions::detours
  bool last = false;              // no others follow
};

// An accelerator computes at `pace` of its speed from `at` on (throttling; 1 restores it).
struct PaceChange {
  SimTime at;
  RankId rank;
  double pace;
};

// The form in which the network carries a collective.
enum class CollectiveForm : std::uint8_t {
  pipelined,  // one activity that loads all its links in lock-step
  steps,      // every chunk of every step is a message
  hops,       // every hop is one message of all its bytes, at the rate of all its channels
};
[[nodiscard]] std::string_view name_of(CollectiveForm form);
// What `pipelined` becomes on a model, which may know messages only.
[[nodiscard]] CollectiveForm usual_form(const network::Model& model);

struct RunOptions {
  std::string network{network::name_of(network::kDefaultModel)};  // of network::models()
  network::packet::PacketSpec packet;                             // of the packet model
  CollectiveForm collectives = CollectiveForm::pipelined;
  int warmup = 1, steps = 2;
  std::uint64_t seed = 1;
  // What flows lose where they meet, for the flow model with pipelined collectives; null: nothing.
  std::shared_ptr<const network::CongestionTable> congestion;
  network::Bound congestion_bound = network::Bound::middle;
  bool fold = true;
  std::function<void()> poll;  // called now and then while ranks are folded; what it throws ends that
  bool timeline = false;       // keep every op's interval; REQUIRES explained
  // Also waits and their reasons, ranks, links and the critical path. False: only step times, with the same
  // values.
  bool explained = true;
  std::vector<std::pair<RankId, double>> slow_ranks;  // compute takes `second` times longer
  std::vector<CapacityChange> capacity_changes;
  std::vector<PaceChange> pace_changes;
  std::vector<Detour> detours;
  std::vector<RouteChange> route_changes;      // by time
  std::vector<AcceleratorFacts> accelerators;  // by Device::model; empty: no contention
};
}  // namespace topsim::executor

// Paths between two fabric ports (NICs, or accelerators with a port of their own).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "topology/routes.hpp"

namespace topsim::topology {

class FabricRoutes {
 public:
  virtual ~FabricRoutes() = default;
  // Which paths adaptive routers take: `loaded` also detours through third groups of a dragonfly.
  enum class Paths : std::uint8_t { shortest, loaded };
  // Appends links, latency and switches. False, nothing appended: no path.
  virtual bool append(DeviceId from, DeviceId to, std::uint64_t connection, Paths paths,
                      Route& out) const = 0;
  // Links over which routes divide always together, with what each takes; no link is in two.
  [[nodiscard]] virtual std::vector<std::vector<LinkShare>> bundles() const { return {}; }
  // Leaf and pod each name a pair of bundles: pair n is bundles 2n and 2n + 1. A route between two leaves
  // takes bundles of these leaves and of their pods only; which ones depends on whether the leaves, or the
  // pods, are the same. None: routes of this leaf depend on more.
  struct LeafBundles {
    std::uint32_t leaf, pod;  // pod: Router::kNowhere where there is none
    std::array<Duration, 4> latencies;
  };
  [[nodiscard]] virtual std::optional<LeafBundles> leaf_bundles(DeviceId /*leaf*/) const {
    return std::nullopt;
  }
  // The same route as append() finds, with bundle b as link first_bundle + b.
  virtual bool sketch(DeviceId from, DeviceId to, std::uint64_t connection, Paths paths,
                      LinkId /*first_bundle*/, Route& out) const {
    return append(from, to, connection, paths, out);
  }
};

// One choice out of `n`, by policy. `key` is the destination's ordinal (static) or the hash of the
// connection.
struct PathChoice {
  Routing routing = Routing::adaptive;
  std::uint64_t destination = 0;
  std::uint64_t hash = 0;
  // Choice number `level` on the way. Static: digit `level` of the destination in mixed radix (D-mod-K).
  [[nodiscard]] std::uint32_t pick(std::uint32_t n, std::uint32_t level);
  [[nodiscard]] bool even() const { return routing == Routing::adaptive || routing == Routing::spray; }
};
[[nodiscard]] PathChoice choose(Routing routing, std::uint64_t seed, DeviceId from, DeviceId to,
                                std::uint64_t lid, std::uint64_t connection);

// Cables between ports and switches, both ways; shared by the implementations.
class FabricPorts {
 public:
  // `cables`: at least all links to and from switches, ascending.
  FabricPorts(const Topology& topology, const std::vector<bool>& dead, std::span<const LinkId> cables);
  struct Cable {
    LinkId up, down;  // port to switch, switch to port
    DeviceId at;      // the switch
    Duration up_latency, down_latency;
  };
  [[nodiscard]] std::span<const Cable> cables(DeviceId port) const {
    const std::uint32_t o = ordinal_[port.index()];
    if (o == DeviceId::kNone) return {};
    return cables_of(o);
  }
  // The same port by port, of those that have any.
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(begin_.size() - 1); }
  [[nodiscard]] std::span<const Cable> cables_of(std::uint32_t port) const {
    return std::span(cables_).subspan(begin_[port], begin_[port + 1] - begin_[port]);
  }
  // Ports counted leaf by leaf, as a subnet manager hands out LIDs: neighbours on a leaf differ by one.
  [[nodiscard]] std::uint32_t lid(DeviceId port) const { return lid_[ordinal_[port.index()]]; }

 private:
  std::vector<std::uint32_t> ordinal_, begin_, lid_;
  std::vector<Cable> cables_;
};

// Structural, without search; nullptr when the fabric is no regular folded Clos (or a link of it is dead).
[[nodiscard]] std::unique_ptr<FabricRoutes> make_clos_routes(const Topology& topology,
                                                             const FabricPorts& ports, std::uint64_t seed,
                                                             const std::vector<bool>& dead,
                                                             std::span<const LinkId> cables);
// Any graph: breadth-first distances to each destination switch, kept once asked for. Adaptive routing takes
// account of links that are slower than others like them.
[[nodiscard]] std::unique_ptr<FabricRoutes> make_graph_routes(const Topology& topology,
                                                              const FabricPorts& ports, std::uint64_t seed,
                                                              const std::vector<bool>& dead,
                                                              std::span<const SlowLink> slow);
}  // namespace topsim::topology

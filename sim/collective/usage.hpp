// Collects the usage of an activity on each link, or on each stretch of its routes (topology/routes.hpp), in
// bytes per byte of the collective.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/collective/collective.hpp"
#include "sim/collective/link_totals.hpp"
#include "sim/collective/sockets.hpp"

namespace topsim::collective {

class UsageBuilder {
 public:
  enum class Grain { links, stretches };
  // `stop`: once it is true, what is added throws Stopped. May be null.
  explicit UsageBuilder(const topology::Router& router, Grain grain = Grain::links,
                        const std::atomic<bool>* stop = nullptr)
      : router_(router), grain_(grain), stop_(stop) {}
  void end_if_stopped() const {
    if (stop_ != nullptr && stop_->load(std::memory_order_relaxed)) throw Stopped{};
  }

  // `coefficient` bytes along the route for every byte of the collective. The longest latency
  // through the fabric is kept. Throws
  // ConfigError where there is no way.
  void add(const topology::RouteQuery& query, double coefficient) {
    end_if_stopped();
    if (watches_hosts_ && over_fabric(query))
      socket_hops_.push_back({query.from, query.to, coefficient, connections_});
    if (grain_ == Grain::stretches) {
      if (const auto [trip, from, to] = router_.trip(query); trip != nullptr) {
        trips_.push_back({trip, from, to, coefficient});
        if (trip->crosses_fabric) longest_ = std::max(longest_, trip->latency);
        return;
      }
    }
    if (grain_ == Grain::links)
      router_.route(query, route_);
    else
      router_.sketch(query, route_);
    for (const topology::LinkShare& use : route_.links) add(use.link, use.share * coefficient);
    if (!route_.reachable() && query.from != query.to)
      throw ConfigError({Problem{{},
                                 "topology.fabric",
                                 router_.why_unreachable(query),
                                 {},
                                 "the collective's channels join these; kind fat-tree joins all NICs",
                                 {}}});
    note_latency(route_);
  }
  void note_latency(const topology::Route& route) {
    if (route.crosses_fabric) longest_ = std::max(longest_, route.latency);
  }
  // Between boxes, by the NICs that a channel names or, where they are joined, by all.
  void add_hop(const topology::RouteQuery& query, double coefficient) {
    if (query.from_nic.valid() && query.to_nic.valid()) return add(query, coefficient);
    topology::RouteQuery any = query;
    any.from_nic = any.to_nic = DeviceId{};
    divide(any, coefficient, nics_between(query.from, query.to));
  }
  // `count` channels together, whose numbers are `apart` from each other: each has a connection of its own.
  void add_channels(topology::RouteQuery query, double coefficient, int count, int apart) {
    if (!by_connection() || topology().device(query.from).node == topology().device(query.to).node)
      return add_hop(query, coefficient);
    for (int i = 0; i < count; ++i, query.connection += static_cast<std::uint64_t>(apart))
      add_hop(query, coefficient / count);
  }
  // The same over the connections that NCCL opens to a peer.
  void add_message(const topology::RouteQuery& query, double coefficient) {
    divide(query, coefficient, connections(query.from, query.to));
  }
  // Messages that follow are between this many ranks, over a communicator of so many channels.
  void share_channels(std::uint32_t ranks, int channels) {
    ranks_ = ranks;
    channels_ = std::bit_ceil(static_cast<std::uint32_t>(std::max(channels, 1)));
  }
  // To a peer in another box NCCL opens a channel for each NIC that belongs to the two ends alone and for
  // every 14 GB/s of them (NCCL_P2P_PER_CHANNEL_NET_BW), up to a power of two, and fewer where eight ranks to
  // a channel would not find room (NCCL 2.30 graph/paths.cc, ncclTopoGetNchannels,
  // ncclTopoComputeP2pChannels). Where no route depends on its connection, more of them would take the same
  // path.
  [[nodiscard]] std::uint32_t connections(DeviceId from, DeviceId to) const {
    constexpr double kOfOne = 14;  // GB/s
    const std::uint32_t nics = nics_between(from, to);
    if (topology().device(from).node == topology().device(to).node || !by_connection()) return nics;
    const double whole = std::floor(nics * router_.nic_rate(from).value() / 1e9);
    const std::uint32_t wanted =
        std::bit_ceil(std::max(nics, static_cast<std::uint32_t>(std::ceil(whole / kOfOne))));
    std::uint32_t opened = std::min(wanted, channels_);
    while (opened > 1 && opened * ((ranks_ + 7) / 8) > channels_) opened /= 2;
    return std::max(opened, nics);
  }
  void add(LinkId link, double coefficient, std::uint32_t times = 1) {
    if (grain_ == Grain::stretches) {
      stretches_.insert(stretches_.end(), times, {link, coefficient});
      return;
    }
    links_.add(link, coefficient, times);
  }
  // Whether a route may stand for others of its kind: only links are counted, and no connection matters.
  [[nodiscard]] bool counts_alike() const {
    return grain_ == Grain::links && !watches_hosts_ && !by_connection();
  }

  // Over TCP: records which GPU sends to which across nodes, and over how many connections.
  void watch_hosts() { watches_hosts_ = true; }
  void open(int connections) { connections_ = connections; }
  [[nodiscard]] const std::vector<SocketHop>& socket_hops() const { return socket_hops_; }

  // Repeats what was added between two marks, cheaper than asking the router again: where no route depends on
  // its connection, channels that visit the same ports take the same paths. For stretches only.
  struct Mark {
    std::size_t stretches, trips, socket_hops;
  };
  [[nodiscard]] Mark mark() const { return {stretches_.size(), trips_.size(), socket_hops_.size()}; }
  [[nodiscard]] bool repeats() const { return grain_ == Grain::stretches && !by_connection(); }
  [[nodiscard]] bool by_connection() const {
    return topology().routing == topology::Routing::ecmp || router_.turns() > 1;
  }
  void repeat(Mark begin, Mark end) {
    for (std::size_t i = begin.stretches; i < end.stretches; ++i) stretches_.push_back(stretches_[i]);
    for (std::size_t i = begin.trips; i < end.trips; ++i) trips_.push_back(trips_[i]);
    for (std::size_t i = begin.socket_hops; i < end.socket_hops; ++i) socket_hops_.push_back(socket_hops_[i]);
  }

  [[nodiscard]] const topology::Router& router() const { return router_; }
  [[nodiscard]] const topology::Topology& topology() const { return router_.topology(); }
  [[nodiscard]] Duration fabric_latency() const { return longest_; }

  // REQUIRES: stretches. What was added, one by one.
  [[nodiscard]] SketchedCalls::Route take_sketch() { return {std::move(stretches_), std::move(trips_)}; }

  // REQUIRES: whole links. `wire` bytes travel for each byte of payload (LinkTotals::finish).
  void finish(double wire, std::vector<topology::LinkShare>& out) { links_.finish(wire, out); }

 private:
  // NVLink joins trays of a domain without a NIC.
  [[nodiscard]] bool over_fabric(const topology::RouteQuery& query) const {
    if (topology().device(query.from).node == topology().device(query.to).node) return false;
    if (query.from_nic.valid() || query.to_nic.valid()) return true;
    const std::uint32_t domain = router_.scale_up_domain(query.from);
    return domain == DeviceId::kNone || domain != router_.scale_up_domain(query.to);
  }

  [[nodiscard]] std::uint32_t nics_between(DeviceId from, DeviceId to) const {
    const topology::Topology& t = topology();
    return t.device(from).node == t.device(to).node ? 1
                                                    : std::max(router_.nics_of(from), router_.nics_of(to));
  }
  void divide(topology::RouteQuery query, double coefficient, std::uint32_t parts) {
    const std::uint64_t first = query.connection * parts;
    for (std::uint32_t part = 0; part < parts; ++part) {
      query.connection = first + part;
      add(query, coefficient / parts);
    }
  }

  const topology::Router& router_;
  Grain grain_;
  const std::atomic<bool>* stop_;
  topology::Route route_;
  LinkTotals links_;
  std::vector<SketchedCalls::Use> stretches_;
  std::vector<SketchedCalls::Trip> trips_;
  Duration longest_{};
  bool watches_hosts_ = false;
  int connections_ = 1;
  std::uint32_t ranks_ = 2, channels_ = 1;
  std::vector<SocketHop> socket_hops_;
};
}  // namespace topsim::collective

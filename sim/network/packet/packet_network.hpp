// The packet model as a network::Network: every Transfer is a message on queue pairs between its ends;
// topology::Router says which links it may use.
//
// Links: Ethernet and InfiniBand links send framed packets at the line rate, under PFC or credits; NVLink,
// PCIe and the others send payload at their usable capacity, with credits for their round trip. Latency: the
// links' own (propagation and the far end) come with the packets; what Transfer::latency holds beyond the sum
// over the path (NIC and host base) is added after the last byte.
//
// PXN: the sender writes into a buffer of the accelerator beside the NIC, where the queue pair begins
// (NVIDIA, "Doubling all2all Performance with NCCL 2.12"): what waits there for a full path holds up nothing
// on NVLink. The way there is the fluid's, the rest is packets, and the message has arrived when both parts
// have.
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <tuple>

#include "sim/network/flow.hpp"
#include "sim/network/network.hpp"
#include "sim/network/packet/episodes.hpp"
#include "topology/routes.hpp"

namespace topsim::network::packet {

// The path choice of packets on a fabric with this routing, where the specification leaves it open.
[[nodiscard]] PathChoice usual_path(topology::Routing routing);

// At what rate a port sends frames: that of the line or, where capacity says less than headers leave of it
// (a NIC's losses, a figure of the user), that at which full frames carry this capacity.
[[nodiscard]] BytesPerSecond wire_rate(const topology::Link& link, const Framing& framing);

// Ports in the order of the topology's links. Throws ConfigError for a link without a reverse link.
[[nodiscard]] Graph graph_of(const topology::Topology& topology, const PacketSpec& spec);

class PacketNetwork final : public Network {
 public:
  // REQUIRES: router outlives the network; LinkIndex is the topology's LinkId. `skip_repeats`: repetitions
  // are not simulated again (episodes.hpp); the answer is the same either way.
  PacketNetwork(const topology::Router& router, const PacketSpec& spec, bool skip_repeats = true);

  // For interruptions: once it returns true, next_event_before() may return before anything has happened, and
  // nothing more happens.
  void stop_when(std::function<bool()> stopped) { messages_->stop_when(std::move(stopped)); }

  // A router for take_routes(), which counts them from 0. REQUIRES: it outlives the network and knows the
  // same topology.
  void add_detour(const topology::Router& router) { detours_.push_back(&router); }

  // REQUIRES: transfer.from and .to are set. Throws ConfigError when there is no path between them.
  void start(const Transfer& transfer, SimTime now) override;
  [[nodiscard]] SimTime next_event() override;
  [[nodiscard]] SimTime next_event_before(SimTime horizon) override;
  void advance(SimTime now, std::vector<Completion>& completed) override;
  void settle() override { messages_->settle(); }
  void set_capacity(LinkIndex link, double bytes_per_second, SimTime now) override;
  // Channels find their paths themselves, when routes change.
  void reroute(const Transfer&, SimTime) override {}
  // Queue pairs with another path now move to it; those without any wait where they are.
  void take_routes(std::uint32_t detour, SimTime now) override;
  [[nodiscard]] LinkRecord record(LinkIndex link) const override;
  [[nodiscard]] std::uint64_t events() const override;
  [[nodiscard]] std::uint64_t packets() const;
  [[nodiscard]] const Episodes& messages() const;  // with the records of the last advance()
  // What a report should say about the run: deadlocks, drops, pauses. One sentence each.
  [[nodiscard]] std::vector<std::string> findings() const;

 private:
  struct Ends {
    const Channel* channel = nullptr;
    bool scale_up = false;     // only NVLink
    bool named = false;        // the transfer names its path
    std::vector<Usage> usage;  // of NVLink: the whole path, or to the accelerator beside the NIC
  };
  struct Pending {
    SimTime time;
    std::uint64_t order, tag;
    bool operator>(const Pending& other) const {
      return std::tie(time, order) > std::tie(other.time, other.order);
    }
  };

  // The key of a transfer's channel.
  struct Key {
    DeviceId from, to, from_nic, to_nic;
    bool allow_pxn;
    std::uint64_t connection;
    std::uint32_t slot;
    double rate_cap;
    std::vector<LinkIndex> way;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  const Ends& ends_of(const Transfer& transfer);
  [[nodiscard]] const topology::Router& routes() const;
  // False: no path by this router.
  bool find_ways(const topology::Router& router, const Key& key, Ends& ends,
                 std::vector<Connection>& connections) const;
  void open_way(const Transfer& transfer, Ends& ends);
  void collect();
  void complete(Pending done);
  [[nodiscard]] std::string buffers() const;  // of the switches, by model, for people

  const topology::Router& router_;
  std::vector<const topology::Router*> detours_;
  std::size_t detour_ = SIZE_MAX;  // in force; beyond detours_: the first router
  const PacketSpec spec_;
  const Graph graph_;
  std::unique_ptr<Episodes> messages_;
  FlowNetwork scale_up_;
  std::vector<Completion> completed_;
  std::map<Key, Ends> ends_;
  std::priority_queue<Pending, std::vector<Pending>, std::greater<>> pending_;
  std::map<std::uint64_t, SimTime> halves_;  // by tag, of messages in two parts: when one has arrived
  std::uint64_t started_ = 0;
};
}  // namespace topsim::network::packet

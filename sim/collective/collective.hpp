// What a collective becomes on the wire, as NCCL 2.30 would do it: first the choice (algorithm, protocol,
// channels), then the lowering of that choice either to one fluid activity (usage per link) or to messages
// step by step.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/units.hpp"
#include "sim/collective/kinds.hpp"
#include "topology/routes.hpp"

namespace topsim::collective {

enum class Algorithm : std::uint8_t {
  tree,
  ring,
  collnet_direct,
  collnet_chain,
  nvls,
  nvls_tree,
  pat,
  direct,  // send/recv, all-to-all
  torus,   // not NCCL's: axis after axis, all axes in use at once (torus.hpp)
  one_shot,
  two_shot,  // kernels of serving engines: each GPU reads all others in full, or sums an n-th first
  multimem   // or has the NVSwitch sum it (serving.hpp)
};
enum class Protocol : std::uint8_t { ll, ll128, simple };
[[nodiscard]] std::string_view name_of(Algorithm algorithm);  // "Tree", "Ring", "NVLS", ... NCCL's spelling
[[nodiscard]] std::string_view name_of(Protocol protocol);    // "LL", "LL128", "Simple"

struct Choice {
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
  std::uint16_t channels = 1;
  Duration model_time{};  // NCCL's own estimate, what its tuner ranks by
};

// NCCL_P2P_LEVEL: up to which distance GPUs of a box write to each other; further ones go through host
// memory.
enum class PeerLevel : std::uint8_t { nvl, pix, pxb, phb, sys };

// Forced by `network.nccl` or by `bench --algorithm`; unset = the tuner chooses.
struct Overrides {
  std::optional<Algorithm> algorithm;
  std::optional<Protocol> protocol;
  std::optional<int> channels;
  std::optional<bool> nvls, sharp, pxn;
  std::optional<PeerLevel> p2p_level;
  // All-reduces in a box use serving engines' kernels where these engines would; unset: in inference only.
  std::optional<bool> custom_all_reduce;
  std::optional<int> socket_threads;   // TCP: helpers a connection (sockets.hpp)
  std::optional<int> gpus_per_thread;  // of a bench: nccl-tests' -g
  // NCCL_BUFFSIZE, NCCL_NVLS_CHUNKSIZE, NCCL_NVLSTREE_MAX_CHUNKSIZE: pieces in which channels move bytes.
  std::optional<Bytes> buffsize, nvls_chunksize, nvlstree_max_chunksize;
};

// Which refinements of NCCL's own estimates the predicted times contain (time_model.cpp says what each is and
// what measured it). All off: the tuner's figures.
struct TimeOptions {
  bool flags_on_wire = true;    // LL sends twice the bytes, LL128 16/15
  bool network = true;          // the real fabric's latency where it exceeds InfiniBand's
  bool step_costs = true;       // fixed costs of a start and of each step
  bool protocol_shares = true;  // what LL, LL128 and Simple reach of the tuner's bandwidths
  bool tree_pipeline = true;    // a tree's fill, hop by hop, in place of the tuner's corrections by size
  bool nvls_pipeline = true;    // what NVSwitch reduction reaches, and its pipeline's fill
  // Send/recv inside a box runs on a pair's share of the library's channels. Rings of copies within
  // kernels (user buffers, symmetric memory) are send/recv too but have no channels: set it only for
  // library calls.
  bool pair_channels = false;
};

// The parts of an activity's cap: seconds per byte on its wires where nothing else delays it (0: they set no
// limit), and seconds per byte that do not depend on the wires.
struct CapParts {
  double wires = 0, own = 0;
};
// The cap if its wires were `slow` times slower.
[[nodiscard]] double slowed(double cap, const CapParts& parts, double slow);

// One pipelined collective as the fluid model sees it: work is its byte count S, progress x bytes/s of S.
struct Activity {
  std::vector<topology::LinkShare> usage;  // bytes on the link per byte of S; sorted by link, merged
  // What the wire does not limit: protocol and channel limits, as bytes of S per second; 0: none.
  BytesPerSecond cap{};
  CapParts cap_parts;
  Duration latency{};         // latency term, before the last byte counts as arrived
  Duration queued{};          // part of it that overlaps with the next of several queued calls
  double weight = 1;          // connections it opens (channels x queue pairs)
  int ctas = 0;               // SMs its channels occupy on each member while it runs
  double memory_traffic = 0;  // bytes of accelerator memory moved per byte of S on each member
  double bus_factor = 1;      // busbw = S / time x bus_factor (nccl-tests)
  bool host_copies = false;   // its cap is what threads of the hosts copy (sockets.hpp)
};

struct CollectiveCall {
  CollectiveKind kind;
  Bytes bytes;
  // Kernels of its own move it (DeepEP, HybridEP) and take this long where no link holds them up; zero:
  // NCCL's. All-to-all only.
  Duration own_kernels{};
};

// Calls on one communicator; calls with equal paths share one way.
struct LoweredCalls {
  struct Call {
    Activity activity;  // its own `usage` is empty
    Choice choice;
    std::uint32_t way = 0;  // index into `ways`
  };
  std::vector<Call> calls;
  std::vector<std::vector<topology::LinkShare>> ways;
};

// The same before links are looked up: stretches of routes (topology/routes.hpp) stand for their links. The
// usage of the links of a cell follows from the usage of the cell's places here.
struct SketchedCalls {
  struct Use {
    LinkId stretch;
    double share;
  };
  // Many routes between nodes are alike: only differences are stored.
  struct Trip {
    const topology::Router::Trip* what;
    std::uint32_t from, to;  // nodes
    double coefficient;      // of every stop's share
  };
  struct Route {
    std::vector<Use> uses;
    std::vector<Trip> trips;
  };
  struct Way {
    double wire = 1;  // bytes on the wire per byte of payload
    std::uint32_t route = 0;
  };
  std::vector<LoweredCalls::Call> calls;
  std::vector<Way> ways;
  std::vector<Route> routes;
};

// One message of the step-by-step lowering. Steps of one channel follow each other through `after`.
struct StepMessage {
  std::uint32_t from, to;  // positions in the communicator; behind its ranks StepPlan::devices
  Bytes bytes;             // on the wire, the protocol's flags included
  std::uint16_t channel;
  std::uint32_t after_begin, after_count;  // into StepPlan::after: messages that must have arrived first
  Duration latency{};                      // what one step of the protocol takes
  BytesPerSecond rate_cap{};               // what the channel can do; 0: none
  DeviceId from_nic{}, to_nic{};  // between boxes: the NICs that the channel names; invalid: the router's
  std::uint8_t slice = 0;         // of its channel's chunk: slices are fed side by side, each in order
  std::uint32_t way = kRouted;    // into StepPlan::ways
  static constexpr std::uint32_t kRouted = ~0U;  // as the router says
  // Between boxes over NICs that a plugin joins: evenly over all of both ends. Packets use one of them.
  static constexpr std::uint32_t kJoined = kRouted - 1;
  [[nodiscard]] bool names_links() const { return way < kJoined; }
  // Messages of one line leave one after the other, whatever is still on its way; 0: none.
  std::uint32_t line = 0;
  bool even = false;   // RouteQuery::even
  bool plain = false;  // a send between two GPUs: latency and cap are those of its route
};
struct StepPlan {
  Choice choice;  // what the messages implement: not choose()'s if that has no message form
  std::vector<StepMessage> messages;
  std::vector<std::uint32_t> after;
  std::vector<DeviceId> devices;          // switches that sum: they receive and send
  std::vector<std::vector<LinkId>> ways;  // links in order
};

// The channels that NCCL's searches found, and the tuners made from them. Models of any topologies
// may share it, because the key contains everything of nodes and links that a search reads.
// Thread-safe.
struct Searches;
[[nodiscard]] std::shared_ptr<Searches> no_searches_yet();

// Thrown by a call that stop_at() ended.
struct Stopped {};

// NCCL on one topology. Communicators of equal shape (same boxes, same local GPUs, same node count) share
// what was searched and tuned for them. Thread-safe.
class NcclModel {
 public:
  // REQUIRES: router outlives the model.
  explicit NcclModel(const topology::Router& router, Overrides overrides = {}, TimeOptions time = {},
                     std::shared_ptr<Searches> searches = no_searches_yet());
  ~NcclModel();
  // Lowering throws Stopped once the flag is true, also while it is under way. REQUIRES: it outlives the
  // model.
  void stop_at(const std::atomic<bool>& stop);

  [[nodiscard]] const topology::Router& router() const;
  [[nodiscard]] bool allows_pxn() const;
  // Whose rules choose among these GPUs: "NCCL 2.30", "RCCL"; "" on a torus, which needs no library.
  [[nodiscard]] std::string_view rules(std::span<const DeviceId> gpus) const;
  // NCCL's search finds no channel among these GPUs at any rate that it tries and counts on 0.1 GB/s
  // ("falling back to simple order" in its log): its choices then take the rate for what limits all of them.
  [[nodiscard]] bool found_no_channel(std::span<const DeviceId> gpus) const;
  // The choice for one call. `gpus` in communicator rank order.
  [[nodiscard]] Choice choose(CollectiveKind kind, Bytes bytes, std::span<const DeviceId> gpus) const;
  // The choice on the wire, on exactly these GPUs (their links), as one activity.
  void lower(CollectiveKind kind, Bytes bytes, std::span<const DeviceId> gpus, Activity& out) const;
  // Many calls on one communicator at once: placed and routed once per way, not once per call.
  [[nodiscard]] LoweredCalls lower(std::span<const CollectiveCall> calls,
                                   std::span<const DeviceId> gpus) const;
  [[nodiscard]] SketchedCalls sketch(std::span<const CollectiveCall> calls,
                                     std::span<const DeviceId> gpus) const;
  // The same, as messages in NCCL's chunks and windows. All-reduce summed by the fabric's switches (CollNet,
  // NVLS over several boxes) goes to them and back, NVLSTree over trees of boxes. NVLS inside one box, PAT
  // and a mesh's direct exchange have no message form: the best of ring and tree is used, and the plan says
  // which.
  [[nodiscard]] StepPlan steps(CollectiveKind kind, Bytes bytes, std::span<const DeviceId> gpus) const;
  // The links of one message of it, or of one of message_parts(); cap and latency are the message's.
  void lower_step(const StepMessage& message, std::span<const DeviceId> gpus, Activity& out) const;
  // One point-to-point message (send/recv) between two GPUs: the same for any number of bytes.
  void lower_message(DeviceId from, DeviceId to, std::uint64_t connection, Activity& out) const;
  // The same as messages, one per connection: as many as there are NICs that belong to the two ends alone.
  [[nodiscard]] std::vector<StepMessage> message_parts(Bytes bytes, DeviceId from, DeviceId to) const;
  // REQUIRES: messages all. They share one way.
  [[nodiscard]] SketchedCalls sketch_messages(std::size_t count, DeviceId from, DeviceId to,
                                              std::uint64_t connection) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};
}  // namespace topsim::collective

// Folding makes the cost grow with distinct behaviours, not with accelerators.
//
// fold() lowers every communicator and every point-to-point edge of a program onto the links of a topology,
// refines the coloured structure of ranks, communicators, edges and links to its equitable partition, and
// keeps one representative per class with multiplicities. The fluid execution of the classes is exactly that
// of all members: two links of a class carry equally many activities of every class, so every round of
// progressive filling freezes whole classes. Without folding each item is its own class and the same code
// runs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/collective/collective.hpp"
#include "sim/network/network.hpp"
#include "sim/program/program.hpp"
#include "topology/routes.hpp"

namespace topsim::fold {

// Scalars (a gradient norm, a flag) fit the first LL line of a channel, 16 bytes, whose time on the wire is
// part of every measured latency: they take their latency and load no link, folded or not. Their odd paths
// (a tree over all ranks) would split classes for nothing.
inline constexpr Bytes kLatencyAlone(16);

// One kind of call on a class of communicators or edges, lowered: what the network is asked to carry each
// time.
struct Activity {
  // Shared by calls that take the same path; null: loads no link.
  using Usages = std::shared_ptr<const std::vector<network::Usage>>;
  Usages usage;         // over link classes, times the activities of this class that cross one link
  Usages own_usage;     // the same without its siblings: of one activity alone
  double rate_cap = 0;  // bytes/s; 0 = none
  collective::CapParts cap_parts;
  double weight = 1;
  Duration latency{};
  int ctas = 0;               // SMs it takes on each member
  double memory_traffic = 0;  // bytes of accelerator memory per byte of work
  double bus_factor = 1;
  collective::Choice choice;
  Bytes bytes{};
  program::CollectiveKind kind = program::CollectiveKind::send_recv;
  // By detour (FoldOptions): the activity there. Empty: it is the same under all.
  struct Detour {
    Usages usage, own_usage;
    Duration latency{};
    std::string cut;  // why its members cannot reach each other; usage is then that of before
  };
  std::vector<Detour> detours;
  // Null where it is the same there, and for a number that is no detour.
  [[nodiscard]] const Detour* on(std::uint32_t detour) const {
    return detour < detours.size() ? &detours[detour] : nullptr;
  }
  [[nodiscard]] static std::span<const network::Usage> view(const Usages& usages) {
    return usages ? std::span(*usages) : std::span<const network::Usage>();
  }
};

struct RankClass {
  std::uint16_t program_class = 0;
  double slowdown = 1;          // compute takes this many times longer (slow_ranks, throttling)
  DeviceId device;              // of the representative
  std::vector<RankId> members;  // ascending; [0] is the representative
};

// Communicators of one class, or point-to-point edges of one class (two members: sender, receiver).
struct GroupClass {
  program::Dimension dimension = program::Dimension::world;
  std::uint32_t size = 0;                 // members of one communicator
  std::uint32_t count = 0;                // communicators in the class
  bool spans_programs = false;            // members run different programs (pipeline stages)
  std::vector<std::uint32_t> members;     // rank classes, distinct, ascending; edges: {sender, receiver}
  std::vector<std::uint32_t> activities;  // by shape index (see op_shape)
  CommunicatorId communicator;            // the representative; invalid for edges and host copies
};

struct LinkClass {
  std::vector<LinkId> members;  // ascending
  BytesPerSecond capacity;
};

struct System {
  static constexpr std::uint32_t kNone = 0xffffffffU;
  std::vector<RankClass> ranks;
  std::vector<GroupClass> groups;
  std::vector<Activity> activities;
  std::vector<LinkClass> links;
  // group_of[slot][rank class]: communicators; out/in_edge[peer slot][rank class]: edges it sends and
  // receives on; host_group[direction][rank class]: copies to (0) and from (1) host memory.
  std::vector<std::vector<std::uint32_t>> group_of, out_edge, in_edge, host_group;
  // op_shape[program class][op]: which of its group's activities a collective, send or host copy asks for.
  std::vector<std::vector<std::uint32_t>> op_shape;
  bool folded = true;
  std::uint32_t refined = 0;  // items of the graph that was refined
};

struct FoldOptions {
  bool fold = true;
  bool by_cells = true;        // first whole nodes and switches, then single links: cheaper, same classes
  bool all_links = false;      // unfolded only: link classes are the topology's links, used or not
  std::function<void()> poll;  // called between blocks of groups; what it throws ends the folding
  std::vector<std::pair<RankId, double>> slow_ranks;
  std::vector<RankId> marked_ranks;  // whose speed changes during the run: each stands for itself
  // Links that change during the run (faults): each keeps a class of its own per entry.
  std::vector<std::pair<LinkId, std::uint32_t>> marked_links;
  // Other routes that hold for a part of the run, when links have failed: all members of a class behave alike
  // under each.
  std::vector<const collective::NcclModel*> detours;
};

// Rank r runs on topology.accelerators()[r]. Throws ConfigError when two ranks that must talk cannot reach
// each other.
[[nodiscard]] System fold(const program::Program& program, const topology::Router& router,
                          const collective::NcclModel& nccl, const FoldOptions& options);
}  // namespace topsim::fold

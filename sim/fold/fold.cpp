#include "sim/fold/fold.hpp"

#include <fmt/format.h>
#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <unordered_map>

#include "sim/base/error.hpp"
#include "sim/fold/refine.hpp"
#include "sim/fold/shapes.hpp"

namespace topsim::fold {
namespace {

using collective::CollectiveKind;
using program::OpKind;
using program::Program;

constexpr std::uint32_t kNone = System::kNone;

// A communicator, an edge or a host copy path before folding.
struct Group {
  program::Dimension dimension;
  const std::vector<CallShape>* calls;
  std::uint32_t communicator = kNone;  // else an edge:
  RankId from, to;                     // to invalid: host memory
  std::uint16_t slot = 0;              // communicator, peer or host direction
  std::uint32_t item = 0;              // in the graph
};

class Folder {
 public:
  Folder(const Program& program, const topology::Router& router, const collective::NcclModel& nccl,
         const FoldOptions& options)
      : program_(program),
        router_(router),
        nccl_(nccl),
        options_(options),
        shapes_(collect_shapes(program)) {}

  System run() {
    add_ranks();
    enumerate_groups();
    if (options_.all_links) {
      for (std::size_t l = 0; l < router_.topology().links().size(); ++l) link_item(LinkId(l));
    }
    lower_groups();
    const std::vector<std::uint32_t> cls = graph_.classes(options_.fold);
    return assemble(cls);
  }

 private:
  DeviceId device(RankId rank) const { return router_.topology().accelerators()[rank.index()]; }

  void add_ranks() {
    std::map<RankId, double> slow(options_.slow_ranks.begin(), options_.slow_ranks.end());
    slowdown_.assign(program_.ranks, 1.0);
    for (const auto& [rank, factor] : slow) slowdown_[rank.index()] = factor;
    for (std::uint32_t r = 0; r < program_.ranks; ++r) {
      const Colour kind = router_.topology().device(device(RankId(r))).model;
      graph_.add(mix(mix(program_.class_of_rank[r], kind), std::bit_cast<std::uint64_t>(slowdown_[r])));
    }
  }

  void enumerate_groups() {
    std::vector<std::uint8_t> seen(program_.communicators.size(), 0);
    for (std::size_t slot = 0; slot < program_.communicator_slots.size(); ++slot) {
      for (std::uint32_t r = 0; r < program_.ranks; ++r) {
        const CommunicatorId c = program_.communicator_slots[slot][r];
        const auto& calls = shapes_.collectives[program_.class_of_rank[r]][slot];
        if (!c.valid() || calls.empty()) continue;
        if (!seen[c.index()]) {
          seen[c.index()] = 1;
          groups_.push_back({program_.communicators[c.index()].dimension,
                             &calls,
                             c.value,
                             {},
                             {},
                             static_cast<std::uint16_t>(slot),
                             0});
        }
      }
    }
    for (std::size_t slot = 0; slot < program_.peer_slots.size(); ++slot) {
      for (std::uint32_t r = 0; r < program_.ranks; ++r) {
        const RankId peer = program_.peer_slots[slot][r];
        const auto& calls = shapes_.sends[program_.class_of_rank[r]][slot];
        if (!peer.valid() || calls.empty()) continue;
        groups_.push_back({program_.peer_dimension[slot], &calls, kNone, RankId(r), peer,
                           static_cast<std::uint16_t>(slot), 0});
      }
    }
    for (std::size_t direction = 0; direction < 2; ++direction) {
      for (std::uint32_t r = 0; r < program_.ranks; ++r) {
        const auto& calls = shapes_.host[program_.class_of_rank[r]][direction];
        if (calls.empty()) continue;
        if (host_memory_.empty()) find_host_memory();
        groups_.push_back({program::Dimension::offload, &calls, kNone, RankId(r), RankId(),
                           static_cast<std::uint16_t>(direction), 0});
      }
    }
  }

  void lower_one(const Group& group, const CallShape& call, collective::Activity& out) const {
    if (group.communicator != kNone) {
      std::vector<DeviceId> gpus;
      for (RankId r : program_.members_of(CommunicatorId(group.communicator))) gpus.push_back(device(r));
      nccl_.lower(call.kind, Bytes(call.bytes), gpus, out);
      return;
    }
    DeviceId from = device(group.from);
    DeviceId to = group.to.valid() ? device(group.to) : host_memory(from);
    if (!group.to.valid() && group.slot == 1) std::swap(from, to);
    nccl_.lower_message(Bytes(call.bytes), from, to, group.slot, out);
    if (out.usage.empty() && from != to) throw ConfigError(router_.why_unreachable(from, to));
  }

  DeviceId host_memory(DeviceId gpu) const {
    const DeviceId memory = host_memory_[router_.topology().device(gpu).node];
    if (memory.valid()) return memory;
    throw ConfigError("the node has no host memory to offload to",
                      "describe one in the node recipe, or offload none");
  }

  void find_host_memory() {
    const auto& topology = router_.topology();
    host_memory_.assign(topology.nodes(), DeviceId());
    for (std::size_t d = 0; d < topology.devices().size(); ++d) {
      const topology::Device& device = topology.devices()[d];
      if (device.kind != topology::DeviceKind::host_memory) continue;
      if (!host_memory_[device.node].valid()) host_memory_[device.node] = DeviceId(d);
    }
  }

  std::uint32_t label(std::uint32_t shape, double coefficient) {
    const auto key = std::pair(shape, std::bit_cast<std::uint64_t>(coefficient));
    if (key == last_key_) return last_label_;
    last_key_ = key;
    last_label_ = labels_.try_emplace(key, static_cast<std::uint32_t>(labels_.size())).first->second;
    if (last_label_ == coefficients_.size()) coefficients_.push_back({shape, coefficient});
    return last_label_;
  }

  std::uint32_t link_item(LinkId link) {
    if (link_items_.empty()) link_items_.assign(router_.topology().links().size(), kNone);
    std::uint32_t& item = link_items_[link.index()];
    if (item == kNone) {
      Colour colour = std::bit_cast<std::uint64_t>(router_.topology().link(link).capacity.value());
      for (const auto& [marked, mark] : options_.marked_links) {
        if (marked == link) colour = mix(colour, mark + 1);
      }
      item = graph_.add(mix(colour, 0x11));
      links_.push_back(link);
      link_of_item_.resize(item + 1, kNone);
      link_of_item_[item] = static_cast<std::uint32_t>(links_.size() - 1);
    }
    return item;
  }

  // Lowering is the costly part and independent a group: parallel in blocks, merged in order, so any thread
  // count gives the same graph.
  void lower_groups() {
    constexpr std::size_t kBlock = 512;
    std::vector<std::vector<collective::Activity>> block(kBlock);
    group_of_item_.assign(graph_.size(), kNone);
    for (std::size_t begin = 0; begin < groups_.size(); begin += kBlock) {
      const std::size_t end = std::min(begin + kBlock, groups_.size());
      oneapi::tbb::parallel_for(begin, end, [&](std::size_t g) {
        auto& lowered = block[g - begin];
        lowered.resize(groups_[g].calls->size());
        for (std::size_t s = 0; s < lowered.size(); ++s) {
          lowered[s] = {};
          lower_one(groups_[g], (*groups_[g].calls)[s], lowered[s]);
        }
      });
      for (std::size_t g = begin; g < end; ++g) merge(static_cast<std::uint32_t>(g), block[g - begin]);
    }
  }

  // Scalars (a gradient norm, a flag) fit the first LL line of a channel, 16 bytes, whose time on the wire is
  // part of every measured latency. Their odd paths (a tree over all ranks) would split classes for nothing.
  static bool moves_data(const CallShape& call) { return call.bytes > 16; }

  void merge(std::uint32_t g, const std::vector<collective::Activity>& lowered) {
    Group& group = groups_[g];
    Colour colour = mix(static_cast<Colour>(group.dimension), group.slot);
    for (std::size_t s = 0; s < lowered.size(); ++s) {
      const collective::Activity& a = lowered[s];
      colour = mix(mix(colour, static_cast<Colour>(a.latency.count())),
                   std::bit_cast<std::uint64_t>(a.cap.value()));
      colour = mix(colour, std::bit_cast<std::uint64_t>(a.weight));
      colour = mix(mix(colour, static_cast<Colour>((*group.calls)[s].bytes)),
                   static_cast<Colour>((*group.calls)[s].kind));
    }
    group.item = graph_.add(mix(colour, 0x22));
    group_of_item_.resize(graph_.size(), kNone);
    group_of_item_[group.item] = g;
    constexpr std::uint32_t kMember = 0x80000000U, kReceiver = 0x40000000U;
    if (group.communicator != kNone) {
      for (RankId r : program_.members_of(CommunicatorId(group.communicator))) {
        graph_.connect(r.value, group.item, kMember | group.slot);
      }
    } else {
      graph_.connect(group.from.value, group.item, kMember | 0x10000U | group.slot);
      if (group.to.valid()) graph_.connect(group.to.value, group.item, kReceiver | group.slot);
    }
    for (std::size_t s = 0; s < lowered.size(); ++s) {
      if (!moves_data((*group.calls)[s])) continue;
      for (const topology::LinkShare& use : lowered[s].usage) {
        const std::uint32_t item = link_item(use.link);
        graph_.connect(group.item, item, label(static_cast<std::uint32_t>(s), use.share));
      }
    }
  }

  System assemble(const std::vector<std::uint32_t>& cls) {
    // Classes of all kinds share one numbering; give each kind its own, by first member.
    const std::size_t classes = cls.empty() ? 0 : *std::max_element(cls.begin(), cls.end()) + 1U;
    std::vector<std::uint32_t> local(classes, kNone), first(classes, kNone);
    for (std::uint32_t i = 0; i < cls.size(); ++i) {
      if (first[cls[i]] == kNone) first[cls[i]] = i;
    }
    group_of_item_.resize(graph_.size(), kNone);
    link_of_item_.resize(graph_.size(), kNone);
    System system;
    system.folded = options_.fold;
    system.op_shape = shapes_.op_shape;
    for (std::uint32_t r = 0; r < program_.ranks; ++r) {
      std::uint32_t& id = local[cls[r]];
      if (id == kNone) {
        id = static_cast<std::uint32_t>(system.ranks.size());
        system.ranks.push_back({program_.class_of_rank[r], slowdown_[r], device(RankId(r)), {}});
      }
      system.ranks[id].members.push_back(RankId(r));
    }
    for (std::uint32_t item : link_items_in_order()) {
      const LinkId link = links_[link_of_item_[item]];
      std::uint32_t& id = local[cls[item]];
      if (id == kNone) {
        id = static_cast<std::uint32_t>(system.links.size());
        system.links.push_back({{}, router_.topology().link(link).capacity});
      }
      system.links[id].members.push_back(link);
    }
    for (auto& link : system.links) std::sort(link.members.begin(), link.members.end());
    assemble_groups(cls, local, system);
    assemble_usage(cls, local, first, system);
    assemble_tables(cls, local, system);
    return system;
  }

  std::vector<std::uint32_t> link_items_in_order() const {
    std::vector<std::uint32_t> items;
    for (std::uint32_t i = 0; i < link_of_item_.size(); ++i) {
      if (link_of_item_[i] != kNone) items.push_back(i);
    }
    return items;
  }

  void assemble_groups(const std::vector<std::uint32_t>& cls, std::vector<std::uint32_t>& local,
                       System& system) {
    for (const Group& group : groups_) {
      std::uint32_t& id = local[cls[group.item]];
      if (id == kNone) {
        id = static_cast<std::uint32_t>(system.groups.size());
        system.groups.push_back(make_group(group, cls, local, system));
      }
      ++system.groups[id].count;
    }
  }

  GroupClass make_group(const Group& group, const std::vector<std::uint32_t>& cls,
                        const std::vector<std::uint32_t>& local, System& system) {
    GroupClass result;
    result.dimension = group.dimension;
    if (group.communicator != kNone) {
      result.communicator = CommunicatorId(group.communicator);
      const auto members = program_.members_of(result.communicator);
      result.size = static_cast<std::uint32_t>(members.size());
      for (RankId r : members) {
        result.members.push_back(local[cls[r.index()]]);
        result.spans_programs |=
            program_.class_of_rank[r.index()] != program_.class_of_rank[members[0].index()];
      }
      std::sort(result.members.begin(), result.members.end());
      result.members.erase(std::unique(result.members.begin(), result.members.end()), result.members.end());
    } else {
      result.size = group.to.valid() ? 2 : 1;
      result.members.push_back(local[cls[group.from.index()]]);
      if (group.to.valid()) result.members.push_back(local[cls[group.to.index()]]);
      result.spans_programs = group.to.valid();
    }
    // The representative is lowered once more for what the graph did not keep.
    for (const CallShape& call : *group.calls) {
      collective::Activity lowered;
      lower_one(group, call, lowered);
      Activity a;
      a.rate_cap = lowered.cap.value();
      a.weight = lowered.weight;
      a.latency = lowered.latency;
      a.ctas = lowered.ctas;
      a.memory_traffic = lowered.memory_traffic;
      a.bus_factor = lowered.bus_factor;
      a.bytes = Bytes(call.bytes);
      a.kind = call.kind;
      if (group.communicator != kNone) {
        std::vector<DeviceId> gpus;
        for (RankId r : program_.members_of(CommunicatorId(group.communicator))) gpus.push_back(device(r));
        a.choice = nccl_.choose(call.kind, Bytes(call.bytes), gpus);
      } else {
        a.choice.algorithm = collective::Algorithm::direct;
      }
      result.activities.push_back(static_cast<std::uint32_t>(system.activities.size()));
      system.activities.push_back(std::move(a));
    }
    return result;
  }

  // Coefficients are summed at each representative link over all activities that cross it, by their class.
  void assemble_usage(const std::vector<std::uint32_t>& cls, const std::vector<std::uint32_t>& local,
                      const std::vector<std::uint32_t>& first, System& system) {
    struct Entry {
      std::uint32_t activity, link;
      double coefficient, own;
    };
    std::vector<Entry> entries;
    for (const Edge& e : graph_.edges()) {
      const std::uint32_t g = group_of_item_[e.from];
      if (g == kNone) continue;  // a membership
      const bool link_represents = first[cls[e.to]] == e.to, group_represents = first[cls[e.from]] == e.from;
      if (!link_represents && !group_represents) continue;
      const auto& [shape, coefficient] = coefficients_[e.label];
      const std::uint32_t activity = system.groups[local[cls[e.from]]].activities[shape];
      entries.push_back({activity, local[cls[e.to]], link_represents ? coefficient : 0.0,
                         group_represents ? coefficient : 0.0});
    }
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return std::pair(a.activity, a.link) < std::pair(b.activity, b.link);
    });
    for (std::size_t i = 0; i < entries.size();) {
      const Entry key = entries[i];
      double total = 0, own = 0;
      for (; i < entries.size() && entries[i].activity == key.activity && entries[i].link == key.link; ++i) {
        total += entries[i].coefficient;
        own = std::max(own, entries[i].own);
      }
      Activity& a = system.activities[key.activity];
      a.usage.push_back({key.link, total});
      if (own > 0) a.own_usage.push_back({key.link, own});
    }
  }

  void assemble_tables(const std::vector<std::uint32_t>& cls, const std::vector<std::uint32_t>& local,
                       System& system) const {
    const auto table = [&](std::size_t slots) {
      return std::vector<std::vector<std::uint32_t>>(slots,
                                                     std::vector<std::uint32_t>(system.ranks.size(), kNone));
    };
    system.group_of = table(program_.communicator_slots.size());
    system.out_edge = table(program_.peer_slots.size());
    system.in_edge = table(program_.peer_slots.size());
    system.host_group = table(2);
    for (const Group& group : groups_) {
      const std::uint32_t id = local[cls[group.item]];
      if (group.communicator != kNone) {
        for (RankId r : program_.members_of(CommunicatorId(group.communicator))) {
          system.group_of[group.slot][local[cls[r.index()]]] = id;
        }
      } else if (group.to.valid()) {
        system.out_edge[group.slot][local[cls[group.from.index()]]] = id;
        const std::size_t counterpart =
            program_.peer_counterpart.empty() ? group.slot : program_.peer_counterpart[group.slot];
        system.in_edge[counterpart][local[cls[group.to.index()]]] = id;
      } else {
        system.host_group[group.slot][local[cls[group.from.index()]]] = id;
      }
    }
  }

  struct Coefficient {
    std::uint32_t shape;
    double value;
  };
  struct KeyHash {
    std::size_t operator()(const std::pair<std::uint32_t, std::uint64_t>& k) const {
      return mix(k.first, k.second);
    }
  };

  const Program& program_;
  const topology::Router& router_;
  const collective::NcclModel& nccl_;
  const FoldOptions& options_;
  Shapes shapes_;
  LabelledGraph graph_;
  std::vector<double> slowdown_;
  std::vector<DeviceId> host_memory_;  // by node; filled when somebody copies there
  std::vector<Group> groups_;
  std::vector<std::uint32_t> group_of_item_, link_of_item_, link_items_;
  std::vector<LinkId> links_;
  std::unordered_map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t, KeyHash> labels_;
  std::vector<Coefficient> coefficients_;
  std::pair<std::uint32_t, std::uint64_t> last_key_{kNone, 0};
  std::uint32_t last_label_ = 0;
};
}  // namespace

System fold(const Program& program, const topology::Router& router, const collective::NcclModel& nccl,
            const FoldOptions& options) {
  return Folder(program, router, nccl, options).run();
}
}  // namespace topsim::fold

#include "sim/fold/assemble.hpp"

#include <algorithm>

#include "sim/base/parallel.hpp"

namespace topsim::fold {
namespace {

using program::Program;
constexpr std::uint32_t kNone = System::kNone;

class Assembler {
 public:
  Assembler(const Program& program, const topology::Topology& topology, const std::vector<Group>& groups,
            const RankColours& ranks, const GroupLowering& lowering, const Detours& detours,
            const Incidence& incidence, const std::vector<std::uint32_t>& classes, const FoldOptions& options)
      : program_(program),
        topology_(topology),
        groups_(groups),
        ranks_(ranks),
        lowering_(lowering),
        detours_(detours),
        incidence_(incidence),
        class_(classes),
        options_(options) {
    const std::size_t count = classes.empty() ? 0 : *std::max_element(classes.begin(), classes.end()) + 1U;
    first_.assign(count, kNone);
    local_.assign(count, kNone);
    for (std::uint32_t i = 0; i < classes.size(); ++i) {
      if (first_[classes[i]] == kNone) first_[classes[i]] = i;
    }
  }

  System run(Shapes shapes) {
    system_.op_shape = std::move(shapes.op_shape);
    add_ranks();
    if (options_.all_links)
      for (std::uint32_t l = 0; l < incidence_.links().size(); ++l)
        number(incidence_.links()[l], incidence_.first_link_item() + l);
    add_groups();
    poll();
    add_links();
    poll();
    add_usage();
    poll();
    add_tables();
    return std::move(system_);
  }

 private:
  // Classes of all kinds share one numbering; each kind also has its own, by first member.
  std::uint32_t& local(std::uint32_t item) { return local_[class_[item]]; }
  std::uint32_t local(RankId rank) const { return local_[class_[incidence_.item_of_rank(rank)]]; }
  bool represents(std::uint32_t item) const { return first_[class_[item]] == item; }

  void poll() const {
    if (options_.poll) options_.poll();
  }

  void add_ranks() {
    for (std::uint32_t r = 0; r < program_.ranks; ++r) {
      std::uint32_t& id = local(incidence_.item_of_rank(RankId(r)));
      if (id == kNone) {
        id = static_cast<std::uint32_t>(system_.ranks.size());
        system_.ranks.push_back(
            {program_.class_of_rank[r], ranks_.slowdown(RankId(r)), lowering_.device(RankId(r)), {}});
      }
      system_.ranks[id].members.push_back(RankId(r));
    }
  }

  void number(LinkId link, std::uint32_t item) {
    std::uint32_t& id = local(item);
    if (id != kNone) return;
    id = static_cast<std::uint32_t>(system_.links.size());
    system_.links.push_back({{}, topology_.link(link).capacity});
  }

  // Links are numbered in the order in which calls use them.
  void add_groups() {
    const Alike& alike = incidence_.alike();
    std::vector<std::uint32_t> representatives;  // classes of groups
    for (std::uint32_t c = 0; c < alike.groups().size(); ++c) {
      std::uint32_t& id = local(incidence_.item_of_group(c));
      if (id == kNone) {
        id = static_cast<std::uint32_t>(system_.groups.size());
        system_.groups.push_back(make_group(groups_[alike.groups()[c].first]));
        representatives.push_back(c);
      }
      system_.groups[id].count += alike.groups()[c].count;
    }
    if (alike.trivial()) return add_lowered(representatives);
    using Crossing = std::pair<std::uint32_t, LinkId>;      // way, link
    std::vector<Crossing> earliest(local_.size());          // of each class that has no number yet
    std::vector<std::pair<Crossing, std::uint32_t>> fresh;  // of this group, with the link's item
    for (std::uint32_t i = 0; i < representatives.size(); ++i) {
      const std::uint32_t c = representatives[i];
      add_calls(system_.groups[i], *groups_[alike.groups()[c].first].calls, alike.calls(c));
      fresh.clear();
      alike.for_each_crossing(c, [&](std::uint32_t way, LinkId link) {
        const std::uint32_t item = incidence_.item_of_link(link);
        if (local(item) != kNone) return;
        Crossing& known = earliest[class_[item]];
        if (known.second.valid() && known <= Crossing(way, link)) return;
        known = {way, link};
        fresh.push_back({known, item});
      });
      std::sort(fresh.begin(), fresh.end());
      for (const auto& [crossing, item] : fresh) number(crossing.second, item);
    }
  }

  // The graph did not keep what only representatives need, so they are lowered once more, in blocks.
  void add_lowered(const std::vector<std::uint32_t>& representatives) {
    constexpr std::size_t kBlock = 2048;
    std::vector<collective::LoweredCalls> lowered(std::min(kBlock, representatives.size()));
    std::vector<std::vector<Detours::Other>> others(lowered.size());
    for (std::size_t begin = 0; begin < representatives.size(); begin += kBlock) {
      poll();
      const std::size_t end = std::min(begin + kBlock, representatives.size());
      parallel::for_each(end - begin, [&](std::size_t i) {
        const Group& group = groups_[representatives[begin + i]];
        lowered[i] = lowering_.lower(group);
        others[i] = detours_.of(group, lowered[i]);
      });
      for (std::size_t i = begin; i < end; ++i) {
        const std::vector<CallShape>& calls = *groups_[representatives[i]].calls;
        add_calls(system_.groups[i], calls, lowered[i - begin].calls);
        number_used(calls, lowered[i - begin]);
        add_detours(system_.groups[i], calls, others[i - begin]);
      }
    }
  }

  void add_calls(GroupClass& group, const std::vector<CallShape>& calls,
                 const std::vector<collective::LoweredCalls::Call>& lowered) {
    for (std::size_t s = 0; s < calls.size(); ++s) {
      group.activities.push_back(static_cast<std::uint32_t>(system_.activities.size()));
      system_.activities.push_back(make_activity(calls[s], lowered[s]));
      way_of_.push_back(Incidence::moves_data(calls[s]) ? lowered[s].way : kNone);
    }
  }

  void number_used(const std::vector<CallShape>& calls, const collective::LoweredCalls& lowered) {
    std::vector<bool> used(lowered.ways.size());
    for (std::size_t s = 0; s < calls.size(); ++s)
      if (Incidence::moves_data(calls[s])) used[lowered.calls[s].way] = true;
    for (std::size_t way = 0; way < used.size(); ++way) {
      if (!used[way]) continue;
      for (const topology::LinkShare& use : lowered.ways[way])
        number(use.link, incidence_.item_of_link(use.link));
    }
  }

  void add_detours(const GroupClass& group, const std::vector<CallShape>& calls,
                   const std::vector<Detours::Other>& others) {
    way_of_detours_.resize(system_.activities.size());
    for (std::uint32_t d = 0; d < others.size(); ++d) {
      const Detours::Other& other = others[d];
      for (std::size_t s = 0; s < calls.size(); ++s) {
        const std::uint32_t a = group.activities[s];
        Activity::Detour& detour = system_.activities[a].detours.emplace_back();
        detour.cut = other.cut;
        detour.latency = system_.activities[a].latency;
        way_of_detours_[a].push_back(way_of_[a]);
        if (other.same || !other.cut.empty()) continue;
        const collective::LoweredCalls::Call& call = other.lowered.calls[s];
        detour.latency = call.activity.latency;
        if (!Incidence::moves_data(calls[s])) continue;
        way_of_detours_[a].back() = Incidence::way_on(d, call.way);
      }
      if (!other.same && other.cut.empty()) number_used(calls, other.lowered);
    }
  }

  // Links are many, slots are few: one look-up per link finds its class.
  void add_links() {
    const Alike& alike = incidence_.alike();
    std::vector<std::uint32_t> of_slot(alike.slots_of_links(), kNone), sizes(system_.links.size());
    for (std::uint32_t l = 0; l < incidence_.links().size(); ++l) {
      const LinkId link = incidence_.links()[l];
      const std::uint32_t id = of_slot[alike.slot(link)] = local(incidence_.first_link_item() + l);
      sizes[id] += alike.weight(link);
    }
    for (std::uint32_t id = 0; id < sizes.size(); ++id) system_.links[id].members.reserve(sizes[id]);
    alike.for_each_link([&](LinkId link, std::uint32_t slot) {
      if (of_slot[slot] != kNone) system_.links[of_slot[slot]].members.push_back(link);
    });
  }

  static Activity make_activity(const CallShape& call, const collective::LoweredCalls::Call& lowered) {
    const collective::Activity& from = lowered.activity;
    Activity a;
    a.rate_cap = from.cap.value();
    a.cap_parts = from.cap_parts;
    a.weight = from.weight;
    a.latency = from.latency;
    a.ctas = from.ctas;
    a.memory_traffic = from.memory_traffic;
    a.bus_factor = from.bus_factor;
    a.choice = lowered.choice;
    a.bytes = Bytes(call.bytes);
    a.kind = call.kind;
    return a;
  }

  GroupClass make_group(const Group& group) const {
    GroupClass result;
    result.dimension = group.dimension;
    if (group.is_communicator()) {
      result.communicator = CommunicatorId(group.communicator);
      const auto members = program_.members_of(result.communicator);
      result.size = static_cast<std::uint32_t>(members.size());
      for (RankId r : members) {
        result.members.push_back(local(r));
        result.spans_programs |=
            program_.class_of_rank[r.index()] != program_.class_of_rank[members[0].index()];
      }
      std::sort(result.members.begin(), result.members.end());
      result.members.erase(std::unique(result.members.begin(), result.members.end()), result.members.end());
    } else {
      result.size = group.to.valid() ? 2 : 1;
      result.members.push_back(local(group.from));
      if (group.to.valid()) result.members.push_back(local(group.to));
      result.spans_programs = group.to.valid();
    }
    return result;
  }

  // Coefficients are summed at each representative link over all activities that cross it, by their class.
  void add_usage() {
    struct Entry {
      std::uint32_t group, way, link, times;
      double coefficient, own;
      bool operator<(const Entry& other) const {
        if (group != other.group) return group < other.group;
        if (way != other.way) return way < other.way;
        return link != other.link ? link < other.link : coefficient < other.coefficient;
      }
    };
    std::vector<Entry> entries;
    for (const Edge& e : incidence_.graph().edges()) {
      if (incidence_.is_rank(e.to)) continue;
      const bool link_represents = represents(e.to), group_represents = represents(e.from);
      if (!link_represents && !group_represents) continue;
      const auto& [way, coefficient] = incidence_.share(e.label);
      entries.push_back({local(e.from), way, local(e.to),
                         link_represents ? incidence_.graph().count_back(e) : 0, coefficient,
                         group_represents ? coefficient : 0.0});
    }
    poll();
    std::sort(entries.begin(), entries.end());
    for (std::size_t i = 0; i < entries.size();) {
      poll();
      const std::uint32_t group = entries[i].group, way = entries[i].way;
      auto usage = std::make_shared<std::vector<network::Usage>>();
      auto alone = std::make_shared<std::vector<network::Usage>>();
      while (i < entries.size() && entries[i].group == group && entries[i].way == way) {
        const std::uint32_t link = entries[i].link;
        double total = 0, own = 0;
        for (; i < entries.size() && entries[i].group == group && entries[i].way == way &&
               entries[i].link == link;
             ++i) {
          for (std::uint32_t n = 0; n < entries[i].times; ++n) total += entries[i].coefficient;
          own = std::max(own, entries[i].own);
        }
        usage->push_back({link, total});
        if (own > 0) alone->push_back({link, own});
      }
      give(system_.groups[group], way, usage, alone);
    }
  }

  // Sets the usage of all calls of the group that take this way.
  void give(const GroupClass& group, std::uint32_t way, const Activity::Usages& usage,
            const Activity::Usages& alone) {
    const bool same = std::equal(usage->begin(), usage->end(), alone->begin(), alone->end(),
                                 [](const network::Usage& a, const network::Usage& b) {
                                   return a.link == b.link && a.coefficient == b.coefficient;
                                 });
    for (const std::uint32_t a : group.activities) {
      Activity& activity = system_.activities[a];
      if (way_of_[a] == way) {
        activity.usage = usage;
        activity.own_usage = same ? usage : alone;
      }
      for (std::size_t d = 0; d < activity.detours.size(); ++d) {
        if (way_of_detours_[a][d] != way) continue;
        activity.detours[d].usage = usage;
        activity.detours[d].own_usage = same ? usage : alone;
      }
    }
  }

  void add_tables() {
    const auto table = [&](std::size_t slots) {
      return std::vector<std::vector<std::uint32_t>>(slots,
                                                     std::vector<std::uint32_t>(system_.ranks.size(), kNone));
    };
    system_.group_of = table(program_.communicator_slots.size());
    system_.out_edge = table(program_.peer_slots.size());
    system_.in_edge = table(program_.peer_slots.size());
    system_.host_group = table(program::Op::kHostSlots);
    for (std::uint32_t c = 0; c < incidence_.alike().groups().size(); ++c) {
      poll();
      const Group& group = groups_[incidence_.alike().groups()[c].first];
      const std::uint32_t id = local(incidence_.item_of_group(c));
      if (group.is_communicator()) {
        for (RankId r : program_.members_of(CommunicatorId(group.communicator)))
          system_.group_of[group.slot][local(r)] = id;
      } else if (group.to.valid()) {
        system_.out_edge[group.slot][local(group.from)] = id;
        const std::size_t counterpart =
            program_.peer_counterpart.empty() ? group.slot : program_.peer_counterpart[group.slot];
        system_.in_edge[counterpart][local(group.to)] = id;
      } else {
        system_.host_group[group.slot][local(group.from)] = id;
      }
    }
  }

  const Program& program_;
  const topology::Topology& topology_;
  const std::vector<Group>& groups_;
  const RankColours& ranks_;
  const GroupLowering& lowering_;
  const Detours& detours_;
  const Incidence& incidence_;
  const std::vector<std::uint32_t>& class_;
  const FoldOptions& options_;
  std::vector<std::uint32_t> first_, local_;  // by class: its first item; its number among its kind
  std::vector<std::uint32_t> way_of_;         // by activity; kNone if it loads no link
  std::vector<std::vector<std::uint32_t>> way_of_detours_;  // the same on each detour
  System system_;
};
}  // namespace

System assemble(const Program& program, const topology::Topology& topology, Shapes shapes,
                const std::vector<Group>& groups, const RankColours& ranks, const GroupLowering& lowering,
                const Detours& detours, const Incidence& incidence, const std::vector<std::uint32_t>& classes,
                const FoldOptions& options) {
  return Assembler(program, topology, groups, ranks, lowering, detours, incidence, classes, options)
      .run(std::move(shapes));
}
}  // namespace topsim::fold

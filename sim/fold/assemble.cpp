#include "sim/fold/assemble.hpp"

#include <oneapi/tbb/parallel_for.h>

#include <algorithm>

namespace topsim::fold {
namespace {

using program::Program;
constexpr std::uint32_t kNone = System::kNone;

class Assembler {
 public:
  Assembler(const Program& program, const topology::Topology& topology, const std::vector<Group>& groups,
            const GroupLowering& lowering, const Incidence& incidence,
            const std::vector<std::uint32_t>& classes)
      : program_(program),
        topology_(topology),
        groups_(groups),
        lowering_(lowering),
        incidence_(incidence),
        class_(classes) {
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
    add_links();
    add_groups();
    add_usage();
    add_tables();
    return std::move(system_);
  }

 private:
  // Classes of all kinds share one numbering; each kind has its own too, by first member.
  std::uint32_t& local(std::uint32_t item) { return local_[class_[item]]; }
  std::uint32_t local(RankId rank) const { return local_[class_[rank.index()]]; }
  bool represents(std::uint32_t item) const { return first_[class_[item]] == item; }

  void add_ranks() {
    for (std::uint32_t r = 0; r < program_.ranks; ++r) {
      std::uint32_t& id = local(r);
      if (id == kNone) {
        id = static_cast<std::uint32_t>(system_.ranks.size());
        system_.ranks.push_back(
            {program_.class_of_rank[r], incidence_.slowdown(RankId(r)), lowering_.device(RankId(r)), {}});
      }
      system_.ranks[id].members.push_back(RankId(r));
    }
  }

  void add_links() {
    for (std::uint32_t l = 0; l < incidence_.links().size(); ++l) {
      const LinkId link = incidence_.links()[l];
      std::uint32_t& id = local(incidence_.first_link_item() + l);
      if (id == kNone) {
        id = static_cast<std::uint32_t>(system_.links.size());
        system_.links.push_back({{}, topology_.link(link).capacity});
      }
      system_.links[id].members.push_back(link);
    }
    for (LinkClass& link : system_.links) std::sort(link.members.begin(), link.members.end());
  }

  void add_groups() {
    std::vector<std::uint32_t> representatives;
    for (std::uint32_t g = 0; g < groups_.size(); ++g) {
      std::uint32_t& id = local(incidence_.item_of_group(g));
      if (id == kNone) {
        id = static_cast<std::uint32_t>(system_.groups.size());
        system_.groups.push_back(make_group(groups_[g]));
        representatives.push_back(g);
      }
      ++system_.groups[id].count;
    }
    // The graph did not keep what only representatives need: lowered once more.
    std::vector<collective::LoweredCalls> lowered(representatives.size());
    oneapi::tbb::parallel_for(std::size_t{0}, lowered.size(), [&](std::size_t i) {
      lowered[i] = lowering_.lower(groups_[representatives[i]]);
      lowered[i].ways.clear();
    });
    for (std::size_t i = 0; i < lowered.size(); ++i) {
      const std::vector<CallShape>& calls = *groups_[representatives[i]].calls;
      for (std::size_t s = 0; s < calls.size(); ++s) {
        system_.groups[i].activities.push_back(static_cast<std::uint32_t>(system_.activities.size()));
        system_.activities.push_back(make_activity(calls[s], lowered[i].calls[s]));
        way_of_.push_back(Incidence::moves_data(calls[s]) ? lowered[i].calls[s].way : kNone);
      }
    }
  }

  static Activity make_activity(const CallShape& call, const collective::LoweredCalls::Call& lowered) {
    const collective::Activity& from = lowered.activity;
    Activity a;
    a.rate_cap = from.cap.value();
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
      std::uint32_t group, way, link;
      double coefficient, own;
      bool operator<(const Entry& other) const {
        if (group != other.group) return group < other.group;
        if (way != other.way) return way < other.way;
        return link != other.link ? link < other.link : coefficient < other.coefficient;
      }
    };
    std::vector<Entry> entries;
    for (const Edge& e : incidence_.graph().edges()) {
      if (!incidence_.is_group(e.from)) continue;  // a membership
      const bool link_represents = represents(e.to), group_represents = represents(e.from);
      if (!link_represents && !group_represents) continue;
      const auto& [way, coefficient] = incidence_.share(e.label);
      entries.push_back({local(e.from), way, local(e.to), link_represents ? coefficient : 0.0,
                         group_represents ? coefficient : 0.0});
    }
    std::sort(entries.begin(), entries.end());
    for (std::size_t i = 0; i < entries.size();) {
      const std::uint32_t group = entries[i].group, way = entries[i].way;
      auto usage = std::make_shared<std::vector<network::Usage>>();
      auto alone = std::make_shared<std::vector<network::Usage>>();
      while (i < entries.size() && entries[i].group == group && entries[i].way == way) {
        const std::uint32_t link = entries[i].link;
        double total = 0, own = 0;
        for (; i < entries.size() && entries[i].group == group && entries[i].way == way &&
               entries[i].link == link;
             ++i) {
          total += entries[i].coefficient;
          own = std::max(own, entries[i].own);
        }
        usage->push_back({link, total});
        if (own > 0) alone->push_back({link, own});
      }
      give(system_.groups[group], way, usage, alone);
    }
  }

  // To all calls of the group that take this way.
  void give(const GroupClass& group, std::uint32_t way, const Activity::Usages& usage,
            const Activity::Usages& alone) {
    const bool same = std::equal(usage->begin(), usage->end(), alone->begin(), alone->end(),
                                 [](const network::Usage& a, const network::Usage& b) {
                                   return a.link == b.link && a.coefficient == b.coefficient;
                                 });
    for (const std::uint32_t a : group.activities) {
      if (way_of_[a] != way) continue;
      system_.activities[a].usage = usage;
      system_.activities[a].own_usage = same ? usage : alone;
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
    system_.host_group = table(2);
    for (std::uint32_t g = 0; g < groups_.size(); ++g) {
      const Group& group = groups_[g];
      const std::uint32_t id = local(incidence_.item_of_group(g));
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
  const GroupLowering& lowering_;
  const Incidence& incidence_;
  const std::vector<std::uint32_t>& class_;
  std::vector<std::uint32_t> first_, local_;  // by class: its first item, its number among its kind
  std::vector<std::uint32_t> way_of_;         // by activity; none where it loads no link
  System system_;
};
}  // namespace

System assemble(const Program& program, const topology::Topology& topology, Shapes shapes,
                const std::vector<Group>& groups, const GroupLowering& lowering, const Incidence& incidence,
                const std::vector<std::uint32_t>& classes) {
  return Assembler(program, topology, groups, lowering, incidence, classes).run(std::move(shapes));
}
}  // namespace topsim::fold

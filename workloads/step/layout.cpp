#include "workloads/step/layout.hpp"

#include <functional>

namespace topsim::workloads {

using program::Dimension;
using program::Program;

Layout::Layout(const Plan& plan) {
  int stride = 1, expert = 1;
  for (const std::string& dimension : plan.rank_order) {
    if (dimension == "tp") tp_stride_ = stride, stride *= plan.tp;
    if (dimension == "cp") cp_stride_ = stride, stride *= plan.cp;
    if (dimension == "dp") dp_stride_ = stride, stride *= plan.dp;
    if (dimension == "pp") pp_stride_ = stride, stride *= plan.pp;
    if (dimension == "tp") expert_tensor_stride_ = expert, expert *= plan.etp;
    if (dimension == "ep") expert_stride_ = expert, expert *= plan.ep;
    if (dimension == "dp") expert_data_stride_ = expert, expert *= plan.experts.copies;
    if (dimension == "pp") expert_pp_stride_ = expert, expert *= plan.pp;
  }
}

namespace {

class Groups {
 public:
  Groups(Program& program, Dimension dimension) : program_(program), dimension_(dimension) {
    program.communicator_slots.emplace_back(program.ranks);
  }
  [[nodiscard]] std::uint8_t slot() const {
    return static_cast<std::uint8_t>(program_.communicator_slots.size() - 1);
  }
  void begin() { first_ = program_.members.size(); }
  void member(std::uint32_t rank) {
    program_.members.emplace_back(std::size_t{rank});
    program_.communicator_slots.back()[rank] = CommunicatorId(program_.communicators.size());
  }
  void end() {
    program_.communicators.push_back({dimension_, static_cast<std::uint32_t>(first_),
                                      static_cast<std::uint32_t>(program_.members.size() - first_)});
  }

 private:
  Program& program_;
  Dimension dimension_;
  std::size_t first_ = 0;
};

// Calls f for all coordinates below these sizes; a dimension of size 1 stays at 0.
template <class F>
void for_each(int tp, int cp, int dp, int pp, F&& f) {
  Coordinates at;
  for (at.pp = 0; at.pp < pp; ++at.pp)
    for (at.dp = 0; at.dp < dp; ++at.dp)
      for (at.cp = 0; at.cp < cp; ++at.cp)
        for (at.tp = 0; at.tp < tp; ++at.tp) f(at);
}

// Communicators along one dimension of the experts' layout: ranks whose other coordinates are equal; with
// `mirrored` also the ranks of the stage that DualPipe pairs with theirs.
std::uint8_t add_expert_groups(Program& program, const Plan& plan, const Layout& layout, Dimension dimension,
                               int ExpertCoordinates::*along, int size, bool mirrored) {
  Groups groups(program, dimension);
  const auto extent = [&](int ExpertCoordinates::*which, int whole) { return which == along ? 1 : whole; };
  for (int pp = 0; pp < (mirrored ? plan.pp / 2 : plan.pp); ++pp)
    for (int dp = 0; dp < extent(&ExpertCoordinates::dp, plan.experts.copies); ++dp)
      for (int ep = 0; ep < extent(&ExpertCoordinates::ep, plan.ep); ++ep)
        for (int etp = 0; etp < extent(&ExpertCoordinates::etp, plan.etp); ++etp) {
          groups.begin();
          ExpertCoordinates member{etp, ep, dp, pp};
          for (int side = 0; side < (mirrored ? 2 : 1); ++side) {
            member.pp = side == 0 ? pp : plan.pp - 1 - pp;
            for (member.*along = 0; member.*along < size; ++(member.*along))
              groups.member(layout.rank_of(member));
          }
          groups.end();
        }
  return groups.slot();
}

// Divides the copies of the same experts into `count` groups, like add_data_groups.
std::uint8_t add_expert_data_groups(Program& program, const Plan& plan, const Layout& layout, int count,
                                    int first_step, int size, int step) {
  Groups groups(program, Dimension::expert_data);
  for (int pp = 0; pp < plan.pp; ++pp)
    for (int ep = 0; ep < plan.ep; ++ep)
      for (int etp = 0; etp < plan.etp; ++etp)
        for (int group = 0; group < count; ++group) {
          groups.begin();
          for (int i = 0; i < size; ++i)
            groups.member(layout.rank_of(ExpertCoordinates{etp, ep, group * first_step + i * step, pp}));
          groups.end();
        }
  return groups.slot();
}

std::uint8_t add_peers(Program& program, const Plan& plan, const Layout& layout, int step, bool wrap) {
  auto& column = program.peer_slots.emplace_back(program.ranks);
  program.peer_dimension.push_back(Dimension::pipeline);
  for_each(plan.tp, plan.cp, plan.dp, plan.pp, [&](const Coordinates& at) {
    Coordinates peer = at;
    peer.pp += step;
    if (wrap) peer.pp = (peer.pp + plan.pp) % plan.pp;
    if (peer.pp >= 0 && peer.pp < plan.pp)
      column[layout.rank_of(at)] = RankId(std::size_t{layout.rank_of(peer)});
  });
  return static_cast<std::uint8_t>(program.peer_slots.size() - 1);
}

// Groups of ranks that differ only in `along`.
std::uint8_t add_dimension(Program& program, const Plan& plan, const Layout& layout, Dimension dimension,
                           int Coordinates::*along, int size) {
  Groups groups(program, dimension);
  const auto extent = [&](int Coordinates::*which, int whole) { return which == along ? 1 : whole; };
  for_each(extent(&Coordinates::tp, plan.tp), extent(&Coordinates::cp, plan.cp), plan.dp, plan.pp,
           [&](Coordinates at) {
             groups.begin();
             for (at.*along = 0; at.*along < size; ++(at.*along)) groups.member(layout.rank_of(at));
             groups.end();
           });
  return groups.slot();
}

// Divides all ranks with the same weights into `count` groups: member i of group g is replica g * first_step
// + i * step.
std::uint8_t add_data_groups(Program& program, const Plan& plan, const Layout& layout, int count,
                             int first_step, int size, int step) {
  Groups groups(program, Dimension::data);
  const bool mirrored = plan.mirrored();
  for_each(plan.tp, 1, 1, mirrored ? plan.pp / 2 : plan.pp, [&](Coordinates at) {
    const int stage = at.pp;
    for (int group = 0; group < count; ++group) {
      groups.begin();
      for (int i = 0; i < size; ++i) {
        const int index = group * first_step + i * step;
        const int side = index / (plan.dp * plan.cp);
        at.pp = side == 0 ? stage : plan.pp - 1 - stage;
        at.dp = index / plan.cp % plan.dp, at.cp = index % plan.cp;
        groups.member(layout.rank_of(at));
      }
      groups.end();
    }
  });
  return groups.slot();
}

// Context-parallel ranks hold the same weights: they reduce gradients together, as do DualPipe's mirrored
// copies. Hybrid sharding divides the group into runs that share one set of shards, and joins the ranks that
// hold the same shard.
void add_replicas(Program& program, const Plan& plan, const Layout& layout, Slots& slots) {
  const int copies = plan.replicas();
  const int shard = plan.zero > 0 && plan.shards.ranks < plan.dp * plan.cp ? plan.shards.ranks : copies;
  if (shard > 1) slots.data = add_data_groups(program, plan, layout, copies / shard, shard, shard, 1);
  if (shard > 1 && shard < copies)
    slots.replicas = add_data_groups(program, plan, layout, shard, 1, copies / shard, shard);
}

void add_experts(Program& program, const Plan& plan, const Layout& layout, Slots& slots) {
  const bool mirrored = plan.mirrored();
  if (plan.ep > 1 && !plan.sliced_experts())
    slots.expert =
        add_expert_groups(program, plan, layout, Dimension::expert, &ExpertCoordinates::ep, plan.ep, false);
  if (plan.etp > 1 && !plan.sliced_experts())
    slots.expert_tensor =
        add_expert_groups(program, plan, layout, Dimension::tensor, &ExpertCoordinates::etp, plan.etp, false);
  if (plan.shards_experts() && plan.experts.shards < plan.experts.copies) {
    const int shards = plan.experts.shards, runs = plan.experts.copies / shards;
    if (shards > 1)
      slots.expert_data = add_expert_data_groups(program, plan, layout, runs, shards, shards, 1);
    slots.expert_replicas = add_expert_data_groups(program, plan, layout, shards, 1, runs, shards);
  } else if (plan.experts.on_own_ranks && (plan.experts.copies > 1 || mirrored))
    slots.expert_data = add_expert_groups(program, plan, layout, Dimension::expert_data,
                                          &ExpertCoordinates::dp, plan.experts.copies, mirrored);
}

// The first and the last stage.
std::uint8_t add_embedding(Program& program, const Plan& plan, const Layout& layout) {
  Groups groups(program, Dimension::embedding);
  for_each(plan.tp, plan.cp, plan.dp, 1, [&](Coordinates at) {
    groups.begin();
    groups.member(layout.rank_of(at));
    at.pp = plan.pp - 1;
    groups.member(layout.rank_of(at));
    groups.end();
  });
  return groups.slot();
}

// The gradient norm is a sum over all ranks that hold a part: with a sharded optimiser that is the whole job.
// ZB-2p does not sum over its stages: each stage updates when it is done, based on the stages before it, and
// the sum is checked in the next step (post-validation; arXiv:2401.10241, section 4).
std::uint8_t add_norm(Program& program, const Plan& plan, const Layout& layout) {
  const bool sharded = plan.shards.optimizer > 1;
  const bool by_stage = plan.validates_afterwards();
  Groups groups(program, sharded ? Dimension::world : Dimension::model_parallel);
  // Sizes of the outer loop (one group each) and of the inner loop (members of a group).
  const auto of = [&](int whole, bool inside) { return std::pair(inside ? 1 : whole, inside ? whole : 1); };
  const auto [replicas, replica_members] = of(plan.dp, sharded);
  const auto [contexts, context_members] = of(plan.cp, sharded);
  const auto [stages, stage_members] = of(plan.pp, !by_stage);
  for_each(1, contexts, replicas, stages, [&](const Coordinates& outer) {
    std::vector<std::uint32_t> members;
    for_each(plan.tp, context_members, replica_members, stage_members, [&](Coordinates at) {
      at.cp += outer.cp, at.dp += outer.dp, at.pp += outer.pp;
      members.push_back(layout.rank_of(at));
    });
    std::sort(members.begin(), members.end());
    groups.begin();
    for (const std::uint32_t rank : members) groups.member(rank);
    groups.end();
  });
  return groups.slot();
}

std::uint8_t add_amax(Program& program, const Plan& plan, const Layout& layout) {
  const bool all = plan.amax_reduction == AmaxReduction::all;
  if (plan.tp * plan.cp * (all ? plan.dp : 1) == 1) return Slots::kNoSlot;
  Groups groups(program, all ? Dimension::world : Dimension::tensor);
  for_each(1, 1, all ? 1 : plan.dp, plan.pp, [&](const Coordinates& outer) {
    groups.begin();
    for_each(plan.tp, plan.cp, all ? plan.dp : 1, 1, [&](Coordinates at) {
      at.dp += outer.dp, at.pp = outer.pp;
      groups.member(layout.rank_of(at));
    });
    groups.end();
  });
  return groups.slot();
}

void add_neighbours(Program& program, const Plan& plan, const Layout& layout, Slots& slots) {
  const bool turned = plan.ends_meet();
  const bool wrap = (plan.virtual_stages > 1 && !turned) || plan.task == Task::decode;
  slots.next = add_peers(program, plan, layout, 1, wrap);
  slots.previous = add_peers(program, plan, layout, -1, wrap);
  program.peer_counterpart = {slots.previous, slots.next};
  if (!turned) return;
  slots.turned_next = add_peers(program, plan, layout, -1, false);
  slots.turned_previous = add_peers(program, plan, layout, 1, false);
  program.peer_counterpart.insert(program.peer_counterpart.end(), {slots.turned_previous, slots.turned_next});
}
}  // namespace

Slots lay_out(const Plan& plan, bool shared_embedding, Program& program) {
  const Layout layout(plan);
  Slots slots;
  program.ranks = static_cast<std::uint32_t>(plan.ranks());
  program.class_of_rank.resize(program.ranks);
  for_each(plan.tp, plan.cp, plan.dp, plan.pp, [&](const Coordinates& at) {
    program.class_of_rank[layout.rank_of(at)] = static_cast<std::uint16_t>(at.pp);
  });
  if (plan.tp > 1)
    slots.tensor = add_dimension(program, plan, layout, Dimension::tensor, &Coordinates::tp, plan.tp);
  if (plan.cp > 1)
    slots.context = add_dimension(program, plan, layout, Dimension::context, &Coordinates::cp, plan.cp);
  add_replicas(program, plan, layout, slots);
  add_experts(program, plan, layout, slots);
  // ZB-V and DualPipe put the first and the last part of the model on the same stage, so stages exchange no
  // sums.
  if (shared_embedding && plan.pp > 1 && !plan.ends_meet())
    slots.embedding = add_embedding(program, plan, layout);
  const int stages = plan.validates_afterwards() ? 1 : plan.pp;
  if (plan.tp * stages > 1 || plan.shards.optimizer > 1) slots.norm = add_norm(program, plan, layout);
  if (plan.amax_reduction != AmaxReduction::none) slots.amax = add_amax(program, plan, layout);
  if (plan.pp > 1) add_neighbours(program, plan, layout, slots);
  return slots;
}
}  // namespace topsim::workloads

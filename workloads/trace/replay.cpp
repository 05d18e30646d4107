#include "workloads/trace/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

#include "workloads/trace/messages.hpp"

namespace topsim::workloads::trace {
namespace {

using program::Op;
using program::OpKind;
using program::Phase;

// LogGOPSim's default S, "datasize at which we change from eager to rendezvous protocol" (simulator.ggo): a
// send of up to so many bytes ends at once.
constexpr std::int64_t kEager = 65'535;
constexpr std::size_t kMostStreams = 65'000;

// Orders nodes so that each comes after what it waits for; the lowest ready one first.
std::vector<std::uint32_t> in_order(const Trace& trace, const RankTrace& program) {
  const std::size_t nodes = program.nodes.size();
  std::vector<std::uint32_t> waiting(nodes, 0);
  std::vector<std::vector<std::uint32_t>> followers(nodes);
  for (std::uint32_t i = 0; i < nodes; ++i)
    for (const std::uint32_t earlier : program.after[i]) ++waiting[i], followers[earlier].push_back(i);
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t i = 0; i < nodes; ++i)
    if (waiting[i] == 0) ready.push(i);
  std::vector<std::uint32_t> order;
  while (!ready.empty()) {
    const std::uint32_t node = ready.top();
    ready.pop();
    order.push_back(node);
    for (const std::uint32_t follower : followers[node])
      if (--waiting[follower] == 0) ready.push(follower);
  }
  if (order.size() == nodes) return order;
  std::string circle;
  int shown = 0;
  for (std::uint32_t i = 0; i < nodes && shown < 5; ++i)
    if (waiting[i] > 0) circle += fmt::format("{}{}", shown++ > 0 ? ", " : "", program.nodes[i].id);
  fail(trace.file,
       fmt::format("rank {}: {} nodes wait for each other ({}{})", program.ranks.front(),
                   nodes - order.size(), circle, nodes - order.size() > 5 ? ", ..." : ""),
       "dependencies must not form a circle");
}

class Replay {
 public:
  Replay(const Trace& trace, const topology::Accelerator& accelerator) : trace_(trace) {
    double peak = 0;
    for (const char* format : {"bf16", "fp16", "fp32"})
      if (const auto found = accelerator.dense_flops.find(format);
          peak == 0 && found != accelerator.dense_flops.end())
        peak = found->second;
    peak_ = peak;
    bandwidth_ = accelerator.memory_bandwidth.value();
  }

  program::Program run() {
    program_.ranks = trace_.ranks;
    program_.labels = trace_.names;
    if (program_.labels.empty()) program_.labels.emplace_back();
    program_.labels[0] = "node";
    program_.class_of_rank.assign(trace_.ranks, 0);
    for (std::size_t p = 0; p < trace_.programs.size(); ++p)
      for (const std::uint32_t rank : trace_.programs[p].ranks)
        program_.class_of_rank[rank] = static_cast<std::uint16_t>(p);
    if (trace_.programs.size() > 65'535)
      fail(trace_.file, fmt::format("{} ranks with nodes of their own", trace_.programs.size()),
           "at most 65,535 can be replayed");
    for (const RankTrace& each : trace_.programs) orders_.push_back(in_order(trace_, each));
    messages_ = match_messages(trace_, orders_);
    lay_out_groups();
    lay_out_peers();
    for (std::size_t p = 0; p < trace_.programs.size(); ++p) emit(p);
    check_groups();
    return std::move(program_);
  }

 private:
  void lay_out_groups() {
    if (trace_.groups.size() >= kMostStreams)
      fail(trace_.file, fmt::format("{} groups of ranks", trace_.groups.size()),
           "at most 65,000 can be replayed");
    for (const Group& group : trace_.groups) {
      auto& column = program_.communicator_slots.emplace_back(trace_.ranks);
      for (const auto& members : group.members) {
        if (members.size() < 2) continue;
        const CommunicatorId id(program_.communicators.size());
        program_.communicators.push_back({group.dimension,
                                          static_cast<std::uint32_t>(program_.members.size()),
                                          static_cast<std::uint32_t>(members.size())});
        for (const std::uint32_t rank : members) {
          program_.members.emplace_back(std::size_t{rank});
          column[rank] = id;
        }
      }
    }
  }

  // A slot joins pairs of ranks, with each rank in at most one pair: the first slot that is free at both
  // ends.
  void lay_out_peers() {
    std::vector<std::vector<bool>> used(trace_.ranks);
    const auto is_used = [&](std::uint32_t rank, std::size_t slot) {
      return slot < used[rank].size() && used[rank][slot];
    };
    for (const auto& [pair, count] : messages_.channels) {
      auto& slots = slot_of_[pair];
      std::size_t slot = 0;
      for (std::uint32_t c = 0; c < count; ++c, ++slot) {
        while (is_used(pair.first, slot) || is_used(pair.second, slot)) ++slot;
        if (slot >= 65'000)
          fail(trace_.file, fmt::format("rank {} keeps more than 65,000 channels open", pair.first),
               "messages of one pair of ranks need fewer tags");
        for (const std::uint32_t rank : {pair.first, pair.second}) {
          if (used[rank].size() <= slot) used[rank].resize(slot + 1);
          used[rank][slot] = true;
        }
        while (program_.peer_slots.size() <= slot) {
          program_.peer_counterpart.push_back(static_cast<std::uint16_t>(program_.peer_slots.size()));
          program_.peer_dimension.push_back(program::Dimension::world);
          program_.peer_slots.emplace_back(trace_.ranks);
        }
        program_.peer_slots[slot][pair.first] = RankId(std::size_t{pair.second});
        program_.peer_slots[slot][pair.second] = RankId(std::size_t{pair.first});
        slots.push_back(static_cast<std::uint16_t>(slot));
      }
    }
  }

  Duration time_of(const Node& node) const {
    if (node.duration.count() > 0) return node.duration;
    if (node.kind == Kind::memory) return from_seconds(static_cast<double>(node.bytes) / bandwidth_);
    if (node.operations <= 0) return {};
    // As in ASTRA-sim, a node without operands takes no time.
    if (node.operand_bytes <= 0 || peak_ <= 0) return {};
    return from_seconds(std::max(node.operations / peak_, node.operand_bytes / bandwidth_));
  }

  using Stream = std::tuple<int, std::uint32_t, std::uint32_t>;

  // Streams are looked up by what runs in them; a node that follows nothing gets a new one.
  struct Emitter {
    program::RankProgramBuilder builder;
    std::map<Stream, std::uint16_t> streams;
    std::vector<std::vector<std::uint32_t>> ends;  // by node: ops that must end before its followers begin
  };

  void emit(std::size_t p) {
    const RankTrace& from = trace_.programs[p];
    const std::uint32_t rank = from.ranks.front();
    Emitter out{{program_, from.ranks.size() == 1 ? fmt::format("rank {}", rank) : std::string("every rank")},
                {},
                {}};
    out.ends.resize(from.nodes.size());
    std::uint32_t lone = 0;  // streams of nodes that nothing orders
    for (const std::uint32_t index : orders_[p]) {
      const Node& node = from.nodes[index];
      std::vector<std::uint32_t> after;
      for (const std::uint32_t earlier : from.after[index])
        after.insert(after.end(), out.ends[earlier].begin(), out.ends[earlier].end());
      std::sort(after.begin(), after.end());
      after.erase(std::unique(after.begin(), after.end()), after.end());
      const Matched* matched = messages_.find(p, index);
      // "Empty collectives can be discarded" (NCCL, src/enqueue.cc, taskAppend): nobody waits for anybody.
      const bool moves = node.kind == Kind::collective
                             ? group_size(node.group, rank) > 1 && node.bytes > 0
                             : (node.kind == Kind::send || node.kind == Kind::recv) && matched != nullptr;
      const bool works = node.kind == Kind::compute || node.kind == Kind::host || node.kind == Kind::memory;
      if (!moves && !works) {  // joins, messages to itself, collectives of one rank or of nothing
        out.ends[index] = joined(out, std::move(after), lone);
        continue;
      }
      Op op = make(node, rank, matched);
      op.stream = stream(out, key(node, matched));
      if (node.kind == Kind::recv) {  // posted ahead: followers wait for the same ops and for the message
        after.push_back(out.builder.add(op));
        out.ends[index] = joined(out, std::move(after), lone);
        continue;
      }
      const std::uint32_t added = out.builder.add(op, after);
      const bool eager = node.kind == Kind::send && node.bytes <= kEager;
      out.ends[index] = eager ? std::move(after) : std::vector<std::uint32_t>{added};
    }
    // Messages that the trace never receives.
    for (const Matched& extra : messages_.unreceived[p]) {
      Node node;
      node.kind = Kind::recv;
      Op op = make(node, rank, &extra);
      op.stream = stream(out, key(node, &extra));
      out.builder.add(op);
    }
    if (out.builder.size() == 0) out.builder.add(Op{});  // a step ends with its last op
    out.builder.finish();
  }

  // A few ops to wait for are kept; many are joined into one.
  std::vector<std::uint32_t> joined(Emitter& out, std::vector<std::uint32_t> after, std::uint32_t& lone) {
    constexpr std::size_t kFew = 16;
    if (after.size() <= kFew) return after;
    Op op;
    op.stream = stream(out, {4, lone++, 0});
    return {out.builder.add(op, after)};
  }

  std::uint32_t group_size(std::uint32_t group, std::uint32_t rank) const {
    const CommunicatorId id = program_.communicator_slots[group][rank];
    return id.valid() ? program_.communicators[id.index()].size : 1;
  }

  static Stream key(const Node& node, const Matched* matched) {
    switch (node.kind) {
      case Kind::compute:
        return {0, node.processor, 0};
      case Kind::host:
        return {1, node.processor, 0};
      case Kind::memory:
        return {2, 0, 0};
      case Kind::collective:
        return {3, node.group, 0};
      case Kind::send:
        return {5, matched->peer, matched->channel};
      case Kind::recv:
      case Kind::join:  // has no op
        break;
    }
    return {6, matched->peer, matched->channel};
  }

  std::uint16_t stream(Emitter& out, const Stream& key) {
    if (key == Stream{0, 0, 0}) return 0;
    const auto found = out.streams.find(key);
    if (found != out.streams.end()) return found->second;
    static constexpr const char* kWords[] = {"processor", "host", "memory", "group", "join", "to", "from"};
    const auto& [what, first, second] = key;
    if (out.streams.size() >= kMostStreams)
      fail(trace_.file, "a rank has more than 65,000 things under way at once",
           "the trace cannot be replayed");
    std::string name = what == 3   ? "group " + trace_.groups[first].name
                       : what == 2 ? std::string("memory")
                                   : fmt::format("{} {}", kWords[what], first);
    if (second > 0) name += fmt::format(" #{}", second);
    if (what == 1) name = fmt::format("host {}", first);
    const std::uint16_t number = out.builder.stream(name);
    out.streams.emplace(key, number);
    return number;
  }

  Op make(const Node& node, std::uint32_t rank, const Matched* matched) const {
    Op op;
    op.label = node.name;
    op.phase = Phase::other;
    switch (node.kind) {
      case Kind::collective:
        op.kind = OpKind::collective;
        op.collective = node.collective;
        op.slot = static_cast<std::uint16_t>(node.group);  // counted by lay_out_groups()
        op.bytes = Bytes(node.bytes);
        break;
      case Kind::send:
      case Kind::recv: {
        op.kind = node.kind == Kind::send ? OpKind::send : OpKind::recv;
        op.phase = Phase::transfer;
        const std::pair pair(std::min(rank, matched->peer), std::max(rank, matched->peer));
        op.slot = slot_of_.at(pair)[matched->channel];
        op.bytes = Bytes(matched->bytes);
        break;
      }
      case Kind::host:
        op.kind = OpKind::host_work;
        op.duration = time_of(node);
        break;
      case Kind::compute:
      case Kind::memory:
      case Kind::join:
        op.duration = time_of(node);
        op.flops = Flops(node.operations);
        break;
    }
    return op;
  }

  // Members of a group must make the same calls. Checked here for an error that names the rank and the call;
  // validate() would report an internal error.
  void check_groups() const {
    using Call = std::tuple<program::CollectiveKind, std::int64_t>;
    std::vector<std::map<std::uint16_t, std::vector<Call>>> calls(program_.classes.size());
    for (std::size_t c = 0; c < program_.classes.size(); ++c)
      for (const Op& op : program_.classes[c].ops)
        if (op.kind == OpKind::collective) calls[c][op.slot].emplace_back(op.collective, op.bytes.value());
    static const std::vector<Call> none;
    for (std::size_t g = 0; g < trace_.groups.size(); ++g) {
      const auto of = [&](std::uint32_t rank) -> const std::vector<Call>& {
        const auto& own = calls[program_.class_of_rank[rank]];
        const auto found = own.find(static_cast<std::uint16_t>(g));
        return found == own.end() ? none : found->second;
      };
      for (const auto& members : trace_.groups[g].members)
        for (const std::uint32_t rank : members)
          compare(trace_.groups[g].name, members.front(), of(members.front()), rank, of(rank));
    }
  }
  template <class Calls>
  void compare(const std::string& group, std::uint32_t first, const Calls& expected, std::uint32_t rank,
               const Calls& calls) const {
    if (expected == calls) return;
    std::size_t i = 0;
    while (i < std::min(expected.size(), calls.size()) && expected[i] == calls[i]) ++i;
    const auto text = [&](const Calls& list) {
      return i < list.size()
                 ? fmt::format("{} of {} bytes", program::name_of(std::get<0>(list[i])), std::get<1>(list[i]))
                 : std::string("nothing more");
    };
    fail(trace_.file,
         fmt::format("group {}: call {} of rank {} is {}, of rank {} it is {}", group, i + 1, first,
                     text(expected), rank, text(calls)),
         "all members of a group call the same in the same order");
  }

  const Trace& trace_;
  double peak_ = 0, bandwidth_ = 0;
  program::Program program_;
  std::vector<std::vector<std::uint32_t>> orders_;
  Messages messages_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint16_t>> slot_of_;
};
}  // namespace

void require_an_end(const Trace& trace) {
  for (const RankTrace& each : trace.programs) (void)in_order(trace, each);
}

program::Program to_program(const Trace& trace, const topology::Accelerator& accelerator) {
  return Replay(trace, accelerator).run();
}
}  // namespace topsim::workloads::trace

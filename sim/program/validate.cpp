// Checks run per program class, not per rank: every (class, slot) pair gets the number of its call sequence,
// and ranks are compared by these numbers.
#include <fmt/format.h>

#include <map>
#include <tuple>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/program/program.hpp"

namespace topsim::program {
namespace {

[[noreturn]] void fail(std::string message) {
  throw InternalError("program: " + std::move(message));
}

// Kind, bytes, time of own kernels; messages use only the bytes.
using Call = std::tuple<CollectiveKind, std::int64_t, Duration>;
using Calls = std::vector<Call>;

// Equal call sequences share a number; 0 is the empty sequence.
class Sequences {
 public:
  Sequences() { numbers_.emplace(Calls{}, 0); }
  std::size_t number_of(const Calls& calls) { return numbers_.emplace(calls, numbers_.size()).first->second; }

 private:
  std::map<Calls, std::size_t> numbers_;
};

// [class][slot] -> number of the call sequence.
using Table = std::vector<std::vector<std::size_t>>;

Table tabulate(const Program& program, OpKind kind, std::size_t slots, Sequences& sequences) {
  Table table;
  for (const RankProgram& rank_program : program.classes) {
    std::vector<Calls> calls(slots);
    for (const Op& op : rank_program.ops) {
      if (op.kind != kind) continue;
      if (op.slot >= slots) fail(fmt::format("{}: slot {} of {}", rank_program.name, op.slot, slots));
      const auto what = kind == OpKind::collective ? op.collective : CollectiveKind::send_recv;
      const Duration kernels = kind == OpKind::collective ? op.duration : Duration{};
      calls[op.slot].emplace_back(what, op.bytes.value(), kernels);
    }
    auto& row = table.emplace_back();
    for (const Calls& sequence : calls) row.push_back(sequences.number_of(sequence));
  }
  return table;
}

void check_shape(const RankProgram& rank_program, std::size_t labels) {
  const std::string& name = rank_program.name;
  const std::size_t ops = rank_program.ops.size();
  if (rank_program.streams.empty() || rank_program.streams[0] != "compute")
    fail(name + ": stream 0 is not \"compute\"");
  if (rank_program.dependency_begin.size() != ops + 1 || rank_program.dependency_begin.front() != 0 ||
      rank_program.dependency_begin.back() != rank_program.dependencies.size())
    fail(name + ": dependency columns do not fit the ops");
  for (std::size_t i = 0; i < ops; ++i) {
    const Op& op = rank_program.ops[i];
    if (rank_program.dependency_begin[i] > rank_program.dependency_begin[i + 1])
      fail(fmt::format("{}: op {}: dependencies run backwards", name, i));
    if (op.stream >= rank_program.streams.size())
      fail(fmt::format("{}: op {}: stream {}", name, i, op.stream));
    if (op.label >= labels) fail(fmt::format("{}: op {}: label {}", name, i, op.label));
    if (op.grids > rank_program.grids.size()) fail(fmt::format("{}: op {}: grids {}", name, i, op.grids));
    if (op.kind == OpKind::host_copy && op.slot >= Op::kHostSlots)
      fail(fmt::format("{}: op {}: copies with the host have no slot {}", name, i, op.slot));
    if (op.duration < Duration::zero() || op.launch < Duration::zero() || op.bytes < Bytes(0))
      fail(fmt::format("{}: op {}: a negative amount", name, i));
    for (const std::uint32_t dependency : rank_program.dependencies_of(i))
      if (dependency >= ops) fail(fmt::format("{}: op {} waits for op {} of {}", name, i, dependency, ops));
  }
}

// An op follows its stream's predecessor and its dependencies. Removing ops that wait for nothing,
// repeatedly, must remove all.
void check_acyclic(const RankProgram& rank_program) {
  const std::size_t ops = rank_program.ops.size();
  bool only_backwards = true;
  for (std::size_t i = 0; i < ops && only_backwards; ++i)
    for (const std::uint32_t dependency : rank_program.dependencies_of(i)) only_backwards &= dependency < i;
  if (only_backwards) return;

  std::vector<std::vector<std::uint32_t>> followers(ops);
  std::vector<std::uint32_t> waiting(ops, 0);
  std::vector<std::uint32_t> last_of_stream(rank_program.streams.size(), Id<void>::kNone);
  for (std::uint32_t i = 0; i < ops; ++i) {
    auto& last = last_of_stream[rank_program.ops[i].stream];
    if (last != Id<void>::kNone) followers[last].push_back(i), ++waiting[i];
    last = i;
    for (const std::uint32_t dependency : rank_program.dependencies_of(i))
      followers[dependency].push_back(i), ++waiting[i];
  }
  std::vector<std::uint32_t> ready;
  for (std::uint32_t i = 0; i < ops; ++i)
    if (waiting[i] == 0) ready.push_back(i);
  std::size_t removed = 0;
  while (!ready.empty()) {
    const std::uint32_t op = ready.back();
    ready.pop_back();
    ++removed;
    for (const std::uint32_t follower : followers[op])
      if (--waiting[follower] == 0) ready.push_back(follower);
  }
  if (removed != ops) fail(fmt::format("{}: {} ops wait for each other", rank_program.name, ops - removed));
}

void check_communicators(const Program& program) {
  Sequences sequences;
  const Table calls = tabulate(program, OpKind::collective, program.communicator_slots.size(), sequences);
  constexpr std::size_t kUnseen = static_cast<std::size_t>(-1);
  std::vector<std::size_t> expected(program.communicators.size(), kUnseen);
  std::vector<std::uint32_t> seen(program.communicators.size(), 0);
  for (std::size_t slot = 0; slot < program.communicator_slots.size(); ++slot) {
    const auto& column = program.communicator_slots[slot];
    if (column.size() != program.ranks)
      fail(fmt::format("communicator slot {} does not list every rank", slot));
    for (std::uint32_t rank = 0; rank < program.ranks; ++rank) {
      const std::size_t mine = calls[program.class_of_rank[rank]][slot];
      const CommunicatorId id = column[rank];
      if (!id.valid()) {
        if (mine != 0)
          fail(fmt::format("rank {} calls on slot {}, where it has no communicator", rank, slot));
        continue;
      }
      if (id.index() >= program.communicators.size())
        fail(fmt::format("communicator {} of rank {}", id.value, rank));
      ++seen[id.index()];
      std::size_t& theirs = expected[id.index()];
      if (theirs == kUnseen) theirs = mine;
      if (theirs != mine)
        fail(fmt::format("rank {} calls communicator {} ({}) otherwise than its first member", rank, id.value,
                         name_of(program.communicators[id.index()].dimension)));
    }
  }
  for (std::size_t c = 0; c < program.communicators.size(); ++c) {
    const Communicator& communicator = program.communicators[c];
    if (communicator.members_begin + std::size_t{communicator.size} > program.members.size())
      fail(fmt::format("communicator {}: members out of range", c));
    if (seen[c] != communicator.size)
      fail(fmt::format("communicator {} has {} members, {} ranks name it", c, communicator.size, seen[c]));
  }
}

void check_messages(const Program& program) {
  const std::size_t slots = program.peer_slots.size();
  if (program.peer_dimension.size() != slots || program.peer_counterpart.size() != slots)
    fail("every peer slot needs a dimension and a counterpart");
  Sequences sequences;
  const Table sends = tabulate(program, OpKind::send, slots, sequences);
  const Table recvs = tabulate(program, OpKind::recv, slots, sequences);
  for (std::size_t slot = 0; slot < slots; ++slot)
    if (program.peer_slots[slot].size() != program.ranks)
      fail(fmt::format("peer slot {} does not list every rank", slot));
  for (std::size_t slot = 0; slot < slots; ++slot) {
    const auto& column = program.peer_slots[slot];
    const std::size_t counterpart = program.peer_counterpart[slot];
    if (counterpart >= slots || program.peer_counterpart[counterpart] != slot)
      fail(fmt::format("peer slot {} has no counterpart that names it back", slot));
    for (std::uint32_t rank = 0; rank < program.ranks; ++rank) {
      const std::size_t mine = program.class_of_rank[rank];
      const RankId peer = column[rank];
      if (!peer.valid()) {
        if (sends[mine][slot] != 0 || recvs[mine][slot] != 0)
          fail(fmt::format("rank {} sends or receives on slot {}, where it has no peer", rank, slot));
        continue;
      }
      if (peer.index() >= program.ranks ||
          program.peer_slots[counterpart][peer.index()] != RankId(std::size_t{rank}))
        fail(fmt::format("peer slot {}: rank {} names rank {}, which does not name it back", slot, rank,
                         peer.value));
      if (sends[mine][slot] != recvs[program.class_of_rank[peer.index()]][counterpart])
        fail(fmt::format("slot {}: what rank {} sends is not what rank {} receives", slot, rank, peer.value));
    }
  }
}
}  // namespace

void validate(const Program& program) {
  if (program.class_of_rank.size() != program.ranks) fail("class_of_rank does not list every rank");
  for (const std::uint16_t rank_class : program.class_of_rank)
    if (rank_class >= program.classes.size())
      fail(fmt::format("class {} of {}", rank_class, program.classes.size()));
  for (const RankId member : program.members)
    if (member.index() >= program.ranks)
      fail(fmt::format("member {} of {} ranks", member.value, program.ranks));
  for (const RankProgram& rank_program : program.classes) {
    check_shape(rank_program, program.labels.size());
    check_acyclic(rank_program);
  }
  check_communicators(program);
  check_messages(program);
}
}  // namespace topsim::program

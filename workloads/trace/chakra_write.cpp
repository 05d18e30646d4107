// Writes Chakra execution traces; for the format see chakra_read.cpp.
#include <fmt/format.h>

#include <cmath>

#include "sim/base/protobuf_writer.hpp"
#include "workloads/trace/chakra_nodes.hpp"
#include "workloads/trace/formats.hpp"

namespace topsim::workloads::trace {
namespace {

using program::CollectiveKind;

std::uint64_t type_of(Kind kind) {
  switch (kind) {
    case Kind::memory:
      return kMemoryLoad;
    case Kind::send:
      return kSend;
    case Kind::recv:
      return kRecv;
    case Kind::collective:
      return kCollective;
    case Kind::join:
      return kMetadata;
    case Kind::compute:
    case Kind::host:
      break;
  }
  return kCompute;
}

void put(ProtobufWriter& node, std::string_view name, std::uint32_t field, std::uint64_t value) {
  ProtobufWriter attribute;
  attribute.text(1, name);
  attribute.integer(field, value);
  node.text(10, attribute.bytes());
}

// Chakra's number of a collective, and the size of a rank's input.
std::pair<std::uint64_t, std::int64_t> chakra_collective(const Node& node, std::int64_t ranks) {
  switch (node.collective) {
    case CollectiveKind::reduce:
      return {1, node.bytes};
    case CollectiveKind::all_gather:
      return {2, node.bytes / ranks};
    case CollectiveKind::broadcast:
      return {5, node.bytes};
    case CollectiveKind::all_to_all:
      return {6, node.bytes};
    case CollectiveKind::reduce_scatter:
      return {7, node.bytes};
    case CollectiveKind::barrier:
      return {9, 0};
    case CollectiveKind::all_reduce:
      return {0, node.bytes};
    case CollectiveKind::send_recv:
      break;
  }
  return {};
}

void put_duration(ProtobufWriter& node, Duration duration) {
  if (duration.count() <= 0) return;
  constexpr std::int64_t kMicrosecond = 1'000'000;
  node.integer(7, static_cast<std::uint64_t>((duration.count() + kMicrosecond / 2) / kMicrosecond));
  if (duration.count() % kMicrosecond != 0)
    put(node, kPicoseconds, 13, static_cast<std::uint64_t>(duration.count()));
}

void put_message(ProtobufWriter& node, const Node& from, const std::string& file) {
  if (from.peer == kAny || from.tag == kAny)
    fail(file, fmt::format("node {} receives from anybody", from.id), "GOAL alone can say that");
  put(node, "comm_size", 9, static_cast<std::uint64_t>(from.bytes));
  put(node, "comm_tag", 9, static_cast<std::uint64_t>(from.tag));
  put(node, from.kind == Kind::send ? "comm_dst" : "comm_src", 7, static_cast<std::uint64_t>(from.peer));
}

// A group in the file is one set of ranks, so every set of a trace's group gets a number.
class Sets {
 public:
  explicit Sets(const Trace& trace) : of_(trace.groups.size()) {
    for (std::size_t g = 0; g < trace.groups.size(); ++g) {
      of_[g].assign(trace.ranks, {});
      for (const auto& members : trace.groups[g].members) {
        ++count_;
        lines_ += fmt::format("{}\"{}\": [{}]", count_ == 1 ? "" : ",\n ", count_, fmt::join(members, ", "));
        for (const std::uint32_t rank : members)
          of_[g][rank] = {count_, static_cast<std::int64_t>(members.size())};
      }
    }
  }
  [[nodiscard]] std::string text() const { return '{' + lines_ + "}\n"; }

  void put_collective(ProtobufWriter& node, const Node& from, std::uint32_t rank,
                      const std::string& file) const {
    if (from.collective == CollectiveKind::send_recv)
      fail(file, fmt::format("node {} is a sendrecv of a group", from.id),
           "Chakra has none; write it as a send and a receive");
    const Set& set = of_[from.group][rank];
    if (from.collective == CollectiveKind::all_gather && from.bytes % set.ranks != 0)
      fail(file,
           fmt::format("node {} gathers {} bytes of {} ranks, and Chakra says how many are of each", from.id,
                       from.bytes, set.ranks),
           "a number of bytes that the ranks divide, or convert to native");
    const auto [type, size] = chakra_collective(from, set.ranks);
    put(node, "comm_type", 9, type);
    put(node, "comm_size", 9, static_cast<std::uint64_t>(size));
    ProtobufWriter group;
    group.text(1, "pg_name");
    group.text(29, fmt::format("{}", set.number));
    node.text(10, group.bytes());
  }

 private:
  struct Set {
    std::uint32_t number = 0;
    std::int64_t ranks = 1;
  };
  std::vector<std::vector<Set>> of_;  // by group and rank
  std::uint32_t count_ = 0;
  std::string lines_;
};

std::string rank_file(const Trace& trace, const RankTrace& program, std::uint32_t rank, const Sets& sets) {
  ProtobufWriter file, metadata;
  metadata.text(1, "0.0.4");
  file.block(metadata.bytes());
  for (std::size_t i = 0; i < program.nodes.size(); ++i) {
    const Node& from = program.nodes[i];
    ProtobufWriter node;
    node.integer(1, i + 1);
    node.text(2, trace.names[from.name]);
    node.integer(3, type_of(from.kind));
    for (const std::uint32_t earlier : program.after[i]) node.integer(5, earlier + 1);
    put_duration(node, from.duration);
    const auto unsigned_of = [](double value) { return static_cast<std::uint64_t>(std::llround(value)); };
    put(node, "is_cpu_op", 27, from.kind == Kind::host ? 1 : 0);
    if (from.operations > 0) put(node, "num_ops", 9, unsigned_of(from.operations));
    if (from.operand_bytes > 0) put(node, "tensor_size", 13, unsigned_of(from.operand_bytes));
    if (from.kind == Kind::memory) put(node, "tensor_size", 13, static_cast<std::uint64_t>(from.bytes));
    if (from.kind == Kind::send || from.kind == Kind::recv) put_message(node, from, trace.file);
    if (from.kind == Kind::collective) sets.put_collective(node, from, rank, trace.file);
    file.block(node.bytes());
  }
  return file.bytes();
}
}  // namespace

ChakraFiles write_chakra(const Trace& trace) {
  ChakraFiles result;
  const Sets sets(trace);
  result.groups = sets.text();
  result.ranks.resize(trace.ranks);
  for (const RankTrace& program : trace.programs)
    for (const std::uint32_t rank : program.ranks) result.ranks[rank] = rank_file(trace, program, rank, sets);
  return result;
}
}  // namespace topsim::workloads::trace

// MLCommons Chakra execution traces (github.com/mlcommons/chakra, schema/protobuf/et_def.proto), one file a
// rank: a length and a GlobalMetadata message, then a length and a Node message for each node.
//
// A node waits for its data and its control dependencies. Compute nodes of the accelerator run one after the
// other, likewise those of the host (is_cpu_op); collectives in the order of their group, messages by tag.
// Sizes are those of a rank's input tensor. A compute node without a duration is timed by roofline.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <unordered_map>

#include "sim/config/document.hpp"
#include "workloads/trace/chakra_nodes.hpp"
#include "workloads/trace/formats.hpp"
#include "workloads/trace/wire.hpp"

namespace topsim::workloads::trace {
namespace {

using program::CollectiveKind;
using program::Dimension;

constexpr std::array<std::string_view, 10> kCollectives{
    "ALL_REDUCE", "REDUCE",         "ALL_GATHER",           "GATHER", "SCATTER", "BROADCAST",
    "ALL_TO_ALL", "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK", "BARRIER"};
constexpr double kMost = 1e15;

struct Message {
  std::uint64_t id = 0, type = 0, duration_us = 0;
  std::string_view name, inputs;
  std::vector<std::uint64_t> dependencies;
  Attribute cpu, operations, tensor, comm_type, comm_size, source, destination, tag, group, picoseconds;
};

class Chakra {
 public:
  Chakra(const std::vector<std::string>& files, const std::vector<std::string>& bytes)
      : files_(files), bytes_(bytes) {
    trace_.format = "chakra";
    trace_.file = files.empty() ? std::string() : files.front();
    trace_.ranks = static_cast<std::uint32_t>(files.size());
  }

  Trace read(const std::string& groups, const std::string& groups_file) {
    Group world{"world", Dimension::world, {{}}};
    for (std::uint32_t r = 0; r < trace_.ranks; ++r) world.members[0].push_back(r);
    trace_.groups.push_back(std::move(world));
    if (!groups.empty()) read_groups(groups, groups_file);
    for (std::uint32_t r = 0; r < trace_.ranks; ++r) read_rank(r);
    if (gathers_)
      trace_.notes.emplace_back(
          "gathers and scatters are carried as reductions and broadcasts of all their parts");
    return std::move(trace_);
  }

 private:
  // {"name": [ranks], ...}
  void read_groups(const std::string& text, const std::string& file) {
    const config::Document document = config::Document::parse(text, file);
    const config::Node root = document.root();
    const auto at = [&](const config::Node& node, std::string message, std::string help) {
      const Place place = node.place();
      fail_at(file, text, place.line, place.column, place.length, std::move(message), std::move(help));
    };
    if (!root.is(config::Kind::object))
      at(root, "process groups are an object", "{\"1\": [0, 1], \"2\": [2, 3]}");
    for (std::size_t g = 0; g < root.size(); ++g) {
      const config::Node list = root[g];
      if (!list.is(config::Kind::array)) at(list, "a process group is a list of ranks", "{\"1\": [0, 1]}");
      std::vector<std::uint32_t> ranks;
      for (std::size_t i = 0; i < list.size(); ++i) {
        if (!list[i].is(config::Kind::integer) || list[i].integer() < 0 || list[i].integer() >= trace_.ranks)
          at(list[i], "no rank of the trace", fmt::format("its ranks are 0 to {}", trace_.ranks - 1));
        ranks.push_back(static_cast<std::uint32_t>(list[i].integer()));
      }
      std::vector<std::uint32_t> sorted = ranks;
      std::sort(sorted.begin(), sorted.end());
      if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
        at(list, "a rank twice in one process group", "each rank once");
      if (ranks.empty()) continue;
      define(list.key(), {}, std::move(ranks));
    }
  }

  void define(const std::string& name, std::string_view description, std::vector<std::uint32_t> ranks) {
    if (group_of_.count(name) > 0) return;
    constexpr std::array<std::pair<std::string_view, Dimension>, 8> known{{{"tensor", Dimension::tensor},
                                                                           {"tp", Dimension::tensor},
                                                                           {"data", Dimension::data},
                                                                           {"dp", Dimension::data},
                                                                           {"context", Dimension::context},
                                                                           {"cp", Dimension::context},
                                                                           {"expert", Dimension::expert},
                                                                           {"ep", Dimension::expert}}};
    Group group{name, Dimension::world, {std::move(ranks)}};
    for (const auto& [word, dimension] : known)
      if (description == word || (word.size() > 2 && description.find(word) != std::string_view::npos))
        group.dimension = dimension;
    group_of_[name] = static_cast<std::uint32_t>(trace_.groups.size());
    trace_.groups.push_back(std::move(group));
  }

  [[noreturn]] void broken(std::uint32_t rank, std::size_t byte, std::string what) const {
    fail(files_[rank],
         fmt::format("{} at byte {}: {}", nodes_read_ == 0 ? "no Chakra trace" : "the trace breaks off", byte,
                     what),
         nodes_read_ == 0 ? "a Chakra trace is written by mlcommons/chakra, one file a rank"
                          : fmt::format("{} nodes before it were read: is the file cut off?", nodes_read_));
  }
  [[noreturn]] void wrong(std::uint32_t rank, const Message& node, std::string what,
                          std::string help = {}) const {
    fail(files_[rank], fmt::format("node {} (\"{}\"): {}", node.id, node.name.substr(0, 60), what),
         std::move(help));
  }

  void read_rank(std::uint32_t rank) {
    WireReader reader(bytes_[rank]);
    nodes_read_ = 0;
    if (!reader.block()) broken(rank, reader.position(), "the file has no metadata message");
    std::vector<Message> messages;
    while (!reader.ended()) {
      const std::size_t begin = reader.position();
      const auto block = reader.block();
      if (!block) broken(rank, begin, "a message is longer than the file");
      messages.push_back(message(rank, begin, *block));
      ++nodes_read_;
    }
    // Ready nodes are issued in ascending order of their number.
    std::stable_sort(messages.begin(), messages.end(),
                     [](const Message& a, const Message& b) { return a.id < b.id; });
    std::unordered_map<std::uint64_t, std::uint32_t> index;
    for (std::uint32_t i = 0; i < messages.size(); ++i)
      if (!index.emplace(messages[i].id, i).second) wrong(rank, messages[i], "two nodes have this number");
    for (const Message& each : messages)
      if (each.type == kMetadata) process_groups(rank, each);
    RankTrace& program = trace_.programs.emplace_back();
    program.ranks = {rank};
    for (const Message& each : messages) {
      std::vector<std::uint32_t> after;
      for (const std::uint64_t dependency : each.dependencies) {
        const auto found = index.find(dependency);
        if (found == index.end())
          wrong(rank, each, fmt::format("it waits for node {}, which the trace does not have", dependency));
        after.push_back(found->second);
      }
      program.add(node(rank, each), std::move(after));
    }
  }

  Message message(std::uint32_t rank, std::size_t begin, std::string_view block) const {
    Message result;
    WireReader reader(block);
    while (!reader.ended()) {
      const auto field = reader.field();
      if (!field) broken(rank, begin + reader.position(), "a field that protocol buffers do not have");
      if (field->number == 1 && field->type == 0) result.id = field->integer;
      if (field->number == 2 && field->type == 2) result.name = field->bytes;
      if (field->number == 3 && field->type == 0) result.type = field->integer;
      if (field->number == 4 || field->number == 5) dependencies(rank, begin, *field, result.dependencies);
      if (field->number == 7 && field->type == 0) result.duration_us = field->integer;
      if (field->number == 8 && field->type == 2) result.inputs = field->bytes;
      if (field->number == 10 && field->type == 2) read_attribute(rank, begin, field->bytes, result);
    }
    return result;
  }

  void dependencies(std::uint32_t rank, std::size_t begin, const WireField& field,
                    std::vector<std::uint64_t>& out) const {
    if (field.type == 0) out.push_back(field.integer);
    if (field.type != 2) return;
    WireReader packed(field.bytes);
    while (!packed.ended()) {
      const auto value = packed.varint();
      if (!value) broken(rank, begin, "a list of dependencies breaks off");
      out.push_back(*value);
    }
  }

  void read_attribute(std::uint32_t rank, std::size_t begin, std::string_view block, Message& out) const {
    WireReader reader(block);
    std::string_view name;
    Attribute value;
    while (!reader.ended()) {
      const auto field = reader.field();
      if (!field) broken(rank, begin, "an attribute breaks off");
      if (field->number == 1 && field->type == 2) {
        name = field->bytes;
      } else if (field->number > 2) {
        value = attribute(*field);
      }
    }
    const std::array<std::pair<std::string_view, Attribute*>, 10> known{{{"is_cpu_op", &out.cpu},
                                                                         {"num_ops", &out.operations},
                                                                         {"tensor_size", &out.tensor},
                                                                         {"comm_type", &out.comm_type},
                                                                         {"comm_size", &out.comm_size},
                                                                         {"comm_src", &out.source},
                                                                         {"comm_dst", &out.destination},
                                                                         {"comm_tag", &out.tag},
                                                                         {"pg_name", &out.group},
                                                                         {kPicoseconds, &out.picoseconds}}};
    for (const auto& [word, attribute] : known)
      if (word == name && value.given) *attribute = value;
  }

  // PyTorch's "## process_group:init ##" node: its inputs contain the JSON list of groups.
  void process_groups(std::uint32_t rank, const Message& node) {
    if (node.name.find("process_group") == std::string_view::npos) return;
    const std::size_t begin = node.inputs.find('['), end = node.inputs.rfind(']');
    if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return;
    std::string text(node.inputs.substr(begin, end + 1 - begin));
    if (const std::size_t list = text.find("[{"); list != std::string::npos) text = text.substr(list);
    if (const std::size_t last = text.rfind("}]"); last != std::string::npos) text.resize(last + 2);
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i)
      if (text[i] != '\\') plain += text[i];
    try {
      const config::Document document = config::Document::parse(plain, files_[rank]);
      const config::Node root = document.root();
      for (std::size_t g = 0; g < root.size(); ++g) {
        const config::Node name = root[g].find("pg_name"), ranks = root[g].find("ranks"),
                           description = root[g].find("pg_desc");
        if (!name.is(config::Kind::string) || !ranks.is(config::Kind::array)) continue;
        std::vector<std::uint32_t> members;
        for (std::size_t i = 0; i < ranks.size(); ++i)
          if (ranks[i].is(config::Kind::integer) && ranks[i].integer() >= 0 &&
              ranks[i].integer() < trace_.ranks)
            members.push_back(static_cast<std::uint32_t>(ranks[i].integer()));
        std::sort(members.begin(), members.end());
        members.erase(std::unique(members.begin(), members.end()), members.end());
        // An empty list means all ranks.
        if (ranks.size() == 0) members = trace_.groups[0].members[0];
        if (!members.empty())
          define(name.text(), description.is(config::Kind::string) ? description.text() : "",
                 std::move(members));
      }
    } catch (const ConfigError& error) {
      wrong(rank, node, "its list of process groups is no JSON: " + error.problems().front().message);
    }
  }

  double amount(std::uint32_t rank, const Message& node, const Attribute& value, const char* what) const {
    if (!(value.number >= 0 && value.number <= kMost))
      wrong(rank, node, fmt::format("{} is {}", what, value.number), "sizes are from 0 to 1e15");
    return value.number;
  }

  std::uint32_t group(std::uint32_t rank, const Message& node) const {
    const std::string_view name = node.group.text;
    const auto found = group_of_.find(name);
    const bool world = name.empty() || (found == group_of_.end() && name == "0");
    if (!world && found == group_of_.end())
      wrong(rank, node, fmt::format("process group \"{}\" is not described", name.substr(0, 60)),
            "give workload.trace.groups, a JSON file {\"1\": [0, 1], ...}");
    const std::uint32_t result = world ? 0 : found->second;
    const auto& members = trace_.groups[result].members[0];
    if (std::find(members.begin(), members.end(), rank) == members.end())
      wrong(rank, node,
            fmt::format("rank {} is no member of process group \"{}\"", rank, name.substr(0, 60)));
    return result;
  }

  // Picoseconds are used if they agree with the microseconds: a tool may have changed only the latter.
  [[nodiscard]] Duration duration(std::uint32_t rank, const Message& from) const {
    const double microseconds = static_cast<double>(from.duration_us);
    if (microseconds * 1e6 > 9e18) wrong(rank, from, "its duration is longer than 106 days");
    if (from.picoseconds.given && std::abs(from.picoseconds.number / 1e6 - microseconds) <= 0.5)
      return Duration(std::llround(from.picoseconds.number));
    return Duration(static_cast<std::int64_t>(from.duration_us) * 1'000'000);
  }

  Node node(std::uint32_t rank, const Message& from) {
    Node result;
    result.id = from.id;
    result.name = names_.of(from.name);
    const bool cpu = from.cpu.number != 0;
    result.duration = duration(rank, from);
    switch (from.type) {
      case kMetadata:
        result.duration = {};
        break;
      case kMemoryLoad:
      case kMemoryStore:
        result.kind = Kind::memory;
        result.bytes = std::llround(amount(rank, from, from.tensor, "tensor_size"));
        break;
      case kCompute:
        result.kind = cpu ? Kind::host : Kind::compute;
        result.operations = amount(rank, from, from.operations, "num_ops");
        result.operand_bytes = amount(rank, from, from.tensor, "tensor_size");
        break;
      case kSend:
      case kRecv: {
        result.kind = from.type == kSend ? Kind::send : Kind::recv;
        const Attribute& peer = from.type == kSend ? from.destination : from.source;
        if (!peer.given || !(peer.number >= 0 && peer.number < trace_.ranks) ||
            peer.number != std::floor(peer.number))
          wrong(rank, from,
                fmt::format("its peer is {}", peer.given ? fmt::format("{}", peer.number) : "not given"),
                fmt::format("ranks are 0 to {}", trace_.ranks - 1));
        result.peer = static_cast<std::int64_t>(peer.number);
        if (!(std::abs(from.tag.number) <= kMost)) wrong(rank, from, "its tag is no whole number");
        result.tag = std::llround(from.tag.number);
        result.bytes = std::llround(amount(rank, from, from.comm_size, "comm_size"));
        break;
      }
      case kCollective:
        collective(rank, from, result);
        break;
      default:
        wrong(rank, from, fmt::format("unknown node type {}", from.type), "1 (metadata) to 7 (collective)");
    }
    return result;
  }

  void collective(std::uint32_t rank, const Message& from, Node& result) {
    result.kind = Kind::collective;
    result.duration = {};
    result.group = group(rank, from);
    const auto type = from.comm_type.number;
    if (!(type >= 0 && type < static_cast<double>(kCollectives.size())))
      wrong(rank, from, fmt::format("unknown collective {}", type),
            fmt::format("0 ({}) to 9 ({})", kCollectives.front(), kCollectives.back()));
    const auto size = std::llround(amount(rank, from, from.comm_size, "comm_size"));
    const auto ranks = static_cast<std::int64_t>(trace_.groups[result.group].members[0].size());
    // From the size that every rank sends to that of all ranks.
    const auto of_all = [&] {
      if (static_cast<double>(size) * static_cast<double>(ranks) > kMost)
        wrong(rank, from, fmt::format("comm_size is {} on each of {} ranks", size, ranks),
              "a call moves at most 1e15 bytes");
      return size * ranks;
    };
    result.bytes = size;
    switch (static_cast<int>(type)) {
      case 0:
        result.collective = CollectiveKind::all_reduce;
        break;
      case 1:
        result.collective = CollectiveKind::reduce;
        break;
      case 2:
        result.collective = CollectiveKind::all_gather;
        result.bytes = of_all();
        break;
      case 3:
        result.collective = CollectiveKind::reduce;
        result.bytes = of_all();
        gathers_ = true;
        break;
      case 4:
        gathers_ = true;
        [[fallthrough]];
      case 5:
        result.collective = CollectiveKind::broadcast;
        break;
      case 6:
        result.collective = CollectiveKind::all_to_all;
        break;
      case 7:
      case 8:
        result.collective = CollectiveKind::reduce_scatter;
        break;
      default:  // NCCL has no barrier: frameworks all-reduce one element
        result.collective = CollectiveKind::all_reduce;
        result.bytes = 4;
    }
  }

  const std::vector<std::string>& files_;
  const std::vector<std::string>& bytes_;
  std::size_t nodes_read_ = 0;
  std::map<std::string, std::uint32_t, std::less<>> group_of_;
  bool gathers_ = false;
  Trace trace_;
  Names names_{trace_.names};
};
}  // namespace

Trace read_chakra(const std::vector<std::string>& files, const std::vector<std::string>& bytes,
                  const std::string& groups, const std::string& groups_file) {
  return Chakra(files, bytes).read(groups, groups_file);
}
}  // namespace topsim::workloads::trace

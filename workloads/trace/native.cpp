// topsim.trace/1: a trace as JSON that a person can write.
//   {"format": "topsim.trace/1", "ranks": 4,
//    "groups": [{"name": "tp", "dimension": "tensor", "members": [[0, 1], [2, 3]]}],
//    "programs": [{"ranks": [0, 1, 2, 3], "nodes": [
//      {"id": 1, "kind": "compute", "name": "fc1", "duration": "10 us"},
//      {"id": 2, "kind": "collective", "collective": "all_reduce", "group": "tp", "bytes": "16 MiB", "after":
//      [1]}]}]}
// A program has no nodes, a node follows nothing and a trace has no groups where they are left out.
// Further keys of a node: operations and operands (compute without a duration), processor, peer and tag
// (send, recv; a rank that sends or receives has a program of its own).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <unordered_map>

#include "sim/base/suggest.hpp"
#include "sim/config/quantity.hpp"
#include "sim/config/reader.hpp"
#include "workloads/trace/formats.hpp"

namespace topsim::workloads::trace {
namespace {

using program::CollectiveKind;
using program::Dimension;
using JsonNode = config::Node;

using Keys = std::string_view[];
constexpr Keys kTraceKeys = {"format", "ranks", "groups", "programs"};
constexpr Keys kGroupKeys = {"name", "dimension", "members"};
constexpr Keys kProgramKeys = {"ranks", "nodes"};
constexpr Keys kNodeKeys = {"id",         "kind",  "name", "duration", "operations", "operands", "bytes",
                            "collective", "group", "peer", "tag",      "after",      "processor"};

// What a node says beside its id, kind, name and "after", by its kind. Other keys would do nothing.
std::span<const std::string_view> keys_of(trace::Kind kind) {
  static constexpr Keys kWork = {"duration", "operations", "operands", "processor"};
  static constexpr Keys kMemory = {"duration", "bytes"};
  static constexpr Keys kMessage = {"bytes", "peer", "tag"};
  static constexpr Keys kCollective = {"collective", "group", "bytes"};
  switch (kind) {
    case trace::Kind::compute:
    case trace::Kind::host:
      return kWork;
    case trace::Kind::memory:
      return kMemory;
    case trace::Kind::send:
    case trace::Kind::recv:
      return kMessage;
    case trace::Kind::collective:
      return kCollective;
    case trace::Kind::join:
      break;
  }
  return {};
}
bool among(std::span<const std::string_view> keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

class Native {
 public:
  Native(const std::string& text, const std::string& file) : document_(config::Document::parse(text, file)) {
    trace_.format = "native";
    trace_.file = file;
  }

  Trace read() {
    const JsonNode root = document_.root();
    if (!root.is(config::Kind::object) || !root.find("format").is(config::Kind::string) ||
        root.find("format").text() != "topsim.trace/1") {
      problem(root, "no topsim trace", "its first key is \"format\": \"topsim.trace/1\"");
      reader_.finish();
    }
    check_keys(root, "a trace", kTraceKeys);
    const std::int64_t ranks = integer(root, "ranks", 1, 1 << 22);
    reader_.finish();
    trace_.ranks = static_cast<std::uint32_t>(ranks);
    groups(list_of(root, "groups", kGroup));
    reader_.finish();
    programs(root.find("programs"));
    reader_.finish();
    return std::move(trace_);
  }

 private:
  void problem(const JsonNode& at, std::string message, std::string help) {
    reader_.problem(at, std::move(message), {}, std::move(help));
  }
  std::int64_t integer(const JsonNode& object, const char* key, std::int64_t least, std::int64_t most,
                       std::optional<std::int64_t> otherwise = {}) {
    const JsonNode value = object.find(key);
    if (!value && otherwise) return *otherwise;
    if (!value) {
      problem(object, fmt::format("\"{}\" is missing", key), "a whole number");
    } else if (!value.is(config::Kind::integer) || value.integer() < least || value.integer() > most) {
      problem(value, fmt::format("\"{}\" must be a whole number from {} to {}", key, least, most), {});
    } else {
      return value.integer();
    }
    return least;
  }
  std::string text(const JsonNode& object, const char* key, std::string_view otherwise) {
    const JsonNode value = object.find(key);
    if (!value) return std::string(otherwise);
    if (value.is(config::Kind::string)) return value.text();
    problem(value, fmt::format("\"{}\" must be a string", key), {});
    return std::string(otherwise);
  }
  std::int64_t quantity(const JsonNode& object, const char* key, config::Dimension dimension) {
    const JsonNode value = object.find(key);
    if (!value) return 0;
    if (value.is(config::Kind::integer) && value.integer() == 0) return 0;
    if (!value.is(config::Kind::string)) {
      problem(value, fmt::format("\"{}\" must be {}", key, config::name_of(dimension)),
              fmt::format("for example \"{}\"", config::example_of(dimension)));
      return 0;
    }
    const config::ParsedQuantity parsed = config::parse_quantity(dimension, value.text());
    if (parsed.error) {
      reader_.problem(value, parsed.error->message, parsed.error->label, parsed.error->help);
      return 0;
    }
    if (parsed.exact < 0 || parsed.exact > std::int64_t{1} << 60) {
      problem(value, fmt::format("\"{}\" is out of range", key), {});
      return 0;
    }
    return parsed.exact;
  }
  double amount(const JsonNode& object, const char* key) {
    const JsonNode value = object.find(key);
    if (!value) return 0;
    if (value.is_number() && value.number() >= 0 && value.number() <= 1e24) return value.number();
    problem(value, fmt::format("\"{}\" must be a number from 0", key), {});
    return 0;
  }
  // The list of a key; reports anything else. Absent where it is left out.
  JsonNode list_of(const JsonNode& object, const char* key, const char* help) {
    const JsonNode value = object.find(key);
    return !value || is_list(value, fmt::format("\"{}\"", key), help) ? value : JsonNode();
  }
  bool is_list(const JsonNode& value, const std::string& what, const char* help) {
    if (value.is(config::Kind::array)) return true;
    problem(value, what + " must be a list", help);
    return false;
  }
  bool is_object(const JsonNode& value, const char* what, const char* help) {
    if (value.is(config::Kind::object)) return true;
    problem(value, fmt::format("{} is an object", what), help);
    return false;
  }
  std::vector<std::uint32_t> ranks(const JsonNode& list) {
    std::vector<std::uint32_t> result;
    std::set<std::uint32_t> seen;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!list[i].is(config::Kind::integer) || list[i].integer() < 0 || list[i].integer() >= trace_.ranks) {
        problem(list[i], "no rank of the trace", fmt::format("its ranks are 0 to {}", trace_.ranks - 1));
      } else if (!seen.insert(static_cast<std::uint32_t>(list[i].integer())).second) {
        problem(list[i], "a rank twice", "each rank once");
      } else {
        result.push_back(static_cast<std::uint32_t>(list[i].integer()));
      }
    }
    return result;
  }

  void check_keys(const JsonNode& object, const char* what, std::span<const std::string_view> known) {
    for (std::size_t k = 0; k < object.size(); ++k) {
      const std::string& key = object[k].key();
      if (config::is_remark(key) || among(known, key)) continue;
      reader_.problem_at_key(object[k], fmt::format("unknown key \"{}\"", key), {},
                             fmt::format("keys of {}: {}", what, fmt::join(known, ", ")));
    }
  }

  static constexpr const char* kGroup = "[{\"name\": \"tp\", \"members\": [[0, 1], [2, 3]]}]";
  static constexpr const char* kProgram = "a list of {\"ranks\": [...], \"nodes\": [...]}";
  static constexpr const char* kSets = "one list for each set of ranks: [[0, 1], [2, 3]]";

  void groups(const JsonNode& list) {
    for (std::size_t g = 0; g < list.size(); ++g) {
      if (!is_object(list[g], "a group", kGroup)) continue;
      check_keys(list[g], "a group", kGroupKeys);
      Group group;
      group.name = text(list[g], "name", "");
      if (!group_of_.emplace(group.name, static_cast<std::uint32_t>(g)).second)
        problem(list[g], fmt::format("two groups are called \"{}\"", group.name),
                "give each a name of its own");
      const std::string dimension = text(list[g], "dimension", "world");
      bool known = false;
      for (std::size_t d = 0; d < program::kDimensions; ++d) {
        if (program::name_of(static_cast<Dimension>(d)) != dimension) continue;
        group.dimension = static_cast<Dimension>(d);
        known = true;
      }
      if (!known)
        problem(list[g].find("dimension"), fmt::format("unknown dimension \"{}\"", dimension),
                "tensor, data, expert, context, world");
      const JsonNode sets = list_of(list[g], "members", kSets);
      if (!list[g].find("members")) problem(list[g], "\"members\" is missing", kSets);
      std::set<std::uint32_t> seen;
      for (std::size_t s = 0; s < sets.size(); ++s) {
        if (!is_list(sets[s], "a set of ranks", kSets)) continue;
        group.members.push_back(ranks(sets[s]));
        for (const std::uint32_t rank : group.members.back())
          if (!seen.insert(rank).second)
            problem(sets[s], fmt::format("rank {} is in two sets of group \"{}\"", rank, group.name),
                    "sets do not overlap");
      }
      trace_.groups.push_back(std::move(group));
    }
  }

  void programs(const JsonNode& list) {
    if (!list.is(config::Kind::array)) {
      if (list) (void)is_list(list, "\"programs\"", kProgram);
      if (!list) problem(document_.root(), "\"programs\" is missing", kProgram);
      return;
    }
    std::vector<bool> has(trace_.ranks, false);
    for (std::size_t p = 0; p < list.size(); ++p) {
      if (!is_object(list[p], "a program", "{\"ranks\": [0, 1], \"nodes\": [...]}")) continue;
      check_keys(list[p], "a program", kProgramKeys);
      RankTrace& program = trace_.programs.emplace_back();
      program.ranks = ranks(list_of(list[p], "ranks", "for example [0, 1]"));
      if (program.ranks.empty() && (!list[p].find("ranks") || list[p].find("ranks").is(config::Kind::array)))
        problem(list[p], "a program of no rank", "\"ranks\": [0, 1]");
      for (const std::uint32_t rank : program.ranks) {
        if (has[rank])
          problem(list[p].find("ranks"), fmt::format("rank {} has two programs", rank), "one each");
        has[rank] = true;
      }
      nodes(list_of(list[p], "nodes", "one object for each node"), program);
    }
    if (!reader_.ok()) return;
    const auto none = std::find(has.begin(), has.end(), false);
    if (none != has.end())
      problem(list, fmt::format("rank {} has no program", none - has.begin()),
              "a program without nodes is one too");
  }

  void nodes(const JsonNode& list, RankTrace& program) {
    std::unordered_map<std::int64_t, std::uint32_t> index;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const JsonNode from = list[i];
      if (!is_object(from, "a node", "{\"id\": 1, \"kind\": \"compute\", \"duration\": \"10 us\"}")) continue;
      check_keys(from, "a node", kNodeKeys);
      const std::int64_t id = integer(from, "id", 0, std::int64_t{1} << 53);
      if (!index.emplace(id, static_cast<std::uint32_t>(i)).second)
        problem(from.find("id"), fmt::format("two nodes have the id {}", id), "one each");
      program.add(node(from, id));
    }
    if (!reader_.ok()) return;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const JsonNode after = list_of(list[i], "after", "the ids of what must have ended: [1, 2]");
      for (std::size_t k = 0; k < after.size(); ++k) {
        const auto found = after[k].is(config::Kind::integer) ? index.find(after[k].integer()) : index.end();
        if (found == index.end()) {
          problem(after[k], "no node of this program", "\"after\" lists ids");
        } else {
          program.after[i].push_back(found->second);
        }
      }
    }
  }

  void check_keys_of_kind(const JsonNode& from, trace::Kind kind) {
    static constexpr Keys kOfAll = {"id", "kind", "name", "after"};
    const auto own = keys_of(kind);
    for (std::size_t k = 0; k < from.size(); ++k) {
      const std::string& key = from[k].key();
      if (among(kOfAll, key) || among(own, key) || !among(kNodeKeys, key)) continue;
      reader_.problem_at_key(
          from[k], fmt::format("\"{}\" means nothing for a node of kind {}", key, name_of(kind)), {},
          fmt::format("it has {}{}{}", fmt::join(kOfAll, ", "), own.empty() ? "" : ", ",
                      fmt::join(own, ", ")));
    }
  }

  Node node(const JsonNode& from, std::int64_t id) {
    Node result;
    result.id = static_cast<std::uint64_t>(id);
    result.name = names_.of(text(from, "name", ""));
    const std::string kind = text(from, "kind", "");
    bool known = false;
    for (std::uint8_t k = 0; k <= static_cast<std::uint8_t>(trace::Kind::join); ++k)
      if (name_of(static_cast<trace::Kind>(k)) == kind)
        result.kind = static_cast<trace::Kind>(k), known = true;
    if (!known)
      problem(from.find("kind") ? from.find("kind") : from, fmt::format("unknown kind of node \"{}\"", kind),
              "compute, host, memory, send, recv, collective or join");
    if (known) check_keys_of_kind(from, result.kind);
    result.duration = Duration(quantity(from, "duration", config::Dimension::time));
    result.operations = amount(from, "operations");
    result.operand_bytes = static_cast<double>(quantity(from, "operands", config::Dimension::size));
    result.bytes = quantity(from, "bytes", config::Dimension::size);
    result.processor = static_cast<std::uint32_t>(integer(from, "processor", 0, 255, 0));
    if (result.kind == trace::Kind::send || result.kind == trace::Kind::recv) {
      result.peer = integer(from, "peer", 0, std::int64_t{trace_.ranks} - 1);
      result.tag = integer(from, "tag", 0, std::int64_t{1} << 53, 0);
    }
    if (result.kind == trace::Kind::collective) collective(from, result);
    return result;
  }

  void collective(const JsonNode& from, Node& result) {
    const std::string kind = text(from, "collective", "all_reduce");
    bool known = false;
    for (std::uint8_t k = 0; k <= static_cast<std::uint8_t>(CollectiveKind::send_recv); ++k)
      if (program::name_of(static_cast<CollectiveKind>(k)) == kind)
        result.collective = static_cast<CollectiveKind>(k), known = true;
    if (!known)
      problem(from.find("collective"), fmt::format("unknown collective \"{}\"", kind),
              "all_reduce, all_gather, reduce_scatter, broadcast, reduce, alltoall or sendrecv");
    const std::string group = text(from, "group", "");
    const auto found = group_of_.find(group);
    if (found == group_of_.end()) {
      problem(from.find("group") ? from.find("group") : from, fmt::format("no group is called \"{}\"", group),
              "name it in \"groups\"");
    } else {
      result.group = found->second;
    }
  }

  config::Document document_;
  config::Reader reader_;
  Trace trace_;
  Names names_{trace_.names};
  std::map<std::string, std::uint32_t> group_of_;
};

std::string in_quotes(std::string_view text) {
  return config::to_text(config::Value::of(text), 0);
}
}  // namespace

Trace read_native(const std::string& text, const std::string& file) {
  return Native(text, file).read();
}

std::string write_native(const Trace& trace) {
  std::string out =
      fmt::format("{{\"format\": \"topsim.trace/1\", \"ranks\": {},\n \"groups\": [", trace.ranks);
  for (std::size_t g = 0; g < trace.groups.size(); ++g) {
    const Group& group = trace.groups[g];
    std::vector<std::string> sets;
    for (const auto& members : group.members) sets.push_back(fmt::format("[{}]", fmt::join(members, ", ")));
    out += fmt::format("{}\n  {{\"name\": {}, \"dimension\": \"{}\", \"members\": [{}]}}", g == 0 ? "" : ",",
                       in_quotes(group.name), program::name_of(group.dimension), fmt::join(sets, ", "));
  }
  out += "],\n \"programs\": [";
  for (std::size_t p = 0; p < trace.programs.size(); ++p) {
    const RankTrace& program = trace.programs[p];
    out += fmt::format("{}\n  {{\"ranks\": [{}], \"nodes\": [", p == 0 ? "" : ",",
                       fmt::join(program.ranks, ", "));
    for (std::size_t i = 0; i < program.nodes.size(); ++i) {
      const Node& node = program.nodes[i];
      out +=
          fmt::format("{}\n   {{\"id\": {}, \"kind\": \"{}\"", i == 0 ? "" : ",", i + 1, name_of(node.kind));
      if (!trace.names[node.name].empty())
        out += fmt::format(", \"name\": {}", in_quotes(trace.names[node.name]));
      const auto says = [own = keys_of(node.kind)](const char* key) { return among(own, key); };
      if (node.duration.count() > 0 && says("duration"))
        out += fmt::format(", \"duration\": \"{}\"", config::to_text(node.duration));
      if (node.operations > 0 && says("operations"))
        out += fmt::format(", \"operations\": {}", node.operations);
      if (node.operand_bytes > 0 && says("operands"))
        out += fmt::format(", \"operands\": \"{} B\"", std::llround(node.operand_bytes));
      if (node.bytes > 0 && says("bytes")) out += fmt::format(", \"bytes\": \"{} B\"", node.bytes);
      if (node.processor > 0 && says("processor")) out += fmt::format(", \"processor\": {}", node.processor);
      if (node.kind == trace::Kind::collective)
        out += fmt::format(", \"collective\": \"{}\", \"group\": {}", program::name_of(node.collective),
                           in_quotes(trace.groups[node.group].name));
      if (node.kind == trace::Kind::send || node.kind == trace::Kind::recv) {
        if (node.peer == kAny || node.tag == kAny)
          fail(trace.file, fmt::format("node {} receives from anybody", node.id), "GOAL alone can say that");
        out += fmt::format(", \"peer\": {}, \"tag\": {}", node.peer, node.tag);
      }
      if (!program.after[i].empty()) {
        std::vector<std::uint32_t> ids;
        for (const std::uint32_t earlier : program.after[i]) ids.push_back(earlier + 1);
        out += fmt::format(", \"after\": [{}]", fmt::join(ids, ", "));
      }
      out += '}';
    }
    out += "]}";
  }
  return out + "]}\n";
}
}  // namespace topsim::workloads::trace

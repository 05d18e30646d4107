// AICB / SimAI workload text, and the ASTRA-sim 1.0 files it descends from:
//   line 1   POLICY [key: value]...
//   line 2   number of layers
//   layers   name dependency  forward: ns type bytes  input gradient: ns type bytes  weight gradient: ns type
//   bytes
//            update ns   [policy of the layer, HYBRID_CUSTOMIZED only]
// as a stream of words. Every rank does the same: layers forward, each computed and then communicated; layers
// backward, input gradient computed and communicated, weight gradient computed, its communication in flight
// until the pass ends. After each communication, of whichever pass, comes the layer's update (ASTRA-sim,
// workload/Layer.cc: the constructor gives all three passes weight_grad_update_time). Types: ALLREDUCE,
// ALLGATHER, REDUCESCATTER, ALLTOALL, BROADCAST, NONE; a suffix chooses the group: none tensor (data for
// weight gradients), _EP expert, _DP_EP replicas of experts. Bytes are those of the whole tensor.
//
// Line 1 may list layers, counted from 0: `checkpoints: count layers...` and `checkpoint_initiates: count
// layers...`. Before the backward of a layer of the second list, the layers from the last checkpoint up to it
// run forward again (ASTRA-sim, workload/Workload.cc, iterate_hybrid_parallel_Transformer_fwd_in_bckwd).
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>

#include "workloads/trace/aicb_policies.hpp"
#include "workloads/trace/aicb_words.hpp"
#include "workloads/trace/formats.hpp"

namespace topsim::workloads::trace {
namespace {

using program::CollectiveKind;
using program::Dimension;

using aicb::Word;

struct Communication {
  CollectiveKind kind;
  std::size_t group;  // AicbGroup
};
class Aicb {
 public:
  Aicb(const std::string& text, const std::string& file, std::uint32_t ranks)
      : text_(text), file_(file), words_(aicb::words_of(text)), ranks_(ranks) {
    trace_.format = "aicb";
    trace_.file = file;
  }

  Trace read() {
    header();
    groups();
    rows();
    return std::move(trace_);
  }

 private:
  [[noreturn]] void fail(const Word& at, std::string message, std::string help = {}) const {
    fail_at(file_, text_, at.line, at.column,
            std::max(1, static_cast<int>(std::min<std::size_t>(at.text.size(), 60))), std::move(message),
            std::move(help));
  }
  const Word& word() const { return words_[at_]; }
  bool ended() const { return word().text.empty(); }
  static std::string shown(const Word& word) {
    return word.text.empty() ? "the end of the file" : fmt::format("\"{}\"", word.text.substr(0, 40));
  }

  // Counts, times and sizes; some generators write whole numbers like 6291456.0.
  std::int64_t number(const Word& at, const char* what, bool negative = false) const {
    double value = 0;
    const auto [end, error] = std::from_chars(at.text.data(), at.text.data() + at.text.size(), value);
    if (at.text.empty() || error != std::errc() || end != at.text.data() + at.text.size() ||
        !std::isfinite(value))
      fail(at, fmt::format("expected {}, found {}", what, shown(at)));
    if (value < 0 && !negative) fail(at, fmt::format("{} cannot be negative", what));
    constexpr double kMost = 1e15;  // a petabyte, eleven days
    if (value > kMost) fail(at, fmt::format("{} is too large for {}", at.text, what));
    return std::llround(value);
  }

  const AicbPolicy& policy(const Word& at) const {
    std::string known;
    for (const AicbPolicy& each : kAicbPolicies) {
      const bool of_layers = &each == policy_;  // HYBRID_CUSTOMIZED asks for the policy of a layer
      if (each.name == at.text && !of_layers) return each;
      if (!of_layers) known += fmt::format("{}{}", known.empty() ? "" : ", ", each.name);
    }
    fail(at, fmt::format("unknown parallelism policy {}", shown(at)), "known: " + known);
  }
  [[nodiscard]] bool customized() const { return policy_->name == "HYBRID_CUSTOMIZED"; }
  [[nodiscard]] bool is_dlrm() const {
    return policy_->name == "HYBRID_DLRM" || policy_->name == "HYBRID_DLRM_ENHANCED";
  }

  void header() {
    if (ended()) fail(word(), "the file is empty");
    const Word& name = word();
    policy_ = &policy(name);
    ++at_;
    for (; !ended() && word().line == name.line; ++at_) {
      const Word& key = word();
      std::string_view bare = key.text;
      if (!bare.empty() && bare.back() == ':') bare.remove_suffix(1);
      const bool last = words_[at_ + 1].text.empty() || words_[at_ + 1].line != name.line;
      if (last) {
        // ASTRA-sim 1.0's DLRM files end their first line with only the number of the last bottom layer.
        if (is_dlrm()) continue;
        fail(key, fmt::format("{} has no value", shown(key)));
      }
      const Word& value = words_[++at_];
      if (!header_.emplace(bare, value).second)
        fail(key, fmt::format("{} stands twice in the first line", shown(key)), "say it once");
      if (bare == "checkpoints" || bare == "checkpoint_initiates")
        list(bare == "checkpoints" ? checkpoints_ : initiates_, key, value);
    }
  }

  // Layers: how many, then their numbers.
  void list(std::map<std::int64_t, Word>& layers, const Word& key, const Word& length) {
    for (auto left = number(length, "a count"); left > 0; --left) {
      const Word& layer = words_[at_ + 1];
      if (layer.text.empty() || layer.line != key.line)
        fail(length, fmt::format("{} says {} layers, {} fewer follow", key.text, length.text, left));
      layers.emplace(number(layer, "the number of a layer"), layer);
      ++at_;
    }
  }

  std::uint32_t size(const char* key, std::uint32_t otherwise) const {
    const auto found = header_.find(key);
    if (found == header_.end()) return otherwise;
    const std::int64_t value = number(found->second, "a number of ranks");
    if (value < 1 || value > (1 << 22))
      fail(found->second, fmt::format("{} must be from 1 to {}", key, 1 << 22));
    return static_cast<std::uint32_t>(value);
  }

  // Ranks in SimAI's layout: tensor groups of consecutive ranks, then pipeline stages, then replicas; an
  // expert group consists of the same places of consecutive tensor groups.
  void groups() {
    const std::uint32_t tp = size("model_parallel_NPU_group", 1), ep = size("ep", 1), pp = size("pp", 1);
    const std::uint64_t product = std::uint64_t{tp} * pp * ep;
    if (product > (1 << 22))
      fail(header_.count("model_parallel_NPU_group") > 0 ? header_.at("model_parallel_NPU_group")
                                                         : words_.front(),
           fmt::format("tensor groups of {} x {} stages x expert groups of {} = {} ranks; at most {}", tp, pp,
                       ep, product, 1 << 22));
    const std::uint32_t world = size("all_gpus", ranks_ > 0 ? ranks_ : static_cast<std::uint32_t>(product));
    trace_.ranks = world;
    if (ranks_ == 0 && header_.count("all_gpus") == 0)
      trace_.notes.push_back(
          fmt::format("the file does not say how many ranks there are, taken: {}; --ranks N, or all_gpus: N "
                      "in line 1, says more",
                      world));
    const auto place = [&](const char* key) {
      const auto found = header_.find(key);
      return found == header_.end() ? words_.front() : found->second;
    };
    const std::uint64_t stages = std::uint64_t{tp} * pp;
    if (world % stages != 0)
      fail(place("all_gpus"),
           fmt::format("{} ranks do not divide into tensor groups of {} and {} stages", world, tp, pp));
    if ((world / tp) % ep != 0)
      fail(place("ep"), fmt::format("expert groups of {} do not divide {} tensor groups", ep, world / tp));
    if (size("pp", 1) > 1 || header_.count("pp_comm") > 0)
      trace_.notes.emplace_back(
          "the file has no pipeline messages: layers of one stage are replayed, as SimAI does (pp_comm is "
          "not sent)");
    add_group("tensor", Dimension::tensor, [&](std::uint32_t r) { return r / tp; });
    add_group("data", Dimension::data,
              [&](std::uint32_t r) { return static_cast<std::uint32_t>(r % stages); });
    const auto tensor_group = [tp](std::uint32_t r) { return r / tp; };
    add_group("expert", Dimension::expert,
              [&](std::uint32_t r) { return tensor_group(r) / ep * tp + r % tp; });
    add_group("expert data", Dimension::expert_data, [&](std::uint32_t r) {
      return ((tensor_group(r) / ep) % pp * ep + tensor_group(r) % ep) * tp + r % tp;
    });
    add_group("world", Dimension::data, [](std::uint32_t) { return 0U; });
    if (!customized() && policy_->groups[0] != kTensorApart) return;
    const std::uint32_t replicas = world / tp;
    add_group("tensor, apart", Dimension::tensor, [&](std::uint32_t r) { return r % replicas; });
    add_group("data, together", Dimension::data, [&](std::uint32_t r) { return r / replicas; });
  }

  template <class GroupOf>
  void add_group(const char* name, Dimension dimension, GroupOf&& group_of) {
    Group group{name, dimension, {}};
    std::map<std::uint32_t, std::vector<std::uint32_t>> members;
    for (std::uint32_t r = 0; r < trace_.ranks; ++r) members[group_of(r)].push_back(r);
    for (auto& [key, ranks] : members) group.members.push_back(std::move(ranks));
    trace_.groups.push_back(std::move(group));
  }

  std::optional<Communication> communication(const Word& at, std::size_t usual) const {
    if (at.text == "NONE") return std::nullopt;
    std::string_view base = at.text;
    std::size_t group = usual;
    const auto cut = [&](std::string_view suffix, std::size_t chosen) {
      if (base.size() <= suffix.size() || base.substr(base.size() - suffix.size()) != suffix) return false;
      base.remove_suffix(suffix.size());
      group = chosen;
      return true;
    };
    if (!cut("_DP_EP", kExpertData)) cut("_EP", kExpert);
    constexpr std::array<std::pair<std::string_view, CollectiveKind>, 7> kinds{
        {{"ALLREDUCE", CollectiveKind::all_reduce},
         {"ALLGATHER", CollectiveKind::all_gather},
         {"REDUCESCATTER", CollectiveKind::reduce_scatter},
         {"ALLTOALL", CollectiveKind::all_to_all},
         {"BROADCAST", CollectiveKind::broadcast},
         {"REDUCE", CollectiveKind::reduce},
         // SimAI and ASTRA-sim compare only the beginning of the word.
         {"ALLREDUCEALLTOALL", CollectiveKind::all_reduce}}};
    for (const auto& [word, kind] : kinds)
      if (word == base) return Communication{kind, group};
    fail(at, fmt::format("unknown communication {}", shown(at)),
         "ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL, BROADCAST or NONE, with _EP or _DP_EP behind");
  }

  struct Pass {
    Duration compute{};
    std::optional<Communication> communication;
    std::int64_t bytes = 0;
  };
  struct Row {
    std::uint32_t name;
    std::uint64_t line;
    std::array<Pass, 3> passes;
    Duration update{};
  };

  void rows() {
    const Word& said = word();
    const std::int64_t count = number(said, "the number of layers");
    ++at_;
    const std::size_t width = customized() ? 13 : 12;
    std::vector<Row> rows;
    while (static_cast<std::int64_t>(rows.size()) < count && !ended()) {
      if (words_.size() - 1 - at_ < width)
        fail(word(),
             fmt::format("layer {} has {} of {} columns", rows.size() + 1, words_.size() - 1 - at_, width),
             "is the file cut off?");
      rows.push_back(row(rows.empty() && is_dlrm() ? kEverywhere
                         : customized()            ? policy(words_[at_ + 12])
                                                   : *policy_));
      at_ += width;
    }
    if (static_cast<std::int64_t>(rows.size()) < count)
      trace_.notes.push_back(fmt::format("line {} says {} layers, the file has {}: those are replayed",
                                         said.line, count, rows.size()));
    if (!ended())
      trace_.notes.push_back(
          fmt::format("line {}: {} and what follows is passed over, all {} layers were read", word().line,
                      shown(word()), count));
    if (rows.empty()) fail(said, "the file has no layers");
    replay(rows);
  }

  Row row(const AicbPolicy& policy) {
    Row row{names_.of(words_[at_].text), static_cast<std::uint64_t>(words_[at_].line), {}, {}};
    number(words_[at_ + 1], "a dependency (-1: none)", true);
    for (std::size_t p = 0; p < 3; ++p) {
      const std::size_t first = at_ + 2 + 3 * p;
      Pass& pass = row.passes[p];
      pass.compute = Duration(number(words_[first], "a time in nanoseconds") * 1000);
      pass.communication = communication(words_[first + 1], policy.groups[p]);
      pass.bytes = number(words_[first + 2], "a size in bytes");
      if (policy.sized && pass.communication && pass.bytes > 0 &&
          header_.count("model_parallel_NPU_group") == 0)
        fail(words_[first + 1],
             fmt::format("line 1 does not say how many ranks a layer of {} is divided over", policy.name),
             "add \"model_parallel_NPU_group: 8\" to it; ASTRA-sim takes the number from its network");
      if (!pass.communication || pass.communication->group != kNowhere) continue;
      if (pass.bytes > 0 && nowhere_++ == 0)
        trace_.notes.push_back(
            fmt::format("line {}: {} is left out: layers of policy {} have none in this pass", row.line,
                        words_[first + 1].text, policy.name));
      pass.communication.reset();
    }
    row.update = Duration(number(words_[at_ + 11], "a time in nanoseconds") * 1000);
    return row;
  }

  // By layer before whose backward others are computed again: the first of those.
  std::map<std::size_t, std::size_t> recomputed(std::size_t layers) {
    if (policy_->name != "HYBRID_TRANSFORMER_FWD_IN_BCKWD") {
      if (!checkpoints_.empty() || !initiates_.empty())
        trace_.notes.push_back(
            fmt::format("layers are not computed again from checkpoints: {} does not, only "
                        "HYBRID_TRANSFORMER_FWD_IN_BCKWD does",
                        policy_->name));
      return {};
    }
    for (const auto* marks : {&checkpoints_, &initiates_})
      for (const auto& [layer, at] : *marks)
        if (layer >= static_cast<std::int64_t>(layers))
          fail(at, fmt::format("the file has no layer {}", layer),
               fmt::format("layers are counted from 0 to {}", layers - 1));
    std::map<std::size_t, std::size_t> result;
    std::int64_t before = -1;  // the last layer that had others computed again
    for (const auto& [layer, at] : initiates_) {
      const auto after = checkpoints_.upper_bound(layer);
      const std::int64_t from = after == checkpoints_.begin() ? -1 : std::prev(after)->first;
      const char* help =
          "the layers from the last checkpoint up to one of checkpoint_initiates are computed again: list a "
          "checkpoint before each of those and after the one before it";
      if (from == layer) fail(at, fmt::format("layer {} is a checkpoint itself", layer), help);
      if (from <= before)
        fail(at,
             fmt::format("no checkpoint between layer {} and layer {}", std::max<std::int64_t>(before, 0),
                         layer),
             help);
      result.emplace(layer, from);
      before = layer;
    }
    return result;
  }

  void replay(const std::vector<Row>& rows) {
    RankTrace& program = trace_.programs.emplace_back();
    for (std::uint32_t r = 0; r < trace_.ranks; ++r) program.ranks.push_back(r);
    std::vector<std::uint32_t> last;  // what the next node waits for
    std::uint32_t beside = 0;         // updates that nothing waits for
    const auto run = [&](const Row& row, std::size_t p) {
      const Pass& pass = row.passes[p];
      Node node;
      node.id = row.line;
      node.name = row.name;
      node.kind = Kind::compute;
      if (pass.compute.count() > 0) {
        node.duration = pass.compute;
        last = {program.add(node, last)};
      }
      if (!pass.communication || pass.bytes == 0) return;
      // ASTRA-sim issues nothing in a group of one, and then there is no update either.
      const Group& group = trace_.groups[pass.communication->group];
      if (group.members.front().size() < 2) {
        if (alone_++ == 0)
          trace_.notes.push_back(
              fmt::format("line {}: {} is left out, as others may be: its group ({}) has one rank", row.line,
                          name_of(pass.communication->kind), group.name));
        return;
      }
      Node call = node;
      call.kind = Kind::collective;
      call.duration = {};
      call.collective = pass.communication->kind;
      call.group = static_cast<std::uint32_t>(pass.communication->group);
      call.bytes = pass.bytes;
      std::vector<std::uint32_t> ended{program.add(call, last)};
      const bool blocks = p < 2;
      if (row.update.count() > 0) {
        // Updates of weights that wait for their gradients must not hold up the layers after them.
        constexpr std::uint32_t kProcessors = 255;  // that formats know beside the first
        if (!blocks) node.processor = 1 + beside++ % kProcessors;
        node.duration = row.update;
        ended = {program.add(node, ended)};
      }
      if (blocks) last = ended;
    };
    const std::map<std::size_t, std::size_t> again = recomputed(rows.size());
    for (const Row& row : rows) run(row, 0);
    for (std::size_t layer = rows.size(); layer-- > 0;) {
      if (const auto found = again.find(layer); found != again.end())
        for (std::size_t each = found->second; each < layer; ++each) run(rows[each], 0);
      run(rows[layer], 1), run(rows[layer], 2);
    }
  }

  const std::string& text_;
  const std::string& file_;
  std::vector<Word> words_;
  std::uint32_t ranks_;
  std::size_t at_ = 0;
  const AicbPolicy* policy_ = nullptr;
  std::map<std::string, Word> header_;
  std::map<std::int64_t, Word> checkpoints_, initiates_;  // by layer
  std::size_t nowhere_ = 0;                               // communications without a group
  std::size_t alone_ = 0;                                 // and of a group of one
  Trace trace_;
  Names names_{trace_.names};
};
}  // namespace

Trace read_aicb(const std::string& text, const std::string& file, std::uint32_t ranks) {
  return Aicb(text, file, ranks).read();
}
}  // namespace topsim::workloads::trace

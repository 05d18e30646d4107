// GOAL schedules as text:
//   num_ranks N
//   rank R {
//     [LABEL:] send BYTESb to PEER [tag T] [cpu C] [nic N]
//     [LABEL:] recv BYTESb from PEER|-1 [tag T|-1] [cpu C] [nic N]
//     [LABEL:] calc NANOSECONDS [cpu C]
//     LABEL requires LABEL      after the other has ended
//     LABEL irequires LABEL     after the other could start: what it requires itself has ended, and likewise
//                               for what it irequires
//   }
// One item per line; // and /* */ comments. Labels are local to a rank and must be defined before use.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "workloads/trace/formats.hpp"

namespace topsim::workloads::trace {
namespace {

struct Token {
  std::string_view text;  // empty: end of the file; "\n": end of a line
  int line = 1, column = 1;
};

class Lexer {
 public:
  Lexer(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Token next() {
    skip_blanks();
    const Token here{{}, line_, column()};
    if (at_ >= text_.size()) return here;
    const std::size_t begin = at_;
    const char c = text_[at_++];
    Token token = here;
    if (c == '\n') {
      ++line_;
      line_begin_ = at_;
    } else if (!single(c)) {
      while (at_ < text_.size() && !single(text_[at_]) && !blank(text_[at_]) && text_[at_] != '\n' &&
             !comment_at(at_))
        ++at_;
    }
    token.text = text_.substr(begin, at_ - begin);
    return token;
  }
  [[noreturn]] void fail(const Token& at, std::string message, std::string help = {}) const {
    fail_at(file_, text_, at.line, at.column,
            std::max(1, static_cast<int>(std::min<std::size_t>(at.text.size(), 40))), std::move(message),
            std::move(help));
  }

 private:
  static bool single(char c) { return c == '{' || c == '}' || c == ':'; }
  static bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
  bool comment_at(std::size_t i) const {
    return text_[i] == '/' && i + 1 < text_.size() && (text_[i + 1] == '/' || text_[i + 1] == '*');
  }
  int column() const { return static_cast<int>(at_ - line_begin_) + 1; }
  void skip_blanks() {
    while (at_ < text_.size()) {
      if (blank(text_[at_])) {
        ++at_;
      } else if (comment_at(at_) && text_[at_ + 1] == '/') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (comment_at(at_)) {
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos)
          fail({text_.substr(at_, 2), line_, column()}, "a comment has no end");
        for (; at_ < end + 2; ++at_)
          if (text_[at_] == '\n') ++line_, line_begin_ = at_ + 1;
      } else {
        return;
      }
    }
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0, line_begin_ = 0;
  int line_ = 1;
};

constexpr std::uint32_t kMostRanks = 1U << 20;
constexpr std::int64_t kMostNanoseconds = 1'000'000'000'000'000;  // eleven days; the clock ends at 106

class Goal {
 public:
  Goal(const std::string& text, const std::string& file) : lexer_(text, file) {
    trace_.format = "goal";
    trace_.file = file;
    send_ = names_.of("send"), recv_ = names_.of("recv"), calc_ = names_.of("calc");
    take();
  }

  Trace read() {
    skip_lines();
    expect("num_ranks");
    const Token count = token_;
    trace_.ranks = static_cast<std::uint32_t>(number("a number of ranks", kMostRanks));
    if (trace_.ranks == 0) lexer_.fail(count, "a schedule has at least one rank");
    for (skip_lines(); !token_.text.empty(); skip_lines()) rank();
    if (trace_.programs.size() != trace_.ranks)
      lexer_.fail(
          token_,
          fmt::format("num_ranks says {}, the file has {} ranks", trace_.ranks, trace_.programs.size()),
          "is the file cut off?");
    if (ended_ > 0)
      trace_.notes.push_back(
          fmt::format("{} empty sends to a rank that does not exist mark ends of ranks", ended_));
    if (nics_)
      trace_.notes.emplace_back(
          "nic numbers are passed over: the topology says which NIC an accelerator uses");
    return std::move(trace_);
  }

 private:
  void take() { token_ = lexer_.next(); }
  void skip_lines() {
    while (token_.text == "\n") take();
  }
  bool accept(std::string_view word) {
    if (token_.text != word) return false;
    take();
    return true;
  }
  static std::string shown(const Token& token) {
    if (token.text.empty()) return "the end of the file";
    return token.text == "\n" ? "the end of the line" : fmt::format("\"{}\"", token.text.substr(0, 40));
  }
  void expect(std::string_view word) {
    if (!accept(word)) lexer_.fail(token_, fmt::format("expected \"{}\", found {}", word, shown(token_)));
  }

  std::int64_t number(const char* what, std::int64_t most, std::string_view unit = {}, bool any = false) {
    const Token at = token_;
    std::string_view digits = at.text;
    if (!unit.empty() && digits.size() > unit.size() && digits.substr(digits.size() - unit.size()) == unit) {
      digits.remove_suffix(unit.size());
    } else if (!unit.empty()) {
      lexer_.fail(at, fmt::format("expected {}, found {}", what, shown(at)), "sizes are written 4096b");
    }
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (digits.empty() || error == std::errc::invalid_argument || end != digits.data() + digits.size())
      lexer_.fail(at, fmt::format("expected {}, found {}", what, shown(at)));
    if (error == std::errc::result_out_of_range || value > most)
      lexer_.fail(at, fmt::format("{} is too large for {}", at.text, what), fmt::format("at most {}", most));
    if (value < 0 && !(any && value == -1)) lexer_.fail(at, fmt::format("{} cannot be negative", what));
    take();
    return value;
  }

  void rank() {
    expect("rank");
    const Token at = token_;
    const auto id = number("a rank", kMostRanks);
    if (id != static_cast<std::int64_t>(trace_.programs.size()) || id >= trace_.ranks)
      lexer_.fail(at, fmt::format("rank {} where rank {} comes next", id, trace_.programs.size()),
                  fmt::format("ranks ascend from 0 to {}", trace_.ranks - 1));
    expect("{");
    labels_.clear(), starts_.clear();
    RankTrace& program = trace_.programs.emplace_back();
    program.ranks = {static_cast<std::uint32_t>(id)};
    for (skip_lines(); token_.text != "}"; skip_lines()) {
      if (token_.text.empty())
        lexer_.fail(token_, fmt::format("rank {} has no closing }}", id), "is the file cut off?");
      item(program);
      if (token_.text != "\n" && token_.text != "}" && !token_.text.empty())
        lexer_.fail(token_, fmt::format("{} after the end of an item", shown(token_)), "one item a line");
    }
    resolve_starts(program);
    take();
  }

  static bool is_label(std::string_view word) {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    return !word.empty() && letter(word[0]);
  }

  void item(RankTrace& program) {
    const Token first = token_;
    if (operation(program, {})) return;
    if (!is_label(first.text))
      lexer_.fail(first, fmt::format("expected send, recv, calc or a label, found {}", shown(first)));
    take();
    if (accept(":")) {
      const Token at = token_;
      if (!operation(program, first))
        lexer_.fail(at, fmt::format("expected send, recv or calc, found {}", shown(at)));
      return;
    }
    const std::uint32_t later = find(first);
    const bool ended = token_.text == "requires";
    if (!ended && token_.text != "irequires")
      lexer_.fail(token_, fmt::format("expected \":\", requires or irequires, found {}", shown(token_)));
    take();
    const std::uint32_t earlier = find(token_);
    take();
    if (ended) {
      program.after[later].push_back(earlier);
    } else {
      starts_.push_back({earlier, later, first});
    }
  }

  // An item that may start with another waits for all that the other waits for. That is complete at the
  // rank's end, and in the order in which items start with each other.
  void resolve_starts(RankTrace& program) {
    std::sort(starts_.begin(), starts_.end(), [](const Start& a, const Start& b) {
      return std::pair(a.earlier, a.later) < std::pair(b.earlier, b.later);
    });
    const auto of = [&](std::uint32_t item) {
      return std::lower_bound(
          starts_.begin(), starts_.end(), item,
          [](const Start& start, std::uint32_t wanted) { return start.earlier < wanted; });
    };
    std::unordered_map<std::uint32_t, std::uint32_t> open;  // by item: those it starts with, not yet known
    for (const Start& start : starts_) ++open[start.later];
    std::vector<std::uint32_t> known;
    for (auto start = starts_.begin(); start != starts_.end(); ++start)
      if (start == of(start->earlier) && !open.contains(start->earlier)) known.push_back(start->earlier);
    std::size_t resolved = 0;
    while (!known.empty()) {
      const std::uint32_t earlier = known.back();
      known.pop_back();
      for (auto start = of(earlier); start != starts_.end() && start->earlier == earlier;
           ++start, ++resolved) {
        auto& after = program.after[start->later];
        after.insert(after.end(), program.after[earlier].begin(), program.after[earlier].end());
        if (--open[start->later] > 0) continue;
        std::sort(after.begin(), after.end());
        after.erase(std::unique(after.begin(), after.end()), after.end());
        known.push_back(start->later);
      }
    }
    if (resolved == starts_.size()) return;
    const auto in_circle = std::find_if(starts_.begin(), starts_.end(),
                                        [&](const Start& start) { return open.at(start.later) > 0; });
    lexer_.fail(in_circle->label, fmt::format("{} can never start", shown(in_circle->label)),
                "irequires must not form a circle");
  }

  std::uint32_t find(const Token& label) const {
    const auto found = labels_.find(label.text);
    if (found == labels_.end())
      lexer_.fail(label, fmt::format("no item is labelled {} before this line", shown(label)),
                  "labels are local to a rank");
    return found->second;
  }

  // Returns whether there was an operation.
  bool operation(RankTrace& program, const Token& label) {
    Node node;
    node.id = static_cast<std::uint64_t>(token_.line);
    bool done = false;
    if (accept("send")) {
      node.kind = Kind::send;
      node.name = send_;
      node.bytes = number("a size in bytes", std::int64_t{1} << 50, "b");
      expect("to");
      done = peer(node, false);
    } else if (accept("recv")) {
      node.kind = Kind::recv;
      node.name = recv_;
      node.bytes = number("a size in bytes", std::int64_t{1} << 50, "b");
      expect("from");
      done = peer(node, true);
    } else if (accept("calc")) {
      node.kind = Kind::compute;
      node.name = calc_;
      node.duration = Duration(number("a time in nanoseconds", kMostNanoseconds) * 1000);
      if (node.duration.count() == 0) node.kind = Kind::join;
    } else {
      return false;
    }
    if (node.kind != Kind::compute && node.kind != Kind::join && accept("tag"))
      node.tag = number("a tag", 0xffffffffLL, {}, node.kind == Kind::recv);
    if (accept("cpu")) node.processor = static_cast<std::uint32_t>(number("a cpu", 255));
    if (accept("nic")) nics_ |= number("a nic", 255) > 0;
    if (done) node.kind = Kind::join, ++ended_;
    const std::uint32_t index = program.add(node);
    if (!label.text.empty() && !labels_.emplace(label.text, index).second)
      lexer_.fail(label, fmt::format("label {} twice in one rank", shown(label)));
    return true;
  }

  // Returns whether this is the mark of a rank's end: an empty send to a rank that cannot exist.
  bool peer(Node& node, bool any) {
    const Token at = token_;
    node.peer = number("a rank", 0xffffffffLL, {}, any);
    if (node.peer < trace_.ranks) return false;
    if (node.kind == Kind::send && node.bytes == 0) return true;
    lexer_.fail(at, fmt::format("the schedule has no rank {}", node.peer),
                fmt::format("its ranks are 0 to {}", trace_.ranks - 1));
  }

  Lexer lexer_;
  Token token_;
  Trace trace_;
  Names names_{trace_.names};
  std::uint32_t send_ = 0, recv_ = 0, calc_ = 0;
  std::unordered_map<std::string_view, std::uint32_t> labels_;
  struct Start {  // LATER irequires EARLIER
    std::uint32_t earlier, later;
    Token label;  // of the later
  };
  std::vector<Start> starts_;  // of the rank
  int ended_ = 0;
  bool nics_ = false;
};
}  // namespace

Trace read_goal(const std::string& text, const std::string& file) {
  return Goal(text, file).read();
}

std::string write_goal(const Trace& trace) {
  std::vector<const RankTrace*> of_rank(trace.ranks, nullptr);
  for (const RankTrace& program : trace.programs)
    for (const std::uint32_t rank : program.ranks) of_rank[rank] = &program;
  std::string out = fmt::format("num_ranks {}\n", trace.ranks);
  for (std::uint32_t rank = 0; rank < trace.ranks; ++rank) {
    out += fmt::format("\nrank {} {{\n", rank);
    const RankTrace* program = of_rank[rank];
    for (std::size_t i = 0; program != nullptr && i < program->nodes.size(); ++i) {
      const Node& node = program->nodes[i];
      switch (node.kind) {
        case Kind::send:
          out += fmt::format("l{}: send {}b to {} tag {}", i + 1, node.bytes, node.peer, node.tag);
          break;
        case Kind::recv:
          out += fmt::format("l{}: recv {}b from {} tag {}", i + 1, node.bytes, node.peer, node.tag);
          break;
        case Kind::collective:
          fail(trace.file, fmt::format("node {} is a collective, which GOAL does not know", node.id),
               "convert to native or chakra");
        case Kind::compute:
        case Kind::host:
        case Kind::memory:
        case Kind::join:
          if (node.duration.count() == 0 && (node.operations > 0 || node.bytes > 0))
            fail(trace.file,
                 fmt::format("node {} has {} and no time, which GOAL does not know", node.id,
                             node.operations > 0 ? "operations" : "bytes"),
                 "convert to native or chakra");
          out += fmt::format("l{}: calc {}", i + 1, (node.duration.count() + 500) / 1000);
      }
      if (node.processor > 0) out += fmt::format(" cpu {}", node.processor);
      out += '\n';
    }
    // Dependencies come after all labels: nodes of other formats may wait for later ones.
    for (std::size_t i = 0; program != nullptr && i < program->nodes.size(); ++i)
      for (const std::uint32_t earlier : program->after[i])
        out += fmt::format("l{} requires l{}\n", i + 1, earlier + 1);
    out += "}\n";
  }
  return out;
}
}  // namespace topsim::workloads::trace

// Parses JSON text to a Value. The library's reader supplies tokens; it reads from our cursor, so the place
// of every token is known.
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "sim/base/hints.hpp"
#include "sim/config/document.hpp"

namespace topsim::config {
namespace {
using Json = nlohmann::json;

constexpr std::size_t kMostLevels = 100;

// An input iterator whose copies share the position.
class Cursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  Cursor(const std::string& text, std::size_t& offset, bool end)
      : text_(&text), offset_(&offset), end_(end) {}
  reference operator*() const { return (*text_)[*offset_]; }
  Cursor& operator++() { return ++*offset_, *this; }
  Cursor operator++(int) {
    Cursor before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Cursor& other) const { return at_end() == other.at_end(); }
  bool operator!=(const Cursor& other) const { return !(*this == other); }

 private:
  [[nodiscard]] bool at_end() const { return end_ || *offset_ >= text_->size(); }
  const std::string* text_;
  std::size_t* offset_;
  bool end_;
};

// Converts offsets to lines and columns, forward only. Columns count characters, not bytes.
class LineCounter {
 public:
  explicit LineCounter(const std::string& text) : text_(text) {}
  Span at(std::size_t offset) {
    for (; at_ < offset && at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') {
        ++line_;
        column_ = 1;
      } else if ((static_cast<unsigned char>(text_[at_]) & 0xC0U) != 0x80U) {
        ++column_;
      }
    }
    return {line_, column_, 1};
  }

 private:
  const std::string& text_;
  std::size_t at_ = 0;
  int line_ = 1, column_ = 1;
};

class Handler {
 public:
  Handler(const Source& source, const std::size_t& offset)
      : source_(source), text_(source.text), offset_(offset), lines_(source.text) {}

  bool null() { return put(Value(Kind::null), word_end()); }
  bool boolean(bool v) { return put(Value::of(v), word_end()); }
  bool number_integer(Json::number_integer_t v) { return put(Value::of(std::int64_t{v}), word_end()); }
  bool number_unsigned(Json::number_unsigned_t v) {
    if (v <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return put(Value::of(static_cast<std::int64_t>(v)), word_end());
    }
    return number_float(static_cast<double>(v), {});
  }
  bool number_float(double v, const std::string&) {
    Value value(Kind::number);
    value.number = v;
    return put(std::move(value), word_end());
  }
  bool string(std::string& v) { return put(Value::of(std::string_view(v)), offset_); }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(Kind::object); }
  bool start_array(std::size_t) { return open(Kind::array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& v) {
    key_ = v;
    key_span_ = span_of(token_start(), offset_);
    last_end_ = offset_;
    if (!is_remark(key_) && is_known_member(open_.back(), key_)) {
      problem(key_span_, "the key \"" + key_ + "\" stands twice in one object", "again here",
              "keep one of the two");
    }
    return true;
  }
  bool parse_error(std::size_t, const std::string& token, const Json::exception& error) {
    explain(token, error);
    return false;
  }

  std::unique_ptr<Value> root;
  std::vector<Problem> problems;

 private:
  struct Open {
    Value* value;
    std::unordered_set<std::string_view> known;  // used for large objects only
  };

  static bool is_known_member(Open& open, std::string_view name) {
    constexpr std::size_t kSmall = 16;
    if (open.value->children.size() < kSmall) return open.value->find(name) != nullptr;
    if (open.known.empty()) {
      for (const auto& child : open.value->children) open.known.insert(child->key);
    }
    return open.known.count(name) != 0;
  }

  // The first character of the token after the last one.
  [[nodiscard]] std::size_t token_start() const {
    std::size_t at = last_end_;
    while (at < text_.size() && std::strchr(" \t\r\n,:", text_[at]) != nullptr) ++at;
    return at;
  }
  // The end of a number or a word, where the lexer has read one character too many.
  [[nodiscard]] std::size_t word_end() const {
    std::size_t at = token_start();
    while (at < text_.size() && std::strchr(" \t\r\n,:]}", text_[at]) == nullptr) ++at;
    return at;
  }
  Span span_of(std::size_t begin, std::size_t end) {
    Span span = lines_.at(begin);
    span.length = lines_.at(end).column - span.column;
    return span;
  }

  Value& attach(Value value) {
    if (open_.empty()) {
      root = std::make_unique<Value>(std::move(value));
      return *root;
    }
    Open& parent = open_.back();
    Value& added = parent.value->push(std::move(value));
    if (parent.value->kind == Kind::object) {
      added.key = std::move(key_);
      added.key_span = key_span_;
      if (!parent.known.empty()) parent.known.insert(added.key);
    }
    return added;
  }
  bool put(Value value, std::size_t end) {
    value.source = &source_;
    value.span = span_of(token_start(), end);
    last_end_ = end;
    attach(std::move(value));
    return true;
  }
  bool open(Kind kind) {
    const std::size_t start = token_start();
    Value value(kind);
    value.source = &source_;
    value.span = lines_.at(start);
    last_end_ = start + 1;
    if (open_.size() >= kMostLevels) {
      problem(value.span, "more than " + std::to_string(kMostLevels) + " levels of objects and lists", "",
              "nothing that topsim reads is nested so deeply");
      return false;
    }
    open_.push_back({&attach(std::move(value)), {}});
    return true;
  }
  bool close() {
    last_end_ = offset_;
    open_.pop_back();
    return true;
  }

  void problem(const Span& span, std::string message, std::string label, std::string help) {
    Problem result;
    result.place = {source_.name, span.line, span.column, span.length};
    result.message = std::move(message);
    result.label = std::move(label);
    result.help = std::move(help);
    problems.push_back(std::move(result));
  }
  bool explain_word(std::size_t start, const Span& place);
  bool explain_number(std::size_t end);
  void explain(const std::string& token, const Json::exception& error);
  [[nodiscard]] std::string help_for(const std::string& words) const;

  const Source& source_;
  const std::string& text_;
  const std::size_t& offset_;
  LineCounter lines_;
  std::vector<Open> open_;
  std::string key_;
  Span key_span_;
  std::size_t last_end_ = 0;
};

// Whether the text is neither UTF-16 nor binary.
bool is_text(const std::string& text) {
  return text.find('\0') == std::string::npos && text.compare(0, 2, "\xFF\xFE") != 0 &&
         text.compare(0, 2, "\xFE\xFF") != 0;
}

// Explains a word without quotes, or a number that begins with 0; false if it is neither.
bool Handler::explain_word(std::size_t start, const Span& place) {
  const auto is_digit = [&](std::size_t at) {
    return at < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at])) != 0;
  };
  const auto is_letter = [&](std::size_t at) {
    return at < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at])) != 0;
  };
  const auto span_from = [&](std::size_t begin, std::size_t end) {
    const std::size_t before = begin == 0 ? std::string::npos : text_.rfind('\n', begin - 1);
    const std::size_t line_start = before == std::string::npos ? 0 : before + 1;
    return Span{place.line, static_cast<int>(begin - line_start) + 1, static_cast<int>(end - begin)};
  };
  std::size_t first = start, last = start;
  while (first > 0 && is_digit(first - 1)) --first;
  while (is_digit(last)) ++last;
  const bool inside_number = first > 0 && (is_letter(first - 1) || text_[first - 1] == '.');
  if (last > first + 1 && text_[first] == '0' && !inside_number) {
    const std::size_t figure = std::min(text_.find_first_not_of('0', first), last - 1);
    problem(span_from(first, last), "a number does not begin with 0", "",
            "write " + text_.substr(figure, last - figure));
    return true;
  }
  if (!is_letter(start)) return false;
  last = start;
  while (is_letter(last) || is_digit(last) ||
         (last < text_.size() && std::strchr("-_.", text_[last]) != nullptr)) {
    ++last;
  }
  const std::string word = text_.substr(start, last - start);
  for (const char* literal : {"true", "false", "null"}) {
    if (word == literal) return false;
    if (word.size() == std::strlen(literal) && word.substr(1) == literal + 1) {
      problem(span_from(start, last), "not JSON: " + word, "", "write " + std::string(literal));
      return true;
    }
  }
  if (word == "None" || word == "nil" || word == "undefined") {
    problem(span_from(start, last), "not JSON: " + word, "", "write null");
    return true;
  }
  if (open_.empty()) {
    problem(span_from(start, last), "not JSON: a file begins with {", "",
            "a scenario is a JSON object, see configs/8xH100-ib.json");
  } else {
    problem(span_from(start, last), "not JSON: " + word + " stands without quotes", "",
            "write \"" + word + '"');
  }
  return true;
}

// Explains 0x8 or 80GB before `end`, whose leading digits the lexer took for a number; false if there is
// none.
bool Handler::explain_number(std::size_t end) {
  if (end == 0 || end > text_.size()) return false;
  const std::size_t before = text_.find_last_of(" \t\r\n,:[]{}\"", end - 1);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  const std::string word = text_.substr(begin, end - begin);
  if (word.size() < 2 || (std::isdigit(static_cast<unsigned char>(word[0])) == 0 && word[0] != '-') ||
      word.find_first_not_of("-+.0123456789eE") == std::string::npos)
    return false;
  char* rest = nullptr;
  const long long value = std::strtoll(word.c_str(), &rest, 16);
  const bool hexadecimal =
      word.size() > 2 && word[0] == '0' && (word[1] == 'x' || word[1] == 'X') && *rest == '\0';
  Span span = lines_.at(end);  // the counter only moves forward, and is here
  span.length = static_cast<int>(word.size());
  span.column -= span.length;
  problem(span, "not JSON: " + word, "",
          hexadecimal ? "JSON counts in tens: write " + std::to_string(value)
                      : "what is not a number alone stands in quotes: \"" + word + '"');
  return true;
}

// "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while ... - unexpected
// ...; expected ...": what follows the last " - ", less the token it echoes, which may be long.
std::string words_of(const Json::exception& error) {
  std::string words = error.what();
  if (const std::size_t dash = words.find(" - "); dash != std::string::npos) words.erase(0, dash + 3);
  if (const std::size_t echo = words.find("; last read: "); echo != std::string::npos) {
    const std::size_t more = words.rfind("; expected");
    words = words.substr(0, echo) + (more != std::string::npos && more > echo ? words.substr(more) : "");
  }
  constexpr std::size_t kLongest = 200;
  if (words.size() > kLongest) words.replace(kLongest, std::string::npos, "...");
  return words;
}

std::string Handler::help_for(const std::string& words) const {
  const auto says = [&](const char* what) { return words.find(what) != std::string::npos; };
  if (curly_quote_at(text_, token_start())) return "JSON has straight quotes: \"";
  if (says("unexpected ','")) return "one comma too many?";
  if (says("expected ','") || says("; expected '}'") || says("; expected ']'"))
    return "is a comma missing before this?";
  if (says("expected ':'")) return "a key and its value are joined by a colon";
  if (says("backslash")) return "write \\\\ for one backslash";
  if (says("missing closing quote")) return "end the string with \"; is the file cut off?";
  if (says("control character")) return "write it as it says, or remove it: a string stands on one line";
  if (says("UTF-8") || !is_text(text_)) return "save the file as UTF-8 text";
  return {};
}

// Our own sentences for frequent mistakes, the library's words for all others.
void Handler::explain(const std::string& token, const Json::exception& error) {
  std::size_t start = token_start();
  // "02": the lexer stopped inside something like a word.
  if (offset_ > 0 && start >= offset_ && offset_ < text_.size()) {
    start = offset_ - 1;
    while (start > 0 && std::isalnum(static_cast<unsigned char>(text_[start - 1])) != 0) --start;
  }
  if (explain_number(last_end_)) return;
  const bool at_end = start >= text_.size();
  const std::string_view rest = std::string_view(text_).substr(std::min(start, text_.size()));
  const auto begins = [&](std::string_view with) { return rest.substr(0, with.size()) == with; };
  const Span span = span_of(std::min(start, text_.size()), std::min(std::max(start, offset_), text_.size()));
  Span one = span;
  one.length = 1;
  if (text_.find_first_not_of(" \t\r\n") == std::string::npos) {
    return problem(one, "the file is empty", "", "a scenario is a JSON object, see configs/8xH100-ib.json");
  }
  if (at_end && !open_.empty()) {
    const Value& inner = *open_.back().value;
    return problem(one, "the file ends inside " + std::string(name_of(inner.kind)), "",
                   "it was opened at line " + std::to_string(inner.span.line) + ", column " +
                       std::to_string(inner.span.column) + " and is not closed; is the file cut off?");
  }
  if ((begins("}") || begins("]")) && start > 0) {
    const std::size_t before = text_.find_last_not_of(" \t\r\n", start - 1);
    if (before != std::string::npos && text_[before] == ',') {
      return problem(one, "a comma before \"" + std::string(rest.substr(0, 1)) + "\"", "",
                     "JSON has no trailing comma; remove it");
    }
  }
  if (begins("NaN") || begins("nan") || begins("Infinity") || begins("inf") || begins("-Infinity") ||
      begins("-inf") || begins("-nan") || begins("-NaN")) {
    Span word = span;
    word.length = static_cast<int>(std::min(rest.find_first_of(" \t\r\n,]}"), std::size_t{9}));
    return problem(word, "NaN and infinity are no numbers in JSON", "", "leave the key out for its default");
  }
  if (begins("//") || begins("/*") || begins("#")) {
    return problem(one, "JSON has no comments", "", "write a key that begins with //: \"// why\": \"...\"");
  }
  if (begins("<") && root == nullptr) {
    return problem(one, "not JSON: this looks like XML", "",
                   "topsim topo import FILE reads NCCL's and hwloc's XML");
  }
  if (begins("'")) return problem(one, "JSON strings stand in double quotes", "", "write \" instead of '");
  if (explain_word(std::min(start, text_.size()), span)) return;
  if (std::strstr(error.what(), "number overflow") != nullptr) {
    return problem(span, "the number " + token.substr(0, 40) + " is too large", "",
                   "numbers reach 1.8e308; write a quantity with a larger unit");
  }
  if (!rest.empty() && open_.empty() && root != nullptr) {
    return problem(one, "something follows the end of the JSON value", "", "a file holds one JSON object");
  }
  const std::string words = words_of(error);
  problem(one, "not JSON: " + words, "", help_for(words));
}
}  // namespace

bool is_remark(std::string_view key) {
  return key.substr(0, 2) == "//" || key == "$schema";
}

Document Document::parse(std::string text, std::string name) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (std::string_view(text).substr(0, 3) == kByteOrderMark) text.erase(0, 3);
  const auto source = std::make_shared<const Source>(Source{std::move(name), std::move(text)});
  std::size_t offset = 0;
  Handler handler(*source, offset);
  const bool parsed =
      Json::sax_parse(Cursor(source->text, offset, false), Cursor(source->text, offset, true), &handler);
  if (!parsed || !handler.problems.empty()) {
    for (Problem& problem : handler.problems) {
      problem.source_line = source->line(problem.place.line);
      constexpr std::size_t kShown = 2000;
      if (problem.source_line.size() > kShown) problem.source_line.clear();
    }
    throw ConfigError(std::move(handler.problems));
  }
  Document document;
  document.sources_.push_back(source);
  document.root_ = std::move(handler.root);
  return document;
}
}  // namespace topsim::config

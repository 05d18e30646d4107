// One codec a type: how it is read from JSON, written back, and described by JSON Schema.
// The default follows from the C++ type (codec_for<M>()); a field may name another:
//   names<E>({...})     an enum by its names         one_or_list<M>()   3 or [3, 4] into a std::vector
//   one_of({...})       a string out of a list       quantity(d)        a double with a unit, "0.1 USD/kWh"
// std::optional, std::vector, std::map<std::string, M> and std::variant (by JSON kind) compose from their
// parts. A type of another room that is no struct with a field table: define
//   config::CodecPtr<X> codec(config::Type<X>)  beside it, found by argument-dependent lookup.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/config/quantity.hpp"
#include "sim/config/reader.hpp"

namespace topsim::config {

template <class T>
struct Type {};

template <class T>
class Object;

// What numbers a field takes, in base units. Nothing that is read here may be negative unless it says so.
struct Range {
  double least = 0;
  double most = std::numeric_limits<double>::infinity();
  bool open = false;  // `least` itself is refused
};
[[nodiscard]] inline Range at_least(double least) {
  return {least};
}
[[nodiscard]] inline Range between(double least, double most) {
  return {least, most};
}
[[nodiscard]] inline Range positive() {
  return {0, std::numeric_limits<double>::infinity(), true};
}
[[nodiscard]] inline Range any_number() {
  return {-std::numeric_limits<double>::infinity()};
}

// The $defs of a schema under construction.
class Definitions {
 public:
  // The id that `owner` goes by; `fresh` when it is new and the caller fills it (guards against recursion).
  // Two owners of one name get different ids.
  std::string id_of(const void* owner, const std::string& name, bool& fresh);
  void fill(const std::string& id, Value value) { values_[id] = std::move(value); }
  [[nodiscard]] std::map<std::string, Value>& values() { return values_; }

 private:
  std::map<std::string, Value> values_;
  std::map<std::string, const void*> owners_;
};

template <class M>
class Codec {
 public:
  virtual ~Codec() = default;
  [[nodiscard]] virtual bool accepts(Kind kind) const = 0;
  // A value that is wrong is reported and leaves `out` as it was (or partly filled).
  virtual void read(const Node& node, M& out, Reader& reader) const = 0;
  [[nodiscard]] virtual Value write(const M& value) const = 0;
  [[nodiscard]] virtual Value schema(Definitions& definitions) const = 0;
  [[nodiscard]] virtual std::string expects() const = 0;  // "a duration such as \"500 ns\""
};
template <class M>
using CodecPtr = std::shared_ptr<const Codec<M>>;

namespace detail {
// Work that does not depend on the field's type; codec.cpp.
bool read_boolean(const Node& node, bool& out, Reader& reader);
bool read_count(const Node& node, const Range& range, std::int64_t most, std::int64_t& out, Reader& reader);
bool read_number(const Node& node, const Range& range, double& out, Reader& reader);
bool read_text(const Node& node, std::string& out, Reader& reader);
bool read_quantity(const Node& node, Dimension dimension, const Range& range, double& value,
                   std::int64_t& exact, Reader& reader);
bool read_name(const Node& node, const std::vector<std::string>& known, std::size_t& out, Reader& reader);
bool check_kind(const Node& node, Kind kind, const std::string& expected, Reader& reader);
void wrong_kind(const Node& node, const std::string& expected, Reader& reader);
Value schema_of_count(const Range& range);
Value schema_of_number(const Range& range);
Value schema_of_quantity(Dimension dimension);
Value schema_of_type(std::string_view type);
Value schema_of_names(const std::vector<std::string>& names, const std::vector<std::string>& texts);
Value schema_any_of(std::vector<Value> choices);
std::string expects_count(const Range& range);
std::string expects_number(const Range& range);
std::string expects_quantity(Dimension dimension);

class BooleanCodec final : public Codec<bool> {
 public:
  bool accepts(Kind kind) const override { return kind == Kind::boolean; }
  void read(const Node& node, bool& out, Reader& reader) const override { read_boolean(node, out, reader); }
  Value write(const bool& value) const override { return Value::of(value); }
  Value schema(Definitions&) const override { return schema_of_type("boolean"); }
  std::string expects() const override { return "true or false"; }
};

template <class I>
class CountCodec final : public Codec<I> {
 public:
  explicit CountCodec(Range range) : range_(range) {}
  bool accepts(Kind kind) const override { return kind == Kind::integer || kind == Kind::number; }
  void read(const Node& node, I& out, Reader& reader) const override {
    constexpr auto kMost = std::numeric_limits<I>::max();
    constexpr std::int64_t most = std::cmp_less(std::numeric_limits<std::int64_t>::max(), kMost)
                                      ? std::numeric_limits<std::int64_t>::max()
                                      : static_cast<std::int64_t>(kMost);
    std::int64_t value = 0;
    if (read_count(node, range_, most, value, reader)) out = static_cast<I>(value);
  }
  Value write(const I& value) const override { return Value::of(static_cast<std::int64_t>(value)); }
  Value schema(Definitions&) const override { return schema_of_count(range_); }
  std::string expects() const override { return expects_count(range_); }

 private:
  Range range_;
};

class NumberCodec final : public Codec<double> {
 public:
  explicit NumberCodec(Range range) : range_(range) {}
  bool accepts(Kind kind) const override { return kind == Kind::integer || kind == Kind::number; }
  void read(const Node& node, double& out, Reader& reader) const override {
    read_number(node, range_, out, reader);
  }
  Value write(const double& value) const override { return Value::of(value); }
  Value schema(Definitions&) const override { return schema_of_number(range_); }
  std::string expects() const override { return expects_number(range_); }

 private:
  Range range_;
};

class TextCodec final : public Codec<std::string> {
 public:
  bool accepts(Kind kind) const override { return kind == Kind::string; }
  void read(const Node& node, std::string& out, Reader& reader) const override {
    read_text(node, out, reader);
  }
  Value write(const std::string& value) const override {
    return value.empty() ? Value(Kind::null) : Value::of(value);
  }
  Value schema(Definitions&) const override { return schema_of_type("string"); }
  std::string expects() const override { return "a string"; }
};

// Q is a quantity type of units.hpp, or double in the base unit of the dimension.
template <class Q>
class QuantityCodec final : public Codec<Q> {
 public:
  QuantityCodec(Dimension dimension, Range range) : dimension_(dimension), range_(range) {}
  bool accepts(Kind kind) const override {
    return kind == Kind::string || kind == Kind::integer || kind == Kind::number;
  }
  void read(const Node& node, Q& out, Reader& reader) const override {
    double value = 0;
    std::int64_t exact = 0;
    if (!read_quantity(node, dimension_, range_, value, exact, reader)) return;
    if constexpr (std::is_same_v<Q, Duration> || std::is_same_v<Q, Bytes>) {
      out = Q(exact);
    } else {
      out = Q(value);
    }
  }
  Value write(const Q& value) const override {
    if constexpr (std::is_same_v<Q, Duration>) {
      return Value::of(format_exact(dimension_, value.count()));
    } else if constexpr (std::is_same_v<Q, Bytes>) {
      return Value::of(format_exact(dimension_, value.value()));
    } else if constexpr (std::is_same_v<Q, double>) {
      return Value::of(format_quantity(dimension_, value));
    } else {
      return Value::of(format_quantity(dimension_, value.value()));
    }
  }
  Value schema(Definitions&) const override { return schema_of_quantity(dimension_); }
  std::string expects() const override { return expects_quantity(dimension_); }

 private:
  Dimension dimension_;
  Range range_;
};

template <class E>
class NamesCodec final : public Codec<E> {
 public:
  struct Entry {
    std::string name;
    E value;
    std::string text = {};
  };
  explicit NamesCodec(std::vector<Entry> entries) {
    for (Entry& entry : entries) {
      names_.push_back(std::move(entry.name));
      texts_.push_back(std::move(entry.text));
      values_.push_back(entry.value);
    }
  }
  bool accepts(Kind kind) const override { return kind == Kind::string; }
  void read(const Node& node, E& out, Reader& reader) const override {
    std::size_t i = 0;
    if (read_name(node, names_, i, reader)) out = values_[i];
  }
  Value write(const E& value) const override {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (values_[i] == value) return Value::of(names_[i]);
    }
    if constexpr (std::is_same_v<E, std::string>) {
      if (value.empty()) return Value(Kind::null);  // never set
    }
    throw InternalError("a value without a name among: " + names_.front() + ", ...");
  }
  Value schema(Definitions&) const override { return schema_of_names(names_, texts_); }
  std::string expects() const override { return "one of its names"; }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_, texts_;
  std::vector<E> values_;
};

template <class M>
class OptionalCodec final : public Codec<std::optional<M>> {
 public:
  explicit OptionalCodec(CodecPtr<M> inner) : inner_(std::move(inner)) {}
  bool accepts(Kind kind) const override { return kind == Kind::null || inner_->accepts(kind); }
  void read(const Node& node, std::optional<M>& out, Reader& reader) const override {
    if (node.is(Kind::null)) return out.reset();  // null: left out
    const std::size_t before = reader.count();
    M value = out.value_or(M{});
    inner_->read(node, value, reader);
    if (reader.count() == before) out = std::move(value);
  }
  Value write(const std::optional<M>& value) const override {
    return value ? inner_->write(*value) : Value(Kind::null);
  }
  Value schema(Definitions& definitions) const override { return inner_->schema(definitions); }
  std::string expects() const override { return inner_->expects(); }

 private:
  CodecPtr<M> inner_;
};

template <class M>
class ListCodec final : public Codec<std::vector<M>> {
 public:
  ListCodec(CodecPtr<M> inner, bool or_one) : inner_(std::move(inner)), or_one_(or_one) {}
  bool accepts(Kind kind) const override { return kind == Kind::array || (or_one_ && inner_->accepts(kind)); }
  void read(const Node& node, std::vector<M>& out, Reader& reader) const override {
    if (or_one_ && !node.is(Kind::array) && inner_->accepts(node.kind())) {
      M one{};
      inner_->read(node, one, reader);
      out.assign(1, std::move(one));
      return;
    }
    if (!check_kind(node, Kind::array, expects(), reader)) return;
    out.clear();
    for (std::size_t i = 0; i < node.size(); ++i) {
      M element{};
      inner_->read(node[i], element, reader);
      out.push_back(std::move(element));
    }
  }
  Value write(const std::vector<M>& value) const override {
    if (or_one_ && value.size() == 1) return inner_->write(value.front());
    Value list(Kind::array);
    for (const auto& element : value) list.push(inner_->write(element));
    return list;
  }
  Value schema(Definitions& definitions) const override {
    Value list = schema_of_type("array");
    list.add("items", inner_->schema(definitions));
    if (!or_one_) return list;
    std::vector<Value> choices;
    choices.push_back(inner_->schema(definitions));
    choices.push_back(std::move(list));
    return schema_any_of(std::move(choices));
  }
  std::string expects() const override {
    return (or_one_ ? inner_->expects() + ", or a list" : std::string("a list")) + ", each " +
           inner_->expects();
  }

 private:
  CodecPtr<M> inner_;
  bool or_one_;
};

template <class M>
class MapCodec final : public Codec<std::map<std::string, M>> {
 public:
  explicit MapCodec(CodecPtr<M> inner) : inner_(std::move(inner)) {}
  bool accepts(Kind kind) const override { return kind == Kind::object; }
  void read(const Node& node, std::map<std::string, M>& out, Reader& reader) const override {
    if (!check_kind(node, Kind::object, expects(), reader)) return;
    for (std::size_t i = 0; i < node.size(); ++i) {
      if (is_remark(node[i].key())) continue;
      inner_->read(node[i], out[node[i].key()], reader);
    }
  }
  Value write(const std::map<std::string, M>& value) const override {
    Value object(Kind::object);
    for (const auto& [key, element] : value) object.add(key, inner_->write(element));
    return object;
  }
  Value schema(Definitions& definitions) const override {
    Value object = schema_of_type("object");
    object.add("additionalProperties", inner_->schema(definitions));
    return object;
  }
  std::string expects() const override { return "an object of names, each " + inner_->expects(); }

 private:
  CodecPtr<M> inner_;
};

// The first alternative that accepts the JSON kind reads it.
template <class... Ms>
class EitherCodec final : public Codec<std::variant<Ms...>> {
 public:
  explicit EitherCodec(CodecPtr<Ms>... choices) : choices_(std::move(choices)...) {}
  bool accepts(Kind kind) const override {
    return std::apply([&](const auto&... choice) { return (choice->accepts(kind) || ...); }, choices_);
  }
  void read(const Node& node, std::variant<Ms...>& out, Reader& reader) const override {
    bool done = false;
    std::apply([&](const auto&... choice) { (read_if(*choice, node, out, reader, done), ...); }, choices_);
    if (!done) wrong_kind(node, expects(), reader);
  }
  Value write(const std::variant<Ms...>& value) const override {
    Value result;
    const auto write_if = [&]<class M>(const Codec<M>& choice) {
      if (const M* held = std::get_if<M>(&value)) result = choice.write(*held);
    };
    std::apply([&](const auto&... choice) { (write_if(*choice), ...); }, choices_);
    return result;
  }
  Value schema(Definitions& definitions) const override {
    std::vector<Value> list;
    std::apply([&](const auto&... choice) { (list.push_back(choice->schema(definitions)), ...); }, choices_);
    return schema_any_of(std::move(list));
  }
  std::string expects() const override {
    std::string text;
    std::apply(
        [&](const auto&... choice) { ((text += (text.empty() ? "" : ", or ") + choice->expects()), ...); },
        choices_);
    return text;
  }

 private:
  template <class M>
  static void read_if(const Codec<M>& choice, const Node& node, std::variant<Ms...>& out, Reader& reader,
                      bool& done) {
    if (done || !choice.accepts(node.kind())) return;
    M value{};
    if (M* held = std::get_if<M>(&out)) value = *held;
    choice.read(node, value, reader);
    out = std::move(value);
    done = true;
  }
  std::tuple<CodecPtr<Ms>...> choices_;
};

template <class T>
class StructCodec final : public Codec<T> {
 public:
  explicit StructCodec(const Object<T>& (*table)(Type<T>)) : table_(table) {}
  bool accepts(Kind kind) const override {
    return kind == Kind::object || (kind == Kind::string && table_({}).has_shorthand());
  }
  void read(const Node& node, T& out, Reader& reader) const override { table_({}).read(node, out, reader); }
  Value write(const T& value) const override { return table_({}).write(value); }
  Value schema(Definitions& definitions) const override { return table_({}).schema(definitions); }
  std::string expects() const override { return table_({}).expects(); }

 private:
  const Object<T>& (*table_)(Type<T>);
};

template <class M>
struct Default {
  static CodecPtr<M> make(const Range& range) {
    if constexpr (std::is_same_v<M, bool>) {
      return std::make_shared<BooleanCodec>();
    } else if constexpr (std::is_integral_v<M>) {
      return std::make_shared<CountCodec<M>>(range);
    } else if constexpr (std::is_same_v<M, double>) {
      return std::make_shared<NumberCodec>(range);
    } else if constexpr (std::is_same_v<M, std::string>) {
      return std::make_shared<TextCodec>();
    } else if constexpr (std::is_same_v<M, Duration>) {
      return std::make_shared<QuantityCodec<M>>(Dimension::time, range);
    } else if constexpr (std::is_same_v<M, Bytes>) {
      return std::make_shared<QuantityCodec<M>>(Dimension::size, range);
    } else if constexpr (std::is_same_v<M, BytesPerSecond>) {
      return std::make_shared<QuantityCodec<M>>(Dimension::bandwidth, range);
    } else if constexpr (std::is_same_v<M, Flops>) {
      return std::make_shared<QuantityCodec<M>>(Dimension::flops, range);
    } else if constexpr (std::is_same_v<M, FlopsPerSecond>) {
      return std::make_shared<QuantityCodec<M>>(Dimension::flop_rate, range);
    } else if constexpr (std::is_same_v<M, Watts>) {
      return std::make_shared<QuantityCodec<M>>(Dimension::power, range);
    } else if constexpr (std::is_same_v<M, Metres>) {
      return std::make_shared<QuantityCodec<M>>(Dimension::length, range);
    } else if constexpr (requires { codec(Type<M>{}); }) {
      return codec(Type<M>{});
    } else {
      return std::make_shared<StructCodec<M>>(+[](Type<M> type) -> const Object<M>& { return table(type); });
    }
  }
};
template <class M>
struct Default<std::optional<M>> {
  static CodecPtr<std::optional<M>> make(const Range& range) {
    return std::make_shared<OptionalCodec<M>>(Default<M>::make(range));
  }
};
template <class M>
struct Default<std::vector<M>> {
  static CodecPtr<std::vector<M>> make(const Range& range) {
    return std::make_shared<ListCodec<M>>(Default<M>::make(range), false);
  }
};
template <class M>
struct Default<std::map<std::string, M>> {
  static CodecPtr<std::map<std::string, M>> make(const Range& range) {
    return std::make_shared<MapCodec<M>>(Default<M>::make(range));
  }
};
template <class... Ms>
struct Default<std::variant<Ms...>> {
  static CodecPtr<std::variant<Ms...>> make(const Range& range) {
    return std::make_shared<EitherCodec<Ms...>>(Default<Ms>::make(range)...);
  }
};
}  // namespace detail

template <class M>
[[nodiscard]] CodecPtr<M> codec_for(const Range& range = {}) {
  return detail::Default<M>::make(range);
}
// An enum (or any comparable value) by name; {"gpipe", Schedule::gpipe, "all forwards, then all backwards"}.
template <class E>
[[nodiscard]] CodecPtr<E> names(std::vector<typename detail::NamesCodec<E>::Entry> entries) {
  return std::make_shared<detail::NamesCodec<E>>(std::move(entries));
}
// A string out of a closed list.
[[nodiscard]] CodecPtr<std::string> one_of(const std::vector<std::string>& words);
template <class M>
[[nodiscard]] CodecPtr<std::vector<M>> one_or_list(CodecPtr<M> inner = codec_for<M>()) {
  return std::make_shared<detail::ListCodec<M>>(std::move(inner), true);
}
template <class M>
[[nodiscard]] CodecPtr<std::vector<M>> list_of(CodecPtr<M> inner) {
  return std::make_shared<detail::ListCodec<M>>(std::move(inner), false);
}
template <class M>
[[nodiscard]] CodecPtr<std::map<std::string, M>> map_of(CodecPtr<M> inner) {
  return std::make_shared<detail::MapCodec<M>>(std::move(inner));
}
template <class M>
[[nodiscard]] CodecPtr<std::optional<M>> optional_of(CodecPtr<M> inner) {
  return std::make_shared<detail::OptionalCodec<M>>(std::move(inner));
}
template <class... Ms>
[[nodiscard]] CodecPtr<std::variant<Ms...>> either(CodecPtr<Ms>... choices) {
  return std::make_shared<detail::EitherCodec<Ms...>>(std::move(choices)...);
}
// A double with a unit that has no type of its own: energy price, money.
[[nodiscard]] CodecPtr<double> quantity(Dimension dimension, Range range = {});
}  // namespace topsim::config

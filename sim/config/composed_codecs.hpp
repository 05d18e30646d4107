// Codecs made of codecs: optional, list, map, either of several, struct.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "sim/config/codec_base.hpp"

namespace topsim::config::detail {

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
  bool accepts(Kind kind) const override { return table_({}).accepts(kind); }
  void read(const Node& node, T& out, Reader& reader) const override { table_({}).read(node, out, reader); }
  Value write(const T& value) const override { return table_({}).write(value); }
  Value schema(Definitions& definitions) const override { return table_({}).schema(definitions); }
  std::string expects() const override { return table_({}).expects(); }

 private:
  const Object<T>& (*table_)(Type<T>);
};
}  // namespace topsim::config::detail

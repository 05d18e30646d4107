// The field table of a struct: reading, writing back, and JSON Schema all come from it.
//
//   struct PlanSpec { int tp = 1; Schedule schedule = Schedule::one_f_one_b; std::optional<Bytes> bucket; };
//   const config::Object<PlanSpec>& table(config::Type<PlanSpec>) {          // in PlanSpec's namespace
//     static const auto object =
//         config::Object<PlanSpec>("plan", "How the model is cut over accelerators")
//             .field("tp", &PlanSpec::tp, "tensor-parallel size", config::at_least(1))
//             .field("schedule", &PlanSpec::schedule, "order of micro-batches in a pipeline",
//                    config::names<Schedule>({{"gpipe", Schedule::gpipe}, {"1f1b", Schedule::one_f_one_b}}))
//             .field("bucket", &PlanSpec::bucket, "gradient bucket", config::default_text("40 MiB x dp"));
//     return object;
//   }
// and in its header: const config::Object<PlanSpec>& table(config::Type<PlanSpec>);
// A default is the struct's own member initialiser. A std::optional that stays unset is written as nothing.
// The member may also be a callable: [](auto& s) -> auto& { return s.inner.length; }.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/config/codec.hpp"

namespace topsim::config {

struct Required {};
struct DefaultText {
  std::string text;
};
struct Example {
  std::string json;
};
[[nodiscard]] inline Required required() {
  return {};
}
// What the default is when the struct's initialiser cannot say it (it follows from other fields).
[[nodiscard]] inline DefaultText default_text(std::string text) {
  return {std::move(text)};
}
[[nodiscard]] inline Example example(std::string json) {
  return {std::move(json)};
}

namespace detail {
template <class Option>
inline constexpr bool is_codec = false;
template <class M>
inline constexpr bool is_codec<std::shared_ptr<M>> = true;

struct FieldFacts {
  std::string key, description, default_text;
  std::vector<std::string> examples;
  bool required = false;
};

// The remedy for an object, or a file in its place, in the keys of another program; nothing for what is not.
using Translate = std::optional<std::string> (*)(const Node&);

// Everything about an object that does not depend on its struct.
class ObjectBase {
 public:
  ObjectBase(std::string name, std::string description)
      : name_(std::move(name)), description_(std::move(description)) {}
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool has_shorthand() const { return !shorthand_.empty(); }
  [[nodiscard]] bool accepts(Kind kind) const {
    return kind == Kind::object || (has_shorthand() && kind == shorthand_kind_);
  }
  [[nodiscard]] std::string expects() const;
  [[nodiscard]] std::vector<std::string> keys() const;  // sorted

 protected:
  FieldFacts& add_facts(std::string_view key, std::string_view description);
  // Reports unknown and missing keys. False when the node is neither an object nor its short form.
  bool check(const Node& node, Reader& reader) const;
  // The value of a key; null is as if it were left out, "use" is the shorthand's other name.
  Node member(const Node& node, const std::string& key) const;
  // The document behind "use" or the short form, when the object comes from a library; absent on problems.
  // Leaves the reader entered; the caller leaves.
  Node library_entry(const Node& node, Reader& reader) const;
  Value schema(Definitions& definitions, const std::function<Value(std::size_t, Definitions&)>& field_schema,
               const std::function<Value(std::size_t)>& field_default) const;
  std::string name_, description_, shorthand_, category_;
  Translate translate_ = nullptr;
  Kind shorthand_kind_ = Kind::string;
  std::vector<FieldFacts> facts_;
};
}  // namespace detail

template <class T>
class Object : public detail::ObjectBase {
 public:
  using ObjectBase::ObjectBase;

  // Options: a Range, a CodecPtr, required(), default_text(), example(); any order.
  template <class Member, class... Options>
  Object& field(std::string_view key, Member member, std::string_view description,
                const Options&... options) & {
    using M = std::remove_cvref_t<std::invoke_result_t<Member, T&>>;
    detail::FieldFacts& facts = add_facts(key, description);
    Range range;
    CodecPtr<M> codec;
    (apply<M>(options, facts, range, codec), ...);
    if constexpr (!(detail::is_codec<Options> || ...)) codec = codec_for<M>(range);
    fields_.push_back(std::make_unique<FieldOf<Member, M>>(member, std::move(codec)));
    return *this;
  }
  template <class Member, class... Options>
  Object&& field(std::string_view key, Member member, std::string_view description,
                 const Options&... options) && {
    field(key, member, description, options...);
    return std::move(*this);
  }
  // A bare string stands for {key: string}: "link": "ib-ndr" is "link": {"use": "ib-ndr"}; a bare value of
  // another kind where `kind` says so.
  Object&& shorthand(std::string key, Kind kind = Kind::string) && {
    shorthand_ = std::move(key);
    shorthand_kind_ = kind;
    return std::move(*this);
  }
  // The short form, or "use", names a document of the library (configs/CATEGORY/NAME.json) that is read
  // first; the object's own keys override it.
  Object&& from_library(std::string category) && {
    category_ = std::move(category);
    return std::move(*this);
  }
  // Says how to write what other programs' files say of such an object.
  Object&& translated_by(detail::Translate translate) && {
    translate_ = translate;
    return std::move(*this);
  }
  // Runs after the fields were read without a problem; for what one field cannot know of another.
  Object&& check(std::function<void(const T&, const Node&, Reader&)> rule) && {
    rules_.push_back(std::move(rule));
    return std::move(*this);
  }

  void read(const Node& node, T& out, Reader& reader) const {
    const std::size_t before = reader.count();
    if (!ObjectBase::check(node, reader)) return;
    if (const Node entry = library_entry(node, reader)) {
      read(entry, out, reader);
      reader.leave();
    }
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (const Node child = member(node, facts_[i].key)) fields_[i]->read(child, out, reader);
    }
    if (reader.count() != before) return;
    for (const auto& rule : rules_) rule(out, node, reader);
  }
  [[nodiscard]] Value write(const T& value) const {
    Value object(Kind::object);
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      Value child = fields_[i]->write(value);
      if (child.kind != Kind::null) object.add(facts_[i].key, std::move(child));
    }
    return object;
  }
  [[nodiscard]] Value schema(Definitions& definitions) const {
    const T defaults{};
    return ObjectBase::schema(
        definitions, [this](std::size_t i, Definitions& d) { return fields_[i]->schema(d); },
        [&](std::size_t i) { return fields_[i]->write(defaults); });
  }

 private:
  struct Field {
    virtual ~Field() = default;
    virtual void read(const Node& node, T& out, Reader& reader) const = 0;
    virtual Value write(const T& value) const = 0;
    virtual Value schema(Definitions& definitions) const = 0;
  };
  template <class Member, class M>
  struct FieldOf final : Field {
    FieldOf(Member m, CodecPtr<M> c) : member(m), codec(std::move(c)) {}
    void read(const Node& node, T& out, Reader& reader) const override {
      codec->read(node, std::invoke(member, out), reader);
    }
    Value write(const T& value) const override { return codec->write(std::invoke(member, value)); }
    Value schema(Definitions& definitions) const override { return codec->schema(definitions); }
    Member member;
    CodecPtr<M> codec;
  };

  template <class M>
  static void apply(const Range& option, detail::FieldFacts&, Range& range, CodecPtr<M>&) {
    range = option;
  }
  template <class M>
  static void apply(const Required&, detail::FieldFacts& facts, Range&, CodecPtr<M>&) {
    facts.required = true;
  }
  template <class M>
  static void apply(const DefaultText& option, detail::FieldFacts& facts, Range&, CodecPtr<M>&) {
    facts.default_text = option.text;
  }
  template <class M>
  static void apply(const Example& option, detail::FieldFacts& facts, Range&, CodecPtr<M>&) {
    facts.examples.push_back(option.json);
  }
  template <class M>
  static void apply(const CodecPtr<M>& option, detail::FieldFacts&, Range&, CodecPtr<M>& codec) {
    codec = option;
  }
  // A codec of M for a member that is std::optional<M>.
  template <class M, class Inner>
  requires std::is_same_v<M, std::optional<Inner>>
  static void apply(const CodecPtr<Inner>& option, detail::FieldFacts&, Range&, CodecPtr<M>& codec) {
    codec = optional_of<Inner>(option);
  }

  std::vector<std::unique_ptr<Field>> fields_;
  std::vector<std::function<void(const T&, const Node&, Reader&)>> rules_;
};

// Reads a whole document; throws ConfigError with all its problems.
template <class T>
[[nodiscard]] T read(const Document& document, const Library* library = nullptr) {
  T result{};
  Reader reader(library);
  codec_for<T>()->read(document.root(), result, reader);
  reader.finish();
  return result;
}
// The struct as JSON that reads back the same.
template <class T>
[[nodiscard]] std::string write(const T& value) {
  return to_text(codec_for<T>()->write(value));
}
// JSON Schema (2020-12) of a struct with a field table.
[[nodiscard]] std::string finish_schema(std::string_view name, Value root, Definitions definitions);
template <class T>
[[nodiscard]] std::string schema(std::string_view name) {
  Definitions definitions;
  Value root = codec_for<T>()->schema(definitions);
  return finish_schema(name, std::move(root), std::move(definitions));
}
}  // namespace topsim::config

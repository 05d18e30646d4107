// A figure of the catalogue: a value that says where it comes from.
//
//   "tdp": ["700 W", "nvidia-sheet"]                      value, key into the file's "sources"
//   "tdp": ["700 W", "nvidia-sheet", "board limit"]       with a remark
//   "tdp": {"use": ["700 W", "a"], "others": [["750 W", "b"]], "why": "the board, not the module"}
//
// A source is text that begins with "read: " (its text was seen), "recalled: " (remembered, unchecked),
// "derived: " (follows from other figures) or "measured: " (timed for topsim).
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/codec.hpp"

namespace topsim::topology {

// A figure with the values of all its sources.
template <class M>
struct Spread {
  M use{}, low{}, high{};
};

namespace detail {
// The chosen alternative's value; absent after reporting a malformed figure or an unknown source.
config::Node open_figure(const config::Node& node, config::Reader& reader);
// Of a figure whose value has the schema `value`.
config::Value schema_of_figure(config::Value value, config::Definitions& definitions);
// The values not chosen.
std::vector<config::Node> other_values(const config::Node& node, config::Reader& reader);

template <class M>
class FigureCodec final : public config::Codec<M> {
 public:
  explicit FigureCodec(config::CodecPtr<M> inner) : inner_(std::move(inner)) {}
  [[nodiscard]] bool accepts(config::Kind kind) const override {
    return kind == config::Kind::array || kind == config::Kind::object;
  }
  void read(const config::Node& node, M& out, config::Reader& reader) const override {
    if (const config::Node value = open_figure(node, reader)) inner_->read(value, out, reader);
    for (const config::Node& other : other_values(node, reader)) {
      M unused{};
      inner_->read(other, unused, reader);
    }
  }
  // No figure is without a source, a default has none.
  [[nodiscard]] config::Value write(const M&) const override { return config::Value(config::Kind::null); }
  [[nodiscard]] config::Value schema(config::Definitions& definitions) const override {
    return schema_of_figure(inner_->schema(definitions), definitions);
  }
  [[nodiscard]] std::string expects() const override { return "[" + inner_->expects() + ", \"source\"]"; }

 private:
  config::CodecPtr<M> inner_;
};

template <class M>
class SpreadCodec final : public config::Codec<Spread<M>> {
 public:
  explicit SpreadCodec(config::CodecPtr<M> inner) : inner_(std::move(inner)) {}
  [[nodiscard]] bool accepts(config::Kind kind) const override {
    return kind == config::Kind::array || kind == config::Kind::object;
  }
  void read(const config::Node& node, Spread<M>& out, config::Reader& reader) const override {
    if (const config::Node value = open_figure(node, reader)) inner_->read(value, out.use, reader);
    out.low = out.high = out.use;
    for (const config::Node& other : other_values(node, reader)) {
      M value = out.use;
      inner_->read(other, value, reader);
      out.low = std::min(out.low, value);
      out.high = std::max(out.high, value);
    }
  }
  [[nodiscard]] config::Value write(const Spread<M>&) const override {
    return config::Value(config::Kind::null);
  }
  [[nodiscard]] config::Value schema(config::Definitions& definitions) const override {
    return schema_of_figure(inner_->schema(definitions), definitions);
  }
  [[nodiscard]] std::string expects() const override { return "[" + inner_->expects() + ", \"source\"]"; }

 private:
  config::CodecPtr<M> inner_;
};
}  // namespace detail

template <class M>
[[nodiscard]] config::CodecPtr<M> figure(config::CodecPtr<M> inner = config::codec_for<M>()) {
  return std::make_shared<detail::FigureCodec<M>>(std::move(inner));
}
template <class M>
[[nodiscard]] config::CodecPtr<Spread<M>> spread(config::CodecPtr<M> inner = config::codec_for<M>()) {
  return std::make_shared<detail::SpreadCodec<M>>(std::move(inner));
}

// Text of the first source that an entry names; empty when it names none.
[[nodiscard]] std::string first_source(const config::Node& entry);
}  // namespace topsim::topology

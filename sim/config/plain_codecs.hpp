// Codecs of single values: truth, counts, numbers, text, quantities, names.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/config/codec_base.hpp"

namespace topsim::config::detail {

class BooleanCodec final : public Codec<bool> {
 public:
  bool accepts(Kind kind) const override { return kind == Kind::boolean; }
  void read(const Node& node, bool& out, Reader& reader) const override { read_boolean(node, out, reader); }
  Value write(const bool& value) const override { return Value::of(value); }
  Value schema(Definitions&) const override { return schema_of_type("boolean"); }
  std::string expects() const override { return std::string(kTruth); }
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
    std::string also = {};  // another spelling that is read
  };
  explicit NamesCodec(std::vector<Entry> entries) {
    for (Entry& entry : entries) {
      names_.push_back(std::move(entry.name));
      texts_.push_back(std::move(entry.text));
      also_.push_back(std::move(entry.also));
      values_.push_back(entry.value);
    }
  }
  bool accepts(Kind kind) const override { return kind == Kind::string; }
  void read(const Node& node, E& out, Reader& reader) const override {
    std::size_t i = 0;
    if (node.is(Kind::string) && !node.text().empty()) {
      for (; i < also_.size(); ++i) {
        if (also_[i] == node.text()) {
          out = values_[i];
          return;
        }
      }
    }
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
  std::vector<std::string> names_, texts_, also_;
  std::vector<E> values_;
};
}  // namespace topsim::config::detail

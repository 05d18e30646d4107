// What a codec is, and the work of reading and describing that does not depend on a field's type.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/config/quantity.hpp"
#include "sim/config/reader.hpp"

namespace topsim::config {

template <class T>
struct Type {};

template <class T>
class Object;

// The numbers that a field accepts, in base units. No number may be negative unless its range says so.
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

// The longest latency of one hop: a second is 200,000 km of fibre, and many more of them would exceed a clock
// in picoseconds.
[[nodiscard]] inline Range at_most_a_second() {
  return {0, 1e12};
}

// The $defs of a schema under construction.
class Definitions {
 public:
  // The id of `owner`; `fresh` when it is new and the caller fills it (guards against recursion). Two owners
  // of one name get different ids.
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
inline constexpr std::string_view kTruth = "true or false";  // what a switch expects
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
Value schema_or_null(Value schema);
std::string expects_count(const Range& range);
std::string expects_number(const Range& range);
std::string expects_quantity(Dimension dimension);
}  // namespace detail
}  // namespace topsim::config

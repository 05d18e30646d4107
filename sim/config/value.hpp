// JSON as a tree that remembers where each key and value stood. Our own, so that no header pulls in the JSON
// library, and so that reading, --set, includes, the resolved scenario and the schema share one type.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"

namespace topsim::config {

enum class Kind : std::uint8_t { null, boolean, integer, number, string, object, array };
[[nodiscard]] std::string_view name_of(Kind kind);  // "a string", "an object", ... for messages

// A text that values point into: a file, or the words of one --set.
struct Source {
  std::string name;  // as the user wrote it: configs/my-cluster.json
  std::string text;
  [[nodiscard]] std::string line(int number) const;  // from 1
};

struct Span {
  int line = 0, column = 0, length = 1;
};

class Value {
 public:
  Value() = default;
  explicit Value(Kind k) : kind(k) {}
  Value(Value&& other) noexcept { *this = std::move(other); }
  Value& operator=(Value&& other) noexcept;
  [[nodiscard]] Value copy() const;

  static Value of(bool v);
  static Value of(std::int64_t v);
  static Value of(double v);
  static Value of(std::string_view v);
  static Value of(const char* v) { return of(std::string_view(v)); }

  Value& add(std::string name, Value child);  // a member of an object
  Value& push(Value child);                   // an element of an array
  // Member of that name, or nullptr. Objects only.
  [[nodiscard]] const Value* find(std::string_view name) const;
  [[nodiscard]] Value* find(std::string_view name);

  Kind kind = Kind::null;
  bool boolean = false;
  std::int64_t integer = 0;                      // kind integer
  double number = 0;                             // kind integer and number
  std::string text;                              // kind string
  std::string key;                               // its name when it is a member of an object
  std::vector<std::unique_ptr<Value>> children;  // members or elements, in the order of the file
  Value* parent = nullptr;
  const Source* source = nullptr;
  Span span, key_span;
};

// Objects and arrays that fit `width` on one line; two spaces a level otherwise. width 0: everything on one
// line. Doubles are printed as the shortest text that reads back the same.
[[nodiscard]] std::string to_text(const Value& value, int width = 100);
}  // namespace topsim::config

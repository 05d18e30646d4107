#include "sim/config/value.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "sim/base/nearest.hpp"

namespace topsim::config {
namespace {

void quote(std::string_view text, std::string& out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4U];
      out += kHex[byte & 15U];
    } else {
      out += c;
    }
  }
  out += '"';
}

template <class Number>
void print(Number number, std::string& out) {
  std::array<char, 40> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
  out.append(buffer.data(), end);
}

void print_flat(const Value& value, std::string& out) {
  const auto list = [&](char open, char close) {
    out += open;
    for (std::size_t i = 0; i < value.children.size(); ++i) {
      if (i > 0) out += ", ";
      if (value.kind == Kind::object) {
        quote(value.children[i]->key, out);
        out += ": ";
      }
      print_flat(*value.children[i], out);
    }
    out += close;
  };
  switch (value.kind) {
    case Kind::null:
      out += "null";
      break;
    case Kind::boolean:
      out += value.boolean ? "true" : "false";
      break;
    case Kind::integer:
      print(value.integer, out);
      break;
    case Kind::number:
      print(value.number, out);
      break;
    case Kind::string:
      quote(value.text, out);
      break;
    case Kind::object:
      list('{', '}');
      break;
    case Kind::array:
      list('[', ']');
      break;
  }
}

void print_wide(const Value& value, int width, std::size_t indent, std::string& out) {
  const bool compound = value.kind == Kind::object || value.kind == Kind::array;
  std::string flat;
  print_flat(value, flat);
  if (!compound || indent + flat.size() <= static_cast<std::size_t>(width)) {
    out += flat;
    return;
  }
  out += value.kind == Kind::object ? '{' : '[';
  for (std::size_t i = 0; i < value.children.size(); ++i) {
    out += i > 0 ? ",\n" : "\n";
    out.append(indent + 2, ' ');
    std::size_t used = indent + 2;
    if (value.kind == Kind::object) {
      const std::size_t before = out.size();
      quote(value.children[i]->key, out);
      out += ": ";
      used += out.size() - before;
    }
    std::string child;
    print_flat(*value.children[i], child);
    if (used + child.size() + 1 <= static_cast<std::size_t>(width)) {
      out += child;
    } else {
      print_wide(*value.children[i], width, indent + 2, out);
    }
  }
  out += '\n';
  out.append(indent, ' ');
  out += value.kind == Kind::object ? '}' : ']';
}
}  // namespace

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return "true or false";
    case Kind::integer:
      return "a number";
    case Kind::number:
      return "a number";
    case Kind::string:
      return "a string";
    case Kind::object:
      return "an object";
    case Kind::array:
      return "a list";
  }
  return "?";
}

std::string Source::line(int number) const {
  std::size_t begin = 0;
  for (int i = 1; i < number; ++i) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) return {};
    begin = end + 1;
  }
  std::string result = text.substr(begin, text.find('\n', begin) - begin);
  if (!result.empty() && result.back() == '\r') result.pop_back();
  return result;
}

Value& Value::operator=(Value&& other) noexcept {
  if (this == &other) return *this;
  kind = other.kind;
  boolean = other.boolean;
  integer = other.integer;
  number = other.number;
  text = std::move(other.text);
  key = std::move(other.key);
  // Moved through a temporary, because `other` may be one of our own children.
  auto adopted = std::move(other.children);
  source = other.source;
  span = other.span;
  key_span = other.key_span;
  children = std::move(adopted);
  for (const auto& child : children) child->parent = this;
  return *this;
}

Value Value::copy() const {
  Value result(kind);
  result.boolean = boolean;
  result.integer = integer;
  result.number = number;
  result.text = text;
  result.key = key;
  result.source = source;
  result.span = span;
  result.key_span = key_span;
  for (const auto& child : children) result.push(child->copy());
  return result;
}

Value Value::of(bool v) {
  Value result(Kind::boolean);
  result.boolean = v;
  return result;
}
Value Value::of(std::int64_t v) {
  Value result(Kind::integer);
  result.integer = v;
  result.number = static_cast<double>(v);
  return result;
}
Value Value::of(double v) {
  if (std::trunc(v) == v && std::abs(v) < kExactIntegers) return of(static_cast<std::int64_t>(v));
  Value result(Kind::number);
  result.number = v;
  return result;
}
Value Value::of(std::string_view v) {
  Value result(Kind::string);
  result.text = v;
  return result;
}

Value& Value::add(std::string name, Value child) {
  Value& added = push(std::move(child));
  added.key = std::move(name);
  return added;
}
Value& Value::push(Value child) {
  children.push_back(std::make_unique<Value>(std::move(child)));
  children.back()->parent = this;
  return *children.back();
}

const Value* Value::find(std::string_view name) const {
  if (kind != Kind::object) return nullptr;
  for (const auto& child : children) {
    if (child->key == name) return child.get();
  }
  return nullptr;
}
Value* Value::find(std::string_view name) {
  return const_cast<Value*>(std::as_const(*this).find(name));
}

std::string to_text(const Value& value, int width) {
  std::string out;
  if (width == 0) {
    print_flat(value, out);
  } else {
    print_wide(value, width, 0, out);
  }
  return out;
}
}  // namespace topsim::config

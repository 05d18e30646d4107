// Tables as columns: name -> (format, buffer). The buffer holds the values in the native layout that
// memoryview.cast(format) and numpy.frombuffer read without a copy. Words are indices into a list:
// name -> (format, buffer, words).
#pragma once

#include <cstring>
#include <type_traits>

#include "python/bindings/bindings.hpp"
#include "sim/report/timeline.hpp"

namespace topsim::python {

template <class T>
[[nodiscard]] const char* format_of() {
  if constexpr (std::is_same_v<T, double>) return "d";
  if constexpr (std::is_same_v<T, std::uint32_t>) return "I";
  if constexpr (std::is_same_v<T, std::uint64_t>) return "Q";
  if constexpr (std::is_same_v<T, bool>) return "?";
}

// One value per row, in one pass over the rows.
template <class T, class Rows, class Value>
[[nodiscard]] py::tuple column(const Rows& rows, const Value& value) {
  py::bytes buffer(nullptr, rows.size() * sizeof(T));
  char* at = PyBytes_AS_STRING(buffer.ptr());
  for (const auto& row : rows) {
    const T item = value(row);
    std::memcpy(at, &item, sizeof(T));
    at += sizeof(T);
  }
  return py::make_tuple(format_of<T>(), buffer);
}
template <class Rows, class Index>
[[nodiscard]] py::tuple column_of_words(const Rows& rows, const Index& index,
                                        const std::vector<std::string>& words) {
  const py::tuple plain = column<std::uint32_t>(rows, index);
  py::list list;
  for (const std::string& word : words) list.append(word);
  return py::make_tuple(plain[0], plain[1], list);
}

[[nodiscard]] py::dict slice_columns(const report::Timeline& timeline);
[[nodiscard]] py::dict idle_columns(const report::Timeline& timeline);
[[nodiscard]] py::dict link_sample_columns(const report::Timeline& timeline);
}  // namespace topsim::python

// One codec per type: how it is read from JSON, written back, and described by JSON Schema. The default
// follows from the C++ type (codec_for<M>()); a field may name another:
//   names<E>({...})     an enum by its names         one_or_list<M>()   3 or [3, 4] into a std::vector
//   one_of({...})       a string out of a list       quantity(d)        a double with a unit, "0.1 USD/kWh"
// std::optional, std::vector, std::map<std::string, M> and std::variant (by JSON kind) compose from their
// parts. For a type of another folder that is not a struct with a field table, define
//   config::CodecPtr<X> codec(config::Type<X>)  beside it, found by argument-dependent lookup.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/config/composed_codecs.hpp"
#include "sim/config/plain_codecs.hpp"

namespace topsim::config {
namespace detail {

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
// An entry of that list for an enum that has name_of().
template <class E>
[[nodiscard]] typename detail::NamesCodec<E>::Entry named(E value, std::string text = {}) {
  return {std::string(name_of(value)), value, std::move(text)};
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

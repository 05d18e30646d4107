// Indices that cannot be mixed up: a link's number is not a device's number.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

namespace topsim {

template <class Tag>
struct Id {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t value = kNone;
  constexpr Id() = default;
  constexpr explicit Id(std::size_t v) : value(static_cast<std::uint32_t>(v)) {}
  [[nodiscard]] constexpr bool valid() const { return value != kNone; }
  [[nodiscard]] constexpr std::size_t index() const { return value; }
  constexpr auto operator<=>(const Id&) const = default;
};

using DeviceId = Id<struct DeviceTag>;      // a device of a Topology
using LinkId = Id<struct LinkTag>;          // a directed link of a Topology
using RankId = Id<struct RankTag>;          // a rank of a Program, 0..ranks-1
using CommunicatorId = Id<struct CommTag>;  // a communicator of a Program
}  // namespace topsim

template <class Tag>
struct std::hash<topsim::Id<Tag>> {
  std::size_t operator()(topsim::Id<Tag> id) const noexcept { return std::hash<std::uint32_t>{}(id.value); }
};

// What one kind of fabric has that another has not: the table that everything else asks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace topsim::topology {

enum class FabricKind : std::uint8_t {
  none,
  rail,
  fat_tree,
  rail_only,
  dragonfly,
  torus,
  mesh,
  direct,
  explicit_
};

// Kinds that are built alike, and have use for the same keys of a scenario.
enum class FabricFamily : std::uint8_t {
  none,       // nothing between the nodes
  clos,       // leaves, spines, cores
  dragonfly,  // groups of switches, all joined
  torus,      // no switches: accelerators by coordinate pass on what is for others
  direct,     // cables from NIC to NIC
  listed      // what the file of devices and links says
};

// Whether the NICs of a node have leaves of their own, each place on the node another.
enum class Rails : std::uint8_t {
  none,
  joined,  // spines join them
  apart    // only the nodes do
};

struct FabricTraits {
  FabricKind kind;
  std::string_view name;  // as scenarios, recipes and results write it
  FabricFamily family;
  Rails rails = Rails::none;
  bool rings = false;     // links may join the ends of its axes
  bool of_nodes = false;  // can be built between nodes of a recipe, so fabrics of the catalogue can be of it
};

// In the order of the enum, which is that of the schema.
inline constexpr std::array<FabricTraits, 9> kFabricTraits = {
    {{.kind = FabricKind::none, .name = "none", .family = FabricFamily::none, .of_nodes = true},
     {.kind = FabricKind::rail,
      .name = "rail",
      .family = FabricFamily::clos,
      .rails = Rails::joined,
      .of_nodes = true},
     {.kind = FabricKind::fat_tree, .name = "fat-tree", .family = FabricFamily::clos, .of_nodes = true},
     {.kind = FabricKind::rail_only,
      .name = "rail-only",
      .family = FabricFamily::clos,
      .rails = Rails::apart,
      .of_nodes = true},
     {.kind = FabricKind::dragonfly,
      .name = "dragonfly",
      .family = FabricFamily::dragonfly,
      .of_nodes = true},
     {.kind = FabricKind::torus,
      .name = "torus",
      .family = FabricFamily::torus,
      .rings = true,
      .of_nodes = true},
     {.kind = FabricKind::mesh, .name = "mesh", .family = FabricFamily::torus, .of_nodes = true},
     {.kind = FabricKind::direct, .name = "direct", .family = FabricFamily::direct, .of_nodes = true},
     {.kind = FabricKind::explicit_, .name = "explicit", .family = FabricFamily::listed}}};

[[nodiscard]] constexpr const FabricTraits& traits(FabricKind kind) {
  return kFabricTraits[static_cast<std::size_t>(kind)];
}
[[nodiscard]] constexpr std::string_view name_of(FabricKind kind) {
  return traits(kind).name;
}
// Accelerators are the switches and have coordinates, which routes, collectives and ranks follow.
[[nodiscard]] constexpr bool by_coordinate(FabricKind kind) {
  return traits(kind).family == FabricFamily::torus;
}

static_assert(
    [] {
      for (std::size_t i = 0; i < kFabricTraits.size(); ++i)
        if (static_cast<std::size_t>(kFabricTraits[i].kind) != i || kFabricTraits[i].name.empty())
          return false;
      return true;
    }(),
    "a line of the table is missing or out of order");
}  // namespace topsim::topology

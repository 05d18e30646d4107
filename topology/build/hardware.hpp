// Catalogue entries with the scenario's overrides applied; mistakes name the path they came from.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topology/build.hpp"
#include "topology/catalogue.hpp"
#include "topology/catalogue/device_entries.hpp"
#include "topology/catalogue/fabric_recipe.hpp"
#include "topology/catalogue/link_entry.hpp"
#include "topology/catalogue/node_recipe.hpp"
#include "topology/spec.hpp"

namespace topsim::topology {

// The figures of a kind of cable that a Link needs; per single cable.
struct LinkFigures {
  LinkKind kind = LinkKind::other;
  LinkType type;
  BytesPerSecond line_rate, capacity, capacity_at_nic;
  Duration latency{};           // inside a node: per crossing
  Duration host_latency{};      // the same towards a root complex
  Duration nic_base{};          // fabric links
  std::optional<Duration> hop;  // fabric links: per switch, everything included
  Duration fec{};
  Routing routing = Routing::ecmp;   // of a fabric that names none
  int ring_axis = 0, ring_cube = 0;  // as in LinkEntry
};

// Of fabrics of links that say none: InfiniBand's switches adapt, Ethernet's hash.
[[nodiscard]] constexpr Routing usual_routing(LinkKind kind) {
  return kind == LinkKind::infiniband ? Routing::adaptive : Routing::ecmp;
}

// What a message takes over a cable and through a switch at its end, and over the cable alone.
struct Crossing {
  Duration to_switch{}, from_switch{};
};

class Hardware {
 public:
  explicit Hardware(const Catalogue& catalogue, const BuildOptions& options = {})
      : catalogue_(catalogue), ethernet_(options.ethernet), infiniband_(options.infiniband) {}

  // Unknown names throw ConfigError; `path` is where the scenario said them.
  [[nodiscard]] const NodeRecipe& node(std::string_view id, const std::string& path) const;
  [[nodiscard]] const NicEntry& nic(std::string_view id, const std::string& path) const;
  [[nodiscard]] const SwitchEntry& switch_entry(std::string_view id, const std::string& path) const;
  [[nodiscard]] const Accelerator& accelerator(std::string_view id, const std::string& path) const;
  [[nodiscard]] const FabricRecipe& fabric(std::string_view id, const std::string& path) const;
  // Nodes of these accelerators with so many NICs for the fabric, or so many ports of theirs.
  [[nodiscard]] std::vector<std::string> nodes_with_nics(std::string_view accelerator, int count) const;
  // Null: the catalogue has none of that name. Devices given one by one may be called anything.
  [[nodiscard]] const Accelerator* find_accelerator(std::string_view id) const;
  [[nodiscard]] const SwitchEntry* find_switch(std::string_view id) const;
  [[nodiscard]] double peer_overhead(std::string_view cpu_family) const {
    return catalogue_.peer_overhead(cpu_family);
  }
  [[nodiscard]] LinkFigures link(const LinkChoice& choice, const std::string& path) const;
  [[nodiscard]] LinkFigures link(const std::string& id, const std::string& path) const {
    LinkChoice choice;
    choice.use = id;
    return link(choice, path);
  }
  // The usual switch for a link when the scenario names none.
  [[nodiscard]] const SwitchEntry& usual_switch(const std::string& link, const std::string& path) const;
  // Of a switch whose model nobody says: that of the link's usual one, else of the next faster.
  [[nodiscard]] Duration usual_switch_latency(const std::string& link) const;
  // `box`: the switch, port to port. As in a recipe: a length, or a switch slower than the measured hop,
  // replaces that.
  [[nodiscard]] static Crossing crossing(const LinkFigures& link, Duration box, std::optional<Metres> length);
  // Runs the cable at no more than `rate` (a slower port at one end).
  [[nodiscard]] static LinkFigures limited(LinkFigures figures, BytesPerSecond rate);

 private:
  [[nodiscard]] bool lists(std::string_view category, std::string_view id) const;

  const Catalogue& catalogue_;
  std::optional<PacketBytes> ethernet_, infiniband_;
};

// Of light through cables.
[[nodiscard]] Duration fibre(Metres length);

// `count` cables as one Link.
[[nodiscard]] Link bundle(const LinkFigures& figures, std::uint16_t type, int count, bool at_nic = false);
}  // namespace topsim::topology

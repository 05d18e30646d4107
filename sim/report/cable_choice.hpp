// Which cable of the catalogue joins two ports, and what it costs.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "sim/report/interval.hpp"
#include "sim/report/optical_circuits.hpp"
#include "topology/catalogue.hpp"
#include "topology/spec.hpp"
#include "topology/topology.hpp"

namespace topsim::topology {
struct CableEntry;
}

namespace topsim::report {

// Whether the catalogue has a part: models of hand-written topologies may have any name.
class Listed {
 public:
  explicit Listed(const topology::Catalogue& catalogue);
  [[nodiscard]] bool operator()(const std::string& id, std::string_view category) const;

 private:
  std::multimap<std::string, std::string> ids_;  // by category
};

struct ChosenCable {
  const topology::CableEntry* entry = nullptr;  // null: the catalogue has none that fits
  Metres length{};
};

class CableChooser {
 public:
  // REQUIRES: all but the fabric outlive it.
  CableChooser(const topology::Topology& topology, topology::FabricSpec fabric,
               const topology::Catalogue& catalogue, const OpticalCircuits& optics, const Listed& listed);
  // The cheapest that carries the link's rate over its length; at most twice the rate, since a plug must fit
  // its port. InfiniBand cables are used only for InfiniBand.
  [[nodiscard]] ChosenCable of(const topology::Link& link);
  // USD. REQUIRES: there is one.
  [[nodiscard]] Interval price(const ChosenCable& cable, const topology::Link& link) const;

 private:
  [[nodiscard]] Metres length_of(const topology::Link& link) const;
  [[nodiscard]] bool at_nvidia(const topology::Link& link) const;

  const topology::Topology& topology_;
  const topology::FabricSpec fabric_;
  const topology::Catalogue& catalogue_;
  const OpticalCircuits& optics_;
  const Listed& listed_;
  std::map<std::tuple<double, double, std::string>, const topology::CableEntry*>
      chosen_;  // by rate, length and fabric
};
}  // namespace topsim::report

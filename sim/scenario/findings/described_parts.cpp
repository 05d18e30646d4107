#include "sim/scenario/findings/described_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "topology/catalogue/device_entries.hpp"
#include "topology/line_rates.hpp"
#include "topology/validate/validate.hpp"

namespace topsim::scenario {
namespace {
using topology::DeviceKind;
using topology::LinkKind;

constexpr const char* kPath = "topology.links";

double gigabits(double bytes_per_second) {
  return bytes_per_second * 8e-9;
}

// The number of a device's cables into the fabric, and the rate of the fastest.
struct Cables {
  std::int64_t count = 0;
  double fastest = 0;  // bytes/s
};
Cables cables_of(const topology::Topology& topology, DeviceId device) {
  Cables cables;
  for (const LinkId id : topology.links_from(device)) {
    const topology::Link& link = topology.link(id);
    if (link.kind != LinkKind::infiniband && link.kind != LinkKind::ethernet) continue;
    cables.count += link.count;
    cables.fastest = std::max(cables.fastest, link.line_rate.value() / link.count);
  }
  return cables;
}

// The name of a port's part and its rate; how many cables of `rate` fit, 0: any number.
struct Ports {
  std::string name;
  double rate = 0;
  int room = 0;
};

class Parts {
 public:
  Parts(const topology::Topology& topology, const topology::Catalogue& catalogue)
      : topology_(topology), catalogue_(catalogue) {
    for (const topology::CatalogueEntry& entry : catalogue.entries()) {
      if (entry.category == "nic") nics_.insert(entry.id);
      if (entry.category == "switch") switches_.insert(entry.id);
    }
  }

  std::vector<report::Finding> find() {
    for (std::size_t i = 0; i < topology_.devices().size(); ++i) ports(DeviceId(i));
    return std::move(found_);
  }

 private:
  [[nodiscard]] Ports ports_of(DeviceId device, double rate) const {
    const std::string& model = topology_.model_of(device);
    if (topology_.device(device).kind == DeviceKind::nic && nics_.contains(model)) {
      const topology::NicEntry& nic = catalogue_.nic(model);
      return {nic.name, nic.port_rate.value(), nic.ports};
    }
    if (topology_.device(device).kind == DeviceKind::fabric_switch && switches_.contains(model)) {
      const topology::SwitchEntry& box = catalogue_.network_switch(model);
      return {box.name, box.port_rate.value(),
              box.radix(BytesPerSecond(rate)) * std::max<int>(topology_.device(device).count, 1)};
    }
    return {};
  }

  // One finding per model: a hand-written cluster has many equal devices.
  void ports(DeviceId device) {
    const Cables cables = cables_of(topology_, device);
    if (cables.count == 0) return;
    const Ports ports = ports_of(device, cables.fastest);
    if (ports.rate <= 0) return;
    const std::string& model = topology_.model_of(device);
    if (cables.fastest > topology::kJustAbove * ports.rate) {
      if (fast_.insert(model).second)
        warn(
            fmt::format("a port of {} runs at {:g} Gbit/s and a cable of {} is described with {:g}, which is "
                        "simulated",
                        ports.name, gigabits(ports.rate), topology_.name(device), gigabits(cables.fastest)),
            "a cable of the port's rate (use), or another model");
    } else if (ports.room > 0 && cables.count > ports.room) {
      if (full_.insert(model).second)
        warn(fmt::format("{} has {} cables, and {} ports of {:g} Gbit/s at most ({})", topology_.name(device),
                         cables.count, ports.room, gigabits(cables.fastest), ports.name),
             "more switches, or a model with more ports");
    }
  }

  void warn(std::string message, std::string remedy) {
    found_.push_back({report::Severity::warning, std::move(message), kPath, std::move(remedy)});
  }

  const topology::Topology& topology_;
  const topology::Catalogue& catalogue_;
  std::set<std::string, std::less<>> nics_, switches_, fast_, full_;
  std::vector<report::Finding> found_;
};
}  // namespace

std::vector<report::Finding> described_rates(const topology::Topology& topology) {
  const std::vector<topology::Finding> links = topology::overfull_links(topology);
  if (links.empty()) return {};
  return {{report::Severity::warning, links.front().message, kPath,
           "capacity is what of the line rate is left to payload"}};
}

std::vector<report::Finding> described_parts(const topology::Topology& topology,
                                             const topology::Catalogue& catalogue) {
  return Parts(topology, catalogue).find();
}
}  // namespace topsim::scenario

#include "topology/build/explicit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "sim/base/error.hpp"

namespace topsim::topology {
namespace {

class Explicit {
 public:
  Explicit(const TopologySpec& spec, const Hardware& hardware) : spec_(spec), hardware_(hardware) {}

  Topology build() {
    facts();
    models();
    for (std::size_t i = 0; i < spec_.devices.size(); ++i) device(i);
    for (std::size_t i = 0; i < spec_.links.size(); ++i) link(i);
    routing();
    dangling();
    torus();
    unused();
    if (!problems_.empty()) throw ConfigError(std::move(problems_));
    builder_.set_nodes(nodes_);
    Topology topology = std::move(builder_).finish();
    // Ranks go along the coordinates where these name every accelerator, as they do in a recipe.
    std::vector<DeviceId> chips = topology.torus_chips;
    const auto all = topology.accelerators();
    return std::is_permutation(chips.begin(), chips.end(), all.begin(), all.end())
               ? topology.with_ranks_on(std::move(chips))
               : std::move(topology);
  }

 private:
  void problem(std::string path, std::string message, std::string help) {
    problems_.push_back({{}, "topology." + std::move(path), std::move(message), {}, std::move(help), {}});
  }

  void facts() {
    Topology& f = builder_.facts();
    f.fabric_kind = spec_.fabric.kind;
    const auto is_switch = [](const DeviceSpec& d) { return d.kind == name_of(DeviceKind::fabric_switch); };
    if (f.fabric_kind == "none" && std::any_of(spec_.devices.begin(), spec_.devices.end(), is_switch))
      f.fabric_kind = "explicit";
    for (const LinkTypeSpec& t : spec_.link_types) builder_.link_type({t.id, t.label, t.source, t.transport});
    f.sharp = spec_.fabric.sharp;
    f.peer_to_peer = spec_.peer_to_peer;
    f.nvlink_sharp = spec_.nvlink_sharp;
    if (spec_.fabric.nic_latency) f.nic_latency = *spec_.fabric.nic_latency;
  }

  void models() {
    for (const ModelSpec& m : spec_.models)
      builder_.model_facts(builder_.model(m.id), {m.compute_capability, m.gpu_direct, m.cpu_family});
  }

  void device(std::size_t i) {
    const DeviceSpec& d = spec_.devices[i];
    const std::string path = fmt::format("devices[{}]", i);
    Device out{};
    out.kind = device_kind(d.kind).value_or(DeviceKind::storage);
    out.count = static_cast<std::uint16_t>(d.count);
    if (d.node) {
      out.node = static_cast<std::uint32_t>(*d.node);
      nodes_ = std::max(nodes_, out.node + 1);
    } else if (out.kind == DeviceKind::accelerator || out.kind == DeviceKind::nic) {
      problem(path, fmt::format("{} is on no node", d.name), "add \"node\": 0");
    }
    if (out.kind == DeviceKind::fabric_switch) out.tier = static_cast<std::uint8_t>(std::max(1, d.tier));
    auto& next = next_index_[std::tuple(out.kind, out.node, out.tier)];
    out.local = d.index ? static_cast<std::uint32_t>(*d.index) : next;
    next = out.local + 1;
    out.model = builder_.model(d.model.empty() ? d.kind : d.model);
    const DeviceId id = builder_.device(out, d.name.empty() ? path : d.name);
    if (const auto [first, fresh] = by_name_.emplace(d.name, i); !fresh)
      problem(path + ".name",
              fmt::format("there is already a device \"{}\" (devices[{}])", d.name, first->second),
              "names are unique over the whole topology");
    kinds_.push_back(out.kind);
    static_cast<void>(id);
  }

  std::optional<std::size_t> end(const std::string& path, const std::string& name) {
    const auto found = by_name_.find(name);
    if (found != by_name_.end()) return found->second;
    problem(path, fmt::format("there is no device \"{}\"", name), "a link joins two devices of \"devices\"");
    return std::nullopt;
  }

  // Figures of all cables of the link together.
  std::optional<Link> figures(const LinkSpec& l, const std::string& path, bool into_switch) {
    Link out{};
    const auto declared = std::find_if(spec_.link_types.begin(), spec_.link_types.end(),
                                       [&](const LinkTypeSpec& t) { return t.id == l.link.use; });
    std::optional<LinkFigures> known;
    if (!l.link.use.empty() && declared == spec_.link_types.end()) {
      LinkChoice plain;
      plain.use = l.link.use;
      if (l.lanes) plain.use = plain.use.substr(0, plain.use.find("-x")) + fmt::format("-x{}", *l.lanes);
      try {
        const std::string said = "topology." + path + ".use";
        known = hardware_.link(plain, said);
        plain.bandwidth = l.link.bandwidth.value_or(known->line_rate * l.count) * (1.0 / l.count);
        // Another rate than the catalogue's is part of what the link is called.
        if (std::abs(*plain.bandwidth / known->line_rate - 1) > 1e-9) known = hardware_.link(plain, said);
      } catch (const ConfigError& error) {
        problems_.insert(problems_.end(), error.problems().begin(), error.problems().end());
        return std::nullopt;
      }
    }
    if (known && !l.kind.empty() && link_kind(l.kind) != known->kind) {
      problem(path + ".kind",
              fmt::format("{} is {}, and the link says {}", l.link.use, name_of(known->kind), l.kind),
              "leave \"kind\" out, or name another link");
      return std::nullopt;
    }
    out.kind = !l.kind.empty() ? link_kind(l.kind).value_or(LinkKind::other)
               : known         ? known->kind
                               : LinkKind::other;
    out.count = static_cast<std::uint16_t>(l.count);
    if (!l.link.bandwidth && !known) {
      problem(path, fmt::format("the link {} - {} has no speed", l.from, l.to),
              "add \"bandwidth\": \"400 Gbit/s\", or \"use\" a link of the catalogue");
      return std::nullopt;
    }
    if (known && into_switch && !routing_) routing_ = known->routing;
    if (out.kind == LinkKind::infiniband) builder_.facts().fabric_is_infiniband = true;
    const double cables = l.count;
    out.line_rate = l.link.bandwidth ? *l.link.bandwidth : known->line_rate * cables;
    // A bandwidth of one's own keeps the encoding and headers of the catalogue link it overrides.
    const double share = known ? known->capacity / known->line_rate : 1.0;
    out.capacity = l.link.capacity.value_or(out.line_rate * share);
    const double metres = l.length.value_or(Metres{}).value();
    const Duration fibre(
        static_cast<std::int64_t>(metres * static_cast<double>(kPropagationPerMetre.count())));
    if (l.link.latency) {
      out.latency = *l.link.latency;
    } else if (known) {
      out.latency = known->latency + fibre;
      if (into_switch) out.latency = known->hop && !l.length ? *known->hop : known->fec + fibre;
      if (!spec_.fabric.nic_latency)
        builder_.facts().nic_latency = std::max(builder_.facts().nic_latency, known->nic_base);
    } else {
      out.latency = fibre;
    }
    if (declared != spec_.link_types.end())
      out.type = builder_.link_type({declared->id, declared->label, declared->source, declared->transport});
    else if (known)
      out.type = builder_.link_type(known->type);
    else
      out.type =
          builder_.link_type({std::string(name_of(out.kind)), std::string(name_of(out.kind)), l.source});
    return out;
  }

  void link(std::size_t i) {
    const LinkSpec& l = spec_.links[i];
    const std::string path = fmt::format("links[{}]", i);
    const auto from = end(path + ".from", l.from), to = end(path + ".to", l.to);
    if (!from || !to) return;
    if (*from == *to)
      return problem(path, fmt::format("the link joins \"{}\" to itself", l.from), "name two devices");
    linked_.resize(kinds_.size());
    linked_[*from] = linked_[*to] = true;
    const auto add = [&](std::size_t a, std::size_t b) {
      auto link = figures(l, path, kinds_[b] == DeviceKind::fabric_switch);
      if (!link) return false;
      if (kinds_[a] != DeviceKind::fabric_switch && kinds_[b] != DeviceKind::fabric_switch) {
        const auto [first, fresh] = joined_.emplace(std::tuple(a, b, link->kind), i);
        if (!fresh) {
          problem(path,
                  fmt::format("links[{}] joins \"{}\" and \"{}\" already, and messages take one of the two",
                              first->second, l.from, l.to),
                  fmt::format("several links side by side are one entry with \"count\": {}",
                              l.count + spec_.links[first->second].count));
          return false;
        }
      }
      link->from = DeviceId(a);
      link->to = DeviceId(b);
      builder_.link(*link);
      return true;
    };
    if (add(*from, *to) && !l.one_way) add(*to, *from);
  }

  void routing() {
    Topology& f = builder_.facts();
    f.routing = spec_.fabric.routing.value_or(
        routing_.value_or(usual_routing(f.fabric_is_infiniband ? LinkKind::infiniband : LinkKind::ethernet)));
  }

  void dangling() {
    linked_.resize(kinds_.size());
    for (std::size_t i = 0; i < kinds_.size() && kinds_.size() > 1; ++i)
      if (!linked_[i])
        problem(fmt::format("devices[{}]", i), fmt::format("no link leads to \"{}\"", spec_.devices[i].name),
                "add a link, or remove the device");
    // A fabric alone may be looked at, but something must be its end.
    const auto has = [&](DeviceKind kind) {
      return std::find(kinds_.begin(), kinds_.end(), kind) != kinds_.end();
    };
    if (!has(DeviceKind::accelerator) && !has(DeviceKind::nic))
      problem("devices", "the topology has no accelerator", "add a device of kind \"accelerator\"");
  }

  // Entries that nothing refers to: more likely a slip in a name than a wish.
  void unused() {
    std::set<std::string> links, models;
    for (const LinkSpec& l : spec_.links) links.insert(l.link.use.empty() ? l.kind : l.link.use);
    for (const DeviceSpec& d : spec_.devices) models.insert(d.model.empty() ? d.kind : d.model);
    for (std::size_t i = 0; i < spec_.link_types.size(); ++i)
      if (!links.contains(spec_.link_types[i].id))
        problem(fmt::format("link_types[{}].id", i),
                fmt::format("no link is of the type \"{}\"", spec_.link_types[i].id),
                "\"use\" of a link names its type; leave out what none has");
    for (std::size_t i = 0; i < spec_.models.size(); ++i)
      if (!models.contains(spec_.models[i].id))
        problem(fmt::format("models[{}].id", i),
                fmt::format("no device is of the model \"{}\"", spec_.models[i].id),
                "\"model\" of a device names it; leave out what none is");
  }

  // Who has which coordinates, where collectives go along the axes.
  void torus() {
    const FabricSpec& fabric = spec_.fabric;
    if (fabric.chips.empty()) return;
    const long long product =
        std::accumulate(fabric.dimensions.begin(), fabric.dimensions.end(), 1LL, std::multiplies<>());
    if (static_cast<std::size_t>(product) != fabric.chips.size())
      return problem("fabric.dimensions",
                     fmt::format("the dimensions make {} places for {} chips", product, fabric.chips.size()),
                     "one size a dimension; \"chips\" names who is at each place");
    builder_.facts().torus_dimensions = fabric.dimensions;
    for (std::size_t i = 0; i < fabric.chips.size(); ++i) {
      const auto at = end(fmt::format("fabric.chips[{}]", i), fabric.chips[i]);
      if (at && kinds_[*at] != DeviceKind::accelerator)
        problem(fmt::format("fabric.chips[{}]", i), fmt::format("\"{}\" is no accelerator", fabric.chips[i]),
                "name accelerators");
      if (at) builder_.facts().torus_chips.emplace_back(*at);
    }
  }

  const TopologySpec& spec_;
  const Hardware& hardware_;
  TopologyBuilder builder_;
  std::vector<Problem> problems_;
  std::optional<Routing> routing_;  // of the first cable to a switch that the catalogue knows
  std::map<std::string, std::size_t> by_name_;
  std::map<std::tuple<DeviceKind, std::uint32_t, std::uint8_t>, std::uint32_t> next_index_;
  std::vector<DeviceKind> kinds_;
  std::vector<bool> linked_;
  // By ends and kind: the entry. Between switches, routes spread over entries side by side; elsewhere not.
  std::map<std::tuple<std::size_t, std::size_t, LinkKind>, std::size_t> joined_;
  std::uint32_t nodes_ = 1;
};

}  // namespace

Topology build_explicit(const TopologySpec& spec, const Hardware& hardware) {
  return Explicit(spec, hardware).build();
}

}  // namespace topsim::topology

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
#include "sim/base/product.hpp"

namespace topsim::topology {
namespace {

class Explicit {
 public:
  Explicit(const TopologySpec& spec, const Hardware& hardware) : spec_(spec), hardware_(hardware) {}

  Topology build() {
    add_facts();
    for (const ModelSpec& m : spec_.models) builder_.model(m.id);  // in their order, which exports keep
    for (std::size_t i = 0; i < spec_.devices.size(); ++i) add_device(i);
    add_models();
    heed_models();
    for (std::size_t i = 0; i < spec_.links.size(); ++i) add_link(i);
    choose_routing();
    builder_.facts().nic_latency =
        spec_.fabric.nic_latency.value_or(nic_base_ > Duration{} ? nic_base_ : other_base_);
    check_dangling();
    add_torus();
    add_groups();
    check_unused();
    if (!problems_.empty()) throw ConfigError(std::move(problems_));
    builder_.set_nodes(nodes_);
    Topology topology = std::move(builder_).finish();
    // Ranks follow the coordinates if these name every accelerator, as in a recipe.
    std::vector<DeviceId> chips = topology.torus_chips;
    const auto all = topology.accelerators();
    return std::is_permutation(chips.begin(), chips.end(), all.begin(), all.end())
               ? topology.with_ranks_on(std::move(chips))
               : std::move(topology);
  }

 private:
  void report(std::string path, std::string message, std::string help) {
    problems_.push_back({{}, "topology." + std::move(path), std::move(message), {}, std::move(help), {}});
  }

  void add_facts() {
    Topology& f = builder_.facts();
    f.fabric_kind = spec_.fabric.kind;
    const auto is_switch = [](const DeviceSpec& d) { return d.kind == name_of(DeviceKind::fabric_switch); };
    if (f.fabric_kind == FabricKind::none &&
        std::any_of(spec_.devices.begin(), spec_.devices.end(), is_switch))
      f.fabric_kind = FabricKind::explicit_;
    for (const LinkTypeSpec& t : spec_.link_types) builder_.link_type({t.id, t.label, t.source, t.transport});
    f.sharp = spec_.fabric.sharp;
  }

  [[nodiscard]] static const std::string& model_of(const DeviceSpec& d) {
    return d.model.empty() ? d.kind : d.model;
  }

  // What the catalogue says of a model.
  [[nodiscard]] ModelFacts listed_facts(const std::string& id, DeviceKind kind) const {
    ModelFacts facts;
    if (kind == DeviceKind::accelerator)
      if (const Accelerator* entry = hardware_.find_accelerator(id)) {
        facts.compute_capability = entry->compute_capability;
        facts.gpu_direct = entry->peer_to_peer;  // as in a recipe
      }
    if (kind == DeviceKind::fabric_switch)
      if (const SwitchEntry* entry = hardware_.find_switch(id)) facts.buffer = entry->buffer;
    if (kind == DeviceKind::cpu &&
        std::find(kCpuFamilies.begin(), kCpuFamilies.end(), id) != kCpuFamilies.end())
      facts.cpu_family = id;
    return facts;
  }

  // "models" overrides the catalogue.
  void add_models() {
    std::map<std::string, ModelFacts> models;
    for (std::size_t i = 0; i < spec_.devices.size(); ++i) {
      const std::string& id = model_of(spec_.devices[i]);
      if (!models.contains(id)) models.emplace(id, listed_facts(id, kinds_[i]));
    }
    for (const ModelSpec& m : spec_.models) {
      ModelFacts& facts = models[m.id];
      if (m.compute_capability != 0) facts.compute_capability = m.compute_capability;
      facts.gpu_direct = m.gpu_direct;
      if (!m.cpu_family.empty()) facts.cpu_family = m.cpu_family;
    }
    for (auto& [id, facts] : models) {
      if (!facts.cpu_family.empty()) facts.peer_overhead = hardware_.peer_overhead(facts.cpu_family);
      builder_.model_facts(builder_.model(id), std::move(facts));
    }
  }

  // What the file leaves out of these two follows from its models.
  void heed_models() {
    bool peers = true, nvswitches = false, reduce = true;
    std::set<std::string> seen;
    for (std::size_t i = 0; i < spec_.devices.size(); ++i) {
      const std::string& id = model_of(spec_.devices[i]);
      const bool gpu = kinds_[i] == DeviceKind::accelerator, nvswitch = kinds_[i] == DeviceKind::nvswitch;
      if ((!gpu && !nvswitch) || !seen.insert(id).second) continue;
      if (gpu) {
        const Accelerator* entry = hardware_.find_accelerator(id);
        peers = peers && (entry == nullptr || entry->peer_to_peer);
      } else {
        const SwitchEntry* entry = hardware_.find_switch(id);
        reduce = reduce && entry != nullptr && entry->sharp;
        nvswitches = true;
      }
    }
    builder_.facts().peer_to_peer = spec_.peer_to_peer.value_or(peers);
    builder_.facts().nvlink_sharp = spec_.nvlink_sharp.value_or(nvswitches && reduce);
  }

  void add_device(std::size_t i) {
    const DeviceSpec& d = spec_.devices[i];
    const std::string path = fmt::format("devices[{}]", i);
    Device out{};
    out.kind = device_kind(d.kind).value_or(DeviceKind::storage);
    out.count = static_cast<std::uint16_t>(d.count);
    if (d.node) {
      out.node = static_cast<std::uint32_t>(*d.node);
      nodes_ = std::max(nodes_, out.node + 1);
    } else if (out.kind == DeviceKind::accelerator || out.kind == DeviceKind::nic) {
      report(path, fmt::format("{} is on no node", d.name), "add \"node\": 0");
    }
    if (out.kind == DeviceKind::fabric_switch) out.tier = static_cast<std::uint8_t>(std::max(1, d.tier));
    auto& next = next_index_[std::tuple(out.kind, out.node, out.tier)];
    out.local = d.index ? static_cast<std::uint32_t>(*d.index) : next;
    next = out.local + 1;
    out.model = builder_.model(model_of(d));
    builder_.device(out, d.name.empty() ? path : d.name);
    if (const auto [first, fresh] = by_name_.emplace(d.name, i); !fresh)
      report(path + ".name",
             fmt::format("there is already a device \"{}\" (devices[{}])", d.name, first->second),
             "names are unique over the whole topology");
    kinds_.push_back(out.kind);
  }

  std::optional<std::size_t> find_device(const std::string& path, const std::string& name) {
    const auto found = by_name_.find(name);
    if (found != by_name_.end()) return found->second;
    report(path, fmt::format("there is no device \"{}\"", name), "a link joins two devices of \"devices\"");
    return std::nullopt;
  }

  // Null: the link's "use" names no declared type.
  [[nodiscard]] const LinkTypeSpec* declared(const LinkSpec& l) const {
    const auto found = std::find_if(spec_.link_types.begin(), spec_.link_types.end(),
                                    [&](const LinkTypeSpec& t) { return t.id == l.link.use; });
    return found == spec_.link_types.end() ? nullptr : &*found;
  }

  // The catalogue's figures for one cable of the link. Throws ConfigError if it does not know the name.
  std::optional<LinkFigures> known_figures(const LinkSpec& l, const std::string& path) const {
    if (l.link.use.empty() || declared(l) != nullptr) return std::nullopt;
    LinkChoice plain;
    plain.use = l.link.use;
    if (l.lanes) plain.use = plain.use.substr(0, plain.use.find("-x")) + fmt::format("-x{}", *l.lanes);
    const std::string said = "topology." + path + ".use";
    LinkFigures known = hardware_.link(plain, said);
    plain.bandwidth = l.link.bandwidth.value_or(known.line_rate * l.count) * (1.0 / l.count);
    // A rate other than the catalogue's becomes part of the link's name.
    if (std::abs(*plain.bandwidth / known.line_rate - 1) > 1e-9) known = hardware_.link(plain, said);
    return known;
  }

  // False: the link's own figures contradict each other.
  bool check_figures(const LinkSpec& l, const std::string& path, const std::optional<LinkFigures>& known) {
    if (known && !l.kind.empty() && link_kind(l.kind) != known->kind) {
      report(path + ".kind",
             fmt::format("{} is {}, and the link says {}", l.link.use, name_of(known->kind), l.kind),
             "leave \"kind\" out, or name another link");
      return false;
    }
    if (!l.link.bandwidth && !known) {
      report(path, fmt::format("the link {} - {} has no speed", l.from, l.to),
             "add \"bandwidth\": \"400 Gbit/s\", or \"use\" a link of the catalogue");
      return false;
    }
    return true;
  }

  // Of one that the catalogue does not have, or that nobody names, the usual one of the link.
  Duration switch_latency(std::size_t device, const std::string& link) {
    const std::string& model = model_of(spec_.devices[device]);
    const auto [known, fresh] = switch_latency_.try_emplace({model, link});
    if (fresh) {
      const SwitchEntry* entry = hardware_.find_switch(model);
      known->second = entry != nullptr ? entry->port_to_port : hardware_.usual_switch_latency(link);
    }
    return known->second;
  }

  // Towards device `end`.
  Duration latency_of(const LinkSpec& l, const std::optional<LinkFigures>& known, std::size_t begin,
                      std::size_t end) {
    if (l.link.latency) return *l.link.latency;
    const Duration cable = fibre(l.length.value_or(Metres{}));
    if (!known) return cable;
    if (kinds_[end] == DeviceKind::cpu) return known->host_latency + cable;
    const bool up = kinds_[end] == DeviceKind::fabric_switch;
    if (!up && kinds_[begin] != DeviceKind::fabric_switch) return known->latency + cable;
    const Crossing crossing =
        Hardware::crossing(*known, switch_latency(up ? end : begin, l.link.use), l.length);
    return up ? crossing.to_switch : crossing.from_switch;
  }

  std::uint16_t type_of(const LinkSpec& l, const std::optional<LinkFigures>& known, LinkKind kind) {
    if (const LinkTypeSpec* t = declared(l))
      return builder_.link_type({t->id, t->label, t->source, t->transport});
    if (known) return builder_.link_type(known->type);
    return builder_.link_type({std::string(name_of(kind)), std::string(name_of(kind)), l.source});
  }

  // The figures of all cables of the link together.
  std::optional<Link> figures(const LinkSpec& l, const std::string& path, std::size_t begin,
                              std::size_t end) {
    std::optional<LinkFigures> known;
    try {
      known = known_figures(l, path);
    } catch (const ConfigError& error) {
      problems_.insert(problems_.end(), error.problems().begin(), error.problems().end());
      return std::nullopt;
    }
    if (!check_figures(l, path, known)) return std::nullopt;
    Link out{};
    out.kind = known ? known->kind : link_kind(l.kind).value_or(LinkKind::other);
    out.count = static_cast<std::uint16_t>(l.count);
    out.line_rate = l.link.bandwidth ? *l.link.bandwidth : known->line_rate * static_cast<double>(l.count);
    // A bandwidth given by the user keeps the encoding and headers of the catalogue's link.
    const auto has = [&](DeviceKind kind) { return kinds_[begin] == kind || kinds_[end] == kind; };
    const auto share = [&] {
      return (has(DeviceKind::nic) ? known->capacity_at_nic : known->capacity) / known->line_rate;
    };
    out.capacity = l.link.capacity.value_or(out.line_rate * (known ? share() : 1.0));
    out.latency = latency_of(l, known, begin, end);
    if (l.length) out.length = CableLength(*l.length);
    out.type = type_of(l, known, out.kind);
    if (known && kinds_[end] == DeviceKind::fabric_switch && !routing_) routing_ = known->routing;
    if (out.kind == LinkKind::infiniband) builder_.facts().fabric_is_infiniband = true;
    // A latency of the link is that of its hop: the NICs' part comes in addition.
    if (Duration& base = has(DeviceKind::nic) ? nic_base_ : other_base_; known)
      base = std::max(base, known->nic_base);
    return out;
  }

  void add_link(std::size_t i) {
    const LinkSpec& l = spec_.links[i];
    const std::string path = fmt::format("links[{}]", i);
    const auto from = find_device(path + ".from", l.from), to = find_device(path + ".to", l.to);
    if (!from || !to) return;
    if (*from == *to)
      return report(path, fmt::format("the link joins \"{}\" to itself", l.from), "name two devices");
    linked_.resize(kinds_.size());
    linked_[*from] = linked_[*to] = true;
    const auto add = [&](std::size_t a, std::size_t b) {
      auto link = figures(l, path, a, b);
      if (!link) return false;
      if (kinds_[a] != DeviceKind::fabric_switch && kinds_[b] != DeviceKind::fabric_switch) {
        const auto [first, fresh] = joined_.emplace(std::tuple(a, b, link->kind), i);
        if (!fresh) {
          report(path,
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

  void choose_routing() {
    Topology& f = builder_.facts();
    f.routing = spec_.fabric.routing.value_or(
        routing_.value_or(usual_routing(f.fabric_is_infiniband ? LinkKind::infiniband : LinkKind::ethernet)));
  }

  void check_dangling() {
    linked_.resize(kinds_.size());
    for (std::size_t i = 0; i < kinds_.size() && kinds_.size() > 1; ++i)
      if (!linked_[i])
        report(fmt::format("devices[{}]", i), fmt::format("no link leads to \"{}\"", spec_.devices[i].name),
               "add a link, or remove the device");
    // A fabric alone may be inspected, but it needs end points.
    const auto has = [&](DeviceKind kind) {
      return std::find(kinds_.begin(), kinds_.end(), kind) != kinds_.end();
    };
    if (!has(DeviceKind::accelerator) && !has(DeviceKind::nic))
      report("devices", "the topology has no accelerator", "add a device of kind \"accelerator\"");
  }

  // Entries that nothing refers to are probably misspelt names.
  void check_unused() {
    std::set<std::string> links, models;
    for (const LinkSpec& l : spec_.links) links.insert(l.link.use.empty() ? l.kind : l.link.use);
    for (const DeviceSpec& d : spec_.devices) models.insert(model_of(d));
    for (std::size_t i = 0; i < spec_.link_types.size(); ++i)
      if (!links.contains(spec_.link_types[i].id))
        report(fmt::format("link_types[{}].id", i),
               fmt::format("no link is of the type \"{}\"", spec_.link_types[i].id),
               "\"use\" of a link names its type; leave out what none has");
    for (std::size_t i = 0; i < spec_.models.size(); ++i)
      if (!models.contains(spec_.models[i].id))
        report(fmt::format("models[{}].id", i),
               fmt::format("no device is of the model \"{}\"", spec_.models[i].id),
               "\"model\" of a device names it; leave out what none is");
  }

  // The groups of a dragonfly, for its routes.
  void add_groups() {
    std::vector<int> dims = spec_.fabric.dimensions;
    if (traits(spec_.fabric.kind).family != FabricFamily::dragonfly || dims.empty()) return;
    const auto switches = std::count(kinds_.begin(), kinds_.end(), DeviceKind::fabric_switch);
    if (dims.size() == 5) dims.pop_back();  // how switches of a group are joined, which the links say
    if (dims.size() != 4 || static_cast<long long>(dims[0]) * dims[1] != switches)
      return report("fabric.dimensions", fmt::format("they do not make the {} switches", switches),
                    "groups, switches a group, NIC ports a switch, global cables a switch; switches are "
                    "listed group by group");
    builder_.facts().dragonfly_dimensions = dims;
  }

  // The coordinates of accelerators, if collectives follow the axes of a torus.
  void add_torus() {
    const FabricSpec& fabric = spec_.fabric;
    if (fabric.chips.empty()) return;
    const auto product = product_of(fabric.dimensions);
    if (product != static_cast<std::int64_t>(fabric.chips.size()))
      return report("fabric.dimensions",
                    fmt::format("the dimensions make {} places for {} chips", product_text(product),
                                fabric.chips.size()),
                    "one size a dimension; \"chips\" names who is at each place");
    builder_.facts().torus_dimensions = fabric.dimensions;
    for (std::size_t i = 0; i < fabric.chips.size(); ++i) {
      const auto at = find_device(fmt::format("fabric.chips[{}]", i), fabric.chips[i]);
      if (at && kinds_[*at] != DeviceKind::accelerator)
        report(fmt::format("fabric.chips[{}]", i), fmt::format("\"{}\" is no accelerator", fabric.chips[i]),
               "name accelerators");
      if (at) builder_.facts().torus_chips.emplace_back(*at);
    }
  }

  const TopologySpec& spec_;
  const Hardware& hardware_;
  TopologyBuilder builder_;
  std::vector<Problem> problems_;
  Duration nic_base_{}, other_base_{};  // the longest of links with a NIC at an end, and of others
  std::optional<Routing> routing_;      // of the first cable to a switch that is in the catalogue
  std::map<std::pair<std::string, std::string>, Duration> switch_latency_;  // by model and link
  std::map<std::string, std::size_t> by_name_;
  std::map<std::tuple<DeviceKind, std::uint32_t, std::uint8_t>, std::uint32_t> next_index_;
  std::vector<DeviceKind> kinds_;
  std::vector<bool> linked_;
  // The entry, by its ends and kind. Routes spread over parallel entries between switches, but not elsewhere.
  std::map<std::tuple<std::size_t, std::size_t, LinkKind>, std::size_t> joined_;
  std::uint32_t nodes_ = 1;
};

}  // namespace

Topology build_explicit(const TopologySpec& spec, const Hardware& hardware) {
  return Explicit(spec, hardware).build();
}

}  // namespace topsim::topology

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/config/quantity.hpp"
#include "topology/draw/alike.hpp"
#include "topology/draw/draw.hpp"
#include "topology/link_name.hpp"

namespace topsim::topology {
namespace {

std::string short_name(const Topology& t, DeviceId d) {
  const std::string name = t.name(d);
  const std::size_t slash = name.rfind('/');
  return slash == std::string::npos ? name : name.substr(slash + 1);
}

struct Line {
  int depth;
  std::string text;
};

class Tree {
 public:
  explicit Tree(const Topology& t) : t_(t), drawn_(t.devices().size()) {}

  std::vector<Line> lines() {
    for (const NodeGroup& g : alike_nodes(t_)) node(g);
    fabric();
    return std::move(lines_);
  }

 private:
  void add(int depth, std::string text) { lines_.push_back({depth, std::move(text)}); }
  std::string title(DeviceId d) const {
    const Device& device = t_.device(d);
    std::string text = short_name(t_, d);
    if (t_.models()[device.model] != name_of(device.kind)) text += "  " + t_.models()[device.model];
    if (device.count > 1) text += fmt::format(" x{}", device.count);
    return text;
  }

  void node(const NodeGroup& g) {
    std::string heading = fmt::format("node{}", g.nodes.front());
    if (g.nodes.size() > 1) heading += fmt::format(" and {} more alike", g.nodes.size() - 1);
    add(0, heading);
    for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::nvswitch})
      for (const DeviceId d : g.device_kinds[static_cast<std::size_t>(kind)]) device(d, 1, nullptr);
    for (const auto& kind : g.device_kinds)
      for (const DeviceId d : kind)
        if (!drawn_[d.index()]) device(d, 1, nullptr);
    scale_up(g);
  }

  // Adds a device, its links that are not part of the tree, and what is below it.
  void device(DeviceId d, int depth, const Link* from_parent) {
    if (drawn_[d.index()]) return;
    drawn_[d.index()] = true;
    std::string text = title(d);
    if (from_parent != nullptr) text += fmt::format("  ({})", name_with_speed(t_, *from_parent));
    const Device& device_ = t_.device(d);
    for (const LinkId id : t_.links_from(d)) {
      const Link& l = t_.link(id);
      const Device& other = t_.device(l.to);
      if (l.kind == LinkKind::socket && other.local > device_.local)
        text += fmt::format("  == {} ({})", short_name(t_, l.to), name_with_speed(t_, l));
      if (other.kind == DeviceKind::fabric_switch && device_.kind != DeviceKind::fabric_switch)
        text += fmt::format("  -> {} ({})", t_.name(l.to), name_with_speed(t_, l));
    }
    add(depth, text);
    if (device_.kind == DeviceKind::accelerator || device_.kind == DeviceKind::nvswitch) {
      for (const LinkId id : t_.links_from(d)) {
        const Link& l = t_.link(id);
        if (t_.device(l.to).kind == DeviceKind::nic) device(l.to, depth + 1, &l);
      }
      return;
    }
    for (const DeviceKind kind : {DeviceKind::host_memory, DeviceKind::pcie_switch, DeviceKind::accelerator,
                                  DeviceKind::nic, DeviceKind::storage})
      for (const LinkId id : t_.links_from(d)) {
        const Link& l = t_.link(id);
        if (t_.device(l.to).kind == kind && t_.device(l.to).node == device_.node) device(l.to, depth + 1, &l);
      }
  }

  // Links among accelerators and to NVSwitches, grouped if they are equal.
  void scale_up(const NodeGroup& g) {
    const auto& gpus = g.device_kinds[static_cast<std::size_t>(DeviceKind::accelerator)];
    std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> to_switches;  // places in gpus
    std::map<std::string, std::vector<std::string>> pairs;
    for (std::size_t i = 0; i < gpus.size(); ++i)
      for (const LinkId id : t_.links_from(gpus[i])) {
        const Link& l = t_.link(id);
        const Device& other = t_.device(l.to);
        const std::string what = name_with_speed(t_, l);
        if (other.kind == DeviceKind::nvswitch)
          to_switches[{other.node == DeviceId::kNone ? t_.name(l.to) : short_name(t_, l.to), what}].push_back(
              i);
        else if (other.kind == DeviceKind::accelerator && gpus[i] < l.to)
          pairs[what].push_back(short_name(t_, gpus[i]) + "-" + short_name(t_, l.to));
      }
    for (const auto& [what, who] : pairs) {
      constexpr std::size_t kShown = 12;
      std::string list = who.front();
      for (std::size_t i = 1; i < std::min(who.size(), kShown); ++i) list += " " + who[i];
      if (who.size() > kShown) list += fmt::format(" ... ({} in all)", who.size());
      add(1, fmt::format("{}  ({} each)", list, what));
    }
    for (const auto& [to, who] : to_switches)
      add(1, fmt::format("{} - {}  ({} each)", runs(gpus, who), to.first, to.second));
  }

  // "gpu0..gpu4 gpu6": places without a gap are one run.
  std::string runs(const std::vector<DeviceId>& devices, const std::vector<std::size_t>& places) const {
    std::string text;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::size_t first = i;
      while (i + 1 < places.size() && places[i + 1] <= places[i] + 1) ++i;
      if (first > 0) text += ' ';
      text += short_name(t_, devices[places[first]]);
      if (places[i] > places[first]) text += ".." + short_name(t_, devices[places[i]]);
    }
    return text;
  }

  // How its groups are wired, a switch on average.
  void dragonfly_groups() {
    if (t_.dragonfly_dimensions.empty()) return;
    const int groups = t_.dragonfly_dimensions[0], switches = t_.dragonfly_dimensions[1];
    const auto group = [&](DeviceId d) { return t_.device(d).local / static_cast<std::uint32_t>(switches); };
    double local = 0, global = 0;
    for (const Link& l : t_.links())
      if (t_.device(l.from).kind == DeviceKind::fabric_switch &&
          t_.device(l.to).kind == DeviceKind::fabric_switch)
        (group(l.from) == group(l.to) ? local : global) += l.count;
    const double all = static_cast<double>(groups) * switches;
    const auto cables = [](double count) {
      return fmt::format("{:.3g} cable{}", count, count == 1 ? "" : "s");
    };
    add(1, fmt::format("{} group{} of {}: a switch has {} to each other one of its group, {} to other groups",
                       groups, groups == 1 ? "" : "s", switches,
                       cables(switches > 1 ? local / all / (switches - 1) : 0), cables(global / all)));
  }

  void fabric() {
    const auto groups = alike_switches(t_);
    if (groups.empty()) return;
    add(0, fmt::format("fabric {}, {} routing, NIC and host {} us", name_of(t_.fabric_kind),
                       name_of(t_.routing), microseconds(t_.nic_latency)));
    dragonfly_groups();
    static constexpr const char* kTiers[] = {"switch", "leaf", "spine", "core"};
    for (const SwitchGroup& g : groups) {
      const bool same = g.switches.size() == 1 && g.physical == 1;
      std::string text =
          fmt::format("{} {}{}  {}: {:g} cable{} down", g.physical, kTiers[std::clamp(g.tier, 0, 3)],
                      same          ? ""
                      : g.tier == 1 ? " switches"
                                    : "s",
                      t_.models()[g.model], g.down_cables, g.down_cables == 1 ? "" : "s");
      if (g.up_cables > 0) text += fmt::format(", {:g} up ({:.3g}:1)", g.up_cables, g.down / g.up);
      if (g.switches.size() < g.physical)
        text += fmt::format("  (drawn as {}: traffic divides evenly)", g.switches.size());
      add(1, text);
    }
  }

  const Topology& t_;
  std::vector<bool> drawn_;
  std::vector<Line> lines_;
};

// Breaks a line at two spaces if possible, else at one, with at least one word per line.
std::vector<std::string> broken(const std::string& text, std::size_t room) {
  if (room == 0 || text.size() <= room) return {text};
  std::size_t end = text.rfind("  ", room);
  if (end == std::string::npos || end == 0) end = text.rfind(' ', room);
  if (end == std::string::npos || end == 0) end = text.find(' ', room);
  if (end == std::string::npos) return {text};
  std::vector<std::string> lines{text.substr(0, end)};
  const std::vector<std::string> rest = broken(text.substr(text.find_first_not_of(' ', end)), room);
  lines.insert(lines.end(), rest.begin(), rest.end());
  return lines;
}
}  // namespace

std::string to_tree(const Topology& topology, bool ascii, std::size_t columns) {
  const std::vector<Line> lines = Tree(topology).lines();
  const char *tee = ascii ? "|- " : "├─ ", *corner = ascii ? "`- " : "└─ ", *bar = ascii ? "|  " : "│  ";
  constexpr std::size_t kStep = 3;  // columns of a level
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    // A level continues if a later line of that depth comes before a shallower one.
    const auto goes_on = [&](int depth) {
      for (std::size_t j = i + 1; j < lines.size() && lines[j].depth >= depth; ++j)
        if (lines[j].depth == depth) return true;
      return false;
    };
    std::string before;
    for (int depth = 1; depth < lines[i].depth; ++depth) before += goes_on(depth) ? bar : "   ";
    const std::size_t margin = kStep * static_cast<std::size_t>(lines[i].depth + 1);
    const std::size_t room = columns == 0 ? 0 : std::max(columns, margin + 30) - margin;
    bool first = true;
    for (const std::string& part : broken(lines[i].text, room)) {
      out += before;
      if (lines[i].depth > 0)
        out += first ? (goes_on(lines[i].depth) ? tee : corner) : goes_on(lines[i].depth) ? bar : "   ";
      if (!first) out += goes_on(lines[i].depth + 1) ? bar : "   ";
      out += part + '\n';
      first = false;
    }
  }
  return out;
}

}  // namespace topsim::topology

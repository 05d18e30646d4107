// One device or link per line, so that files can be compared and edited by hand.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <tuple>

#include "sim/config/quantity.hpp"
#include "sim/config/value.hpp"
#include "topology/export/export.hpp"

namespace topsim::topology {
namespace {

std::string quoted(std::string_view text) {
  return config::to_text(config::Value::of(text), 0);
}

// The lines of an array, with commas between them.
class Lines {
 public:
  Lines(std::string& out, std::string_view key) : out_(out) { out_ += fmt::format(",\n  \"{}\": [", key); }
  ~Lines() { out_ += empty_ ? "]" : "\n  ]"; }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  void add(const std::string& line) {
    out_ += empty_ ? "\n    {" : ",\n    {";
    out_ += line;
    out_ += '}';
    empty_ = false;
  }

 private:
  std::string& out_;
  bool empty_ = true;
};

void write_devices(const Topology& t, std::string& out) {
  Lines lines(out, "devices");
  std::map<std::tuple<DeviceKind, std::uint32_t, std::uint8_t>, std::uint32_t> next;
  for (std::size_t i = 0; i < t.devices().size(); ++i) {
    const Device& d = t.devices()[i];
    std::string line = fmt::format("\"name\": {}, \"kind\": \"{}\", \"model\": {}",
                                   quoted(t.name(DeviceId(i))), name_of(d.kind), quoted(t.models()[d.model]));
    if (d.node != DeviceId::kNone) line += fmt::format(", \"node\": {}", d.node);
    if (d.kind == DeviceKind::fabric_switch) line += fmt::format(", \"tier\": {}", d.tier);
    auto& expected = next[std::tuple(d.kind, d.node, d.tier)];
    if (d.local != expected) line += fmt::format(", \"index\": {}", d.local);
    expected = d.local + 1;
    if (d.count != 1) line += fmt::format(", \"count\": {}", d.count);
    lines.add(line);
  }
}

bool same_figures(const Link& a, const Link& b) {
  return std::tuple(a.kind, a.count, a.type, a.capacity, a.line_rate, a.latency) ==
             std::tuple(b.kind, b.count, b.type, b.capacity, b.line_rate, b.latency) &&
         a.length == b.length;
}

void write_links(const Topology& t, std::string& out) {
  Lines lines(out, "links");
  const auto links = t.links();
  for (std::size_t i = 0; i < links.size(); ++i) {
    const Link& l = links[i];
    // Both directions on one line if the next link is the reverse of this one.
    const bool pair = i + 1 < links.size() && links[i + 1].from == l.to && links[i + 1].to == l.from &&
                      same_figures(l, links[i + 1]);
    std::string line = fmt::format(
        "\"from\": {}, \"to\": {}, \"kind\": \"{}\", \"use\": {}, \"bandwidth\": \"{}\", \"capacity\": "
        "\"{}\", "
        "\"latency\": \"{}\"",
        quoted(t.name(l.from)), quoted(t.name(l.to)), name_of(l.kind), quoted(t.link_types()[l.type].id),
        config::to_text(l.line_rate), config::to_text(l.capacity), config::to_text(l.latency));
    if (l.count != 1) line += fmt::format(", \"count\": {}", l.count);
    if (l.length.known()) line += fmt::format(", \"length\": \"{}\"", config::to_text(l.length.metres()));
    if (!pair) line += ", \"one_way\": true";
    if (pair) ++i;
    lines.add(line);
  }
}

// The coordinates of a torus or mesh; the groups of a dragonfly.
std::string coordinates(const Topology& t) {
  if (!t.dragonfly_dimensions.empty())
    return fmt::format(", \"dimensions\": [{}]", fmt::join(t.dragonfly_dimensions, ", "));
  if (t.torus_chips.empty()) return {};
  std::string chips;
  for (const DeviceId chip : t.torus_chips) chips += (chips.empty() ? "" : ", ") + quoted(t.name(chip));
  return fmt::format(", \"dimensions\": [{}], \"chips\": [{}]", fmt::join(t.torus_dimensions, ", "), chips);
}

}  // namespace

std::string to_json(const Topology& t) {
  std::string out = "{\n  \"format\": \"topsim.topology/1\"";
  out += fmt::format(
      ",\n  \"fabric\": {{\"kind\": \"{}\", \"routing\": \"{}\", \"sharp\": {}, \"nic_latency\": \"{}\"{}}}",
      name_of(t.fabric_kind), name_of(t.routing), t.sharp, config::to_text(t.nic_latency), coordinates(t));
  out += fmt::format(",\n  \"peer_to_peer\": {},\n  \"nvlink_sharp\": {}", t.peer_to_peer, t.nvlink_sharp);
  {
    Lines lines(out, "models");
    std::vector<bool> used(t.models().size());
    for (const Device& device : t.devices()) used[device.model] = true;
    for (std::size_t m = 0; m < t.models().size(); ++m) {
      if (!used[m]) continue;  // of a tier that this fabric does not have
      const ModelFacts facts = t.facts_of_model(static_cast<std::uint32_t>(m));
      std::string line = fmt::format("\"id\": {}", quoted(t.models()[m]));
      if (facts.compute_capability != 0)
        line += fmt::format(", \"compute_capability\": {}", facts.compute_capability);
      if (!facts.gpu_direct) line += ", \"gpu_direct\": false";
      if (!facts.cpu_family.empty()) line += fmt::format(", \"cpu_family\": {}", quoted(facts.cpu_family));
      lines.add(line);
    }
  }
  {
    Lines lines(out, "link_types");
    std::vector<bool> used(t.link_types().size());
    for (const Link& link : t.links()) used[link.type] = true;
    for (std::size_t i = 0; i < t.link_types().size(); ++i) {
      const LinkType& type = t.link_types()[i];
      if (!used[i]) continue;
      std::string line = fmt::format("\"id\": {}, \"label\": {}, \"source\": {}", quoted(type.id),
                                     quoted(type.label), quoted(type.source));
      if (!type.transport.empty()) line += fmt::format(", \"transport\": {}", quoted(type.transport));
      lines.add(line);
    }
  }
  write_devices(t, out);
  write_links(t, out);
  return out + "\n}\n";
}

}  // namespace topsim::topology

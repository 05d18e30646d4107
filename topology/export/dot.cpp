#include <fmt/format.h>

#include <map>

#include "sim/config/quantity.hpp"
#include "topology/export/export.hpp"

namespace topsim::topology {

std::string to_dot(const Topology& t) {
  std::string out =
      "graph topology {\n  rankdir=LR;\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n";
  std::map<std::uint32_t, std::string> by_node;
  for (std::size_t i = 0; i < t.devices().size(); ++i) {
    const Device& d = t.devices()[i];
    std::string label = t.name(DeviceId(i)) + "\\n" + t.models()[d.model];
    if (d.count > 1) label += fmt::format(" x{}", d.count);
    by_node[d.node] += fmt::format("    d{} [label=\"{}\"];\n", i, label);
  }
  for (const auto& [node, text] : by_node) {
    if (node == DeviceId::kNone)
      out += text;
    else
      out += fmt::format("  subgraph cluster_{} {{\n    label=\"node{}\";\n{}  }}\n", node, node, text);
  }
  // Each cable once: in the direction whose reverse comes later.
  std::map<std::pair<DeviceId, DeviceId>, std::pair<int, Link>> edges;
  for (const Link& l : t.links()) {
    if (l.from > l.to && t.find_link(l.to, l.from)) continue;
    auto& [count, link] = edges[{l.from, l.to}];
    count += l.count;
    link = l;
  }
  for (const auto& [ends, edge] : edges) {
    const auto& [count, link] = edge;
    out += fmt::format("  d{} -- d{} [label=\"{}{}\\n{}\"];\n", ends.first.value, ends.second.value,
                       t.link_types()[link.type].label, count > 1 ? fmt::format(" x{}", count) : "",
                       config::to_text(link.line_rate));
  }
  return out + "}\n";
}

}  // namespace topsim::topology

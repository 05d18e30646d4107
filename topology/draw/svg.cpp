#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "sim/config/quantity.hpp"
#include "topology/draw/alike.hpp"
#include "topology/draw/draw.hpp"
#include "topology/link_name.hpp"
#include "topology/routes.hpp"

namespace topsim::topology {
namespace {

// Blue, orange, green, ... of Okabe and Ito (2008), which colour-blind readers can distinguish too.
constexpr const char* kStyle = R"(<style>
svg.topology{--ink:#1b1f24;--faint:#6b7280;--card:#ffffff;--edge:#c9ced6;--ground:#f6f7f9;--nvlink:#2f9e44;
--pcie:#8a8f98;--socket:#b08900;--fabric:#1c7ed6;--torus:#9c36b5;background:var(--ground);
font:11px system-ui,"Segoe UI",sans-serif}
@media (prefers-color-scheme:dark){svg.topology{--ink:#e6e8eb;--faint:#9aa3ad;--card:#1f242b;--edge:#3a424c;
--ground:#14181d;--nvlink:#69db7c;--pcie:#7d8590;--socket:#e0b93d;--fabric:#74c0fc;--torus:#da77f2}}
.topology rect.node{fill:none;stroke:var(--edge);stroke-dasharray:3 3}
.topology rect.device{fill:var(--card);stroke:var(--edge)}
.topology text{fill:var(--ink)}.topology text.faint,.topology text.column{fill:var(--faint)}
.topology text.column{font-weight:600}
.topology path{fill:none;stroke-opacity:.75}.topology path:hover{stroke-opacity:1;stroke:var(--ink)}
.topology.dense path{stroke-opacity:.25}
.topology .nvlink,.topology .infinity-fabric,.topology .c2c{stroke:var(--nvlink)}
.topology .pcie,.topology .memory,.topology .other{stroke:var(--pcie)}
.topology .socket{stroke:var(--socket)}.topology .torus{stroke:var(--torus)}
.topology .infiniband,.topology .ethernet{stroke:var(--fabric)}
</style>
)";

enum Column : std::size_t { kCpu, kPcie, kGpu, kNvswitch, kNic, kLeaf, kSpine, kCore, kColumns };
constexpr std::array<const char*, kColumns> kTitles = {"CPU", "PCIe", "accelerator", "scale-up switch",
                                                       "NIC", "leaf", "spine",       "core"};
constexpr double kBoxWidth = 96, kBoxHeight = 20, kGap = 70, kRow = 26, kMargin = 24, kHead = 44;
constexpr double kLabel = 12;  // room for a node's name
constexpr double kLetter = 5.6;
constexpr double kKey = 16;          // a line of the legend
constexpr std::size_t kDense = 600;  // links; beyond that lines are fainter and show only where links are

std::size_t column_of(const Device& d) {
  switch (d.kind) {
    case DeviceKind::cpu:
      return kCpu;
    case DeviceKind::pcie_switch:
      return kPcie;
    case DeviceKind::accelerator:
      return kGpu;
    case DeviceKind::nvswitch:
      return kNvswitch;
    case DeviceKind::nic:
      return kNic;
    case DeviceKind::fabric_switch:
      return std::min<std::size_t>(kLeaf + (d.tier > 0 ? d.tier - 1U : 0U), kCore);
    case DeviceKind::host_memory:
    case DeviceKind::storage:
      break;
  }
  return kColumns;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

class Drawing {
 public:
  Drawing(const Topology& t, const SvgOptions& options)
      : t_(t), options_(options), spot_(t.devices().size()) {}

  std::string draw() {
    choose_devices();
    place();
    std::string body = lines() + boxes();
    const double caption = static_cast<double>(summary().size()) * kLetter + 2 * kMargin;
    const double width = std::max(right_ + (arcs_at_the_edge() ? kGap : 0) + kMargin, caption);
    const std::vector<std::string> key = legend();
    const double height = bottom_ + kMargin + 34 + kKey * static_cast<double>(key.size());
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"topology{}\" viewBox=\"0 0 {:.0f} {:.0f}\" "
        "width=\"{:.0f}\" "
        "height=\"{:.0f}\" role=\"img\"><title>{}</title>\n{}",
        drawn_links() > kDense ? " dense" : "", width, height, width, height, escaped(summary()), kStyle);
    for (std::size_t c = 0; c < kColumns; ++c) {
      if (columns_[c].empty()) continue;
      out += fmt::format("<text class=\"column\" x=\"{:.0f}\" y=\"20\">{}</text>\n", x_[c], kTitles[c]);
      if (const std::string model = only_model(columns_[c]); !model.empty())
        out += fmt::format("<text class=\"faint\" x=\"{:.0f}\" y=\"34\">{}</text>\n", x_[c], escaped(model));
    }
    out += body;
    out += fmt::format("<text class=\"faint\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n", kMargin,
                       bottom_ + kMargin + 12, escaped(summary()));
    for (std::size_t i = 0; i < key.size(); ++i)
      out += fmt::format("<g transform=\"translate({:.0f} {:.0f})\">{}</g>\n", kMargin,
                         bottom_ + kMargin + 12 + kKey * static_cast<double>(i + 1), key[i]);
    return out + "</svg>\n";
  }

 private:
  struct Spot {
    bool drawn = false;
    double x = 0, y = 0;
  };

  [[nodiscard]] std::string summary() const {
    std::string text = fmt::format("{} accelerators in {} node{}", t_.accelerators().size(), t_.nodes(),
                                   t_.nodes() == 1 ? "" : "s");
    if (t_.fabric_kind != FabricKind::none)
      text += fmt::format(", {} fabric, {} routing", name_of(t_.fabric_kind), name_of(t_.routing));
    return text + folded_ + (folded_.empty() ? "" : "; lines to what is not drawn are left out");
  }

  [[nodiscard]] bool drawn(const Link& l) const {
    return spot_[l.from.index()].drawn && spot_[l.to.index()].drawn;
  }
  [[nodiscard]] std::size_t drawn_links() const {
    const auto links = t_.links();
    return static_cast<std::size_t>(
        std::count_if(links.begin(), links.end(), [&](const Link& l) { return drawn(l); }));
  }
  // The meaning of colours and widths: each kind of link that is drawn, once, in the order of the links.
  [[nodiscard]] std::vector<std::string> legend() const {
    std::vector<std::string> entries;
    for (const Link& l : t_.links()) {
      if (!drawn(l)) continue;
      std::string entry = fmt::format(
          "<path class=\"{}\" stroke-width=\"{:.2f}\" d=\"M0 -4H28\"/><text class=\"faint\" "
          "x=\"36\">{}</text>",
          name_of(l.kind), width_of(l.line_rate), escaped(name_with_speed(t_, l)));
      if (std::find(entries.begin(), entries.end(), entry) == entries.end())
        entries.push_back(std::move(entry));
    }
    return entries;
  }
  // The model of a column, if all its devices have the same one.
  [[nodiscard]] std::string only_model(const std::vector<DeviceId>& column) const {
    const std::uint32_t model = t_.device(column.front()).model;
    const bool one =
        std::all_of(column.begin(), column.end(), [&](DeviceId d) { return t_.device(d).model == model; });
    return one ? t_.models()[model] : std::string();
  }

  // Whether links inside the last column curve to its right.
  [[nodiscard]] bool arcs_at_the_edge() const {
    return std::any_of(t_.links().begin(), t_.links().end(), [&](const Link& l) {
      const Spot &a = spot_[l.from.index()], &b = spot_[l.to.index()];
      return a.drawn && b.drawn && a.x == b.x && a.x + kBoxWidth >= right_ - 1;
    });
  }

  // Whether it is a scale-up switch of several nodes, none of which is drawn.
  [[nodiscard]] bool serves_nobody(DeviceId d, const std::vector<bool>& shown) const {
    if (t_.device(d).kind != DeviceKind::nvswitch || t_.device(d).node != DeviceId::kNone) return false;
    const auto links = t_.links_from(d);
    return std::none_of(links.begin(), links.end(), [&](LinkId l) {
      const std::uint32_t node = t_.device(t_.link(l).to).node;
      return node != DeviceId::kNone && shown[node];
    });
  }

  // Every device of a small cluster; else one node of each kind and the first switches of each tier.
  void choose_devices() {
    std::vector<std::uint32_t> nodes;
    if (t_.nodes() <= options_.most_nodes) {
      for (std::uint32_t n = 0; n < t_.nodes(); ++n) nodes.push_back(n);
    } else {
      for (const NodeGroup& g : alike_nodes(t_)) {
        if (nodes.size() == options_.most_nodes) break;
        nodes.push_back(g.nodes.front());
        if (g.nodes.size() > 1)
          folded_ += fmt::format("; node{} stands for {} alike", g.nodes.front(), g.nodes.size());
      }
    }
    std::vector<bool> shown(t_.nodes());
    for (const std::uint32_t n : nodes) shown[n] = true;
    std::map<std::size_t, std::uint32_t> in_tier;
    // PCIe and CPUs would clutter the picture of a cluster.
    const bool inside = nodes.size() <= 2;
    for (std::size_t i = 0; i < t_.devices().size(); ++i) {
      const Device& d = t_.devices()[i];
      const std::size_t c = column_of(d);
      if (c == kColumns || (c <= kPcie && !inside)) continue;
      if (d.node != DeviceId::kNone && !shown[d.node]) continue;
      if (serves_nobody(DeviceId(i), shown)) continue;
      if (d.node == DeviceId::kNone && ++in_tier[c] > options_.most_switches) continue;
      columns_[c].push_back(DeviceId(i));
      spot_[i].drawn = true;
    }
    for (const auto& [c, count] : in_tier)
      if (count > options_.most_switches)
        folded_ += fmt::format("; {} of {} {} switches shown", options_.most_switches, count, kTitles[c]);
  }

  void place() {
    double x = kMargin;
    std::size_t rows = 1;
    for (std::size_t c = 0; c < kColumns; ++c) {
      x_[c] = x;
      if (columns_[c].empty()) continue;
      x += kBoxWidth + kGap;
      right_ = x - kGap;
      rows = std::max(rows, columns_[c].size());
    }
    // Devices of a node are within their node's share of the height; fabric switches are spread over the
    // whole height.
    std::map<std::uint32_t, std::array<double, 2>> band;  // of each drawn node: top, height
    for (std::size_t c = 0; c < kColumns; ++c)
      for (const DeviceId d : columns_[c])
        if (t_.device(d).node != DeviceId::kNone) band[t_.device(d).node] = {};
    const double height = static_cast<double>(rows) * kRow + static_cast<double>(band.size()) * kLabel;
    double top = kHead;
    for (auto& [node, b] : band) {
      b = {top, height / static_cast<double>(band.size())};
      top += b[1];
    }
    for (std::size_t c = 0; c < kColumns; ++c) {
      std::map<std::uint32_t, std::vector<DeviceId>> groups;
      for (const DeviceId d : columns_[c]) groups[t_.device(d).node].push_back(d);
      for (const auto& [node, members] : groups) {
        const double head = node == DeviceId::kNone ? kHead : band[node][0] + kLabel;
        const double room = node == DeviceId::kNone ? height : band[node][1] - kLabel;
        const double step = room / static_cast<double>(members.size());
        for (std::size_t i = 0; i < members.size(); ++i) {
          Spot& s = spot_[members[i].index()];
          s.x = x_[c];
          s.y = head + step * (static_cast<double>(i) + 0.5) - kBoxHeight / 2;
        }
      }
    }
    bottom_ = kHead + height;
    bands_ = std::move(band);
  }

  std::string boxes() const {
    std::string out;
    const double last =
        columns_[kNic].empty() ? (columns_[kNvswitch].empty() ? x_[kGpu] : x_[kNvswitch]) : x_[kNic];
    for (const auto& [node, b] : bands_)
      out += fmt::format(
          "<rect class=\"node\" x=\"{:.0f}\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.1f}\" rx=\"6\"/>"
          "<text class=\"faint\" x=\"{:.0f}\" y=\"{:.1f}\">node{}</text>\n",
          kMargin - 12, b[0] + 1, last + kBoxWidth - kMargin + 24, b[1] - 2, kMargin - 8, b[0] + 11, node);
    for (const auto& column : columns_)
      for (const DeviceId d : column) {
        const Spot& s = spot_[d.index()];
        const Device& device = t_.device(d);
        std::string label = t_.name(d);
        label = label.substr(label.rfind('/') + 1);
        if (device.count > 1) label += fmt::format(" x{}", device.count);
        out += fmt::format(
            "<g><title>{} {}</title><rect class=\"device\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.0f}\" "
            "height=\"{:.0f}\" rx=\"4\"/><text x=\"{:.1f}\" y=\"{:.1f}\">{}</text></g>\n",
            escaped(t_.name(d)), escaped(t_.models()[device.model]), s.x, s.y, kBoxWidth, kBoxHeight, s.x + 7,
            s.y + 14, escaped(label));
      }
    return out;
  }

  // The width grows by one for every factor of four in speed.
  static double width_of(BytesPerSecond rate) {
    return std::clamp(0.8 + std::log2(std::max(1.0, rate.value() / 12.5e9)) / 2, 0.8, 6.0);
  }

  std::string line(DeviceId a, DeviceId b, std::string_view kind, BytesPerSecond rate, std::string_view title,
                   std::size_t link) const {
    const Spot *from = &spot_[a.index()], *to = &spot_[b.index()];
    if (from->x > to->x) std::swap(from, to);
    const double y1 = from->y + kBoxHeight / 2, y2 = to->y + kBoxHeight / 2, x1 = from->x + kBoxWidth;
    std::string path;
    if (from->x == to->x) {  // an arc beside the column; longer ones curve more
      const double bow = 14 + std::abs(y2 - y1) / 6;
      path = fmt::format("M{0:.1f} {1:.1f}C{2:.1f} {1:.1f} {2:.1f} {3:.1f} {0:.1f} {3:.1f}", x1, y1,
                         x1 + std::min(bow, kGap), y2);
    } else {
      const double middle = (x1 + to->x) / 2;
      path = fmt::format("M{0:.1f} {1:.1f}C{2:.1f} {1:.1f} {2:.1f} {3:.1f} {4:.1f} {3:.1f}", x1, y1, middle,
                         y2, to->x);
    }
    return fmt::format(
        "<path class=\"{}\" data-link=\"{}\" stroke-width=\"{:.2f}\" d=\"{}\"><title>{}</title></path>\n",
        kind, link, width_of(rate), path, escaped(title));
  }

  std::string lines() const {
    std::string out;
    for (std::size_t i = 0; i < t_.links().size(); ++i) {
      const Link& l = t_.links()[i];
      if (!spot_[l.from.index()].drawn || !spot_[l.to.index()].drawn) continue;
      if (l.to < l.from && t_.find_link(l.to, l.from)) continue;  // its other direction is drawn
      std::string title = fmt::format("{} - {}: {}, {:.4g} GB/s usable", t_.name(l.from), t_.name(l.to),
                                      name_with_speed(t_, l), l.capacity.value() * 1e-9);
      out += line(l.from, l.to, name_of(l.kind), l.line_rate, title, i);
    }
    // Without PCIe: shows which NIC serves which accelerator.
    if (columns_[kNic].empty() || !columns_[kPcie].empty() || !columns_[kCpu].empty()) return out;
    const Router router(t_, 0);
    for (const DeviceId gpu : columns_[kGpu]) {
      const DeviceId nic = router.nic_for(gpu, gpu);
      if (nic.valid() && nic != gpu && spot_[nic.index()].drawn)
        out += line(gpu, nic, "pcie", BytesPerSecond(12.5e9), t_.name(gpu) + " uses " + t_.name(nic),
                    t_.links().size());
    }
    return out;
  }

  const Topology& t_;
  const SvgOptions& options_;
  std::vector<Spot> spot_;
  std::array<std::vector<DeviceId>, kColumns> columns_;
  std::array<double, kColumns> x_{};
  std::map<std::uint32_t, std::array<double, 2>> bands_;
  double right_ = 0, bottom_ = 0;
  std::string folded_;
};

}  // namespace

std::string to_svg(const Topology& topology, const SvgOptions& options) {
  return Drawing(topology, options).draw();
}

}  // namespace topsim::topology

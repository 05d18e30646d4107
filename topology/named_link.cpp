#include "topology/named_link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "sim/base/error.hpp"

namespace topsim::topology {
namespace {

constexpr std::string_view kArrow = " -> ", kBoth = " - ";

// One end of a link: a device, or a single one of the equal switches that it stands for.
struct LinkEnd {
  DeviceId device;
  std::optional<std::uint32_t> single;
  std::uint32_t count = 1;
};

std::optional<LinkEnd> link_end(const Topology& topology, std::string_view text) {
  if (const auto device = topology.find_device(text))
    return LinkEnd{*device, {}, topology.device(*device).count};
  const std::size_t open = text.find('[');
  if (open == std::string_view::npos || text.back() != ']') return {};
  const auto device = topology.find_device(text.substr(0, open));
  if (!device || topology.device(*device).kind != DeviceKind::fabric_switch) return {};
  std::uint32_t single = 0;
  const char* const end = text.data() + text.size() - 1;
  const auto [last, error] = std::from_chars(text.data() + open + 1, end, single);
  const std::uint32_t count = topology.device(*device).count;
  if (error != std::errc{} || last != end || single >= count) return {};
  return LinkEnd{*device, single, count};
}

// Core k of a set is connected to spine k / (cores per spine) of every set of spines, as the builder numbers
// them.
bool joined(const LinkEnd& a, const LinkEnd& b) {
  if (!a.single || !b.single) return true;
  const LinkEnd &fewer = a.count < b.count ? a : b, &more = a.count < b.count ? b : a;
  return more.count % fewer.count == 0 && *more.single / (more.count / fewer.count) == *fewer.single;
}

// "leaf0 -> spine1 #2" without its number, and the number; none if it does not end in one.
std::pair<std::string, std::optional<std::uint32_t>> split_cable(const std::string& name) {
  const auto at = name.rfind(" #");
  if (at == std::string::npos) return {name, {}};
  std::uint32_t number = 0;
  const char* const end = name.data() + name.size();
  const auto [last, error] = std::from_chars(name.data() + at + 2, end, number);
  if (error != std::errc{} || last != end) return {name, {}};
  return {name.substr(0, at), number};
}

// Lists the links of the device with which the name begins, else any link.
std::string remedy(const Topology& topology, const std::string& name) {
  const auto from = link_end(topology, name.substr(0, name.find(kArrow)));
  const auto links = from ? topology.links_from(from->device) : LinksFrom();
  std::string help =
      "a link is named by its ends: " + topology.name(links.empty() ? LinkId(std::size_t{0}) : links.front());
  if (links.size() > 1) help += ", ..., " + topology.name(links.back());
  for (const LinkId link : links) {
    const Device& to = topology.device(topology.link(link).to);
    if (to.kind != DeviceKind::fabric_switch || to.count == 1) continue;
    help += fmt::format(
        "; {0} stands for {1} switches that carry equal shares, single ones are {0}[0] to {0}[{2}]",
        topology.name(topology.link(link).to), to.count, to.count - 1);
    break;
  }
  return help + "; topsim topo show prints the devices";
}
// "leaf0->spine1" and, as tables print it, "leaf0 > spine1" are "leaf0 -> spine1".
std::string with_arrow(const std::string& name) {
  const std::size_t head = name.find('>');
  if (head == std::string::npos) return name;
  const std::size_t last = name.find_last_not_of(" -", head - (head > 0 ? 1 : 0));
  const std::size_t next = name.find_first_not_of(' ', head + 1);
  if (head == 0 || last == std::string::npos || next == std::string::npos) return name;
  return name.substr(0, last + 1) + std::string(kArrow) + name.substr(next);
}
}  // namespace

std::vector<NamedLink> find_links(const Topology& topology, const std::string& given) {
  const std::string name = with_arrow(given);
  const bool one_way = name.find(kArrow) != std::string::npos;
  if (const auto both = name.find(kBoth); both != std::string::npos && !one_way) {
    const std::size_t cable = std::min(name.rfind(" #"), name.size());
    const std::string one = name.substr(0, both), behind = name.substr(cable);
    const std::string other = name.substr(both + kBoth.size(), cable - both - kBoth.size());
    auto found = find_links(topology, one + std::string(kArrow) + other + behind);
    const auto back = find_links(topology, other + std::string(kArrow) + one + behind);
    found.insert(found.end(), back.begin(), back.end());
    return found;
  }
  const auto [ends, cable] = split_cable(name);
  const auto at = ends.find(kArrow);
  if (at == std::string::npos) return {};
  const std::string from = ends.substr(0, at), to = ends.substr(at + kArrow.size());
  const auto a = link_end(topology, from), b = link_end(topology, to);
  if (!a || !b || !joined(*a, *b)) return {};
  const LinkEnd& narrow = (a->single ? a->count : 1) > (b->single ? b->count : 1) ? *a : *b;
  const std::uint32_t of = narrow.single ? narrow.count : 1;
  std::vector<NamedLink> links;
  for (const LinkId link : topology.links_from(a->device))
    if (topology.link(link).to == b->device)
      links.push_back({link, of, narrow.single.value_or(0), from, to, {}});
  if (!cable || links.empty()) return links;
  NamedLink one = links.front();
  const std::uint32_t side_by_side = topology.link(one.link).count / of;
  if (links.size() > 1) {
    if (*cable >= links.size()) return {};
    one = links[*cable];
  } else if (*cable >= std::max(side_by_side, 1U)) {
    return {};
  } else if (side_by_side > 1) {
    one.of = of * side_by_side;
    one.part = one.part * side_by_side + *cable;
  }
  one.cable = fmt::format(" #{}", *cable);
  return {one};
}

std::vector<NamedLink> named_links(const Topology& topology, const std::string& name) {
  auto found = find_links(topology, name);
  if (!found.empty()) return found;
  throw ConfigError("the topology has no link \"" + name + '"', remedy(topology, name));
}
}  // namespace topsim::topology

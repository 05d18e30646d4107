// Format: infiniband-diags ibnetdiscover(8). A record starts at a line "Switch" or "Ca"; each cable occurs in
// the records of both ends.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "sim/base/error.hpp"
#include "topology/import/encoding.hpp"
#include "topology/import/import.hpp"
#include "topology/import/natural_order.hpp"

namespace topsim::topology {
namespace {

struct Speed {
  const char* name;
  double gbit_per_lane;  // data, without coding
  const char* link;      // catalogue link of the generation
};
// IBTA volume 1: lane rates after line coding.
constexpr Speed kSpeeds[] = {{"SDR", 2, "ib-qdr"},    {"DDR", 4, "ib-qdr"},     {"QDR", 8, "ib-qdr"},
                             {"FDR10", 10, "ib-fdr"}, {"FDR", 13.64, "ib-fdr"}, {"EDR", 25, "ib-edr"},
                             {"HDR", 50, "ib-hdr"},   {"NDR", 100, "ib-ndr"},   {"XDR", 200, "ib-xdr"}};

struct Station {
  bool is_switch = false;
  bool is_router = false;
  std::string description;
  std::string name;  // topsim's name
  int tier = 0;
};
using Port = std::pair<std::string, int>;  // device id ("S-0000000000200001"), port
struct Cable {
  std::string speed;  // "4xNDR"
  int seen = 0;
};

// The quoted text after `at`; moves `at` past it.
std::optional<std::string> quoted(std::string_view line, std::size_t& at) {
  const std::size_t open = line.find('"', at);
  if (open == std::string_view::npos) return std::nullopt;
  const std::size_t close = line.find('"', open + 1);
  if (close == std::string_view::npos) return std::nullopt;
  at = close + 1;
  return std::string(line.substr(open + 1, close - open - 1));
}
std::optional<int> bracketed(std::string_view line, std::size_t& at) {
  if (at >= line.size() || line[at] != '[') return std::nullopt;
  int number = 0;
  const auto [end, error] = std::from_chars(line.data() + at + 1, line.data() + line.size(), number);
  if (error != std::errc{} || end == line.data() + line.size() || *end != ']') return std::nullopt;
  at = static_cast<std::size_t>(end - line.data()) + 1;
  return number;
}
// Finds "4xNDR" among the words of a comment.
std::string speed_in(std::string_view text) {
  std::string found;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \t\r", start), text.size());
    const std::string_view word = text.substr(start, end - start);
    const std::size_t x = word.find('x');
    if (x != std::string_view::npos && x > 0 && x < 3 && word[0] != '0' && x + 1 < word.size() &&
        word.find_first_not_of("0123456789") == x && word.find('=') == std::string_view::npos)
      found = word;
    start = end + 1;
  }
  return found;
}

class Reader {
 public:
  explicit Reader(const ImportOptions& options) : options_(options) {}

  Imported read(std::string_view text) {
    refuse_utf16(text, options_.name);
    int number = 0;
    for (std::size_t start = 0; start <= text.size();) {
      const std::size_t end = std::min(text.find('\n', start), text.size());
      line(text.substr(start, end - start), ++number);
      start = end + 1;
    }
    if (devices_.empty()) fail(0, "no switch or adapter found", "is this the output of ibnetdiscover?");
    if (cables_.empty())
      fail(0, "the fabric has no cable", "ibnetdiscover ran where no link was up, or the file is cut off");
    if (std::none_of(devices_.begin(), devices_.end(),
                     [](const auto& each) { return !each.second.is_switch && !each.second.is_router; }))
      fail(0, "no host's adapter found: no record begins with Ca",
           "ibnetdiscover prints them behind the switches; the file may be cut off");
    name_devices();
    find_tiers();
    write();
    return std::move(result_);
  }

 private:
  [[noreturn]] void fail(int number, std::string message, std::string help) const {
    throw ConfigError({Problem{
        {options_.name, number, number > 0 ? 1 : 0, 1}, {}, std::move(message), {}, std::move(help), {}}});
  }

  // Manuals indent it, and pasted text has "> " before it.
  void line(std::string_view line, int number) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t>|"), line.size()));
    if (line.starts_with("Switch") || line.starts_with("Ca") || line.starts_with("Rt")) {
      std::size_t at = 0;
      const auto id = quoted(line, at);
      if (!id) fail(number, "a record without an id", "expected: Switch 64 \"S-...\" # \"name\"");
      at = line.find('#', at);
      const auto description = at == std::string_view::npos ? std::nullopt : quoted(line, at);
      current_ = *id;
      devices_[current_] = {
          line.starts_with("Switch"), line.starts_with("Rt"), description.value_or(""), {}, 0};
    } else if (line.starts_with("[")) {
      if (current_.empty())
        fail(number, "a cable before any switch or adapter", "the beginning of the file is missing");
      std::size_t at = 0;
      const auto port = bracketed(line, at);
      const auto peer = quoted(line, at);
      const auto peer_port = bracketed(line, at);
      if (!port || !peer || !peer_port)
        fail(number, "a cable that cannot be read", "expected: [1] \"H-...\"[1] # \"name\" lid 1 4xNDR");
      cable({current_, *port}, {*peer, *peer_port}, speed_in(line.substr(at)));
    }
  }

  void cable(Port a, Port b, const std::string& speed) {
    if (b < a) std::swap(a, b);
    Cable& cable = cables_[{a, b}];
    if (cable.seen++ > 0 && cable.speed != speed)
      result_.findings.push_back(
          fmt::format("the two ends of a cable disagree: {} and {}", cable.speed, speed));
    cable.speed = speed;
  }

  [[nodiscard]] bool skipped(const std::string& id) const {
    const auto found = devices_.find(id);
    return found == devices_.end() || found->second.is_router ||
           found->second.description.find("Aggregation Node") != std::string::npos;
  }

  // "host17 mlx5_3" is an adapter of host17; other descriptions name no host, so the adapter gets one of its
  // own.
  static std::string host_of(const std::string& id, const std::string& description) {
    const std::size_t space = description.find(' ');
    if (space == std::string::npos)
      return description.empty() ? id : description.substr(0, description.find("-hca"));
    const std::string adapter = description.substr(space + 1);
    const bool named = adapter.find("mlx") == 0 || adapter.find("HCA") == 0 || adapter.find("hca") == 0 ||
                       adapter.find("ib") == 0;
    return named ? description.substr(0, space) : id;
  }

  void name_devices() {
    using Described = std::pair<std::string, std::string>;  // and its id
    const auto sort = [](std::vector<Described>& some) {
      std::sort(some.begin(), some.end(), [](const Described& a, const Described& b) {
        return a.first != b.first ? NaturalOrder()(a.first, b.first) : a.second < b.second;
      });
    };
    std::map<std::string, std::vector<Described>, NaturalOrder> hosts;
    std::vector<Described> switches;
    for (const auto& [id, d] : devices_) {
      if (skipped(id)) continue;
      if (d.is_switch)
        switches.emplace_back(d.description, id);
      else
        hosts[host_of(id, d.description)].emplace_back(d.description, id);
    }
    sort(switches);
    for (std::size_t i = 0; i < switches.size(); ++i)
      devices_[switches[i].second].name = fmt::format("switch{}", i);
    int node = 0;
    for (auto& [host, adapters] : hosts) {
      sort(adapters);
      for (std::size_t i = 0; i < adapters.size(); ++i) {
        devices_[adapters[i].second].name = fmt::format("node{}/nic{}", node, i);
        add_adapter(devices_[adapters[i].second].name, node, static_cast<int>(i));
      }
      ++node;
    }
    const auto between = std::count_if(cables_.begin(), cables_.end(), [&](const auto& cable) {
      return !skipped(cable.first.first.first) && !skipped(cable.first.second.first);
    });
    result_.findings.push_back(fmt::format(
        "{} hosts with {} adapters, {} switches, {} cables", node,
        result_.spec.devices.size() / (options_.accelerator.empty() ? 1 : 2), switches.size(), between));
    const auto lost = std::count_if(cables_.begin(), cables_.end(), [&](const auto& cable) {
      return !devices_.contains(cable.first.first.first) || !devices_.contains(cable.first.second.first);
    });
    const auto routers = std::count_if(devices_.begin(), devices_.end(),
                                       [](const auto& each) { return each.second.is_router; });
    if (routers > 0)
      result_.findings.push_back(
          fmt::format("routers to other subnets: {}, left out with their cables", routers));
    if (lost > 0)
      result_.findings.push_back(
          fmt::format("cables to devices without a record of their own: {}, left out", lost));
    if (!options_.accelerator.empty())
      result_.findings.push_back(
          fmt::format("hosts are not told: one {} is assumed beside each adapter, on {}, and those of a host "
                      "meet in the fabric alone",
                      options_.accelerator, bus()));
  }
  [[nodiscard]] std::string bus() const {
    const bool known = options_.figures != nullptr && !options_.figures->pcie_link.empty();
    return known ? options_.figures->pcie_link : "pcie5-x16";
  }

  void add_adapter(const std::string& name, int node, int index) {
    DeviceSpec nic;
    nic.name = name;
    nic.kind = "nic";
    nic.node = node;
    result_.spec.devices.push_back(nic);
    if (options_.accelerator.empty()) return;
    DeviceSpec gpu = nic;
    gpu.name = fmt::format("node{}/gpu{}", node, index);
    gpu.kind = "accelerator";
    gpu.model = options_.accelerator;
    result_.spec.devices.push_back(gpu);
    LinkSpec slot;
    slot.from = gpu.name;
    slot.to = name;
    slot.link.use = bus();
    result_.spec.links.push_back(slot);
  }

  // Switches with adapters are leaves, others get tiers by their distance from leaves; names mean nothing.
  void find_tiers() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& [ends, cable] : cables_) {
        for (const auto& [a, b] : {std::pair(ends.first.first, ends.second.first),
                                   std::pair(ends.second.first, ends.first.first)}) {
          if (skipped(a) || skipped(b) || !devices_[b].is_switch) continue;
          const int tier = devices_[a].is_switch ? devices_[a].tier + 1 : 1;
          if (devices_[a].is_switch && devices_[a].tier == 0) continue;
          if (devices_[b].tier != 0 && devices_[b].tier <= tier) continue;
          devices_[b].tier = tier;
          changed = true;
        }
      }
    }
  }

  void write() {
    for (const auto& [id, d] : devices_) {
      if (!d.is_switch || skipped(id)) continue;
      DeviceSpec sw;
      sw.name = d.name;
      sw.kind = "switch";
      sw.tier = std::max(1, d.tier);
      result_.spec.devices.push_back(sw);
    }
    for (const auto& [ends, cable] : cables_) {
      const auto& [a, b] = ends;
      if (skipped(a.first) || skipped(b.first)) continue;
      LinkSpec link;
      link.from = devices_[a.first].name;
      link.to = devices_[b.first].name;
      link.kind = "infiniband";
      set_speed(link, cable.speed);
      result_.spec.links.push_back(link);
    }
  }

  void set_speed(LinkSpec& link, const std::string& speed) {
    const std::size_t x = speed.find('x');
    const auto known = x == std::string::npos
                           ? std::end(kSpeeds)
                           : std::find_if(std::begin(kSpeeds), std::end(kSpeeds),
                                          [&](const Speed& s) { return speed.substr(x + 1) == s.name; });
    if (known == std::end(kSpeeds)) {
      result_.findings.push_back(fmt::format("{} - {} tells no speed ({}): 4xSDR is assumed", link.from,
                                             link.to, speed.empty() ? "none" : speed));
      return set_speed(link, "4xSDR");
    }
    link.link.use = known->link;
    link.link.bandwidth = BytesPerSecond(std::stoi(speed.substr(0, x)) * known->gbit_per_lane * 1e9 / 8);
  }

  const ImportOptions& options_;
  Imported result_;
  std::string current_;
  std::map<std::string, Station> devices_;
  std::map<std::pair<Port, Port>, Cable> cables_;
};

}  // namespace

Imported read_ibnetdiscover(std::string_view text, const ImportOptions& options) {
  return Reader(options).read(text);
}

}  // namespace topsim::topology

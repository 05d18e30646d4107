// Cells: X, NV<n> (n bonded NVLinks), PIX and PXB (PCIe switches between), PHB (the host bridge), NODE
// (several host bridges of a NUMA node), SYS (the link between sockets). Legend: nvidia-smi topo -m.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <regex>
#include <set>

#include "sim/base/error.hpp"
#include "topology/import/box.hpp"
#include "topology/import/import.hpp"

namespace topsim::topology {
namespace {

[[noreturn]] void fail(const ImportOptions& options, std::string message, std::string help) {
  throw ConfigError({Problem{{options.name, 0, 0, 1}, {}, std::move(message), {}, std::move(help), {}}});
}

struct Matrix {
  std::vector<std::string> names;               // "GPU0", "NIC0" or "mlx5_0"
  std::vector<std::vector<std::string>> cells;  // for rows that exist
  std::vector<std::string> affinity;            // CPUs near a GPU, "0-31,64-95"; empty if not stated
  [[nodiscard]] bool is_gpu(std::size_t i) const { return names[i].starts_with("GPU"); }
  [[nodiscard]] std::string cell(std::size_t a, std::size_t b) const {
    if (b < cells[a].size()) return cells[a][b];
    return a < cells[b].size() ? cells[b][a] : "SYS";
  }
};

// Underlined headings, tabs or spaces, joined cells ("PXBNODE"): only the order of the words matters.
Matrix parse(std::string text, const ImportOptions& options) {
  text = std::regex_replace(text, std::regex("\x1b\\[[0-9;]*m"), " ");
  static const std::regex row("^\\s*(GPU\\d+|NIC\\d+|mlx\\d+_\\d+|[a-z]+\\w*_\\d+)\\s+(.*)$");
  static const std::regex cell("NV\\d{1,3}|PIX|PXB|PHB|NODE|SYS|\\bX\\b");
  static const std::regex heading("(?:GPU|NIC)\\d+");
  Matrix m;
  std::set<std::string> headings;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string line = text.substr(start, end - start);
    start = end + 1;
    // std::regex recurses for every character, and no matrix is that wide.
    constexpr std::size_t kWidest = 20000;
    if (line.size() > kWidest)
      fail(options, "a line of more than 20,000 characters",
           "expected the matrix that nvidia-smi topo -m prints");
    std::smatch match;
    if (line.find("Legend") != std::string::npos) break;
    if (!std::regex_match(line, match, row)) continue;
    const std::string rest = match[2];
    std::vector<std::string> cells;
    for (auto it = std::sregex_iterator(rest.begin(), rest.end(), cell); it != std::sregex_iterator(); ++it)
      cells.push_back(it->str());
    if (cells.empty() || std::find(cells.begin(), cells.end(), "X") == cells.end()) {
      for (auto it = std::sregex_iterator(line.begin(), line.end(), heading);
           m.names.empty() && it != std::sregex_iterator(); ++it)
        headings.insert(it->str());
      continue;
    }
    std::smatch beside;
    static const std::regex cpus("[\\s]([0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*)\\s");
    const std::string after = rest.substr(rest.find_last_of("XSDEKBV") + 1) + ' ';
    m.affinity.push_back(std::regex_search(after, beside, cpus) ? beside.str(1) : "");
    m.names.push_back(match[1]);
    m.cells.push_back(std::move(cells));
  }
  const auto gpus =
      std::count_if(m.names.begin(), m.names.end(), [](const auto& n) { return n.starts_with("GPU"); });
  if (gpus < 1) fail(options, "no GPU row found", "expected the matrix that nvidia-smi topo -m prints");
  for (const std::string& name : m.names) headings.erase(name);
  if (!headings.empty())
    fail(options, fmt::format("the row of {} is missing, which the heading names", *headings.begin()),
         "the file is cut off: keep all that nvidia-smi topo -m prints");
  return m;
}

// Groups of rows that are connected by cells of the given kinds.
std::vector<int> groups(const Matrix& m, const std::set<std::string>& kinds) {
  std::vector<int> group(m.names.size());
  std::iota(group.begin(), group.end(), 0);
  for (std::size_t a = 0; a < m.names.size(); ++a)
    for (std::size_t b = 0; b < m.names.size(); ++b)
      if (a != b && kinds.contains(m.cell(a, b))) {
        const int from = std::max(group[a], group[b]), to = std::min(group[a], group[b]);
        std::replace(group.begin(), group.end(), from, to);
      }
  return group;
}

// For an unnamed accelerator: as many as Hopper and Blackwell have.
constexpr int kMostNvlinks = 18;

class Builder {
 public:
  Builder(const Matrix& m, const ImportOptions& options) : m_(m), options_(options) {}

  Imported build() {
    sockets();
    devices();
    nvlinks();
    return std::move(result_);
  }

 private:
  void device(const std::string& name, const char* kind, const std::string& model = {}) {
    result_.spec.devices.push_back(device_of_box(name, kind, model));
  }
  void link(const std::string& from, const std::string& to, const std::string& use, int count = 1) {
    LinkSpec l;
    l.from = "node0/" + from;
    l.to = to.starts_with("rail") ? to : "node0/" + to;
    l.link.use = use;
    l.count = count;
    result_.spec.links.push_back(l);
  }

  // Rows connected without SYS share a socket, and so do GPUs near the same CPUs, because NVLinks hide the
  // connection between them. If nothing is stated, all rows share one.
  void sockets() {
    socket_ = groups(m_, {"PIX", "PXB", "PHB", "NODE"});
    bool told = false;
    for (std::size_t a = 0; a < socket_.size(); ++a) {
      told |= !m_.affinity[a].empty();
      for (std::size_t b = 0; b < a && !m_.affinity[a].empty(); ++b)
        if (m_.affinity[a] == m_.affinity[b])
          std::replace(socket_.begin(), socket_.end(), int{socket_[a]}, int{socket_[b]});
    }
    told = told || std::any_of(m_.cells.begin(), m_.cells.end(), [](const auto& row) {
             return std::any_of(row.begin(), row.end(), [](const std::string& c) {
               return c[0] == 'P' || c == "NODE" || c == "SYS";
             });
           });
    if (!told && socket_.size() > 1) {
      std::fill(socket_.begin(), socket_.end(), 0);
      result_.findings.push_back("the sockets are not told: one is assumed");
    }
    std::map<int, int> number;
    for (int& s : socket_) s = number.emplace(s, static_cast<int>(number.size())).first->second;
    for (std::size_t s = 0; s < number.size(); ++s) device(fmt::format("cpu{}", s), "cpu");
    for (std::size_t s = 1; s < number.size(); ++s) link("cpu0", fmt::format("cpu{}", s), "upi-spr", 4);
    if (number.size() > 1)
      result_.findings.push_back(
          "the sockets' link is not told: four-link UPI of Sapphire Rapids is assumed");
  }

  void devices() {
    const std::vector<int> bridge = groups(m_, {"PIX", "PXB"});
    std::map<int, int> members, number;
    for (const int b : bridge) ++members[b];
    int gpus = 0, nics = 0;
    for (std::size_t i = 0; i < m_.names.size(); ++i) {
      const bool gpu = m_.is_gpu(i);
      names_.push_back(gpu ? fmt::format("gpu{}", gpus++) : fmt::format("nic{}", nics++));
      device(names_[i], gpu ? "accelerator" : "nic", gpu ? options_.accelerator : std::string());
      std::string parent = fmt::format("cpu{}", socket_[i]);
      if (members[bridge[i]] > 1) {
        const auto [found, fresh] = number.emplace(bridge[i], static_cast<int>(number.size()));
        const std::string hub = fmt::format("pcie{}", found->second);
        if (fresh) {
          device(hub, "pcie-switch");
          link(hub, parent, pcie());
        }
        parent = hub;
      }
      link(names_[i], parent, pcie());
      if (gpu || options_.nic_link.empty()) continue;
      DeviceSpec leaf;
      leaf.name = fmt::format("rail{}", nics - 1);
      leaf.kind = "switch";
      result_.spec.devices.push_back(leaf);
      link(names_[i], leaf.name, options_.nic_link);
    }
    result_.findings.push_back(fmt::format("the matrix tells no PCIe speed: {} is assumed everywhere{}",
                                           pcie(),
                                           options_.figures != nullptr ? ", as the accelerator's slot" : ""));
  }

  static int bonded(const std::string& cell) {
    return cell.starts_with("NV") ? std::stoi(cell.substr(2)) : 0;
  }
  // By the accelerator, else by the number of links: 18 on Hopper and Blackwell, 12 on A100, 6 on V100.
  [[nodiscard]] std::string nvlink_of(int links) const {
    if (options_.figures != nullptr && !options_.figures->scale_up_link.empty())
      return options_.figures->scale_up_link;
    return links > 12 ? "nvlink4" : links > 6 ? "nvlink3" : "nvlink2";
  }
  [[nodiscard]] std::string pcie() const {
    const bool known = options_.figures != nullptr && !options_.figures->pcie_link.empty();
    return known ? options_.figures->pcie_link : "pcie5-x16";
  }

  // If the count is the same everywhere, and too large for separate links to all others, it is an NVSwitch.
  void nvlinks() {
    std::vector<std::size_t> gpus;
    for (std::size_t i = 0; i < m_.names.size(); ++i)
      if (m_.is_gpu(i)) gpus.push_back(i);
    std::set<int> counts;
    for (const std::size_t a : gpus)
      for (const std::size_t b : gpus)
        if (a != b) counts.insert(bonded(m_.cell(a, b)));
    const int most = counts.empty() ? 0 : *counts.rbegin();
    if (most == 0) return;
    const Accelerator* figures = options_.figures;
    const int own = figures != nullptr && figures->nvlinks > 0 ? figures->nvlinks : kMostNvlinks;
    if (most > own)
      fail(options_, fmt::format("NV{}: an accelerator has {} NVLinks", most, own),
           "the number of links between two GPUs");
    for (const std::size_t a : gpus)
      for (const std::size_t b : gpus)
        if (bonded(m_.cell(a, b)) != bonded(m_.cell(b, a)))
          fail(options_,
               fmt::format("{} to {} is {}, back it is {}", m_.names[b], m_.names[a], m_.cell(a, b),
                           m_.cell(b, a)),
               "the matrix is the same both ways");
    if (figures == nullptr)
      result_.findings.push_back(fmt::format(
          "the NVLink generation follows from the count: {} taken for {} links", nvlink_of(most), most));
    if (counts.size() == 1 && most * (static_cast<int>(gpus.size()) - 1) > own) {
      // NVSwitches reduce from Hopper's on.
      result_.spec.nvlink_sharp = figures != nullptr ? figures->compute_capability >= 90 : most > 12;
      device("nvswitch0", "nvswitch");
      for (const std::size_t g : gpus) link(names_[g], "nvswitch0", nvlink_of(most), most);
      return;
    }
    for (const std::size_t a : gpus)
      for (const std::size_t b : gpus)
        if (a < b && bonded(m_.cell(a, b)) > 0)
          link(names_[a], names_[b], nvlink_of(most), bonded(m_.cell(a, b)));
  }

  const Matrix& m_;
  const ImportOptions& options_;
  Imported result_;
  std::vector<int> socket_;
  std::vector<std::string> names_;
};

}  // namespace

Imported read_nvidia_smi(std::string_view text, const ImportOptions& options) {
  const Matrix matrix = parse(std::string(text), options);
  return Builder(matrix, options).build();
}

std::string detect_format(std::string_view text) {
  const auto has = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
  if (has("<system")) return "nccl";
  if (has("<topology")) return "hwloc";
  if (has("switchguid=") || has("caguid=")) return "ibnet";
  if (has("GPU0") && (has("PIX") || has("PXB") || has("PHB") || has("SYS") || has("NV") || has("NODE")))
    return "smi";
  return {};
}

}  // namespace topsim::topology

// Cells: X, NV<n> (n bonded NVLinks), PIX and PXB (PCIe switches between), PHB (the host bridge), NODE
// (several host bridges of a NUMA node), SYS (the link between sockets). Legend: nvidia-smi topo -m.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "sim/base/error.hpp"
#include "topology/import/box.hpp"
#include "topology/import/import.hpp"
#include "topology/import/nvidia_smi_matrix.hpp"

namespace topsim::topology::smi {
namespace {

using Rows = std::vector<Row>;

int bonded(const std::string& cell) {
  return cell.starts_with("NV") ? std::stoi(cell.substr(2)) : 0;
}

void join(std::vector<int>& group, int a, int b) {
  std::replace(group.begin(), group.end(), std::max(a, b), std::min(a, b));
}

// Groups of rows that are connected by cells of which `among` is true.
template <class Among>
std::vector<int> groups(const Rows& rows, Among&& among) {
  std::vector<int> group(rows.size());
  std::iota(group.begin(), group.end(), 0);
  for (std::size_t a = 0; a < rows.size(); ++a)
    for (std::size_t b = 0; b < rows.size(); ++b)
      if (a != b && among(rows[a].cells[b])) join(group, group[a], group[b]);
  return group;
}

// For an unnamed accelerator: as many as Hopper and Blackwell have.
constexpr int kMostNvlinks = 18;

class Builder {
 public:
  Builder(const Rows& rows, const ImportOptions& options) : rows_(rows), options_(options) {}

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
  // connection between them. Of these the cells decide: in a container, all GPUs are near the CPUs that it
  // may use. If nothing is stated, all rows share one.
  void sockets() {
    socket_ = groups(rows_, [](const std::string& c) { return c[0] == 'P' || c == "NODE"; });
    bool told = false;
    std::string overruled;
    for (std::size_t a = 0; a < rows_.size(); ++a) {
      told |= !rows_[a].affinity.empty();
      told = told || std::any_of(rows_[a].cells.begin(), rows_[a].cells.end(), [](const std::string& c) {
               return c[0] == 'P' || c == "NODE" || c == "SYS";
             });
      for (std::size_t b = 0; b < a && !rows_[a].affinity.empty(); ++b) {
        if (rows_[a].affinity != rows_[b].affinity || socket_[a] == socket_[b]) continue;
        if (!are_apart(socket_[a], socket_[b]))
          join(socket_, socket_[a], socket_[b]);
        else if (overruled.empty())
          overruled = fmt::format("{} and {} are near the same CPUs ({}) and SYS apart", rows_[b].name,
                                  rows_[a].name, rows_[a].affinity);
      }
    }
    if (!told && socket_.size() > 1) {
      std::fill(socket_.begin(), socket_.end(), 0);
      result_.findings.push_back("the sockets are not told: one is assumed");
    }
    if (!overruled.empty())
      result_.findings.push_back(overruled +
                                 ": different sockets are assumed (a container shows the CPUs it may use)");
    std::map<int, int> number;
    for (int& s : socket_) s = number.emplace(s, static_cast<int>(number.size())).first->second;
    for (std::size_t s = 0; s < number.size(); ++s) device(fmt::format("cpu{}", s), "cpu");
    for (std::size_t a = 0; a < number.size(); ++a)
      for (std::size_t b = a + 1; b < number.size(); ++b)
        link(fmt::format("cpu{}", a), fmt::format("cpu{}", b), "upi-spr", 4);
    if (number.size() > 1)
      result_.findings.push_back(
          "the sockets' link is not told: four-link UPI of Sapphire Rapids is assumed");
    for (std::size_t i = 0; i < rows_.size(); ++i) tell_lonely(i);
  }

  [[nodiscard]] bool are_apart(int one, int other) const {
    for (std::size_t a = 0; a < rows_.size(); ++a)
      for (std::size_t b = 0; b < rows_.size(); ++b)
        if (socket_[a] == one && socket_[b] == other && rows_[a].cells[b] == "SYS") return true;
    return false;
  }

  // A NIC that the system places nowhere is SYS from everything, like one on a socket without GPUs.
  void tell_lonely(std::size_t nic) {
    for (std::size_t i = 0; i < rows_.size(); ++i)
      if (socket_[i] == socket_[nic] && (rows_[i].is_gpu() || i < nic)) return;
    result_.findings.push_back(fmt::format("{} is SYS from every GPU: it gets a socket of its own, cpu{}",
                                           rows_[nic].name, socket_[nic]));
  }

  void devices() {
    const std::vector<int> bridge =
        groups(rows_, [](const std::string& c) { return c == "PIX" || c == "PXB"; });
    std::map<int, int> members, number;
    for (const int b : bridge) ++members[b];
    int gpus = 0, nics = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const bool gpu = rows_[i].is_gpu();
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

  // By the accelerator, else by the number of a GPU's links: 18 on Hopper and Blackwell, 12 on A100, 6 on
  // V100.
  [[nodiscard]] std::string nvlink_of(int links) const {
    if (options_.figures != nullptr && !options_.figures->scale_up_link.empty())
      return options_.figures->scale_up_link;
    return links > 12 ? "nvlink4" : links > 6 ? "nvlink3" : "nvlink2";
  }
  [[nodiscard]] std::string pcie() const {
    const bool known = options_.figures != nullptr && !options_.figures->pcie_link.empty();
    return known ? options_.figures->pcie_link : "pcie5-x16";
  }

  // GPUs that NVLinks join are wired one by one, or through NVSwitches if a row has more links than a GPU.
  void nvlinks() {
    int most = 0;
    for (std::size_t a = 0; a < rows_.size(); ++a)
      for (std::size_t b = 0; b < rows_.size(); ++b) {
        const std::string &there = rows_[a].cells[b], &back = rows_[b].cells[a];
        most = std::max(most, bonded(there));
        if (bonded(there) > own_links())
          fail(rows_[a].line, fmt::format("{}: an accelerator has {} NVLinks", there, own_links()),
               options_.figures != nullptr ? "is --gpu the right one?" : "NV18 joins GPUs by 18 links");
        if (bonded(there) != bonded(back))
          fail(rows_[a].line,
               fmt::format("{} to {} is {}, back it is {}", rows_[a].name, rows_[b].name, there, back),
               "the matrix is the same both ways");
      }
    if (most == 0) return;
    int row = 0;
    for (std::size_t gpu = 0; gpu < rows_.size(); ++gpu) row = std::max(row, links_of(gpu));
    links_ = row > own_links() ? most : row;
    if (options_.figures == nullptr) tell_generation(most);
    const std::vector<int> group = groups(rows_, [](const std::string& c) { return bonded(c) > 0; });
    std::map<int, std::vector<std::size_t>> joined;
    for (std::size_t i = 0; i < rows_.size(); ++i)
      if (rows_[i].is_gpu()) joined[group[i]].push_back(i);
    int switches = 0;
    std::vector<std::string> alone;
    for (const auto& [number, gpus] : joined) {
      if (gpus.size() == 1) alone.push_back(rows_[gpus.front()].name);
      const bool switched =
          std::any_of(gpus.begin(), gpus.end(), [&](std::size_t gpu) { return links_of(gpu) > own_links(); });
      if (switched)
        through_switches(gpus, fmt::format("nvswitch{}", switches++), most);
      else
        one_by_one(gpus);
    }
    if (!alone.empty())
      result_.findings.push_back(
          fmt::format("{} without NVLink, which others have: {}; copies go over PCIe. Are the links up "
                      "(nvidia-smi nvlink -s)?",
                      alone.size() == 1 ? "a GPU is" : "GPUs are", fmt::join(alone, ", ")));
  }

  // Four GPUs with six links a pair are an HGX H100 of four or GH200s (18 links each, no NVSwitch), or four
  // of the V100s of a DGX-2, which show their six links to the NVSwitches in every cell.
  void tell_generation(int most) {
    constexpr int kVolta = 6;
    const bool either = most == kVolta && links_ > kVolta;
    result_.findings.push_back(fmt::format(
        "the NVLink generation follows from the count: {} taken for {} link{} of a GPU{}", nvlink_of(links_),
        links_, links_ == 1 ? "" : "s",
        either
            ? fmt::format(", {} to each other one; V100s on NVSwitches look the same: --gpu says which", most)
            : ""));
  }

  // Two GPUs on NVSwitches have as many links between them as the one with fewer.
  void through_switches(const std::vector<std::size_t>& gpus, const std::string& name, int most) {
    if (options_.figures == nullptr) result_.spec.nvlink_sharp = links_ > 12;  // Hopper's reduce
    device(name, "nvswitch");
    std::map<int, std::vector<std::string>> by_links;
    for (const std::size_t gpu : gpus) {
      int links = 0;
      for (const std::string& cell : rows_[gpu].cells) links = std::max(links, bonded(cell));
      link(names_[gpu], name, nvlink_of(links_), links);
      by_links[links].push_back(rows_[gpu].name);
    }
    by_links.erase(std::prev(by_links.end()));
    for (const auto& [links, some] : by_links)
      result_.findings.push_back(
          fmt::format("{} of {} NVLinks to the NVSwitches: {}. Are the others up (nvidia-smi nvlink -s)?",
                      links, most, fmt::join(some, ", ")));
  }

  void one_by_one(const std::vector<std::size_t>& gpus) {
    for (const std::size_t a : gpus)
      for (const std::size_t b : gpus)
        if (const int links = bonded(rows_[a].cells[b]); a < b && links > 0)
          link(names_[a], names_[b], nvlink_of(links_), links);
  }

  [[nodiscard]] int own_links() const {
    const Accelerator* figures = options_.figures;
    return figures != nullptr && figures->nvlinks > 0 ? figures->nvlinks : kMostNvlinks;
  }
  [[nodiscard]] int links_of(std::size_t gpu) const {
    int sum = 0;
    for (const std::string& cell : rows_[gpu].cells) sum += bonded(cell);
    return sum;
  }
  [[noreturn]] void fail(int line, std::string message, std::string help) const {
    throw ConfigError(
        {Problem{{options_.name, line, 1, 1}, {}, std::move(message), {}, std::move(help), {}}});
  }

  const Rows& rows_;
  const ImportOptions& options_;
  Imported result_;
  int links_ = 0;  // of a GPU: those of its row, where these are cables, else as many as its largest cell
  std::vector<int> socket_;
  std::vector<std::string> names_;
};

}  // namespace
}  // namespace topsim::topology::smi

namespace topsim::topology {

Imported read_nvidia_smi(std::string_view text, const ImportOptions& options) {
  return smi::Builder(smi::read_matrix(text, options), options).build();
}

}  // namespace topsim::topology

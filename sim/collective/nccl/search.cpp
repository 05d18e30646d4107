#include "sim/collective/nccl/search.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <tuple>

#include "sim/base/stack.hpp"
#include "sim/collective/nccl/channel_builder.hpp"

namespace topsim::collective::nccl {
namespace {

// GB/s of one channel, in the order in which they are tried: inside one box and between boxes; before Hopper,
// Hopper, Blackwell.
constexpr std::array kIntra = {40.F, 30.F, 20.F, 18.F, 15.F, 12.F, 10.F, 9.F, 7.F, 6.F, 5.F, 4.F, 3.F};
constexpr std::array kInter = {48.F, 30.F, 28.F, 24.F, 20.F, 18.F, 15.F, 12.F,  10.F, 9.F,
                               7.F,  6.F,  5.F,  4.F,  3.F,  2.4F, 1.2F, 0.24F, 0.12F};
constexpr std::array kIntra90 = {60.F, 50.F, 40.F, 30.F, 24.F, 20.F, 15.F, 12.F, 11.F, 6.F, 3.F};
constexpr std::array kInter90 = {48.F, 45.F, 42.F, 40.F, 30.F, 24.F, 22.F,  20.F, 17.5F,
                                 15.F, 12.F, 6.F,  3.F,  2.4F, 1.2F, 0.24F, 0.12F};
constexpr std::array kIntra100 = {90.F, 80.F, 70.F, 60.F, 50.F, 45.F, 40.F, 30.F, 24.F, 20.F, 19.F, 18.F};
constexpr std::array kInter100 = {96.F, 86.F,  80.F, 48.F, 45.1F, 42.F, 40.F, 30.F, 24.F,  22.F,
                                  20.F, 17.5F, 15.F, 12.F, 6.F,   3.F,  2.4F, 1.2F, 0.24F, 0.12F};

constexpr std::int64_t kTotalBudget = 1 << 19;  // visits over all attempts
constexpr int kBudget = 1 << 14;                // of one attempt
constexpr int kSameChannelsBudget = 1 << 8;

std::span<const float> ladder(const System& system) {
  const int capability = system.min_compute_capability();
  if (!system.inter()) {
    if (capability >= 100) return kIntra100;
    if (capability >= 90) return kIntra90;
    return kIntra;
  }
  if (capability >= 100) return kInter100;
  if (capability >= 90) return kInter90;
  return kInter;
}

PathType next(PathType type) {
  return static_cast<PathType>(static_cast<int>(type) + 1);
}

// Best and worst path between GPUs, or from GPUs to NICs.
std::pair<PathType, PathType> range(const System& system, bool to_nets) {
  PathType best = PathType::sys, worst = PathType::loc;
  for (int g = 0; g < system.gpus(); ++g)
    for (int other = 0; other < (to_nets ? system.nets() : system.gpus()); ++other) {
      if (!to_nets && g == other) continue;
      const PathType type = to_nets ? system.gpu_to_net(g, other).type : system.gpu_to_gpu(g, other).type;
      best = std::min(best, type);
      worst = std::max(worst, type);
    }
  return {best, worst};
}

// Two slow channels keep more transfers in flight than one fast one.
void duplicate(ChannelGraph& graph, int compute_capability, int max_channels) {
  if (graph.count() == 0 || graph.pattern == Pattern::nvls || graph.bandwidth_intra < 25) return;
  if (compute_capability > 80 && graph.bandwidth_intra < 50 && graph.count() > 4) return;
  const int before = graph.count(), after = std::min(2 * before, max_channels);
  for (int c = 0; c < after - before; ++c)
    graph.channels.push_back(graph.channels[static_cast<std::size_t>(c)]);
  const auto share = static_cast<float>((after + before - 1) / before);
  graph.bandwidth_intra /= share;
  graph.bandwidth_inter /= share;
}

// In a box too large to search: GPUs in their order, over scale-up links where all have some. As many
// channels as a GPU's links carry at the speed that leaves the least of them idle, as a search behind a
// switch finds.
ChannelGraph unsearched(const System& system, Pattern pattern, const Channel& channel, int max_channels) {
  ChannelGraph graph;
  graph.pattern = pattern;
  graph.channels = {channel};
  graph.bandwidth_intra = graph.bandwidth_inter = system.total_bandwidth();
  graph.type_intra = system.scale_up() ? PathType::nvl : PathType::sys;
  if (!system.has_nvswitch()) return graph;
  int most = 0;
  for (const float speed : ladder(system)) {
    const int count = std::min(max_channels, static_cast<int>(system.total_bandwidth() / speed));
    if (static_cast<float>(count) * speed <= static_cast<float>(most) * graph.bandwidth_intra) continue;
    most = count;
    graph.bandwidth_intra = graph.bandwidth_inter = speed;
  }
  if (most > 0) graph.channels.assign(static_cast<std::size_t>(most), channel);
  duplicate(graph, system.min_compute_capability(), max_channels);
  return graph;
}

// If nothing fits: GPUs in their order, with a speed that marks this case.
ChannelGraph simple_order(const System& system, Pattern pattern, int max_channels) {
  ChannelGraph graph;
  graph.pattern = pattern;
  Channel channel;
  for (int g = 0; g < system.gpus(); ++g) channel.gpus.push_back(g);
  if (!system.searchable()) return unsearched(system, pattern, channel, max_channels);
  graph.bandwidth_intra = kNoChannel;
  graph.type_intra = PathType::sys;
  const std::vector<int> enter = system.nets_of_gpu(0), leave = system.nets_of_gpu(system.gpus() - 1);
  if (system.inter() && !enter.empty() && !leave.empty()) {
    channel.enter_net = enter.front();
    channel.leave_net = leave.front();
    graph.bandwidth_inter = kNoChannel;
    graph.type_inter = PathType::sys;
  } else {
    graph.type_inter = PathType::dis;
  }
  graph.channels = {channel};
  return graph;
}

// The order in which the constraints of an attempt are relaxed, and how they are tightened again afterwards.
class Search {
 public:
  Search(const System& system, const SearchRequest& request);
  ChannelGraph run();

 private:
  void first_pass();
  bool relax(int left);
  void second_pass();
  int attempt();
  [[nodiscard]] std::size_t first_speed_below(float limit) const;
  [[nodiscard]] bool saturated() const {
    return static_cast<float>(best_.count()) * best_.bandwidth_inter >= system_.total_bandwidth();
  }

  const System& system_;
  SearchRequest request_;
  ChannelBuilder builder_;
  std::span<const float> speeds_;
  Attempt attempt_;
  ChannelGraph best_;
  std::size_t speed_ = 0;
  std::int64_t total_budget_ = kTotalBudget;
  PathType min_intra_ = PathType::loc, max_intra_ = PathType::sys;
  PathType min_inter_ = PathType::pix, max_inter_ = PathType::sys;
  bool may_cross_nics_ = false, through_amd_ = false;
  int capability_ = 0;
};

Search::Search(const System& system, const SearchRequest& request)
    : system_(system),
      request_(request),
      builder_(system, request.in_network_reduction),
      speeds_(ladder(system)),
      through_amd_(system.cpu_vendor() == CpuVendor::amd),
      capability_(system.min_compute_capability()) {
  if (system.gpus() > 1) std::tie(min_intra_, max_intra_) = range(system, false);
  if (system.inter()) {
    std::tie(min_inter_, max_inter_) = range(system, true);
    max_intra_ = max_inter_;
  }
  if (capability_ < 90) max_inter_ = PathType::sys;  // balanced trees may have to return over the sockets
  may_cross_nics_ =
      system.nets() > 1 && (request.pattern == Pattern::ring || request.pattern == Pattern::balanced_tree);
  if (system.gpus() == 1 && request_.pattern != Pattern::ring) request_.pattern = Pattern::tree;
  if (request.pattern == Pattern::nvls) {
    request_.max_channels = std::min(32, system.gpus());
    if (!system.inter()) request_.min_channels = request_.max_channels;
  }
  if (request.pattern == Pattern::collnet_direct) request_.max_channels = std::min(8, system.gpus());
  // With two NVLink islands trees will need two channels, so rings get two as well.
  if (request.pattern == Pattern::ring && system.split_nvlink() && request_.max_channels >= 2)
    request_.min_channels = std::max(2, request_.min_channels);
  best_.pattern = request_.pattern;
  best_.type_intra = min_intra_;
  best_.type_inter = min_inter_;
}

std::size_t Search::first_speed_below(float limit) const {
  std::size_t i = 0;
  while (i + 1 < speeds_.size() && speeds_[i] > limit) ++i;
  return i;
}

int Search::attempt() {
  const int budget = attempt_.same_channels ? kSameChannelsBudget : kBudget;
  total_budget_ -= budget;
  return builder_.improve(attempt_, budget, best_);
}

// Relaxes one constraint. False: every speed has been tried.
bool Search::relax(int left) {
  const bool over_amd_sockets = through_amd_ && attempt_.type_intra == PathType::sys;
  if (attempt_.same_channels && !over_amd_sockets) {
    attempt_.same_channels = false;
    return true;
  }
  attempt_.same_channels = request_.pattern != Pattern::nvls;
  total_budget_ = left != ChannelBuilder::kPerfect ? total_budget_ + left : kTotalBudget;
  if (total_budget_ < 0 && best_.count() > 0) return false;

  if (capability_ >= 90 && attempt_.pattern == Pattern::balanced_tree) {
    attempt_.pattern = Pattern::tree;
    return true;
  }
  attempt_.pattern = best_.pattern;

  const PathType worst_intra = system_.inter() ? attempt_.type_inter : max_intra_;
  if (attempt_.type_intra < worst_intra && (best_.count() == 0 || attempt_.type_intra < best_.type_intra)) {
    attempt_.type_intra = next(attempt_.type_intra);
    if (attempt_.type_intra < PathType::dis) return true;
  }
  attempt_.type_intra = min_intra_;

  if (system_.inter() && attempt_.type_inter < max_inter_ &&
      (best_.count() == 0 || attempt_.type_inter < best_.type_inter || attempt_.type_inter < PathType::pxn)) {
    attempt_.type_inter = next(attempt_.type_inter);
    if (attempt_.type_inter < PathType::dis) return true;
  }
  attempt_.type_inter = min_inter_;

  if (may_cross_nics_ && attempt_.cross_nic == 0 &&
      (best_.pattern == Pattern::ring || best_.pattern == Pattern::balanced_tree)) {
    attempt_.cross_nic = 2;
    return true;
  }
  attempt_.cross_nic = 0;

  if (speed_ + 1 < speeds_.size() &&
      (best_.count() == 0 || speeds_[speed_ + 1] / best_.bandwidth_inter > 0.49F)) {
    attempt_.intra = attempt_.inter = speeds_[++speed_];
    return true;
  }
  return false;
}

void Search::first_pass() {
  float total = system_.total_bandwidth();
  // Patterns other than rings leave one GPU's NVLinks idle in each channel.
  if (system_.gpus() > 1 && request_.pattern != Pattern::ring)
    total *= static_cast<float>(system_.gpus()) / static_cast<float>(system_.gpus() - 1);
  while (speed_ + 1 < speeds_.size() && (speeds_[speed_] > system_.max_bandwidth() ||
                                         speeds_[speed_] * static_cast<float>(request_.min_channels) > total))
    ++speed_;
  attempt_ = {.pattern = request_.pattern,
              .intra = speeds_[speed_],
              .inter = speeds_[speed_],
              .type_intra = min_intra_,
              .type_inter = min_inter_,
              .same_channels = request_.pattern != Pattern::nvls,
              .min_channels = request_.min_channels,
              .max_channels = request_.max_channels};
  for (;;) {
    const int left = attempt();
    if (left == ChannelBuilder::kPerfect || saturated() || !relax(left)) return;
  }
}

void Search::second_pass() {
  if (best_.count() == 0) return;
  attempt_ = {.pattern = best_.pattern,
              .type_intra = best_.type_intra,
              .type_inter = best_.type_inter,
              .cross_nic = best_.cross_nic,
              .same_channels = best_.same_channels,
              .min_channels = best_.count(),
              .max_channels = request_.max_channels};
  speed_ = first_speed_below(best_.bandwidth_inter);
  attempt_.intra = attempt_.inter = speeds_[speed_];
  for (int left = ChannelBuilder::kPerfect; left != 0 && speed_ > 0; left = attempt()) {
    if (best_.pattern == Pattern::ring) {
      attempt_.intra = attempt_.inter = speeds_[--speed_];
    } else if (best_.pattern == Pattern::nvls && attempt_.inter == best_.bandwidth_inter &&
               attempt_.inter < attempt_.intra * 2) {
      attempt_.min_channels = attempt_.max_channels = best_.count();
      attempt_.inter = speeds_[--speed_];
    } else if (attempt_.intra == best_.bandwidth_intra && attempt_.intra < attempt_.inter * 2) {
      attempt_.intra = speeds_[--speed_];
    } else {
      return;
    }
  }
}

ChannelGraph Search::run() {
  first_pass();
  duplicate(best_, capability_, request_.max_channels);
  second_pass();
  if (best_.count() == 0 && !request_.in_network_reduction && request_.pattern != Pattern::nvls)
    return simple_order(system_, request_.pattern, request_.max_channels);
  return best_;
}

// Visits of the builder under way at once: every GPU of every channel, and its turns to the NIC and to the
// first GPU.
int visits_at_once(const System& system, const SearchRequest& request) {
  const int channels = std::max(request.max_channels, request.pattern == Pattern::nvls ? 32 : 1);
  return std::min((system.gpus() + 3) * channels, kBudget + ChannelBuilder::kOrderAsWiredBudget);
}

// 576 GPUs in 26 channels nest 15,000 visits, for which the stack of a worker thread is too small.
void with_room_for(int visits, const std::function<void()>& run) {
  constexpr int kFew = 1 << 8;
  constexpr std::size_t kVisit = 8 << 10;  // bytes, with room for a sanitizer; 0.5 KiB in a release build
  if (visits <= kFew) return run();
  on_stack_of(static_cast<std::size_t>(visits) * kVisit, run);
}
}  // namespace

ChannelGraph search(const System& system, const SearchRequest& request) {
  if (!system.searchable() && request.pattern != Pattern::nvls)
    return simple_order(system, request.pattern, request.max_channels);
  // Reduction in the NVSwitch needs Hopper or later.
  if (request.pattern == Pattern::nvls &&
      (!system.searchable() || !system.has_nvswitch() || system.min_compute_capability() < 90)) {
    ChannelGraph none;
    none.pattern = Pattern::nvls;
    return none;
  }
  ChannelGraph found;
  with_room_for(visits_at_once(system, request), [&] { found = Search(system, request).run(); });
  return found;
}
}  // namespace topsim::collective::nccl

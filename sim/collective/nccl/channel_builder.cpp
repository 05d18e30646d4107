// One search with its way back: all moves change the same attempt, so they stay in one file.
#include "sim/collective/nccl/channel_builder.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "topology/import/nccl_assumptions.hpp"

namespace topsim::collective::nccl {
namespace {

// To thousandths of a GB/s, so that taking and giving back cancel exactly.
float rounded(float x) {
  const float thousandths = x * 1000;
  return static_cast<float>(static_cast<int>(thousandths + (thousandths < 0 ? -0.5F : 0.5F))) / 1000;
}

bool is_tree(Pattern pattern) {
  return pattern == Pattern::balanced_tree || pattern == Pattern::split_tree || pattern == Pattern::tree;
}

// Ports worth trying, preferred ones first: those of one GPU, or of all GPUs (gpu -1).
std::vector<int> ports_for(const System& system, int gpu, int worst_type) {
  std::vector<int> result;
  const auto append = [&](int n) {
    if (std::find(result.begin(), result.end(), n) == result.end()) result.push_back(n);
  };
  const int first = gpu < 0 ? 0 : gpu, last = gpu < 0 ? system.gpus() : gpu + 1;
  for (int g = first; g < last; ++g)
    for (const int n : system.nets_of_gpu(g)) append(n);
  for (int type = 0; type <= worst_type; ++type)
    for (int g = first; g < last; ++g)
      for (int n = 0; n < system.nets(); ++n)
        if (static_cast<int>(system.gpu_to_net(g, n).type) == type) append(n);
  return result;
}
}  // namespace

ChannelBuilder::ChannelBuilder(const System& system, bool in_network_reduction)
    : system_(system), in_network_reduction_(in_network_reduction) {
  const auto& edges = system.edges();
  for (std::size_t e = 0; e < edges.size(); ++e) {
    free_.push_back(edges[e].bandwidth);
    const auto back = std::find_if(edges.begin(), edges.end(), [&](const Edge& other) {
      return other.from == edges[e].to && other.to == edges[e].from && other.kind == edges[e].kind;
    });
    const Vertex& end = system.vertex(edges[e].to);
    wires_.push_back(
        {static_cast<std::size_t>(back - edges.begin()), edges[e].kind == EdgeKind::pci,
         end.kind == VertexKind::cpu && end.vendor == CpuVendor::intel,
         end.kind == VertexKind::gpu && end.compute_capability < 80 && end.compute_capability > 0});
  }
  for (int n = 0; n < system.nets(); ++n) net_free_.push_back(system.net(n).bandwidth);
  const auto gpus = static_cast<std::size_t>(system.gpus()), nets = static_cast<std::size_t>(system.nets());
  used_.resize(gpus);
  ranked_.resize(gpus * (nets + 1));
  ports_.resize((gpus + 1) * (static_cast<std::size_t>(PathType::dis) + 1));
}

int ChannelBuilder::improve(const Attempt& attempt, int budget, ChannelGraph& best) {
  attempt_ = attempt;
  best_ = &best;
  budget_ = budget;
  complete_ = 0;
  now_ = ChannelGraph{};
  now_.channels.assign(static_cast<std::size_t>(attempt.max_channels),
                       {std::vector<int>(static_cast<std::size_t>(system_.gpus()))});
  next_channel();
  return budget_;
}

void ChannelBuilder::next_channel() {
  const int last = system_.gpus() - 1;
  if (system_.inter()) {
    start_at_ports({attempt_.pattern == Pattern::ring         ? last
                    : attempt_.pattern == Pattern::split_tree ? 1
                                                              : 0,
                    -1});
  } else {
    start_inside({-1, attempt_.pattern == Pattern::ring ? last : -1});
  }
}

void ChannelBuilder::start_inside(Turns turns) {
  if (attempt_.pattern == Pattern::nvls) return enter(complete_, 0, turns, Order::free);
  if (complete_ == 0) {
    enter(0, 0, turns, Order::as_wired);
  } else {
    enter(now_.channels[static_cast<std::size_t>(complete_ - 1)].gpus.front(), 0, turns, Order::as_before);
  }
  if (attempt_.same_channels && complete_ > 0) return;
  for (int g = 0; g < system_.gpus(); ++g) enter(g, 0, turns, Order::free);
}

void ChannelBuilder::start_at_ports(Turns turns) {
  const bool heads = attempt_.pattern == Pattern::nvls || attempt_.pattern == Pattern::collnet_direct;
  const bool second_of_pair =
      attempt_.pattern == Pattern::ring && attempt_.cross_nic == 2 && complete_ % 2 == 1;
  const float speed = std::trunc(attempt_.inter);  // ports are reserved in whole GB/s
  const std::vector<int>& ports = ports_of(-1);
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const int port = ports[(static_cast<std::size_t>(complete_) + i) % ports.size()];
    if (in_network_reduction_ && !system_.net(port).in_network_reduction) continue;
    if (net_free_[static_cast<std::size_t>(port)] < speed) continue;
    if (second_of_pair && port != now_.channels[static_cast<std::size_t>(complete_ - 1)].leave_net) continue;
    current().enter_net = port;
    net_free_[static_cast<std::size_t>(port)] -= speed;
    bool found = false;
    if (heads) {
      found = start_head(port, turns, static_cast<int>(ports.size()));
    } else {
      start_chain(port, turns);
    }
    net_free_[static_cast<std::size_t>(port)] += speed;
    if (found) break;  // one pass over the ports finds a set of heads
  }
}

bool ChannelBuilder::start_head(int port, Turns turns, int ports) {
  const int head = system_.gpu_of_net(port);
  if (complete_ >= ports || head < 0) return false;
  for (int c = 0; c < complete_; ++c)
    if (now_.channels[static_cast<std::size_t>(c)].gpus.front() == head) return false;
  enter_from(system_.net_to_gpu(port, head), false, false, system_.gpu_to_net(head, port), head, 0, turns,
             Order::free);
  return true;
}

void ChannelBuilder::start_chain(int port, Turns turns) {
  const auto try_gpu = [&](int g, Order order) {
    enter_from(system_.net_to_gpu(port, g), false, false, system_.gpu_to_net(g, port), g, 0, turns, order);
  };
  if (complete_ > 0 && attempt_.same_channels)
    return try_gpu(now_.channels[static_cast<std::size_t>(complete_ - 1)].gpus.front(), Order::as_before);
  if (complete_ == 0 && !system_.has_nvswitch()) {
    // A first solution for the others to beat, outside the budget.
    const int budget = std::exchange(budget_, kOrderAsWiredBudget);
    try_gpu(0, Order::as_wired);
    budget_ = budget_ == kPerfect ? kPerfect : budget;
  }
  const int nearest = system_.gpu_of_net(port);
  if (nearest >= 0) try_gpu(nearest, Order::free);
  for (const int g : system_.gpus_near(port))
    if (g != nearest) try_gpu(g, Order::free);
}

bool ChannelBuilder::allowed(const Path& path, const Path& back, bool intra) const {
  const PathType worst = intra ? attempt_.type_intra : attempt_.type_inter;
  return path.type < PathType::dis && path.type <= worst &&
         (!is_tree(attempt_.pattern) || back.type <= worst);
}

void ChannelBuilder::enter_from(const Path& path, bool intra, bool from_gpu, const Path& back, int gpu,
                                int step, Turns turns, Order order) {
  const float speed = intra ? attempt_.intra : attempt_.inter;
  if (!allowed(path, back, intra) || !take(path, from_gpu, speed)) return;
  now_.hops += path.hops();
  enter(gpu, step, turns, order);
  now_.hops -= path.hops();
  give_back(path, from_gpu, speed);
}

void ChannelBuilder::enter(int gpu, int step, Turns turns, Order order) {
  const std::uint64_t channel = 1ULL << complete_;
  used_[static_cast<std::size_t>(gpu)] ^= channel;
  visit(gpu, step, turns, order);
  used_[static_cast<std::size_t>(gpu)] ^= channel;
}

const std::vector<int>& ChannelBuilder::ports_of(int gpu) {
  const auto types = static_cast<std::size_t>(PathType::dis) + 1;
  auto& ports =
      ports_[static_cast<std::size_t>(gpu + 1) * types + static_cast<std::size_t>(attempt_.type_inter)];
  if (!ports) ports = ports_for(system_, gpu, static_cast<int>(attempt_.type_inter));
  return *ports;
}

// Partners of a GPU, best first; with a port, those near that port come before others.
const std::vector<ChannelBuilder::Partner>& ChannelBuilder::ranked(int gpu, int port) {
  const int gpus = system_.gpus();
  auto& known = ranked_[static_cast<std::size_t>((port + 1) * gpus + gpu)];
  if (known) return *known;
  using Score = std::tuple<int, int, int, int, int, int>;
  std::vector<std::pair<Score, Partner>> scored;
  for (int i = 1; i < gpus; ++i) {
    const int g = (gpu + i) % gpus;
    const Path& path = system_.gpu_to_gpu(gpu, g);
    if (path.hops() == 0) continue;
    const Path* net = port >= 0 ? &system_.net_to_gpu(port, g) : nullptr;
    const int bandwidth = static_cast<int>(path.bandwidth);
    scored.emplace_back(Score{net != nullptr ? -static_cast<int>(net->bandwidth) : 0,
                              net != nullptr ? -static_cast<int>(system_.pci_bandwidth(g)) : 0,
                              net != nullptr ? net->hops() : 0, -bandwidth, path.hops(), i},
                        Partner{g, bandwidth, path.hops()});
  }
  std::sort(scored.begin(), scored.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  known.emplace();
  for (const auto& s : scored) known->push_back(s.second);
  return *known;
}

// net_order: 1 the next GPU leaves by the port, -1 a later GPU does, 0 no GPU has to.
template <class Go>
void ChannelBuilder::each_candidate(int gpu, int net_order, const Go& go) {
  const auto is_free = [&](int g) { return ((used_[static_cast<std::size_t>(g)] >> complete_) & 1U) == 0; };
  if (system_.has_nvswitch()) {
    // An NVSwitch serves few partners better than many, so only neighbours are tried.
    const int gpus = system_.gpus(), before = (gpu - 1 + gpus) % gpus, after = (gpu + 1) % gpus;
    const auto try_one = [&](int g) {
      if (g != gpu && is_free(g) && system_.gpu_to_gpu(gpu, g).hops() > 0) go(g);
    };
    const bool back_too =
        attempt_.pattern == Pattern::split_tree || attempt_.pattern == Pattern::balanced_tree;
    if (attempt_.pattern == Pattern::ring && before != after) try_one(before);
    try_one(after);
    if (back_too && before != after) try_one(before);
    return;
  }
  const std::vector<Partner>& partners =
      ranked(gpu, net_order != 0 ? now_.channels[static_cast<std::size_t>(complete_)].enter_net : -1);
  // The last GPU should be near the NIC: before its turn, the GPUs near the NIC come last.
  const Partner* first = nullptr;
  bool reversed = net_order == -1;
  for (const Partner& p : partners) {
    if (!reversed) break;
    if (!is_free(p.gpu)) continue;
    if (first == nullptr) first = &p;
    reversed = p.bandwidth == first->bandwidth && p.hops == first->hops;
  }
  for (std::size_t i = 0; i < partners.size(); ++i) {
    const int g = partners[reversed ? partners.size() - 1 - i : i].gpu;
    if (is_free(g)) go(g);
  }
}

void ChannelBuilder::visit(int gpu, int step, Turns turns, Order order) {
  if (budget_ <= 0) return;
  --budget_;
  const int gpus = system_.gpus();
  if (step == gpus) return channel_complete();
  current().gpus[static_cast<std::size_t>(step)] = gpu;
  if (step == turns.to_net) return leave_box(gpu, step, turns, order);
  if (attempt_.pattern == Pattern::nvls) return reduce_at_switch(gpu);
  if (attempt_.pattern == Pattern::collnet_direct) return exchange_with_all(gpu);

  const auto go_to = [&](int next, int next_step, Turns next_turns, bool closing) {
    const Path& path = system_.gpu_to_gpu(gpu, next);
    const Path& back = system_.gpu_to_gpu(next, gpu);
    if (!closing) return enter_from(path, true, true, back, next, next_step, next_turns, order);
    if (!allowed(path, back, true) || !take(path, true, attempt_.intra)) return;
    now_.hops += path.hops();
    visit(next, next_step, next_turns, order);
    now_.hops -= path.hops();
    give_back(path, true, attempt_.intra);
  };
  if (step < gpus - 1) {
    const auto go_on = [&](int next) { go_to(next, step + 1, turns, false); };
    if (order == Order::as_wired) {
      go_on(step + 1);
    } else if (order == Order::as_before) {
      go_on(now_.channels[static_cast<std::size_t>(complete_ - 1)].gpus[static_cast<std::size_t>(step + 1)]);
    } else {
      each_candidate(gpu, turns.to_net == -1 ? 0 : turns.to_net == step + 1 ? 1 : -1, go_on);
    }
  } else if (step == turns.to_first) {
    go_to(current().gpus.front(), step + 1, {turns.to_net, -1}, true);
  } else {
    visit(gpu, gpus, {}, order);
  }
}

bool ChannelBuilder::may_leave_by(int port, int step) const {
  const Channel& channel = now_.channels[static_cast<std::size_t>(complete_)];
  if (attempt_.pattern == Pattern::tree && port != channel.enter_net) return false;
  if (attempt_.pattern == Pattern::ring && attempt_.cross_nic == 2) {
    if (complete_ % 2 == 1 && port != now_.channels[static_cast<std::size_t>(complete_ - 1)].enter_net)
      return false;
  } else if (attempt_.cross_nic == 0 && port != channel.enter_net) {
    return false;
  }
  return attempt_.pattern != Pattern::balanced_tree || step == 0 || port == channel.leave_net;
}

void ChannelBuilder::leave_box(int gpu, int step, Turns turns, Order order) {
  const bool balanced = attempt_.pattern == Pattern::balanced_tree;
  const float speed =
      balanced ? attempt_.inter / 2 : attempt_.inter;  // each of the first two GPUs carries half
  for (const int port : ports_of(gpu)) {
    if (!may_leave_by(port, step)) continue;
    const Path& path = system_.gpu_to_net(gpu, port);
    if (!allowed(path, system_.net_to_gpu(port, gpu), false) || !take(path, true, speed)) continue;
    now_.hops += path.hops();
    current().leave_net = port;
    visit(gpu, step, {balanced && step == 0 ? 1 : -1, turns.to_first}, order);
    now_.hops -= path.hops();
    give_back(path, true, speed);
  }
}

void ChannelBuilder::reduce_at_switch(int head) {
  // Every GPU sends its share of the head's data up and gets the result down; the head moves twice as much.
  struct Taken {
    const Path* path;
    bool from_gpu;
    float speed;
  };
  std::vector<Taken> taken;
  bool room = true;
  for (const bool up : {false, true})
    for (int g = 0; g < system_.gpus() && room; ++g) {
      const Path& path = up ? system_.gpu_to_nvswitch(g) : system_.nvswitch_to_gpu(g);
      const float speed = attempt_.intra * (g == head ? 2.0F : 1.0F);
      room = path.type < PathType::dis && (g == head || path.type <= attempt_.type_intra) &&
             take(path, up, speed);
      if (room) taken.push_back({&path, up, speed});
    }
  if (room) visit(head, system_.gpus(), {}, Order::free);
  for (const Taken& t : taken) give_back(*t.path, t.from_gpu, t.speed);
}

void ChannelBuilder::exchange_with_all(int head) {
  const float speed = attempt_.intra / static_cast<float>(system_.gpus() - 1);
  std::vector<const Path*> taken;
  bool room = true;
  for (const bool outwards : {true, false})
    for (int g = 0; g < system_.gpus() && room; ++g) {
      const Path& path = outwards ? system_.gpu_to_gpu(head, g) : system_.gpu_to_gpu(g, head);
      room = path.type < PathType::dis && take(path, true, speed);
      if (room) taken.push_back(&path);
    }
  if (room) {
    std::vector<int>& order = current().gpus;
    for (int g = 0, step = 1; g < system_.gpus(); ++g)
      if (g != head) order[static_cast<std::size_t>(step++)] = g;
    visit(head, system_.gpus(), {}, Order::free);
  }
  for (const Path* path : taken) give_back(*path, true, speed);
}

void ChannelBuilder::channel_complete() {
  ++complete_;
  if (better()) {
    *best_ = now_;
    best_->channels.resize(static_cast<std::size_t>(complete_));
    best_->pattern = attempt_.pattern;
    best_->bandwidth_intra = attempt_.intra;
    best_->bandwidth_inter = attempt_.inter;
    best_->type_intra = attempt_.type_intra;
    best_->type_inter = attempt_.type_inter;
    best_->cross_nic = attempt_.cross_nic;
    best_->same_channels = attempt_.same_channels;
    if (complete_ == attempt_.max_channels) budget_ = kPerfect;
  }
  if (complete_ < attempt_.max_channels) next_channel();
  --complete_;
}

bool ChannelBuilder::better() const {
  if (complete_ < attempt_.min_channels) return false;
  const auto mine = static_cast<float>(complete_), other = static_cast<float>(best_->count());
  if (attempt_.pattern == Pattern::nvls)  // more heads spread the load more evenly
    return (complete_ > best_->count() && complete_ <= system_.gpus()) ||
           mine * attempt_.inter > other * best_->bandwidth_inter;
  if (mine * attempt_.intra != other * best_->bandwidth_intra)
    return mine * attempt_.intra > other * best_->bandwidth_intra;
  return attempt_.pattern == best_->pattern && attempt_.cross_nic == best_->cross_nic &&
         now_.hops < best_->hops;
}

// Reserves bandwidth link by link. Returns how many links had room; those before the first full one stay
// reserved.
std::size_t ChannelBuilder::walk(const Path& path, std::size_t links, bool from_gpu, float speed) {
  float pci_speed = speed;
  if (path.type == PathType::phb && from_gpu)
    for (const int e : path.edges)
      if (wires_[static_cast<std::size_t>(e)].into_intel)
        pci_speed = speed * topology::nccl::kIntelPeerOverhead;
  for (std::size_t i = 0; i < links; ++i) {
    const auto e = static_cast<std::size_t>(path.edges[i]);
    const Wire& wire = wires_[e];
    const float forward = wire.pci ? pci_speed : speed;
    // Before Ampere, a GPU that receives from a NIC also uses an eighth of the opposite direction.
    const float backward = wire.into_old_gpu && !from_gpu ? forward / 8 : 0;
    float& back = free_[wire.reverse];
    if (free_[e] < forward || (backward != 0 && back < backward)) return i;
    free_[e] = rounded(free_[e] - forward);
    if (backward != 0) back = rounded(back - backward);
  }
  return links;
}

bool ChannelBuilder::take(const Path& path, bool from_gpu, float speed) {
  const std::size_t taken = walk(path, path.edges.size(), from_gpu, speed);
  if (taken == path.edges.size()) return true;
  walk(path, taken, from_gpu, -speed);
  return false;
}
}  // namespace topsim::collective::nccl

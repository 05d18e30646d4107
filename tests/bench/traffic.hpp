// The traffic that the benchmarks run on topsim and on SimGrid alike: a two-tier fabric and message schedules
// that start each message when what it waits for has arrived.
//
// Fabric (that of the published study of SimGrid in the design notes): one 50 GB/s NIC a rank, 32 ranks a
// leaf, 16 spines, 100 GB/s between leaf and spine; in a hierarchy 8 ranks a node with 450 GB/s of NVLink
// each. Spine by destination modulo.
//
// A schedule has paths (known before the run, as SimGrid needs them) and
//     begin(start): the first messages;  done(tag, start): a message has arrived
// where start(tag, bytes, path).
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace topsim::bench {

struct Paths {
  std::vector<double> capacities;  // bytes/s by link
  std::vector<std::uint32_t> links, begin{0};
  [[nodiscard]] std::span<const std::uint32_t> operator[](std::size_t path) const {
    return {links.data() + begin[path], links.data() + begin[path + 1]};
  }
  [[nodiscard]] std::size_t size() const { return begin.size() - 1; }
};

class Fabric {
 public:
  explicit Fabric(std::uint32_t ranks) : ranks_(ranks), leaves_((ranks + kLeaf - 1) / kLeaf) {
    paths.capacities.assign(2 * ranks_, 50e9);
    paths.capacities.resize(paths.capacities.size() + 2 * leaves_ * kSpines, 100e9);
    paths.capacities.resize(paths.capacities.size() + 2 * ranks_, 450e9);
  }
  // NIC, [leaf, spine, leaf,] NIC. Returns the path's number.
  std::uint32_t over_fabric(std::uint32_t from, std::uint32_t to) {
    const std::uint32_t spine = to % kSpines, out = from / kLeaf, in = to / kLeaf;
    paths.links.push_back(from);
    if (out != in) {
      paths.links.push_back(2 * ranks_ + out * kSpines + spine);
      paths.links.push_back(2 * ranks_ + (leaves_ + in) * kSpines + spine);
    }
    paths.links.push_back(ranks_ + to);
    return close();
  }
  std::uint32_t over_nvlink(std::uint32_t from, std::uint32_t to) {
    const std::uint32_t first = 2 * ranks_ + 2 * leaves_ * kSpines;
    paths.links.push_back(first + from);
    paths.links.push_back(first + ranks_ + to);
    return close();
  }
  Paths paths;

 private:
  static constexpr std::uint32_t kLeaf = 32, kSpines = 16;
  std::uint32_t close() {
    paths.begin.push_back(static_cast<std::uint32_t>(paths.links.size()));
    return static_cast<std::uint32_t>(paths.size() - 1);
  }
  std::uint32_t ranks_, leaves_;
};

// Sizes +-20 % by message, or all equal; a function of the message alone, so that both simulators see the
// same. A hash of its own, not base/mix.hpp's: the tables in README.md were measured with these sizes.
struct Sizes {
  double bytes;
  bool jitter;
  [[nodiscard]] double operator()(std::uint64_t tag) const {
    if (!jitter) return bytes;
    std::uint64_t h = (tag + 1) * 0x9e3779b97f4a7c15ull;
    h = (h ^ (h >> 31)) * 0xbf58476d1ce4e5b9ull;
    h ^= h >> 29;
    return std::floor(bytes * (0.8 + 0.4 * static_cast<double>(h >> 11) * 0x1p-53));
  }
};

// Chains of rings: every rank goes through its phases (a ring and a number of steps each); it sends step k
// when it has sent step k-1 and received what its predecessor sent in step k-1.
class Rings {
 public:
  struct Phase {
    std::vector<std::uint32_t> path, next;  // by rank: path to and number of the rank it sends to
    std::uint32_t steps;
  };
  Rings(Fabric fabric, std::vector<Phase> phases, Sizes sizes)
      : paths_(std::move(fabric.paths)),
        phases_(std::move(phases)),
        sizes_(sizes),
        ranks_(phases_[0].next.size()) {
    for (std::uint32_t phase = 0; phase < phases_.size(); ++phase)
      steps_.resize(steps_.size() + phases_[phase].steps, phase);
    sent_.resize(ranks_), arrived_.resize(ranks_), next_.resize(ranks_);
  }
  [[nodiscard]] const Paths& paths() const { return paths_; }
  template <class Start>
  void begin(Start&& start) {
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) send(rank, start);
  }
  template <class Start>
  void done(std::uint64_t tag, Start&& start) {
    const auto rank = static_cast<std::uint32_t>(tag % ranks_);
    const std::uint32_t to = phases_[steps_[tag / ranks_]].next[rank];
    ++sent_[rank], ++arrived_[to];
    send(rank, start), send(to, start);
  }

 private:
  template <class Start>
  void send(std::uint32_t rank, Start&& start) {
    const std::uint32_t step = next_[rank];
    if (step == steps_.size() || sent_[rank] < step || arrived_[rank] < step) return;
    ++next_[rank];
    const std::uint64_t tag = step * ranks_ + rank;
    start(tag, sizes_(tag), phases_[steps_[step]].path[rank]);
  }
  Paths paths_;
  std::vector<Phase> phases_;
  Sizes sizes_;
  std::uint64_t ranks_;
  std::vector<std::uint32_t> steps_;                  // phase of each step
  std::vector<std::uint32_t> sent_, arrived_, next_;  // by rank
};

// Ring all-reduce: 2(n-1) steps.
inline Rings ring(std::uint32_t ranks, bool jitter) {
  Fabric fabric(ranks);
  Rings::Phase phase{{}, {}, 2 * (ranks - 1)};
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    phase.next.push_back((rank + 1) % ranks);
    phase.path.push_back(fabric.over_fabric(rank, phase.next.back()));
  }
  return {std::move(fabric), {phase}, {1e6, jitter}};
}

// Reduce-scatter in the node (7 steps), ring all-reduce between nodes by rail, all-gather in the node.
inline Rings hierarchical(std::uint32_t ranks, bool jitter) {
  constexpr std::uint32_t kNode = 8;
  Fabric fabric(ranks);
  Rings::Phase in_node{{}, {}, kNode - 1}, rail{{}, {}, 2 * (ranks / kNode - 1)};
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    in_node.next.push_back(rank / kNode * kNode + (rank + 1) % kNode);
    in_node.path.push_back(fabric.over_nvlink(rank, in_node.next.back()));
    rail.next.push_back((rank + kNode) % ranks);
    rail.path.push_back(fabric.over_fabric(rank, rail.next.back()));
  }
  return {std::move(fabric), {in_node, rail, in_node}, {1e6, jitter}};
}

// Every rank to every other: all at once, or one after the other (pairwise: step k sends to rank + k).
class AllToAll {
 public:
  AllToAll(std::uint32_t ranks, bool jitter, bool pairwise)
      : ranks_(ranks), sizes_{1e6, jitter}, pairwise_(pairwise) {
    Fabric fabric(ranks);
    for (std::uint32_t step = 1; step < ranks; ++step)
      for (std::uint32_t rank = 0; rank < ranks; ++rank) fabric.over_fabric(rank, (rank + step) % ranks);
    paths_ = std::move(fabric.paths);
  }
  [[nodiscard]] const Paths& paths() const { return paths_; }
  template <class Start>
  void begin(Start&& start) {
    const std::uint32_t last = pairwise_ ? ranks_ : static_cast<std::uint32_t>(paths_.size());
    for (std::uint32_t path = 0; path < last; ++path) start(path, sizes_(path), path);
  }
  template <class Start>
  void done(std::uint64_t tag, Start&& start) {
    const auto next = static_cast<std::uint32_t>(tag + ranks_);
    if (pairwise_ && next < paths_.size()) start(next, sizes_(next), next);
  }

 private:
  std::uint32_t ranks_;
  Sizes sizes_;
  bool pairwise_;
  Paths paths_;
};

// Every rank sends `rounds` messages in a row to one random other (a random cycle through all ranks).
class Permutation {
 public:
  Permutation(std::uint32_t ranks, std::uint32_t rounds, bool jitter)
      : ranks_(ranks), rounds_(rounds), sizes_{1e6, jitter} {
    std::vector<std::uint32_t> cycle(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) cycle[rank] = rank;
    std::mt19937_64 random(1);
    for (std::uint32_t rank = ranks; rank > 1; --rank) std::swap(cycle[rank - 1], cycle[random() % rank]);
    Fabric fabric(ranks);
    for (std::uint32_t i = 0; i < ranks; ++i) fabric.over_fabric(cycle[i], cycle[(i + 1) % ranks]);
    paths_ = std::move(fabric.paths);
  }
  [[nodiscard]] const Paths& paths() const { return paths_; }
  template <class Start>
  void begin(Start&& start) {
    for (std::uint32_t path = 0; path < ranks_; ++path) start(path, sizes_(path), path);
  }
  template <class Start>
  void done(std::uint64_t tag, Start&& start) {
    const std::uint64_t next = tag + ranks_;
    if (next < std::uint64_t{ranks_} * rounds_)
      start(next, sizes_(next), static_cast<std::uint32_t>(next % ranks_));
  }

 private:
  std::uint32_t ranks_, rounds_;
  Sizes sizes_;
  Paths paths_;
};

// Calls use(schedule) for "ring 1024", "hierarchical 1024", "all-to-all 128", "pairwise 256", "permutation
// 1024". Returns false for an unknown name.
template <class Use>
bool with_schedule(std::string_view name, std::uint32_t ranks, bool jitter, Use&& use) {
  if (name == "ring") return use(ring(ranks, jitter)), true;
  if (name == "hierarchical") return use(hierarchical(ranks, jitter)), true;
  if (name == "all-to-all") return use(AllToAll(ranks, jitter, false)), true;
  if (name == "pairwise") return use(AllToAll(ranks, jitter, true)), true;
  if (name == "permutation") return use(Permutation(ranks, 64, jitter)), true;
  return false;
}
}  // namespace topsim::bench

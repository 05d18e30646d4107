#include "workloads/trace/messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>

namespace topsim::workloads::trace {
namespace {

struct End {
  std::uint32_t rank = 0, node = 0, position = 0;  // position: in the rank's order
  std::int64_t bytes = 0, tag = 0;
  std::uint64_t id = 0;
};
struct Pair {
  End send, recv;
  bool received = true;
};
using Ranks = std::pair<std::uint32_t, std::uint32_t>;  // sender, receiver

class Matcher {
 public:
  Matcher(const Trace& trace, const std::vector<std::vector<std::uint32_t>>& orders)
      : trace_(trace), orders_(orders) {}

  Messages run() {
    program_of_.assign(trace_.ranks, 0);
    for (std::uint32_t p = 0; p < trace_.programs.size(); ++p) collect(p);
    for (const End& recv : exact_)
      match(recv, static_cast<std::uint32_t>(peer_of_recv_.at({recv.rank, recv.node})));
    for (const End& recv : open_) match_any(recv);
    messages_.nodes.resize(trace_.programs.size());
    messages_.unreceived.resize(trace_.programs.size());
    for (auto& [key, waiting] : sends_)
      for (const End& send : waiting) pairs_[key.first].push_back({send, {}, false});
    for (auto& [ranks, pairs] : pairs_) assign(ranks, pairs);
    return std::move(messages_);
  }

 private:
  void collect(std::uint32_t p) {
    const RankTrace& program = trace_.programs[p];
    bool talks = false;
    for (const Node& node : program.nodes) talks |= node.kind == Kind::send || node.kind == Kind::recv;
    for (const std::uint32_t rank : program.ranks) program_of_[rank] = p;
    if (!talks) return;
    if (program.ranks.size() != 1)
      fail(trace_.file,
           fmt::format("ranks {} and {} share a program with messages", program.ranks[0], program.ranks[1]),
           "a rank that sends or receives needs a program of its own");
    const std::uint32_t rank = program.ranks[0];
    std::uint32_t position = 0;
    for (const std::uint32_t index : orders_[p]) {
      const Node& node = program.nodes[index];
      ++position;
      if (node.kind != Kind::send && node.kind != Kind::recv) continue;
      const End end{rank, index, position, node.bytes, node.tag, node.id};
      if (node.kind == Kind::send) {
        sends_[{{rank, static_cast<std::uint32_t>(node.peer)}, node.tag}].push_back(end);
      } else {
        peer_of_recv_[{rank, index}] = node.peer;
        (node.peer == kAny || node.tag == kAny ? open_ : exact_).push_back(end);
      }
    }
  }

  void match(const End& recv, std::uint32_t from) {
    const auto found = sends_.find({{from, recv.rank}, recv.tag});
    if (found == sends_.end() || found->second.empty())
      fail(trace_.file,
           fmt::format("rank {}: node {} receives from rank {} with tag {} what nobody sends", recv.rank,
                       recv.id, from, recv.tag),
           "every receive needs a send of its tag");
    take(found, recv);
  }
  // Matches the lowest sender that has an unreceived message for this receive.
  void match_any(const End& recv) {
    const std::int64_t from = peer_of_recv_.at({recv.rank, recv.node});
    for (auto found = sends_.begin(); found != sends_.end(); ++found) {
      const auto& [ranks, tag] = found->first;
      if (found->second.empty() || ranks.second != recv.rank) continue;
      if ((from != kAny && ranks.first != from) || (recv.tag != kAny && tag != recv.tag)) continue;
      return take(found, recv);
    }
    fail(trace_.file, fmt::format("rank {}: node {} receives what nobody sends", recv.rank, recv.id),
         "every receive needs a send");
  }
  template <class Where>
  void take(Where found, const End& recv) {
    pairs_[found->first.first].push_back({found->second.front(), recv, true});
    found->second.pop_front();
  }

  // Patience sorting: a message goes to the first channel whose last receive precedes its own.
  void assign(const Ranks& ranks, std::vector<Pair>& pairs) {
    if (ranks.first == ranks.second) return;  // to itself: delivered at once
    std::sort(pairs.begin(), pairs.end(),
              [](const Pair& a, const Pair& b) { return a.send.position < b.send.position; });
    std::vector<std::uint32_t> last;  // by channel
    const std::uint32_t from = program_of_[ranks.first], to = program_of_[ranks.second];
    for (const Pair& pair : pairs) {
      const std::uint32_t position = pair.received ? pair.recv.position : ~std::uint32_t{0};
      std::uint32_t channel = 0;
      while (channel < last.size() && last[channel] > position) ++channel;
      if (channel == last.size()) last.push_back(0);
      last[channel] = position;
      messages_.nodes[from][pair.send.node] = {ranks.second, channel, pair.send.bytes};
      const Matched back{ranks.first, channel, pair.send.bytes};
      if (pair.received) {
        messages_.nodes[to][pair.recv.node] = back;
      } else {
        messages_.unreceived[to].push_back(back);
      }
    }
    const Ranks sorted(std::min(ranks.first, ranks.second), std::max(ranks.first, ranks.second));
    std::uint32_t& channels = messages_.channels[sorted];
    channels = std::max(channels, static_cast<std::uint32_t>(last.size()));
  }

  const Trace& trace_;
  const std::vector<std::vector<std::uint32_t>>& orders_;
  std::vector<std::uint32_t> program_of_;
  std::map<std::pair<Ranks, std::int64_t>, std::deque<End>> sends_;
  std::vector<End> exact_, open_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> peer_of_recv_;
  std::map<Ranks, std::vector<Pair>> pairs_;
  Messages messages_;
};
}  // namespace

Messages match_messages(const Trace& trace, const std::vector<std::vector<std::uint32_t>>& orders) {
  return Matcher(trace, orders).run();
}
}  // namespace topsim::workloads::trace

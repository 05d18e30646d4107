#include "workloads/trace/messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>
#include <set>

namespace topsim::workloads::trace {
namespace {

struct End {
  std::uint32_t rank = 0, node = 0, position = 0;  // position: in the rank's order
  std::int64_t peer = 0, tag = 0, bytes = 0;
  std::uint64_t id = 0;
};
struct Pair {
  End send, recv;
  bool received = true;
};
using Ranks = std::pair<std::uint32_t, std::uint32_t>;  // sender, receiver

// What is sent to one rank and not received yet. Queues that become empty are erased, so that a receive from
// anybody finds the lowest sender without passing those that are done.
class Inbox {
 public:
  void put(const End& send) {
    by_sender_[{send.rank, send.tag}].push_back(send);
    by_tag_.emplace(send.tag, send.rank);
  }

  // The first message that a receive may take: of the lowest sender, and of that the lowest tag.
  std::optional<End> take(std::int64_t from, std::int64_t tag) {
    if (from == kAny && tag != kAny) {
      const auto first = by_tag_.lower_bound({tag, 0});
      if (first == by_tag_.end() || first->first != tag) return std::nullopt;
      from = first->second;
    }
    auto found = by_sender_.begin();
    if (from != kAny) {
      const auto sender = static_cast<std::uint32_t>(from);
      found = tag == kAny ? by_sender_.lower_bound({sender, std::numeric_limits<std::int64_t>::min()})
                          : by_sender_.find({sender, tag});
      if (found != by_sender_.end() && found->first.first != sender) return std::nullopt;
    }
    if (found == by_sender_.end()) return std::nullopt;
    const End send = found->second.front();
    found->second.pop_front();
    if (found->second.empty()) {
      by_tag_.erase({send.tag, send.rank});
      by_sender_.erase(found);
    }
    return send;
  }

  template <class Act>
  void each_left(Act&& act) const {
    for (const auto& [key, waiting] : by_sender_)
      for (const End& send : waiting) act(send);
  }

 private:
  std::map<std::pair<std::uint32_t, std::int64_t>, std::deque<End>> by_sender_;  // by sender and tag
  std::set<std::pair<std::int64_t, std::uint32_t>> by_tag_;                      // the same keys, tag first
};

class Matcher {
 public:
  Matcher(const Trace& trace, const std::vector<std::vector<std::uint32_t>>& orders)
      : trace_(trace), orders_(orders) {}

  Messages run() {
    program_of_.assign(trace_.ranks, 0);
    for (std::uint32_t p = 0; p < trace_.programs.size(); ++p) collect(p);
    for (const End& recv : exact_) match(recv);
    for (const End& recv : open_) match(recv);
    messages_.nodes.resize(trace_.programs.size());
    messages_.unreceived.resize(trace_.programs.size());
    for (const auto& [receiver, inbox] : inboxes_)
      inbox.each_left([&, to = receiver](const End& send) {
        pairs_[{send.rank, to}].push_back({send, {}, false});
      });
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
      const End end{rank, index, position, node.peer, node.tag, node.bytes, node.id};
      if (node.kind == Kind::send)
        inboxes_[static_cast<std::uint32_t>(node.peer)].put(end);
      else
        (node.peer == kAny || node.tag == kAny ? open_ : exact_).push_back(end);
    }
  }

  void match(const End& recv) {
    if (const auto send = inboxes_[recv.rank].take(recv.peer, recv.tag)) {
      pairs_[{send->rank, recv.rank}].push_back({*send, recv, true});
      return;
    }
    const bool exact = recv.peer != kAny && recv.tag != kAny;
    fail(trace_.file,
         exact ? fmt::format("rank {}: node {} receives from rank {} with tag {} what nobody sends",
                             recv.rank, recv.id, recv.peer, recv.tag)
               : fmt::format("rank {}: node {} receives what nobody sends", recv.rank, recv.id),
         exact ? "every receive needs a send of its tag" : "every receive needs a send");
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
  std::map<std::uint32_t, Inbox> inboxes_;  // by receiver
  std::vector<End> exact_, open_;           // receives; open: from any rank or with any tag
  std::map<Ranks, std::vector<Pair>> pairs_;
  Messages messages_;
};
}  // namespace

Messages match_messages(const Trace& trace, const std::vector<std::vector<std::uint32_t>>& orders) {
  return Matcher(trace, orders).run();
}
}  // namespace topsim::workloads::trace

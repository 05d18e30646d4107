#include "sim/network/backpressure.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/network/maxmin.hpp"

namespace topsim::network {
namespace {
constexpr double kFree = std::numeric_limits<double>::infinity();
constexpr double kHighest = 1e30;  // level that holds nobody
constexpr double kEqual = 1e-9;    // rates that differ by less, in parts

class Tree {
 public:
  Tree(std::span<const double> capacities, std::span<const LaneDepth> depths,
       std::span<const HeldMessage> messages)
      : capacities_(capacities.begin(), capacities.end()),
        depths_(depths),
        messages_(messages),
        crossing_(capacities.size()) {
    for (std::uint32_t m = 0; m < messages.size(); ++m)
      for (const Crossed& hop : messages[m].hops) crossing_[hop.link].push_back({m, hop.from, hop.share});
  }

  // What every message would send if the port carried everything and none went faster than its bound. Links
  // before it that carry nothing else, and as much, would not be full either.
  void ask(LinkIndex end, const std::vector<double>& bounds) {
    std::vector<double> capacities = capacities_;
    std::vector<char> goes_there(messages_.size(), 0);
    for (const Crossing& each : crossing_[end]) goes_there[each.message] = 1;
    for (LinkIndex link = 0; link < capacities.size(); ++link) {
      const auto is_other = [&](const Crossing& each) {
        return goes_there[each.message] == 0 || each.from == Crossed::kSender;
      };
      if (link != end && (capacities[link] < capacities_[end] ||
                          std::any_of(crossing_[link].begin(), crossing_[link].end(), is_other)))
        continue;
      capacities[link] = 0;
      for (const Crossing& each : crossing_[link])
        for (const Crossed& hop : messages_[each.message].hops)
          if (hop.from == Crossed::kSender) capacities[link] += 2 * capacities_[hop.link];
    }
    MaxMin sharing(capacities);
    std::vector<MaxMin::Activity> activities(messages_.size());
    std::vector<Usage> usage;
    for (std::size_t m = 0; m < messages_.size(); ++m) {
      if (messages_[m].hops.empty()) continue;
      usage.clear();
      for (const Crossed& hop : messages_[m].hops) {
        const auto known =
            std::find_if(usage.begin(), usage.end(), [&](const Usage& use) { return use.link == hop.link; });
        if (known == usage.end())
          usage.push_back({hop.link, hop.share});
        else
          known->coefficient += hop.share;
      }
      if (bounds[m] < kFree) usage.push_back({sharing.add_link(bounds[m]), 1});
      activities[m] = sharing.start(1, messages_[m].weight, usage, SimTime{});
    }
    sharing.solve(SimTime{});
    rates_.assign(messages_.size(), 0);
    for (std::size_t m = 0; m < messages_.size(); ++m)
      if (!messages_[m].hops.empty()) rates_[m] = sharing.rate(activities[m]);
  }

  // A port with one input, which is no faster, never fills: the queue is before that.
  [[nodiscard]] LinkIndex first_full(LinkIndex end) const {
    for (;;) {
      const std::vector<Crossing>& crossing = crossing_[end];
      if (crossing.empty()) return end;
      const LinkIndex only = crossing.front().from;
      const auto is_other = [&](const Crossing& each) { return each.from != only; };
      if (only == Crossed::kSender || std::any_of(crossing.begin(), crossing.end(), is_other) ||
          capacities_[only] > capacities_[end])
        return end;
      end = only;
    }
  }

  [[nodiscard]] double load(LinkIndex link) const {
    double sum = 0;
    for (const Crossing& each : crossing_[link]) sum += rates_[each.message] * each.share;
    return sum;
  }

  // Slows what crosses the link until it sends `target` on to the next one; kSender: until it carries that.
  void hold(LinkIndex link, LinkIndex next, double target) {
    const std::vector<Crossing>& crossing = crossing_[link];
    std::vector<Input> inputs = inputs_of(link, next);
    const std::vector<double> before = rates_;
    // How an input's bytes divide over the next links may change as it is held, and with it the level.
    constexpr int kRounds = 20;
    for (int round = 0; round < kRounds; ++round) {
      const double level = level_of(inputs, target);
      rates_ = before;
      for (const Input& input : inputs) {
        const double most = input.served(level);
        if (input.all <= most * (1 + kEqual)) continue;
        if (input.from != Crossed::kSender)
          hold(input.from, link, most);
        else
          rates_[input.message] *= most / input.all;
      }
      double sent = 0;
      for (const Crossing& each : crossing)
        sent += rates_[each.message] * each.share * onward(each.message, link, next);
      if (std::abs(sent - target) <= kEqual * target) return;
      const std::vector<Input> after = inputs_of(link, next);
      for (std::size_t i = 0; i < inputs.size(); ++i)
        if (after[i].all > 0) inputs[i].part = after[i].part, inputs[i].late = after[i].late;
    }
  }

  [[nodiscard]] const std::vector<double>& rates() const { return rates_; }

 private:
  struct Crossing {
    std::uint32_t message;
    LinkIndex from;
    double share;
  };
  struct Input {
    LinkIndex from;         // kSender: a message
    std::uint32_t message;  // then
    double all = 0;         // bytes/s that it has for the link
    double part = 0;        // share of them that goes on to the next one
    double weight = 1;      // connections, or bytes of buffer
    double late = 0;        // s in which what it has for the link is as much as is under way
    [[nodiscard]] double served(double level) const { return level * weight / (1 + level * late); }
  };

  // Part of a message's bytes on the link that goes on to the next one.
  [[nodiscard]] double onward(std::uint32_t message, LinkIndex link, LinkIndex next) const {
    if (next == Crossed::kSender) return 1;
    double here = 0, there = 0;
    for (const Crossed& hop : messages_[message].hops) {
      if (hop.link == link) here += hop.share;
      if (hop.from == link && hop.link == next) there += hop.share;
    }
    return there / here;
  }

  [[nodiscard]] std::vector<Input> inputs_of(LinkIndex link, LinkIndex next) const {
    std::map<std::pair<LinkIndex, std::uint32_t>, Input> inputs;
    for (const Crossing& each : crossing_[link]) {
      const bool sender = each.from == Crossed::kSender;
      const std::uint32_t message = sender ? each.message : 0;
      Input& input = inputs.try_emplace({each.from, message}, Input{each.from, message}).first->second;
      const double rate = rates_[each.message] * each.share;
      input.all += rate;
      input.part += rate * onward(each.message, link, next);
      if (sender) input.weight = messages_[message].weight;
    }
    std::vector<Input> list;
    for (auto& [key, input] : inputs) {
      if (input.all > 0) {
        input.part /= input.all;
        if (input.from != Crossed::kSender) {
          input.weight = depths_[input.from].bytes;
          input.late = depths_[input.from].round_trip * load(input.from) / input.all;
        }
      }
      list.push_back(input);
    }
    return list;
  }

  // At which the inputs send `target` on.
  [[nodiscard]] static double level_of(const std::vector<Input>& inputs, double target) {
    const auto sent = [&](double level) {
      double sum = 0;
      for (const Input& input : inputs) sum += input.part * std::min(input.all, input.served(level));
      return sum;
    };
    double low = 0, high = 1;
    while (sent(high) < target && high < kHighest) low = high, high *= 2;
    for (int bit = 0; bit < 100 && low < high; ++bit) {
      const double middle = (low + high) / 2;
      if (middle <= low || middle >= high) break;
      (sent(middle) < target ? low : high) = middle;
    }
    return high;
  }

  std::vector<double> capacities_;
  std::span<const LaneDepth> depths_;  // by link
  std::span<const HeldMessage> messages_;
  std::vector<std::vector<Crossing>> crossing_;  // by link
  std::vector<double> rates_;                    // by message
};
}  // namespace

std::vector<double> held_rates(std::span<const double> capacities, std::span<const LaneDepth> depths,
                               std::span<const HeldMessage> messages, LinkIndex end) {
  Tree tree(capacities, depths, messages);
  end = tree.first_full(end);
  std::vector<double> held(messages.size(), kFree);
  // What is not held takes what the held ones leave, until it is held too or needs no more. So levels only
  // fall.
  for (std::size_t round = 0; round <= messages.size(); ++round) {
    tree.ask(end, held);
    if (tree.load(end) <= capacities[end] * (1 + kEqual)) break;
    const std::vector<double> asked = tree.rates();
    tree.hold(end, Crossed::kSender, capacities[end]);
    for (std::size_t m = 0; m < messages.size(); ++m)
      if (tree.rates()[m] < asked[m] * (1 - kEqual)) held[m] = tree.rates()[m];
  }
  return held;
}
}  // namespace topsim::network

#include "sim/network/packet/channel.hpp"

#include <algorithm>
#include <bit>

namespace topsim::network::packet {

LocalNames::Classes::Classes(const Graph& graph, const Engine& engine) {
  using Look = std::tuple<double, Duration, Duration, FlowControl, bool, bool, int, std::int64_t>;
  std::map<Look, std::uint32_t> known;
  for (const PortSpec& port : graph.ports) {
    const bool shared = port.flow_control != FlowControl::credit;
    const Look look(port.rate.value(), port.latency, graph.ports[port.reverse].latency, port.flow_control,
                    port.framed, port.marks, port.cables, shared ? engine.shared_buffer(port.to).value() : 0);
    class_.push_back(known.try_emplace(look, static_cast<std::uint32_t>(known.size())).first->second);
  }
  next_ = static_cast<std::uint32_t>(known.size());
}

void LocalNames::Classes::set_apart(PortIndex port) {
  class_[port] = next_++;
}

std::uint32_t LocalNames::local(PortIndex port) const {
  const auto known = port_.find(port);
  return known == port_.end() ? kNone : known->second;
}

std::uint32_t LocalNames::local_device(DeviceIndex device) const {
  const auto known = device_.find(device);
  return known == device_.end() ? kNone : known->second.number;
}

LocalNames::Touched& LocalNames::device(DeviceIndex device) {
  const auto number = static_cast<std::uint32_t>(devices_.size());
  const auto [known, fresh] = device_.try_emplace(device, Touched{number, {}});
  if (fresh) devices_.push_back(device);
  return known->second;
}

void LocalNames::read(PortIndex port, const Graph& graph, const Classes& classes,
                      std::vector<std::uint32_t>& words) {
  const auto [known, fresh] = port_.try_emplace(port, static_cast<std::uint32_t>(ports_.size()));
  words.push_back(known->second);
  if (!fresh) return;
  ports_.push_back(port);
  const PortSpec& spec = graph.ports[port];
  // Departures of one instant happen in the order of the device's ports.
  Touched& from = device(spec.from);
  const auto place = from.ports.insert(std::lower_bound(from.ports.begin(), from.ports.end(), port), port);
  words.insert(words.end(), {classes.of(port), from.number,
                             static_cast<std::uint32_t>(place - from.ports.begin()), device(spec.to).number});
}

std::vector<std::uint32_t> LocalNames::read(const Channel& channel, const Graph& graph,
                                            const Classes& classes) {
  std::vector<std::uint32_t> words;
  // A channel with several paths hashes its own number, so it is like no other channel.
  if (!channel.one_path) words.push_back(channel.number);
  for (const Channel::Ends& pair : channel.pairs) {
    const auto cap = std::bit_cast<std::uint64_t>(pair.connection.rate_cap.value());
    words.insert(words.end(),
                 {static_cast<std::uint32_t>(pair.connection.lane), static_cast<std::uint32_t>(cap >> 32U),
                  static_cast<std::uint32_t>(cap), static_cast<std::uint32_t>(pair.there.size()),
                  static_cast<std::uint32_t>(pair.back.size())});
    for (const PortIndex port : pair.there) read(port, graph, classes, words);
    for (const PortIndex port : pair.back) read(port, graph, classes, words);
  }
  for (const PortIndex port : channel.off_way) read(port, graph, classes, words);
  return words;
}
}  // namespace topsim::network::packet

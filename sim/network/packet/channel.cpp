#include "sim/network/packet/channel.hpp"

#include <bit>

namespace topsim::network::packet {

LocalNames::Classes::Classes(const Graph& graph) {
  using Look = std::tuple<double, Duration, Duration, FlowControl, bool, bool, std::uint32_t>;
  std::map<Look, std::uint32_t> known;
  for (const PortSpec& port : graph.ports) {
    // Of a shared buffer the other ports of its device take their part: no two are taken to be alike.
    const bool shared = port.flow_control != FlowControl::credit;
    const Look look(port.rate.value(), port.latency, graph.ports[port.reverse].latency, port.flow_control,
                    port.framed, port.marks, shared ? port.to : kNone);
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

std::uint32_t LocalNames::device(DeviceIndex device) {
  return device_.try_emplace(device, static_cast<std::uint32_t>(device_.size())).first->second;
}

void LocalNames::read(PortIndex port, const Graph& graph, const Classes& classes,
                      std::vector<std::uint32_t>& words) {
  const auto [known, fresh] = port_.try_emplace(port, static_cast<std::uint32_t>(ports_.size()));
  words.push_back(known->second);
  if (!fresh) return;
  ports_.push_back(port);
  const PortSpec& spec = graph.ports[port];
  words.insert(words.end(), {classes.of(port), device(spec.from), device(spec.to)});
}

std::vector<std::uint32_t> LocalNames::read(const Channel& channel, const Graph& graph,
                                            const Classes& classes) {
  std::vector<std::uint32_t> words;
  // Hashes tell channels with several paths apart: such a one is like itself alone.
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
  return words;
}
}  // namespace topsim::network::packet

// A channel: queue pairs that share messages, with what they touch on their paths.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "sim/network/packet/engine.hpp"

namespace topsim::network::packet {

struct Channel {
  struct Ends {
    Connection connection;
    std::vector<PortIndex> there, back;  // ports in order
  };
  std::uint32_t number = 0;
  std::vector<Ends> pairs;  // as they are now; others before a move (Episodes::move)
  Duration path_latency{};
  std::vector<PortIndex> claims;   // its ports, ascending
  std::vector<PortIndex> off_way;  // of these, those that no packet of the pairs takes, only XOFF
  bool one_path = true;            // false: packets choose among several, by hashes of their own numbers
};

// Numbers ports and devices in the order in which a region first touches them. Two regions whose channels
// read alike are the same network in another place, and the same happens in both, unless random numbers are
// drawn: every port has its own.
class LocalNames {
 public:
  // What distinguishes ports and devices of a graph beyond their position.
  class Classes {
   public:
    Classes(const Graph& graph, const Engine& engine);
    [[nodiscard]] std::uint32_t of(PortIndex port) const { return class_[port]; }
    void set_apart(PortIndex port);  // it is no longer like any other

   private:
    std::vector<std::uint32_t> class_;
    std::uint32_t next_ = 0;
  };

  // The channel in local numbers.
  [[nodiscard]] std::vector<std::uint32_t> read(const Channel& channel, const Graph& graph,
                                                const Classes& classes);
  [[nodiscard]] const std::vector<PortIndex>& ports() const { return ports_; }  // by local number
  [[nodiscard]] std::uint32_t local(PortIndex port) const;                      // kNone: not yet touched
  [[nodiscard]] const std::vector<DeviceIndex>& devices() const { return devices_; }  // by local number
  [[nodiscard]] std::uint32_t local_device(DeviceIndex device) const;  // kNone: not yet touched

 private:
  struct Touched {
    std::uint32_t number;
    std::vector<PortIndex> ports;  // that leave the device, ascending
  };
  void read(PortIndex port, const Graph& graph, const Classes& classes, std::vector<std::uint32_t>& words);
  Touched& device(DeviceIndex device);

  std::map<PortIndex, std::uint32_t> port_;
  std::map<DeviceIndex, Touched> device_;
  std::vector<PortIndex> ports_;
  std::vector<DeviceIndex> devices_;
};
}  // namespace topsim::network::packet

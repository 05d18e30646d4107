// Network devices of the catalogue: NICs, switches, cables.
#pragma once

#include <string>
#include <vector>

#include "sim/base/units.hpp"

namespace topsim::topology {

// configs/hardware/nics.json
struct NicEntry {
  std::string id, name, vendor, source;
  std::vector<std::string> links;  // catalogue links it can speak, the usual first: "ib-ndr", "roce-400g"
  int ports = 1;
  BytesPerSecond port_rate{};
  std::string pcie;  // catalogue link of its slot: "pcie5-x16"; empty when it sits on the accelerator's die
  Watts power{}, power_max{};
  Duration small_message{};  // data sheet's host-to-host time of a small message; 0 unknown. For show only:
                             // the models use LinkEntry::nic_base, which was measured end to end.
};

// configs/hardware/switches.json
struct SwitchEntry {
  std::string id, name, vendor, source;
  std::vector<std::string> links;  // catalogue links of its ports, the usual first
  int ports = 0;                   // physical cages x lanes as sold
  BytesPerSecond port_rate{};
  int split = 1;            // ports may be split in this many of rate / split: SN5600 64 x 800G = 128 x 400G
  Duration port_to_port{};  // default of the sources' range; 0 unknown
  Duration port_to_port_low{}, port_to_port_high{};
  Bytes buffer{};  // shared packet buffer; 0 unknown
  bool shared_buffer_ecn =
      true;            // lossless Ethernet with PFC and ECN; false: credit flow control (InfiniBand)
  bool sharp = false;  // in-network reduction
  Watts power{}, power_max{};
  int rack_units = 0;

  // Ports available at `rate`: splitting when the port is a multiple of it.
  [[nodiscard]] int radix(BytesPerSecond rate) const;
};

// configs/hardware/cables.json: a finished connection is one copper or active cable, or two transceivers +
// fibre.
struct CableEntry {
  std::string id, name, kind, source;  // kind: dac, aec, aoc, transceiver, fibre
  BytesPerSecond rate{};
  Metres reach{};    // longest length sold or standardised
  Watts power{};     // per end
  int per_link = 1;  // pieces per connection: 1 cable, 2 transceivers
};
}  // namespace topsim::topology

// Network devices of the catalogue: NICs, switches, cables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/units.hpp"

namespace topsim::topology {

// configs/hardware/nics.json
struct NicEntry {
  std::string id, name, vendor, source;
  int year = 0;
  std::vector<std::string> links;  // catalogue links it supports, the usual first: "ib-ndr", "roce-400g"
  int ports = 1;
  BytesPerSecond port_rate{};
  std::string pcie;  // catalogue link of its slot: "pcie5-x16"; empty when it sits on the accelerator's die
  Watts power{}, power_max{};
  // perftest's or a data sheet's host-to-host time of a small message; 0 unknown. The models use
  // LinkEntry::nic_base, which includes the software.
  Duration small_message{};
  Duration message_interval{};  // from one small message of a queue pair to the next (ib_write_bw); 0 unknown
};

// configs/hardware/switches.json
struct SwitchEntry {
  std::string id, name, vendor, asic, source;
  std::vector<std::string> links;  // catalogue links of its ports, the usual first
  int ports = 0;                   // as sold, before splitting
  BytesPerSecond port_rate{};
  int split = 1;                                     // a port may be cut into up to this many
  Duration port_to_port{};                           // default of the sources' range; 0 unknown
  Duration port_to_port_low{}, port_to_port_high{};  // the range
  Bytes buffer{};                                    // shared packet buffer; 0 unknown
  // Sends only into buffers announced by the far end (InfiniBand); false: PFC and ECN (lossless Ethernet).
  bool credit_flow_control = false;
  bool sharp = false;  // reduces in the network
  Watts power{}, power_max{};
  int rack_units = 0;

  // Ports available at `rate`: 64 x 800 Gbit/s that may be split in two are 128 at 400 Gbit/s.
  [[nodiscard]] int radix(BytesPerSecond rate) const;
};

// configs/hardware/cpus.json: families of CPUs that begin with its id.
//
// What passes a root complex from one accelerator to another may be cut into packets of c bytes, on each of
// which the header weighs more: on the links behind it a byte takes (c + h) / c over (m + h) / m of what it
// takes in full packets of m bytes with h of header; c = 64, as Intel's, m = 256, h = 26: 1.277.
struct CpuEntry {
  std::string name;
  Bytes peer_packet{};       // c
  std::string pcie;          // catalogue link that has m and h, for all of its slots
  double peer_overhead = 1;  // the quotient above
};

// Copper: passive, active, retimed. Fibre: of one piece, or between two transceivers.
enum class CableKind : std::uint8_t { dac, acc, aec, aoc, transceiver };

// configs/hardware/cables.json: one way to make a connection, with all its parts.
struct CableEntry {
  std::string id, name, source;
  CableKind kind = CableKind::dac;
  std::string fabric;  // "infiniband": sold for nothing else; empty: for any
  BytesPerSecond rate{};
  Metres reach{};                                // longest length sold or standardised
  Watts power{};                                 // per end
  double fixed = 0, per_metre = 0, per_end = 0;  // US dollars
  double cheapest = 1, dearest = 1;              // lowest and highest offer over that price

  // US dollars of one connection: fixed + per_metre x length + 2 x per_end.
  [[nodiscard]] double price(Metres length) const { return fixed + per_metre * length.value() + 2 * per_end; }
};
}  // namespace topsim::topology

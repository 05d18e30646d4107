// How much an InfiniBand cable carries, however fast it is: a port sends only what it has credits for.
//
//   C <= cables x W / T,    W = floor(2047 / ceil((payload + around) / 64 B)) x payload
//
//   W  what a virtual lane has on the way. Credits count blocks of 64 B, of which at most 2047 are out: FCTBS
//      and FCCL have 12 bits, and half their range decides who is ahead [IBTA vol. 1, 7.9.4].
//   T  until a credit is back: the latency there and the latency back. Switches and NICs pass a packet
//      on while it arrives.
//
// Full packets of 4096 + 26 B take 65 blocks, so 31 of them, 127 KB, are on the way. At 400 Gbit/s they
// last 2.5 us, some 230 m there and back. That the reach shrinks as rates grow: Obsidian, "InfiniBand Range
// Limitation" (IBTA vol. 1, 1.2.1, p. 213-216). Systems for long distances put devices with deep buffers and
// a flow control of their own on either side (US 2016/0021016; NVIDIA MetroX-3, in RoCE over 40 km).
//
// All traffic is in one lane. Deep enough buffers are assumed: the 16 MB of a QM8700 are 400 KB a port, three
// times what credits reach, and no source says what other switches have (configs/hardware/switches.json). The
// buffer that network.packet.virtual_lanes gives lanes holds for packets alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "topology/topology.hpp"

namespace topsim::topology {

inline constexpr std::uint32_t kCreditBlock = 64;    // bytes
inline constexpr std::uint32_t kMostCredits = 2047;  // blocks

// W, where a lane's buffer is as deep as credits reach.
[[nodiscard]] constexpr Bytes payload_on_the_way(Bytes payload, Bytes around) {
  const std::int64_t block = kCreditBlock, blocks = ((payload + around).value() + block - 1) / block;
  return Bytes(kMostCredits / std::max<std::int64_t>(blocks, 1) * payload.value());
}

// What credits let through of the first of the two directions of one InfiniBand cable.
[[nodiscard]] BytesPerSecond credit_bound(const Topology& topology, const Link& there, const Link& back);

// Whether that, and not the rate of its ports, is the link's capacity.
[[nodiscard]] bool waits_for_credits(const Topology& topology, const Link& there, const Link& back);

// False for short cables and other kinds, so that the way back of most need not be found: of two directions
// the slower one takes half of the way there and back, or more.
[[nodiscard]] bool may_wait_for_credits(const Topology& topology, const Link& slower);
}  // namespace topsim::topology

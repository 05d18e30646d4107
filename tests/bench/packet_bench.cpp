// Speed of the packet model on the traffic that peers were measured with (400 Gbit/s, 500 ns links, MTU
// 4096). Usage: bench_packet [CASE...]; a row a case: packet-hops, events, CPU seconds, packet-hops a second,
// memory.
#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "process.hpp"
#include "tests/packet/patterns.hpp"

namespace {
using namespace topsim;
using namespace topsim::literals;
using namespace topsim::network::packet;

LinkFigures link(FlowControl control) {
  return {400_Gbitps, 500_ns, control};
}

PacketSpec quiet() {
  PacketSpec spec;
  spec.congestion_control.kind = CongestionControlKind::none;
  return spec;
}

Outcome permutations(std::uint32_t k, Bytes each, FlowControl control) {
  const Fabric fabric = fat_tree(k, link(control));
  return run_flows(fabric, permutation(fabric, each, 1), quiet());
}

// Data-parallel all-reduce of 1,024 GPUs, TP 8: a ring of 128 nodes on each of eight rails, four leaves of 32
// a rail.
Outcome rail_rings(FlowControl control) {
  const Fabric fabric = leaf_spine(32, 32, 32, link(control));
  std::vector<std::vector<std::size_t>> rings(8);
  for (std::size_t rail = 0; rail < 8; ++rail) {
    for (std::size_t node = 0; node < 128; ++node)
      rings[rail].push_back((rail * 4 + node / 32) * 32 + node % 32);
  }
  PacketSpec spec = quiet();
  spec.ack_every = 0;
  return ring_all_reduce(fabric, rings, 16_MiB, spec);
}

struct Case {
  std::string name;
  std::function<Outcome()> run;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const FlowControl control : {FlowControl::pfc, FlowControl::credit}) {
    const std::string on = control == FlowControl::pfc ? "-pfc" : "-credit";
    all.push_back({"permutation-16x2MB" + on, [=] { return permutations(4, Bytes(2'000'000), control); }});
    all.push_back({"permutation-128x16MB" + on, [=] { return permutations(8, Bytes(16'000'000), control); }});
    all.push_back({"permutation-1024x2MB" + on, [=] { return permutations(16, Bytes(2'000'000), control); }});
    all.push_back(
        {"incast-1023to1-1MB" + on, [=] { return incast(1023, Bytes(1'000'000), link(control), quiet()); }});
    all.push_back({"all-to-all-128x1MB" + on, [=] {
                     const Fabric fabric = fat_tree(8, link(control));
                     return run_flows(fabric, all_to_all(fabric, Bytes(1'000'000)), quiet());
                   }});
    all.push_back({"all-reduce-1024x16MiB" + on, [=] { return rail_rings(control); }});
  }
  return all;
}
}  // namespace

int main(int argc, char** argv) {
  fmt::print("{:32} {:>10} {:>12} {:>9} {:>8} {:>12} {:>9}\n", "case", "us", "packet-hops", "events", "CPU s",
             "M hops/s", "peak MB");
  for (const Case& c : cases()) {
    if (argc > 1 &&
        std::none_of(argv + 1, argv + argc, [&](const char* arg) { return c.name.rfind(arg, 0) == 0; }))
      continue;
    const double begin = bench::cpu_seconds();
    int runs = 0;
    Outcome outcome;
    do {
      outcome = c.run();
      ++runs;
    } while (bench::cpu_seconds() - begin < 0.5);
    const double each = (bench::cpu_seconds() - begin) / runs;
    const auto hops = static_cast<double>(outcome.counters.hops);
    fmt::print("{:32} {:10.1f} {:12.0f} {:9.2f} {:8.3f} {:12.2f} {:9}\n", c.name,
               microseconds(outcome.last_delivered), hops,
               static_cast<double>(outcome.counters.events) / hops, each, hops / each / 1e6,
               bench::peak_megabytes());
  }
}

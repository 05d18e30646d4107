#include "sim/network/packet/calibrate.hpp"

#include <algorithm>
#include <random>

#include "sim/base/parallel.hpp"
#include "sim/base/shuffle.hpp"
#include "sim/network/packet/experiments.hpp"
#include "sim/network/packet/pfc_queue.hpp"

namespace topsim::network::packet {
namespace {
using namespace topsim::literals;

constexpr std::uint32_t kSpines = 4;  // ports above a leaf, among which packets choose
// The same where leaves are oversubscribed: a transfer ends with its unluckiest sender, so few are too few.
constexpr std::uint32_t kManySpines = 8;
constexpr int kCables = 8;            // of a bundle
constexpr std::uint32_t kLeaves = 4;  // with kSpines: traffic of several leaves meets below a spine

// At ports of the table ECN begins to mark at 1.6 MB and marks all above 6.4 MB. At the first of these nobody
// is slowed so much that a port runs empty, at the last nobody is stopped.
constexpr std::int64_t kQueues[] = {1'900'000, 2'500'000, 4'000'000, 10'000'000};

LinkFigures cable(bool infiniband) {
  return {kCalibratedRate, 500_ns, infiniband ? FlowControl::credit : FlowControl::pfc};
}

PathChoice path_of(const std::string& routing) {
  if (routing == "adaptive") return PathChoice::adaptive;
  if (routing == "spray") return PathChoice::spray;
  return routing == "static" ? PathChoice::destination : PathChoice::flow_hash;
}

// Several queue pairs are several flows between the same two ends.
void add_flows(std::vector<Flow>& flows, std::size_t from, std::size_t to, int queue_pairs, Bytes bytes) {
  for (int k = 0; k < queue_pairs; ++k) flows.push_back({from, to, Bytes(bytes.value() / queue_pairs)});
}

struct Experiment {
  Fabric fabric;
  std::vector<Flow> flows;
  double senders_per_port;  // on the bottleneck port
};

bool chooses(const std::string& routing) {
  return routing == "adaptive" || routing == "spray";
}

std::vector<std::size_t> shuffled(std::size_t count, std::mt19937_64& random) {
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = i;
  shuffle(order, random);
  return order;
}

std::uint32_t spines_of(const CongestionEntry& entry) {
  if (!chooses(entry.routing)) return 1;
  return entry.queue > Bytes{} ? kManySpines : kSpines;
}

int cables_of(const CongestionEntry& entry) {
  return entry.routing == "bundle" ? kCables : 1;
}

std::uint32_t hosts_of(const CongestionEntry& entry) {
  return static_cast<std::uint32_t>(entry.oversubscription * spines_of(entry) * cables_of(entry) + 0.5);
}

// All ports of one leaf send to those of another, and back, through a single port above, maybe of many
// cables.
Experiment through_a_spine(const CongestionEntry& entry, bool infiniband, std::uint64_t seed) {
  const std::uint32_t hosts = hosts_of(entry);
  Experiment e{leaf_spine(2, hosts, 1, cable(infiniband), cables_of(entry)), {}, entry.oversubscription};
  std::mt19937_64 random(seed);
  const std::vector<std::size_t> order = shuffled(hosts, random);
  for (std::size_t i = 0; i < hosts; ++i) {
    add_flows(e.flows, i, hosts + order[i], entry.queue_pairs, entry.bytes);
    add_flows(e.flows, hosts + order[i], i, entry.queue_pairs, entry.bytes);
  }
  return e;
}

// Several ports above each leaf, among which packets choose. The k-th port of a leaf sends to the k-th port,
// in a random order, of another leaf. Odd seeds rotate over the other leaves, so each leaf receives from all
// of them. Even seeds use only the next leaf, as rings do, whose packets meet no others on the way down. The
// entry's interval covers both.
Experiment through_the_spines(const CongestionEntry& entry, bool infiniband, std::uint64_t seed) {
  const std::uint32_t hosts = hosts_of(entry);
  Experiment e{leaf_spine(kLeaves, hosts, spines_of(entry), cable(infiniband)), {}, entry.oversubscription};
  std::mt19937_64 random(seed);
  std::vector<std::vector<std::size_t>> order;
  for (std::size_t leaf = 0; leaf < kLeaves; ++leaf) order.push_back(shuffled(hosts, random));
  for (std::size_t leaf = 0; leaf < kLeaves; ++leaf) {
    for (std::size_t k = 0; k < hosts; ++k) {
      const std::size_t further = seed % 2 == 0 ? 0 : k % (kLeaves - 1);
      const std::size_t other = (leaf + 1 + further) % kLeaves;
      add_flows(e.flows, leaf * hosts + k, other * hosts + order[other][k], entry.queue_pairs, entry.bytes);
    }
  }
  return e;
}

Experiment into_one(const CongestionEntry& entry, bool infiniband) {
  const auto senders = static_cast<std::uint32_t>(entry.incast_degree);
  Experiment e{star(senders + 1, cable(infiniband)), {}, static_cast<double>(senders)};
  for (std::uint32_t i = 0; i < senders; ++i) add_flows(e.flows, i, senders, entry.queue_pairs, entry.bytes);
  return e;
}

// The buffer of a leaf in which the entry's queue waits when PFC stops the senders.
Bytes buffer_of(const CongestionEntry& entry, const PacketSpec& spec) {
  const LinkFigures link = cable(false);
  const BytesPerSecond above(link.rate.value() * cables_of(entry));
  std::vector<SwitchPort> ports(hosts_of(entry), {link.rate, link.latency, link.latency, false});
  ports.resize(ports.size() + spines_of(entry), {above, link.latency, link.latency, true});
  return PfcQueue(ports, spec, link.rate.value())
      .total(static_cast<double>(entry.queue.value()), entry.oversubscription, link.rate);
}

// Message sizes per sender, chosen so that the cost of congestion control is nearly linear between them; up
// to `most` MiB through the bottleneck port, where it has settled. Credits on one path lose next to nothing,
// whatever the size.
std::vector<Bytes> sizes_of(bool several, double load, std::int64_t most) {
  if (!several) return {16_MiB};
  std::vector<Bytes> sizes{512_KiB};
  for (const std::int64_t mib : {1, 2, 4, 8, 12, 16, 24, 32, 64, 128, 256})
    if (static_cast<double>(mib) * std::max(load, 1.0) <= static_cast<double>(most))
      sizes.emplace_back(mib << 20);
  return sizes;
}
}  // namespace

CongestionEntry measure(CongestionEntry entry, const CalibrationOptions& options) {
  const bool infiniband = entry.fabric == "infiniband";
  const bool incast = entry.incast_degree > 1;
  const Framing framing = infiniband ? Framing::infiniband() : Framing::roce();
  std::vector<double> found;
  for (int seed = 1; seed <= options.seeds; ++seed) {
    const auto number = static_cast<std::uint64_t>(seed);
    const Experiment e = incast                   ? into_one(entry, infiniband)
                         : chooses(entry.routing) ? through_the_spines(entry, infiniband, number)
                                                  : through_a_spine(entry, infiniband, number);
    PacketSpec spec;
    spec.path = path_of(entry.routing);
    spec.seed = number;
    // Congestion notifications must not wait for acknowledgements, and ACKs take little bandwidth: one per
    // four packets keeps the runs short.
    spec.ack_every = 4;
    if (entry.queue > Bytes{}) spec.buffer.total = buffer_of(entry, spec);
    const Outcome outcome = run_flows(e.fabric, e.flows, spec);
    const double links = incast ? 2 : 4;
    const double bytes = static_cast<double>(entry.bytes.value());
    // The fluid model's time: the busiest port, at least the sender's own, and the latency of the path.
    const double fluid =
        bytes * std::max(e.senders_per_port, 1.0) / (kCalibratedRate.value() * framing.payload_share()) +
        links * seconds(cable(infiniband).latency);
    found.push_back(std::min(1.0, fluid / seconds(outcome.last_delivered)));
  }
  std::sort(found.begin(), found.end());
  entry.low = found.front();
  entry.efficiency = found[found.size() / 2];
  entry.high = found.back();
  return entry;
}

std::vector<CongestionEntry> calibrate(const CalibrationOptions& options) {
  std::vector<CongestionEntry> entries;
  const std::vector<int> pairs = options.quick ? std::vector<int>{1} : std::vector<int>{1, 4};
  for (const char* fabric : {"roce", "infiniband"}) {
    const bool roce = std::string_view(fabric) == "roce";
    for (const int queue_pairs : pairs) {
      // Where packets choose among ports, the same load takes that many times the work.
      const auto add = [&](const char* routing, double above, int senders, int flows, std::int64_t most,
                           std::int64_t queue = 0) {
        const bool sizes = (roce || chooses(routing)) && !options.quick;
        for (const Bytes bytes : sizes_of(sizes, std::max<double>(above, senders), most))
          entries.push_back({fabric, routing, above, senders, flows * queue_pairs, queue_pairs, bytes, 1, 1,
                             1, Bytes(queue)});
      };
      for (const int senders : {2, 4, 8, 16, 32}) {
        if (options.quick && senders > 4) continue;
        add("any", 1, senders, senders, 512);
      }
      for (const double above : {2.0, 4.0, 8.0, 16.0}) {
        if (options.quick && above > 4) continue;
        add(roce ? "ecmp" : "static", above, 1, static_cast<int>(above), 512);
      }
      // Up to 1:1 no queue fills. Above, sprayed packets do as those that choose.
      for (const char* routing : {"adaptive", "spray"}) {
        if (!roce && std::string_view(routing) == "spray") continue;
        for (const double above : {0.5, 1.0, 2.0, 4.0}) {
          if ((options.quick && above != 1) || (roce && above > 1)) continue;
          add(routing, above, 1, static_cast<int>(above * kSpines), roce ? 256 : 32);
        }
      }
      if (!roce || options.quick) continue;
      add("bundle", 1, 1, kCables, 64);
      for (const std::int64_t queue : kQueues) {
        for (const double above : {1.25, 1.5, 2.0, 4.0})
          add("bundle", above, 1, static_cast<int>(above * kCables), 64, queue);
        for (const double above : {1.25, 1.5, 1.75, 2.0, 3.0, 4.0})
          add("adaptive", above, 1, static_cast<int>(above * kManySpines), 64, queue);
      }
    }
  }
  parallel::in_order(entries.size(), 0, [&](std::size_t i) { entries[i] = measure(entries[i], options); });
  return entries;
}
}  // namespace topsim::network::packet

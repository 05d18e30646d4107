// topsim-simgrid: SimGrid behind a pipe, one simulation per process, since its state is process-wide. Lines
// on standard input, driven by sim/network/simgrid_network.cpp:
//     L n c...        n links of capacity c bytes/s; first, once
//     P k l...        the next path (numbered from 0): k links
//     S tag path b r  starts a message of b bytes that takes at most r bytes/s (0: no limit of its own)
//     C link c        capacity from now on
//     G h             goes on to the next end or to second h (-1: no limit), whichever is first; answers: the
//                     second reached, how many messages ended then, their tags
//     R               answers for every link: bytes peak busy-seconds
// After P or S the answer may be "full" instead: more than kWaysPerLink n paths, where a message with a limit
// counts as a path while it is in flight.
//
// SimGrid 3.32 computes max-min fairness only in this configuration: network/optim Full (Lazy loads links
// past their capacity), CM02 without cross traffic, window or weights, no link latency (its sharing weights
// flows by latency; topsim adds latency itself), precisions of 1e-12. Engine::run_until stops anywhere within
// 1e-5 s of the time given, so the engine runs freely and the pipe is served from its timers. Routes: SimGrid
// keeps one per pair of hosts, so every path is a pseudo-host whose uplink is the path, with one common sink.
// A message's own limit is a private link of that capacity (Comm::set_rate() is ignored between hosts): a
// path that ends in this link, which the next limited message of that path uses again.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>
#include <string>
#include <unordered_map>
#include <vector>

namespace {
namespace sg = simgrid::s4u;
using simgrid::kernel::timer::Timer;

// Hosts and links cannot be added once the engine runs; routes can.
constexpr std::size_t kWaysPerLink = 16;

class Server {
 public:
  Server() : engine_("topsim-simgrid") {
    for (const char* option :
         {"network/model:CM02", "network/optim:Full", "network/crosstraffic:0", "network/TCP-gamma:1e30",
          "network/weight-S:0", "surf/precision:1e-12", "maxmin/precision:1e-12"})
      sg::Engine::set_config(option);
    zone_ = sg::create_star_zone("paths");
    sink_ = zone_->create_host("sink", 1.0);
    zone_->add_route(sink_->get_netpoint(), nullptr, nullptr, nullptr, std::vector<sg::LinkInRoute>{}, true);
    sg::Activity::on_completion_cb([this](const sg::Activity& activity) { ended(activity); });
    sg::Engine::on_time_advance_cb([this](double seconds) { pass(seconds); });
  }

  void serve() {
    links();
    for (std::size_t w = 0; w < kWaysPerLink * links_.size(); ++w)
      ways_.push_back({zone_->create_host("w" + std::to_string(w), 1.0),
                       zone_->create_link("r" + std::to_string(w), 1.0)->set_latency(0)->seal()});
    Timer::set(0, [this] { listen(); });
    engine_.run();
  }

 private:
  struct Record {
    double bytes = 0, peak = 0, busy = 0;
  };
  struct Way {
    sg::Host* host;
    sg::Link* limit;  // part of the route for messages with a rate limit
  };
  struct Path {
    std::vector<sg::LinkInRoute> links;
    std::size_t way = kNone;                // for messages without a limit; kNone until the first one
    std::vector<std::size_t> with_a_limit;  // for messages with a limit; not in use at present
  };
  static constexpr std::size_t kNone = ~std::size_t{0};
  struct Message {
    std::uint64_t tag;
    std::size_t path, way_with_a_limit;
    sg::CommPtr comm;
  };

  template <class T>
  static T read() {
    double value = 0;
    if (std::scanf("%lf", &value) != 1) finish(2);
    return static_cast<T>(value);
  }
  [[noreturn]] static void finish(int code) {
    std::fflush(stdout);
    _exit(code);  // no destructors: the engine is inside its loop
  }

  // Reads commands until one that lets time advance.
  void listen() {
    char command = 0;
    while (std::scanf(" %c", &command) == 1) {
      switch (command) {
        case 'P':
          path();
          break;
        case 'S':
          start();
          break;
        case 'C':
          capacity();
          break;
        case 'G':
          return go();
        case 'R':
          records();
          break;
        default:
          finish(2);
      }
    }
    finish(0);
  }

  void links() {
    char command = 0;
    if (std::scanf(" %c", &command) != 1) finish(0);
    records_.resize(read<std::size_t>());
    for (std::size_t i = 0; i < records_.size(); ++i)
      links_.push_back(zone_->create_link("l" + std::to_string(i), read<double>())->set_latency(0)->seal());
  }

  void path() {
    Path& path = paths_.emplace_back();
    for (auto count = read<std::size_t>(); count > 0; --count)
      path.links.emplace_back(links_[read<std::size_t>()]);
  }

  std::size_t next_way(std::vector<sg::LinkInRoute> route, bool limited) {
    if (used_ == ways_.size()) {
      std::printf("full\n");
      finish(0);
    }
    if (limited) route.emplace_back(ways_[used_].limit);
    zone_->add_route(ways_[used_].host->get_netpoint(), nullptr, nullptr, nullptr, route, false);
    return used_++;
  }
  std::size_t limited_way(Path& path, double limit) {
    if (path.with_a_limit.empty()) path.with_a_limit.push_back(next_way(path.links, true));
    const std::size_t way = path.with_a_limit.back();
    path.with_a_limit.pop_back();
    ways_[way].limit->set_bandwidth(limit);
    return way;
  }

  void start() {
    const auto tag = read<std::uint64_t>();
    const auto number = read<std::size_t>();
    const auto bytes = read<std::uint64_t>();
    const auto limit = read<double>();
    Path& path = paths_[number];
    if (limit <= 0 && path.way == kNone) path.way = next_way(path.links, false);
    const std::size_t way = limit > 0 ? limited_way(path, limit) : path.way;
    sg::CommPtr comm = sg::Comm::sendto_init(ways_[way].host, sink_);
    comm->set_payload_size(bytes);
    running_[comm.get()] = {tag, number, limit > 0 ? way : kNone, comm};
    comm->start();
  }

  void capacity() {
    sg::Link* link = links_[read<std::size_t>()];
    link->set_bandwidth(read<double>());
  }

  void go() {
    const auto horizon = read<double>();
    tags_.clear();
    answering_ = false;
    if (horizon >= 0) {
      horizon_ = Timer::set(std::max(horizon, sg::Engine::get_clock()), [this] {
        horizon_ = nullptr;
        if (!answering_) answer();
      });
    } else if (running_.empty()) {
      answer();  // nothing would ever end
    }
  }

  // Everything that ends at one instant is in one answer, which is given after the engine has handled it all.
  void ended(const sg::Activity& activity) {
    const auto at = running_.find(&activity);
    if (at == running_.end()) return;
    tags_.push_back(at->second.tag);
    over_.push_back(std::move(at->second));
    running_.erase(at);
    if (answering_) return;
    answering_ = true;
    Timer::set(sg::Engine::get_clock(), [this] { answer(); });
  }

  void answer() {
    if (horizon_ != nullptr) horizon_->remove();
    horizon_ = nullptr;
    for (const Message& message : over_)
      if (message.way_with_a_limit != kNone)
        paths_[message.path].with_a_limit.push_back(message.way_with_a_limit);
    over_.clear();
    std::printf("%.17g %zu", sg::Engine::get_clock(), tags_.size());
    for (const std::uint64_t tag : tags_) std::printf(" %llu", static_cast<unsigned long long>(tag));
    std::printf("\n");
    std::fflush(stdout);
    listen();
  }

  // Called before rates change: adds up what flowed since the last event.
  void pass(double seconds) {
    if (seconds <= 0) return;
    for (std::size_t i = 0; i < links_.size(); ++i) {
      const double load = links_[i]->get_usage();
      if (load <= 0) continue;
      records_[i].bytes += load * seconds;
      records_[i].peak = std::max(records_[i].peak, load);
      records_[i].busy += seconds;
    }
  }

  void records() {
    for (const Record& record : records_)
      std::printf("%.17g %.17g %.17g ", record.bytes, record.peak, record.busy);
    std::printf("\n");
    std::fflush(stdout);
  }

  sg::Engine engine_;
  sg::NetZone* zone_ = nullptr;
  sg::Host* sink_ = nullptr;
  std::vector<sg::Link*> links_;
  std::vector<Way> ways_;
  std::size_t used_ = 0;  // number of ways that have a route
  std::vector<Path> paths_;
  std::unordered_map<const sg::Activity*, Message> running_;  // never iterated
  std::vector<Message> over_;                                 // kept until their completion is handled
  std::vector<std::uint64_t> tags_;                           // of messages that ended at this instant
  std::vector<Record> records_;
  Timer* horizon_ = nullptr;
  bool answering_ = false;
};
}  // namespace

int main() {
  xbt_log_control_set("root.thres:error");
  Server* server = new Server;  // not destroyed: finish() exits from inside its loop
  server->serve();
}

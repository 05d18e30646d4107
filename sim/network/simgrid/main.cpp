// topsim-simgrid: SimGrid behind a pipe, one simulation a process, since its state is process-wide. Lines on
// standard input, driven by sim/network/simgrid_network.cpp:
//     L n c...        n links of capacity c bytes/s; first, once
//     P k l...        the next path (numbered from 0, at most kPathsPerLink n): k links
//     S tag path b    starts a message of b bytes
//     C link c        capacity from now on
//     G h             goes on to the next end or to second h (-1: no limit), whichever is first; answers: the
//                     second reached, how many messages ended then, their tags
//     R               answers for every link: bytes peak busy-seconds
//
// SimGrid 3.32 computes max-min fairness only in this configuration: network/optim Full (Lazy loads links
// past their capacity), CM02 without cross traffic, window or weights, no link latency (its sharing weights
// flows by latency; topsim adds latency itself), precisions of 1e-12. Engine::run_until stops anywhere within
// 1e-5 s of what it is asked for, so the engine runs free and the pipe is served from its timers. Routes:
// SimGrid keeps one per pair of hosts, so every path is a pseudo-host whose way up is the path, to one sink.
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

// Hosts cannot be added once the engine runs, routes can.
constexpr std::size_t kPathsPerLink = 16;

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
    for (std::size_t p = 0; p < kPathsPerLink * links_.size(); ++p)
      hosts_.push_back(zone_->create_host("p" + std::to_string(p), 1.0));
    Timer::set(0, [this] { listen(); });
    engine_.run();
  }

 private:
  struct Record {
    double bytes = 0, peak = 0, busy = 0;
  };
  struct Message {
    std::uint64_t tag;
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
    _exit(code);  // the engine is in the middle of its loop
  }

  // Takes commands until one that lets time go on.
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
    std::vector<sg::LinkInRoute> route;
    for (auto count = read<std::size_t>(); count > 0; --count)
      route.emplace_back(links_[read<std::size_t>()]);
    if (paths_ == hosts_.size()) finish(2);
    zone_->add_route(hosts_[paths_++]->get_netpoint(), nullptr, nullptr, nullptr, route, false);
  }

  void start() {
    const auto tag = read<std::uint64_t>();
    sg::Host* from = hosts_[read<std::size_t>()];
    const auto bytes = read<std::uint64_t>();
    sg::CommPtr comm = sg::Comm::sendto_init(from, sink_);
    comm->set_payload_size(bytes);
    running_[comm.get()] = {tag, comm};
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

  // Everything that ends at one instant goes into one answer, after the engine has handled it all.
  void ended(const sg::Activity& activity) {
    const auto at = running_.find(&activity);
    if (at == running_.end()) return;
    tags_.push_back(at->second.tag);
    over_.push_back(std::move(at->second.comm));
    running_.erase(at);
    if (answering_) return;
    answering_ = true;
    Timer::set(sg::Engine::get_clock(), [this] { answer(); });
  }

  void answer() {
    if (horizon_ != nullptr) horizon_->remove();
    horizon_ = nullptr;
    over_.clear();
    std::printf("%.17g %zu", sg::Engine::get_clock(), tags_.size());
    for (const std::uint64_t tag : tags_) std::printf(" %llu", static_cast<unsigned long long>(tag));
    std::printf("\n");
    std::fflush(stdout);
    listen();
  }

  // Before the shares change: what flowed since the last event.
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
  std::vector<sg::Host*> hosts_;
  std::unordered_map<const sg::Activity*, Message> running_;  // never iterated
  std::vector<sg::CommPtr> over_;                             // let go once their completion is handled
  std::vector<std::uint64_t> tags_;                           // of what ended at this instant
  std::vector<Record> records_;
  Timer* horizon_ = nullptr;
  bool answering_ = false;
  std::size_t paths_ = 0;  // that have a route
};
}  // namespace

int main() {
  xbt_log_control_set("root.thres:error");
  Server* server = new Server;  // not destroyed: finish() leaves from inside its loop
  server->serve();
}

// topsim-simgrid: SimGrid behind a pipe, one simulation a process, since its state is process-wide. Lines on
// standard input, driven by sim/network/simgrid_network.cpp:
//     L n c...        n links of capacity c bytes/s; first, once
//     P k l...        the next path (numbered from 0): k links
//     S tag path b    starts a message of b bytes
//     C link c        capacity from now on
//     N               answers the second at which the next message ends, -1 when none is under way
//     A t             goes on to second t (not beyond the next end), answers: count tag...
//     R               answers for every link: bytes peak busy-seconds
//
// SimGrid 3.32 computes max-min fairness only in this configuration: network/optim Full (Lazy loads links
// past their capacity), CM02 without cross traffic, window or weights, no link latency (its sharing weights
// flows by latency; topsim adds latency itself), precisions of 1e-12. The model is driven directly because
// Engine::run_until stops anywhere within 1e-5 s of what it is asked for. Routes: SimGrid keeps one per pair
// of hosts, so every path is a pseudo-host whose way up is the path, to one sink.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <simgrid/kernel/resource/Action.hpp>
#include <simgrid/kernel/resource/Model.hpp>
#include <simgrid/s4u.hpp>
#include <string>
#include <unordered_map>
#include <vector>

namespace {
namespace sg = simgrid::s4u;
using simgrid::kernel::resource::Action;
using simgrid::kernel::resource::Model;

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
    for (Model* model : engine_.get_all_models())
      if (model->get_name().find("etwork") != std::string::npos) model_ = model;
    if (model_ == nullptr) std::abort();
  }

  void serve() {
    char command = 0;
    while (std::scanf(" %c", &command) == 1) {
      switch (command) {
        case 'L':
          links();
          break;
        case 'P':
          path();
          break;
        case 'S':
          start();
          break;
        case 'C':
          capacity();
          break;
        case 'N':
          std::printf("%.17g\n", next() < 0 ? -1 : now_ + next_);
          break;
        case 'A':
          advance();
          break;
        case 'R':
          records();
          break;
        default:
          std::exit(2);
      }
      std::fflush(stdout);
    }
  }

 private:
  struct Record {
    double bytes = 0, peak = 0, busy = 0;
  };

  template <class T>
  static T read() {
    double value = 0;
    if (std::scanf("%lf", &value) != 1) std::exit(2);
    return static_cast<T>(value);
  }

  void links() {
    records_.resize(read<std::size_t>());
    for (std::size_t i = 0; i < records_.size(); ++i)
      links_.push_back(zone_->create_link("l" + std::to_string(i), read<double>())->set_latency(0)->seal());
  }

  void path() {
    std::vector<sg::LinkInRoute> route;
    for (auto count = read<std::size_t>(); count > 0; --count)
      route.emplace_back(links_[read<std::size_t>()]);
    sg::Host* host = zone_->create_host("p" + std::to_string(hosts_.size()), 1.0);
    zone_->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, route, false);
    host->seal();
    hosts_.push_back(host);
  }

  void start() {
    const auto tag = read<std::uint64_t>();
    sg::Host* from = hosts_[read<std::size_t>()];
    const auto bytes = read<std::uint64_t>();
    sg::CommPtr comm = sg::Comm::sendto_init(from, sink_);
    comm->set_payload_size(bytes)->start();
    tags_[&model_->get_started_action_set()->back()] = tag;
    comms_.push_back(comm);
    known_ = false;
  }

  void capacity() {
    sg::Link* link = links_[read<std::size_t>()];
    link->set_bandwidth(read<double>());
    known_ = false;
  }

  // Seconds to the next end. Also shares: rates are right after it.
  double next() {
    if (!known_) next_ = tags_.empty() ? -1 : model_->next_occurring_event(now_);
    known_ = true;
    return next_;
  }

  void pass(double seconds) {
    for (std::size_t i = 0; i < links_.size(); ++i) {
      const double load = links_[i]->get_usage();
      if (load <= 0 || seconds <= 0) continue;
      records_[i].bytes += load * seconds;
      records_[i].peak = std::max(records_[i].peak, load);
      records_[i].busy += seconds;
    }
    now_ += seconds;
    model_->update_actions_state(now_, seconds);
    known_ = false;
    while (Action* done = model_->extract_done_action()) {
      ended_.push_back(tags_.at(done));
      tags_.erase(done);
      done->unref();
    }
  }

  void advance() {
    constexpr double kHalfPicosecond = 0.51e-12;  // the caller's clock is in whole ones
    const auto until = read<double>();
    ended_.clear();
    while (next() >= 0 && now_ + next_ <= until + kHalfPicosecond) pass(next_);
    next();
    if (until > now_) pass(until - now_);
    std::printf("%zu", ended_.size());
    for (const std::uint64_t tag : ended_) std::printf(" %llu", static_cast<unsigned long long>(tag));
    std::printf("\n");
  }

  void records() {
    for (const Record& record : records_)
      std::printf("%.17g %.17g %.17g ", record.bytes, record.peak, record.busy);
    std::printf("\n");
  }

  sg::Engine engine_;
  sg::NetZone* zone_ = nullptr;
  sg::Host* sink_ = nullptr;
  Model* model_ = nullptr;
  std::vector<sg::Link*> links_;
  std::vector<sg::Host*> hosts_;
  std::vector<sg::CommPtr> comms_;                         // kept: their actions were taken from under them
  std::unordered_map<const Action*, std::uint64_t> tags_;  // never iterated
  std::vector<std::uint64_t> ended_;
  std::vector<Record> records_;
  double now_ = 0, next_ = -1;
  bool known_ = false;
};
}  // namespace

int main() {
  xbt_log_control_set("root.thres:error");
  Server* server = new Server;
  server->serve();
  std::fflush(stdout);
  _exit(0);  // comms whose actions are gone cannot be destroyed
}

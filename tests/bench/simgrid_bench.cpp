// One schedule on SimGrid, driven as fast as it goes: comms created on the fly in the completion callback, no
// actors, no link latency (timers pay it), which is the configuration in which its lazy solver is both right
// and fastest. Usage: bench_simgrid NAME RANKS uniform|jitter [LATENCY_US] [full]
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>
#include <string>
#include <string_view>
#include <unordered_map>

#include "process.hpp"
#include "traffic.hpp"

namespace {
namespace sg = simgrid::s4u;

template <class Schedule>
void run(Schedule schedule, double latency, bool full) {
  xbt_log_control_set("root.thres:error");
  auto* engine = new sg::Engine("bench");
  for (const char* option : {"network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:1e30",
                             "network/weight-S:0", "surf/precision:1e-12", "maxmin/precision:1e-12"})
    sg::Engine::set_config(option);
  if (full) sg::Engine::set_config("network/optim:Full");
  sg::NetZone* zone = sg::create_star_zone("paths");
  const topsim::bench::Paths& paths = schedule.paths();
  std::vector<sg::Link*> links;
  for (std::size_t i = 0; i < paths.capacities.size(); ++i)
    links.push_back(zone->create_link("l" + std::to_string(i), paths.capacities[i])->set_latency(0)->seal());
  sg::Host* sink = zone->create_host("sink", 1.0);
  zone->add_route(sink->get_netpoint(), nullptr, nullptr, nullptr, std::vector<sg::LinkInRoute>{}, true);
  std::vector<sg::Host*> hosts;
  for (std::size_t path = 0; path < paths.size(); ++path) {
    std::vector<sg::LinkInRoute> route;
    for (const std::uint32_t link : paths[path]) route.emplace_back(links[link]);
    hosts.push_back(zone->create_host("p" + std::to_string(path), 1.0));
    zone->add_route(hosts.back()->get_netpoint(), nullptr, nullptr, nullptr, route, false);
  }
  zone->seal();

  std::uint64_t transfers = 0;
  struct Running {
    std::uint64_t tag;
    sg::CommPtr comm;
  };
  std::unordered_map<const sg::Activity*, Running> running;  // never iterated
  std::vector<sg::CommPtr> ended;                            // may not be destroyed in their own callback
  const auto start = [&](std::uint64_t tag, double bytes, std::uint32_t path) {
    sg::CommPtr comm = sg::Comm::sendto_init(hosts[path], sink);
    running[comm.get()] = {tag, comm};
    comm->set_payload_size(static_cast<std::uint64_t>(bytes))->start();
    ++transfers;
  };
  sg::Comm::on_completion_cb([&](const sg::Activity& comm) {
    if (ended.size() > 1000) ended.clear();
    const auto found = running.find(&comm);
    const std::uint64_t tag = found->second.tag;
    ended.push_back(std::move(found->second.comm));
    running.erase(found);
    if (latency > 0)
      simgrid::kernel::timer::Timer::set(sg::Engine::get_clock() + latency,
                                         [&, tag] { schedule.done(tag, start); });
    else
      schedule.done(tag, start);
  });
  const double begin = topsim::bench::cpu_seconds();
  schedule.begin(start);
  engine->run();
  const double cpu = topsim::bench::cpu_seconds() - begin;
  std::printf("{\"transfers\": %llu, \"seconds\": %.15g, \"cpu\": %.6f, \"mb\": %ld}\n",
              static_cast<unsigned long long>(transfers), sg::Engine::get_clock(), cpu,
              topsim::bench::peak_megabytes());
  std::fflush(stdout);
  _exit(0);
}
}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const auto ranks = static_cast<std::uint32_t>(std::atoi(argv[2]));
  const bool jitter = std::string_view(argv[3]) == "jitter";
  const double latency = argc > 4 ? std::atof(argv[4]) * 1e-6 : 0;
  const bool full = argc > 5 && std::string_view(argv[5]) == "full";
  return topsim::bench::with_schedule(argv[1], ranks, jitter,
                                      [&](auto schedule) { run(std::move(schedule), latency, full); })
             ? 0
             : 2;
}

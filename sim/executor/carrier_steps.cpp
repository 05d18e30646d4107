#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/base/error.hpp"
#include "sim/executor/carrier.hpp"
#include "sim/executor/step_messages.hpp"
#include "sim/network/flow.hpp"
#include "topology/host_memory.hpp"

namespace topsim::executor {
namespace {

// What a message between two GPUs uses, for networks that are given its links; the links are in order if the
// message names them.
struct Path : NamedWay {
  double rate_cap = 0, weight = 1;
  Duration latency{};
};

// The messages of one kind of call on one communicator.
struct Plan {
  std::optional<collective::Choice> choice;  // none: a point-to-point message
  std::vector<collective::StepMessage> messages;
  StepOrder order;
  std::vector<DeviceId> gpus;  // followed by switches that reduce
  std::vector<Path> ways;      // of messages that name their links
};

struct Instance {
  const Plan* plan = nullptr;
  std::uint32_t call = 0;
  std::uint32_t left = 0;  // messages still to arrive
  std::vector<std::uint32_t> missing;
};

// Merges all messages between the same two ranks over the same NICs or named links into one. All start at
// once, and each arrives after the collective's whole latency. The collective's rate cap is shared among them
// in proportion to their bytes.
collective::StepPlan merge_into_hops(const collective::StepPlan& steps, const fold::Activity& whole) {
  collective::StepPlan hops;
  hops.devices = steps.devices;
  hops.ways = steps.ways;
  std::map<std::tuple<std::uint32_t, std::uint32_t, DeviceId, DeviceId, std::uint32_t>, std::size_t> known;
  for (const collective::StepMessage& message : steps.messages) {
    const auto [entry, first] = known.try_emplace(
        {message.from, message.to, message.from_nic, message.to_nic, message.way}, hops.messages.size());
    if (first) {
      collective::StepMessage hop = message;
      hop.bytes = Bytes(0);
      hop.channel = 0;
      hop.line = 0;
      hop.rate_cap = {};
      hop.after_begin = hop.after_count = 0;
      hop.latency = whole.latency;
      hops.messages.push_back(hop);
    }
    hops.messages[entry->second].bytes += message.bytes;
  }
  const double part =
      whole.rate_cap / static_cast<double>(whole.bytes.value());  // of the collective a second
  for (collective::StepMessage& hop : hops.messages)
    hop.rate_cap = BytesPerSecond(static_cast<double>(hop.bytes.value()) * part);
  return hops;
}

class Steps final : public Carrier {
 public:
  Steps(const program::Program& program, const fold::System& system, const collective::NcclModel& nccl,
        network::Network& network, const RunOptions& options, const StepForm& form)
      : program_(program),
        system_(system),
        nccl_(nccl),
        topology_(nccl.router().topology()),
        network_(network),
        options_(options),
        hops_(form.hops),
        plain_(form.plain || form.hops),
        fluid_nvlink_(form.fluid_nvlink && !plain_),
        plans_(system.activities.size()) {}

  bool start(std::uint32_t call, std::uint32_t group, std::uint32_t activity, SimTime now) override {
    const Plan& plan = plan_of(group, activity);
    if (plan.messages.empty()) return false;  // a communicator of one
    transfers_ += begin(network_, fresh(), call, plan, now);
    return true;
  }

  void advance(SimTime now, std::vector<std::uint32_t>& done) override {
    transfers_ += go_on(network_, now, done);
  }

  void change_routes(const RouteChange& change, SimTime now) override {
    routes_ = change;
    paths_.clear();
    network_.take_routes(change.detour, now);
    for (const std::uint64_t tag : under_way_) network_.reroute(transfer_of(tag), now);
  }

  void scale_capacity(std::uint32_t link, double factor, SimTime now) override {
    network_.set_capacity(link, system_.links[link].capacity.value() * factor, now);
  }

  [[nodiscard]] Duration latency(std::uint32_t activity) const override {
    return latency_of(system_.activities[activity], routes_);
  }

  [[nodiscard]] const collective::Choice* choice(std::uint32_t activity) const override {
    const auto& plan = plans_[activity];
    return plan && plan->choice ? &*plan->choice : nullptr;
  }

  [[nodiscard]] std::vector<std::string> remarks() const override {
    std::vector<std::string> result;
    if (unweighted_ > 0)
      result.push_back(
          fmt::format("{} of {} messages share links as one connection each, where libraries open several; "
                      "--network flow with pipelined collectives weighs them",
                      unweighted_, transfers_));
    const auto has_own_kernels = [](const program::RankProgram& ranks) {
      return std::any_of(ranks.ops.begin(), ranks.ops.end(),
                         [](const program::Op& op) { return op.has_own_kernels(); });
    };
    if (std::any_of(program_.classes.begin(), program_.classes.end(), has_own_kernels))
      result.emplace_back(
          "exchanges of DeepEP and HybridEP go as NCCL's messages; --network flow with pipelined "
          "collectives knows their kernels' times");
    return result;
  }

  // A call whose messages all stay on NVLink is simulated once, on a fluid network of its own.
  [[nodiscard]] std::optional<AloneCall> alone(std::uint32_t group, std::uint32_t activity) override {
    if (!fluid_nvlink_ || system_.activities[activity].bytes == Bytes(0)) return std::nullopt;
    const Plan& plan = plan_of(group, activity);
    if (plan.messages.empty()) return std::nullopt;
    std::vector<std::uint32_t> links;
    for (const collective::StepMessage& message : plan.messages) {
      for (const network::Usage& use : path_of(message, plan).usage) {
        if (topology_.link(LinkId(use.link)).kind != topology::LinkKind::nvlink) return std::nullopt;
        links.push_back(use.link);
      }
    }
    std::sort(links.begin(), links.end());
    links.erase(std::unique(links.begin(), links.end()), links.end());
    std::vector<double> capacities;
    for (const fold::LinkClass& link : system_.links) capacities.push_back(link.capacity.value());
    network::FlowNetwork fluid(capacities);
    AloneCall call;
    const std::uint32_t id = fresh();
    call.transfers = begin(fluid, id, 0, plan, SimTime{});
    std::vector<std::uint32_t> done;
    while (done.empty()) {
      const SimTime next = fluid.next_event();
      if (next == kNever) {
        free_.push_back(id);
        return std::nullopt;
      }
      call.transfers += go_on(fluid, next, done);
      call.duration = call.moving = next.time_since_epoch();
    }
    for (const std::uint32_t link : links) call.links.push_back({link, fluid.record(link)});
    return call;
  }

 private:
  // Freed by go_on() when its last message has arrived.
  std::uint32_t fresh() {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(instances_.size()));
      instances_.emplace_back();
    }
    const std::uint32_t id = free_.back();
    free_.pop_back();
    return id;
  }

  std::uint64_t begin(network::Network& network, std::uint32_t id, std::uint32_t call, const Plan& plan,
                      SimTime now) {
    Instance& instance = instances_[id];
    instance.plan = &plan;
    instance.call = call;
    instance.left = static_cast<std::uint32_t>(plan.messages.size());
    instance.missing = plan.order.missing;
    std::uint64_t sent = 0;
    for (std::uint32_t m = 0; m < plan.messages.size(); ++m) {
      if (plan.order.missing[m] == 0) send(network, id, m, now), ++sent;
    }
    return sent;
  }

  std::uint64_t go_on(network::Network& network, SimTime now, std::vector<std::uint32_t>& done) {
    std::uint64_t sent = 0;
    completed_.clear();
    network.advance(now, completed_);
    for (const network::Completion& c : completed_) {
      const auto id = static_cast<std::uint32_t>(c.tag >> 32), m = static_cast<std::uint32_t>(c.tag);
      const Plan& plan = *instances_[id].plan;
      if (!under_way_.empty()) under_way_.erase(c.tag);
      for (const std::uint32_t follower : plan.order.followers_of(m)) {
        if (--instances_[id].missing[follower] == 0) send(network, id, follower, now), ++sent;
      }
      if (--instances_[id].left == 0) {
        done.push_back(instances_[id].call);
        free_.push_back(id);
      }
    }
    return sent;
  }

  void send(network::Network& network, std::uint32_t id, std::uint32_t m, SimTime now) {
    const std::uint64_t tag = std::uint64_t{id} << 32 | m;
    network.start(transfer_of(tag), now);
    if (!options_.route_changes.empty() && &network == &network_) under_way_.insert(tag);
  }

  network::Transfer transfer_of(std::uint64_t tag) {
    const Plan& plan = *instances_[tag >> 32].plan;
    const collective::StepMessage& message = plan.messages[static_cast<std::uint32_t>(tag)];
    network::Transfer transfer = executor::transfer_of(message, plan.gpus, nccl_.allows_pxn());
    // Every communicator has its own connections.
    if (message.line != 0) transfer.line = (tag & ~std::uint64_t{0xFFFFFFFF}) | message.line;
    const Path& path = path_of(message, plan);
    transfer.usage = path.usage;
    transfer.way = path.way;
    transfer.weight = path.weight;
    if (message.plain) {
      transfer.rate_cap = path.rate_cap;
      transfer.latency = path.latency;
    }
    if (plain_) make_plain(transfer);
    transfer.tag = tag;
    return transfer;
  }

  // The network shares links without weights; counts the messages that have one.
  void make_plain(network::Transfer& transfer) {
    if (transfer.weight != 1) ++unweighted_;
    transfer.weight = 1;
  }

  const Plan& plan_of(std::uint32_t group, std::uint32_t activity) {
    auto& plan = plans_[activity];
    if (!plan) plan = std::make_unique<Plan>(make_plan(group, activity));
    return *plan;
  }

  Plan make_plan(std::uint32_t group, std::uint32_t activity) const {
    const fold::Activity& a = system_.activities[activity];
    Plan plan;
    // Without folding, the members of a group are its ranks, in the communicator's order.
    for (RankId r : members_of(group)) plan.gpus.push_back(topology_.accelerators()[r.index()]);
    collective::StepPlan steps;
    if (!system_.groups[group].communicator.valid()) {
      if (plan.gpus.size() < 2) add_host_memory(group, plan.gpus);
      steps.messages = nccl_.message_parts(a.bytes, plan.gpus[0], plan.gpus[1]);
    } else {
      steps = nccl_.steps(a.kind, a.bytes, plan.gpus);
      plan.choice = steps.choice;
      if (hops_) steps = merge_into_hops(steps, a);
    }
    plan.gpus.insert(plan.gpus.end(), steps.devices.begin(), steps.devices.end());
    for (const std::vector<LinkId>& links : steps.ways) plan.ways.push_back({way_over(links)});
    plan.order = order_of(steps);
    plan.messages = std::move(steps.messages);
    return plan;
  }

  // Host memory is one end of a copy; fold::GroupLowering has checked that the node has some.
  void add_host_memory(std::uint32_t group, std::vector<DeviceId>& ends) const {
    const auto memory = topology::nearest_host_memory(topology_, ends.front());
    const bool reads = system_.host_group[1][system_.groups[group].members.front()] == group;
    ends.insert(reads ? ends.begin() : ends.end(), memory.value());
  }

  std::vector<RankId> members_of(std::uint32_t group) const {
    const fold::GroupClass& g = system_.groups[group];
    if (g.communicator.valid()) {
      const auto members = program_.members_of(g.communicator);
      return {members.begin(), members.end()};
    }
    std::vector<RankId> ends;
    for (std::uint32_t member : g.members) ends.push_back(system_.ranks[member].members.front());
    return ends;
  }

  const Path& path_of(const collective::StepMessage& message, const Plan& plan) {
    if (message.names_links()) return plan.ways[message.way];
    const std::vector<DeviceId>& gpus = plan.gpus;
    const DeviceId from = gpus[message.from], to = gpus[message.to];
    const auto key = std::tuple(from, to, message.from_nic, message.to_nic, message.channel, message.way,
                                message.plain, message.even);
    const auto known = paths_.find(key);
    if (known != paths_.end()) return known->second;
    const collective::Activity lowered = lower(message, gpus);
    Path path{{}, lowered.cap.value(), lowered.weight, lowered.latency};
    for (const topology::LinkShare& use : lowered.usage) path.usage.push_back({use.link.value, use.share});
    return paths_.emplace(key, std::move(path)).first->second;
  }

  // By the routes in force; while they connect no path, by the first ones.
  [[nodiscard]] collective::Activity lower(const collective::StepMessage& message,
                                           const std::vector<DeviceId>& gpus) const {
    const auto by = [&](const collective::NcclModel& nccl) {
      collective::Activity lowered;
      nccl.lower_step(message, gpus, lowered);
      return lowered;
    };
    if (routes_.detour == RouteChange::kFirst) return by(nccl_);
    try {
      return by(*options_.detours[routes_.detour].nccl);
    } catch (const ConfigError& error) {
      if (routes_.last) throw CutOff(error.problems().front().message, "");
      return by(nccl_);
    }
  }

  const program::Program& program_;
  const fold::System& system_;
  const collective::NcclModel& nccl_;
  const topology::Topology& topology_;
  network::Network& network_;
  const RunOptions& options_;
  bool hops_, plain_, fluid_nvlink_;
  std::vector<std::unique_ptr<Plan>> plans_;  // by activity
  // By everything that determines a route: the ends, the NICs that a channel names, the channel, whether NICs
  // are joined, whether it is a plain send, and whether all ranks get as much.
  std::map<std::tuple<DeviceId, DeviceId, DeviceId, DeviceId, std::uint16_t, std::uint32_t, bool, bool>, Path>
      paths_;
  std::vector<Instance> instances_;
  std::vector<std::uint32_t> free_;
  std::vector<network::Completion> completed_;
  std::uint64_t unweighted_ = 0;       // plain messages that lost their weight
  RouteChange routes_;                 // now in force
  std::set<std::uint64_t> under_way_;  // tags in flight; kept only if routes change
};
}  // namespace

std::unique_ptr<Carrier> step_carrier(const program::Program& program, const fold::System& system,
                                      const collective::NcclModel& nccl, network::Network& network,
                                      const RunOptions& options, const StepForm& form) {
  return std::make_unique<Steps>(program, system, nccl, network, options, form);
}
}  // namespace topsim::executor

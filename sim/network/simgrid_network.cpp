#include "sim/network/simgrid_network.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "sim/base/error.hpp"
#include "sim/base/take_number.hpp"

extern char** environ;

namespace topsim::network {
namespace {

// In the folder of the running program, else found by PATH.
std::string child_program() {
  std::error_code none;
  const auto beside = std::filesystem::read_symlink("/proc/self/exe", none).parent_path() / "topsim-simgrid";
  return std::filesystem::exists(beside, none) ? beside.string() : "topsim-simgrid";
}

// An error at the key network.model.
ConfigError unfit(std::string message, std::string help) {
  Problem problem;
  problem.path = "network.model";
  problem.message = std::move(message);
  problem.help = std::move(help);
  return ConfigError(std::vector<Problem>{std::move(problem)});
}

void refuse(const std::string& feature, const std::string& help) {
  throw unfit("the simgrid network does not carry " + feature, help + "--network flow does");
}
constexpr const char* kConstantLinks =
    "faults without \"at\" and \"for\" hold for the whole run, which it takes; ";

// The next number of the child's answer.
template <class Number>
Number next(std::string_view& answer) {
  return take_number<Number>(answer).value_or(Number{});
}
}  // namespace

bool simgrid_is_installed() {
  const std::string program = child_program();
  if (program.find('/') != std::string::npos) return true;
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((std::filesystem::path(folder) / program).c_str(), X_OK) == 0) return true;
  return false;
}

SimGridNetwork::SimGridNetwork(std::span<const double> capacities) : records_(capacities.size()) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw InternalError("no socket pair");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  std::string program = child_program();
  char* arguments[] = {program.data(), nullptr};
  // The child has its own process group: Ctrl-C reaches only topsim, which stops at the next event and ends
  // the child.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int failed = posix_spawnp(&child_, program.c_str(), &actions, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  socket_ = ends[0];
  if (failed != 0) {
    close(socket_);
    throw unfit("the simgrid network needs the program topsim-simgrid, which is not installed",
                "install libsimgrid-dev and run install.sh again, or use --network flow");
  }
  out_ = fmt::format("L {}", capacities.size());
  for (const double capacity : capacities) out_ += fmt::format(" {:.17g}", capacity);
  out_ += '\n';
}

SimGridNetwork::~SimGridNetwork() {
  close(socket_);
  waitpid(child_, nullptr, 0);
}

void SimGridNetwork::send() const {
  for (std::size_t sent = 0; sent < out_.size();) {
    const ssize_t count = ::send(socket_, out_.data() + sent, out_.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;  // Ctrl-C: the executor stops at the next event
    if (count <= 0) throw InternalError("topsim-simgrid has ended");
    sent += static_cast<std::size_t>(count);
  }
  out_.clear();
}

// Sends the buffered lines and this one; returns the answer, one line.
std::string SimGridNetwork::ask(const std::string& line) const {
  out_ += line + '\n';
  send();
  std::size_t end = 0;
  while ((end = in_.find('\n')) == std::string::npos) {
    char buffer[65536];
    const ssize_t count = read(socket_, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw InternalError("topsim-simgrid has ended");
    in_.append(buffer, static_cast<std::size_t>(count));
  }
  std::string answer = in_.substr(0, end);
  in_.erase(0, end + 1);
  if (answer == "full")
    throw unfit(
        "the simgrid network has room for 16 times as many paths as there are links, messages at a rate of "
        "their "
        "own counted one by one while they are under way; these are more",
        "fewer accelerators, or --network flow, which has no such limit");
  return answer;
}

void SimGridNetwork::start(const Transfer& transfer, SimTime now) {
  if (transfer.weight != 1) refuse("messages that weigh more than others where they share a link", "");
  if (transfer.bytes != std::floor(transfer.bytes)) refuse("fractions of a byte", "");
  std::vector<LinkIndex> path;
  for (const Usage& use : transfer.usage) {
    if (use.coefficient != 1)
      refuse("messages that divide over several paths",
             "topology.fabric.routing=static sends each on one path (ecmp does with "
             "network.packet.queue_pairs=1); ");
    path.push_back(use.link);
  }
  move_to(now);
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(messages_.size()));
    messages_.emplace_back();
  }
  const std::uint32_t number = free_.back();
  free_.pop_back();
  messages_[number] = {transfer.tag, started_++, transfer.latency};
  if (transfer.bytes <= 0 || path.empty()) {
    latencies_.set(number, now + transfer.latency);
    return;
  }
  const auto [known, added] = paths_.try_emplace(path, paths_.size());
  if (added) {
    out_ += fmt::format("P {}", path.size());
    for (const LinkIndex link : path) out_ += fmt::format(" {}", link);
    out_ += '\n';
  }
  out_ += fmt::format("S {} {} {:.0f} {:.17g}\n", number, known->second, transfer.bytes, transfer.rate_cap);
  ++under_way_;
}

SimTime SimGridNetwork::next_event_before(SimTime horizon) {
  for (;;) {
    const SimTime limit = std::min(horizon, latencies_.empty() ? kNever : latencies_.top().key);
    if (limit <= now_ || under_way_ == 0 || !go_on(limit)) return limit;
  }
}

// The child advances to its next end or to `limit`; returns whether something ended. What ended has only its
// latency left.
bool SimGridNetwork::go_on(SimTime limit) {
  const std::string answer =
      ask(limit == kNever ? "G -1" : fmt::format("G {:.17g}", seconds(limit.time_since_epoch())));
  recorded_ = false;
  std::string_view rest = answer;
  const auto reached = next<double>(rest);
  auto count = next<std::size_t>(rest);
  if (count == 0) {
    now_ = limit;
    return false;
  }
  now_ = std::max(now_, SimTime(from_seconds(reached)));
  events_ += count;
  under_way_ -= count;
  for (; count > 0; --count) {
    const auto number = next<std::uint32_t>(rest);
    latencies_.set(number, now_ + messages_[number].latency);
  }
  return true;
}

void SimGridNetwork::move_to(SimTime now) {
  while (now_ < now) (void)go_on(now);
}

void SimGridNetwork::advance(SimTime now, std::vector<Completion>& completed) {
  move_to(now);
  arrived_.clear();
  latencies_.take_until(now, arrived_);
  std::sort(arrived_.begin(), arrived_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return messages_[a].order < messages_[b].order; });
  for (const std::uint32_t number : arrived_) {
    completed.push_back({messages_[number].tag, now});
    free_.push_back(number);
  }
  events_ += arrived_.size();
}

void SimGridNetwork::set_capacity(LinkIndex link, double bytes_per_second, SimTime now) {
  if (bytes_per_second <= 0) refuse("links that fail under way", kConstantLinks);
  move_to(now);
  out_ += fmt::format("C {} {:.17g}\n", link, bytes_per_second);
}

void SimGridNetwork::reroute(const Transfer&, SimTime) {
  refuse("messages that change their path under way", kConstantLinks);
}

LinkRecord SimGridNetwork::record(LinkIndex link) const {
  if (!recorded_) {
    const std::string answer = ask("R");
    std::string_view rest = answer;
    for (LinkRecord& record : records_) {
      record.bytes = next<double>(rest);
      record.peak_rate = next<double>(rest);
      record.busy = from_seconds(next<double>(rest));
    }
    recorded_ = true;
  }
  return records_[link];
}
}  // namespace topsim::network

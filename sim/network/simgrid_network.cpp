#include "sim/network/simgrid_network.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "sim/base/error.hpp"

extern char** environ;

namespace topsim::network {
namespace {

// Beside the running program, else wherever PATH says.
std::string child_program() {
  std::error_code none;
  const auto beside = std::filesystem::read_symlink("/proc/self/exe", none).parent_path() / "topsim-simgrid";
  return std::filesystem::exists(beside, none) ? beside.string() : "topsim-simgrid";
}

void refuse(const std::string& feature) {
  throw ConfigError(
      "the simgrid network does not carry " + feature,
      "it takes single-path routing, \"collectives\": \"steps\" and --no-fold; the flow network "
      "carries everything");
}
}  // namespace

SimGridNetwork::SimGridNetwork(std::span<const double> capacities) : records_(capacities.size()) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw InternalError("no socket pair");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  std::string program = child_program();
  char* arguments[] = {program.data(), nullptr};
  const int failed = posix_spawnp(&child_, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  socket_ = ends[0];
  if (failed != 0) {
    close(socket_);
    throw ConfigError("the simgrid network needs the program topsim-simgrid, which is not installed",
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
    if (count <= 0) throw InternalError("topsim-simgrid has ended");
    sent += static_cast<std::size_t>(count);
  }
  out_.clear();
}

// Sends what is held back and the line; returns the answer, one line.
std::string SimGridNetwork::ask(const std::string& line) const {
  out_ += line + '\n';
  send();
  std::size_t end = 0;
  while ((end = in_.find('\n')) == std::string::npos) {
    char buffer[65536];
    const ssize_t count = read(socket_, buffer, sizeof buffer);
    if (count <= 0) throw InternalError("topsim-simgrid has ended");
    in_.append(buffer, static_cast<std::size_t>(count));
  }
  std::string answer = in_.substr(0, end);
  in_.erase(0, end + 1);
  return answer;
}

void SimGridNetwork::start(const Transfer& transfer, SimTime now) {
  // The child cannot let go of a message once its action is over (about 4 kB each).
  constexpr std::size_t kMostMessages = 2'000'000;
  if (messages_.size() >= kMostMessages) {
    throw ConfigError("the simgrid network carries at most 2 million messages in a run",
                      "fewer micro-batches, layers or steps, or the flow network");
  }
  if (transfer.rate_cap > 0) refuse("rate caps");
  if (transfer.weight != 1) refuse("weights");
  if (transfer.bytes != std::floor(transfer.bytes)) refuse("fractions of a byte");
  std::vector<LinkIndex> path;
  for (const Usage& use : transfer.usage) {
    if (use.coefficient != 1)
      refuse("pipelined collectives, folded classes or messages split over several paths");
    path.push_back(use.link);
  }
  move_to(now);
  const auto number = static_cast<std::uint32_t>(messages_.size());
  messages_.push_back({transfer.tag, transfer.latency});
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
  out_ += fmt::format("S {} {} {:.0f}\n", number, known->second, transfer.bytes);
  known_ = false;
}

SimTime SimGridNetwork::next_event() {
  if (!known_) {
    const double end = std::strtod(ask("N").c_str(), nullptr);
    next_end_ = end < 0 ? kNever : std::max(now_, SimTime(from_seconds(end)));
    known_ = true;
  }
  return std::min(next_end_, latencies_.empty() ? kNever : latencies_.top().key);
}

// The child's clock follows; what ends on the way has only its latency left.
void SimGridNetwork::move_to(SimTime now) {
  if (now == now_ && (known_ ? next_end_ : kNever) > now) return;
  now_ = now;
  const std::string answer = ask(fmt::format("A {:.17g}", seconds(now.time_since_epoch())));
  char* at = nullptr;
  for (auto count = std::strtoull(answer.c_str(), &at, 10); count > 0; --count) {
    const auto number = static_cast<std::uint32_t>(std::strtoull(at, &at, 10));
    latencies_.set(number, now + messages_[number].latency);
    ++events_;
  }
  known_ = recorded_ = false;
}

void SimGridNetwork::advance(SimTime now, std::vector<Completion>& completed) {
  (void)next_event();
  move_to(now);
  arrived_.clear();
  latencies_.take_until(now, arrived_);
  std::sort(arrived_.begin(), arrived_.end());
  for (const std::uint32_t number : arrived_) completed.push_back({messages_[number].tag, now});
  events_ += arrived_.size();
}

void SimGridNetwork::set_capacity(LinkIndex link, double bytes_per_second, SimTime now) {
  if (bytes_per_second <= 0) refuse("links that are down");
  move_to(now);
  out_ += fmt::format("C {} {:.17g}\n", link, bytes_per_second);
  known_ = false;
}

LinkRecord SimGridNetwork::record(LinkIndex link) const {
  if (!recorded_) {
    const std::string answer = ask("R");
    const char* at = answer.c_str();
    for (LinkRecord& record : records_) {
      char* end = nullptr;
      record.bytes = std::strtod(at, &end);
      record.peak_rate = std::strtod(end, &end);
      record.busy = from_seconds(std::strtod(end, &end));
      at = end;
    }
    recorded_ = true;
  }
  return records_[link];
}
}  // namespace topsim::network

#include "sim/program/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sim/base/error.hpp"

namespace topsim::program {
namespace {

template <class Strings>
std::size_t intern(Strings& strings, std::string_view text) {
  const auto found = std::find(strings.begin(), strings.end(), text);
  if (found != strings.end()) return static_cast<std::size_t>(found - strings.begin());
  strings.emplace_back(text);
  return strings.size() - 1;
}

// Ops and ranks name a stream or a class in 16 bits.
std::uint16_t in_16_bits(std::size_t number, const char* what) {
  constexpr std::size_t kMost = std::numeric_limits<std::uint16_t>::max();
  if (number > kMost)
    throw ConfigError(fmt::format("the workload has more than {} {}", kMost + 1, what),
                      fmt::format("at most {} can be simulated", kMost + 1));
  return static_cast<std::uint16_t>(number);
}
}  // namespace

std::string_view name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "all_reduce";
    case CollectiveKind::all_gather:
      return "all_gather";
    case CollectiveKind::reduce_scatter:
      return "reduce_scatter";
    case CollectiveKind::broadcast:
      return "broadcast";
    case CollectiveKind::reduce:
      return "reduce";
    case CollectiveKind::all_to_all:
      return "alltoall";
    case CollectiveKind::send_recv:
      return "sendrecv";
    case CollectiveKind::barrier:
      return "barrier";
  }
  return "unknown";
}

std::string_view name_of(Dimension dimension) {
  switch (dimension) {
    case Dimension::tensor:
      return "tensor";
    case Dimension::context:
      return "context";
    case Dimension::expert:
      return "expert";
    case Dimension::data:
      return "data";
    case Dimension::expert_data:
      return "expert_data";
    case Dimension::pipeline:
      return "pipeline";
    case Dimension::embedding:
      return "embedding";
    case Dimension::model_parallel:
      return "model_parallel";
    case Dimension::world:
      return "world";
    case Dimension::offload:
      return "offload";
  }
  return "unknown";
}

RankProgramBuilder::RankProgramBuilder(Program& program, std::string name) : program_(program) {
  result_.name = std::move(name);
  result_.streams = {"compute"};
  result_.dependency_begin = {0};
}

std::uint16_t RankProgramBuilder::stream(std::string_view name) {
  return in_16_bits(intern(result_.streams, name), "streams of one rank");
}

std::uint32_t RankProgramBuilder::label(std::string_view text) {
  return static_cast<std::uint32_t>(intern(program_.labels, text));
}

std::uint32_t RankProgramBuilder::grids(const Grids& grids) {
  const auto [known, fresh] = grids_.try_emplace(grids, static_cast<std::uint32_t>(result_.grids.size() + 1));
  if (fresh) result_.grids.push_back(grids);
  return known->second;
}

std::uint32_t RankProgramBuilder::add(const Op& op, std::span<const std::uint32_t> dependencies) {
  result_.ops.push_back(op);
  result_.dependencies.insert(result_.dependencies.end(), dependencies.begin(), dependencies.end());
  result_.dependency_begin.push_back(static_cast<std::uint32_t>(result_.dependencies.size()));
  return static_cast<std::uint32_t>(result_.ops.size() - 1);
}

std::uint32_t RankProgramBuilder::size() const {
  return static_cast<std::uint32_t>(result_.ops.size());
}

std::uint16_t RankProgramBuilder::finish() {
  program_.classes.push_back(std::move(result_));
  return in_16_bits(program_.classes.size() - 1, "ranks with a program of their own");
}
}  // namespace topsim::program

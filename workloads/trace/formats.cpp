#include "workloads/trace/formats.hpp"

#include <algorithm>
#include <array>

namespace topsim::workloads::trace {
namespace {
bool is_goal(std::string_view text) {
  return text.find("num_ranks") != std::string_view::npos || text.front() == '/';
}

bool is_aicb(std::string_view text) {
  constexpr std::array<std::string_view, 5> kPolicies = {"HYBRID_", "DATA", "MODEL", "MICRO",
                                                         "DISTRIBUTED_INFERENCE"};
  return std::any_of(kPolicies.begin(), kPolicies.end(),
                     [&](std::string_view policy) { return text.starts_with(policy); });
}

constexpr std::array<Format, 4> kFormats{{
    {.name = "chakra",
     .sign = "NAME.0.et",
     .is = nullptr,
     .loose = false,
     .read = nullptr,
     .read_ranks = read_chakra,
     .write = nullptr,
     .write_ranks = write_chakra,
     .left_out = left_out_of_chakra},
    {.name = "goal",
     .sign = "num_ranks ...",
     .is = is_goal,
     .loose = true,
     .read = [](const std::string& text, const std::string& file,
                std::uint32_t) { return read_goal(text, file); },
     .read_ranks = nullptr,
     .write = write_goal,
     .write_ranks = nullptr,
     .left_out = left_out_of_goal},
    {.name = "aicb",
     .sign = "",
     .is = is_aicb,
     .loose = false,
     .read = read_aicb,
     .read_ranks = nullptr,
     .write = nullptr,
     .write_ranks = nullptr,
     .left_out = nullptr},
    {.name = "native",
     .sign = "topsim.trace/1",
     .is = [](std::string_view text) { return text.front() == '{'; },
     .loose = false,
     .read = [](const std::string& text, const std::string& file,
                std::uint32_t) { return read_native(text, file); },
     .read_ranks = nullptr,
     .write = write_native,
     .write_ranks = nullptr,
     .left_out = nullptr},
}};

constexpr bool all_are_read() {
  for (const Format& each : kFormats)
    if ((each.read == nullptr) == (each.read_ranks == nullptr)) return false;
  return true;
}
static_assert(all_are_read(), "a format is one file or one a rank");
}  // namespace

std::span<const Format> formats() {
  return kFormats;
}

const Format* find_format(std::string_view name) {
  const auto found =
      std::find_if(kFormats.begin(), kFormats.end(), [&](const Format& each) { return each.name == name; });
  return found != kFormats.end() ? &*found : nullptr;
}

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const Format& each : kFormats) names.emplace_back(each.name);
  return names;
}

std::vector<std::string> written_names() {
  std::vector<std::string> names;
  for (const bool whole : {true, false})
    for (const Format& each : kFormats)
      if ((each.write != nullptr || each.write_ranks != nullptr) && (each.left_out == nullptr) == whole)
        names.emplace_back(each.name);
  return names;
}
}  // namespace topsim::workloads::trace

// What one schedule has that another has not: the table that everything else asks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace topsim::workloads {

enum class Schedule : std::uint8_t { gpipe, one_f_one_b, interleaved, zb_h1, zb_1p, zb_2p, zb_v, dualpipe };

// Which part of the model, of p stages, a rank's second chunk is.
enum class SecondChunk : std::uint8_t {
  none,       // it has one
  next,       // p stages further on, as any chunk after it: as many as the plan has virtual stages
  on_return,  // the model comes back in a V: stage 2p - 1 - r
  mirrored    // a second copy of the model, from the other end: stage p - 1 - r
};

struct ScheduleTraits {
  std::string_view name, text;  // as scenarios and results write it; for the list of the field's values
  SecondChunk second_chunk = SecondChunk::none;
  bool splits_weights = false;  // backward passes have two parts, gradients of inputs and of weights
  bool made_for_plan = false;   // its order is built for a plan's times and memory (automatic.hpp)
  bool pairs_passes = false;  // a forward pass stands beside a backward pass, whose communication it may hide
  // Messages go while a stage computes; `must`: its stages would wait for each other for ever if they did
  // not.
  bool overlaps_messages = false, must_overlap_messages = false;
  bool equal_bubble_known = false;  // (p-1) / (v m + p-1) of a step of equal stages, v virtual stages
};

// In the order of the enum.
inline constexpr std::array<ScheduleTraits, 8> kScheduleTraits = {
    {{.name = "gpipe", .text = "all forwards, then all backwards", .equal_bubble_known = true},
     {.name = "1f1b", .text = "one forward, one backward", .pairs_passes = true, .equal_bubble_known = true},
     {.name = "interleaved",
      .text = "1F1B over virtual stages",
      .second_chunk = SecondChunk::next,
      .pairs_passes = true,
      .equal_bubble_known = true},
     {.name = "zb-h1",
      .text = "zero bubble, memory of 1F1B",
      .splits_weights = true,
      .overlaps_messages = true},
     {.name = "zb-1p",
      .text = "zero bubble made for the plan's times, memory of 1F1B on every stage, the norm is checked in "
              "the next step",
      .splits_weights = true,
      .made_for_plan = true,
      .overlaps_messages = true,
      .must_overlap_messages = true},
     {.name = "zb-2p",
      .text = "zero bubble, twice the memory, the norm is checked in the next step",
      .splits_weights = true,
      .made_for_plan = true,
      .overlaps_messages = true,
      .must_overlap_messages = true},
     {.name = "zb-v",
      .text = "zero bubble, two chunks in a V",
      .second_chunk = SecondChunk::on_return,
      .splits_weights = true,
      .overlaps_messages = true,
      .must_overlap_messages = true},
     {.name = "dualpipe",
      .text = "micro-batches enter at both ends",
      .second_chunk = SecondChunk::mirrored,
      .pairs_passes = true,
      .overlaps_messages = true,
      .must_overlap_messages = true}}};

[[nodiscard]] constexpr const ScheduleTraits& traits(Schedule schedule) {
  return kScheduleTraits[static_cast<std::size_t>(schedule)];
}
[[nodiscard]] constexpr std::string_view name_of(Schedule schedule) {
  return traits(schedule).name;
}
}  // namespace topsim::workloads

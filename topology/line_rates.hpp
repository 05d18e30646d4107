// Line rates are rounded where they are published: two within a thousandth of each other are the same.
#pragma once

namespace topsim::topology {
inline constexpr double kJustBelow = 0.999, kJustAbove = 1.001;  // of a rate
}  // namespace topsim::topology

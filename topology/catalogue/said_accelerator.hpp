// What a name says of accelerators: "8xH100" eight of them, "NDasrA100_v4" an A100, "DGX GB200" a GB200 and
// no B200.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace topsim::topology {

struct SaidAccelerator {
  std::string chip;                       // "h100", as it stands in the name, without marks
  std::vector<std::string> accelerators;  // ids with this chip that have most of the name's other words
  std::optional<int> count;               // "8x", "x8", "8-GPU", or a number behind the chip
  std::vector<std::string> words;         // in lower case, what is left: "dgx", "v4"
};

// The longest chip of these accelerators' ids that the name has, whatever its capitals, hyphens and spaces;
// none where it has none. A digit more is another chip: no H20 in "h200".
[[nodiscard]] std::optional<SaidAccelerator> said_accelerator(std::string_view name,
                                                              std::span<const std::string> ids);
}  // namespace topsim::topology

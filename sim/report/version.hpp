// Which topsim this is, and how much memory its process took.
#pragma once

#include <cstdint>
#include <string_view>

namespace topsim::report {
[[nodiscard]] std::string_view version();
[[nodiscard]] std::string_view commit();  // short hash of the checkout that was configured, or "unknown"
// High-water mark of the process so far; 0 where the system does not say.
[[nodiscard]] std::uint64_t peak_resident_bytes();
}  // namespace topsim::report

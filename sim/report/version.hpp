// The version of topsim, and the memory that its process took.
#pragma once

#include <cstdint>
#include <string_view>

namespace topsim::report {
[[nodiscard]] std::string_view version();
[[nodiscard]] std::string_view commit();  // short hash of the checkout that was configured, or "unknown"
// The interpreter that the Python module was built for, "Python 3.11.2 (/usr/bin/python3)", empty where it
// was left out; and where below the prefix it is installed.
[[nodiscard]] std::string_view python();
[[nodiscard]] std::string_view python_folder();
// High-water mark of the process so far; 0 where the system does not say.
[[nodiscard]] std::uint64_t peak_resident_bytes();
}  // namespace topsim::report

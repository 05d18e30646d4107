// The page without data, as the build put it together; empty where the chart library was missing.
#pragma once

#include <string_view>

namespace topsim::report {
[[nodiscard]] std::string_view page_text();
}

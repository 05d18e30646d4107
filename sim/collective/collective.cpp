#include "sim/collective/collective.hpp"

#include <array>

namespace topsim::collective {

std::string_view name_of(Algorithm algorithm) {
  constexpr std::array<std::string_view, 8> names{"Tree", "Ring",     "CollNetDirect", "CollNetChain",
                                                  "NVLS", "NVLSTree", "PAT",           "Direct"};
  return names[static_cast<std::size_t>(algorithm)];
}

std::string_view name_of(Protocol protocol) {
  constexpr std::array<std::string_view, 3> names{"LL", "LL128", "Simple"};
  return names[static_cast<std::size_t>(protocol)];
}
}  // namespace topsim::collective

#include "sim/collective/collective.hpp"

namespace topsim::collective {

std::string_view name_of(Algorithm algorithm) {
  constexpr std::string_view kNames[] = {"Tree",    "Ring", "CollNetDirect", "CollNetChain",
                                         "NVLS", "NVLSTree", "PAT",           "Direct"};
  return kNames[static_cast<std::size_t>(algorithm)];
}

std::string_view name_of(Protocol protocol) {
  constexpr std::string_view kNames[] = {"LL", "LL128", "Simple"};
  return kNames[static_cast<std::size_t>(protocol)];
}
}  // namespace topsim::collective

#pragma once

namespace topsim::scenario {
// The sections that may be in a file of their own, like a whole scenario: {"file": "base.json", ...}.
// `topology.file` is not here: it names an exported topology, which topology/ reads.
inline constexpr const char* kIncludable[] = {"workload", "network", "run", "cost"};
}  // namespace topsim::scenario

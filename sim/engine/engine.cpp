#include "sim/engine/engine.hpp"

#include "sim/base/error.hpp"

namespace topsim::engine {

void too_late() {
  throw ConfigError("the run takes longer than 106 days, the most that picoseconds in 64 bits can count",
                    "look for a sequence or a batch of far too much, or a latency, a launch_overhead or a "
                    "bandwidth with the wrong unit");
}
}  // namespace topsim::engine

// NCCL's channel search. Given a box and a pattern, it looks for the most channels at the highest speed that
// the links carry together: each channel reserves its speed on every link it crosses. Speeds are tried from a
// ladder, fastest first; at each speed the search relaxes, in this order, "all channels alike", the worst
// path type inside the box, the worst path type to a NIC, "leave by the NIC you entered by". A second pass
// raises the speed of what was found. Every attempt has a budget of visited GPUs, so that a large box cannot
// hang the start of a job; results of boxes that exhaust it depend on the order of candidates, which is
// therefore NCCL's.
//
// Facts: NCCL 2.30 src/graph/search.cc (ladders, budgets, order), src/graph/topo.h.
#pragma once

#include "sim/collective/nccl/graph.hpp"

namespace topsim::collective::nccl {

struct SearchRequest {
  Pattern pattern = Pattern::ring;
  int min_channels = 1, max_channels = 32;
  bool in_network_reduction = false;  // only NICs whose fabric reduces
};

[[nodiscard]] ChannelGraph search(const System& system, const SearchRequest& request);
}  // namespace topsim::collective::nccl

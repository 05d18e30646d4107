// Sizes of a folded Clos fabric (leaf-spine, or three tiers) before any device exists.
//
//   leaf    D ports down, U = ceil(D / r1) up, spread evenly: p cables to each of the S spines of its pod
//   spine   L p down (L leaves in the pod), ceil(L p / r2) up: q cables to each of the C cores of its plane
//   core    plane j joins spine j of every pod: pods x q ports
// The fewest switches that fit the radix and keep every ratio at or below the one asked for.
#pragma once

#include <vector>

namespace topsim::topology {

struct ClosDemand {
  int leaves = 0;          // of all rails
  int rails = 1;           // pods of three tiers hold leaves of one rail: rail-aligned traffic stays below
                           // the cores
  int down_ports = 0;      // used on the fullest leaf
  int radix = 0;           // ports of a switch at the cables' speed
  int leaves_per_pod = 0;  // most that may share spines; 0: as many as the radix allows
  int tiers = 0;           // 2 or 3; 0: the fewest that fit
  double leaf_ratio = 1, spine_ratio = 1;
};

struct ClosPlan {
  int tiers = 2;
  int pods = 1, leaves_per_pod = 0;
  int spines = 0, leaf_cables = 0;  // per pod; cables between a leaf and one spine
  int cores = 0, spine_cables = 0;  // per plane; cables between a spine and one core
  [[nodiscard]] int uplinks() const { return spines * leaf_cables; }
  [[nodiscard]] int spine_uplinks() const { return cores * spine_cables; }
};

// Throws ConfigError (path topology.fabric) with what would fit.
[[nodiscard]] ClosPlan plan_clos(const ClosDemand& demand);

// Ports of a leaf that may face the nodes at oversubscription `ratio`, the rest going up.
[[nodiscard]] int down_ports_of(int radix, double ratio);
}  // namespace topsim::topology

// Sizes of a folded Clos fabric (leaf-spine, or three tiers) before any device exists.
//
//   leaf    D cables down, U = ceil(D / (r1 v)) up (v: an uplink's speed over a node cable's), spread evenly:
//           p cables to each of the S spines of its pod
//   spine   L p down (L leaves in the pod), ceil(L p / r2) up: q cables to each of the C cores of its plane
//   core    plane j joins spine j of every pod: pods x q ports
// The fewest switches that fit the ports and keep every ratio at or below the one asked for.
#pragma once

#include <vector>

namespace topsim::topology {

struct ClosDemand {
  int leaves = 0;      // of all rails
  int rails = 1;       // leaves that serve the same nodes
  int pod_rails = 1;   // of three tiers: those of them that a pod holds. The leaves of one rail (1, or 2 of
                       // dual ToRs): rail-aligned traffic stays below the cores; all: a pod is a set of nodes
  int down_ports = 0;  // used on the fullest leaf
  int radix = 0;       // of a leaf, at the speed of the nodes' cables
  int uplink_radix = 0;     // of a leaf, at the speed of the cables up; 0: radix
  int spine_radix = 0;      // 0: uplink_radix
  int core_radix = 0;       // 0: spine_radix
  double uplink_speed = 1;  // v
  int leaves_per_pod = 0;   // most sets of nodes in a pod; 0: as many as the ports allow
  int tiers = 0;            // 2 or 3; 0: the fewest that fit
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

// The number of cables to the nodes for which the uplinks still fit: of a switch with `radix` ports at the
// speed down and `uplink_radix` at the speed up, one cable up for every `down_per_up` down.
[[nodiscard]] int down_ports_of(int radix, int uplink_radix, double down_per_up);
// The number of cables up for which a switch with `down` cables down has ports left.
[[nodiscard]] int free_uplinks(int radix, int uplink_radix, int down);
}  // namespace topsim::topology

// Trees over which a sum is made: the heads of boxes are the leaves, with switches of the fabric above them
// where these sum (SHARP), or they are all nodes.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/collective/placement.hpp"

namespace topsim::collective {

struct SumWay {
  std::vector<LinkId> links;  // none: as the router says, by these NICs
  Duration latency{};
  DeviceId from_nic{}, to_nic{};
};

// One head's tree.
struct SumTree {
  static constexpr std::uint32_t kNone = ~0U;
  struct Node {
    std::uint32_t box = kNone;  // its head; none: a switch
    DeviceId device{};          // a switch of the fabric
    std::uint32_t parent = kNone;
    SumWay up, down;  // to the parent and back
    std::vector<std::uint32_t> children;
  };
  std::vector<Node> nodes;  // children before parents
};

class SumTrees {
 public:
  // `nvls`: heads are those of the NVLS graph, else those of CollNet.
  SumTrees(const topology::Router& router, const Placement& placement, bool nvls)
      : router_(router), topology_(router.topology()), placement_(placement), nvls_(nvls) {}

  [[nodiscard]] int heads() const;
  [[nodiscard]] std::size_t head_of(const PlacedBox& box, int head) const;  // place of its GPU in the box
  // Over switches that sum, each head over cables of its own where there are enough.
  [[nodiscard]] SumTree in_fabric(int head);
  // One of NCCL's two binary trees over the boxes, whose heads sum (NVLSTree).
  [[nodiscard]] SumTree over_boxes(int head, bool second) const;
  [[nodiscard]] SumWay along(std::vector<LinkId> links) const;

 private:
  using Links = std::vector<LinkId>;
  [[nodiscard]] const nccl::Channel& channel(const PlacedBox& box, int head) const;
  [[nodiscard]] DeviceId gpu(const PlacedBox& box, int head) const { return box.gpus[head_of(box, head)]; }
  [[nodiscard]] DeviceId nic(const PlacedBox& box, int head) const;
  LinkId least_taken(const Links& ways, int head);
  template <class Known>
  std::vector<Links> parts(const PlacedBox& from, const PlacedBox& to, int head, const Known& known);
  [[nodiscard]] LinkId other_way(LinkId id) const;
  [[nodiscard]] Links turned(const Links& links) const;

  const topology::Router& router_;
  const topology::Topology& topology_;
  const Placement& placement_;
  const bool nvls_;
  std::map<LinkId, int> heads_on_;
};
}  // namespace topsim::collective

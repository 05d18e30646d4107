// The channels NCCL finds inside one box for one pattern: in which order each visits the GPUs, through which
// NICs it enters and leaves, and at what speed.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/collective/nccl/system.hpp"

namespace topsim::collective::nccl {

// Numbers as NCCL writes them.
enum class Pattern : std::uint8_t {
  balanced_tree = 1,  // NIC traffic spread over two GPUs: parent and one child on the first, the other child
                      // on the second
  split_tree = 2,     // parent on the first GPU, children on the second
  tree = 3,           // all on the first GPU
  ring = 4,
  nvls = 5,           // one channel a head: the GPU that reduces its share in the NVSwitch
  collnet_direct = 6  // one channel a head, others send to it directly
};

struct Channel {
  std::vector<int> gpus;               // indices into System's GPUs, in order of travel; heads first
  int enter_net = -1, leave_net = -1;  // indices into System's ports; -1 inside one box
};

// What the search reports where nothing fits.
inline constexpr float kNoChannel = 0.1F;

struct ChannelGraph {
  Pattern pattern = Pattern::ring;
  std::vector<Channel> channels;
  float bandwidth_intra = 0, bandwidth_inter = 0;                   // GB/s of one channel
  PathType type_intra = PathType::loc, type_inter = PathType::loc;  // worst path used
  int cross_nic = 0;          // 2: channels come in pairs that leave by each other's entry NIC
  bool same_channels = true;  // all channels visit the GPUs in the same order
  int hops = 0;               // links crossed, all channels
  [[nodiscard]] int count() const { return static_cast<int>(channels.size()); }
};
}  // namespace topsim::collective::nccl

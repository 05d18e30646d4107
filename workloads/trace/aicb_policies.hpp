// Which ranks the layers of an AICB file communicate with.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace topsim::workloads::trace {

// Tensor groups are consecutive ranks, and data groups one rank of each; with HYBRID_MODEL_DATA the other way
// round (kTensorApart, kDataTogether).
enum AicbGroup : std::size_t {
  kTensor,
  kData,
  kExpert,
  kExpertData,
  kWorld,
  kTensorApart,
  kDataTogether,
  kNowhere
};

// The groups over which layers communicate: {forward, input gradient, weight gradient}; ASTRA-sim,
// workload/Workload.cc, decode_involved_dimensions(), and before it iterate_hybrid_parallel_model_data(): the
// weight gradients of HYBRID_MODEL_DATA take the first dimension of the network, its other passes the rest.
struct AicbPolicy {
  std::string_view name;
  std::array<std::size_t, 3> groups;
  bool sized = false;  // ASTRA-sim takes the size of its groups from its network: line 1 has to say it here
};
inline constexpr std::array<AicbPolicy, 11> kAicbPolicies{
    {{"HYBRID_TRANSFORMER_FWD_IN_BCKWD", {kTensor, kTensor, kData}, true},
     {"HYBRID_TRANSFORMER", {kTensor, kTensor, kData}, true},
     {"DATA", {kNowhere, kNowhere, kWorld}},
     {"MODEL", {kWorld, kWorld, kNowhere}},
     {"HYBRID_DATA_MODEL", {kTensor, kTensor, kData}, true},
     {"HYBRID_MODEL_DATA", {kTensorApart, kTensorApart, kDataTogether}, true},
     {"HYBRID_DLRM", {kNowhere, kNowhere, kWorld}},
     {"HYBRID_DLRM_ENHANCED", {kNowhere, kNowhere, kWorld}},
     {"HYBRID_CUSTOMIZED", {}},  // each layer has its own
     {"MICRO", {kNowhere, kNowhere, kWorld}},
     {"DISTRIBUTED_INFERENCE", {kWorld, kWorld, kNowhere}}}};
inline constexpr AicbPolicy kEverywhere{"", {kWorld, kWorld, kWorld}};  // the first layer of a DLRM
}  // namespace topsim::workloads::trace

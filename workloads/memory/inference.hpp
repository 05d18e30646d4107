// Memory of inference: weights in the format of the matmuls (embeddings, LM head and the copies of absorbed
// latent attention as wide as activations),
// the keys and values of every request of the replica, and the working space of one layer of one micro-batch.
//   key-value cache of a stage = 2 x layers x key-value heads / tp x head size x bytes x sequence / cp x
//   requests
#pragma once

#include "workloads/memory/memory.hpp"

namespace topsim::workloads {

// REQUIRES: plan.inference().
[[nodiscard]] MemoryUse inference_memory(const ModelSpec& model, const Plan& plan, Bytes capacity);
// Keys and values of one token in one layer, on one tensor rank.
[[nodiscard]] double cache_bytes_per_token(const ModelSpec& model, const Plan& plan);
}  // namespace topsim::workloads

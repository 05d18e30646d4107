// What the kernels of DeepEP and HybridEP take for one exchange of tokens where no link holds them up.
#pragma once

#include "topology/catalogue.hpp"
#include "workloads/spec.hpp"

namespace topsim::workloads {

struct TokenExchange {
  TokenDispatcher dispatcher = TokenDispatcher::deepep;
  bool combine = false;      // answers go back and are summed; else tokens go to their experts
  double copies = 0;         // of tokens that arrive at a rank, from itself too
  double row = 0;            // bytes of one
  double probabilities = 0;  // bytes that HybridEP sends beside it: fp32, for every expert of the domain
  double ranks = 0;          // of one NVLink domain that take part
  int domains = 1;
  int units = 0;  // SMs that the kernels hold
};

// Seconds; 0 where nobody has published a time for such a chip: then as NCCL's.
[[nodiscard]] double exchange_seconds(const TokenExchange& exchange, const topology::Accelerator& chip);

// The same of DeepEP's low-latency kernels (Plan::low_latency_exchange), which send `copies` rows of `row`
// bytes.
[[nodiscard]] double low_latency_seconds(double copies, double row, const topology::Accelerator& chip);
}  // namespace topsim::workloads

// A scenario that runs in milliseconds, which the tests of studies vary.
#pragma once

namespace topsim::study {
inline constexpr const char* kTwoBoxes = R"({
  "topology": {"node": "hgx-h100", "nodes": 2, "fabric": {"kind": "rail", "link": "ib-ndr", "switch": "qm9700"}},
  "workload": {"model": "megatron-1.7b", "sequence": 2048, "precision": "bf16", "framework": "megatron",
               "plan": {"tp": 8, "dp": 2, "micro_batch": 1, "global_batch": 8}},
  "run": {"steps": 1, "warmup": 0, "seed": 1}})";
}  // namespace topsim::study

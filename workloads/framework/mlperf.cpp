// NVIDIA's code for MLPerf Training's LoRA of Llama-2 70B (llama2_70b_lora), which submitters run with
// configurations of their own. Files are those of mlcommons/training_results_v4.1 and later,
// NVIDIA/benchmarks/llama2_70b_lora/implementations.
#include "workloads/framework/rows.hpp"

namespace topsim::workloads {
// Adapters of rank 16 on attention (the benchmark's rules). conf/megatron_gpt_peft_tuning_config.yaml keeps
// frozen weights in 8 bits; config_common.sh has FP8_DPA=1, and every configuration with both tp and cp
// FP8_DPA=0 and NVTE_FP8_DPA_BWD=0; TP_COMM_OVERLAP is set with tp on boxes of eight. From v4.1 on (v4.0 has
// no graphs) configurations with cp launch layers from graphs: LAYER_CUDA_GRAPH=1
// (config_DGXH100_16x8x1xtp4pp1cp2.sh), in v5.0 MCORE_CUDA_GRAPH=1 (config_GB200_18x4x1xtp1pp1cp8.sh). Of
// v5.1's runs in 4 bits these are assumed alike. plan/scripts.cpp applies all of it.
Framework megatron_2024_mlperf() {
  Framework row = megatron_2024();
  row.release = "2024-mlperf";
  row.lora_scripts = true;
  row.summary =
      "NVIDIA's MLPerf code v4.1, task lora: 8-bit frozen weights and attention, user buffers, graphs with "
      "cp";
  return row;
}

Framework megatron_2025_mlperf() {
  Framework row = megatron_2025();
  row.release = "2025-mlperf";
  row.lora_scripts = true;
  row.summary = "NVIDIA's MLPerf code v5.0 and v5.1, task lora: as 2024-mlperf, on the kernels of 2025";
  row.sharded = {};
  return row;
}
}  // namespace topsim::workloads

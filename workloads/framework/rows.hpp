// One function per release; it starts from the release before and says, with its source, what differs.
#pragma once

#include "workloads/framework.hpp"

namespace topsim::workloads {

[[nodiscard]] Framework megatron_2025();
[[nodiscard]] Framework megatron_2025_fsdp();
[[nodiscard]] Framework megatron_2025_mlperf();
[[nodiscard]] Framework megatron_2024();
[[nodiscard]] Framework megatron_2024_mlperf();
[[nodiscard]] Framework megatron_2024_core06();
[[nodiscard]] Framework megatron_2023();
[[nodiscard]] Framework megatron_2023_llama();
[[nodiscard]] Framework megatron_2022();
[[nodiscard]] Framework megatron_2021();
[[nodiscard]] Framework megatron_2019();
[[nodiscard]] Framework ddp();
[[nodiscard]] Framework ddp_compiled();
[[nodiscard]] Framework data_parallel();
[[nodiscard]] Framework fsdp();
[[nodiscard]] Framework fsdp_2023();
[[nodiscard]] Framework fsdp_flat();
[[nodiscard]] Framework fsdp_compiled();
[[nodiscard]] Framework fsdp_compiled_loss();
[[nodiscard]] Framework fsdp_eager_2025();
[[nodiscard]] Framework fsdp_eager_2026();
[[nodiscard]] Framework fsdp_compiled_2026();
[[nodiscard]] Framework fsdp_automodel();
[[nodiscard]] Framework deepspeed();
[[nodiscard]] Framework deepspeed_2022();
[[nodiscard]] Framework deepspeed_transformers();
[[nodiscard]] Framework internevo();
[[nodiscard]] Framework paddle();
[[nodiscard]] Framework maxtext();
[[nodiscard]] Framework maxtext_gpu();
[[nodiscard]] Framework pax_2024();
[[nodiscard]] Framework maxtext_2025();
[[nodiscard]] Framework pax();
}  // namespace topsim::workloads

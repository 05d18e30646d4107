#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "topology/generation.hpp"
#include "topology/routes.hpp"
#include "workloads/compute/compute_model.hpp"
#include "workloads/compute/formats.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads {

namespace {

// The number of ranks in the NVLink domain of the first one.
int domain_ranks(const topology::Topology& topology) {
  const topology::Router router(topology, 0);
  const auto accelerators = topology.accelerators();
  const std::uint32_t first = router.scale_up_domain(accelerators.front());
  return static_cast<int>(std::count_if(accelerators.begin(), accelerators.end(),
                                        [&](DeviceId id) { return router.scale_up_domain(id) == first; }));
}

// Why an accelerator trains in no format as narrow as this one; empty if it does.
// Transformer Engine stops below compute capability 8.9 ("Device compute capability 8.9 or higher required
// for FP8 execution", NVIDIA/TransformerEngine issue 1159), for scales of blocks below 9.0, for MXFP8 and
// NVFP4 below 10.0 and for MXFP8 from 12.0 on ("MXFP8 (for all gemm layouts) is not supported on 12.0+
// architectures yet"; transformer_engine/pytorch/quantization.py), and before AMD's CDNA 3
// (ROCm/TransformerEngine issue 359); so does torch._scaled_mm, which torchao calls (pytorch pull request
// 164251). AMD has MX's scales of blocks from CDNA 4 on, and no NVFP4. XLA's fp8 products are for GPUs
// ("'fp8' for 8-bit floating-point gemms on nvidia gpus", MaxText, base.yml) and for TPUs with such units.
std::string why_not_so_narrow(Precision format, const topology::Accelerator& accelerator) {
  const bool blocks = format == Precision::mxfp8 || format == Precision::nvfp4;
  if (topology::is_nvidia(accelerator)) {
    if (accelerator.compute_capability < topology::kAda)
      return "it has no fp8 units, and Transformer Engine and torchao refuse to go without";
    if (format == Precision::fp8_blockwise && !topology::is_from_hopper(accelerator))
      return "Transformer Engine has scales of blocks from Hopper on";
    if (blocks && !scales_blocks(accelerator))
      return "its units have no scales of blocks, which Blackwell's have";
    if (format == Precision::mxfp8 && !topology::is_data_center_blackwell(accelerator))
      return "Transformer Engine has no MXFP8 for Blackwells outside data centres";
    return {};
  }
  const bool has_fp8 = accelerator.dense_flops.contains("fp8");
  if (accelerator.vendor == "AMD") {
    if (!has_fp8) return "it has no fp8 units, and Transformer Engine and torchao refuse to go without";
    if (format == Precision::mxfp8 && !scales_blocks(accelerator))
      return "its units have no scales of blocks, which CDNA 4's have";
  }
  if (format == Precision::nvfp4) return "NVFP4 is NVIDIA's format";
  if (accelerator.vendor != "Google") return {};
  return !has_fp8                   ? "it has no fp8 units"
         : format != Precision::fp8 ? "XLA's fp8 has a scale for each tensor"
                                    : "";
}

// Engines that serve a model keep narrow weights on a chip that has no units for them, and multiply in 16
// bits (vLLM: Marlin's kernels, "Weight-only FP4 compression will be used").
void require_served_format(const WorkloadSpec& workload, const topology::Accelerator& accelerator) {
  const Precision format = workload.precision.gemm;
  const bool blocks = format == Precision::mxfp8 || format == Precision::nvfp4;
  const bool nvidia = topology::is_nvidia(accelerator);
  if (bytes_of(format) >= 2) return;
  const bool multiplies = blocks ? scales_blocks(accelerator) && (nvidia || format == Precision::mxfp8)
                                 : accelerator.dense_flops.contains("fp8");
  if (multiplies) return;
  Problem problem;
  problem.path = "workload.precision";
  problem.message = fmt::format("{} has no units that multiply in {}", accelerator.name, name_of(format));
  problem.help = fmt::format(
      "engines multiply in 16 bits there: \"precision\": {{\"gemm\": \"{}\", \"weights\": \"{}\"}}",
      accelerator.dense_flops.contains("bf16") ? "bf16" : "fp16",
      format == Precision::nvfp4 ? "nvfp4" : "fp8");
  throw ConfigError({problem});
}

void require_narrow_products(const WorkloadSpec& workload, const topology::Accelerator& accelerator) {
  if (serves(workload.task)) return require_served_format(workload, accelerator);
  if (bytes_of(workload.precision.gemm) >= 2) return;
  const std::string why = why_not_so_narrow(workload.precision.gemm, accelerator);
  if (why.empty()) return;
  Problem problem;
  problem.path = "workload.precision";
  problem.message =
      fmt::format("{} cannot train in {}: {}", accelerator.name, name_of(workload.precision.gemm), why);
  const bool narrower =
      workload.precision.gemm != Precision::fp8 && why_not_so_narrow(Precision::fp8, accelerator).empty();
  problem.help = narrower ? "use fp8" : accelerator.dense_flops.contains("bf16") ? "use bf16" : "use fp16";
  throw ConfigError({problem});
}
}  // namespace

MachineFacts host_facts(const topology::Accelerator& accelerator) {
  MachineFacts facts;
  if (const int succeeded = topology::succeeded_in(accelerator)) facts.software_year = succeeded + 1;
  facts.nccl = accelerator.library == "NCCL" || accelerator.library == "RCCL";
  return facts;
}

MachineFacts host_facts(const topology::Topology& topology, const topology::Catalogue& catalogue) {
  if (topology.accelerators().empty()) return {};
  MachineFacts facts = host_facts(catalogue.accelerator(topology.model_of(topology.accelerators().front())));
  const std::uint32_t node = topology.device(topology.accelerators().front()).node;
  facts.accelerators = 0;
  for (const DeviceId id : topology.accelerators())
    facts.accelerators += topology.device(id).node == node ? 1 : 0;
  double bandwidth = 0;
  for (const DeviceId device : topology.devices_of_node(node)) {
    for (const LinkId id : topology.links_from(device)) {
      const topology::Link& link = topology.link(id);
      const topology::Device& to = topology.device(link.to);
      if (to.kind != topology::DeviceKind::host_memory || to.node != node) continue;
      bandwidth += link.capacity.value();
      facts.memory = Bytes(facts.memory.value() + topology.facts_of(link.to).memory.value());
    }
  }
  if (bandwidth > 0) facts.memory_bandwidth = BytesPerSecond(bandwidth);
  return facts;
}

void require_accelerators(const topology::Topology& topology) {
  if (!topology.accelerators().empty()) return;
  Problem problem;
  problem.path = "topology";
  problem.message = "the topology has no accelerators";
  problem.help = "add devices of kind accelerator, or choose a node recipe; ibnetdiscover lists none";
  throw ConfigError({problem});
}

program::Program training_step(const WorkloadSpec& workload, const topology::Topology& topology,
                               const topology::Catalogue& catalogue) {
  require_accelerators(topology);
  const auto accelerators = topology.accelerators();
  const std::string& first = topology.model_of(accelerators.front());
  for (const DeviceId id : accelerators)
    if (topology.device(id).model != topology.device(accelerators.front()).model)
      throw ConfigError(fmt::format("the job mixes {} and {}", first, topology.model_of(id)),
                        "a plan runs on accelerators of one kind; choose them with topology.accelerators");
  if (framework(workload.framework).family == FrameworkFamily::dataparallel && topology.nodes() > 1) {
    Problem problem;
    problem.path = "workload.framework";
    problem.message =
        fmt::format("framework dataparallel is one process, the job has {} nodes", topology.nodes());
    problem.help = "use framework ddp, or one node";
    throw ConfigError({problem});
  }
  require_narrow_products(workload, catalogue.accelerator(first));
  WorkloadSpec placed = workload;
  placed.host = host_facts(topology, catalogue);
  return training_step(placed, catalogue.accelerator(first), static_cast<std::uint32_t>(accelerators.size()),
                       // Only dispatchers that know nodes ask.
                       sends_one_copy(workload.plan.token_dispatcher.value_or(TokenDispatcher::alltoall))
                           ? domain_ranks(topology)
                           : 0);
}
}  // namespace topsim::workloads

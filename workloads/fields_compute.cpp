// Fields for the time of computation: overrides of the compute model, or measured times instead of it.
#include "workloads/fields.hpp"

namespace topsim::workloads {

using config::at_least;
using config::between;
using config::default_text;
using config::Object;
using config::one_of;
using config::one_or_list;
using config::positive;

const Object<StageTimes>& table(config::Type<StageTimes>) {
  static const auto object =
      Object<StageTimes>(
          "stage_times",
          "Measured times of a micro-batch in a stage, its virtual stages together; one for all "
          "stages or one each. No optimiser holds the end of a step: the next one's first passes "
          "fill its last bubbles, where a schedule lets them (run.warmup 0 and run.steps 1 show one alone)")
          .field("forward", &StageTimes::forward, "forward pass", one_or_list<Duration>())
          .field("backward_input", &StageTimes::backward_input, "gradients of activations",
                 one_or_list<Duration>())
          .field("backward_weight", &StageTimes::backward_weight, "gradients of weights",
                 one_or_list<Duration>())
          .field("transfer", &StageTimes::transfer, "message to the next stage", one_or_list<Duration>());
  return object;
}

const Object<ComputeSpec>& table(config::Type<ComputeSpec>) {
  static const auto object =
      Object<ComputeSpec>("compute", "Overrides of the compute model")
          .field("gemm_efficiency", &ComputeSpec::gemm_efficiency,
                 "share of the data sheet's rate that matmuls reach, instead of the tile model",
                 between(0.01, 1))
          .field("sm_margin", &ComputeSpec::sm_margin,
                 "SMs that matrix products leave free for communication (Transformer Engine's "
                 "NVTE_EXT_MARGIN_SM, PyTorch's SM carveout)",
                 between(0, 64))
          .field("launch_overhead", &ComputeSpec::launch_overhead,
                 "host time of every kernel alike, in place of the framework's calls that are counted one by "
                 "one",
                 config::at_most_a_second(), default_text("the framework's calls"))
          .field("launch_blocking", &ComputeSpec::launch_blocking,
                 "the host waits for each kernel before it launches the next (CUDA_LAUNCH_BLOCKING=1)")
          .field("cuda_graph", &ComputeSpec::cuda_graph, "kernels are launched from a graph",
                 default_text("the framework's"))
          .field("graph_parts", &ComputeSpec::graph_parts,
                 "parts of a layer that are launched from graphs of their own, the rest eagerly",
                 config::list_of<std::string>(one_of({"attention", "router", "mlp"})))
          .field("fused_experts", &ComputeSpec::fused_experts,
                 "experts' first product, activation and their casts to 8 bits are one kernel")
          .field("fused_cross_entropy", &ComputeSpec::fused_cross_entropy,
                 "the loss works on the logits as they are (Transformer Engine, flash-attn, a compiled "
                 "loss), not step by step on copies in fp32",
                 default_text("the framework's"))
          .field("loss_chunks", &ComputeSpec::loss_chunks,
                 "parts of the tokens that pass through LM head and loss one after the other, forward and "
                 "backward, so that the logits of one exist at a time (Liger's fused linear cross entropy, "
                 "MaxText's num_vocab_tiling)",
                 at_least(1))
          .field("host_factor", &ComputeSpec::host_factor,
                 "how many times slower than a DGX H100's the host issues work; default: the accelerator's "
                 "usual "
                 "host's",
                 between(0.1, 20))
          .field("slow_ranks", &ComputeSpec::slow_ranks,
                 "rank -> factor on its compute times, 1.1: ten per cent slower", between(0.1, 1000))
          .field("stage_times", &ComputeSpec::stage_times, "measured times to replay")
          .field("nvme_read", &ComputeSpec::nvme_read, "read rate of a node's NVMe together, for offload",
                 positive())
          .field("nvme_write", &ComputeSpec::nvme_write, "write rate of a node's NVMe together, for offload",
                 positive())
          .field("clock", &ComputeSpec::clock,
                 "power or thermal derating of the compute rate, a ratio; above 1 an overclock",
                 between(0.05, 1.5))
          .field("chip_spread", &ComputeSpec::chip_spread,
                 "standard deviation of compute times between accelerators of one model; all wait for the "
                 "slowest",
                 between(0, 0.2))
          .check([](const ComputeSpec& spec, const config::Node& node, config::Reader& reader) {
            for (const auto& [rank, factor] : spec.slow_ranks) {
              const config::Node at = node.find("slow_ranks").find(rank);
              if (rank.empty() || rank.size() > 9 ||
                  rank.find_first_not_of("0123456789") != std::string::npos)
                reader.problem_at_key(at, "\"" + rank + "\" is no rank", "a number from 0");
              else if (rank.size() > 1 && rank.front() == '0')  // "03" and "3" would be the same rank
                reader.problem_at_key(at, "\"" + rank + "\" is no rank", "a number without zeros before it");
            }
          });
  return object;
}
}  // namespace topsim::workloads

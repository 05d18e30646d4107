// The host's cost of a kernel launch, and which kernels start from a CUDA graph.
#include <algorithm>

#include "workloads/host/host.hpp"
#include "workloads/plan/parts.hpp"

namespace topsim::workloads {
namespace {
using namespace topsim::literals;

// From the end of a kernel to the start of the next one of its stream, launched long before: kernels of 2.9
// us take 3.8 us each on a V100, from a graph 3.4 (NVIDIA, "Getting Started with CUDA Graphs", 2019;
// recalled). Not more on an H100, where an empty kernel of a graph takes 1.3 us altogether (Spector et al.,
// "Look Ma, No Bubbles!", 2025).
constexpr Duration kGap = 900_ns, kGapInGraph = 500_ns;
}  // namespace

void set_launches(const WorkloadSpec& workload, const Framework& defaults, Plan& plan, Mistakes& mistakes) {
  // Serving engines replay graphs for prompts too (vLLM's piecewise ones; TensorRT-LLM uses no Python there).
  const bool graph = workload.compute.cuda_graph.value_or(defaults.cuda_graph || plan.inference());
  // Measured stage times contain their launches.
  const Duration eager = plan.replays() ? Duration{} : host_times().operation;
  const bool one_price = graph || plan.replays() || workload.compute.launch_overhead;
  plan.host.launch = workload.compute.launch_overhead.value_or(graph ? defaults.graph_launch : eager);
  plan.host.collective_launch =
      one_price ? plan.host.launch : std::max(plan.host.launch, host_times().collective);
  plan.host.counts_calls = !one_price;
  plan.host.graph = graph;
  plan.host.gap = plan.replays() ? Duration{} : graph ? kGapInGraph : kGap;
  plan.host.launch_blocking = workload.compute.launch_blocking;
  plan.host.start_order = defaults.start_order;
  if (plan.host.launch_blocking && graph)
    mistakes.add("compute.launch_blocking", "kernels of a graph are launched together, not one by one",
                 "leave it out, or set cuda_graph to false");
  if (plan.host.launch_blocking && plan.mirrored())
    mistakes.add("compute.launch_blocking", "ranks of DualPipe would wait for each other for ever",
                 "leave it out, or use another schedule");
  // Without a graph inference runs plain modules: Megatron's calls are those of training under Transformer
  // Engine, most of them for the backward pass.
  const bool plain = plan.inference() && defaults.family == FrameworkFamily::megatron;
  plan.host.profile = plain ? framework("ddp").host : defaults.host;
  // An engine's hooks are there on one accelerator too.
  const int zero = zero_meant(workload.plan, defaults);
  HookCalls& hooks = plan.host.profile.hooks;
  if (zero < 3) hooks.module = hooks.matrix = {};
  if (zero < 1) hooks.gradient = {};
  plan.host.factor = workload.compute.host_factor.value_or(1);
}

void set_graph_parts(const WorkloadSpec& workload, const Framework& defaults, Plan& plan,
                     Mistakes& mistakes) {
  const std::vector<std::string>& parts = workload.compute.graph_parts;
  const auto graphed = [&](const char* part) {
    return std::find(parts.begin(), parts.end(), part) != parts.end();
  };
  plan.host.graph_attention = graphed("attention"), plan.host.graph_router = graphed("router");
  plan.host.graph_mlp = graphed("mlp");
  if (plan.host.graph && !parts.empty())
    mistakes.add("compute.graph_parts", "the whole step is launched from one graph already",
                 "leave cuda_graph or graph_parts out");
  if (!plan.host.counts_calls && !plan.host.graph && !parts.empty())
    mistakes.add("compute.graph_parts", "launch_overhead prices every kernel alike, in a graph or not",
                 "leave one of the two out");
  if (!parts.empty() && workload.model.experts.count > 0 && !defaults.host.experts.counted)
    mistakes.add("compute.graph_parts", "calls of experts are not counted in this framework",
                 "use framework megatron");
  if (plan.host.graph_router && workload.model.experts.count == 0)
    mistakes.add("compute.graph_parts", "the model has no router", "leave \"router\" out");
}
}  // namespace topsim::workloads

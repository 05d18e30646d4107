#include "sim/base/hints.hpp"

#include <algorithm>
#include <iterator>
#include <span>

#include "sim/base/lower_case.hpp"
#include "sim/base/synonyms.hpp"
#include "sim/base/take_number.hpp"

namespace topsim {
namespace {
struct Hint {
  std::string_view where, word, says;
};

constexpr std::string_view kAlpha = "a factor of the adapters, without effect on time: leave it out";
constexpr std::string_view kAllLinear = R"("targets": ["qkv", "proj", "fc1", "fc2"])";
constexpr std::string_view kOfAttention = R"("targets": ["qkv", "proj"])";
constexpr std::string_view kOfNetwork = R"("targets": ["fc1", "fc2"])";
constexpr std::string_view kFourBits = R"("precision": {"frozen_weights": "nf4"} beside "task": "lora")";
constexpr std::string_view kServing =
    "for serving leave framework out; prefill and decode follow serving engines";
constexpr std::string_view kPyTorch = R"("ddp" or "fsdp", by how the script spreads its data)";
constexpr std::string_view kNemo =
    R"("megatron@2024" for NeMo to 25.04, "megatron@2025" for 25.09 and later)";
constexpr std::string_view kTorchtitan =
    R"("fsdp@2025-compile" (before April 2025 "fsdp@2024-compile") or, where it does not compile, )"
    R"("fsdp@2025-eager" (before "fsdp@2024"); from PyTorch 2.11 on those of 2026)";
constexpr std::string_view kTorchtitan2024 =
    R"("fsdp@2024-compile" or, where it does not compile, "fsdp@2024")";
constexpr std::string_view kTorchtitan2026 =
    R"("fsdp@2026-compile" or, where it does not compile, "fsdp@2026-eager"; before PyTorch 2.11 those of 2025)";
constexpr std::string_view kFoundry = R"("fsdp@2023" is PyTorch's FSDP as llm-foundry sets it)";
constexpr std::string_view kHuggingFace =
    R"("fsdp@2024-flat" or "deepspeed@2024-transformers", by how it shards; "ddp" where it does not)";
constexpr std::string_view kInference =
    R"("prefill" (a batch of prompts) or "decode" (one token a sequence))";
constexpr std::string_view kTorchtune = R"("fsdp@2024-flat" or "fsdp@2025-eager", by its release of PyTorch)";
constexpr std::string_view kShape =
    R"("fabric": {"kind": "rail", "link": "ib-ndr"}: its kind (rail, fat-tree, ...) and its link)";
constexpr std::string_view kPublished =
    R"(a kind is a shape; "fabric": "dgx-superpod" takes a published one, topsim list fabrics has them)";
constexpr std::string_view kArranged =
    R"("kind" is how it is arranged, "rail" or "fat-tree"; "link" says what of: "ib-ndr", "roce-400g")";
constexpr std::string_view kVersion =
    R"(a release is the year that it came out in: "megatron@2024"; topsim list frameworks has them)";
constexpr std::string_view kMegaScale =
    R"(a fork of Megatron-LM: "megatron@2023", with its overlaps said in plan)";
constexpr std::string_view kZeroBubble =
    R"("zb-h1" (the activations of 1F1B), "zb-2p" (twice as many) or "zb-v" (two virtual stages))";
constexpr std::string_view kMixed = R"("bf16" or "fp16": weights and optimiser states are fp32 beside them)";
constexpr std::string_view kWeightsAlone =
    R"(of products: "bf16" or "fp8"; served weights alone: {"gemm": "bf16", "weights": "int8"})";
constexpr std::string_view kSpines = R"(spines follow from "oversubscription" and the ports of "switch")";
constexpr std::string_view kTarget = R"("target" names the link, NIC, switch or accelerator)";
constexpr std::string_view kDragonfly =
    R"("dimensions": [groups, switches a group, nodes' ports a switch, global cables a switch] of a dragonfly)";
constexpr std::string_view kRails = R"(rails follow from "kind": "rail" and the NICs of topology.node)";

constexpr std::string_view kSharding =
    R"("zero" 1-3 says what ranks shard, "hsdp_shard" over how many; PyTorch's FSDP is "framework": "fsdp")";
constexpr std::string_view kDistributed =
    R"("zero": 1 is Megatron's distributed optimizer: ranks share its states)";
constexpr std::string_view kAsyncTensor =
    R"("tp_overlap": "micro-pipeline" is PyTorch's, "async" Megatron's behind the backward pass)";
constexpr std::string_view kUlysses = R"("cp" says how many, "cp_kind": "ulysses" how)";
constexpr std::string_view kCompiled =
    R"(a set of defaults that compiles: "framework": "fsdp@2025-compile", or ddp@2024-compile)";
constexpr std::string_view kOfTraining =
    R"(its parts are the workload's: "sequence", "precision", and batches in "plan")";
constexpr std::string_view kOutput =
    R"("decode" is one token a sequence behind "sequence" tokens: each token takes such a step)";
constexpr std::string_view kNarrow = R"("precision": "fp8", "mxfp8" or "fp8-blockwise", by its scales)";
constexpr std::string_view kOfANode =
    R"("node": {"use": "hgx-h100", "accelerators": 4} is one with fewer; "accelerators" here are the job's)";
constexpr std::string_view kCluster =
    R"("node", "nodes" and "fabric" say what it is; topsim list fabrics has published ones)";
constexpr std::string_view kSpeed =
    R"("link" says it: "ib-ndr", "roce-400g", or {"use": "ib-ndr", "bandwidth": "400 Gbit/s"})";
constexpr std::string_view kSize =
    R"(its shape says how large it is: layers, hidden, heads, ffn, vocab; or a name, topsim list models)";
// "silu" in place of "swiglu" would leave a third of the network out.
constexpr std::string_view kSwiglu = R"("gated_ffn": true, whose activation is "silu" unless said otherwise)";
constexpr std::string_view kGeglu = R"("gated_ffn": true, "activation": "gelu")";
constexpr std::string_view kPaths = R"("pxn": false, which NCCL_PXN_DISABLE=1 asks for)";
constexpr std::string_view kOnWires =
    R"(nodes' parts say what there is: "topology": {"node": {"use": ..., "nics": ..., "peer_to_peer": ...}})";
constexpr std::string_view kQueuePairs = R"("network": {"packet": {"queue_pairs": ...}} has them)";
constexpr std::string_view kNoEffect = "it has no effect on a model of time: leave it out";
constexpr std::string_view kNotVaried = "it is as NCCL sets it, and cannot be changed: leave it out";
constexpr std::string_view kLayersOfStages =
    R"(a number: "recompute": 2 is that many layers of each stage, all of them "full")";
constexpr std::string_view kSelective =
    R"(did you mean "selective"? In fsdp and ddp it is torchtitan's choice by operator)";
constexpr std::string_view kNoPositions = R"("alibi", which costs as much as none)";
constexpr std::string_view kChunks = R"("virtual_stages" says how many chunks: layers / (pp x that))";

constexpr Hint kKeys[] = {
    {"plan", "fsdp", kSharding},
    {"plan", "sharding", kSharding},
    {"plan", "sharding_strategy", kSharding},
    {"plan", "shard", kSharding},
    {"plan", "distributed_optimizer", kDistributed},
    {"plan", "use_distributed_optimizer", kDistributed},
    {"plan", "dist_optimizer", kDistributed},
    {"plan", "use_dist_optimizer", kDistributed},
    {"plan", "dist_opt", kDistributed},
    {"plan", "data_parallel_replicate_degree", kSharding},
    {"plan", "async_tp", kAsyncTensor},
    {"plan", "enable_async_tensor_parallel", kAsyncTensor},
    {"plan", "ulysses", kUlysses},
    {"plan", "sequence_parallel_size", kUlysses},
    {"plan", "ulysses_size", kUlysses},
    {"plan", "recompute_num_layers", kLayersOfStages},
    {"plan", "num_layers_per_virtual_pipeline_stage", kChunks},
    {"workload", "compile", kCompiled},
    {"workload", "torch_compile", kCompiled},
    {"workload", "output_len", kOutput},
    {"workload", "output_length", kOutput},
    {"workload", "osl", kOutput},
    {"workload", "max_tokens", kOutput},
    {"workload", "fp8", kNarrow},
    {"workload", "bf16", R"("precision": "bf16")"},
    {"workload", "fp16", R"("precision": "fp16")"},
    {"workload", "training", kOfTraining},
    {"scenario", "trainer", R"("topology" has the nodes, "workload" the plan and the precision)"},
    {"scenario", "training", R"("workload" has it: "sequence", "precision", and batches in "plan")"},
    {"model", "swiglu", R"("gated_ffn": true)"},
    {"model", "geglu", kGeglu},
    {"model", "normalization", kNoEffect},
    {"model", "untie_embeddings_and_output_weights", R"("tied_embeddings": false)"},
    {"model", "group_query_attention", R"("kv_heads" says how many key-value heads there are)"},
    {"model", "flavor", kSize},
    {"workload", "flash_attention",
     R"("model": {"attention": {"kernel": "flash"}}, the newer sets' default)"},
    {"workload", "use_flash_attn", R"("model": {"attention": {"kernel": "flash"}}, the newer sets' default)"},
    {"model", "params", kSize},
    {"model", "parameters", kSize},
    {"model", "size", kSize},
    {"model", "n_params", kSize},
    {"topology", "gpus_per_node", kOfANode},
    {"topology", "accelerators_per_node", kOfANode},
    {"topology", "devices_per_node", kOfANode},
    {"topology", "nproc_per_node", kOfANode},
    {"topology", "cluster", kCluster},
    {"topology", "system", kCluster},
    {"fabric", "bandwidth", kSpeed},
    {"fabric", "rate", kSpeed},
    {"fabric", "link_speed", kSpeed},
    {"nccl", "NCCL_PXN_DISABLE", kPaths},
    {"nccl", "pxn_disable", kPaths},
    {"nccl", "NCCL_IB_QPS_PER_CONNECTION", kQueuePairs},
    {"nccl", "NCCL_P2P_DISABLE",
     R"("p2p_level": "nvl" at most, or "topology": {"node": {"peer_to_peer": false}})"},
    {"nccl", "NCCL_IB_HCA", kOnWires},
    {"nccl", "NCCL_SOCKET_IFNAME", kOnWires},
    {"nccl", "NCCL_IB_DISABLE", R"("topology": {"fabric": {"link": "eth-100g"}} is TCP)"},
    {"nccl", "NCCL_TOPO_FILE", kOnWires},
    {"nccl", "NCCL_NET_GDR_LEVEL", kOnWires},
    {"nccl", "NCCL_DEBUG", kNoEffect},
    {"nccl", "NCCL_NTHREADS", kNotVaried},
    {"nccl", "NCCL_CROSS_NIC", kNotVaried},
    {"nccl", "NCCL_SHM_DISABLE", kNotVaried},
    {"nccl", "NCCL_CTA_POLICY", kNotVaried},
    {"nccl", "NCCL_IB_GID_INDEX", kNoEffect},
    {"nccl", "NCCL_IB_TIMEOUT", kNoEffect},
    {"lora", "alpha", kAlpha},
    {"lora", "lora_alpha", kAlpha},
    {"workload", "lora_alpha", kAlpha},
    {"workload", "load_in_4bit", kFourBits},
    {"fabric", "spines", kSpines},
    {"fabric", "num_spines", kSpines},
    {"fabric", "groups", kDragonfly},
    {"fabric", "num_groups", kDragonfly},
    {"fabric", "routers", kDragonfly},
    {"fabric", "routers_per_group", kDragonfly},
    {"fabric", "rails", kRails},
    {"fabric", "num_rails", kRails},
    {"fault", "link", kTarget},
    {"fault", "nic", kTarget},
    {"fault", "device", kTarget},
    {"fault", "rank", kTarget},
    {"fault", "gpu", kTarget},
    {"fabric", "nodes",
     R"("nodes_per_leaf" is how many share a leaf switch; how many there are is "topology.nodes")"},
};

constexpr Hint kValues[] = {
    {"weights", "nf4", kFourBits},
    {"targets", "all-linear", kAllLinear},
    {"targets", "all", kAllLinear},
    {"targets", "attention", kOfAttention},
    {"targets", "mlp", kOfNetwork},
    {"nodes", "single-node", "write 1"},
    {"nodes", "single", "write 1"},
    {"nodes", "one", "write 1"},
    {"kind", "superpod", kPublished},
    {"kind", "selene", kPublished},
    {"kind", "eos", kPublished},
    {"kind", "infiniband", kArranged},
    {"kind", "ib", kArranged},
    {"kind", "ethernet", kArranged},
    {"kind", "roce", kArranged},
    {"fabric", "rail", kShape},
    {"fabric", "rail-optimized", kShape},
    {"fabric", "rail-optimised", kShape},
    {"fabric", "fat-tree", kShape},
    {"fabric", "leaf-spine", kShape},
    {"fabric", "clos", kShape},
    {"fabric", "dragonfly", kShape},
    {"fabric", "infiniband", kShape},
    {"fabric", "roce", kShape},
    {"fabric", "ethernet", kShape},
    {"zero", "stage1", "write 1"},
    {"zero", "optimizer", "write 1"},
    {"zero", "stage2", "write 2"},
    {"zero", "shard_grad_op", "write 2"},
    {"zero", "stage3", "write 3"},
    {"zero", "full_shard", "write 3"},
    {"zero", "hybrid_shard", R"(write 3, and "hsdp_shard" for the ranks of a shard group)"},
    {"zero", "true", "write 1, 2 or 3"},
    {"dp", "auto", "leave it out: it follows from the accelerators"},
    {"recompute", "true", R"(write "full", or "selective" as Megatron's --recompute-activations)"},
    {"recompute", "false", R"(write "none")"},
    {"recompute", "on", R"(write "full", or "selective" as Megatron's --recompute-activations)"},
    {"recompute", "activations", R"(write "full", or "selective" as Megatron's --recompute-activations)"},
    {"recompute", "op", kSelective},
    {"recompute", "per-op", kSelective},
    {"recompute", "per-op selective", kSelective},
    {"recompute", "selective (op)", kSelective},
    {"offload", "true", R"(write "cpu")"},
    {"offload", "false", R"(write "none")"},
    {"positions", "none", kNoPositions},
    {"positions", "nope", kNoPositions},
    {"positions", "yarn", R"("rotary", with "attention": {"scaled_rotary": true})"},
    {"tp_overlap", "true", R"(write "userbuffers" (Transformer Engine's), "async" or "micro-pipeline")"},
    {"tp_overlap", "false", R"(write "none")"},
    {"schedule", "zero-bubble", kZeroBubble},
    {"schedule", "zb", kZeroBubble},
    {"schedule", "interleaved-zero-bubble", kZeroBubble},
    {"schedule", "zbv-zero-bubble", R"(did you mean "zb-v"?)"},
    {"precision", "amp", kMixed},
    {"precision", "mixed", kMixed},
    {"precision", "int8", kWeightsAlone},
    {"precision", "int4", kWeightsAlone},
    {"precision", "w8a8", kWeightsAlone},
    {"precision", "w4a16", kWeightsAlone},
    {"precision", "mxfp4", kWeightsAlone},
    {"activation", "swiglu", kSwiglu},
    {"activation", "geglu", kGeglu},
    {"activation", "reglu", R"("gated_ffn": true, "activation": "relu")"},
    {"activation", "glu", kSwiglu},
    {"framework", "megascale", kMegaScale},
    {"framework", "jax", R"("maxtext", or "pax" for the older one)"},
    {"framework", "axolotl", kHuggingFace},
    {"framework", "trl", kHuggingFace},
    {"framework", "lightning", kPyTorch},
    {"framework", "zero1", R"("deepspeed" or "megatron", with plan.zero 1)"},
    {"framework", "zero2", R"("deepspeed" or "fsdp", with plan.zero 2)"},
    {"framework", "nemo2", kNemo},
    {"framework", "nemo-framework", kNemo},
    {"framework", "tensorrt", kServing},
    {"framework", "torchtune", kTorchtune},
    {"node", "a3-highgpu-8g",
     R"(A3 High has half of A3 Mega's NICs: {"use": "gcp-a3-megagpu-8g", "nics": 4})"},
    {"framework", "vllm", kServing},
    {"framework", "sglang", kServing},
    {"framework", "tensorrt-llm", kServing},
    {"framework", "trt-llm", kServing},
    {"framework", "tgi", kServing},
    {"framework", "pytorch", kPyTorch},
    {"framework", "torch", kPyTorch},
    {"framework", "nemo", kNemo},
    {"framework", "megatron-bridge", R"("megatron@2025")"},
    {"framework", "mlperf", R"("megatron@2024-mlperf" for v4.1, "megatron@2025-mlperf" from v5.0 on)"},
    {"framework", "paxml", R"("pax")"},
    {"framework", "zero3", R"("deepspeed" or "fsdp", with plan.zero 3)"},
    {"framework", "torchtitan", kTorchtitan},
    {"framework", "composer", kFoundry},
    {"framework", "llm-foundry", kFoundry},
    {"framework", "transformers", kHuggingFace},
    {"framework", "accelerate", kHuggingFace},
    {"framework", "huggingface", kHuggingFace},
    {"framework", "megatron-deepspeed",
     R"("deepspeed@2022", or "megatron@2021" where it runs without --deepspeed)"},
    {"framework", "maxtext-gpu", R"("maxtext@2024-gpu")"},
    {"framework", "nanogpt", R"("ddp@2024-compile")"},
    {"framework", "primus", R"("megatron@2025" or "fsdp@2025-compile", by its backend)"},
    {"task", "inference", kInference},
    {"task", "serving", kInference},
    {"task", "serve", kInference},
    {"task", "generate", kInference},
    {"task", "qlora", kFourBits},
};

std::string_view find(std::span<const Hint> hints, std::string_view where, std::string_view word) {
  const std::string asked = plain(word.substr(0, word.find('@')));
  for (const Hint& each : hints)
    if (each.where == where && plain(each.word) == asked) return each.says;
  return {};
}

// The set of defaults for a release of the NeMo container, which people name by year and month: "24.07",
// "v24.11.1".
std::string_view set_of_container(std::string_view release) {
  if (release.starts_with('v')) release.remove_prefix(1);
  const std::optional<int> year = take_number<int>(release);
  constexpr int kFirst = 22, kLast = 26, kChanged = 25, kMonth = 9;  // 25.09 brought the sets of 2025
  if (!year || *year < kFirst || *year > kLast || !release.starts_with('.')) return {};
  release.remove_prefix(1);
  const std::optional<int> month = take_number<int>(release);
  if (!month || *month < 1 || *month > 12) return {};
  if (*year > kChanged || (*year == kChanged && *month >= kMonth)) return R"(did you mean "megatron@2025"?)";
  if (*year >= 24) return R"(did you mean "megatron@2024"?)";
  return *year == 23 ? R"(did you mean "megatron@2023"?)" : R"(did you mean "megatron@2022"?)";
}

// torchtitan has a set for each of these years.
std::string_view set_of_torchtitan(std::string_view release) {
  if (release.starts_with("2024")) return kTorchtitan2024;
  return release.starts_with("2026") ? kTorchtitan2026 : std::string_view{};
}
}  // namespace

std::string_view hint_of_key(std::string_view object, std::string_view key) {
  return find(kKeys, object, key);
}
std::string_view hint_of_value(std::string_view key, std::string_view value) {
  const std::size_t at = value.find('@');
  if (key == "framework" && at != value.npos) {
    const std::string base = plain(value.substr(0, at));
    if (base == "megatron" || base == "nemo" || base == "megatronlm" || base == "megatronbridge")
      if (const auto set = set_of_container(value.substr(at + 1)); !set.empty()) return set;
    if (const auto set = set_of_torchtitan(value.substr(at + 1)); base == "torchtitan" && !set.empty())
      return set;
    const auto own = find(kValues, key, value);
    return own.empty() && value.find('.', at) != value.npos ? kVersion : own;
  }
  return find(kValues, key, value);
}
bool curly_quote_at(std::string_view text, std::size_t position) {
  constexpr std::string_view kQuotes[] = {"\u201c", "\u201d", "\u2018", "\u2019"};
  return std::any_of(std::begin(kQuotes), std::end(kQuotes), [&](std::string_view quote) {
    return text.substr(std::min(position, text.size())).starts_with(quote);
  });
}
}  // namespace topsim

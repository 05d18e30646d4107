#include "sim/base/hints.hpp"

#include <algorithm>
#include <iterator>
#include <span>

#include "sim/base/lower_case.hpp"

namespace topsim {
namespace {
struct Hint {
  std::string_view where, word, says;
};

constexpr std::string_view kAlpha = "a factor of the adapters, without effect on time: leave it out";
constexpr std::string_view kFourBits = R"("precision": {"frozen_weights": "nf4"} beside "task": "lora")";
constexpr std::string_view kServing =
    "for serving leave framework out; prefill and decode follow serving engines";
constexpr std::string_view kPyTorch = R"("ddp" or "fsdp", by how the script spreads its data)";
constexpr std::string_view kNemo =
    R"("megatron@2024" for NeMo to 25.04, "megatron@2025" for 25.09 and later)";
constexpr std::string_view kTorchtitan =
    R"("fsdp@2025-compile" or, where it does not compile, "fsdp@2025-eager"; from PyTorch 2.11 on those of 2026)";
constexpr std::string_view kFoundry = R"("fsdp@2023" is PyTorch's FSDP as llm-foundry sets it)";
constexpr std::string_view kHuggingFace =
    R"("fsdp@2024-flat" or "deepspeed@2024-transformers", by how it shards; "ddp" where it does not)";
constexpr std::string_view kInference =
    R"("prefill" (a batch of prompts) or "decode" (one token a sequence))";
constexpr std::string_view kSpines = R"(spines follow from "oversubscription" and the ports of "switch")";
constexpr std::string_view kTarget = R"("target" names the link, NIC, switch or accelerator)";
constexpr std::string_view kRails = R"(rails follow from "kind": "rail" and the NICs of topology.node)";

constexpr Hint kKeys[] = {
    {"lora", "alpha", kAlpha},
    {"lora", "lora_alpha", kAlpha},
    {"workload", "lora_alpha", kAlpha},
    {"workload", "load_in_4bit", kFourBits},
    {"fabric", "spines", kSpines},
    {"fabric", "num_spines", kSpines},
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
};

std::string_view find(std::span<const Hint> hints, std::string_view where, std::string_view word) {
  for (const Hint& each : hints)
    if (each.where == where && each.word == lower_case(word.substr(0, word.find('@')))) return each.says;
  return {};
}
}  // namespace

std::string_view hint_of_key(std::string_view object, std::string_view key) {
  return find(kKeys, object, key);
}
std::string_view hint_of_value(std::string_view key, std::string_view value) {
  return find(kValues, key, value);
}
bool curly_quote_at(std::string_view text, std::size_t position) {
  constexpr std::string_view kQuotes[] = {"\u201c", "\u201d", "\u2018", "\u2019"};
  return std::any_of(std::begin(kQuotes), std::end(kQuotes), [&](std::string_view quote) {
    return text.substr(std::min(position, text.size())).starts_with(quote);
  });
}
}  // namespace topsim

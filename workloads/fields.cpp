#include "workloads/fields.hpp"

#include <algorithm>
#include <sstream>

#include "workloads/framework.hpp"
#include "workloads/trace/formats.hpp"

namespace topsim::workloads {

using config::at_least;
using config::between;
using config::default_text;
using config::named;
using config::names;
using config::Object;
using config::one_of;
using config::positive;

namespace {

config::CodecPtr<Schedule> schedule_names() {
  std::vector<config::detail::NamesCodec<Schedule>::Entry> entries;
  for (std::size_t i = 0; i < kScheduleTraits.size(); ++i)
    entries.push_back(named(static_cast<Schedule>(i), std::string(kScheduleTraits[i].text)));
  return names<Schedule>(std::move(entries));
}

// A word of a fixed list, or a count.
template <class T, class Word>
class WordOrCount final : public config::Codec<T> {
 public:
  using Get = std::function<std::variant<Word, int>(const T&)>;
  using Set = std::function<T(const std::variant<Word, int>&)>;
  WordOrCount(config::CodecPtr<Word> words, Get get, Set set)
      : either_(std::move(words), config::codec_for<int>()), get_(std::move(get)), set_(std::move(set)) {}
  bool accepts(config::Kind kind) const override { return either_.accepts(kind); }
  void read(const config::Node& node, T& out, config::Reader& reader) const override {
    const std::size_t before = reader.count();
    std::variant<Word, int> value = get_(out);
    either_.read(node, value, reader);
    if (reader.count() == before) out = set_(value);
  }
  config::Value write(const T& value) const override { return either_.write(get_(value)); }
  config::Value schema(config::Definitions& definitions) const override {
    return either_.schema(definitions);
  }
  std::string expects() const override { return either_.expects(); }

 private:
  config::detail::EitherCodec<Word, int> either_;
  Get get_;
  Set set_;
};

const std::vector<std::string>& dimensions() {
  static const std::vector<std::string> names{"tp", "cp", "ep", "dp", "pp"};
  return names;
}

// A list of dimensions, or Megatron's notation: "tp-cp-ep-dp-pp".
class RankOrder final : public config::Codec<std::vector<std::string>> {
 public:
  bool accepts(config::Kind kind) const override {
    return kind == config::Kind::string || kind == config::Kind::array;
  }
  void read(const config::Node& node, std::vector<std::string>& out, config::Reader& reader) const override {
    if (!node.is(config::Kind::string)) return list_->read(node, out, reader);
    std::istringstream words(node.text());
    std::vector<std::string> names;
    for (std::string word; std::getline(words, word, '-');) {
      if (std::find(dimensions().begin(), dimensions().end(), word) == dimensions().end())
        return reader.unknown_name(node, "dimension", word, dimensions());
      names.push_back(word);
    }
    out = names;
  }
  config::Value write(const std::vector<std::string>& value) const override { return list_->write(value); }
  config::Value schema(config::Definitions& definitions) const override {
    std::vector<config::Value> choices;
    choices.push_back(list_->schema(definitions));
    choices.push_back(config::detail::schema_of_type("string"));
    return config::detail::schema_any_of(std::move(choices));
  }
  std::string expects() const override { return list_->expects() + ", or \"tp-cp-ep-dp-pp\""; }

 private:
  config::CodecPtr<std::vector<std::string>> list_ = config::list_of<std::string>(one_of(dimensions()));
};
}  // namespace

config::CodecPtr<RecomputeSpec> codec(config::Type<RecomputeSpec>) {
  return std::make_shared<WordOrCount<RecomputeSpec, RecomputeKind>>(
      names<RecomputeKind>({{"none", RecomputeKind::none, "every activation is kept"},
                            {"selective", RecomputeKind::selective,
                             "the attention core is computed again; with latent attention outside Megatron "
                             "the projections up and the experts' activation"},
                            {"full", RecomputeKind::full, "whole layers are computed again"}}),
      [](const RecomputeSpec& spec) -> std::variant<RecomputeKind, int> {
        if (spec.layers) return *spec.layers;
        return spec.kind;
      },
      [](const std::variant<RecomputeKind, int>& value) {
        if (const int* layers = std::get_if<int>(&value)) return RecomputeSpec{RecomputeKind::full, *layers};
        return RecomputeSpec{std::get<RecomputeKind>(value), std::nullopt};
      });
}

config::CodecPtr<ZeroGroup> codec(config::Type<ZeroGroup>) {
  using Kind = ZeroGroup::Kind;
  return std::make_shared<WordOrCount<ZeroGroup, Kind>>(
      names<Kind>({{"all", Kind::all, "all data-parallel ranks"}, {"node", Kind::node, "those of one node"}}),
      [](const ZeroGroup& group) -> std::variant<Kind, int> {
        if (group.kind == Kind::ranks) return group.ranks;
        return group.kind;
      },
      [](const std::variant<Kind, int>& value) {
        if (const int* ranks = std::get_if<int>(&value)) return ZeroGroup{Kind::ranks, *ranks};
        return ZeroGroup{std::get<Kind>(value), 0};
      });
}

config::CodecPtr<PackingSpec> codec(config::Type<PackingSpec>) {
  return std::make_shared<WordOrCount<PackingSpec, bool>>(
      config::codec_for<bool>(),
      [](const PackingSpec& spec) -> std::variant<bool, int> {
        if (spec.documents) return *spec.documents;
        return spec.on;
      },
      [](const std::variant<bool, int>& value) {
        if (const int* documents = std::get_if<int>(&value)) return PackingSpec{*documents > 1, *documents};
        return PackingSpec{std::get<bool>(value), std::nullopt};
      });
}

// Also those that weights are only kept in.
config::CodecPtr<Precision> formats(bool kept) {
  std::vector<config::detail::NamesCodec<Precision>::Entry> entries = {
      {"fp32", Precision::fp32},
      {"tf32", Precision::tf32, "fp32 stored, TF32 matmuls"},
      {"fp16", Precision::fp16},
      {"bf16", Precision::bf16},
      {"fp8", Precision::fp8, "one scale a tensor"},
      {"mxfp8", Precision::mxfp8, "one scale for 32 elements"},
      {"fp8-blockwise", Precision::fp8_blockwise, "one scale for a block of 128"},
      {"nvfp4", Precision::nvfp4}};
  if (kept) {
    entries.push_back(
        {"nf4", Precision::nf4,
         "bitsandbytes: expanded to 16 bits before each product; an fp32 maximum for 64 weights"});
    entries.push_back({"nf4-double", Precision::nf4_double,
                       "QLoRA: 8 bits for that maximum, and an fp32 one for 256 of them"});
  }
  return names<Precision>(std::move(entries));
}
config::CodecPtr<Precision> codec(config::Type<Precision>) {
  return formats(false);
}

config::CodecPtr<WeightFormat> weight_formats() {
  return names<WeightFormat>({{"fp8", WeightFormat::fp8},
                              {"int8", WeightFormat::int8},
                              {"int4", WeightFormat::int4, "GPTQ, AWQ"},
                              {"nvfp4", WeightFormat::nvfp4},
                              {"mxfp4", WeightFormat::mxfp4}});
}

// Far more than any real job uses; products of two fit 32 bits, of three 64.
constexpr double kMostRanks = 16384;

const Object<PlanSpec>& table(config::Type<PlanSpec>) {
  static const auto object =
      Object<PlanSpec>("plan", "How the model and its batch are cut over accelerators")
          .field("tp", &PlanSpec::tp, "tensor-parallel size", between(1, kMostRanks))
          .field("pp", &PlanSpec::pp, "pipeline stages", between(1, kMostRanks))
          .field("dp", &PlanSpec::dp, "data-parallel size", between(1, 1 << 24),
                 default_text("follows from the accelerators"))
          .field("cp", &PlanSpec::cp, "context-parallel size", between(1, kMostRanks))
          .field("ep", &PlanSpec::ep, "expert-parallel size", between(1, kMostRanks), default_text("1"))
          .field(
              "etp", &PlanSpec::etp, "tensor-parallel size inside an expert", between(1, kMostRanks),
              default_text("tp; 1 where ep x tp does not divide a stage's ranks, and in inference with ep"))
          .field("virtual_stages", &PlanSpec::virtual_stages, "chunks of the model on one stage",
                 between(1, 1024))
          .field("stage_layers", &PlanSpec::stage_layers,
                 "layers of each stage, or of each virtual stage in model order",
                 default_text("alike; where they do not divide, the ends have fewer"))
          .field("schedule", &PlanSpec::schedule, "order of micro-batches in the pipeline", schedule_names(),
                 default_text("1f1b; interleaved with virtual stages"))
          .field("micro_batch", &PlanSpec::micro_batch, "sequences of a micro-batch", between(1, 1 << 20),
                 default_text("1; decode: requests / pp; prefill: likewise, up to 8,192 tokens together"))
          .field("global_batch", &PlanSpec::global_batch, "sequences of a step", between(1, 1 << 30))
          .field("grad_accumulation", &PlanSpec::grad_accumulation,
                 "micro-batches of a step and replica, instead of global_batch", between(1, 1 << 20))
          .field("sequence_parallel", &PlanSpec::sequence_parallel,
                 "split the parts between matmuls over the tensor group", default_text("the framework's"))
          .field("zero", &PlanSpec::zero,
                 "what data-parallel ranks shard: 1 optimiser, 2 gradients, 3 parameters", between(0, 3),
                 default_text("the framework's"))
          .field("zero_group", &PlanSpec::zero_group, "ranks that share one set of shards")
          .field("hsdp_shard", &PlanSpec::hsdp_shard, "hybrid sharding: ranks of a shard group",
                 between(1, 1 << 24))
          .field("offload", &PlanSpec::offload, "where optimiser states live",
                 names<Offload>({{"none", Offload::none}, {"cpu", Offload::cpu}, {"nvme", Offload::nvme}}))
          .field("offload_activations", &PlanSpec::offload_activations,
                 "what layers keep for the backward pass waits in host memory; with recompute full their "
                 "inputs alone (MaxText's decoder_layer_input: offload, Megatron's cpu_offloading)")
          .field("recompute", &PlanSpec::recompute,
                 "what the backward pass computes again; a number: that many layers of each stage, with "
                 "virtual_stages of each of those. selective: Megatron's "
                 "attention core, which saves nothing where flash attention keeps no scores; in fsdp and ddp "
                 "torchtitan's every second product, norms and activations; in maxtext and pax the core, "
                 "norms and activations (MaxText's minimal, Pax' SAVE_DOT_WITH_NO_BATCH_DIM)",
                 default_text("the framework's"))
          .field("recompute_modules", &PlanSpec::recompute_modules,
                 "what selective recompute does again, by Megatron's names (out_proj: MaxText's)",
                 config::list_of<std::string>(one_of({"core_attn", "out_proj", "mla_up_proj", "moe_act",
                                                      "layernorm", "mlp", "moe", "shared_experts"})),
                 default_text("core_attn; other frameworks than megatron: see recompute"))
          .field("overlap_grad_reduce", &PlanSpec::overlap_grad_reduce,
                 "reduce gradients while the backward pass runs", default_text("the framework's"))
          .field(
              "reduce_each_micro_batch", &PlanSpec::reduce_each_micro_batch,
              "framework ddp: every backward pass reduces, as in scripts that accumulate without no_sync()")
          .field("overlap_param_gather", &PlanSpec::overlap_param_gather,
                 "gather parameters while the forward pass runs", default_text("the framework's"))
          .field("overlap_p2p", &PlanSpec::overlap_p2p, "pipeline messages travel while kernels run",
                 default_text("the framework's"))
          .field("bucket_size", &PlanSpec::bucket_size, "gradients reduced together", positive(),
                 default_text("the framework's"))
          .field("wrap_least", &PlanSpec::wrap_least,
                 "FSDP units by size: parts of at least so many parameters (size_based_auto_wrap_policy's "
                 "min_num_params, 1e8 there)",
                 positive(), default_text("a unit a layer"))
          .field("tp_overlap", &PlanSpec::tp_overlap, "tensor-parallel communication behind matmuls",
                 names<TensorOverlap>(
                     {{"none", TensorOverlap::none, "all exposed"},
                      {"async", TensorOverlap::async, "behind the matmuls of the backward pass"},
                      {"userbuffers", TensorOverlap::userbuffers, "in tiles, forward too"},
                      {"micro-pipeline", TensorOverlap::micro_pipeline,
                       "PyTorch's asynchronous tensor parallelism: in a part for each rank"}}),
                 default_text("the framework's"))
          .field("cp_kind", &PlanSpec::cp_kind, "how context-parallel ranks exchange keys and values",
                 names<ContextKind>({{"ring", ContextKind::ring},
                                     {"all-gather", ContextKind::all_gather},
                                     {"ulysses", ContextKind::ulysses}}))
          .field("token_dispatcher", &PlanSpec::token_dispatcher, "how tokens reach their experts",
                 names<TokenDispatcher>(
                     {{"alltoall", TokenDispatcher::alltoall, "a copy for each expert, as Megatron does"},
                      {"allgather", TokenDispatcher::allgather,
                       "all tokens to all ranks, Megatron-LM's script's default"},
                      {"deepep", TokenDispatcher::deepep,
                       "a copy for each node (or rank) that holds some; decode: for each expert, by "
                       "low-latency kernels"},
                      {"hybridep", TokenDispatcher::hybridep,
                       "the same; rows are padded for 8-bit products as they are sorted"}}),
                 default_text("alltoall"))
          .field("dispatcher_sms", &PlanSpec::dispatcher_sms,
                 "SMs that DeepEP's and HybridEP's kernels hold (Megatron's moe_deepep_num_sms and "
                 "moe_hybridep_num_sms)",
                 between(1, 1024), default_text("Megatron's: deepep 20, hybridep 16"))
          .field("overlap_expert_exchange", &PlanSpec::overlap_expert_exchange,
                 "a forward and a backward take turns, so that all-to-alls "
                 "hide behind kernels; DualPipe does; inference: two micro-batches (two-batch overlap)")
          .field("redundant_experts", &PlanSpec::redundant_experts,
                 "inference: copies of experts beside the model's, so that ep divides both together")
          .field("memory_utilization", &PlanSpec::memory_utilization,
                 "inference: share of an accelerator's memory that weights, activations and the cache may "
                 "fill (vLLM's gpu_memory_utilization); the rest is the driver's, NCCL's and CUDA graphs'",
                 between(0.01, 1), default_text("0.9"))
          .field("rank_order", &PlanSpec::rank_order, "dimensions, the fastest first",
                 std::make_shared<const RankOrder>(), default_text("tp, cp, ep, dp, pp"));
  return object;
}

const Object<PrecisionSpec>& table(config::Type<PrecisionSpec>) {
  static const auto object =
      Object<PrecisionSpec>("precision", "Number formats; one name sets the matmuls and lets the rest follow")
          .field("gemm", &PrecisionSpec::gemm, "linear layers")
          .field("attention", &PrecisionSpec::attention, "attention core, LM head, stored activations",
                 default_text("gemm, at least 16 bits"))
          .field("attention_core", &PrecisionSpec::attention_core,
                 "products of the attention core, whose inputs are cast for it (fp8 dot-product attention)",
                 default_text("as attention; MLPerf's sets, task lora: fp8 beside 8-bit gemm"))
          .field("gradients", &PrecisionSpec::gradients, "reduced over data-parallel ranks",
                 default_text("the framework's"))
          .field("optimizer", &PrecisionSpec::optimizer,
                 "weights and moments that the optimiser keeps; 16 bits: no master copy",
                 names<Precision>(
                     {{"fp32", Precision::fp32}, {"bf16", Precision::bf16}, {"fp16", Precision::fp16}}),
                 default_text("the framework's; fp32 of all but fsdp@2025-automodel"))
          .field("moments", &PrecisionSpec::moments,
                 "Megatron's precision-aware optimiser: its two moments beside fp32 weights; it reads "
                 "gradients as they are, without fp32 copies",
                 names<Precision>({{"fp32", Precision::fp32},
                                   {"bf16", Precision::bf16},
                                   {"fp16", Precision::fp16},
                                   {"fp8", Precision::fp8}}),
                 default_text("as optimizer, without precision-awareness"))
          .field(
              "parameters_all_gather", &PrecisionSpec::parameters_all_gather,
              "gathered parameters of layers; embedding and head at least as wide as they are used",
              default_text("16 bits; gemm fp32: as gemm; so is gemm fp8 of maxtext@2024-gpu and, where all "
                           "weights are trained, of megatron from 2024 on"))
          .field("frozen_weights", &PrecisionSpec::frozen_weights,
                 "task lora: how weights that are not trained are kept; embedding and head have 16 bits",
                 formats(true), default_text("16 bits; MLPerf's sets: 8-bit gemm"))
          .field("kv_cache", &PrecisionSpec::kv_cache,
                 "tasks prefill and decode: keys and values in the cache", default_text("as attention"))
          .field(
              "weights", &PrecisionSpec::weights,
              "tasks prefill and decode: layers' weights in memory, expanded for products in gemm's format",
              weight_formats(), default_text("as gemm"))
          .field(
              "expert_weights", &PrecisionSpec::expert_weights,
              "tasks prefill and decode: those of routed experts, as gpt-oss ships them (mxfp4 beside bf16)",
              weight_formats(), default_text("as weights"))
          .field("amax_reduction", &PrecisionSpec::amax_reduction,
                 "delayed scaling (fp8 with scales known beforehand): ranks that share tensors' maxima after "
                 "every forward and backward pass",
                 names<AmaxReduction>({{"none", AmaxReduction::none, "each its own"},
                                       {"tensor", AmaxReduction::tensor, "tensor and context ranks"},
                                       {"all", AmaxReduction::all, "all ranks of a stage"}}),
                 default_text("the framework's"))
          .field(
              "dispatch", &PrecisionSpec::dispatch,
              "tokens on their way to experts; fp8 of deepep and hybridep has an fp32 scale for 128 numbers",
              default_text("as activations; inference by deepep with gemm of 8 bits: fp8"))
          .shorthand("gemm");
  return object;
}

const Object<LoraSpec>& table(config::Type<LoraSpec>) {
  static const auto object =
      Object<LoraSpec>("lora", "Low-rank adapters")
          .field("rank", &LoraSpec::rank, "of the adapters", at_least(1))
          .field("targets", &LoraSpec::targets,
                 "matrices with an adapter: qkv stands for q, k and v, fc1 of gated networks for gate and up",
                 config::list_of<std::string>(
                     one_of({"qkv", "q", "k", "v", "proj", "fc1", "gate", "up", "fc2"})),
                 default_text("qkv, proj, fc1, fc2; MLPerf's sets: qkv, proj"))
          .field("share_expert_adapters", &LoraSpec::share_expert_adapters,
                 "routed experts of a rank have one adapter together, else each its own",
                 default_text("the framework's"))
          .field("dropout", &LoraSpec::dropout,
                 "each adapter drops out of its input (any lora_dropout of PEFT and torchtune above 0)");
  return object;
}

const Object<TraceSpec>& table(config::Type<TraceSpec>) {
  static const auto object =
      Object<TraceSpec>("trace", "A recorded or generated workload trace")
          .field("format", &TraceSpec::format, "of the file", one_of(trace::format_names()),
                 config::required())
          .field("path", &TraceSpec::path, "relative to the scenario; Chakra: without .<rank>.et",
                 config::required())
          .field("groups", &TraceSpec::groups, "Chakra: JSON file of process groups",
                 default_text("beside the trace, or in it"));
  return object;
}

const Object<WorkloadSpec>& table(config::Type<WorkloadSpec>) {
  static const auto object =
      Object<WorkloadSpec>("workload", "What is trained, and how")
          .field("model", &WorkloadSpec::model, "shape of the transformer")
          .field("plan", &WorkloadSpec::plan, "how it is cut over accelerators")
          .field("sequence", &WorkloadSpec::sequence, "tokens of a sequence", at_least(1),
                 default_text("the model's"))
          .field("predictions_per_sequence", &WorkloadSpec::predictions_per_sequence,
                 "masked language models: tokens of a sequence that are gathered for the head and the loss "
                 "(BERT's max_predictions_per_seq)",
                 at_least(1), default_text("all"))
          .field("dropout", &WorkloadSpec::dropout,
                 "of attention, branches and embedding: true for any above 0",
                 default_text("the framework's"))
          .field("task", &WorkloadSpec::task, "what a step does",
                 names<Task>({{"pretrain", Task::pretrain},
                              {"finetune", Task::finetune},
                              {"lora", Task::lora},
                              {"prefill", Task::prefill, "inference: a batch of prompts"},
                              {"decode", Task::decode, "inference: one token a sequence"}}))
          .field("lora", &WorkloadSpec::lora, "adapters of task lora")
          .field("packing", &WorkloadSpec::packing,
                 "several documents share a sequence: true, or how many of equal length")
          .field("precision", &WorkloadSpec::precision, "number formats")
          .field("framework", &WorkloadSpec::framework,
                 "whose communication schedule and defaults: name@release, or a name alone: its newest "
                 "release, on NVIDIA's older accelerators the one of their time (topsim list frameworks)",
                 one_of(framework_names()))
          .field("compute", &WorkloadSpec::compute, "overrides of the compute model")
          .field("trace", &WorkloadSpec::trace, "replays a trace instead")
          .check([](const WorkloadSpec& spec, const config::Node& node, config::Reader& reader) {
            if (!node.find("model") && !spec.trace)
              reader.problem(node, "a workload needs a model", "or a trace",
                             "for example \"model\": \"llama3-70b\"");
          });
  return object;
}
}  // namespace topsim::workloads

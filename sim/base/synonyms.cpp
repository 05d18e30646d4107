#include "sim/base/synonyms.hpp"

#include <algorithm>

#include "sim/base/lower_case.hpp"

namespace topsim {
namespace {
// Names that other programs or people use. They include the keys of published config.json files, arguments of
// Megatron-LM, DeepSpeed, torchtitan and serving engines, and NCCL's variables, because scenarios are often
// written from those. Of several lines with a name the first counts whose own word is known where it stands.
struct Synonyms {
  std::string_view ours, theirs;  // theirs: words with spaces between them
};
constexpr Synonyms kSynonyms[] = {
    {"accelerator", "gpu"},
    {"accelerators",
     "gpus num_gpus ngpus world_size num_accelerators gpus_per_node devices_per_node nproc_per_node"},
    {"nodes", "num_nodes servers hosts machines nnodes num_servers"},
    {"node", "server machine instance"},
    {"fabric", "network interconnect"},
    {"link", "network speed"},
    // Of objects that change an entry of a library.
    {"use", "name base preset"},
    {"task", "mode phase type"},
    {"pretrain", "train training pre-training pretraining"},
    {"finetune", "sft fine-tuning finetuning full-finetune full-finetuning supervised-fine-tuning"},
    {"lora", "peft"},
    {"model", "model_name"},
    // Commands and what bench measures.
    {"run", "simulate sim train launch"},
    {"list", "catalogue catalog"},
    {"topo", "topology graph"},
    {"bench", "benchmark nccl-tests nccl perftest"},
    {"all_reduce", "osu_allreduce"},
    {"broadcast", "bcast osu_bcast ncclbcast mpi_bcast broadcast_perf"},
    {"all_gather", "osu_allgather"},
    {"alltoall", "alltoall_perf osu_alltoall"},
    {"sendrecv", "sendrecv_perf"},
    {"p2p",
     "ib_write_bw ib_send_bw ib_read_bw ib_write_lat ib_send_lat ib_read_lat perftest osu_bw osu_latency"},
    // Of topsim list.
    {"hardware", "nodes servers nics links switches accelerators gpus chips cables node nic link switch gpu"},
    {"scenarios", "examples configs"},
    {"nic", "hca"},
    // Of nodes; accelerators of these names come first where they are known.
    {"hgx-h100", "h100"},
    {"hgx-h200", "h200"},
    {"hgx-b200", "b200"},
    {"hgx-a100", "a100 a100-80gb"},
    {"a100-sxm4-80gb", "a100-80gb"},
    {"gb200-nvl72", "nvl72"},
    {"switch", "fabric_switch"},
    {"fat-tree", "clos leaf-spine spine-leaf two-tier three-tier single-switch"},
    {"rail", "rail-optimized rail-optimised multi-rail"},
    {"tp",
     "tensor_parallel tensor_parallel_size tensor_model_parallel_size tensor"
     " tensor_parallelism tensor_parallel_degree tp_size"},
    {"pp",
     "pipeline_parallel pipeline_parallel_size pipeline_model_parallel_size pipeline"
     " pipeline_parallelism pipeline_parallel_degree pp_size num_stages stages"},
    {"dp", "data_parallel data_parallel_size data data_parallelism dp_size"},
    {"cp",
     "context_parallel context_parallel_size context_parallelism context_parallel_degree"
     " cp_size"},
    // Megatron's --cp-comm-type.
    {"ring", "p2p"},
    {"ulysses", "a2a"},
    {"ep",
     "expert_parallel expert_parallel_size expert_model_parallel_size expert_parallelism"
     " expert_parallel_degree ep_size moe_ep"},
    {"sequence_parallel", "sp seq_parallel"},
    {"virtual_stages",
     "vp vpp virtual_pipeline virtual_pipeline_size virtual_pipeline_model_parallel_size"
     " interleave virtual_pp vp_size vpp_size"},
    {"micro_batch",
     "mbs microbatch_size micro_batch_size microbatch per_gpu_batch micro_batch_per_gpu"
     " local_batch_size train_micro_batch_size_per_gpu per_device_train_batch_size"
     " device_train_microbatch_size per_device_batch_size"},
    {"global_batch",
     "gbs batch_size global_batch_size batch train_batch_size global_train_batch_size"
     " max_num_seqs concurrency"},
    {"grad_accumulation",
     "gradient_accumulation_steps ga gas grad_accum grad_acc grad_acc_steps"
     " gradient_accumulation accumulate_grad_batches num_microbatches num_micro_batches"},
    {"recompute",
     "activation_checkpointing recompute_granularity recompute_activations recomputation"
     " remat remat_policy checkpointing activation_checkpoint activation_checkpoint_mode"
     " gradient_checkpointing ac"},
    {"zero", "zero_stage zero_optimization"},
    {"sequence",
     "seq_len seqlen max_seq_len seq_length sequence_length seq n_ctx ctx_len block_size"
     " context_length context_len max_seq_length max_position_embeddings max_sequence_length"
     " max_model_len max_prefill_predict_length prompt prompt_len prompt_length input_len"
     " input_length isl"},
    {"predictions_per_sequence", "max_predictions_per_seq"},
    {"layers", "num_layers num_hidden_layers n_layer n_layers depth num_decoder_layers"},
    {"hidden", "hidden_size d_model dim n_embd emb_dim model_dim embed_dim"},
    {"ffn", "ffn_hidden_size intermediate_size mlp mlp_dim d_ff ffn_dim ffn_hidden intermediate"},
    {"heads", "num_attention_heads n_heads n_head num_heads num_query_heads"},
    {"kv_heads", "num_key_value_heads num_query_groups n_kv_heads num_kv_heads"},
    {"vocab", "vocab_size vocabulary n_vocab padded_vocab_size"},
    {"count",
     "num_experts n_experts n_routed_experts num_local_experts num_moe_experts"
     " moe_num_experts"},
    {"top_k", "moe_router_topk num_experts_per_tok topk moe_top_k num_experts_per_token"},
    {"precision", "dtype mixed_precision quantization amp"},
    // With its object: other objects have such a key too.
    {"lora.dropout", "lora_dropout"},
    {"lora.rank", "lora_rank lora_r"},
    {"rank", "r"},
    {"targets", "target_modules"},
    {"q", "q_proj linear_q"},
    {"k", "k_proj linear_k"},
    {"v", "v_proj linear_v"},
    {"qkv", "qkv_proj query_key_value linear_qkv"},
    {"proj", "o_proj out_proj output_proj linear_proj"},
    {"gate", "gate_proj linear_fc1_gate"},
    {"up", "up_proj linear_fc1_up"},
    {"fc1", "gate_up_proj linear_fc1"},
    {"fc2", "down_proj linear_fc2"},
    {"reduce_each_micro_batch", "no_sync"},
    {"nvfp4", "fp4"},
    {"scale_up_domain", "nvlink_domain"},
    {"kind", "type topology topology_type"},
    {"oversubscription", "taper oversub blocking blocking_factor"},
    {"tiers", "levels num_tiers"},
    {"routing", "load_balancing ecmp"},
    {"ports", "radix"},
    {"etp", "expert_tensor_parallel_size expert_tensor_parallel"},
    {"hsdp_shard", "data_parallel_shard_degree fsdp_size hsdp"},
    {"offload", "cpu_offload offload_optimizer optimizer_offload optimizer_cpu_offload"},
    {"offload_activations", "cpu_offloading"},
    {"overlap_grad_reduce", "overlap_comm"},
    {"tp_overlap", "tp_comm_overlap"},
    {"bucket_size", "reduce_bucket_size bucket_cap_mb ddp_bucket_size"},
    {"cp_kind", "cp_comm_type"},
    {"token_dispatcher", "moe_token_dispatcher_type"},
    {"schedule", "pipeline_schedule"},
    {"memory_utilization", "gpu_memory_utilization mem_fraction_static"},
    {"plan", "parallelism parallel"},
    {"framework", "engine library backend"},
    {"tied_embeddings", "tie_word_embeddings tie_embeddings share_embeddings_and_output_weights"},
    {"positions", "position_embedding_type"},
    {"activation", "hidden_act activation_function"},
    {"gelu", "gelu-new gelu-fast gelu-tanh gelu-pytorch-tanh quick-gelu"},
    {"silu", "swish"},
    {"squared_relu", "relu2 relu-squared"},
    {"rotary", "rope rotary-embedding rotary-position-embedding"},
    {"learned", "absolute learned-absolute"},
    {"head_dim", "kv_channels head_size"},
    {"experts", "moe"},
    {"experts.ffn", "expert_ffn moe_ffn moe_intermediate_size moe_ffn_hidden_size"},
    {"experts.shared", "shared_experts n_shared_experts num_shared_experts"},
    {"capacity_factor", "capacity"},
    {"window", "sliding_window"},
    {"algorithm", "nccl_algo algo"},
    {"protocol", "nccl_proto proto"},
    {"channels",
     "nchannels num_channels min_nchannels max_nchannels min_ctas max_ctas"
     " nccl_min_nchannels nccl_max_nchannels nccl_min_ctas nccl_max_ctas"},
    {"nvls", "nccl_nvls_enable nvls_enable"},
    {"sharp", "nccl_collnet_enable collnet"},
    {"pxn", "nccl_pxn_disable pxn_disable"},
    {"buffsize", "nccl_buffsize"},
    {"p2p_level", "nccl_p2p_level"},
    {"socket_nthreads", "nccl_socket_nthreads"},
    {"nvls_chunksize", "nccl_nvls_chunksize"},
    {"nvlstree_max_chunksize", "nccl_nvlstree_max_chunksize"},
    {"congestion_control", "cc"},
    {"queue_pairs", "nccl_ib_qps_per_connection qps"},
    {"zb-2p", "zb-h2"},
    {"interleaved", "1f1b-i 1f1b-interleaved interleaved-1f1b vpp"},
    {"gpipe", "afab all-forward-all-backward"},
    {"1f1b", "pipedream pipedream-flush dapple"},
    {"zb-v", "zb-vpp zbv-zero-bubble"},
    {"bf16", "bfloat bfloat16 amp-bf16 mixed-bf16 bf16-mixed te-bf16 torch.bfloat16"},
    {"fp16", "half float16 torch.float16 amp-fp16 fp16-mixed 16-mixed"},
    {"fp32", "float float32 single torch.float32"},
    {"fp8",
     "amp-fp8 te-fp8 float8 e4m3 fp8-e4m3 fp8-hybrid hybrid fp8-delayed bf16-with-fp8 fp8-rowwise"
     " float8-rowwise rowwise fp8-tensorwise float8-tensorwise tensorwise fp8-per-tensor "
     "fp8-per-tensor-scaling"
     " fp8-delayed-scaling fp8-current fp8-current-scaling fp8-cs fp8-ds"},
    {"mxfp8", "fp8-mx mx-fp8"},
    {"fp8-blockwise", "block-fp8 deepseek-fp8"},
    {"none", "off no false disabled"},
    {"selective",
     "attention core_attn selective(attention) selective_attention selective-ac selective-recompute"},
    {"full", "uniform block"},
    {"fsdp", "pytorch-fsdp torch-fsdp fully_shard fsdp1 fsdp2"},
    {"deepspeed", "deepspeed-zero"},
    {"ddp", "distributed-data-parallel torch-ddp pytorch-ddp"},
    {"dragonfly", "dragonfly-plus"},
    {"torus", "2d-torus 3d-torus"},
    {"mesh", "2d-mesh"},
    {"adaptive", "ar adaptive-routing dlb flowlet ugal"},
    {"spray", "packet-spray packet-spraying spraying"},
    {"static", "minimal deterministic"},
    {"analytic", "alpha-beta analytical"},
    {"packet", "packet-level ns3 ns-3 htsim"},
    {"flow", "flow-level fluid"},
};
}  // namespace

std::string plain(std::string_view word) {
  std::string text = lower_case(word);
  std::erase_if(text, [](char c) { return c == '-' || c == '_' || c == ' '; });
  return text;
}

std::optional<std::string> same_but_for_marks(std::string_view word, std::span<const std::string> known) {
  const auto only = [&](const auto& form) -> std::optional<std::string> {
    const std::string asked = form(word);
    const auto alike = [&](const std::string& each) { return form(each) == asked; };
    const auto found = std::find_if(known.begin(), known.end(), alike);
    if (asked.empty() || found == known.end() || std::find_if(found + 1, known.end(), alike) != known.end())
      return std::nullopt;
    return *found;
  };
  if (auto same = only([](std::string_view text) { return lower_case(text); })) return same;
  if (auto same = only(plain)) return same;
  return only([](std::string_view text) {  // last: gpt3-1.3b is not gpt3-13b
    std::string bare = plain(text);
    std::erase(bare, '.');
    return bare;
  });
}

std::optional<std::string> same_meaning(std::string_view word, std::span<const std::string> known) {
  const std::string asked = plain(word);
  for (const Synonyms& each : kSynonyms) {
    const auto ours = std::find(known.begin(), known.end(), each.ours);
    if (ours == known.end()) continue;
    for (std::string_view rest = each.theirs; !rest.empty();) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      if (plain(rest.substr(0, end)) == asked) return *ours;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return std::nullopt;
}
}  // namespace topsim

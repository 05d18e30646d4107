"""Whole steps that steps.py has not: linear layers in 8 bits, adapters, and tokens one by one. It is a check.

steps_fp8: Llama under FSDP2, linear layers in 8 bits with one scale a tensor, as torchao makes them, compiled.
steps_lora: Hugging Face's Llama with adapters of PEFT. steps_decode: one token a request, from a graph.
"""
from __future__ import annotations

import statistics
import time
from functools import partial

import torch
import torch.nn.functional as functional
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from models import LLAMA_SIZES, Llama, rotated
from result import four_digits, microseconds, table
from steps import fresh, group_of_one, llama_row, rows_of
from timing import Call, seconds_from_graph

NARROW, NARROW_GRADIENT = torch.float8_e4m3fn, torch.float8_e5m2


def narrowed(x: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The tensor in 8 bits, and its scale's inverse."""
    largest = x.abs().max().float().clamp(min=1e-12)
    scale = torch.finfo(dtype).max / largest
    limit = torch.finfo(dtype).max
    return (x.float() * scale).clamp(-limit, limit).to(dtype), scale.reciprocal()


def product(a: Tensor, scale_a: Tensor, b: Tensor, scale_b: Tensor, fast: bool) -> Tensor:
    return torch._scaled_mm(a, b, scale_a=scale_a, scale_b=scale_b, out_dtype=torch.bfloat16,
                            use_fast_accum=fast)


class Product(torch.autograd.Function):
    @staticmethod
    def forward(context, x: Tensor, weight: Tensor) -> Tensor:
        context.save_for_backward(x, weight)
        x8, scale_x = narrowed(x, NARROW)
        w8, scale_w = narrowed(weight, NARROW)
        return product(x8, scale_x, w8.t(), scale_w, True)

    @staticmethod
    def backward(context, gradient: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = context.saved_tensors
        g8, scale_g = narrowed(gradient, NARROW_GRADIENT)
        x8, scale_x = narrowed(x, NARROW)
        w8, scale_w = narrowed(weight, NARROW)
        of_input = product(g8, scale_g, w8.t().contiguous().t(), scale_w, False)
        of_weight = product(g8.t().contiguous(), scale_g, x8.t().contiguous().t(), scale_x, False)
        return of_input, of_weight


class NarrowLinear(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return Product.apply(x.reshape(-1, x.shape[-1]), self.weight).view(*x.shape[:-1], -1)


FP8_CASES = (("8b", 8, 8192, 1, "selective", True), ("8b", 8, 8192, 2, "full", True),
             ("8b", 4, 4096, 2, "none", True))


def narrow_linears(model: Llama) -> None:
    for block in model.layers:
        for part in block.modules():
            if isinstance(part, nn.Linear):
                part.__class__ = NarrowLinear


def fp8_row(*case: object) -> list:
    """Of both precisions, one after the other."""
    wide_step = llama_row(*case)[len(case)]
    return [*case, wide_step, *llama_row(*case, change=narrow_linears)[len(case):]]


def steps_fp8() -> dict:
    with group_of_one():
        rows = rows_of(fp8_row, FP8_CASES)
    columns = ["model", "layers", "sequence", "micro_batch", "recompute", "compiled", "step_16_bits", "step", "peak",
               "reserved", "megahertz", "watts"]
    return table(columns, rows, "linear layers in 8 bits but the head; seconds")


def seconds_of(step: Call) -> tuple[float, float]:
    """Medians of whole steps, and until the host had launched all of one."""
    for _ in range(3):
        step()
    whole, launched = [], []
    for _ in range(5):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        step()
        launched.append(time.perf_counter() - begin)
        torch.cuda.synchronize()
        whole.append(time.perf_counter() - begin)
    return statistics.median(whole), statistics.median(launched)


def kernel_seconds(step: Call) -> float:
    """What the device computes in one step, without the gaps between kernels."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        step()
        torch.cuda.synchronize()
    return sum(each.self_device_time_total for each in profile.key_averages()) / 1e6


# Layers, tokens, sequences, recomputed, adapters of which linear layers.
LORA_CASES = ((32, 2048, 1, False, "all"), (32, 4096, 1, True, "all"), (32, 512, 4, False, "attention"))
ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
FEED_FORWARD = ("gate_proj", "up_proj", "down_proj")


def lora_row(layers: int, tokens: int, sequences: int, recomputed: bool, targets: str) -> list:
    import peft
    import transformers

    fresh()
    size = LLAMA_SIZES["8b"]
    config = transformers.LlamaConfig(
        vocab_size=size.vocabulary, hidden_size=size.width, intermediate_size=size.feed_forward,
        num_hidden_layers=layers, num_attention_heads=size.heads, num_key_value_heads=size.kv_heads,
        attn_implementation="sdpa")
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device("cuda"):
            model = transformers.LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(torch.float32)
    model.config.use_cache = False
    if recomputed:
        model.gradient_checkpointing_enable({"use_reentrant": False})
        model.enable_input_require_grads()
    names = list(ATTENTION + (FEED_FORWARD if targets == "all" else ()))
    adapters = peft.LoraConfig(r=16, lora_alpha=32, target_modules=names, lora_dropout=0.0)
    model = peft.get_peft_model(model, adapters)
    model.train()
    adamw = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-4, fused=True)
    ids = torch.randint(0, size.vocabulary, (sequences, tokens), device="cuda")

    def step() -> None:
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adamw.step()
        adamw.zero_grad(set_to_none=True)

    torch.cuda.reset_peak_memory_stats()
    times = map(four_digits, (*seconds_of(step), kernel_seconds(step)))
    return [layers, tokens, sequences, recomputed, targets, *times, torch.cuda.max_memory_allocated()]


def steps_lora() -> dict:
    columns = ["layers", "sequence", "micro_batch", "recomputed", "targets", "step", "launched", "kernels", "peak"]
    about = "Llama 3 8B of Hugging Face with adapters of PEFT, rank 16, autocast to bf16; seconds"
    return table(columns, rows_of(lora_row, LORA_CASES), about)


# Requests, tokens in the cache of each.
DECODE_CASES = ((1, 1024), (1, 8192), (16, 1024), (64, 1024), (64, 4096), (256, 1024))
DECODE_LAYERS = 8


class DecodeBlock(nn.Module):
    """A layer of Llama 3 8B whose products of one input are one, as in servers."""

    def __init__(self, batch: int, cached: int) -> None:
        super().__init__()
        size = LLAMA_SIZES["8b"]
        self.heads, self.kv_heads = size.heads, size.kv_heads
        kv_width = size.kv_heads * size.head_dim
        self.qkv = nn.Linear(size.width, size.width + 2 * kv_width, bias=False)
        self.output = nn.Linear(size.width, size.width, bias=False)
        self.up, self.down = (nn.Linear(size.width, 2 * size.feed_forward, bias=False),
                              nn.Linear(size.feed_forward, size.width, bias=False))
        self.attention_norm, self.feed_forward_norm = nn.RMSNorm(size.width), nn.RMSNorm(size.width)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.randn(batch, size.kv_heads, cached, size.head_dim))

    def before(self, x: Tensor, turns: Tensor) -> Tensor:
        heads = self.qkv(self.attention_norm(x)).view(x.shape[0], 1, self.heads + 2 * self.kv_heads, -1)
        q, k, v = heads.split((self.heads, self.kv_heads, self.kv_heads), 2)
        self.keys[:, :, -1:] = rotated(k, turns).transpose(1, 2)
        self.values[:, :, -1:] = v.transpose(1, 2)
        return rotated(q, turns).transpose(1, 2)

    def after(self, x: Tensor, attended: Tensor) -> Tensor:
        x = x + self.output(attended.reshape(x.shape))
        gate, up = self.up(self.feed_forward_norm(x)).chunk(2, -1)
        return x + self.down(functional.silu(gate) * up)


class Attended(nn.Module):
    def forward(self, block: DecodeBlock, q: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, block.keys, block.values, enable_gqa=True)


def decode_row(batch: int, cached: int) -> list:
    fresh()
    size = LLAMA_SIZES["8b"]
    with torch.device("cuda"):
        blocks = [DecodeBlock(batch, cached).bfloat16() for _ in range(DECODE_LAYERS)]
        norm = nn.RMSNorm(size.width).bfloat16()
        head = nn.Linear(size.width, size.vocabulary, bias=False).bfloat16()
        angles = torch.outer(torch.arange(1).float(), torch.ones(size.head_dim // 2))
        turns = torch.polar(torch.ones_like(angles), angles)
        x = torch.randn(batch, 1, size.width).bfloat16()
    before, after = torch.compile(DecodeBlock.before), torch.compile(DecodeBlock.after)
    attended = Attended()

    def token() -> Tensor:
        y = x
        with torch.no_grad(), sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            for block in blocks:
                y = after(block, y, attended(block, before(block, y, turns)).transpose(1, 2))
            return head(norm(y)).argmax(-1)

    token()
    return [DECODE_LAYERS, batch, cached, microseconds(seconds_from_graph([token], 3))]


def steps_decode() -> dict:
    return table(["layers", "requests", "cached", "time"], rows_of(decode_row, DECODE_CASES),
                 "a token of each request by 8 layers of Llama 3 8B and its head, from a graph; microseconds")

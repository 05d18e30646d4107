"""Whole training steps on one accelerator: seconds, bytes at the peak, MHz and watts. It is a check.

steps: Llama with FSDP2 in a group of one, parameters in fp32, products in bf16, recomputed as in torchtitan.
steps_ddp: GPT-2 with autocast, as nanoGPT trains it on each accelerator.
"""
from __future__ import annotations

import contextlib
import gc
import os
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import torch
import torch.distributed as distributed
import torch.nn.functional as functional
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

from models import LLAMA_SIZES, Gpt, Llama
from result import table
from timing import Call, attempted, clock_and_power

# Model, layers, tokens of a sequence, sequences, recomputation, compiled.
LLAMA_STEPS = (
    ("1b", 16, 8192, 1, "none", False), ("8b", 8, 8192, 1, "full", False), ("8b", 4, 4096, 2, "none", False),
    ("qwen30", 4, 4096, 2, "full", False), ("toy", 16, 256, 1, "none", False),
    ("8b", 8, 8192, 1, "selective", True), ("1b", 16, 8192, 2, "none", True),
    ("8b", 8, 8192, 2, "full", True), ("1b", 16, 2048, 1, "none", False),
    ("qwen30", 4, 4096, 2, "full", True),
)
# Layers, width, heads, sequences, compiled.
GPT_STEPS = ((12, 768, 12, 32, False), (12, 768, 12, 32, True), (36, 1280, 20, 8, True))
GPT_TOKENS, GPT_VOCABULARY, GPT_PADDED_VOCABULARY = 1024, 50257, 50304
KEPT = {
    torch.ops.aten.mm.default,
    torch.ops.aten._scaled_dot_product_efficient_attention.default,
    torch.ops.aten._scaled_dot_product_flash_attention.default,
    torch.ops.aten._scaled_dot_product_cudnn_attention.default,
    torch.ops._c10d_functional.reduce_scatter_tensor.default,
}


def selective_contexts() -> tuple:
    """Keeps attention and every other product, and computes the rest again."""
    products = Counter()  # forward, and again

    def policy(context, operator, *_arguments, **_options) -> CheckpointPolicy:
        is_product = operator == torch.ops.aten.mm.default
        products[context.is_recompute] += is_product
        kept = operator in KEPT and not (is_product and products[context.is_recompute] % 2 == 0)
        return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


def with_recomputation(block: torch.nn.Module, how: str) -> torch.nn.Module:
    if how == "none":
        return block
    if how == "full":
        return checkpoint_wrapper(block, preserve_rng_state=False)
    return checkpoint_wrapper(block, preserve_rng_state=False, context_fn=selective_contexts)


def llama(name: str, layers: int, tokens: int, recompute: str, compiled: bool,
          change: Callable[[Llama], None] | None = None) -> Llama:
    """`change` is applied before anything wraps the layers."""
    size = LLAMA_SIZES[name]
    with torch.device("cuda"):
        model = Llama(size, layers, tokens)
    if change is not None:
        change(model)
    for index, block in enumerate(model.layers):
        block = with_recomputation(block, recompute)
        if compiled:
            block = torch.compile(block, fullgraph=size.experts == 0)
        model.layers[index] = block
    precision = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    shard = partial(fully_shard, mesh=init_device_mesh("cuda", (1,)), mp_policy=precision)
    shard(model.embedding)
    for block in model.layers:
        shard(block)
    shard([model.norm, model.output], reshard_after_forward=False)
    shard(model)
    return model


def loss_of(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(0, 1))


def fresh() -> None:
    torch._dynamo.reset()
    gc.collect()
    torch.cuda.empty_cache()
    torch.manual_seed(0)


def median_seconds(step: Call, warm: int) -> float:
    """Of six steps, each waited for. Memory counts from the first of them."""
    for _ in range(warm):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(6):
        begin = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return round(statistics.median_high(times), 4)


def llama_row(name: str, layers: int, tokens: int, sequences: int, recompute: str, compiled: bool,
              change: Callable[[Llama], None] | None = None) -> list:
    fresh()
    model = llama(name, layers, tokens, recompute, compiled, change)
    loss = torch.compile(loss_of) if compiled else loss_of
    adamw = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True, betas=(0.9, 0.95), weight_decay=0.1)
    ids, labels = (torch.randint(0, LLAMA_SIZES[name].vocabulary, (sequences, tokens), device="cuda")
                   for _ in range(2))

    def step() -> None:
        adamw.zero_grad()
        loss(model(ids), labels).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        adamw.step()

    seconds = median_seconds(step, 3)
    return [name, layers, tokens, sequences, recompute, compiled, seconds, torch.cuda.max_memory_allocated(),
            torch.cuda.max_memory_reserved(), *clock_and_power()]


def gpt_row(layers: int, width: int, heads: int, sequences: int, compiled: bool) -> list:
    fresh()
    model = Gpt(layers, width, heads, GPT_PADDED_VOCABULARY, GPT_TOKENS).cuda()
    run = torch.compile(model) if compiled else model
    adamw = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    ids, labels = (torch.randint(0, GPT_VOCABULARY, (sequences, GPT_TOKENS), device="cuda") for _ in range(2))

    def step() -> None:
        with torch.autocast("cuda", torch.bfloat16):
            loss = run(ids, labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adamw.step()
        adamw.zero_grad(set_to_none=True)

    seconds = median_seconds(step, 4)
    return [layers, width, heads, sequences, compiled, seconds, torch.cuda.max_memory_allocated()]


def rows_of(measured: Callable[..., list], cases: tuple[tuple, ...]) -> list[list]:
    """No row for a case that fails, for lack of memory perhaps."""
    rows = [attempted(f"step {case}", partial(measured, *case)) for case in cases]
    return [row for row in rows if row is not None]


@contextlib.contextmanager
def group_of_one() -> Iterator[None]:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    distributed.init_process_group("nccl", device_id=torch.device("cuda:0"))
    try:
        yield
    finally:
        distributed.destroy_process_group()


def steps() -> dict:
    with group_of_one():
        rows = rows_of(llama_row, LLAMA_STEPS)
    columns = ["model", "layers", "sequence", "micro_batch", "recompute", "compiled", "step", "peak",
               "reserved", "megahertz", "watts"]
    about = "whole steps, FSDP2 on one GPU; seconds and bytes. No constant comes from them"
    return table(columns, rows, about)


def steps_ddp() -> dict:
    rows = rows_of(gpt_row, GPT_STEPS)
    return table(["layers", "hidden", "heads", "micro_batch", "compiled", "step", "peak"], rows)

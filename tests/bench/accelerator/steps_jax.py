"""Whole training steps under JAX on one accelerator: seconds, and bytes at the peak. It is a check.

GPT as Pax trains it and Llama as MaxText does: parameters in fp32, products in bf16, layers in a loop or
unrolled, recomputed by a policy, Adam in fp32 after clipping to a norm of one.
"""
from __future__ import annotations

import functools
import itertools
import os
import statistics
import time
from collections.abc import Callable

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp

from result import table
from timing import attempted

POLICIES = {
    "dots": jax.checkpoint_policies.dots_saveable,
    "weight dots": jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
    "full": jax.checkpoint_policies.nothing_saveable,
}
# Model, layers, width, heads, heads of keys and values, feed-forward, vocabulary, tokens, sequences,
# recomputation, attention, layers in a loop.
STEPS = (
    ("gpt", 8, 4096, 32, 32, 16384, 51200, 2048, 4, "dots", "cudnn", True),
    ("gpt", 8, 4096, 32, 32, 16384, 51200, 2048, 4, "full", "cudnn", True),
    ("gpt", 8, 4096, 32, 32, 16384, 51200, 2048, 4, "weight dots", "xla", True),
    ("gpt", 12, 768, 12, 12, 3072, 51200, 2048, 8, "none", "cudnn", False),
    ("gpt", 12, 768, 12, 12, 3072, 51200, 2048, 8, "none", "xla", False),
    ("llama", 8, 4096, 32, 8, 14336, 128256, 8192, 1, "full", "cudnn", True),
    ("llama", 4, 8192, 64, 8, 28672, 32000, 4096, 2, "weight dots", "cudnn", True),
)
Array = jax.Array
Weights = dict[str, Array]


def norm(x: Array, scale: Array, bias: Array | None) -> Array:
    wide = x.astype(jnp.float32)
    if bias is not None:
        wide -= wide.mean(-1, keepdims=True)
    wide *= jax.lax.rsqrt((wide * wide).mean(-1, keepdims=True) + 1e-5)
    wide *= scale
    return (wide if bias is None else wide + bias).astype(x.dtype)


def rotated(x: Array) -> Array:
    tokens, size = x.shape[1], x.shape[3]
    angles = jnp.arange(tokens)[:, None] * (5e5 ** (-jnp.arange(size // 2) * 2 / size))
    sine, cosine = (f(angles)[None, :, None, :] for f in (jnp.sin, jnp.cos))
    first, second = jnp.split(x.astype(jnp.float32), 2, -1)
    turned = jnp.concatenate((first * cosine - second * sine, second * cosine + first * sine), -1)
    return turned.astype(x.dtype)


def layer(heads: int, kv_heads: int, attention: str, is_llama: bool, x: Array, weights: Weights) -> Array:
    weights = jax.tree.map(lambda w: w.astype(jnp.bfloat16) if w.ndim > 1 else w, weights)
    size = x.shape[-1] // heads
    y = norm(x, weights["norm1"], weights.get("norm1_bias"))
    q, k, v = jnp.split(y @ weights["qkv"], (heads * size, (heads + kv_heads) * size), -1)
    if not is_llama:
        q, k, v = jnp.split(jnp.concatenate((q, k, v), -1) + weights["qkv_bias"].astype(x.dtype), 3, -1)
    q, k, v = (each.reshape(*x.shape[:2], -1, size) for each in (q, k, v))
    if is_llama:
        q, k = rotated(q), rotated(k)
    out = jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation=attention)
    out = out.reshape(x.shape) @ weights["out"]
    x += out if is_llama else out + weights["out_bias"].astype(x.dtype)
    y = norm(x, weights["norm2"], weights.get("norm2_bias"))
    if is_llama:
        return x + (jax.nn.silu(y @ weights["gate"]) * (y @ weights["up"])) @ weights["down"]
    y = jax.nn.gelu(y @ weights["up"] + weights["up_bias"].astype(x.dtype))
    return x + y @ weights["down"] + weights["down_bias"].astype(x.dtype)


def shapes(is_llama: bool, width: int, heads: int, kv_heads: int, hidden: int) -> dict[str, tuple[int, ...]]:
    of_qkv = width // heads * (heads + 2 * kv_heads)
    found = {"norm1": (width,), "norm2": (width,), "qkv": (width, of_qkv), "out": (width, width),
             "up": (width, hidden), "down": (hidden, width)}
    if is_llama:
        return {**found, "gate": (width, hidden)}
    return {**found, "norm1_bias": (width,), "norm2_bias": (width,), "qkv_bias": (of_qkv,),
            "out_bias": (width,), "up_bias": (hidden,), "down_bias": (width,)}


def loss(one_layer: Callable[[Array, Weights], Array], looped: bool, parameters: dict, tokens: Array,
         labels: Array) -> Array:
    x = parameters["embedding"][tokens].astype(jnp.bfloat16)
    if looped:
        x, _ = jax.lax.scan(lambda x, weights: (one_layer(x, weights), None), x, parameters["layers"])
    else:
        for weights in parameters["layers"]:
            x = one_layer(x, weights)
    x = norm(x, parameters["norm"], None)
    logits = (x @ parameters["output"].astype(jnp.bfloat16)).astype(jnp.float32)
    right = jnp.take_along_axis(logits, labels[..., None], -1)[..., 0]
    return (jax.nn.logsumexp(logits, -1) - right).mean()


def adam(parameters: dict, first: dict, second: dict, gradients: dict) -> tuple[dict, dict, dict]:
    total = jnp.sqrt(sum(jnp.vdot(g, g) for g in jax.tree.leaves(gradients)))
    gradients = jax.tree.map(lambda g: g * jnp.minimum(1, 1 / total), gradients)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
    second = jax.tree.map(lambda v, g: 0.95 * v + 0.05 * g * g, second, gradients)
    parameters = jax.tree.map(lambda p, m, v: p - 1e-4 * (m / (jnp.sqrt(v) + 1e-8) + 0.1 * p), parameters,
                              first, second)
    return parameters, first, second


def step_times(model: str, layers: int, width: int, heads: int, kv_heads: int, hidden: int, vocabulary: int,
               tokens: int, sequences: int, recompute: str, attention: str, looped: bool) -> list[float]:
    is_llama = model == "llama"
    one_layer = functools.partial(layer, heads, kv_heads, attention, is_llama)
    if recompute != "none":
        one_layer = jax.checkpoint(one_layer, policy=POLICIES[recompute], prevent_cse=not looped)

    keys = map(functools.partial(jax.random.fold_in, jax.random.key(0)), itertools.count())

    def drawn(*shape: int) -> Array:
        return 0.02 * jax.random.normal(next(keys), shape)

    def weights(*stacked: int) -> Weights:
        return {name: drawn(*stacked, *shape)
                for name, shape in shapes(is_llama, width, heads, kv_heads, hidden).items()}

    parameters = {"embedding": drawn(vocabulary, width), "output": drawn(width, vocabulary),
                  "norm": jnp.ones(width),
                  "layers": weights(layers) if looped else [weights() for _ in range(layers)]}
    ids = jax.random.randint(next(keys), (sequences, tokens), 0, vocabulary)

    @functools.partial(jax.jit, donate_argnums=(0, 1, 2))
    def step(parameters, first, second):
        value, gradients = jax.value_and_grad(functools.partial(loss, one_layer, looped))(parameters, ids, ids)
        return *adam(parameters, first, second, gradients), value

    first, second = (jax.tree.map(jnp.zeros_like, parameters) for _ in range(2))
    state, times = (parameters, first, second), []
    for _ in range(9):
        begin = time.perf_counter()
        *state, value = step(*state)
        jax.block_until_ready(value)
        jax.block_until_ready(state)
        times.append(time.perf_counter() - begin)
    peak = jax.devices()[0].memory_stats()["peak_bytes_in_use"]
    return [float(f"{statistics.median(times[3:]):.5g}"), peak]


def steps_jax() -> dict:
    rows = []
    for case in STEPS:
        measured = attempted(f"step {case}", functools.partial(step_times, *case))
        if measured is not None:
            rows.append([*case, *measured])
            print(rows[-1], flush=True)
    return table(["model", "layers", "width", "heads", "kv_heads", "feed_forward", "vocabulary", "tokens",
                  "sequences", "recompute", "attention", "looped", "seconds", "peak_bytes"], rows,
                 f"JAX {jax.__version__}. Seconds; the peak is the highest of the process until then.")

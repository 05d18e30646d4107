"""Attention, optimizer and what is left of the rates after seconds of work.

attention and optimizer: microseconds. sustained: FLOP/s, of the copy bytes/s, read and written.
"""
from __future__ import annotations

import time
from functools import partial

import torch
import torch.nn.functional as functional
from torch.nn.attention import SDPBackend, sdpa_kernel

import products
from result import four_digits, microseconds, table
from timing import Call, attempted, clock_and_power, random_numbers, seconds_per_call

BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION,
            "efficient": SDPBackend.EFFICIENT_ATTENTION}
# Batch, tokens, heads, heads of keys and values, numbers of a head, with the causal mask or not.
ATTENTION = (
    (4, 1024, 32, 32, 128, True), (4, 2048, 32, 32, 128, True), (2, 4096, 32, 32, 128, True),
    (1, 8192, 32, 32, 128, True), (1, 8192, 32, 8, 128, True), (1, 32768, 8, 8, 128, True),
    (2, 4096, 32, 32, 128, False), (1, 8192, 32, 32, 128, False), (8, 2048, 16, 16, 64, True),
    (2, 8192, 32, 32, 64, True), (32, 512, 16, 16, 64, False), (8, 1024, 12, 12, 64, True),
    (2, 4096, 8, 8, 128, True), (1, 4096, 8, 1, 128, True), (1, 131072, 4, 4, 128, True),
    (2, 4096, 16, 16, 192, True),
    # Few heads, as tensor ranks have; they fill the compute units a few times or not once.
    (1, 2048, 4, 4, 128, True), (1, 2048, 8, 8, 128, True), (2, 2048, 8, 8, 128, True),
    (1, 2048, 16, 16, 128, True), (1, 2048, 32, 32, 128, True), (1, 4096, 1, 1, 128, True),
    (1, 4096, 2, 2, 128, True), (1, 4096, 4, 4, 128, True), (1, 4096, 8, 8, 128, True),
    (1, 4096, 12, 12, 128, True), (1, 4096, 16, 16, 128, True), (4, 4096, 8, 8, 128, True),
    (1, 8192, 2, 2, 128, True), (1, 8192, 4, 4, 128, True), (1, 8192, 8, 1, 128, True),
    (1, 8192, 16, 16, 128, True), (1, 16384, 8, 8, 128, True), (8, 512, 16, 16, 128, True),
    (16, 512, 32, 32, 128, True), (1, 4096, 8, 8, 128, False), (1, 16384, 4, 4, 128, False),
    (16, 512, 16, 16, 128, False), (1, 2048, 16, 16, 64, True), (4, 2048, 12, 12, 64, True),
    (1, 8192, 8, 8, 64, True), (16, 512, 16, 16, 64, True), (64, 128, 12, 12, 64, False),
    (4, 2048, 32, 32, 80, True), (2, 2048, 20, 20, 96, True), (1, 4096, 8, 8, 192, True),
    (1, 8192, 8, 8, 256, True), (2, 4096, 16, 16, 256, True),
)
# Eight layers of Llama 8B.
PARAMETERS = 8 * ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (4096,), (4096,))


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    shared = k.shape[1] != q.shape[1]
    return functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=shared)


def attention_times(backend: SDPBackend, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
                    causal: bool) -> list[float | None]:
    with sdpa_kernel(backend):
        forward = seconds_per_call([partial(attend, q, k, v, causal)], most=60)
        output = attend(q, k, v, causal)
        gradient = torch.randn_like(output)
        gradients = partial(torch.autograd.grad, output, (q, k, v), gradient, retain_graph=True)
        backward = seconds_per_call([gradients], most=60)
    return [microseconds(forward), microseconds(backward)]


def attention() -> dict:
    """PyTorch's backends: FlashAttention-2, cuDNN and the kernels of xFormers; no row where one refuses."""
    rows = []
    for case in ATTENTION:
        batch, tokens, heads, kv_heads, head_dim, causal = case
        q, k, v = (random_numbers(batch, count, tokens, head_dim).requires_grad_()
                   for count in (heads, kv_heads, kv_heads))
        for name, backend in BACKENDS.items():
            if name == "efficient" and (kv_heads != heads or tokens > 8192):
                continue
            times = attempted(f"{name} {case}", partial(attention_times, backend, q, k, v, causal))
            if times is not None:
                rows.append([name, *case, *times])
    columns = ["backend", "batch", "tokens", "heads", "kv_heads", "head_dim", "causal", "forward", "backward"]
    return table(columns, rows)


def latent_attention() -> dict:
    """Queries and keys of 192 numbers, values of 128, as DeepSeek-V3 has, with the mask: cuDNN."""
    rows = []
    for batch, tokens, heads in ((1, 4096, 128), (2, 4096, 16), (1, 4096, 8), (1, 16384, 16)):
        q, k, v = (random_numbers(batch, heads, tokens, size).requires_grad_() for size in (192, 192, 128))
        times = attempted(f"192 and 128, {batch} {tokens} {heads}",
                          partial(attention_times, SDPBackend.CUDNN_ATTENTION, q, k, v, True))
        if times is not None:
            rows.append(["cudnn", batch, tokens, heads, *times])
    return table(["backend", "batch", "tokens", "heads", "forward", "backward"], rows)


def decode_attention() -> dict:
    """One query a sequence against its keys and values."""
    rows = []
    for batch in (1, 8, 64):
        for tokens in (1024, 4096, 16384):
            for heads, kv_heads in ((32, 32), (32, 8), (8, 1)):
                if 4 * batch * tokens * kv_heads * 128 > 20e9:
                    continue
                q = random_numbers(batch, heads, 1, 128)
                k, v = (random_numbers(batch, kv_heads, tokens, 128) for _ in range(2))
                for name in ("flash", "cudnn"):
                    with sdpa_kernel(BACKENDS[name]):
                        seconds = attempted(f"decode {name} {batch} {tokens} {heads} {kv_heads}",
                                            partial(seconds_per_call, [partial(attend, q, k, v, False)]))
                    if seconds is not None:
                        rows.append([name, batch, tokens, heads, kv_heads, microseconds(seconds)])
    return table(["backend", "batch", "keys", "heads", "kv_heads", "time"], rows)


def parameters_with_gradients(dtype: torch.dtype) -> list[torch.nn.Parameter]:
    parameters = [torch.nn.Parameter(random_numbers(*shape, dtype=dtype)) for shape in PARAMETERS]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    return parameters


def optimizer_row(kernel: str, parameters: list[torch.nn.Parameter], call: Call) -> list:
    numbers = sum(parameter.numel() for parameter in parameters)
    return [kernel, numbers, microseconds(seconds_per_call([call], budget=0.05, most=10))]


def adamw_row(kernel: str, dtype: torch.dtype, **how: bool) -> list:
    parameters = parameters_with_gradients(dtype)
    adamw = torch.optim.AdamW(parameters, lr=1e-4, **how)
    adamw.step()
    return optimizer_row(kernel, parameters, adamw.step)


def gradient_rows() -> list[list]:
    parameters = parameters_with_gradients(torch.float32)
    gradients = [parameter.grad for parameter in parameters]
    calls = {"clip foreach": partial(torch.nn.utils.clip_grad_norm_, parameters, 1.0, foreach=True),
             "norm foreach": partial(torch._foreach_norm, gradients),
             "zero foreach": partial(torch._foreach_zero_, gradients)}
    return [optimizer_row(kernel, parameters, call) for kernel, call in calls.items()]


def optimizer() -> dict:
    """AdamW with all numbers in 32 bits, the passes over gradients, and AdamW in bf16."""
    rows = [adamw_row("AdamW fused", torch.float32, fused=True), *gradient_rows(),
            adamw_row("AdamW foreach", torch.float32, foreach=True),
            adamw_row("AdamW fused, bf16", torch.bfloat16, fused=True)]
    return table(["kernel", "numbers", "time"], rows)


def held(what: str, call: Call, work: float, seconds: float = 2.5) -> dict:
    """The rates of the first and of the last 20 calls; clock and power at the end."""
    call()
    torch.cuda.synchronize()
    rates = []
    begin = time.time()
    while time.time() - begin < seconds:
        before = time.time()
        for _ in range(20):
            call()
        torch.cuda.synchronize()
        rates.append(20 * work / (time.time() - before))
        megahertz, watts = clock_and_power()
    time.sleep(0.5)
    return {"what": what, "first": four_digits(rates[0]), "last": four_digits(rates[-1]), "watts": watts,
            "megahertz": megahertz}


def held_product(size: int) -> dict:
    a, b = random_numbers(size, size), random_numbers(size, size)
    return held(f"bf16.{size}", partial(products.forward, a, b), 2 * size**3)


def held_product_in_8_bits(size: int) -> dict:
    a, b = (random_numbers(size, size).to(torch.float8_e4m3fn) for _ in range(2))
    one = torch.ones((), device="cuda")
    return held(f"fp8.{size}", partial(products.scaled_product, a, b, one, one), 2 * size**3)


def held_attention(heads: int, tokens: int, head_dim: int) -> dict:
    q, k, v = (random_numbers(1, heads, tokens, head_dim) for _ in range(3))
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return held("cudnn.fwd", partial(attend, q, k, v, True), 4 * heads * tokens**2 * head_dim / 2)


def held_copy(numbers: int) -> dict:
    source = random_numbers(numbers)
    return held("copy(bytes)", partial(torch.empty_like(source).copy_, source), 2 * 2 * numbers, 1.0)


def sustained() -> list[dict]:
    works = (partial(held_product, 8192), partial(held_product, 4096), partial(held_product_in_8_bits, 8192),
             partial(held_attention, 32, 8192, 128), partial(held_copy, 256 << 20))
    results = [attempted("sustained", work) for work in works]
    return [result for result in results if result is not None]

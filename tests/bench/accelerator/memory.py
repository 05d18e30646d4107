"""Kernels that wait for memory: microseconds, and the bytes of reading inputs and writing results once.

Norms, activations, casts and reductions over rows of a width, rotary embeddings, word embeddings, the loss,
copies, and what a mixture of experts does with its tokens.
"""
from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
import torch.nn.functional as functional

from result import microseconds, table
from timing import Call, attempted, random_numbers, seconds_per_call

Kernel = tuple[str, float, Call]  # name, bytes, what is timed

SIZES = ((8192, 4096), (2048, 4096), (8192, 14336), (16384, 2048), (4096, 8192))  # rows, width
EPSILON = 1e-5
VOCABULARY = 128256


def gradient(output: torch.Tensor, inputs: tuple[torch.Tensor, ...], dy: torch.Tensor | None = None) -> Call:
    return partial(torch.autograd.grad, output, inputs, dy, retain_graph=True)


def elementwise(rows: int, width: int) -> Iterator[Kernel]:
    count = rows * width
    x, y, weight = random_numbers(rows, width), random_numbers(rows, width), random_numbers(width)
    out, wide = torch.empty_like(x), x.float()
    yield "copy", 4 * count, lambda: out.copy_(x)
    yield "add", 6 * count, lambda: torch.add(x, y)
    yield "mul", 6 * count, lambda: torch.mul(x, y)
    yield "silu", 4 * count, lambda: functional.silu(x)
    yield "gelu_tanh", 4 * count, lambda: functional.gelu(x, approximate="tanh")
    yield "cast32", 6 * count, lambda: x.float()
    yield "cast16", 6 * count, lambda: wide.to(torch.bfloat16)
    yield "dropout", 5 * count, lambda: functional.dropout(x, 0.1, True)
    yield "rms_norm", 4 * count, lambda: functional.rms_norm(x, (width,), weight, EPSILON)
    yield "layer_norm", 4 * count, lambda: functional.layer_norm(x, (width,), weight, weight, EPSILON)
    yield "softmax_rows", 4 * count, lambda: torch.softmax(x, -1)
    yield "sum0", 2 * count, lambda: x.sum(0)
    yield "sum1", 2 * count, lambda: x.sum(1)
    yield "mulbias", 4 * count, lambda: x * weight
    yield "pow2mean", 0, lambda: wide.pow(2).mean(-1, keepdim=True)
    yield "amax", 2 * count, lambda: x.abs().max()
    yield "slice_cat", 4 * count, lambda: torch.cat((x[:, width // 2:], x[:, :width // 2]), -1)
    yield "transpose_copy", 4 * count, lambda: x.view(rows, width // 128, 128).transpose(0, 1).contiguous()
    yield "t_copy", 4 * count, lambda: x.t().contiguous()
    yield "repeat4", 2.5 * count, lambda: repeated(x, 4)


def repeated(x: torch.Tensor, times: int) -> torch.Tensor:
    """The first heads of 128 numbers, as many times as fill the width."""
    rows, width = x.shape
    heads = x[:, :width // times].view(rows, -1, 1, 128)
    return heads.expand(rows, width // (128 * times), times, 128).reshape(rows, -1)


def backward(rows: int, width: int) -> Iterator[Kernel]:
    count = rows * width
    x, dy = random_numbers(rows, width).requires_grad_(), random_numbers(rows, width)
    weight = random_numbers(width).requires_grad_()
    normed = functional.rms_norm(x, (width,), weight, EPSILON)
    yield "rms_norm_bwd", 6 * count, gradient(normed, (x, weight), dy)
    normed = functional.layer_norm(x, (width,), weight, weight, EPSILON)
    yield "layer_norm_bwd", 6 * count, gradient(normed, (x, weight), dy)
    yield "silu_bwd", 6 * count, gradient(functional.silu(x), (x,), dy)
    yield "gelu_bwd", 6 * count, gradient(functional.gelu(x, approximate="tanh"), (x,), dy)


def narrowing(rows: int, width: int) -> Iterator[Kernel]:
    x = random_numbers(rows, width)
    yield "to_fp8", 3 * rows * width, lambda: x.to(torch.float8_e4m3fn)


def rotary() -> Iterator[Kernel]:
    """With complex numbers, as torchtitan, and by halves, as Hugging Face."""
    tokens, heads, size = 8192, 32, 128
    q = random_numbers(1, tokens, heads, size)
    angles = torch.rand(tokens, size // 2, device="cuda")
    turn = torch.polar(torch.ones(tokens, size // 2, device="cuda"), angles).view(1, tokens, 1, size // 2)
    cosine = random_numbers(1, tokens, 1, size)

    def by_complex_numbers() -> torch.Tensor:
        pairs = torch.view_as_complex(q.float().reshape(1, tokens, heads, size // 2, 2))
        return torch.view_as_real(pairs * turn).flatten(3).type_as(q)

    def by_halves() -> torch.Tensor:
        first, second = q[..., :size // 2], q[..., size // 2:]
        return q * cosine + torch.cat((-second, first), -1) * cosine

    yield "rotary_complex", 4 * q.numel(), by_complex_numbers
    yield "rotary_halves", 4 * q.numel(), by_halves


def embedding() -> Iterator[Kernel]:
    tokens, width = 8192, 4096
    words = random_numbers(VOCABULARY, width).requires_grad_()
    ids = torch.randint(0, VOCABULARY, (tokens,), device="cuda")
    yield "embedding", 4 * tokens * width, lambda: functional.embedding(ids, words)
    output = functional.embedding(ids, words)
    yield "embedding_bwd", 2 * VOCABULARY * width, gradient(output, (words,), torch.randn_like(output))


def loss() -> Iterator[Kernel]:
    logits = random_numbers(8192, VOCABULARY)
    labels = torch.randint(0, VOCABULARY, (8192,), device="cuda")
    count = logits.numel()
    yield "ce_fwd_fp32", 2 * count, lambda: functional.cross_entropy(logits.float(), labels)
    wide = logits.float().requires_grad_()
    yield "ce_fwd_only32", 4 * count, lambda: functional.cross_entropy(wide, labels)
    yield "ce_bwd32", 4 * count, gradient(functional.cross_entropy(wide, labels), (wide,))
    yield "logits_cast", 6 * count, lambda: logits.float()


def large() -> Iterator[Kernel]:
    source = random_numbers(1 << 30)
    target = torch.empty_like(source)
    yield "copy_4GiB", 4 << 30, lambda: target.copy_(source)
    yield "read_sum", 2 << 30, source.sum
    yield "fill", 2 << 30, source.zero_


def routing() -> Iterator[Kernel]:
    """8 of 128 experts for each of 8,192 tokens."""
    tokens, copies, width = 8192, 65536, 2048
    moved = 4 * copies * width
    token = torch.randperm(copies, device="cuda") % tokens
    x, routed = random_numbers(tokens, width), random_numbers(copies, width)
    total = torch.zeros(tokens, width, device="cuda", dtype=torch.bfloat16)
    index = token.view(-1, 1).expand(-1, width)
    yield "index_select", moved, lambda: x[token]
    yield "index_add", moved, lambda: total.index_add_(0, token, routed)
    yield "scatter_add", moved, lambda: total.scatter_add_(0, index, routed)
    yield "gather", moved, lambda: torch.gather(x, 0, index)
    scores = random_numbers(tokens, 128, dtype=torch.float32)
    yield "topk8of128", 4 * scores.numel(), lambda: torch.topk(scores, 8, -1)
    yield "softmax128", 8 * scores.numel(), lambda: torch.softmax(scores, -1)
    expert = torch.randint(0, 128, (copies,), device="cuda")
    yield "argsort65536", 8 * copies, lambda: torch.argsort(expert, stable=True)
    yield "histc", 8 * copies, lambda: torch.histc(expert.float(), 128, 0, 127)


def host_copies() -> dict:
    """Between pinned or pageable memory of the host and the accelerator, one way and both ways at once."""
    rows = []
    for megabytes in (1, 16, 256):
        there, back = (torch.empty(megabytes << 20, dtype=torch.uint8, device="cuda") for _ in range(2))
        for memory in ("pinned", "pageable"):
            out, home = (torch.zeros(there.numel(), dtype=torch.uint8, pin_memory=memory == "pinned")
                         for _ in range(2))
            streams = torch.cuda.Stream(), torch.cuda.Stream()

            def both_ways() -> None:
                begun = torch.cuda.current_stream().record_event()
                for stream, target, source in zip(streams, (there, home), (out, back)):
                    stream.wait_event(begun)
                    with torch.cuda.stream(stream):
                        target.copy_(source, non_blocking=True)
                for stream in streams:
                    torch.cuda.current_stream().wait_event(stream.record_event())

            calls = {"to the accelerator": partial(there.copy_, out, non_blocking=True),
                     "to the host": partial(home.copy_, back, non_blocking=True)}
            if memory == "pinned":
                calls["both ways"] = both_ways
            for direction, call in calls.items():
                rows.append([memory, direction, there.numel(), microseconds(seconds_per_call([call], most=50))])
    return table(["memory", "direction", "bytes", "time"], rows)


def timed(kernels: Iterator[Kernel], rows: int | None = None, width: int | None = None) -> list[list]:
    """A row per kernel, none for one that fails."""
    result = []
    for name, moved, call in kernels:
        seconds = attempted(f"{name} {rows} {width}", partial(seconds_per_call, [call], most=100))
        if seconds is not None:
            result.append([name, rows, width, int(moved), microseconds(seconds)])
    return result


def memory() -> dict:
    rows = []
    for size in SIZES:
        for kernels in (elementwise, backward, narrowing):
            rows += timed(kernels(*size), *size)
    for kernels in (rotary, embedding, loss, large, routing):
        rows += timed(kernels())
    return table(["kernel", "rows", "width", "bytes", "time"], rows)

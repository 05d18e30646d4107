"""Matrix products of linear layers and of experts, in microseconds.

A layer of k inputs and n outputs over m rows has three products: x W^T forward, dy W for the input's gradient
and dy^T x for the weights'. They are launched from a stream and from a graph, in 8 bits, and for experts in
one kernel and one by one.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from result import microseconds, table
from timing import (Call, attempted, random_numbers, seconds_from_graph, seconds_per_call, seconds_per_replay,
                    sets_of_operands)

# Outputs n and inputs k. "/ 8" is a layer that 8 tensor-parallel ranks share.
LAYERS = {
    "llama 8b qkv": (6144, 4096), "llama 8b output": (4096, 4096), "llama 8b kv": (1024, 4096),
    "llama 8b gate and up": (28672, 4096), "llama 8b gate": (14336, 4096), "llama 8b down": (4096, 14336),
    "llama 8b head": (128256, 4096),
    "llama 70b qkv / 8": (1280, 8192), "llama 70b output / 8": (8192, 1024),
    "llama 70b gate and up / 8": (7168, 8192), "llama 70b down / 8": (8192, 3584),
    "llama 70b qkv / 4": (2560, 8192), "llama 70b output / 4": (8192, 2048),
    "llama 70b gate and up / 4": (14336, 8192), "llama 70b down / 4": (8192, 7168),
    "llama 405b qkv / 8": (2304, 16384), "llama 405b output / 8": (16384, 2048),
    "llama 405b gate and up / 8": (13312, 16384), "llama 405b down / 8": (16384, 6656),
    "gpt 175b qkv / 8": (4608, 12288), "gpt 175b output / 8": (12288, 1536),
    "gpt 175b up / 8": (6144, 12288), "gpt 175b down / 8": (12288, 6144),
    "llama 1b qkv": (3072, 2048), "llama 1b output": (2048, 2048),
    "llama 1b gate and up": (16384, 2048), "llama 1b down": (2048, 8192),
    "bert large qkv": (3072, 1024), "bert large output": (1024, 1024),
    "gpt2 qkv": (2304, 768), "gpt2 up": (3072, 768), "gpt2 down": (768, 3072),
    "qwen3 30b expert gate and up": (1536, 2048), "qwen3 30b expert down": (2048, 768),
    "deepseek v3 expert gate and up": (4096, 7168), "deepseek v3 expert down": (7168, 2048),
}
LARGEST_OUTPUT = 8192 * 128256
IN_8_BITS = ("llama 8b qkv", "llama 8b output", "llama 8b gate and up", "llama 8b gate", "llama 8b down",
             "llama 70b gate and up / 8", "llama 70b down / 8", "llama 70b qkv / 4",
             "llama 405b gate and up / 8", "llama 405b down / 8", "gpt 175b up / 8", "llama 1b gate and up",
             "deepseek v3 expert gate and up")
# n and k of small layers: GPT-2, BERT large, Llama 1B, experts of Qwen3, Llama 8B and 70B / 8.
FROM_GRAPH = (
    (2304, 768), (768, 768), (3072, 768), (768, 3072), (3072, 1024), (1024, 1024), (4096, 1024), (1024, 4096),
    (3072, 2048), (2048, 2048), (16384, 2048), (2048, 8192), (1536, 2048), (2048, 768), (1024, 4096),
    (1280, 8192), (8192, 1024), (4096, 4096), (6144, 4096),
)
# Experts, n, k, rows of all experts: Qwen3 30B, 16 of its experts, Mixtral, 32 and 4 of DeepSeek-V3's.
GROUPED = ((128, 768, 2048, 65536), (128, 2048, 768, 65536), (16, 768, 2048, 65536), (8, 14336, 4096, 16384),
           (8, 4096, 14336, 16384), (32, 2048, 7168, 65536), (32, 7168, 2048, 65536), (4, 2048, 7168, 32768))
# Experts, rows of each, n, k.
ONE_BY_ONE = ((128, 512, 768, 2048), (128, 512, 2048, 768), (16, 4096, 1536, 2048), (8, 2048, 14336, 4096),
              (8, 2048, 4096, 14336), (32, 2048, 4096, 7168), (32, 2048, 7168, 2048), (8, 256, 4096, 7168),
              (16, 1024, 4096, 7168))
PASSES = ["forward", "input_gradient", "weight_gradient"]


def forward(x: torch.Tensor, weight: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    return torch.mm(x, weight.t(), out=out)


def input_gradient(dy: torch.Tensor, weight: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    return torch.mm(dy, weight, out=out)


def weight_gradient(dy: torch.Tensor, x: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    return torch.mm(dy.t(), x, out=out)


def scaled_product(x: torch.Tensor, weight: torch.Tensor, scale_x: torch.Tensor, scale_weight: torch.Tensor,
                   fast: bool = True) -> torch.Tensor:
    """Of 8-bit operands; `fast` adds up with fewer bits."""
    return torch._scaled_mm(x, weight.t(), scale_a=scale_x, scale_b=scale_weight, out_dtype=torch.bfloat16,
                            use_fast_accum=fast)


def layer_times(m: int, n: int, k: int, together: float, most: int,
                timed: Callable[[list[Call]], float]) -> list[float | None]:
    sets = sets_of_operands(2 * (m * k + n * k + m * n), together, most)
    inputs = [random_numbers(m, k) for _ in range(sets)]
    weights = [random_numbers(n, k) for _ in range(sets)]
    outputs = [random_numbers(m, n) for _ in range(sets)]
    passes = [[partial(forward, x, weight) for x, weight in zip(inputs, weights)],
              [partial(input_gradient, dy, weight) for dy, weight in zip(outputs, weights)],
              [partial(weight_gradient, dy, x) for dy, x in zip(outputs, inputs)]]
    return [microseconds(timed(calls)) for calls in passes]


def products() -> dict:
    timed = partial(seconds_per_call, budget=0.012)
    rows = [[m, n, k, *layer_times(m, n, k, 300e6, 6, timed)] for n, k in LAYERS.values()
            for m in (512, 1024, 2048, 4096, 8192, 16384) if m * n <= LARGEST_OUTPUT]
    return table(["m", "n", "k", *PASSES], rows)


def products_from_graph() -> dict:
    rows = [[m, n, k, *layer_times(m, n, k, 150e6, 5, seconds_from_graph)] for n, k in FROM_GRAPH
            for m in (512, 1024, 2048, 4096, 8192)]
    return table(["m", "n", "k", *PASSES], rows)


def decode() -> dict:
    """x W^T with as many rows as requests take a token each, weights from memory, from a graph."""
    rows = []
    for n, k in ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (1280, 8192), (8192, 1024),
                 (7168, 8192), (8192, 3584)):
        sets = sets_of_operands(2 * n * k, 300e6, 24)
        weights = [random_numbers(n, k) for _ in range(sets)]
        for m in (1, 2, 4, 8, 16, 32, 64, 128, 256):
            x, out = random_numbers(m, k), random_numbers(m, n)
            calls = [partial(forward, x, weight, out) for weight in weights]
            rows.append([m, n, k, microseconds(seconds_from_graph(calls, 24))])
    return table(["m", "n", "k", "time"], rows)


def batched() -> dict:
    """Products of stored scores, one for each head: Q K^T, P V, and those of the backward pass."""
    rows = []
    for batch, tokens, head in ((128, 512, 64), (48, 1024, 64), (128, 1024, 64), (32, 2048, 64), (96, 2048, 128),
                                (12, 2048, 128), (24, 2048, 96), (16, 4096, 128)):
        q, k, dy = (random_numbers(batch, tokens, head) for _ in range(3))
        scores = random_numbers(batch, tokens, tokens)
        calls = {"q k": partial(torch.bmm, q, k.transpose(1, 2)), "p v": partial(torch.bmm, scores, k),
                 "p^t dy": partial(torch.bmm, scores.transpose(1, 2), dy)}
        for name, call in calls.items():
            rows.append([name, batch, tokens, head, microseconds(seconds_per_call([call], most=100))])
    return table(["product", "batch", "tokens", "head_dim", "time"], rows)


def times_in_8_bits(m: int, n: int, k: int) -> list[float | None]:
    """With one scale for each operand, adding up fast and not, and with one for each row, fast."""
    sets = sets_of_operands(m * k + n * k + 2 * m * n, 300e6, 4)
    operands = [(random_numbers(m, k).to(torch.float8_e4m3fn), random_numbers(n, k).to(torch.float8_e4m3fn))
                for _ in range(sets)]
    one, of_rows, of_columns = (torch.ones(shape, device="cuda") for shape in ((), (m, 1), (1, n)))

    def timed(scale_x: torch.Tensor, scale_weight: torch.Tensor, fast: bool) -> float:
        calls = [partial(scaled_product, x, weight, scale_x, scale_weight, fast) for x, weight in operands]
        return seconds_per_call(calls, budget=0.01)

    by_row = attempted(f"a scale for each row, {m} {n} {k}", partial(timed, of_rows, of_columns, True))
    return [microseconds(timed(one, one, True)), microseconds(timed(one, one, False)), microseconds(by_row)]


def fp8() -> dict:
    rows = [[m, n, k, *times_in_8_bits(m, n, k)] for n, k in (LAYERS[name] for name in IN_8_BITS)
            for m in (1024, 4096, 8192, 16384)]
    return table(["m", "n", "k", "one_scale_fast", "one_scale", "scale_a_row"], rows)


def rows_of_experts(experts: int, rows: int, split: str) -> torch.Tensor:
    if split == "even":
        return torch.full((experts,), rows // experts, device="cuda")
    chosen = torch.randint(0, experts, (rows,), device="cuda")
    counts = torch.bincount(chosen, minlength=experts) // 16 * 16
    counts[0] += rows - counts.sum()
    return counts


def grouped() -> dict:
    """Experts in one kernel, with rows that are split evenly or at random in multiples of 16."""
    rows = []
    for experts, n, k, total in GROUPED:
        x, weights, dy = random_numbers(total, k), random_numbers(experts, n, k), random_numbers(total, n)
        for split in ("even", "random"):
            ends = torch.cumsum(rows_of_experts(experts, total, split), 0).to(torch.int32)
            calls = [partial(torch._grouped_mm, x, weights.transpose(-2, -1), ends),
                     partial(torch._grouped_mm, dy, weights, ends),
                     partial(torch._grouped_mm, dy.t(), x, ends)]
            times = [attempted(f"{experts} grouped experts, {total} {n} {k}, {each}",
                               partial(seconds_per_call, [call], most=50))
                     for each, call in zip(PASSES, calls)]
            rows.append([experts, total, n, k, split, *map(microseconds, times)])
    return table(["experts", "rows", "n", "k", "split", *PASSES], rows)


def seconds_on_streams(calls: list[Call], streams: int) -> float:
    """Of all `calls` from one graph, which launches them on the streams in turn."""
    sides = [torch.cuda.Stream() for _ in range(streams)]
    calls[0]()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        main = torch.cuda.current_stream()
        begun = main.record_event()
        for side in sides:
            side.wait_event(begun)
        for index, call in enumerate(calls):
            with torch.cuda.stream(sides[index % streams]):
                call()
        for side in sides:
            main.wait_event(side.record_event())
    return seconds_per_replay(graph, 4)


def expert_by_expert() -> dict:
    """A product for each expert, on one stream and on four, as Transformer Engine launches them."""
    rows = []
    for experts, each, n, k in ONE_BY_ONE:
        x, weights, dy = (random_numbers(experts, *shape) for shape in ((each, k), (n, k), (each, n)))
        y, dx, dweights = (torch.empty_like(tensor) for tensor in (dy, x, weights))
        passes = [[partial(forward, *of_one) for of_one in zip(x, weights, y)],
                  [partial(input_gradient, *of_one) for of_one in zip(dy, weights, dx)],
                  [partial(weight_gradient, *of_one) for of_one in zip(dy, x, dweights)]]
        for streams in (1, 4):
            times = [microseconds(seconds_on_streams(calls, streams)) for calls in passes]
            rows.append([experts, each, n, k, streams, *times])
    return table(["experts", "rows_of_each", "n", "k", "streams", *PASSES], rows)

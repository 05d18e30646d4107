"""Kernels as torch.compile fuses them: microseconds, and the bytes of reading inputs and writing results once."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch._functorch.config
import torch.nn.functional as functional

from memory import EPSILON, gradient
from result import microseconds, table
from timing import attempted, random_numbers, seconds_per_call

Tensors = torch.Tensor | tuple[torch.Tensor, ...]

ROWS, WIDTH, WIDE = 8192, 4096, 14336
VOCABULARY = 128256


def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return functional.rms_norm(x, (x.shape[-1],), weight, EPSILON)


def layer_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return functional.layer_norm(x, (x.shape[-1],), weight, weight, EPSILON)


def add_norm(x: torch.Tensor, y: torch.Tensor, weight: torch.Tensor) -> Tensors:
    total = x + y
    return total, rms_norm(total, weight)


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x + y


def swiglu(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return functional.silu(x) * y


def gelu_bias(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return functional.gelu(x + bias, approximate="tanh")


def dropout_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return functional.dropout(x, 0.1, True) + y


def cast32(x: torch.Tensor) -> torch.Tensor:
    return x.float()


def to_fp8(x: torch.Tensor, scale: torch.Tensor) -> Tensors:
    return (x * scale).clamp(-448, 448).to(torch.float8_e4m3fn), x.abs().max()


def rotary(x: torch.Tensor, sine: torch.Tensor, cosine: torch.Tensor) -> torch.Tensor:
    first, second = x.float().chunk(2, -1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), -1).to(x.dtype)


def cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(logits.float(), labels)


def timed(name: str, function: Callable[..., Tensors], forward: float, backward: float,
          *inputs: torch.Tensor) -> list[list]:
    """Rows of the forward pass and, where `backward` bytes are given, of its gradient with respect to inputs."""
    torch._dynamo.reset()
    fused = torch.compile(function)
    with torch.no_grad():
        ahead = seconds_per_call([partial(fused, *inputs)], most=100)
    width = inputs[0].numel() // ROWS
    rows = [[name, ROWS, width, int(forward), microseconds(ahead)]]
    if backward <= 0:
        return rows
    learnt = tuple(x.requires_grad_() for x in inputs if x.dtype == torch.bfloat16)
    output = fused(*inputs)
    dy = None if output.ndim == 0 else torch.randn_like(output)
    back = seconds_per_call([gradient(output, learnt, dy)], most=100)
    return rows + [[f"{name}_bwd", ROWS, width, int(backward), microseconds(back)]]


def compiled() -> dict:
    torch._functorch.config.donated_buffer = False  # gradients are asked for more than once
    numbers, wide = ROWS * WIDTH, ROWS * WIDE
    weight = random_numbers(WIDTH)
    one = torch.ones((), device="cuda")

    def pair(width: int) -> tuple[torch.Tensor, torch.Tensor]:
        return random_numbers(ROWS, width), random_numbers(ROWS, width)

    heads = random_numbers(ROWS, 32, 128)
    angles = torch.rand(ROWS, 1, 64, device="cuda")
    labels = torch.randint(0, VOCABULARY, (ROWS,), device="cuda")
    logits = ROWS * VOCABULARY
    cases = (("add", add, 6 * numbers, 0, *pair(WIDTH)),
             ("cast32", cast32, 6 * numbers, 0, random_numbers(ROWS, WIDTH)),
             ("rms_norm", rms_norm, 4 * numbers, 6 * numbers, random_numbers(ROWS, WIDTH), weight),
             ("layer_norm", layer_norm, 4 * numbers, 6 * numbers, random_numbers(ROWS, WIDTH), weight),
             ("add_norm", add_norm, 8 * numbers, 0, *pair(WIDTH), weight),
             ("swiglu", swiglu, 6 * wide, 10 * wide, *pair(WIDE)),
             ("gelu_bias", gelu_bias, 4 * wide, 6 * wide, random_numbers(ROWS, WIDE), random_numbers(WIDE)),
             ("dropout_add", dropout_add, 6 * numbers, 0, *pair(WIDTH)),
             ("to_fp8", to_fp8, 3 * numbers, 0, random_numbers(ROWS, WIDTH), one),
             ("rotary", rotary, 4 * numbers, 0, heads, angles.sin(), angles.cos()),
             ("cross_entropy", cross_entropy, 2 * logits, 4 * logits, random_numbers(ROWS, VOCABULARY), labels))
    rows = []
    for case in cases:
        rows += attempted(f"compiled {case[0]}", partial(timed, *case)) or []
    return table(["kernel", "rows", "width", "bytes", "time"], rows)

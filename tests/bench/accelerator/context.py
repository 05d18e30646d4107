"""PyTorch's ring attention on one rank of several, in microseconds.

There is no network: the others' blocks are copies of the rank's own. `alone` is the same causal attention of
the rank's tokens without a ring.
"""
from __future__ import annotations

from functools import partial

import torch
import torch.distributed as distributed
from torch.distributed.tensor.experimental._context_parallel import _attention
from torch.testing._internal.distributed.fake_pg import FakeStore

from result import microseconds, table
from timing import attempted, random_numbers, seconds_per_call

# Heads, tokens of a rank, ranks, the rank.
CASES = ((32, 4096, 2, 0), (32, 4096, 2, 1), (32, 8192, 2, 0), (32, 8192, 2, 1), (32, 4096, 4, 0),
         (32, 4096, 4, 3), (32, 8192, 8, 0), (32, 8192, 8, 7), (32, 16384, 4, 1), (8, 8192, 4, 1))
HEAD_DIM = 128
FORWARD = torch.ops.aten._scaled_dot_product_flash_attention.default
BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_backward.default


def row(heads: int, tokens: int, ranks: int, rank: int) -> list:
    q, k, v, gradient = (random_numbers(1, heads, tokens, HEAD_DIM) for _ in range(4))
    distributed.init_process_group("fake", store=FakeStore(), rank=rank, world_size=ranks)
    try:
        group = distributed.group.WORLD
        forward = partial(_attention._templated_ring_attention, group, 2, FORWARD, query=q, key=k, value=v,
                          is_causal=True, dropout_p=0.0, return_debug_mask=False)
        out, logsumexp, cum_q, cum_k, max_q, max_k, seed, offset, *_ = forward()
        backward = partial(_attention._templated_ring_attention_backward, group, 2, BACKWARD, grad_out=gradient,
                           grad_out_name="grad_out", query=q, key=k, value=v, out=out, logsumexp=logsumexp,
                           is_causal=True, cum_seq_q=cum_q, cum_seq_k=cum_k, max_q=max_q, max_k=max_k,
                           dropout_p=0.0, philox_seed=seed, philox_offset=offset)
        timed = [microseconds(seconds_per_call([call], most=20)) for call in (forward, backward)]
    finally:
        distributed.destroy_process_group()
    alone = partial(FORWARD, q, k, v, 0.0, True)
    out, logsumexp, cum_q, cum_k, max_q, max_k, seed, offset, *_ = alone()
    back = partial(BACKWARD, gradient, q, k, v, out, logsumexp, cum_q, cum_k, max_q, max_k, 0.0, True, seed, offset)
    alone_times = [microseconds(seconds_per_call([call], most=20)) for call in (alone, back)]
    return [heads, tokens, ranks, rank, *timed, *alone_times]


def context() -> dict:
    rows = [attempted(f"context {case}", partial(row, *case)) for case in CASES]
    columns = ["heads", "tokens", "ranks", "rank", "forward", "backward", "alone", "alone_backward"]
    return table(columns, [each for each in rows if each is not None],
                 "ring attention of PyTorch with FlashAttention-2; the others' blocks are copied on the device")

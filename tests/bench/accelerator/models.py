"""The models of steps.py: Llama, dense or with a mixture of experts, as torchtitan's, and GPT-2 as nanoGPT's.

Nothing is measured here. Sizes are counts of numbers.
"""
from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as functional
from torch import Tensor, nn


@dataclass(frozen=True)
class LlamaSize:
    width: int
    heads: int
    kv_heads: int
    feed_forward: int  # of one expert where there are any
    vocabulary: int
    head_dim: int
    normalised_heads: bool = False
    experts: int = 0
    experts_per_token: int = 0


LLAMA_SIZES = {
    "1b": LlamaSize(2048, 32, 8, 8192, 128256, 64),
    "8b": LlamaSize(4096, 32, 8, 14336, 128256, 128),
    "qwen30": LlamaSize(2048, 32, 4, 768, 151936, 128, normalised_heads=True, experts=128,
                        experts_per_token=8),
    "toy": LlamaSize(256, 4, 4, 1024, 2048, 64),
}


def rotated(x: Tensor, turns: Tensor) -> Tensor:
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns[None, :x.shape[1], None, :]).flatten(3).type_as(x)


def repeated(x: Tensor, times: int) -> Tensor:
    if times == 1:
        return x
    batch, tokens, heads, size = x.shape
    several = x[:, :, :, None, :].expand(batch, tokens, heads, times, size)
    return several.reshape(batch, tokens, heads * times, size)


class Attention(nn.Module):
    def __init__(self, size: LlamaSize) -> None:
        super().__init__()
        self.head_dim = size.head_dim
        self.repeats = size.heads // size.kv_heads
        self.query = nn.Linear(size.width, size.heads * size.head_dim, bias=False)
        self.key = nn.Linear(size.width, size.kv_heads * size.head_dim, bias=False)
        self.value = nn.Linear(size.width, size.kv_heads * size.head_dim, bias=False)
        self.output = nn.Linear(size.heads * size.head_dim, size.width, bias=False)
        self.query_norm = nn.RMSNorm(size.head_dim) if size.normalised_heads else None
        self.key_norm = nn.RMSNorm(size.head_dim) if size.normalised_heads else None

    def forward(self, x: Tensor, turns: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        q, k, v = (linear(x).view(batch, tokens, -1, self.head_dim)
                   for linear in (self.query, self.key, self.value))
        if self.query_norm is not None:
            q, k = self.query_norm(q), self.key_norm(k)
        q, k = rotated(q, turns), rotated(k, turns)
        q = q.transpose(1, 2)
        k, v = repeated(k, self.repeats).transpose(1, 2), repeated(v, self.repeats).transpose(1, 2)
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.output(attended.transpose(1, 2).contiguous().view(batch, tokens, -1))


class FeedForward(nn.Module):
    def __init__(self, size: LlamaSize) -> None:
        super().__init__()
        self.gate = nn.Linear(size.width, size.feed_forward, bias=False)
        self.down = nn.Linear(size.feed_forward, size.width, bias=False)
        self.up = nn.Linear(size.width, size.feed_forward, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class Mixture(nn.Module):
    """Experts in grouped products. The router runs as usual, but all experts get equally many tokens."""

    def __init__(self, size: LlamaSize) -> None:
        super().__init__()
        self.experts, self.per_token = size.experts, size.experts_per_token
        inner = (size.experts, size.feed_forward, size.width)
        outer = (size.experts, size.width, size.feed_forward)
        self.router = nn.Linear(size.width, size.experts, bias=False)
        self.gate = nn.Parameter(torch.empty(inner).normal_(std=0.02))
        self.down = nn.Parameter(torch.empty(outer).normal_(std=0.02))
        self.up = nn.Parameter(torch.empty(inner).normal_(std=0.02))

    def forward(self, x: Tensor) -> Tensor:
        shape = x.shape
        x = x.view(-1, shape[-1])
        scores = functional.softmax(self.router(x).float(), dim=1)
        torch.topk(scores, self.per_token, dim=1)  # for its time
        copies = x.shape[0] * self.per_token
        expert = torch.arange(copies, device=x.device).view(-1, self.per_token) % self.experts
        share = scores.gather(1, expert)
        share = share / share.sum(-1, keepdim=True)
        counts = torch.histc(expert.view(-1).float(), bins=self.experts, min=0, max=self.experts)
        order = torch.argsort(expert.view(-1), stable=True)
        share = share.view(-1)[order]
        index = (order // self.per_token).reshape(-1, 1).expand(-1, shape[-1])
        ends = torch.cumsum(counts, 0, dtype=torch.int32)
        y = self.multiplied(torch.gather(x, 0, index), ends)
        y = (y.float() * share.reshape(-1, 1)).to(x.dtype)
        return torch.zeros_like(x).scatter_add(0, index, y).view(shape)

    def multiplied(self, x: Tensor, ends: Tensor) -> Tensor:
        gate, down, up = (weights.to(torch.bfloat16).transpose(-2, -1)
                          for weights in (self.gate, self.down, self.up))
        inner = functional.silu(torch._grouped_mm(x, gate, offs=ends)) * torch._grouped_mm(x, up, offs=ends)
        return torch._grouped_mm(inner, down, offs=ends)


class Block(nn.Module):
    def __init__(self, size: LlamaSize) -> None:
        super().__init__()
        self.attention = Attention(size)
        self.feed_forward = Mixture(size) if size.experts > 0 else FeedForward(size)
        self.attention_norm, self.feed_forward_norm = nn.RMSNorm(size.width), nn.RMSNorm(size.width)

    def forward(self, x: Tensor, turns: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x), turns)
        return x + self.feed_forward(self.feed_forward_norm(x))


class Llama(nn.Module):
    def __init__(self, size: LlamaSize, layers: int, tokens: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(size.vocabulary, size.width)
        self.layers = nn.ModuleList(Block(size) for _ in range(layers))
        self.norm = nn.RMSNorm(size.width)
        self.output = nn.Linear(size.width, size.vocabulary, bias=False)
        frequencies = 1.0 / 5e5 ** (torch.arange(0, size.head_dim, 2).float() / size.head_dim)
        angles = torch.outer(torch.arange(tokens).float(), frequencies)
        self.register_buffer("turns", torch.polar(torch.ones_like(angles), angles), persistent=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x, self.turns)
        return self.output(self.norm(x))


class GptBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm, self.feed_forward_norm = (nn.LayerNorm(width, bias=False) for _ in range(2))
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.output = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        q, k, v = (part.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.qkv(self.attention_norm(x)).split(width, 2))
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.output(attended.transpose(1, 2).contiguous().view(batch, tokens, width))
        return x + self.down(functional.gelu(self.up(self.feed_forward_norm(x))))


class Gpt(nn.Module):
    """Returns the loss."""

    def __init__(self, layers: int, width: int, heads: int, vocabulary: int, tokens: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(tokens, width)
        self.layers = nn.ModuleList(GptBlock(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width, bias=False)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for layer in self.layers:
            x = layer(x)
        logits = self.head(self.norm(x))
        return functional.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1))

"""How much longer kernels take beside communication: the ratio to their time alone.

The communication is a kernel of one block for each SM that it holds, with shared memory that leaves no room
for a product's blocks. Its blocks only wait, or copy within the device's memory at a rate in GB/s, as those
of a collective do.
"""
from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity, profile

import products
from result import table
from timing import Call, attempted, elapsed_seconds, random_numbers

# A round of a block takes `period` nanoseconds. With `move` it copies 8,192 of the vectors that are its own;
# each block has `count`.
SOURCE = r"""
extern "C" __global__ void communicate(const float4* source, float4* target, long long count, int rounds,
                                       long long period, int move) {
  extern __shared__ float held[];
  held[threadIdx.x] = 0;
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  const float4* from = source + count * blockIdx.x;
  float4* to = target + count * blockIdx.x;
  for (int round = 0; round < rounds; ++round) {
    const long long offset = (long long)round * 8192 % count;
    if (move) {
      for (int i = threadIdx.x; i < 8192; i += 2048) {
        float4 part[4];
        #pragma unroll
        for (int j = 0; j < 4; ++j) part[j] = from[offset + i + 512 * j];
        #pragma unroll
        for (int j = 0; j < 4; ++j) to[offset + i + 512 * j] = part[j];
      }
    }
    do {
      asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    } while (now < begin + (unsigned long long)(round + 1) * period);
  }
}
"""
THREADS, SHARED_MEMORY = 512, 120 * 1024
VECTORS, ROUND_BYTES, MOST_BLOCKS = 8192 * 64, 8192 * 16, 64
IDLE_PERIOD = 10000
MOST_DRIFT = 0.05  # of the time alone; a larger one is reported
# SMs held, GB/s.
LOADS = ((4, 0), (8, 0), (12, 0), (16, 0), (20, 0), (24, 0), (32, 0), (8, 150), (16, 350), (24, 350))
MORE_RATES = ((8, 0), (16, 0), (24, 0), (32, 0), (8, 150), (16, 180), (16, 350), (24, 350), (32, 350),
              (24, 45))
# m, n, k. Those with large m and n also backward.
PRODUCTS = (
    (8192, 14336, 4096), (8192, 4096, 14336), (8192, 6144, 4096), (8192, 4096, 4096), (8192, 1024, 4096),
    (4096, 4096, 4096), (4096, 2560, 8192), (4096, 1280, 8192), (4096, 8192, 1024), (4096, 7168, 8192),
    (4096, 8192, 3584), (2048, 4096, 4096), (2048, 28672, 4096), (16384, 2304, 16384), (16384, 3072, 2048),
    (2048, 4608, 12288), (4096, 12288, 6144), (1024, 4096, 14336),
)
IN_8_BITS = ((8192, 14336, 4096), (8192, 4096, 4096), (4096, 7168, 8192))


@dataclass(frozen=True)
class Work:
    name: str
    call: Call
    loads: tuple[tuple[int, int], ...] = LOADS
    count: int | None = None  # None: as many calls as take 6 ms


class Communication:
    def __init__(self) -> None:
        import cupy

        self.kernel = cupy.RawKernel(SOURCE, "communicate")
        self.kernel.max_dynamic_shared_size_bytes = SHARED_MEMORY
        self.source = torch.randn(MOST_BLOCKS * VECTORS * 4, device="cuda")
        self.target = torch.empty_like(self.source)
        self.stream = torch.cuda.Stream()
        self.launched_on = cupy.cuda.ExternalStream(self.stream.cuda_stream)

    def start(self, sms: int, gb_per_s: int, seconds: float) -> torch.cuda.Event:
        """Holds so many SMs for `seconds`; the event comes when it ends."""
        period = int(sms * ROUND_BYTES / gb_per_s) if gb_per_s else IDLE_PERIOD
        rounds = int(seconds * 1e9 / period)
        move = int(gb_per_s > 0)
        arguments = (self.source.data_ptr(), self.target.data_ptr(), VECTORS, rounds, period, move)
        self.kernel((sms,), (THREADS,), arguments, shared_mem=SHARED_MEMORY, stream=self.launched_on)
        ended = torch.cuda.Event(enable_timing=True)
        ended.record(self.stream)
        return ended


def works_on_products() -> list[Work]:
    works = []
    for m, n, k in PRODUCTS:
        x, weight, dy = random_numbers(m, k), random_numbers(n, k), random_numbers(m, n)
        works.append(Work(f"fwd {m} {n} {k}", partial(products.forward, x, weight)))
        if m >= 4096 and n >= 4096:
            works += [Work(f"wgrad {m} {n} {k}", partial(products.weight_gradient, dy, x)),
                      Work(f"dgrad {m} {n} {k}", partial(products.input_gradient, dy, weight))]
    one = torch.ones((), device="cuda")
    for m, n, k in IN_8_BITS:
        x, weight = (random_numbers(rows, k).to(torch.float8_e4m3fn) for rows in (m, n))
        works.append(Work(f"fp8 {m} {n} {k}", partial(products.scaled_product, x, weight, one, one)))
    return works


def works_on_memory() -> list[Work]:
    rows, weight = random_numbers(8192, 4096), random_numbers(4096)
    left, right = random_numbers(8192, 14336), random_numbers(8192, 14336)
    return [Work("rms 8192 4096", partial(functional.rms_norm, rows, (4096,), weight, 1e-5)),
            Work("mul 8192 14336", partial(torch.mul, left, right))]


def attend(backend: SDPBackend, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    with sdpa_kernel(backend):
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def works_of_fixed_count() -> list[Work]:
    q, k, v = (random_numbers(1, 32, 8192, 128) for _ in range(3))
    source = random_numbers(64 << 20)
    shape = "1 x 32 x 8192 x 128"
    calls = {f"attention {shape}, cuDNN": partial(attend, SDPBackend.CUDNN_ATTENTION, q, k, v),
             f"attention {shape}, FlashAttention-2": partial(attend, SDPBackend.FLASH_ATTENTION, q, k, v),
             "copy of 128 MiB": partial(torch.empty_like(source).copy_, source)}
    return [Work(name, call, MORE_RATES, 12) for name, call in calls.items()]


def longest_kernel(call: Call) -> str:
    call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        call()
        torch.cuda.synchronize()
    return max(profiled.key_averages(), key=lambda event: event.self_device_time_total).key[:60]


def timed(call: Call, count: int) -> tuple[float, torch.cuda.Event]:
    """Seconds of one call and the end of the last one. The communication has a millisecond to begin."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    time.sleep(0.001)
    begin.record()
    for _ in range(count):
        call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1e3 / count, end


def ratios(work: Work, communication: Communication) -> list[list]:
    """SMs held, GB/s and the ratio; only where the communication outlasted the calls."""
    for _ in range(3):
        work.call()
    torch.cuda.synchronize()
    once = elapsed_seconds([work.call], 5) / 5
    count = work.count or max(6, min(60, int(0.006 / once)))
    alone, _ = timed(work.call, count)
    rows = []
    for sms, gb_per_s in work.loads:
        over = communication.start(sms, gb_per_s, max(0.006, 2.4 * count * once + 0.002))
        seconds, end = timed(work.call, count)
        if end.elapsed_time(over) > 0:
            rows.append([sms, gb_per_s, round(seconds / alone, 3)])
        else:
            print(f"{work.name}: the communication on {sms} SMs was over too early", file=sys.stderr)
    alone_again, _ = timed(work.call, count)
    if abs(alone_again / alone - 1) > MOST_DRIFT:
        print(f"{work.name}: alone {alone_again / alone:.2f} times as long afterwards", file=sys.stderr)
    return rows


def beside() -> dict:
    works = works_on_products() + works_on_memory() + works_of_fixed_count()
    kernels = [attempted(work.name, partial(longest_kernel, work.call)) or "" for work in works]
    communication = Communication()
    rows = []
    for work, kernel in zip(works, kernels):
        found = attempted(work.name, partial(ratios, work, communication)) or []
        rows += [[work.name, kernel, *row] for row in found]
    return table(["work", "kernel", "sms", "gb_per_s", "ratio"], rows,
                 "beside a kernel that holds so many SMs and copies so many GB/s")

"""What a ring's kernel and the kernels beside it cost each other, and how long its blocks wait for SMs.

The ring has one block of 512 threads for each channel, which does for one rank what NCCL's Simple protocol does
(src/device/prims_simple.h, common_kernel.h: eight vectors of 16 bytes a thread in flight): it reads what the
neighbour wrote into a FIFO of 4 MiB, adds the rank's own bytes (`scatters`) or keeps a copy, and writes to the
next neighbour. Both neighbours are the device itself, so what leaves stands for what arrives, and each byte sent
is three of the memory's. Wires are a limit on what all blocks together send.
"""
from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch.nn.attention import SDPBackend
from torch.profiler import ProfilerActivity, profile

import products
from beside import SHARED_MEMORY, Work, attend, works_on_memory
from result import four_digits, table
from timing import attempted, elapsed_seconds, random_numbers

SOURCE = r"""
__device__ unsigned long long nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}
__device__ float4 load(const float4* p) {
  float4 v;
  asm volatile("ld.volatile.global.v4.f32 {%0,%1,%2,%3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p));
  return v;
}
__device__ void store(float4* p, float4 v) {
  asm volatile("st.global.v4.f32 [%0], {%1,%2,%3,%4};"
               :: "l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
}
constexpr int kThreads = 512, kInFlight = 8;
constexpr int kHunk = 8192, kSlice = 8 * kHunk, kFifo = 4 * kSlice;  // vectors: 128 KiB, 1 and 4 MiB
extern "C" __global__ void __launch_bounds__(kThreads, 1)
ring(float4* fifo, float4* own, long long own_count, long long period, int scatters, int hunks, volatile int* stop,
     volatile unsigned long long* sent, unsigned long long* marks) {
  extern __shared__ float held[];
  __shared__ int stopped;
  held[threadIdx.x] = 0;
  if (threadIdx.x == 0) marks[blockIdx.x] = nanoseconds();
  float4* queue = fifo + (long long)kFifo * blockIdx.x;
  float4* mine = own + own_count * blockIdx.x;
  unsigned long long due = nanoseconds();
  for (int hunk = 0; hunk < hunks; ++hunk) {
    const int to = (long long)hunk * kHunk % kFifo, from = (to + kFifo - kSlice) % kFifo;
    const long long place = (long long)hunk * kHunk % own_count;
    for (int i = threadIdx.x; i < kHunk; i += kInFlight * kThreads) {
      float4 part[kInFlight];
      #pragma unroll
      for (int j = 0; j < kInFlight; ++j) part[j] = load(queue + from + i + kThreads * j);
      if (scatters) {
        float4 other[kInFlight];
        #pragma unroll
        for (int j = 0; j < kInFlight; ++j) other[j] = load(mine + place + i + kThreads * j);
        #pragma unroll
        for (int j = 0; j < kInFlight; ++j) {
          part[j].x += other[j].x, part[j].y += other[j].y, part[j].z += other[j].z, part[j].w += other[j].w;
        }
      } else {
        #pragma unroll
        for (int j = 0; j < kInFlight; ++j) store(mine + place + i + kThreads * j, part[j]);
      }
      #pragma unroll
      for (int j = 0; j < kInFlight; ++j) store(queue + to + i + kThreads * j, part[j]);
    }
    if (hunk % 8 == 7) __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0) {
      sent[blockIdx.x] = hunk + 1;
      stopped = *stop;
      unsigned long long now = nanoseconds();
      due += period;
      if (now > due + period) due = now - period;  // wires do not catch up
      while (now < due) now = nanoseconds();
    }
    __syncthreads();
    if (stopped) break;
  }
  if (threadIdx.x == 0) marks[gridDim.x + blockIdx.x] = nanoseconds();
}
extern "C" __global__ void look(volatile unsigned long long* sent, int blocks, unsigned long long* seen) {
  unsigned long long sum = 0;
  for (int i = 0; i < blocks; ++i) sum += sent[i];
  seen[0] = nanoseconds();
  seen[1] = sum;
}
"""
THREADS, HUNK, FIFO, OWN = 512, 128 << 10, 4 << 20, 16 << 20  # bytes; a block's
MOST_BLOCKS, ENDLESS = 32, 1 << 30


@dataclass(frozen=True)
class Load:
    blocks: int
    gb_per_s: int = 0  # sent by all blocks together; 0: as fast as they can
    scatters: bool = False

    @property
    def period(self) -> int:
        """Nanoseconds of a block's hunk on the wires."""
        return int(self.blocks * HUNK / self.gb_per_s) if self.gb_per_s else 0


LOADS = (
    Load(8), Load(16), Load(24), Load(32), Load(16, 0, True), Load(24, 0, True), Load(8, 45), Load(8, 100),
    Load(16, 100), Load(16, 200), Load(16, 330), Load(24, 100), Load(24, 200), Load(24, 330), Load(32, 330),
    Load(16, 200, True), Load(16, 330, True), Load(24, 200, True), Load(24, 330, True),
)
# Rings one after another, each so many milliseconds long.
CHAINS = ((Load(24, 330), 0.5), (Load(24, 330), 2), (Load(16, 200), 0.5), (Load(16, 200), 2), (Load(8, 45), 1))
SHORT = 4  # hunks
LASTING = 0.012  # seconds of the kernels beside it
SLEEP = 4_000_000  # cycles, some 2 ms


class Ring:
    def __init__(self) -> None:
        import cupy

        module = cupy.RawModule(code=SOURCE)
        self.kernel, self.look_kernel = module.get_function("ring"), module.get_function("look")
        self.kernel.max_dynamic_shared_size_bytes = SHARED_MEMORY
        self.external = cupy.cuda.ExternalStream
        self.fifo = torch.zeros(MOST_BLOCKS * FIFO // 4, device="cuda")
        self.own = torch.zeros(MOST_BLOCKS * OWN // 4, device="cuda")
        self.sent, self.marks = self.counters(MOST_BLOCKS), self.counters(2 * MOST_BLOCKS)
        self.seen = self.counters(4, 2)
        self.stop = torch.zeros(1, device="cuda", dtype=torch.int32)
        self.stream, self.other = torch.cuda.Stream(), torch.cuda.Stream()

    @staticmethod
    def counters(*shape: int) -> torch.Tensor:
        return torch.zeros(*shape, device="cuda", dtype=torch.int64)

    def start(self, load: Load, stream: torch.cuda.Stream, hunks: int, marks: torch.Tensor) -> None:
        arguments = (self.fifo.data_ptr(), self.own.data_ptr(), OWN // 16, load.period, int(load.scatters), hunks,
                     self.stop.data_ptr(), self.sent.data_ptr(), marks.data_ptr())
        self.kernel((load.blocks,), (THREADS,), arguments, shared_mem=SHARED_MEMORY,
                    stream=self.external(stream.cuda_stream))

    def reset(self) -> None:
        self.stop.zero_()
        self.sent.zero_()
        torch.cuda.synchronize()

    def end(self) -> None:
        with torch.cuda.stream(self.other):
            self.stop.fill_(1)
        torch.cuda.synchronize()

    def look(self, blocks: int, place: int) -> None:
        """Notes when the stream comes here and how many hunks have been sent."""
        current = self.external(torch.cuda.current_stream().cuda_stream)
        self.look_kernel((1,), (1,), (self.sent.data_ptr(), blocks, self.seen[place].data_ptr()), stream=current)

    def rate(self, first: int, second: int) -> float:
        """GB/s that the blocks sent between two looks."""
        (begin, before), (end, after) = self.seen[first].tolist(), self.seen[second].tolist()
        return (after - before) * HUNK / (end - begin)


def alone(work: Work, count: int) -> float:
    return elapsed_seconds([work.call], count) / count


def warmed_up(work: Work) -> float:
    """Seconds of a call."""
    for _ in range(3):
        work.call()
    torch.cuda.synchronize()
    return alone(work, 5)


def together(work: Work, ring: Ring, load: Load, count: int) -> tuple[float, float, float]:
    """Seconds of a call beside the ring, and the ring's GB/s alone and beside it."""
    ring.reset()
    ring.start(load, ring.stream, ENDLESS, ring.marks)
    time.sleep(0.0005)
    ring.look(load.blocks, 0)
    torch.cuda._sleep(SLEEP)
    ring.look(load.blocks, 1)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    ring.look(load.blocks, 2)
    for _ in range(count):
        work.call()
    ring.look(load.blocks, 3)
    end.record()
    end.synchronize()
    ring.end()
    return begin.elapsed_time(end) / 1e3 / count, ring.rate(0, 1), ring.rate(2, 3)


def ratios(work: Work, ring: Ring) -> list[list]:
    count = max(6, min(100, int(LASTING / warmed_up(work))))
    torch.cuda._sleep(SLEEP)
    time_alone = alone(work, count)
    rows = []
    for load in LOADS:
        seconds, free, beside = min(together(work, ring, load, count) for _ in range(2))
        rows.append([load.blocks, load.gb_per_s, int(load.scatters), round(seconds / time_alone, 3),
                     four_digits(free), four_digits(beside)])
    return rows


def chain(work: Work, ring: Ring, load: Load, hunks: int, kernels: int, calls: int, priority: int) -> float:
    """Seconds between the end of a ring and the next one's first block, on average."""
    ring.reset()
    stream, ready = torch.cuda.Stream(priority=priority), torch.cuda.Event()
    marks = ring.counters(kernels, 2, load.blocks)
    torch.cuda.synchronize()
    torch.cuda._sleep(SLEEP)
    ready.record()
    stream.wait_event(ready)
    for index in range(max(calls, kernels)):
        if index < kernels:
            ring.start(load, stream, hunks, marks[index])
        if index < calls:
            work.call()
    torch.cuda.synchronize()
    began, ended = marks[:, 0].min(1).values, marks[:, 1].max(1).values
    return float((began[1:] - ended[:-1]).double().mean()) * 1e-9


def waits(work: Work, ring: Ring) -> list[list]:
    once = warmed_up(work)
    rows = []
    for priority in (0, -1):
        for load, milliseconds in CHAINS:
            hunks, kernels = int(milliseconds * 1e6 / load.period), max(4, int(12 / milliseconds))
            calls = int(2.5 * kernels * milliseconds * 1e-3 / once) + 2
            free, beside = (chain(work, ring, load, hunks, kernels, n, priority) for n in (0, calls))
            rows.append([priority, load.blocks, load.gb_per_s, 1e3 * milliseconds,
                         *(four_digits(1e6 * seconds) for seconds in (once, free, beside))])
    return rows


def orders(work: Work, ring: Ring) -> list[list]:
    """When a ring and a call that wait for the same call begin after its end. One profiled kernel a call."""
    warmed_up(work)
    rows, load, rounds, before, after = [], CHAINS[0][0], 8, 2, 4
    connections = int(os.environ.get("CUDA_DEVICE_MAX_CONNECTIONS", 8))
    for ring_first in (True, False):
        ring.reset()
        stream = torch.cuda.Stream()
        with profile(activities=[ProfilerActivity.CUDA]) as profiled:
            torch.cuda._sleep(10 * SLEEP)
            for _ in range(rounds):
                for _ in range(before):
                    work.call()
                done = torch.cuda.Event()
                done.record()
                if not ring_first:
                    work.call()
                stream.wait_event(done)
                ring.start(load, stream, SHORT, ring.marks)
                for _ in range(after - (0 if ring_first else 1)):
                    work.call()
            torch.cuda.synchronize()
        kernels = sorted((event.time_range.start, event.time_range.end, event.name) for event in profiled.events()
                         if event.device_type == torch.autograd.DeviceType.CUDA)
        rings = [kernel for kernel in kernels if kernel[2].startswith("ring")]
        others = ("ring", "Memset")
        calls = [kernel for kernel in kernels if not kernel[2].startswith(others) and "spin_kernel" not in kernel[2]]
        if len(calls) != rounds * (before + after):
            raise RuntimeError(f"{len(calls)} kernels")
        waits = []
        for index, its in enumerate(rings):
            last, following = calls[index * (before + after) + before - 1:][:2]
            waits.append((its[0] - last[1], following[0] - last[1]))
        rows.append([connections, int(ring_first),
                     *(four_digits(statistics.median(each)) for each in zip(*waits[1:]))])
    return rows


def works() -> list[Work]:
    made = []
    for m, n, k in ((8192, 14336, 4096), (8192, 4096, 4096), (4096, 4096, 4096), (4096, 1280, 8192),
                    (16384, 3072, 2048)):
        x, weight = random_numbers(m, k), random_numbers(n, k)
        made.append(Work(f"fwd {m} {n} {k}", partial(products.forward, x, weight)))
    q, k, v = (random_numbers(1, 32, 8192, 128) for _ in range(3))
    for name, backend in (("cuDNN", SDPBackend.CUDNN_ATTENTION), ("FlashAttention-2", SDPBackend.FLASH_ATTENTION)):
        made.append(Work(f"attention 1 x 32 x 8192 x 128, {name}", partial(attend, backend, q, k, v)))
    source = random_numbers(64 << 20)
    made.append(Work("copy of 128 MiB", partial(torch.empty_like(source).copy_, source)))
    return made + works_on_memory()


def of_all_works(measure: Callable[[Work, Ring], list[list]]) -> list[list]:
    ring, rows = Ring(), []
    for work in works():
        rows += [[work.name, *row] for row in attempted(work.name, partial(measure, work, ring)) or []]
    return rows


def ring() -> dict:
    return table(["work", "blocks", "gb_per_s", "scatters", "ratio", "alone", "beside"], of_all_works(ratios),
                 "beside a ring of so many blocks that may send so much (0: all it can): the ratio of the work's "
                 "time to that alone, and the GB/s that the ring sends alone and beside it")


def ring_waits() -> dict:
    return table(["work", "priority", "blocks", "gb_per_s", "lasts", "call", "alone", "beside"],
                 of_all_works(waits),
                 "rings that last so long, one after another, beside calls of the work: the time between the end "
                 "of one and the first block of the next, alone and beside")


def ring_order() -> dict:
    return table(["work", "connections", "ring_launched_first", "ring", "call"], of_all_works(orders),
                 "from the end of a call to the begin of a ring that waits for it and of the next call, with "
                 "CUDA_DEVICE_MAX_CONNECTIONS as it was set (8: not set)")

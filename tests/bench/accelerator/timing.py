"""How kernels are timed: events of the device around many calls, in seconds per call.

Calls take turns over several sets of operands, so that none finds its own in the cache. A kernel that only
sleeps goes first: meanwhile the host launches the others, so that launches are not measured. Here are also
random operands, and what the driver says of the clock (MHz) and of power (W), which needs pynvml.
"""
from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

try:
    import pynvml
except ImportError:
    pynvml = None

Call = Callable[[], object]
Measured = TypeVar("Measured")

LAUNCH_SECONDS = 12e-6  # of the host, for one call
CYCLES_PER_SECOND = 1.9e9  # of the device that sleeps


def random_numbers(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype)


def sets_of_operands(size: float, together: float, most: int) -> int:
    """How many sets of `size` bytes exceed `together` bytes, which no cache holds; at most `most`."""
    return min(most, int(together / size) + 1)


def elapsed_seconds(calls: Sequence[Call], count: int) -> float:
    """Of `count` calls in all; `calls` take turns."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for index in range(count):
        calls[index % len(calls)]()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1e3


def seconds_per_call(calls: Sequence[Call], budget: float = 0.02, least: int = 5, most: int = 200) -> float:
    """The median of three series of `least` to `most` calls, each of about `budget` seconds."""
    for index in range(max(3, min(len(calls), 4))):
        calls[index % len(calls)]()
    torch.cuda.synchronize()
    once = max(elapsed_seconds(calls, 2) / 2, 1e-6)
    count = int(min(most, max(least, budget / once)))
    series = []
    for _ in range(3):
        torch.cuda._sleep(int(count * LAUNCH_SECONDS * CYCLES_PER_SECOND))
        series.append(elapsed_seconds(calls, count) / count)
    return statistics.median(series)


def seconds_per_replay(graph: torch.cuda.CUDAGraph, replays: int) -> float:
    graph.replay()
    torch.cuda.synchronize()
    return elapsed_seconds([graph.replay], replays) / replays


def seconds_from_graph(calls: Sequence[Call], count: int = 20) -> float:
    """Of one of `count` calls that one graph holds, with the gap between two kernels."""
    with torch.cuda.stream(torch.cuda.Stream()):
        for call in calls:
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for index in range(count):
            calls[index % len(calls)]()
    return seconds_per_replay(graph, 2) / count


def attempted(what: str, measurement: Callable[[], Measured]) -> Measured | None:
    """What `measurement` returns. None, and a line on stderr, where a library refuses or memory is short."""
    try:
        return measurement()
    except Exception as error:
        print(f"{what}: {error!r:.160}", file=sys.stderr, flush=True)
        return None


def first_device() -> object:
    pynvml.nvmlInit()
    return pynvml.nvmlDeviceGetHandleByIndex(0)


def driver() -> str | None:
    if pynvml is None:
        return None
    pynvml.nvmlInit()
    return pynvml.nvmlSystemGetDriverVersion()


def power_limit() -> int | None:
    """Watts."""
    return None if pynvml is None else round(pynvml.nvmlDeviceGetEnforcedPowerLimit(first_device()) / 1e3)


def clock_and_power() -> tuple[int | None, int | None]:
    """MHz and watts at this moment."""
    if pynvml is None:
        return None, None
    device = first_device()
    megahertz = pynvml.nvmlDeviceGetClockInfo(device, pynvml.NVML_CLOCK_SM)
    return megahertz, round(pynvml.nvmlDeviceGetPowerUsage(device) / 1e3)

#!/usr/bin/env python3
"""Runs the network benchmarks and prints one table; SimGrid beside topsim where its program was built.

Build:  cmake --preset release -DTOPSIM_BENCHMARKS=ON && cmake --build build/release --target bench_flow bench_simgrid
Usage:  tests/bench/table.py [--build DIR] [--runs N] [--large] [--jitter]
CPU seconds are user + system of the simulation, the median of N runs; a peer gets --limit seconds.
"""
import argparse
import json
import pathlib
import statistics
import subprocess

CASES = [("ring", n) for n in (8, 64, 256, 1024)] + [("hierarchical", n) for n in (64, 256, 1024, 4096)]
CASES += [("all-to-all", n) for n in (64, 128, 256)] + [("pairwise", n) for n in (64, 256)] + [("permutation", 1024)]
LARGE = [("ring", 4096), ("hierarchical", 16384), ("all-to-all", 512), ("all-to-all", 1024), ("pairwise", 1024)]
JITTER = [("ring", 1024), ("hierarchical", 1024), ("all-to-all", 64), ("all-to-all", 128), ("all-to-all", 256), ("pairwise", 64)]


def run(program, case, runs, limit, latency):
    results = []
    for _ in range(runs):
        try:
            done = subprocess.run([program, *map(str, case), str(latency)], capture_output=True, text=True, timeout=limit, check=True)
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
            return None
        results.append(json.loads(done.stdout))
    results[0]["cpu"] = statistics.median(r["cpu"] for r in results)
    return results[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/release", type=pathlib.Path)
    parser.add_argument("--runs", default=5, type=int)
    parser.add_argument("--limit", default=120, type=float)
    parser.add_argument("--latency", default=0, type=float, help="microseconds of every message")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--jitter", action="store_true", help="only the cases with unequal sizes")
    options = parser.parse_args()
    cases = [(*c, "uniform") for c in CASES + LARGE * options.large] if not options.jitter else []
    cases += [(*c, "jitter") for c in JITTER]
    peer = options.build / "bench_simgrid"
    print(f"{'case':<28}{'transfers':>11}{'sim s':>13}{'CPU s':>10}{'M/CPU s':>9}{'MB':>6}{'SimGrid':>10}{'ratio':>8}{'answers':>10}")
    for case in cases:
        ours = run(options.build / "bench_flow", case, options.runs, None, options.latency)
        theirs = run(peer, case, options.runs, options.limit, options.latency) if peer.exists() else None
        line = f"{' '.join(map(str, case)):<28}{ours['transfers']:>11}{ours['seconds']:>13.9f}{ours['cpu']:>10.4f}"
        line += f"{ours['transfers'] / max(ours['cpu'], 1e-9) / 1e6:>9.2f}{ours['mb']:>6.0f}"
        if theirs:
            relative = abs(ours["seconds"] / theirs["seconds"] - 1)
            line += f"{theirs['cpu']:>10.3f}{theirs['cpu'] / max(ours['cpu'], 1e-6):>8.1f}{relative:>10.0e}"
        print(line, flush=True)


if __name__ == "__main__":
    main()

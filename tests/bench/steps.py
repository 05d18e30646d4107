#!/usr/bin/env python3
"""Whole training steps: CPU seconds, peak memory, classes. Llama-3 405B at 1,024 to 131,072 accelerators, 70B at 64.

Usage:  tests/bench/steps.py [--program PATH] [--runs N] [--ecmp] [--growth]
CPU seconds are user + system of the whole program, start-up included; the median of N runs.
"""
import argparse
import concurrent.futures
import json
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LARGE, LARGEST = "16384xH100-llama3-405b", "131072xH100-llama3-405b"


def replicas(dp, *more):
    return [f"topology.nodes={16 * dp}", f"workload.plan.dp={dp}", *more]


CASES = [("64 (70B)", "8xH100-ib", []), ("1,024", LARGE, replicas(8)), ("16,384", LARGE, []), ("131,072", LARGEST, [])]
GROWTH = [(f"dp {dp}, {128 * dp:,}", LARGE, replicas(dp)) for dp in (8, 16, 32, 64, 128)]
ECMP = [(f"ECMP, {128 * dp:,}", LARGE, replicas(dp, "topology.fabric.routing=ecmp")) for dp in (8, 32, 128)]


def run(program, scenario, changes):
    command = [program, "run", str(ROOT / "configs" / f"{scenario}.json"), "--quiet", "--format", "json"]
    for change in changes:
        command += ["--set", change]
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    result = json.loads(process.stdout.read())
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{scenario}: exit code {process.returncode}")
    return (used.ru_utime + used.ru_stime, time.monotonic() - begin, used.ru_maxrss / 1024, len(result["ranks"]),
            len(result["links"]), result["step"]["seconds"])


def run_apart(*words):
    """A program's peak memory begins with that of the process which starts it: each run has a new one."""
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as fresh:
        return fresh.submit(run, *words).result()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(ROOT / "build/release/topsim"))
    parser.add_argument("--runs", default=5, type=int)
    parser.add_argument("--growth", action="store_true", help="the same plan with 8 to 128 replicas")
    parser.add_argument("--ecmp", action="store_true", help="paths by hash: hardly anything folds")
    options = parser.parse_args()
    cases = CASES + GROWTH * options.growth + ECMP * options.ecmp
    print(f"{'accelerators':<20}{'CPU s':>9}{'wall s':>9}{'MB':>7}{'rank classes':>14}{'link classes':>14}{'step s':>16}")
    for name, scenario, changes in cases:
        runs = [run_apart(options.program, scenario, changes) for _ in range(options.runs)]
        ranks, links, seconds = runs[0][3:]
        print(f"{name:<20}{statistics.median(r[0] for r in runs):>9.2f}{statistics.median(r[1] for r in runs):>9.2f}"
              f"{max(r[2] for r in runs):>7.0f}{ranks:>14}{links:>14}{seconds:>16.9f}", flush=True)


if __name__ == "__main__":
    main()

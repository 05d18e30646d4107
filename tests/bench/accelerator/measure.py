#!/usr/bin/env python3
"""Times the kernels of one accelerator: one JSON file, of the form that tests/golden/accelerator holds.

Usage:  tests/bench/accelerator/measure.py --out h100-sxm5.json [--only products,attention,...]
Times of kernels are in microseconds. It needs PyTorch, for `beside` CuPy, for `steps_jax` JAX, and for clock and
power pynvml. A section that fails is left out and named on stderr.
"""
from __future__ import annotations

import argparse
import datetime
import gc
import importlib
import pathlib
import sys
import time
import traceback

import torch

import result
import timing

# What is measured, in this order, and the file whose function of that name does it.
SECTIONS = {
    "products": "products",
    "products_from_graph": "products",
    "decode": "products",
    "batched": "products",
    "fp8": "products",
    "attention": "kernels",
    "latent_attention": "kernels",
    "decode_attention": "kernels",
    "memory": "memory",
    "compiled": "compiled",
    "host_copies": "memory",
    "optimizer": "kernels",
    "grouped": "products",
    "expert_by_expert": "products",
    "sustained": "kernels",
    "beside": "beside",
    "ring": "ring",
    "ring_waits": "ring",
    "ring_order": "ring",
    "steps": "steps",
    "steps_ddp": "steps",
    "steps_jax": "steps_jax",
    "steps_fp8": "steps_more",
    "steps_lora": "steps_more",
    "steps_decode": "steps_more",
    "context": "context",
}


def chosen(names: str) -> list[str]:
    wanted = names.split(",")
    unknown = [name for name in wanted if name not in SECTIONS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    return [section for section in SECTIONS if section in wanted]


def description() -> dict:
    device, watts = torch.cuda.get_device_name(0), timing.power_limit()
    if watts is not None:
        device += f" ({watts} W)"
    today = datetime.date.today()
    cudnn = torch.backends.cudnn.version()
    return {
        "about": f"Kernels of one {device}, timed by tests/bench/accelerator on {today.day} {today:%B %Y}. "
                 "Times in microseconds.",
        "software": {
            "driver": timing.driver(),
            "cuda": torch.version.cuda,
            "pytorch": torch.__version__.partition("+")[0],
            "cudnn": f"{cudnn // 10000}.{cudnn // 100 % 100}",
        },
    }


def measured(section: str) -> dict | list | None:
    """None where it failed."""
    begin = time.monotonic()
    torch.manual_seed(1)
    try:
        return getattr(importlib.import_module(SECTIONS[section]), section)()
    except Exception:
        traceback.print_exc(limit=3)
        return None
    finally:
        gc.collect()
        torch.cuda.empty_cache()
        print(f"{section}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, type=pathlib.Path, help="the file to write")
    parser.add_argument("--only", default=list(SECTIONS), type=chosen, help=f"of {', '.join(SECTIONS)}")
    options = parser.parse_args()
    figures = description()
    failed = []
    for section in options.only:
        found = measured(section)
        if found is None:
            failed.append(section)
        else:
            figures[section] = found
            result.write(options.out, figures)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

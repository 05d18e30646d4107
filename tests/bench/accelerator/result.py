"""The file that measure.py writes: how its figures are rounded, and its layout with one row per line.

Times of kernels are in microseconds, with four digits. Other units stand in the `about` of their section.
"""
from __future__ import annotations

import json
import pathlib


def four_digits(value: float) -> float:
    return float(f"{value:.4g}")


def microseconds(seconds: float | None) -> float | None:
    """None, which is written as null, for a kernel that could not be timed."""
    return None if seconds is None else four_digits(seconds * 1e6)


def table(columns: list[str], rows: list[list], about: str | None = None) -> dict:
    head = {} if about is None else {"about": about}
    return {**head, "columns": columns, "rows": rows}


def layout(value: object, indent: int = 0) -> str:
    """JSON. Objects have a line per key, lists of lists or objects one per element; others have one."""
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {layout(each, indent + 2)}" for key, each in value.items()]
        first, last = "{", "}"
    elif isinstance(value, list) and any(isinstance(each, (dict, list)) for each in value):
        parts = [json.dumps(each) for each in value]
        first, last = "[", "]"
    else:
        return json.dumps(value)
    lines = ",\n".join(" " * (indent + 2) + part for part in parts)
    return f"{first}\n{lines}\n{' ' * indent}{last}"


def write(path: pathlib.Path, result: dict) -> None:
    path.write_text(layout(result) + "\n", encoding="utf-8")

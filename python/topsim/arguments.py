"""Arguments checked before anything runs: one line says what was expected, whatever else the call was given."""

from __future__ import annotations

import math
import operator
import os
from typing import Any, Union

_MOST = 2**31 - 1


def whole(name: str, value: Any, least: int, most: int = _MOST) -> int:
    """`value` as an int; TypeError where it is none, ValueError where it is not from `least` to `most`."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(f"{name} is a whole number; found {type(value).__name__}")
    if not least <= number <= most:
        raise ValueError(f"{name} must be at least {least}" if most == _MOST and number < least else
                         f"{name} must be from {least} to {most}")
    return number


def jobs_of(value: Any) -> int:
    """Simulations at once, 0: one per core. TypeError, ValueError."""
    number = whole("jobs", value, -_MOST)
    if number < 0:
        raise ValueError("jobs must be at least 0: one per core")
    return number


def flags(**values: Any) -> None:
    """TypeError where one of them is neither True nor False."""
    for name, value in values.items():
        if type(value).__name__ not in ("bool", "bool_"):
            raise TypeError(f"{name} is True or False; found {type(value).__name__}")


def real(name: str, value: Any) -> float:
    """`value` as a finite float; TypeError where it is none, ValueError for infinities and NaN."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} is a number; found {type(value).__name__}")
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite; found {value}")
    return float(value)


def text(name: str, value: Any) -> str:
    """`value`; TypeError where it is no text."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is text; found {type(value).__name__}")
    return value


def path_text(file: Union[str, bytes, "os.PathLike[str]"]) -> str:
    """A path as text. TypeError where it is none, ValueError for a NUL in it, where the system would cut it
    off."""
    name = os.fsdecode(file)
    if "\0" in name:
        raise ValueError(f"a path holds no NUL: {name!r}")
    return name

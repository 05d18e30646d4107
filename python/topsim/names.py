"""What scenarios may name."""

from __future__ import annotations

from typing import List

from . import _core
from .arguments import text


def names(kind: str) -> List[str]:
    """What `topsim list KIND` lists: "scenarios", "hardware", "models", "frameworks", "fabrics", "networks",
    "collectives" (those of `bench`). Raises ConfigError for anything else.
    """
    return _core.names(text("kind", kind))

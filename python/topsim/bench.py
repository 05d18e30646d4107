"""One collective at many sizes on an idle network: what nccl-tests measures."""

from __future__ import annotations

import json
from typing import Any, Optional, Union

from . import _core
from .arguments import real, text as _text_of, whole
from .scenario import Changes, Source, _scenario
from .table import Table


def bench(collective: str, scenario: Source, *, first: Union[str, int] = "8", last: Union[str, int] = "8G",
          factor: float = 2, algorithm: str = "", protocol: str = "", channels: int = 0, set: Changes = None,
          seed: Optional[int] = None, network: Optional[str] = None, **changes: Any) -> "Bench":
    """Times a collective over the scenario's accelerators at sizes from `first` to `last` (bytes, or "64K", "8G": powers of
    1024), each `factor` times the one before. `algorithm` ("ring", "tree", "nvls", ...), `protocol` ("ll", "ll128",
    "simple") and `channels` force what NCCL would choose. collective: all_reduce, all_gather, reduce_scatter,
    broadcast, reduce, alltoall, sendrecv (the last two have nothing to force). Raises ConfigError for anything
    else, ValueError for a factor below 1.01, TypeError for arguments of other types.
    """
    factor, channels = real("factor", factor), whole("channels", channels, -1000000000, 1 << 200)
    for name, value in (("collective", collective), ("algorithm", algorithm), ("protocol", protocol)):
        _text_of(name, value)
    if factor < 1.01:
        raise ValueError("factor must be at least 1.01: 2 doubles the size from row to row")
    made = _scenario(scenario, set, changes, seed, network)
    text, table = _core.bench(collective, made._core, str(first), str(last), factor, algorithm, protocol,
                              min(channels, 1000000000))
    return Bench(text, table)


class Bench(Table):
    """Rows: size (bytes), time_us, algbw and busbw (GB/s), algorithm, protocol, channels. str() is nccl-tests' table."""

    def __init__(self, text: str, table: str) -> None:
        self._text, self._table = text, table
        rows = json.loads(text)["rows"]
        super().__init__("bench", {key: [row[key] for row in rows] for key in (rows[0] if rows else {})})

    def to_json(self) -> str:
        """topsim.bench/1, as `topsim bench --format json` prints it."""
        return self._text

    def __str__(self) -> str:
        return self._table.rstrip()

    def __reduce__(self):
        return Bench, (self._text, self._table)

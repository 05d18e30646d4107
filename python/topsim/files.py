"""Files that results are written to."""

from __future__ import annotations

import os
from typing import Iterable, Union

from .errors import ConfigError


def keep_inputs(file: Union[str, "os.PathLike[str]"], inputs: Iterable[str]) -> None:
    """Raises ConfigError where `file` is one of those that were read."""
    for read in inputs:
        if os.path.isfile(read) and os.path.exists(file) and os.path.samefile(read, file):
            raise ConfigError(f"{os.fspath(file)} is the scenario that is read; name another file", [])


def write_text(file: Union[str, "os.PathLike[str]"], text: str) -> None:
    """Writes `text` as UTF-8, in place of what the file held; OSError where it cannot be written."""
    with open(file, "w", encoding="utf-8") as out:
        out.write(text)

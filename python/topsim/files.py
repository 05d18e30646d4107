"""Files that results are written to."""

from __future__ import annotations

import os
from typing import Union


def write_text(file: Union[str, "os.PathLike[str]"], text: str) -> None:
    """Writes `text` as UTF-8, in place of what the file held; OSError where it cannot be written."""
    with open(file, "w", encoding="utf-8") as out:
        out.write(text)

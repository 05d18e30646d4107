"""How far a simulation is, in notebooks and on terminals, when tqdm is installed."""

from __future__ import annotations

from typing import Callable, Optional, Union

OnProgress = Callable[[int, int, float, int, int], None]


class Bar:
    """Shares of the operations done, after half a second. `wanted`: True, False, None (only where a person looks), or a
    function called with (ops_done, ops_total, simulated_seconds, events, step) ten times a second.
    """

    def __init__(self, wanted: Union[bool, None, OnProgress], unit: str = "op", what: str = "simulating") -> None:
        if not (wanted is None or isinstance(wanted, bool) or callable(wanted)):
            raise TypeError(f"progress is True, False, None or a function; found {type(wanted).__name__}")
        self._bar, self._unit, self._what = None, unit, what
        self.update: Optional[OnProgress] = wanted if callable(wanted) else None
        if self.update is None and (wanted or (wanted is None and _watched())):
            self.update = self._show if _tqdm() else None

    def _show(self, done: int, total: int, seconds: float, events: int, step: int) -> None:
        if self._bar is None:
            self._bar = _tqdm()(total=total, unit=self._unit, unit_scale=True, delay=0.5, leave=False,
                               desc=self._what)
        self._bar.total = total
        self._bar.update(done - self._bar.n)

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


def _watched() -> bool:
    import sys
    return "ipykernel" in sys.modules or (hasattr(sys, "ps1") and sys.stderr.isatty())


def _tqdm():
    import warnings
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that ipywidgets are missing: the bar is text then
            from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm

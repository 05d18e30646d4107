"""Where a step goes, and what a faster part would buy."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Optional, Union

from . import _core
from .arguments import flags, real
from .files import write_text
from .progress import Bar, OnProgress
from .result import Result, run
from .scenario import Source
from .table import Table, bars_html


def explain(what: Union[Result, Source], *, faster: float = 10, what_if: bool = True,
            progress: Union[bool, None, OnProgress] = None) -> "Explanation":
    """The critical path of a step, and the step with each part `faster` per cent faster, simulated again: what an upgrade
    would buy, exactly.

    what     a Result, or a scenario as `run` takes it
    faster   per cent, above 0
    what_if  False: nothing is simulated again

    Raises ConfigError for mistakes in the scenario.
    """
    flags(what_if=what_if)
    if real("faster", faster) <= 0:
        raise ValueError("faster is in per cent and above 0")
    result = what if isinstance(what, Result) else run(what, allow_oom=True, progress=progress)
    with Bar(progress) as bar:
        made = _core.explain(result.scenario._core, result.to_json(), 1 + faster / 100 if what_if else 0.0, bar.update)
    return Explanation(*made, result)


class Explanation:
    """What `topsim explain` prints. Times in seconds, shares and gains between 0 and 1."""

    def __init__(self, text: str, printed: str, result: Optional[Result] = None) -> None:
        self._text, self._printed, self._result = text, printed, result
        self._dict: Dict[str, Any] = json.loads(text)

    @property
    def critical_path(self) -> Table:
        """what was done, seconds, share of the step."""
        return Table._of_rows("critical_path", self._dict["critical_path"], ("what", "seconds", "share"))

    @property
    def limits(self) -> Table:
        """what limited the critical path (a kind of link, computation, the host): what, seconds, share."""
        return Table._of_rows("limits", self._dict["critical_path_links"], ("what", "seconds", "share"))

    @property
    def what_if(self) -> Table:
        """part, step_seconds with it made faster, gain: the share of the step saved. Largest gain first."""
        parts = self._dict.get("what_if", {"parts": []})["parts"]
        return Table._of_rows("what_if", parts, ("part", "step_seconds", "gain"))

    def to_json(self) -> str:
        """topsim.explain/1, as `topsim explain --format json` prints it."""
        return self._text

    def to_dict(self) -> Dict[str, Any]:
        """The same as a dict."""
        return json.loads(self._text)

    def to_pandas(self):
        """what_if as a DataFrame."""
        return self.what_if.to_pandas()

    def html(self, file: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the run's page with what a faster part would buy: what `topsim explain --html` writes. Raises
        ConfigError where this build has no page."""
        if self._result is None:
            raise ValueError("this explanation was made without its result; explain() the result again")
        self._result._keep_inputs(file)
        what_if = self._dict.get("what_if")
        page = self._result._events().html(self._result.to_json(), "" if what_if is None else json.dumps(what_if))
        write_text(file, page)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Explanation) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return self._printed.rstrip()

    def _repr_html_(self) -> str:
        """A table for notebooks: what each part, made faster, would save, or else the critical path, with bars."""
        if len(self.what_if) > 0:
            most = max(abs(part["gain"]) for part in self.what_if) or 1.0
            rows = [((part["part"], f"{part['step_seconds']:.4g} s", f"{part['gain']:.2%}"), part["gain"] / most)
                    for part in self.what_if]
            return bars_html(("made faster", "step", "saved"), rows, self._printed)
        rows = [((part["what"], f"{part['seconds']:.4g} s", f"{part['share']:.1%}"), part["share"])
                for part in self.critical_path]
        return bars_html(("critical path", "time", "share"), rows, self._printed)

    def __reduce__(self):
        return Explanation, (self._text, self._printed, self._result)

"""Predicted against published: how far off topsim was where somebody measured."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Sequence, Union

from . import _core
from .arguments import jobs_of, path_text
from .files import write_text
from .progress import Bar, OnProgress
from .table import Table, bars_html


Name = Union[str, "os.PathLike[str]"]


def validate(families: Union[Name, Sequence[Name], None] = None, *, jobs: int = 0,
             progress: Union[bool, None, OnProgress] = None) -> "Validation":
    """Simulates the published runs of configs/validation, or measurements of your own, and compares. No measured figure is
    an input of its own prediction.

    families   a name or several, each of a file, a family or a case: "korthikanti-2022", ["internevo", "nccl-tests"]; or
               paths of your own files of measurements, "ours.json"; None or nothing: all of configs/validation, which
               takes minutes
    jobs       simulations at once; 0: one per core. The answer does not depend on it
    progress   None: a tqdm bar where a person looks; True, False, or a function of (cases_done, cases, 0, 0, 0)

    What misses its bar is not an exception: see `passed`; nor is a row whose scenario is wrong: its `problem` says why.
    Raises ConfigError for a name that nothing has, a file that is not there and a table that cannot be read, ValueError for
    negative `jobs`, KeyboardInterrupt on Ctrl-C.
    """
    jobs = jobs_of(jobs)
    one = isinstance(families, (str, os.PathLike))
    names = [path_text(name) for name in ([families] if one else families or ())]
    with Bar(progress, unit="case", what="validating") as bar:
        return Validation(*_core.validate(names, jobs, bar.update))


class Validation:
    """What `topsim validate` prints. Errors are shares: 0.05 is 5 % too slow (too much), -0.05 too fast."""

    def __init__(self, text: str, printed: str) -> None:
        self._text, self._printed = text, printed
        self._dict: Dict[str, Any] = json.loads(text)

    @property
    def cases(self) -> Table:
        """A row each figure: name, family, figure ("step", "collective", "memory" or "share": what was measured), published
        and predicted (seconds, bytes or a share of the step), error (predicted / published - 1; of shares the difference),
        fits (whether the memory suffices, as topsim counts it), source, problem (why it could not be simulated, else "";
        predicted and error are None then).
        """
        return Table._of_rows("cases", [{"fits": True, "problem": "", **case} for case in self._dict["cases"]],
                              ("name", "family", "figure", "published", "predicted", "error", "fits", "source", "problem"))

    @property
    def families(self) -> Dict[str, Dict[str, Any]]:
        """{name: {n, mean_abs_error, median_abs_error, percentile_90_abs_error, max_abs_error, bias, kendall_tau, ...,
        bar, goal, passed}}: shares, None where no case could be simulated; `bar` is what may not be exceeded."""
        return json.loads(self._text)["families"]

    @property
    def totals(self) -> Dict[str, Dict[str, Any]]:
        """The same of all scored families together, each weighing the same: {"steps": {...}, "memory": {...}, ...}."""
        return json.loads(self._text).get("totals", {})

    @property
    def passed(self) -> bool:
        """Whether every case could be simulated and every family holds its bar: exit code 0 of the command."""
        return all(family["passed"] for family in self._dict["families"].values())

    def html(self, file: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the page of the validation: one file that opens offline, what `topsim validate --html` writes.

        ConfigError where the build has no page (it says how to get it)."""
        page = _core.validate_html(self._text)
        write_text(file, page)

    def to_json(self) -> str:
        """topsim.validate/1, as `topsim validate --format json` prints it."""
        return self._text

    def to_dict(self) -> Dict[str, Any]:
        """The same as a dict: {format, complete, cases: [...], families: {...}, totals: {...}}."""
        return json.loads(self._text)

    def to_pandas(self):
        """cases as a DataFrame."""
        return self.cases.to_pandas()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Validation) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return self._printed.rstrip()

    def _repr_html_(self) -> str:
        """A table for notebooks: the families, with their mean errors as bars."""
        families = {name: family for name, family in self._dict["families"].items() if family["mean_abs_error"] is not None}
        missing = [((name, str(family["n"]), "not simulated", "", ""), 0.0)
                   for name, family in self._dict["families"].items() if name not in families]
        most = max([family["mean_abs_error"] for family in families.values()], default=0) or 1.0
        rows = [((name, str(family["n"]), f"{family['mean_abs_error']:.1%}", f"{family['max_abs_error']:.1%}",
                  f"{family['bias']:+.1%}"), family["mean_abs_error"] / most) for name, family in families.items()]
        return bars_html(("family", "cases", "mean error", "largest", "bias"), rows + missing, self._printed)

    def __reduce__(self):
        return Validation, (self._text, self._printed)

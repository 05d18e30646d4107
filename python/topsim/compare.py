"""Scenarios or results side by side."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Union

from . import _core
from .arguments import flags, jobs_of, path_text, whole
from .files import keep_inputs, write_text
from .progress import Bar, OnProgress
from .result import Result, load
from .scenario import Source, _scenario
from .table import Table, _text as _cell, bars_html


def compare(*candidates: Union[Result, Source], seeds: int = 32, jobs: int = 0, cost: bool = True,
            all_rows: bool = False, allow_oom: bool = False,
            progress: Union[bool, None, OnProgress] = None) -> "Comparison":
    """What differs between two or more candidates, the first being the baseline.

    candidates  one list of them, or each an argument: Results or the files that hold them (compared as they are),
                or scenarios as `run` takes them (each simulated `seeds` times, with its own ECMP seed and a draw of
                every figure on which sources disagree, so that the verdict can say whether the difference is
                significant); one Result among them makes all of them single runs
    jobs        simulations at once; 0: one per core
    cost        also prices, power and cost per token
    all_rows    rows that do not differ, too (in the table; to_dict() always has all)

    seeds       simulations of each; 1: a single one, without a word on significance

    Raises ValueError for fewer than two candidates, seeds below 1 and negative jobs, ConfigError for what cannot be read
    or simulated.
    """
    if len(candidates) == 1 and isinstance(candidates[0], (list, tuple)):
        candidates = tuple(candidates[0])
    if len(candidates) < 2:
        raise ValueError("compare needs at least two candidates, the baseline first")
    flags(cost=cost, all_rows=all_rows, allow_oom=allow_oom)
    seeds, jobs = whole("seeds", seeds, 1), jobs_of(jobs)
    candidates = tuple(_result_of(each) for each in candidates)
    if any(isinstance(each, Result) for each in candidates):
        from .result import run
        results = [each if isinstance(each, Result) else run(each, allow_oom=allow_oom, timeline=False, progress=progress)
                   for each in candidates]
        made = _core.compare_results([each.to_json() for each in results],
                                     [each.scenario._core for each in results], cost, all_rows)
        read = [file for each in results for file in each.scenario._core.files]
    else:
        scenarios = [_scenario(each)._core for each in candidates]
        with Bar(progress) as bar:
            made = _core.compare_scenarios(scenarios, seeds, jobs, allow_oom, cost, all_rows, bar.update)
        read = [file for each in scenarios for file in each.files]
    comparison = Comparison(*made)
    comparison._inputs = read
    return comparison


def _result_of(given: Any) -> Any:
    """The Result that a file, or a folder of `run --out`, holds; what is no such path is given back."""
    if not isinstance(given, (str, bytes, os.PathLike)):
        return given
    path = path_text(given)
    inside = os.path.join(path, "result.json")
    file = inside if os.path.isfile(inside) else path
    if not os.path.isfile(file):
        return given  # the name of a shipped scenario, or a mistake that reading it explains
    with open(file, "rb") as stream:  # a scenario never holds this word
        return load(file) if b'"topsim.result/' in stream.read() else given


class Comparison:
    """Rows sorted by their effect on the step, and a verdict. str() is what `topsim compare` prints."""

    def __init__(self, text: str, table: str, markdown: str, names: List[str], results: List[str],
                 bills: List[str]) -> None:
        self._dict: Dict[str, Any] = json.loads(text)
        self._text, self._table, self._markdown = text, table, markdown
        self._results, self._bills = results, bills
        self.names = names
        self._inputs: List[str] = []  # files that must not be overwritten

    @property
    def verdict(self) -> str:
        """The closing sentences."""
        return self._dict["verdict"]

    @property
    def rows(self) -> Table:
        """metric, one value per candidate, relative to the baseline (share) for the others."""
        names = self.names
        rows = []
        for row in self._dict["rows"]:
            flat: Dict[str, Any] = {"metric": row["metric"]}
            flat.update({name: value for name, value in zip(names, row["values"])})
            flat.update({f"{name} relative": value for name, value in zip(names[1:], row["relative"][1:])})
            rows.append(flat)
        return Table._of_rows("comparison", rows)

    @property
    def results(self) -> List[Result]:
        """The candidates' results, in order."""
        return [Result(text) for text in self._results]

    def to_json(self) -> str:
        """topsim.compare/1, as `topsim compare --format json` prints it."""
        return self._text

    def to_dict(self) -> Dict[str, Any]:
        """{"format": "topsim.compare/1", baseline, rows, verdict}."""
        return json.loads(self._text)

    def to_pandas(self):
        """rows as a DataFrame."""
        return self.rows.to_pandas()

    def to_markdown(self) -> str:
        """A memo with the bills of materials."""
        return self._markdown

    def html(self, file: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the page of the comparison: one file that opens offline, what `topsim compare --html` writes.

        ConfigError where the build has no page (it says how to get it)."""
        keep_inputs(file, self._inputs)
        page = _core.compare_html(self.names, self._text, self._results, self._bills)
        write_text(file, page)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Comparison) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return self._table.rstrip()

    def _repr_html_(self) -> str:
        """A table for notebooks: what differs, SI units, a bar for the last candidate beside the baseline."""
        import html
        rows = []
        for row in self.rows:
            last = row[f"{self.names[-1]} relative"]
            cells = [row["metric"], *(_cell(row[name]) for name in self.names), _percent(last)]
            rows.append((cells, last if isinstance(last, (int, float)) else 0.0))
        return (bars_html(("metric", *self.names, f"{self.names[-1]} beside {self.names[0]}"), rows, self._table) +
                f"<p>{html.escape(self.verdict)}</p>")

    def __reduce__(self):
        return Comparison, (self._text, self._table, self._markdown, self.names, self._results, self._bills)


def _percent(share: Any) -> str:
    return f"{share:+.2%}" if isinstance(share, (int, float)) else ""

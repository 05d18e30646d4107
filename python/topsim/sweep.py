"""The same scenario with other values: many simulations in parallel, kept in a file that survives interruptions."""

from __future__ import annotations

import csv as _csv
import io
import itertools
import json
import os
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from . import _core
from .arguments import flags, jobs_of, path_text, text as _text_of
from .files import write_text
from .progress import Bar, OnProgress
from .scenario import Changes, Scenario, Source, _plain, _scenario, _settings, _Text
from .table import Table

Vary = Mapping[str, Sequence[Any]]
Points = Iterable[Mapping[str, Any]]


def sweep(scenario: Source, vary: Union[Vary, Points, None] = None, *, points: Optional[Points] = None,
          out: Union[str, "os.PathLike[str]", None] = None, jobs: int = 0, best: str = "",
          pareto: Sequence[str] = (), client: Any = None, allow_oom: bool = False, set: Changes = None,
          seed: Optional[int] = None, network: Optional[str] = None,
          progress: Union[bool, None, OnProgress] = None, **changes: Any) -> "Sweep":
    """Simulates every combination of the values in `vary` and returns a Sweep, one row per point.

    scenario   as `run` takes it; set, seed, network and keywords change it for all points
    vary       {path: values}: {"workload.plan.tp": [1, 2, 4, 8], "topology.fabric.link": ["ib-ndr", "ib-xdr"]}; the last
               path changes fastest; a list of {path: value} is taken as `points`
    points     instead of a grid, or for each of its points: a list of {path: value}, all with the same paths; a
               DataFrame with a column each path is one
    out        an SQLite file that rows go to as they finish. Given again, finished rows are not run again, however the
               process before ended; None: kept in memory
    jobs       simulations at once on this machine; 0: one per core
    client     a dask.distributed.Client: points run on its workers, which need this very topsim; rows and resuming are
               the same. A worker that dies costs its unfinished points another try
    best       the figure that rows are ranked by (default: tokens_per_second)
    pareto     the figures of the Pareto set (default: tokens_per_second, usd_per_hour, accelerators,
               and memory_bytes unless every point fits with room)
    progress   None: a tqdm bar where a person looks; True, False, or a function of (done, total, 0, 0, 0)

    What cannot run (a plan that does not fit the memory, say) is a row with status "failed" and its sentence in
    `message`. When the size of a replica or of the cluster varies, a `dp` that the file gives is left to follow.
    Raises ConfigError for paths that no scenario has, paths that this call both sets and varies, and figures that no
    run has, before anything runs; ValueError for negative `jobs`, KeyboardInterrupt on Ctrl-C (finished rows stay).
    """
    if vary is not None and not isinstance(vary, Mapping):
        if points is not None or isinstance(vary, str) or not isinstance(vary, Iterable):
            raise TypeError("vary is {path: values}, as {\"workload.plan.tp\": [1, 2, 4]}; a list of {path: value} is points")
        vary, points = None, vary
    jobs = jobs_of(jobs)
    flags(allow_oom=allow_oom)
    if isinstance(pareto, str) or not isinstance(pareto, Iterable):
        raise TypeError("pareto is a list of figures, as [\"mfu\", \"usd_per_hour\"]")
    pareto = [_text_of("a figure", name) for name in pareto]
    best = _text_of("best", best)
    paths, rows = _space(vary, points)
    settings = _settings(set, changes, seed, network)
    source = _origin(_scenario(scenario, settings))
    file = "" if out is None else path_text(out)
    core = _core.Sweep(*source, settings, paths, rows, file, allow_oom, best, pareto)
    with Bar(progress, unit="point", what="sweeping") as bar:
        if client is None:
            core.run(jobs, bar.update)
        else:
            _run_on(client, core, source, paths, rows, allow_oom, bar)
    return Sweep(*core.texts())


class Sweep(Table):
    """Rows: point, one column per path, status ("ok" or "failed"), message, fits (whether the memory suffices),
    assumed_release (of a framework that the scenario names without one), then figures in SI units (step_seconds, tokens_per_second, mfu, memory_bytes, usd_per_million_tokens,
    idle_seconds.<reason>, ...), None where there is none. The columns are those of the CSV, in its order.
    `pandas.DataFrame(sweep)` and `to_pandas()` make a frame; str() is what `topsim sweep` prints.
    """

    def __init__(self, text: str, csv: str, table: str) -> None:
        self._text, self._csv, self._table = text, csv, table
        self._dict: Dict[str, Any] = json.loads(text)
        rows = [{**row, **row["values"], **row["figures"]} for row in self._dict["rows"]]
        # In the order of the CSV's columns; JSON sorts its keys.
        names = next(_csv.reader(io.StringIO(csv))) if rows else []
        super().__init__("sweep", {key: [row[key] for row in rows] for key in names})

    @property
    def assumed_releases(self) -> List[str]:
        """The releases of one framework that points ran whose scenario names none, where they differ; else empty. Such
        points differ by their release, too; set={"workload.framework": "megatron@2025"} gives all of them one.
        """
        return list(self._dict.get("assumed_releases", []))

    @property
    def figures(self) -> Table:
        """What the columns of figures hold: name, label, meaning, unit ("s", "1" for a share, "B", "W", "USD" or
        "count"), more_is_better."""
        keys = ["name", "label", "meaning", "unit", "more_is_better"]
        return Table._of_rows("figures", [{key: each[key] for key in keys} for each in self._dict["figures"]], keys)

    @property
    def paths(self) -> List[str]:
        """What was varied."""
        return list(self._dict["paths"])

    @property
    def best(self) -> Optional[Dict[str, Any]]:
        """The best row by the figure of the sweep: of those that fit the memory, or of all when none fits (its
        `fits` says so); None when no point could run."""
        point = self._dict["best"]["point"]
        return None if point is None else self._rows([point])[0]

    @property
    def pareto(self) -> Table:
        """The rows that no other one beats in all figures of the Pareto set; those that fit the memory, if any
        does."""
        return Table._of_rows("pareto", self._rows(self._dict["pareto"]["points"]), self.columns)

    @property
    def failed(self) -> Table:
        """point, one column per path, message: what could not run, and why."""
        rows = [row for row in self if row["status"] != "ok"]
        keys = ["point", *self.paths, "message"]
        return Table._of_rows("failed", [{key: row[key] for key in keys} for row in rows], keys)

    def plot(self, x: str, y: str = "step_seconds", ax: Any = None) -> Any:
        """`y`, a figure, over `x`: a path (its last word is enough) or a figure. Returns matplotlib's axes.
        KeyError for other names, ValueError for a `y` of text."""
        from .plots import plot_sweep
        x, y = self._column_name(x), self._column_name(y)
        for name in (x, y):
            words = any(isinstance(value, str) for value in self[name])
            if name in ("status", "message") or (words and name == y):
                raise ValueError(f"{name} holds text, which is no figure to plot")
        return plot_sweep(self, x, y, ax)

    def html(self, file: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the page of the sweep: one file that opens offline, what `topsim sweep --html` writes.

        ConfigError where the build has no page (it says how to get it)."""
        page = _core.sweep_html(self._text, self._dict["scenario"])
        write_text(file, page)

    def to_json(self) -> str:
        """topsim.sweep/1, as `topsim sweep --format json` prints it."""
        return self._text

    def to_dict(self) -> Dict[str, Any]:
        """The same as a dict."""
        return json.loads(self._text)

    def to_csv(self) -> str:
        """As `topsim sweep --format csv` prints it."""
        return self._csv

    def _rows(self, points: Sequence[int]) -> List[Dict[str, Any]]:
        place = {point: i for i, point in enumerate(self["point"])} if len(self) else {}
        return [self[place[point]] for point in points]

    def _column_name(self, word: str) -> str:
        if word in self.columns:
            return word
        found = [path for path in self.paths if path.rsplit(".", 1)[-1] == word]
        if len(found) != 1:
            raise KeyError(f"no column {word!r}; columns: {', '.join(self.columns)}")
        return found[0]

    def __str__(self) -> str:
        return self._table.rstrip()

    def __reduce__(self):
        return Sweep, (self._text, self._csv, self._table)


def _space(vary: Optional[Vary], points: Optional[Points]) -> Tuple[List[str], List[List[str]]]:
    listed = [{}] if points is None else _listed(points)
    for point in listed:
        if not isinstance(point, Mapping):
            raise TypeError(f"a point is {{path: value}}, as {{\"workload.plan.tp\": 4}}; {point!r} is none")
    grid = {path: [*values] if isinstance(values, Iterable) and not isinstance(values, (str, Mapping)) else values
            for path, values in (vary or {}).items()}
    paths = [*(listed[0] if listed else ()), *grid]
    if not paths or not listed or len({*paths}) < len(paths):
        raise ValueError("a sweep needs values: {\"workload.plan.tp\": [1, 2, 4]}, each path once")
    for path, values in grid.items():
        if not isinstance(values, list) or not values:
            raise ValueError(f"{path} needs a list of values")
    rows = []
    for point in listed:
        if {*point} != {*listed[0]}:
            raise ValueError(f"every point names the same paths; {point} does not")
        point = {path: point[path] for path in listed[0]}
        for values in itertools.product(*grid.values()):
            rows.append([json.dumps(value, default=_plain) for value in (*point.values(), *values)])
    return paths, rows


def _listed(points: Any) -> List[Any]:
    """Rows of a pandas DataFrame, and points that are Series, as dicts."""
    if hasattr(points, "columns") and hasattr(points, "to_dict"):
        return points.to_dict("records")
    return [point.to_dict() if hasattr(point, "to_dict") else point for point in points]


def _origin(scenario: Scenario) -> Tuple[str, str, str, str, List[str]]:
    """(path, text, name, directory, assignments): where to read it again with other values."""
    source, changes = scenario._source, scenario._changes
    if isinstance(source, Mapping):
        source = _Text(json.dumps(source, indent=2, default=_plain), scenario.name, ".")
    if isinstance(source, _Text):
        return "", source.text, source.name, source.directory, changes
    return path_text(source), "", "", "", changes


def _run_on(client: Any, core: Any, source: Any, paths: List[str], rows: List[List[str]], allow_oom: bool,
            bar: Bar) -> None:
    """Points that are not stored run on dask's workers; this process alone writes rows."""
    from dask.distributed import as_completed
    if source[0]:  # workers need not see this machine's files
        path, _, _, _, changes = source
        scenario = Scenario(path)
        source = ("", scenario.to_json(), scenario.name, os.path.abspath(scenario._core.directory), changes)
    missing = core.missing()
    done = len(rows) - len(missing)
    futures = [client.submit(_remote, source, paths, rows[point], allow_oom, point, pure=False, retries=10)
               for point in missing]
    try:
        for _, row in as_completed(futures, with_results=True):
            if row.key != core.key(row.point):
                raise RuntimeError(f"a worker has another topsim, or other hardware figures, than {_core.version} "
                                   f"({_core.commit}) here: its rows would not be the same")
            core.add(row)
            done += 1
            if bar.update is not None:
                bar.update(done, len(rows), 0.0, 0, 0)
    except BaseException:
        client.cancel(futures)
        raise


def _remote(source: Any, paths: List[str], row: List[str], allow_oom: bool, point: int) -> Any:
    one = _core.Sweep(*source, [], paths, [row], "", allow_oom, "", [])
    return one.compute(0).at(point)

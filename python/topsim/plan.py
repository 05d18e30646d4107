"""The fastest parallel plans of a job on a cluster."""

from __future__ import annotations

import json
from typing import Any, Dict, Optional, Sequence, Union

from . import _core
from .arguments import flags, jobs_of, whole
from .progress import Bar, OnProgress
from .scenario import Changes, Scenario, Source, _restore, _scenario
from .table import Table


def plan(scenario: Source, *, gpus: int = 0, top: int = 5, keep: Sequence[str] = (), schedules: Sequence[str] = (),
         exhaustive: bool = False, jobs: int = 0, set: Changes = None, seed: Optional[int] = None,
         network: Optional[str] = None, progress: Union[bool, None, OnProgress] = None, **changes: Any) -> "Plans":
    """Searches tp x pp x dp x cp x ep x micro-batch x recompute x schedule x virtual stages for the plans with the shortest
    step that fit the memory, at the scenario's global batch.

    gpus       accelerators to plan for (the cluster grows or shrinks by nodes); 0: the scenario's
    top        how many plans are wanted, best first: 1 to 1000
    keep       dimensions that stay as the scenario has them: "tp", "pp", "cp", "ep", "virtual_stages", "micro_batch",
               "recompute", "schedule", "zero"
    schedules  those to consider: "1f1b", "interleaved", "zb-h1", "zb-1p", "zb-2p", "zb-v", "gpipe" (default: all but the
               last and zb-1p)
    exhaustive True: every plan that fits is simulated, also those that the bound excludes (the same best plans, later)
    jobs       simulations at once; 0: one per core
    network    of the scenario that `best` gives (network.model); the search itself uses "flow"

    Every plan that fits is bounded from below and simulated with the flow model unless the bound says that it cannot be among
    the best, so the result is that of an exhaustive search. Raises ConfigError when no plan fits.
    """
    if isinstance(keep, str) or isinstance(schedules, str):
        raise TypeError("keep and schedules are lists of names, as [\"1f1b\"]")
    unknown = [name for name in keep if name not in _core.plan_dimensions]
    if unknown:
        raise ValueError(f"a plan has no {unknown[0]!r}; dimensions: {', '.join(_core.plan_dimensions)}")
    flags(exhaustive=exhaustive)
    gpus, top, jobs = whole("gpus", gpus, 0, 10**9), whole("top", top, 1, 1000), jobs_of(jobs)
    made = _scenario(scenario, set, changes, seed, network)
    with Bar(progress, unit="plan", what="searching") as bar:
        found = _core.plan(made._core, gpus, top, list(keep), list(schedules), jobs, exhaustive, bar.update)
    return Plans(*found, made.name)


class Plans(Table):
    """Rows, best first: tp, pp, dp, cp, ep, virtual_stages, micro_batch, recompute, schedule, zero, step_seconds (as `run`
    gives it), first_step_seconds (from a standing start: what the search compares), bound_seconds (below it, always), mfu,
    tokens_per_second, idle_fraction, memory_bytes, why (what the plan loses to the first). str() is what `topsim plan` prints.
    """

    def __init__(self, text: str, table: str, best: str, name: str) -> None:
        self._text, self._table, self._best, self._scenario_name = text, table, best, name
        self._dict: Dict[str, Any] = json.loads(text)
        rows = [{**row.pop("plan"), **row} for row in json.loads(text)["rows"]]
        super().__init__("plans", {key: [row[key] for row in rows] for key in _COLUMNS})

    @property
    def best(self) -> Scenario:
        """The scenario with the best plan: topsim.run(plans.best)."""
        return _restore(self._best, self._scenario_name, ".")

    @property
    def space(self) -> Dict[str, int]:
        """How many plans there are, how many are impossible, too_large for the memory, cut by their bound, simulated."""
        return dict(self._dict["space"])

    @property
    def assumed_release(self) -> Optional[str]:
        """The framework's release that all plans run, where the scenario names none and it is not the newest; else None."""
        return self._dict.get("assumed_release")

    @property
    def own(self) -> Optional[Dict[str, Any]]:
        """The scenario's own plan, with the same keys as a row; None when it cannot run. Its first_step_seconds is
        None where the plan is not among the rows: the search then did not simulate it from a standing start."""
        if self._dict["own"] is None:
            return None
        own = {**self._dict["own"]["plan"], **self._dict["own"]}
        same = [row for row in self if all(row[key] == own[key] for key in own["plan"])]
        own["first_step_seconds"] = same[0]["first_step_seconds"] if same else None
        return {key: own[key] for key in _COLUMNS}

    def to_json(self) -> str:
        """topsim.plan/1, as `topsim plan --format json` prints it."""
        return self._text

    def to_dict(self) -> Dict[str, Any]:
        """The same as a dict."""
        return json.loads(self._text)

    def __str__(self) -> str:
        return self._table.rstrip()

    def __reduce__(self):
        return Plans, (self._text, self._table, self._best, self._scenario_name)


_COLUMNS = ("tp", "pp", "dp", "cp", "ep", "virtual_stages", "micro_batch", "recompute", "schedule", "zero",
            "step_seconds", "first_step_seconds", "bound_seconds", "mfu", "tokens_per_second", "idle_fraction",
            "memory_bytes", "why")

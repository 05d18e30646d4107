"""What a run found out."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Optional, Union

from . import _core
from .arguments import flags, path_text, text as _text_of, whole
from .errors import ConfigError
from .files import keep_inputs, write_text
from .progress import Bar, OnProgress
from .scenario import Changes, Scenario, Source, _restore, _scenario
from .table import Table, bars_html

# The order in which people read them; result.json sorts its keys.
_COLUMNS = {
    "ranks": ("rank", "count", "node", "device", "program", "busy_seconds", "slowed_seconds",
              "communication_seconds", "hidden_communication_seconds"),
    "links": ("id", "count", "kind", "type", "from", "to", "capacity", "bytes", "utilization", "peak_utilization",
              "busy_seconds"),
    "collectives": ("group", "kind", "group_size", "bytes", "calls", "seconds_each", "bus_bandwidth", "algorithm",
                    "protocol", "channels"),
    "critical_path": ("what", "seconds", "share"),
    "findings": ("severity", "message", "path", "remedy", "id", "assumed"),
}


def run(scenario: Source, *, set: Changes = None, seed: Optional[int] = None, network: Optional[str] = None,
        fold: bool = True, allow_oom: bool = False, timeline: bool = False,
        progress: Union[bool, None, OnProgress] = None, **changes: Any) -> "Result":
    """Simulates a training step (or what the scenario's workload is) and returns its Result.

    scenario   path, name of a shipped scenario, dict, or Scenario
    set        values by dotted path, {"workload.plan.tp": 4}; the same as keywords: **{"workload.plan.tp": 4}
    seed       of everything drawn at random (run.seed)
    network    of names("networks"), as "packet" (network.model)
    fold       simulate one of each kind of rank and link; False: every one (same figures, slower)
    allow_oom  simulate a model that does not fit the memory
    timeline   keep what happened when; else Result.timeline simulates again when it is first asked for
    progress   None: a tqdm bar where a person looks; True, False, or a function

    Raises ConfigError for mistakes in the scenario, KeyboardInterrupt on Ctrl-C. Same scenario and seed, same
    result, bit by bit.
    """
    flags(fold=fold, allow_oom=allow_oom, timeline=timeline)
    made = _scenario(scenario, set, changes, seed, network)
    with Bar(progress) as bar:
        text, record, kept = _core.run(made._core, fold, timeline, allow_oom, bar.update)
    return Result(text, record, made, kept, fold, allow_oom)


def load(file: Union[str, "os.PathLike[str]"]) -> "Result":
    """A Result from result.json, or from the folder that `topsim run --out` wrote. Raises ConfigError."""
    path = path_text(file)
    if os.path.isdir(path):
        path = os.path.join(path, "result.json")
    return Result(_core.load_result(path))


class Result:
    """One simulated workload on one cluster: step time, why accelerators sit idle, what links carried.

    Attributes are SI: seconds, bytes, bytes per second, shares from 0 to 1. `to_dict()` is result.json.
    Tables: `ranks`, `links`, `collectives`, `critical_path`, `findings`, `timeline`, `idle`, `link_timeline`;
    each has `to_pandas()`. Ranks and links that behave alike are one row with their `count`.
    Frozen; pickles; equal when result.json is.
    """

    def __init__(self, text: str, record: Optional[str] = None, scenario: Optional[Scenario] = None,
                 timeline: Any = None, fold: bool = True, allow_oom: bool = True) -> None:
        self._text, self._record, self._scenario, self._timeline = text, record, scenario, timeline
        self._fold, self._allow_oom = fold, allow_oom
        self._dict: Dict[str, Any] = json.loads(text)

    @property
    def name(self) -> str:
        """The scenario file's stem, or "scenario"."""
        return self._dict["name"]

    @property
    def headline(self) -> str:
        """One line: what was simulated."""
        return self._dict["headline"]

    @property
    def step_seconds(self) -> float:
        """Mean of the measured steps, seconds (0: none); a step ends when the last rank's optimiser ends."""
        return self._dict["step"]["seconds"]

    @property
    def mfu(self) -> float:
        """Model FLOPs utilisation, a share (causal attention counted as half)."""
        return self._dict["throughput"]["mfu"]

    @property
    def tokens_per_second(self) -> float:
        """Of all accelerators together; tokens trained on, or generated ones where the task is inference."""
        return self._dict["throughput"]["tokens_per_second"]

    @property
    def memory_bytes(self) -> int:
        """What the fullest accelerator's memory holds, bytes; 0 where it is not known (a trace)."""
        return self._dict["memory"]["per_accelerator_bytes"]

    @property
    def memory_capacity_bytes(self) -> int:
        """What one accelerator's memory can hold, bytes."""
        return self._dict["memory"]["capacity_bytes"]

    @property
    def fits(self) -> bool:
        """Whether the memory suffices; False only of a run with allow_oom=True."""
        return self._dict["memory"]["fits"]

    @property
    def idle_fraction(self) -> float:
        """Share of the step that accelerators sit idle, mean over all of them."""
        return self._dict["accelerators"]["idle_fraction"]

    @property
    def idle_seconds(self) -> Dict[str, float]:
        """{reason: seconds a step}, mean over accelerators; sums with the busy time to the step."""
        return dict(self._dict["accelerators"]["idle_seconds"])

    @property
    def busy_seconds(self) -> float:
        """Seconds a step that accelerators compute, mean over all of them."""
        return self._dict["accelerators"]["busy_seconds"]

    @property
    def slowed_seconds(self) -> float:
        """Of busy_seconds: how much longer kernels take beside communication than alone."""
        return self._dict["accelerators"].get("slowed_seconds", 0.0)

    @property
    def communication_seconds(self) -> float:
        """Seconds a step in which a collective or message of an accelerator is under way, mean over all of them.

        A collective counts from the accelerator's own arrival, as a profiler shows its kernel.
        """
        return self._dict["accelerators"].get("communication_seconds", 0.0)

    @property
    def hidden_communication_seconds(self) -> float:
        """Of communication_seconds: in which the accelerator computes as well."""
        return self._dict["accelerators"].get("hidden_communication_seconds", 0.0)

    @property
    def complete(self) -> bool:
        """False when the run was interrupted."""
        return self._dict["complete"]

    @property
    def seed(self) -> int:
        """Of hashed paths, random placement and drawn figures."""
        return self._dict["seed"]

    @property
    def run_record(self) -> Optional[Dict[str, Any]]:
        """run.json: wall_seconds, peak_rss_bytes, events, classes of this run; None for a loaded result."""
        return json.loads(self._record) if self._record else None

    @property
    def scenario(self) -> Scenario:
        """What was simulated; of a loaded result, the scenario that it echoes."""
        if self._scenario is None:
            self._scenario = _restore(json.dumps(self._dict["scenario"], indent=1), self.name, ".")
        return self._scenario

    @property
    def ranks(self) -> Table:
        """rank, count, node, device, program, busy_seconds, slowed_seconds (of them, beside communication),
        communication_seconds, hidden_communication_seconds (of them, beside computation), idle_seconds.<reason>; seconds a step and member.
        """
        return Table._of_rows("ranks", self._dict["ranks"], _COLUMNS["ranks"])

    @property
    def links(self) -> Table:
        """id, count, kind, type, from, to, capacity (bytes/s), bytes, utilization, peak_utilization (shares),
        busy_seconds; those that carried bytes, most utilised first, figures of each member over all measured steps.
        """
        return Table._of_rows("links", self._dict["links"], _COLUMNS["links"])

    @property
    def collectives(self) -> Table:
        """group, kind, group_size, bytes, calls, seconds_each, bus_bandwidth (bytes/s, as nccl-tests counts it),
        algorithm, protocol, channels; calls over all measured steps and all groups alike, seconds_each from the arrival
        of a call's last member.
        """
        return Table._of_rows("collectives", self._dict["collectives"], _COLUMNS["collectives"])

    @property
    def critical_path(self) -> Table:
        """what, seconds, share of the step."""
        return Table._of_rows("critical_path", self._dict["critical_path"], _COLUMNS["critical_path"])

    @property
    def findings(self) -> Table:
        """severity, message, path (in the scenario), remedy, id, settings that it says were assumed."""
        return Table._of_rows("findings", self._dict["findings"], _COLUMNS["findings"])

    def rank(self, number: int) -> Dict[str, Any]:
        """One rank as a dict with the keys of `ranks`, and `alike`: how many ranks behave as it does. Ranks count from 0;
        ConfigError where there is none of that number.
        """
        number = whole("a rank", number, -(1 << 200), 1 << 200)
        if not 0 <= number < 1 << 32:
            raise ConfigError(f"the job has no rank {number}", [])
        return self._members([number], [])["ranks"][0]

    def link(self, id: str) -> Dict[str, Any]:
        """One link, by its name ("node0/nic0 -> leaf0"), as a dict with the keys of `links`, and `alike`: how many links
        behave as it does, 0 when it carried nothing.
        """
        return self._members([], [_text_of("a link's name", id)])["links"][0]

    def _members(self, ranks: List[int], links: List[str]) -> Dict[str, Any]:
        return json.loads(_core.find_members(self._text, self.scenario._core, ranks, links))

    @property
    def timeline(self) -> Table:
        """What every rank did when: rank (first of its class), count, device, stream, what, phase, step, begin,
        ready (when its last partner had come), end (seconds from the beginning of the run), flow (a send and its
        receive share one; 0: none). Simulated again when the run did not keep it.
        """
        return Table._of_columns("timeline", self._events().slices())

    @property
    def idle(self) -> Table:
        """Idle intervals: rank, count, device, reason, begin, end (seconds from the beginning of the run)."""
        return Table._of_columns("idle", self._events().idle())

    @property
    def link_timeline(self) -> Table:
        """id, time (seconds), utilization (share) from that time on; one set of rows a class of links."""
        return Table._of_columns("link_timeline", self._events().links())

    def _events(self) -> Any:
        """The run's timeline: simulations are deterministic, so a second one gives what the first did not keep."""
        if self._timeline is None:
            text, _, timeline = _core.run(self.scenario._core, self._fold, True, self._allow_oom, None)
            if json.loads(text)["step"] != self._dict["step"]:
                raise ValueError(f"{self.name} has no timeline: this version of topsim gives another step time than the "
                                 f"result, which was made by {self._dict['topsim']['version']}; run the scenario again")
            self._timeline = timeline
        return self._timeline

    def to_dict(self) -> Dict[str, Any]:
        """result.json as a dict of its own ("format": "topsim.result/1")."""
        return json.loads(self._text)

    def to_json(self) -> str:
        """result.json, byte for byte what `topsim run --format json` prints."""
        return self._text

    def to_csv(self) -> str:
        """As `topsim run --format csv` prints it: scenario,metric,value. Tables have a to_csv() of their own."""
        return _core.result_csv(self._text)

    def save(self, file: Union[str, "os.PathLike[str]"]) -> None:
        """Writes result.json; `topsim.load` and every command that takes a result read it."""
        self._keep_inputs(file)
        write_text(file, self._text)

    def _keep_inputs(self, file: Union[str, "os.PathLike[str]"]) -> None:
        keep_inputs(file, [] if self._scenario is None else self._scenario._core.files)

    def trace(self, file: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the timeline for Perfetto (.pftrace) or Chrome (.json); with .gz behind it packed. Raises
        ConfigError where the name ends in none of these or the place cannot be written.
        """
        self._keep_inputs(file)
        self._events().write_trace(path_text(file))

    def html(self, file: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the report page: one file that opens offline. Raises ConfigError where this build has no page."""
        self._keep_inputs(file)
        page = self._events().html(self._text, "")  # first: where there is none, an old file stays
        write_text(file, page)

    def plot_timeline(self, ranks: int = 16, step: Optional[int] = None, ax: Any = None) -> Any:
        """What each rank's compute stream did during a step (None: the last), coloured by phase, idle time by reason; the
        first `ranks` rows. Returns matplotlib's axes.
        """
        from .plots import plot_timeline
        return plot_timeline(self, ranks, step, ax)

    def plot_links(self, links: int = 16, ax: Any = None) -> Any:
        """Mean and peak utilisation of the busiest links. Returns matplotlib's axes."""
        from .plots import plot_links
        return plot_links(self, links, ax)

    def plot_idle(self, ax: Any = None) -> Any:
        """Where an accelerator's step goes: busy, and each reason to be idle. Returns matplotlib's axes."""
        from .plots import plot_idle
        return plot_idle(self, ax)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Result) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        if not self._dict["step"]["per_step"]:
            return f"<Result {self.name}: no measured step{'' if self.complete else ', interrupted'}>"
        room = self._dict["memory"].get("usable_bytes", self.memory_capacity_bytes)
        unfit = f", DOES NOT FIT the memory: {_gibibytes(self.memory_bytes)} of {_gibibytes(room)}"
        return (f"<Result {self.name}: step {_time(self.step_seconds)}, {self.idle_fraction:.1%} idle, "
                f"MFU {self.mfu:.1%}{'' if self.fits else unfit}>")

    def __str__(self) -> str:
        """What `topsim run` prints."""
        return _core.result_text(self._text, 80).rstrip()

    def _repr_html_(self) -> str:
        """A table for notebooks: the step, and where an accelerator spends it, with bars."""
        import html as escape
        step = self.step_seconds
        parts = [("busy", self.busy_seconds), *sorted(self.idle_seconds.items(), key=lambda part: -part[1])]
        rows = [((name.replace("_", " "), _time(seconds), f"{seconds / step:.1%}"), seconds / step)
                for name, seconds in parts if seconds > 0]
        return f"<p>{escape.escape(repr(self)[1:-1])}</p>" + bars_html(("an accelerator's step", "time", "share"), rows,
                                                                      str(self))

    def __reduce__(self):
        return Result, (self._text, self._record, self._scenario, None, self._fold, self._allow_oom)


def _gibibytes(size: int) -> str:
    return f"{size / 2**30:#.3g}".rstrip(".") + " GiB"


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= 0.9995 * scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"

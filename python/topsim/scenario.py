"""Scenarios: what is built, what it computes, which network model carries it."""

from __future__ import annotations

import json
import os
import re
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from . import _core
from .arguments import path_text

Source = Union[str, "os.PathLike[str]", Mapping[str, Any], "Scenario"]
Changes = Union[Mapping[str, Any], Sequence[str], None]


class Scenario:
    """A scenario that was read and checked: from a file (or the name of a shipped one), a dict, or another one.

    `changes` are values by their dotted path, as --set takes them: {"workload.plan.tp": 4,
    "topology.fabric.link": {"use": "ib-ndr", "latency": "700 ns"}}, or ["workload.plan.tp=4"].
    Raises ConfigError with all mistakes. Immutable; pickles as its resolved JSON.
    """

    __slots__ = ("_core", "_source", "_changes")

    def __init__(self, source: Source, changes: Changes = None, *, name: Optional[str] = None) -> None:
        assignments = _assignments(changes)
        if isinstance(source, Scenario):
            assignments = source._changes + assignments
            source = source._source
        self._source: Any = source
        self._changes: List[str] = assignments
        self._core = _read(source, assignments, name)

    @property
    def name(self) -> str:
        """The file's stem, or "scenario"."""
        return self._core.name

    @property
    def description(self) -> str:
        """What the file says of itself; "" where it says nothing."""
        return self._core.description

    def replace(self, changes: Changes = None, **by_path: Any) -> "Scenario":
        """A copy with other values: scenario.replace(**{"workload.plan.tp": 4})."""
        return Scenario(self, _assignments(changes) + _assignments(by_path))

    def to_json(self) -> str:
        """The resolved scenario: defaults written out, but for what is left to the framework."""
        return self._core.to_json()

    def to_dict(self) -> Dict[str, Any]:
        """The same as a dict."""
        return json.loads(self.to_json())

    def __getitem__(self, path: str) -> Any:
        """A resolved value by its dotted path: scenario["workload.plan.tp"], scenario["faults[0].at"]. KeyError
        where there is none."""
        if not isinstance(path, str):
            raise TypeError(f"a path is text, as \"workload.plan.tp\"; found {type(path).__name__}")
        value: Any = self.to_dict()
        for word in re.findall(r"\[\d+\]|[^.\[\]]+", path) or [path]:
            key = int(word[1:-1]) if word.startswith("[") else word
            if not (key in value if isinstance(value, dict) else
                    isinstance(key, int) and isinstance(value, list) and key < len(value)):
                raise KeyError(path)
            value = value[key]
        return value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __repr__(self) -> str:
        return f"<Scenario {self.name}: {self.description}>" if self.description else f"<Scenario {self.name}>"

    def __reduce__(self):
        return _restore, (self.to_json(), self.name, self._core.directory)


class _Text:
    """A source that is text: a dict written down, or a pickled scenario."""

    __slots__ = ("text", "name", "directory")

    def __init__(self, text: str, name: str, directory: str) -> None:
        self.text, self.name, self.directory = text, name, directory


def _read(source: Any, assignments: List[str], name: Optional[str]) -> Any:
    if isinstance(source, Mapping):
        source = _Text(json.dumps(source, indent=2, default=_plain), name or "scenario", ".")
    if isinstance(source, _Text):
        return _core.Scenario.parse(source.text, name or source.name, source.directory, assignments)
    if not isinstance(source, (str, bytes, os.PathLike)):
        raise TypeError("a scenario is a path, the name of a shipped one, a dict or a topsim.Scenario; found "
                        f"{type(source).__name__}")
    return _core.Scenario.read(path_text(source), assignments)


def _restore(text: str, name: str, directory: str) -> Scenario:
    scenario = Scenario.__new__(Scenario)
    scenario._source, scenario._changes = _Text(text, name, directory), []
    scenario._core = _read(scenario._source, [], name)
    return scenario


def _plain(value: Any) -> Any:
    """Numbers and arrays of numpy as Python's own."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a scenario holds no {type(value).__name__}")


def _assignments(changes: Changes) -> List[str]:
    if changes is None:
        return []
    if isinstance(changes, str):
        return [changes]
    if isinstance(changes, Mapping) and all(isinstance(path, str) for path in changes):
        return [f"{path}={json.dumps(value, default=_plain)}" for path, value in changes.items()]
    if isinstance(changes, (list, tuple)) and all(isinstance(each, str) for each in changes):
        return list(changes)
    raise TypeError("changes are {path: value}, as {\"workload.plan.tp\": 4}, or [\"workload.plan.tp=4\"]")


def _settings(changes: Changes = None, by_path: Optional[Mapping[str, Any]] = None, seed: Optional[int] = None,
              network: Optional[str] = None) -> List[str]:
    """The arguments that change a scenario, as --set takes them."""
    assignments = _assignments(changes) + _assignments(by_path)
    if network is not None:
        assignments.append(f"network.model={json.dumps(network)}")
    if seed is not None:
        assignments.append(f"run.seed={json.dumps(seed, default=_plain)}")
    return assignments


def _scenario(source: Source, changes: Changes = None, by_path: Optional[Mapping[str, Any]] = None,
              seed: Optional[int] = None, network: Optional[str] = None) -> Scenario:
    """What run, bench and compare make of their arguments."""
    assignments = _settings(changes, by_path, seed, network)
    if isinstance(source, Scenario) and not assignments:
        return source
    return Scenario(source, assignments)

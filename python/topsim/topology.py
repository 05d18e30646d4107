"""Clusters as devices and links, to look at and to hand to other libraries."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from . import _core
from .arguments import path_text, whole
from .errors import ConfigError
from .files import write_text
from .scenario import Changes, Scenario, Source, _assignments, _scenario
from .table import Table


class Svg(str):
    """SVG text that notebooks draw."""

    def _repr_svg_(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return str(self)

    def save(self, file: Union[str, "os.PathLike[str]"]) -> None:
        """Writes it as an .svg file."""
        write_text(file, self)


class Bill(Table):
    """What has to be bought, a row each kind of part: category, id, name, count, included_in_server, usd_each and
    the rest of `to_dict()["items"]`. str() is what `topsim topo bom` prints.
    """

    def __init__(self, text: str, csv: str, table: str) -> None:
        self._text, self._csv, self._table = text, csv, table
        items = json.loads(text)["items"]
        keys = ["category", "id", "name", "count"]
        keys += [key for key in dict.fromkeys(key for item in items for key in item) if key not in keys]
        super().__init__("bill", {key: [item.get(key) for item in items] for key in keys})

    def to_json(self) -> str:
        """topsim.bom/1, as `topsim topo bom --format json` prints it: sums are there, too."""
        return self._text

    def to_dict(self) -> Dict[str, Any]:
        """The same as a dict."""
        return json.loads(self._text)

    def to_csv(self) -> str:
        """As `topsim topo bom --format csv` prints it."""
        return self._csv

    def __str__(self) -> str:
        return self._table.rstrip()

    def __reduce__(self):
        return Bill, (self._text, self._csv, self._table)


def _restore_topology(text: str, origin: Tuple[Optional[Scenario], str]) -> "Topology":
    topology = Topology.__new__(Topology)
    topology._core = _core.Topology.parse(text)
    topology._scenario, topology._name = origin
    return topology


class Topology:
    """A cluster: typed devices, and one link a direction of every cable.

    From a scenario (path, name, dict, Scenario), a topology file, or a node of the catalogue ("dgx-h100").
    Raises ConfigError. Immutable; pickles as its native JSON.
    """

    def __init__(self, source: Source, set: Changes = None, **changes: Any) -> None:
        self._scenario: Optional[Scenario] = None  # with quotes and running costs
        self._name = ""
        if isinstance(source, (Scenario, Mapping)):
            self._scenario = _scenario(source, set, changes)
            self._core = _core.Topology.of_scenario(self._scenario._core)
            return
        if not isinstance(source, (str, bytes, os.PathLike)):
            raise TypeError("a topology is a path, a name, a dict or a topsim.Scenario; found "
                            f"{type(source).__name__}")
        self._name = path_text(source)
        self._core = _core.Topology.load(self._name, _assignments(set) + _assignments(changes))
        try:
            self._scenario = _scenario(self._name, set, changes)
        except ConfigError:
            pass  # a node of the catalogue, or a file of devices

    @classmethod
    def load(cls, source: Union[str, "os.PathLike[str]"]) -> "Topology":
        """The same as Topology(source); raises ConfigError."""
        return cls(source)

    @property
    def nodes(self) -> int:
        """Number of boxes."""
        return self._core.nodes

    @property
    def accelerators(self) -> int:
        """Number of accelerators."""
        return self._core.accelerators

    @property
    def devices(self) -> Table:
        """name, kind, model (catalogue id), node (None: part of the fabric), count (equal ones it stands for)."""
        return Table._of_columns("devices", self._core.devices())

    @property
    def links(self) -> Table:
        """from, to, kind, type, count, capacity (usable bytes/s), line_rate (bytes/s on the wire), latency (seconds); one
        row a direction.
        """
        return Table._of_columns("links", self._core.links())

    def draw(self, file: Union[str, "os.PathLike[str]", None] = None, *, most_nodes: int = 8,
             most_switches: int = 32) -> Svg:
        """A drawing as SVG, shown by notebooks and written to `file` when given: as SVG, or for Graphviz where the name
        ends in .dot or .gv. More than `most_nodes` nodes, or `most_switches` switches of a tier, are folded into one of
        each kind.
        """
        svg = Svg(self._core.to_svg(whole("most_nodes", most_nodes, 1), whole("most_switches", most_switches, 1)))
        if file is None:
            return svg
        ending = os.path.splitext(os.fspath(file))[1].lower()
        if ending not in ("", ".svg", ".dot", ".gv"):
            raise ValueError(f"no topology is drawn as {ending}: end the name in .svg, or in .dot for Graphviz, which makes"
                             " other formats of it (dot -Tpng)")
        if ending in (".dot", ".gv"):
            write_text(file, self.to_dot())
        else:
            svg.save(file)
        return svg

    def to_networkx(self) -> Any:
        """A networkx.MultiDiGraph: nodes by name with kind, model, node, count; an edge each link with its columns.
        Needs networkx (python3-networkx).
        """
        try:
            import networkx
        except ImportError as error:
            raise ImportError("to_networkx() needs networkx: apt install python3-networkx, or pip install networkx") \
                from error
        graph = networkx.MultiDiGraph()
        for device in self.devices:
            graph.add_node(device.pop("name"), **device)
        for link in self.links:
            graph.add_edge(link.pop("from"), link.pop("to"), **link)
        return graph

    def check(self) -> List[Dict[str, str]]:
        """What an owner should know: severity, message, where; errors first."""
        return self._core.check()

    def bom(self) -> Bill:
        """What has to be bought for it, as `topsim topo bom` counts it: prices in USD, of the catalogue or the
        scenario's quotes. Raises ConfigError for quotes of parts that nobody knows."""
        return Bill(*self._core.bill(None if self._scenario is None else self._scenario._core, self._name))

    def save(self, file: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the native file; OSError where it cannot be written."""
        write_text(file, self.to_json())

    def to_json(self) -> str:
        """The native file, which a scenario's topology.file and Topology() read."""
        return self._core.to_json()

    def to_dict(self) -> Dict[str, Any]:
        """The native file as a dict: devices, links, link_types."""
        return json.loads(self.to_json())

    def to_dot(self) -> str:
        """Graphviz."""
        return self._core.to_dot()

    def to_nccl_xml(self, node: int = 0) -> str:
        """NCCL's topology file of one box (NCCL_TOPO_FILE)."""
        return self._core.to_nccl_xml(whole("node", node, 0))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Topology) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __reduce__(self):
        return _restore_topology, (self.to_json(), (self._scenario, self._name))

    def __str__(self) -> str:
        """A tree, equal parts once."""
        return self._core.to_tree().rstrip()

    def __repr__(self) -> str:
        parts = ", ".join(f"{n} {thing}{'s' * (n != 1)}"
                          for n, thing in ((self.accelerators, "accelerator"), (self.nodes, "node")))
        return f"<Topology: {parts}, fabric {self._core.fabric_kind}>"

    def _repr_html_(self) -> str:
        return str(self.draw())

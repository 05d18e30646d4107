"""Clusters as devices and links, to look at and to hand to other libraries."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Mapping, Union

from . import _core
from .files import write_text
from .scenario import Changes, Scenario, Source, _scenario
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


def _restore_topology(text: str) -> "Topology":
    topology = Topology.__new__(Topology)
    topology._core = _core.Topology.parse(text)
    return topology


class Topology:
    """A cluster: typed devices, and one link a direction of every cable.

    From a scenario (path, name, dict, Scenario), a topology file, or a node of the catalogue ("dgx-h100").
    Raises ConfigError. Immutable; pickles as its native JSON.
    """

    def __init__(self, source: Source, set: Changes = None, **changes: Any) -> None:
        if isinstance(source, (Scenario, Mapping)):
            self._core = _core.Topology.of_scenario(_scenario(source, set, changes)._core)
        else:
            from .scenario import _assignments
            self._core = _core.Topology.load(os.fspath(source), _assignments(set) + _assignments(changes))

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
        svg = Svg(self._core.to_svg(most_nodes, most_switches))
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
        return self._core.to_nccl_xml(node)

    def __reduce__(self):
        return _restore_topology, (self.to_json(),)

    def __str__(self) -> str:
        """A tree, equal parts once."""
        return self._core.to_tree().rstrip()

    def __repr__(self) -> str:
        parts = ", ".join(f"{n} {thing}{'s' * (n != 1)}"
                          for n, thing in ((self.accelerators, "accelerator"), (self.nodes, "node")))
        return f"<Topology: {parts}, fabric {self._core.fabric_kind}>"

    def _repr_html_(self) -> str:
        return str(self.draw())

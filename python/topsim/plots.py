"""Pictures with matplotlib, which only they need."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

# The colours of the report page (sim/report/html/charts.js; a test compares them): work is blue, waits are the warm and grey
# tones of Okabe and Ito's colour-blind-safe palette (https://jfly.uni-koeln.de/color/), moved apart in lightness.
_BLUES = {"forward": "#8ec5ef", "backward": "#3d8fd1", "weight_gradient": "#2a6aa8", "recompute": "#9fb7e8",
          "optimizer": "#1d4470", "gradient_sync": "#5f7fbf", "parameter_sync": "#7896cf", "transfer": "#a9c3d9",
          "busy": "#3d8fd1"}
_WAITS = {"pipeline_bubble": "#9aa3ad", "tensor_parallel": "#e69f00", "data_parallel": "#d55e00",
          "pipeline_transfer": "#cc79a7", "context_parallel": "#8c6bb1", "expert_parallel": "#009e73",
          "straggler": "#f0e442", "host": "#7a5c3e", "offload": "#56b4a9"}
_OTHER = "#c9ced4"


def _colour(name: str) -> str:
    return _BLUES.get(name) or _WAITS.get(name, _OTHER)


def _axes(ax: Any, height: float) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plots need matplotlib: apt install python3-matplotlib, or pip install matplotlib") from error
    return pyplot.subplots(figsize=(10, height), constrained_layout=True)[1]


def _label(name: Any, count: int) -> str:
    return f"{name} (x{count})" if count > 1 else str(name)


def plot_timeline(result: Any, ranks: int, step: Optional[int], ax: Any) -> Any:
    """Compute streams only: what the others do shows as the idle time it causes."""
    timeline, idle = result.timeline, result.idle
    if step is None:
        step = max(timeline["step"], default=0)
    rows: Dict[str, int] = {}
    bars: Dict[Tuple[str, int], List[Tuple[float, float]]] = {}

    def add(rank: int, count: int, name: str, begin: float, end: float) -> None:
        label = _label(f"rank {rank}", count)
        if label in rows or len(rows) < ranks:
            bars.setdefault((name, rows.setdefault(label, len(rows))), []).append((begin, end - begin))

    first, last = float("inf"), 0.0
    for rank, count, stream, phase, number, begin, end in zip(*(timeline[key] for key in (
            "rank", "count", "stream", "phase", "step", "begin", "end"))):
        if number == step:
            first, last = min(first, begin), max(last, end)
            if stream == "compute":
                add(rank, count, phase, begin, end)
    for rank, count, reason, begin, end in zip(*(idle[key] for key in ("rank", "count", "reason", "begin", "end"))):
        if begin < last and end > first:
            add(rank, count, reason, begin, end)
    ax = _axes(ax, max(3.0, 1.5 + 0.35 * len(rows)))
    from matplotlib.patches import Patch
    names: Dict[str, None] = {}
    for (name, row), pieces in bars.items():
        names.setdefault(name)
        ax.broken_barh(pieces, (row - 0.4, 0.8), color=_colour(name), linewidth=0)
    ax.set_yticks(range(len(rows)))
    ax.set_yticklabels(list(rows))
    ax.invert_yaxis()
    if bars:
        ax.set_xlim(first, last)
    ax.set_xlabel("seconds from the beginning of the run")
    ax.set_title(f"{result.name}: step {step}")
    ax.legend(handles=[Patch(color=_colour(name), label=name.replace("_", " ")) for name in sorted(
        names, key=lambda name: (name in _WAITS, name))], loc="upper left", bbox_to_anchor=(1, 1))
    return ax


def plot_links(result: Any, links: int, ax: Any) -> Any:
    """Mean and peak utilisation of the busiest links."""
    rows = result.links[:links]
    ax = _axes(ax, 1.5 + 0.3 * len(rows))
    places = range(len(rows))
    ax.barh(places, [row["peak_utilization"] for row in rows], color="#CCCCCC", label="peak")
    ax.barh(places, [row["utilization"] for row in rows], color=_BLUES["busy"], height=0.5, label="mean")
    ax.set_yticks(places)
    ax.set_yticklabels([_label(row["id"], row["count"]) for row in rows])
    ax.invert_yaxis()
    ax.set_xlim(0, 1)
    ax.set_xlabel("share of the capacity")
    ax.set_title(f"{result.name}: busiest links")
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return ax


def plot_idle(result: Any, ax: Any) -> Any:
    """Seconds of a step by what an accelerator does in them."""
    parts = {"busy": result.busy_seconds, **result.idle_seconds}
    parts = {name: seconds for name, seconds in parts.items() if seconds > 0}
    ax = _axes(ax, 1.5 + 0.3 * len(parts))
    ax.barh(range(len(parts)), list(parts.values()), color=[_colour(name) for name in parts])
    ax.set_yticks(range(len(parts)))
    ax.set_yticklabels([name.replace("_", " ") for name in parts])
    ax.invert_yaxis()
    ax.set_xlabel("seconds a step, mean over accelerators")
    ax.set_title(f"{result.name}: where the step goes")
    return ax


def plot_sweep(sweep: Any, x: str, y: str, ax: Any) -> Any:
    """A figure over one path that was varied; a line for each combination of the others."""
    rows = [row for row in sweep if row["status"] == "ok" and row[y] is not None]
    ax = _axes(ax, 4)
    numbers = all(isinstance(row[x], (int, float)) for row in rows)
    values = list(dict.fromkeys(row[x] if numbers else str(row[x]) for row in rows))
    # One line for each combination of what else was varied.
    lines: Dict[Any, List[Any]] = {}
    for row in rows:
        others = ", ".join(f"{path.rsplit('.', 1)[-1]} {row[path]}" for path in sweep.paths if path != x)
        lines.setdefault(others, []).append((row[x] if numbers else values.index(str(row[x])), row[y]))
    for name, points in lines.items():
        ax.plot(*zip(*sorted(points)), marker="o", label=name)
    if not numbers:
        ax.set_xticks(range(len(values)))
        ax.set_xticklabels(values)
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    if len(lines) > 1:
        ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return ax

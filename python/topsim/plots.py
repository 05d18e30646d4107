"""Pictures with matplotlib, which only they need."""

from __future__ import annotations

from typing import Any

# Colour-blind-safe (Okabe and Ito, https://jfly.uni-koeln.de/color/); idle time is always grey to black.
_COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#8C6BB1", "#4D4D4D"]


def _axes(ax: Any, height: float) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plots need matplotlib: apt install python3-matplotlib, or pip install matplotlib") from error
    return pyplot.subplots(figsize=(10, height), constrained_layout=True)[1]


def plot_timeline(result: Any, ranks: int, ax: Any) -> Any:
    """Compute streams only: what the others do shows as the idle time it causes."""
    busy: dict = {}
    labels: list = []
    timeline, idle = result.timeline, result.idle
    for rank, count, stream, phase, begin, end in zip(*(timeline[key] for key in (
            "rank", "count", "stream", "phase", "begin", "end"))):
        label = f"rank {rank}" + (f" (x{count})" if count > 1 else "")
        if label not in labels:
            if len(labels) == ranks:
                continue
            labels.append(label)
        if stream == "compute":
            busy.setdefault(phase, {}).setdefault(label, []).append((begin, end - begin))
    ax = _axes(ax, 1.5 + 0.35 * len(labels))
    for number, (phase, rows) in enumerate(busy.items()):
        for label, bars in rows.items():
            ax.broken_barh(bars, (labels.index(label) - 0.4, 0.8), color=_COLOURS[number % len(_COLOURS)], linewidth=0)
        ax.plot([], [], color=_COLOURS[number % len(_COLOURS)], linewidth=6, label=phase)
    waits: dict = {}
    for rank, count, reason, begin, end in zip(*(idle[key] for key in ("rank", "count", "reason", "begin", "end"))):
        label = f"rank {rank}" + (f" (x{count})" if count > 1 else "")
        if label in labels:
            waits.setdefault(reason, {}).setdefault(label, []).append((begin, end - begin))
    hatches = ["//", "\\\\", "xx", "..", "--", "||", "++", "oo", "**"]
    for number, (reason, rows) in enumerate(waits.items()):
        hatch = hatches[number % len(hatches)]
        for label, bars in rows.items():
            ax.broken_barh(bars, (labels.index(label) - 0.4, 0.8), facecolor="#EEEEEE", edgecolor="#999999",
                           hatch=hatch, linewidth=0)
        ax.bar([0], [0], facecolor="#EEEEEE", edgecolor="#999999", hatch=hatch, label=f"idle: {reason}")
    ax.set_yticks(range(len(labels)))
    ax.set_yticklabels(labels)
    ax.invert_yaxis()
    ax.set_xlabel("seconds from the beginning of the run")
    ax.set_title(result.headline)
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return ax


def plot_links(result: Any, links: int, ax: Any) -> Any:
    rows = result.links[:links]
    ax = _axes(ax, 1.5 + 0.3 * len(rows))
    labels = [f"{row['id']}" + (f" (x{row['count']})" if row["count"] > 1 else "") for row in rows]
    places = range(len(rows))
    ax.barh(places, [row["peak_utilization"] for row in rows], color="#CCCCCC", label="peak")
    ax.barh(places, [row["utilization"] for row in rows], color=_COLOURS[0], height=0.5, label="mean")
    ax.set_yticks(places)
    ax.set_yticklabels(labels)
    ax.invert_yaxis()
    ax.set_xlim(0, 1)
    ax.set_xlabel("share of the capacity")
    ax.set_title(f"{result.name}: busiest links")
    ax.legend(loc="lower right")
    return ax


def plot_idle(result: Any, ax: Any) -> Any:
    parts = {"busy": result.busy_seconds, **result.idle_seconds}
    parts = {name: seconds for name, seconds in parts.items() if seconds > 0}
    ax = _axes(ax, 1.5 + 0.3 * len(parts))
    colours = [_COLOURS[2] if name == "busy" else "#999999" for name in parts]
    ax.barh(range(len(parts)), list(parts.values()), color=colours)
    ax.set_yticks(range(len(parts)))
    ax.set_yticklabels([name.replace("_", " ") for name in parts])
    ax.invert_yaxis()
    ax.set_xlabel("seconds a step, mean over accelerators")
    ax.set_title(f"{result.name}: where the step goes")
    return ax

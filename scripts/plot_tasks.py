#!/usr/bin/env python3
"""Draws what esker-bench-tasks has measured: a picture a figure.

usage: plot_tasks.py OUT_FOLDER REPORT.json...     reports of one device; each may have some of the figures
exit status: 0; 1 = a report cannot be read or matplotlib is missing; 2 = usage
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from study.plots import MARKERS, NoMatplotlib, load_matplotlib, new_figure

Case = dict[str, Any]


def rates_of_sides(axes: Any, case: Case) -> None:
    """Work a second of each side, and the range of its runs."""
    sides = case["sides"]
    unit = next(unit for unit in ("tasks", "words", "pixels", "FLOP") if unit in case)
    rates = [side[f"{unit}_per_s"] for side in sides]
    low = [rate - case[unit] / side["highest"] for rate, side in zip(rates, sides)]
    high = [case[unit] / side["lowest"] - rate for rate, side in zip(rates, sides)]
    axes.errorbar(rates, [side["name"] for side in sides], xerr=[low, high], fmt="o", color="#0072b2")
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel(f"{unit} a second")


def speedups(axes: Any, cases: list[Case]) -> None:
    for marker, case in zip(MARKERS, cases):
        axes.plot([s["processors"] for s in case["sides"]], [s["speedup"] for s in case["sides"]],
                  marker=marker, label=case["problem"])
    most = max(side["processors"] for case in cases for side in case["sides"])
    axes.plot([1, most], [1, most], color="#999999", linestyle="--", label="linear")
    axes.set(xscale="log", yscale="log", xlabel="processors", ylabel="speed-up")


def widths(axes: Any, cases: list[Case]) -> None:
    for marker, case in zip(MARKERS, cases):
        axes.plot([int(s["name"]) for s in case["sides"]], [s["tasks_per_s"] for s in case["sides"]],
                  marker=marker, label=case["problem"])
    axes.set(xscale="log", xlabel="capacity of the channel, elements", ylabel="tasks a second")


def memory(axes: Any, cases: list[Case]) -> None:
    """Sizes at which no run came to its end have no point."""
    for marker, case in zip(MARKERS, cases):
        sizes = [size for size in case["sizes"] if "median" in size]
        axes.plot([s["memory_bytes"] for s in sizes], [s["median"] for s in sizes],
                  marker=marker, label=case["problem"])
    axes.set(xscale="log", yscale="log", xlabel="memory_bytes", ylabel="seconds")


def shares(axes: Any, cases: list[Case]) -> None:
    """Of the time of all domains: without work, in the scheduler, in tasks."""
    sides = [case["sides"][0] for case in cases]
    names = [f"{case['problem']} {side['name']}" for case, side in zip(cases, sides)]
    left = [0.0] * len(sides)
    for share, label, color in (("idle_share", "without work", "#e69f00"), ("scheduler_share", "scheduler", "#0072b2"),
                                ("task_share", "tasks", "#999999")):
        width = [100 * side[share] for side in sides]
        axes.barh(names, width, left=left, color=color, label=label)
        left = [a + b for a, b in zip(left, width)]
    axes.invert_yaxis()
    axes.set_xlabel("time of all domains, %")


CURVES: dict[str, Callable[[Any, list[Case]], None]] = {
    "4-13": speedups, "4-16": widths, "memory": memory, "overhead": shares}


def draw(name: str, cases: list[Case]) -> Any:
    if name in CURVES:
        figure, axes = new_figure(1, 1, 6, 4)
        CURVES[name](axes[0], cases)
        axes[0].legend()
    else:
        figure, axes = new_figure(1, len(cases), 7, 2)
        for place, case in zip(axes, cases):
            rates_of_sides(place, case)
            place.set_title(case["problem"])
    return figure


def read(file: str) -> Any:
    """Raises OSError, or ValueError for what is no report."""
    try:
        report = json.loads(Path(file).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None
    if not isinstance(report, dict) or not report.get("figures"):
        raise ValueError(f"{file}: it has no figures, which esker-bench-tasks writes with --json")
    return report


def main(arguments: list[str]) -> int:
    if len(arguments) < 2 or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    try:
        reports = [read(file) for file in arguments[1:]]
        load_matplotlib()
        folder.mkdir(parents=True, exist_ok=True)
    except (NoMatplotlib, OSError, ValueError) as error:
        print(f"plot_tasks: {error}", file=sys.stderr)
        return 1
    for report in reports:
        for name, taken in report["figures"].items():
            if name == "stop" or "error" in taken:
                print(f"plot_tasks: {name}: {taken.get('error', 'has no picture')}", file=sys.stderr)
                continue
            figure = draw(name, taken["cases"])
            figure.suptitle(f"{name}: {report['device']}, commit {report['commit']}")
            figure.savefig(folder / f"tasks-{name}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

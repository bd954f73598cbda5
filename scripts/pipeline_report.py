#!/usr/bin/env python3
"""Draws a pipeline with the figures of its run: what its stages did, what they waited for, how full its topics were.

usage: pipeline_report.py REPORT.json [-o PICTURE.svg]     without -o to standard output
  REPORT.json: the object that esker-pipe-* write with --json, or a report's json(); - is standard input
exit status: 0; 1 = the report cannot be read, or Graphviz's dot is missing; 2 = usage
"""

import argparse
import html
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

Stage = dict[str, Any]
Topic = dict[str, Any]

# Okabe and Ito's colours, which the colour-blind tell apart.
BUSY, BLOCKED, STARVED, REST, HOLDS_UP = "#0072b2", "#e69f00", "#bbbbbb", "#ffffff", "#d55e00"
SIDES = {"host": "#f5f5f5", "device": "#e3f0e3"}
BAR_POINTS = 130


class Wrong(Exception):
    """The report cannot be drawn."""


def text(value: Any) -> str:
    return html.escape(str(value))


def number(value: float) -> str:
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit} "
    return f"{value:.3g} "


def duration(microseconds: float) -> str:
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:.3g} {unit}"
    return f"{microseconds:.3g} µs"


def parts(stage: Stage, seconds: float) -> list[float]:
    """Of its teams' time in the run: working, without room, without input, and the rest."""
    times = [stage[f"{what}_ns"] for what in ("busy", "blocked", "starved")]
    total = max(sum(times), stage["teams"] * seconds * 1e9)
    shares = [time / total if total else 0.0 for time in times]
    return [*shares, 1 - sum(shares)]


def stage_that_holds_up(stages: list[Stage], seconds: float) -> Stage | None:
    """The one whose teams work for the largest part of the run: the others wait for it, in the end."""
    return max(stages, key=lambda stage: parts(stage, seconds)[0], default=None)


def bar(shares: list[float]) -> str:
    widths = [round(share * BAR_POINTS) for share in shares]
    cells = "".join(f'<td bgcolor="{color}" width="{width}" height="8" fixedsize="true"></td>'
                    for width, color in zip(widths, (BUSY, BLOCKED, STARVED, REST)) if width > 0)
    return (f'<table border="0" cellborder="0" cellspacing="0" cellpadding="0" fixedsize="true" '
            f'width="{sum(widths)}" height="8"><tr>{cells}</tr></table>')


def causes(names: list[str], times: list[int], verb: str) -> list[str]:
    """Of several topics, which one it was."""
    total = sum(times)
    if len(names) < 2 or total == 0:
        return []
    return [f"{verb} {text(name)} {100 * time / total:.0f} %" for name, time in zip(names, times) if time > total / 100]


def stage_label(stage: Stage, seconds: float, holds_up: bool) -> str:
    shares = parts(stage, seconds)
    percent = [f"{100 * share:.0f} %" for share in shares]
    teams = f"{stage['teams']} team{'' if stage['teams'] == 1 else 's'}"
    counted = "calls" if stage["kind"] == "source" else "frames"
    lines = [f"<b>{text(stage['name'])}</b>",
             f'<font point-size="9">{stage["kind"]} on the {stage["on"]}, {teams}</font>',
             f'<font point-size="9">{stage["frames"]:,} {counted}'
             + (f", {stage['skipped']:,} skipped" if stage["skipped"] else "") + "</font>",
             bar(shares),
             f'<font point-size="9">busy {percent[0]}, blocked {percent[1]}, starved {percent[2]}</font>']
    why = causes(stage["outputs"], stage["blocked_ns_by_output"], "blocked by") if shares[1] > 0.01 else []
    why += causes(stage["inputs"], stage["starved_ns_by_input"], "starved of") if shares[2] > 0.01 else []
    lines += [f'<font point-size="8">{line}</font>' for line in why]
    if holds_up:
        lines.append(f'<font point-size="9" color="{HOLDS_UP}"><b>holds the others up</b></font>')
    rows = "".join(f"<tr><td>{line}</td></tr>" for line in lines if line)
    return f'<<table border="0" cellborder="0" cellspacing="1" cellpadding="1">{rows}</table>>'


def topic_label(topic: Topic, seconds: float) -> str:
    lines = [f"<b>{text(topic['name'])}</b>", f"{topic['frames']:,} frames"]
    if topic["bytes"] is not None and seconds > 0:
        lines.append(f"{topic['bytes'] / seconds / 1e9:.3g} GB/s")
    fill = topic["fill"]
    if fill is not None:
        lines.append(f"fill {fill['mean']:.1f}, at most {fill['highest']}, of {topic['capacity']}")
    if topic["crosses"]:
        lines.append(f"crosses the bus: {topic['crossing']}")
    for what in ("dropped", "lost"):
        if topic[what]:
            lines.append(f'<font color="{HOLDS_UP}">{topic[what]:,} {what}</font>')
    # Of the edge's label: one line each, and room to the edge.
    rows = "".join(f'<tr><td align="left">{line}</td></tr>' for line in lines)
    return f'<<table border="0" cellborder="0" cellspacing="0" cellpadding="1">{rows}</table>>'


def title(report: dict[str, Any], pipeline: dict[str, Any]) -> str:
    first = [text(report.get("app", "pipeline"))]
    if "device" in report:
        first.append(f"on {text(report['device'])}")
    figures = []
    if "rate_per_s" in report:
        figures.append(f"{number(report['rate_per_s'])}{text(report['work_unit'])}/s")
        figures.append(f"{report['gb_per_s']:.3g} GB/s each way")
    figures.append(f"last run {duration(pipeline['seconds'] * 1e6)}")
    for stage in pipeline["stages"]:
        if (latency := stage["latency"]) is not None:
            figures.append(f"latency to {text(stage['name'])} p50 {duration(latency['p50'])}, p99 "
                           f"{duration(latency['p99'])}")
    if pipeline["failed_frames"]:
        figures.append(f"{pipeline['failed_frames']:,} frames failed")
    legend = "".join(f'<td width="14" height="8" fixedsize="true" border="1" color="#bbbbbb" bgcolor="{color}"></td>'
                     f'<td><font point-size="9">{name}</font></td>'
                     for name, color in (("busy", BUSY), ("blocked: no room in an output", BLOCKED),
                                         ("starved: no input", STARVED),
                                         ("has ended, or waits for a core", REST)))
    return (f'<<table border="0" cellborder="0" cellspacing="3" cellpadding="1">'
            f'<tr><td><font point-size="15"><b>{" ".join(first)}</b></font></td></tr>'
            f'<tr><td><font point-size="11">{", ".join(figures)}</font></td></tr>'
            f'<tr><td><table border="0" cellborder="0" cellspacing="4" cellpadding="0"><tr>{legend}</tr></table>'
            f'</td></tr></table>>')


def endpoints(stages: list[Stage], which: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for place, stage in enumerate(stages):
        for name in stage[which]:
            found.setdefault(name, []).append(place)
    return found


def drawing(report: dict[str, Any]) -> str:
    """In Graphviz's language."""
    pipeline = report.get("pipeline", report)
    stages, topics = pipeline["stages"], pipeline["topics"]
    names = [topic["name"] for topic in topics]
    if len(set(names)) != len(names):
        raise Wrong("two topics have one name, so their stages cannot be told apart")
    seconds = pipeline["seconds"]
    slowest = stage_that_holds_up(stages, seconds)
    lines = ["digraph pipeline {", f"  label={title(report, pipeline)};", "  labelloc=t; rankdir=LR; nodesep=0.5;",
             '  ranksep=0.6; pad=0.3; fontname="Helvetica"; bgcolor="white";',
             '  node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=12];',
             '  edge [fontname="Helvetica", fontsize=9, color="#555555"];']
    for place, stage in enumerate(stages):
        holds_up = stage is slowest
        frame = f'color="{HOLDS_UP}", penwidth=2.5' if holds_up else 'color="#555555"'
        label = stage_label(stage, seconds, holds_up)
        lines.append(f'  stage{place} [label={label}, fillcolor="{SIDES[stage["side"]]}", {frame}];')
    producers, subscribers = endpoints(stages, "outputs"), endpoints(stages, "inputs")
    for place, topic in enumerate(topics):
        sources, targets = producers.get(topic["name"], []), subscribers.get(topic["name"], [])
        style = ', style=dashed' if topic["crosses"] else ""
        label = topic_label(topic, seconds)
        if len(sources) == 1 and len(targets) == 1:
            lines.append(f"  stage{sources[0]} -> stage{targets[0]} [label={label}{style}];")
        elif sources or targets:  # it has its label once, where its edges meet
            lines.append(f"  topic{place} [label={label}, shape=plain, style=\"\", fontsize=9];")
            lines += [f"  stage{source} -> topic{place} [arrowhead=none{style}];" for source in sources]
            lines += [f"  topic{place} -> stage{target} [{style.lstrip(', ')}];" for target in targets]
    return "\n".join([*lines, "}"])


def svg(dot: str) -> bytes:
    try:
        run = subprocess.run(["dot", "-Tsvg"], input=dot.encode(), capture_output=True, check=False)
    except FileNotFoundError:
        raise Wrong("Graphviz's dot is missing: install the package graphviz (scripts/bootstrap.sh --all)") from None
    if run.returncode != 0:
        raise Wrong(f"dot: {run.stderr.decode(errors='replace').strip()}")
    return run.stdout


def read(file: str) -> dict[str, Any]:
    report = json.loads(sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8"))
    pipeline = report.get("pipeline", report) if isinstance(report, dict) else None
    if not isinstance(pipeline, dict) or "stages" not in pipeline:
        raise Wrong("it has no pipeline: programs write one with --scheme esker --json FILE")
    return report


def main() -> int:
    parser = argparse.ArgumentParser(usage=__doc__.strip().split("usage: ")[1], add_help=False)
    parser.add_argument("report")
    parser.add_argument("-o", dest="picture")
    arguments = parser.parse_args()
    try:
        picture = svg(drawing(read(arguments.report)))
        if arguments.picture is None:
            sys.stdout.buffer.write(picture)
        else:
            Path(arguments.picture).write_bytes(picture)
    except KeyError as error:
        print(f"pipeline_report: {arguments.report}: the report has no {error}", file=sys.stderr)
        return 1
    except (OSError, ValueError, Wrong) as error:
        print(f"pipeline_report: {arguments.report}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

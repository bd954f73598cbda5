"""What a study leaves: results.json, results.csv, plots/*.png and *.svg, and report.html, which needs nothing else."""

import base64
import csv
import html
import io
import json
import shlex
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .analysis import MISSING, Analysis, Result, Spread, geometric_mean
from .plan import DEFAULT_STYLE, STRONG, STYLES, WEAK, title_of
from .plots import Plot, all_plots, most_pes, stages_of
from .store import VERIFIED, write_whole

# Table 5-4, Gravel at eight nodes: remote accesses, bytes of an average message. Names are the plan's labels.
THESIS = {"GUPS": (0.875, 65440), "PR-1": (0.377, 64611), "PR-2": (0.165, 15700), "SSSP-1": (0.300, 1563),
          "SSSP-2": (0.162, 57916), "color-1": (0.367, 27258), "color-2": (0.165, 9463), "kmeans": (0.875, 5656),
          "mer": (0.875, 64822)}

PROJECTION = ("Projected: one PE runs 1/N of the work that N nodes would share, with everything that they would keep "
              "in memory, and what leaves it comes back to it (thesis, section 3.2.3, Figure 3-8). It sends and "
              "receives as much as one of N nodes would, but over no network, so the network's latency, bandwidth and "
              "contention are not in these figures.")

STYLE_SHEET = """
body { font: 15px/1.45 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 76rem; margin: 2rem auto;
  padding: 0 1.5rem; }
h1 { margin-bottom: .2rem; } h2 { margin-top: 2.4rem; border-bottom: 1px solid #ccc; }
.quiet { color: #555; } figure { margin: 1.2rem 0; } figcaption { color: #444; max-width: 60rem; }
img { max-width: 100%; height: auto; border: 1px solid #e4e4e4; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: 13px; margin: .8rem 0; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #e4e4e4; text-align: left; vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr.bad td { background: #fdecea; } tr.missing td { background: #f4f4f4; color: #555; }
tr.projected td { background: #fdf8e4; }
.box { border-left: 4px solid #c77700; background: #fff7e6; padding: .6rem 1rem; margin: 1rem 0; }
.box.bad { border-color: #b3261e; background: #fdecea; }
pre { background: #f6f6f6; padding: .6rem; overflow-x: auto; font-size: 12px; max-height: 24rem; }
nav a { margin-right: 1rem; }
"""


# --- Values as text.

def number(value: float | None, form: str = ".4g") -> str:
    return "" if value is None else format(value, form)


def spread(value: Spread | None, form: str = ".3g") -> str:
    """Median, lowest and highest; the median alone where there is no spread."""
    if value is None:
        return ""
    if value.low == value.high:
        return format(value.median, form)
    return f"{value.median:{form}} ({value.low:{form}} to {value.high:{form}})"


def count_of(n: int, what: str) -> str:
    return f"{n} {what}" + ("" if n == 1 else "s")


def spread_columns(name: str, value: Spread | None) -> dict[str, Any]:
    return {f"{name}_median": value and value.median, f"{name}_lowest": value and value.low,
            f"{name}_highest": value and value.high}


def row_of(r: Result) -> dict[str, Any]:
    """A point as a row of results.csv. What it has no figure for is empty."""
    figures = r.figures
    report = figures.report if figures else {}
    return {
        "label": r.experiment.label, "app": r.point.app, "scaling": r.experiment.scaling, "style": r.point.style,
        "option": r.experiment.sweep, "value": r.value, "pes": r.point.pes, "nodes": r.point.nodes,
        "projected": r.projected, "status": r.status, "reason": r.reason, "rounds_asked": r.rounds,
        "rounds": len(r.records), **spread_columns("seconds", r.seconds),
        "work": figures.work if figures else None,
        "work_unit": report.get("work_unit"), **spread_columns("rate_per_s", r.rate),
        **spread_columns("speedup", r.speedup), **spread_columns("efficiency", r.efficiency),
        "no_speedup": r.no_speedup,
        **{name: r.mean_of(name) if figures else None for name in (
            "messages_local", "messages_remote", "remote_fraction", "buffers_sent", "average_buffer_bytes")},
        "backend": report.get("backend"), "device": report.get("device"), "transport": report.get("transport"),
        "version": report.get("version"), "commit": report.get("commit"),
        "arguments": shlex.join(r.point.arguments),
    }


def csv_text(analysis: Analysis) -> str:
    rows = [row_of(r) for r in analysis.results]
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def json_text(analysis: Analysis) -> str:
    comparisons = [{"label": c.label, "scaling": c.scaling, "pes": c.pes,
                    "speed_relative_to_gravel": {s: v and asdict(v) for s, v in c.relative.items()}}
                   for c in analysis.comparisons]
    return json.dumps({"name": analysis.plan.name, "title": analysis.plan.title, "warnings": analysis.warnings,
                       "points": [row_of(r) for r in analysis.results], "styles": comparisons,
                       "runs": analysis.records, "plan": analysis.plan.source}, indent=1) + "\n"


# --- HTML.

def text(value: Any) -> str:
    return html.escape(str(value))


def table(columns: list[str], rows: Iterable[tuple[str, list[str]]], numeric: set[str] | None = None) -> str:
    """`rows` are a class and the cells, which are text; columns in `numeric` stand to the right."""
    right = [' class="number"' if numeric and c in numeric else "" for c in columns]
    head = "".join(f"<th{r}>{text(c)}</th>" for c, r in zip(columns, right))
    body = "".join(f'<tr class="{kind}">' + "".join(f"<td{r}>{text(c)}</td>" for c, r in zip(cells, right)) + "</tr>\n"
                   for kind, cells in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>\n'


def kind_of(r: Result) -> str:
    if r.verified:
        return "projected" if r.projected else ""
    return "missing" if r.status == MISSING else "bad"


def figure(plot: Plot) -> str:
    data = base64.b64encode(plot.render("svg")).decode()
    return (f'<figure id="{text(plot.name)}"><img alt="{text(plot.title)}" src="data:image/svg+xml;base64,{data}">'
            f"<figcaption><b>{text(plot.title)}.</b> {text(plot.caption)}</figcaption></figure>\n")


def scaling_table(results: list[Result]) -> str:
    swept = any(r.experiment.sweep for r in results)
    columns = ["input", "style", *(["setting"] if swept else []), "PEs", "status", "seconds", "work", "10⁶ work/s",
               "speed-up", "efficiency"]
    rows = []
    for r in results:
        pes = f"{r.point.nodes} projected" if r.projected else str(r.point.pes)
        status = r.status if r.verified else f"{r.status}: {r.reason}" if r.reason else r.status
        if r.records and len(r.records) < r.rounds:
            status += f" ({len(r.records)} of {r.rounds} rounds)"
        setting = [f"{r.experiment.sweep} {r.value}"] if swept else []
        f = r.figures
        rows.append((kind_of(r), [
            r.experiment.label, STYLES[r.point.style], *setting, pes, status, spread(r.seconds, ".4g"),
            f"{number(f.work)} {f.report.get('work_unit', '')}" if f else "", spread(r.rate and r.rate.times(1e-6)),
            spread(r.speedup) or (f"none: {r.no_speedup}" if r.no_speedup else ""), spread(r.efficiency)]))
    return table(columns, rows, {"PEs", "seconds", "work", "10⁶ work/s", "speed-up", "efficiency"})


def mean_speedup(analysis: Analysis, scaling: str) -> str:
    """As the thesis's 5.3x: Gravel over all inputs, at the most PEs. Empty unless every input has one."""
    last = [[r for r in s.results if not r.projected][-1] for s in analysis.series
            if s.experiment.scaling == scaling and s.style == DEFAULT_STYLE and not s.experiment.sweep]
    speedups = [r.speedup.median for r in last if r.speedup]
    if len(last) < 2 or len(speedups) < len(last) or len({r.point.pes for r in last}) != 1:
        return ""
    mean = geometric_mean(speedups)
    return (f"<p>Gravel's geometric mean over {len(last)} inputs at {last[0].point.pes} PEs: <b>{mean:.3g}</b> "
            '<span class="quiet">(the thesis, at eight nodes: 5.3)</span>.</p>\n')


def style_table(analysis: Analysis) -> str:
    rows = []
    for c in analysis.comparisons:
        for style, relative in c.relative.items():
            r = c.results[style]
            why = "" if relative else "no figure" if r.verified else f"{r.status}{': ' + r.reason if r.reason else ''}"
            rows.append((kind_of(r), [c.label, c.scaling, str(c.pes), STYLES[style],
                                      spread(r.seconds, ".4g"), spread(relative) or why]))
    return table(["input", "scaling", "PEs", "style", "seconds", "speed relative to Gravel"], rows,
                 {"PEs", "seconds", "speed relative to Gravel"})


def network_table(analysis: Analysis) -> str:
    rows = []
    for s in analysis.series:
        if s.experiment.sweep or not (r := most_pes(s.results)):
            continue
        thesis = THESIS.get(s.experiment.label) if s.style == DEFAULT_STYLE else None
        messages = r.mean_of("messages_local") + r.mean_of("messages_remote")
        rows.append(("", [s.experiment.label, s.experiment.scaling, STYLES[s.style], str(r.point.pes),
                          f"{messages:,.0f}", f"{r.mean_of('remote_fraction'):.1%}",
                          f"{r.mean_of('buffers_sent'):,.0f}", f"{r.mean_of('average_buffer_bytes'):,.0f}",
                          f"{thesis[0]:.1%}" if thesis else "", f"{thesis[1]:,}" if thesis else ""]))
    columns = ["input", "scaling", "style", "PEs", "messages", "remote access frequency", "buffers sent",
               "average buffer, bytes", "thesis, 8 nodes: remote", "thesis, 8 nodes: bytes"]
    return table(columns, rows, set(columns[3:]))


def stage_table(analysis: Analysis) -> str:
    rows = []
    for s in analysis.series:
        if s.experiment.sweep or not (r := most_pes(s.results)):
            continue
        rows += [("", [s.experiment.label, s.experiment.scaling, STYLES[s.style], str(r.point.pes), name,
                       f"{h['count']:,}", number(h["p50"]), number(h["p99"]), number(h["max"]), h["unit"]])
                 for name, h in stages_of(r).items()]
    return table(["input", "scaling", "style", "PEs", "stage", "count", "p50", "p99", "max", "unit"], rows,
                 {"PEs", "count", "p50", "p99", "max"})


def problem_section(analysis: Analysis) -> str:
    bad = [r for r in analysis.records if r["status"] != VERIFIED]
    if not bad:
        return ""
    parts = [f'<h2 id="problems">Runs without a figure: {len(bad)}</h2>\n']
    for r in bad:
        parts.append(f'<div class="box bad"><b>{text(r["title"])}: {text(r["status"])}</b>, {text(r["reason"])}'
                     f'<pre>{text(shlex.join(r["command"]))}</pre>'
                     '<details open><summary>standard error</summary>'
                     f'<pre>{text(r["stderr"] or "(nothing)")}</pre></details>'
                     + (f'<details><summary>standard output</summary><pre>{text(r["stdout"])}</pre></details>'
                        if r["stdout"] else "") + "</div>\n")
    return "".join(parts)


def unique(values: Iterable[str]) -> str:
    return "; ".join(sorted(set(values))) or "unknown"


def provenance(analysis: Analysis) -> str:
    """Where the figures are from."""
    good = [r for r in analysis.records if r["status"] == VERIFIED]
    loads = [r["machine"]["load_average"] for r in analysis.records]
    lines = [("machine", unique(f"{r['machine']['host']}: {r['machine']['cores']} × {r['machine']['cpu']}"
                                for r in analysis.records)),
             ("Esker", unique(f"{r['report'].get('version')}, commit {r['report'].get('commit')}" for r in good)),
             ("device", unique(str(r["report"].get("device")) for r in good)),
             ("transport", unique(str(r["report"].get("transport")) for r in good)),
             ("measured", f"{min(r['ended'] for r in analysis.records)} to {max(r['ended'] for r in analysis.records)}"
              if analysis.records else "not yet"),
             ("load average before runs", f"{min(loads):.1f} to {max(loads):.1f}" if loads else "unknown")]
    return table(["", ""], [("", list(line)) for line in lines])


def sections(analysis: Analysis, plots: list[Plot]) -> list[tuple[str, str, str]]:
    """Identifier, title and content of those that have something to show."""
    def of(section: str) -> str:
        return "".join(figure(p) for p in plots if p.section == section)

    found = []
    for scaling, title in ((STRONG, "Strong scaling"), (WEAK, "Weak scaling")):
        results = [r for s in analysis.series for r in s.results
                   if s.experiment.scaling == scaling and not s.experiment.sweep]
        if results:
            note = f'<div class="box">{text(PROJECTION)}</div>' if any(r.projected for r in results) else ""
            found.append((scaling, title,
                          mean_speedup(analysis, scaling) + note + of(scaling) + scaling_table(results)))
    if analysis.comparisons:
        found.append(("styles", "Styles", of("styles") + style_table(analysis)))
    swept = [r for s in analysis.series for r in s.results if s.experiment.sweep]
    if swept:
        found.append(("sensitivity", "Sensitivity", of("sensitivity") + scaling_table(swept)))
    found.append(("network", "Network statistics",
                  "<p>The thesis's Table 5-4, at the most PEs that were measured and verified. Of a buffer, the bytes "
                  "that are sent.</p>" + network_table(analysis)))
    found.append(("stages", "Stages", of("stages") + stage_table(analysis)))
    return found


def html_text(analysis: Analysis, plots: list[Plot]) -> str:
    plan, states = analysis.plan, [r["status"] for r in analysis.records]
    missing = analysis.runs - len(states)
    bad = len(states) - states.count(VERIFIED)
    summary = f"{states.count(VERIFIED)} of {count_of(analysis.runs, 'run')} verified"
    summary += f", {bad} without a figure" * (bad > 0) + f", {missing} not measured yet" * (missing > 0)
    body = sections(analysis, plots)
    links = ([("problems", "Runs without a figure")] if bad else []) + [(i, t) for i, t, _ in body] + [("plan", "Plan")]
    warnings = "".join(f'<div class="box">{text(w)}</div>\n' for w in analysis.warnings)
    commands = dict.fromkeys(title_of(r.experiment, r.point, r.value) + ":\n  " + shlex.join(r.records[-1]["command"])
                             for r in analysis.results if r.records)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{text(plan.title)}</title>
<style>{STYLE_SHEET}</style>
</head>
<body>
<h1>{text(plan.title)}</h1>
<p class="quiet">Scaling study “{text(plan.name)}”, report of {time.strftime("%Y-%m-%d %H:%M")}.
<b id="summary">{text(summary)}.</b> Ratios are of medians of verified runs; in brackets the lowest and the highest.</p>
<nav>{"".join(f'<a href="#{i}">{text(t)}</a>' for i, t in links)}</nav>
{warnings}{provenance(analysis)}{problem_section(analysis)}
{"".join(f'<h2 id="{i}">{text(t)}</h2>{chr(10)}{content}' for i, t, content in body)}
<h2 id="plan">Plan</h2>
<details><summary>the plan</summary><pre>{text(json.dumps(plan.source, indent=2))}</pre></details>
<details><summary>the commands</summary><pre>{text(chr(10).join(commands))}</pre></details>
</body>
</html>
"""


def write_report(analysis: Analysis, folder: Path) -> Path:
    """Everything; the page's file. Raises NoMatplotlib, after the figures are written, and OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "results.json", json_text(analysis))
    write_whole(folder / "results.csv", csv_text(analysis))
    plots = all_plots(analysis)
    (folder / "plots").mkdir(exist_ok=True)
    for old in (folder / "plots").glob("*.*"):
        old.unlink()
    for plot in plots:
        for form in ("png", "svg"):
            write_whole(folder / "plots" / f"{plot.name}.{form}", plot.render(form))
    page = folder / "report.html"
    write_whole(page, html_text(analysis, plots))
    return page

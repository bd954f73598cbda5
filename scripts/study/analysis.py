"""What the runs of a study say: medians with their spread, speed-ups, ratios of styles. Verified runs only.

A point has figures if every run of it that has ended was verified. A speed-up has a baseline: the fewest PEs that
the plan has for that experiment, never another one because that one failed.
"""

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .plan import DEFAULT_STYLE, STRONG, STYLES, Experiment, Plan, Point, Run
from .store import VERIFIED

MISSING = "not measured"
SAME_WORK = 0.01  # strong scaling: how much the work may differ; applications round up to whole shares of a PE


@dataclass(frozen=True)
class Spread:
    """Of the repeats of all rounds: the median of the rounds' medians, the lowest and the highest of all."""

    median: float
    low: float
    high: float

    def over(self, other: "Spread") -> "Spread":
        """The ratio. Its spread is the widest that both allow."""
        return Spread(self.median / other.median, self.low / other.high, self.high / other.low)

    def times(self, factor: float) -> "Spread":
        return Spread(self.median * factor, self.low * factor, self.high * factor)


@dataclass(frozen=True)
class Figures:
    """Of a point whose runs are verified."""

    seconds: Spread
    rate: Spread  # of all nodes together
    work: float  # likewise
    report: dict[str, Any]  # of the last round


@dataclass
class Result:
    """A point of the plan, and what came of it."""

    experiment: Experiment
    point: Point
    value: str | None  # of the option that is swept
    status: str
    reason: str
    records: list[dict[str, Any]]
    rounds: int  # asked for
    figures: Figures | None = None
    speedup: Spread | None = None
    efficiency: Spread | None = None
    no_speedup: str = ""  # why there is none

    @property
    def verified(self) -> bool:
        return self.figures is not None

    @property
    def seconds(self) -> Spread | None:
        return self.figures.seconds if self.figures else None

    @property
    def rate(self) -> Spread | None:
        return self.figures.rate if self.figures else None

    @property
    def projected(self) -> bool:
        return self.point.projected_nodes is not None

    def mean_of(self, name: str) -> float:
        return statistics.fmean(r["report"][name] for r in self.records)


@dataclass(frozen=True)
class Series:
    """A line of a plot: one experiment, style and value of the swept option, from the fewest PEs to the most."""

    experiment: Experiment
    style: str
    value: str | None
    results: list[Result]


@dataclass(frozen=True)
class Comparison:
    """The styles of one experiment at one number of PEs. Speed relative to Gravel's; None where there is none."""

    label: str
    scaling: str
    pes: int
    relative: dict[str, Spread | None]
    results: dict[str, Result]


@dataclass
class Analysis:
    plan: Plan
    series: list[Series]
    records: list[dict[str, Any]]
    runs: int
    comparisons: list[Comparison] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def results(self) -> list[Result]:
        return [r for s in self.series for r in s.results]


def spread_of(records: list[dict[str, Any]]) -> Spread:
    """Of the seconds of all rounds."""
    reports = [r["report"] for r in records]
    return Spread(statistics.median(r["seconds"] for r in reports),
                  min(r.get("seconds_least", r["seconds"]) for r in reports),
                  max(r.get("seconds_most", r["seconds"]) for r in reports))


def result_of(experiment: Experiment, point: Point, value: str | None, records: list[dict[str, Any]],
              rounds: int) -> Result:
    bad = [r for r in records if r["status"] != VERIFIED]
    if not records:
        return Result(experiment, point, value, MISSING, "", [], rounds)
    if bad:
        more = f" ({len(bad)} of {len(records)} rounds)" if rounds > 1 else ""
        return Result(experiment, point, value, bad[0]["status"], bad[0]["reason"] + more, records, rounds)
    result = Result(experiment, point, value, VERIFIED, "", records, rounds)
    seconds = spread_of(records)
    work = result.mean_of("work") * (point.nodes if result.projected else 1)  # a projection runs the share of one node
    rate = Spread(work / seconds.median, work / seconds.high, work / seconds.low)
    result.figures = Figures(seconds, rate, work, records[-1]["report"])
    return result


def add_speedups(series: Series) -> None:
    """Strong scaling: how much sooner the same problem is solved. Weak: how much more is done in a second."""
    if len(series.results) == 1:
        return
    base = series.results[0]
    for result in series.results:
        if result.figures is None:
            continue
        if base.figures is None:
            result.no_speedup = f"the run on {base.point.nodes} PE{'s' * (base.point.nodes > 1)} is {base.status}"
            continue
        result.speedup = relative_speed(result, base)
        assert result.speedup is not None
        result.efficiency = result.speedup.times(base.point.nodes / result.point.nodes)


def compare_styles(all_series: list[Series]) -> list[Comparison]:
    """Every experiment of several styles, at the most PEs that were planned. Projected nodes are left out."""
    found = []
    for e in {id(s.experiment): s.experiment for s in all_series}.values():
        if len(e.styles) < 2 or e.sweep:
            continue
        results = {s.style: next(r for r in s.results if r.point.pes == max(e.pes) and not r.projected)
                   for s in all_series if s.experiment is e}
        gravel = results.get(DEFAULT_STYLE)
        relative = {style: relative_speed(results[style], gravel) for style in STYLES if style in results}
        found.append(Comparison(e.label, e.scaling, max(e.pes), relative, results))
    return found


def relative_speed(result: Result, base: Result | None) -> Spread | None:
    """How many times as fast as `base`; None unless both are verified."""
    if base is None or base.figures is None or result.figures is None:
        return None
    if result is base:
        return Spread(1.0, 1.0, 1.0)  # whatever its spread
    if result.experiment.scaling == STRONG:
        return base.figures.seconds.over(result.figures.seconds)
    return result.figures.rate.over(base.figures.rate)


def geometric_mean(values: list[float]) -> float:
    return math.exp(statistics.fmean(math.log(v) for v in values))


def is_local(command: list[str]) -> bool:
    """Whether all PEs ran on the machine that started them: mpirun without a list of hosts."""
    launcher = command[:command.index("-n")] if "-n" in command else command[:1]
    return Path(command[0]).name in ("mpirun", "mpiexec") and not any("host" in word for word in launcher)


def warnings_about(analysis: Analysis) -> list[str]:
    """What a reader must know before believing a ratio."""
    found = []
    good = [r for r in analysis.results if r.verified]
    records = [record for r in good for record in r.records]
    for name, values in (("commits", {str(r["report"].get("commit")) for r in records}),
                         ("machines", {f"{r['machine']['host']}, {r['machine']['cpu']}" for r in records}),
                         ("back ends", {str(r["report"].get("backend")) for r in records})):
        if len(values) > 1:
            found.append(f"These figures come from {len(values)} {name} ({'; '.join(sorted(values))}): ratios between "
                         "them compare more than the plan says. Measure again with another --out.")
    for cores in sorted({r["machine"]["cores"] for r in records}):
        crowded = sorted({r.point.pes for r in good for record in r.records
                          if record["machine"]["cores"] == cores < r.point.pes and is_local(record["command"])})
        if crowded:
            found.append(f"{', '.join(map(str, crowded))} PEs shared {cores} cores: those figures show that it works, "
                         "not how it scales.")
    if any(r.figures and r.figures.report.get("backend") == "cpu" and len(r.experiment.pes) > 1
           and (r.figures.report.get("config") or {}).get("cpu_threads") == 0 for r in good):
        found.append("cpu_threads is 0 in some runs: a PE that is alone on a host takes all its cores, so 1 PE and 2 "
                     "PEs may have had the same cores. Set the option cpu-threads in the plan for speed-ups a core.")
    for s in analysis.series:
        works = [r.figures.work for r in s.results if r.figures]
        if s.experiment.scaling == STRONG and works and max(works) > (1 + SAME_WORK) * min(works):
            found.append(f"{s.experiment.label}, {s.style}: the work differs by {max(works) / min(works) - 1:.0%} "
                         "between numbers of PEs, and its speed-ups are ratios of times all the same.")
    return found


def analyse(plan: Plan, read: Callable[[Run], dict[str, Any] | None]) -> Analysis:
    """`read` gives the record of a run, or None."""
    records: dict[str, list[dict[str, Any]]] = {}
    all_runs = plan.runs()
    for run in all_runs:
        record = read(run)
        if record is not None:
            records.setdefault(run.point.key, []).append(record)
    series = [Series(e, style, value, [result_of(e, p, value, records.get(p.key, []), e.rounds)
                                       for p in e.series(style, value)])
              for e in plan.experiments for value in e.settings() for style in e.styles]
    for s in series:
        add_speedups(s)
    found = Analysis(plan, series, [r for rs in records.values() for r in rs], len(all_runs))
    found.comparisons = compare_styles(series)
    found.warnings = warnings_about(found)
    return found

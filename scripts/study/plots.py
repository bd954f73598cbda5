"""The plots of a study. What was projected, and what has no figure, is marked where it stands."""

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .analysis import Analysis, Comparison, Result, Series, Spread, geometric_mean
from .plan import DEFAULT_STYLE, STRONG, STYLES, WEAK, parse_size

# Okabe and Ito's colours, which the colour-blind tell apart.
COLOURS = {"gravel": "#000000", "coprocessor": "#e69f00", "coprocessor-large": "#b35900", "per-lane": "#cc79a7",
           "coalesced": "#56b4e9", "coalesced-agg": "#0072b2"}
MARKERS = "os^Dv<>hpd"
PROJECTED = "hollow, dashed: projected on one node, not measured"
NOTHING = ": no figure"
NO_FIGURE = "×: failed, not verified or not measured"
STAGES = {"package_wait": "wait in the queue", "gather": "gather", "send": "send", "apply": "apply"}


@dataclass(frozen=True)
class Plot:
    name: str  # of its files
    section: str  # of the report
    title: str
    caption: str
    figure: Any

    def render(self, form: str) -> bytes:
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format=form, dpi=120, metadata={"Date": None} if form == "svg" else None)
        return buffer.getvalue()


class NoMatplotlib(Exception):
    """Plots are wanted and matplotlib is missing."""


def load_matplotlib() -> Any:
    """Raises NoMatplotlib."""
    try:
        import matplotlib
    except ImportError:
        raise NoMatplotlib("the Python package matplotlib is missing: install python3-matplotlib (pip: matplotlib); "
                           "or measure now with --no-report, and write the report later with --report-only") from None
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "esker", "font.size": 9, "axes.grid": True, "grid.color": "#e0e0e0",
                                "axes.axisbelow": True, "legend.fontsize": 8, "axes.spines.top": False,
                                "axes.spines.right": False, "figure.constrained_layout.use": True})
    return matplotlib


def new_figure(columns: int, rows: int, width: float, height: float) -> tuple[Any, list[Any]]:
    from matplotlib.figure import Figure
    figure = Figure(figsize=(columns * width, rows * height))
    axes = figure.subplots(rows, columns, squeeze=False)
    return figure, list(axes.flat)


def errors(values: list[Spread]) -> list[list[float]]:
    """Error bars: down to the lowest, up to the highest."""
    return [[max(0.0, v.median - v.low) for v in values], [max(0.0, v.high - v.median) for v in values]]


def mark_missing(axes: Any, places: Sequence[float], colour: Any) -> None:
    """A cross at the bottom for each that has no figure."""
    if places:
        marks = axes.plot(places, [0.03] * len(places), "x", color=colour, transform=axes.get_xaxis_transform())
        marks[0].set_in_layout(False)


# --- Lines over the number of PEs.

Value = Callable[[Result], Spread | None]


def draw_series(axes: Any, series: Series, value: Value, name: str, colour: Any, marker: str) -> None:
    have = [(r, v) for r in series.results if (v := value(r)) is not None]
    measured = [(r, v) for r, v in have if not r.projected]
    projected = [(r, v) for r, v in have if r.projected]
    for points, linestyle, fillstyle in ((measured, "-", "full"), (projected, "--", "none")):
        if points:
            axes.errorbar([r.point.nodes for r, _ in points], [v.median for _, v in points],
                          yerr=errors([v for _, v in points]), color=colour, linestyle=linestyle, linewidth=1.3,
                          marker=marker, markersize=5, fillstyle=fillstyle, capsize=2, elinewidth=0.8,
                          label=name + ", projected" * (fillstyle == "none"))
    if not have:
        axes.plot([], [], color=colour, marker=marker, label=name + NOTHING)
    without = [r.point.nodes for r in series.results if value(r) is None]
    mark_missing(axes, without, colour)


def finish_axis(axes: Any, all_series: list[Series], title: str, y_name: str, ideal: Callable[[float], float],
                logarithmic: bool) -> None:
    nodes = sorted({r.point.nodes for s in all_series for r in s.results})
    base = min(s.results[0].point.nodes for s in all_series)
    axes.plot(nodes, [ideal(n / base) for n in nodes], color="#999999", linestyle=":", label="ideal")
    axes.set_xscale("log", base=2)
    axes.set_xticks(nodes, [str(n) for n in nodes])
    axes.minorticks_off()
    if logarithmic:
        axes.set_yscale("log", base=2)
        axes.yaxis.set_major_formatter(lambda v, _: f"{v:g}")
    else:
        axes.set_ylim(bottom=0)
    axes.set_title(title)
    projected = any(r.projected for s in all_series for r in s.results)
    axes.set_xlabel("nodes, measured and projected" if projected else "PEs")
    axes.set_ylabel(y_name)


def lines(all_series: list[Series], value: Value, y_name: str, ideal: Callable[[float], float],
          logarithmic: bool) -> Any:
    """A panel for each style with a line for each input if there is one style; else the other way round."""
    import matplotlib
    labels = list(dict.fromkeys(s.experiment.label for s in all_series))
    styles = [s for s in STYLES if any(t.style == s for t in all_series)]
    by_label = len(styles) == 1
    panels = ([(STYLES[styles[0]], all_series)] if by_label
              else [(label, [s for s in all_series if s.experiment.label == label]) for label in labels])
    alone = len(panels) == 1
    cells = len(panels) + (not alone)  # several panels share a legend, which has a place of its own
    columns = min(3, cells)
    figure, axes = new_figure(columns, math.ceil(cells / columns), 6.4 if alone else 4.2, 4.2 if alone else 3.4)
    for (title, members), axis in zip(panels, axes):
        for number, s in enumerate(members):
            colour = matplotlib.colormaps["tab10"](number % 10) if by_label else COLOURS[s.style]
            draw_series(axis, s, value, s.experiment.label if by_label else STYLES[s.style], colour,
                        MARKERS[number % len(MARKERS)])
        finish_axis(axis, members, title, y_name, ideal, logarithmic)
    if alone:
        axes[0].legend()
    for axis in axes[len(panels):]:
        axis.set_axis_off()
    if not alone:
        named = {name: handle for axis in axes for handle, name in zip(*axis.get_legend_handles_labels())
                 if not name.endswith(NOTHING)}
        axes[len(panels)].legend(named.values(), named.keys(), loc="center")
    add_notes(figure, [r for s in all_series for r in s.results], value)
    return figure


def add_notes(figure: Any, results: list[Result], value: Value) -> None:
    notes = [PROJECTED] * any(r.projected for r in results) + [NO_FIGURE] * any(value(r) is None for r in results)
    if notes:
        figure.supxlabel("   ".join(notes), fontsize=8, color="#aa0000")


def scaling_plots(analysis: Analysis) -> list[Plot]:
    found = []
    for scaling, what in ((STRONG, "Speed-up"), (WEAK, "Scaled speed-up")):
        chosen = [s for s in analysis.series if s.experiment.scaling == scaling and not s.experiment.sweep]
        if not chosen:
            continue
        like = " As the thesis's Figure 5-8." if scaling == STRONG else ""
        meaning = ("The same problem on more PEs: the time on the fewest PEs over the time on these."
                   if scaling == STRONG else
                   "A problem that grows with the PEs: work a second, over that on the fewest PEs.")
        spread = " Median; bars from the lowest to the highest repeat."
        gravel = [s for s in chosen if s.style == DEFAULT_STYLE]
        several_styles = len({s.style for s in chosen}) > 1
        if several_styles and gravel:
            found.append(Plot(f"{scaling}-speedup-gravel", scaling, f"{what}: Gravel",
                              meaning + like + spread,
                              lines(gravel, lambda r: r.speedup, what.lower(), lambda n: n, True)))
        found.append(Plot(f"{scaling}-speedup", scaling, f"{what}{' of each style' if several_styles else ''}",
                          meaning + (" Each style is its own baseline." if several_styles else like) + spread,
                          lines(chosen, lambda r: r.speedup, what.lower(), lambda n: n, True)))
        found.append(Plot(f"{scaling}-efficiency", scaling, f"Efficiency, {scaling} scaling",
                          "The speed-up over the number of PEs; 1 is ideal." + spread,
                          lines(chosen, lambda r: r.efficiency, "efficiency", lambda n: 1, False)))
    return found


# --- Styles.

def style_plot(comparisons: list[Comparison], scaling: str) -> Plot | None:
    chosen = [c for c in comparisons if c.scaling == scaling]
    if not chosen:
        return None
    styles = [s for s in STYLES if any(s in c.relative for c in chosen)]
    complete = [c for c in chosen if all(c.relative.get(s) for s in styles)]
    figure, (axes, *_) = new_figure(1, 1, max(6.4, 1.4 * (len(chosen) + 1) + 2), 4.2)
    width = 0.84 / len(styles)
    for number, style in enumerate(styles):
        offset = (number - (len(styles) - 1) / 2) * width
        have = [(i, v) for i, c in enumerate(chosen) if (v := c.relative.get(style))]
        axes.bar([i + offset for i, _ in have], [v.median for _, v in have], width * 0.95, color=COLOURS[style],
                 label=STYLES[style], yerr=errors([v for _, v in have]) if have else None, capsize=2,
                 error_kw={"elinewidth": 0.8, "ecolor": "#777777"})
        for i, c in enumerate(chosen):
            if style in c.relative and c.relative[style] is None:
                why = c.results[style].status if not c.results[style].verified else "no Gravel to compare with"
                axes.text(i + offset, 0.01, f"× {why}", rotation=90, ha="center", va="bottom", fontsize=7,
                          color="#aa0000", transform=axes.get_xaxis_transform())
        if len(complete) > 1:
            medians = [v.median for c in complete if (v := c.relative[style])]
            axes.bar(len(chosen) + offset, geometric_mean(medians), width * 0.95, color=COLOURS[style])
    names = [f"{c.label}\n{c.pes} PEs" for c in chosen]
    if len(complete) > 1:
        names.append(f"geometric mean\n{len(complete)} of {len(chosen)}")
    axes.set_xticks(range(len(names)), names)
    axes.axhline(1, color="#999999", linestyle=":")
    axes.set_ylabel("speed relative to Gravel")
    axes.legend(ncols=2)
    axes.margins(y=0.3)
    return Plot(f"styles-{scaling}", "styles", f"Styles at the most PEs, {scaling} scaling",
                "Each application written in each style (the thesis's Figure 5-11): Gravel's time over the style's, so "
                "that above 1 is faster than Gravel. Bars span the lowest and highest ratio that the repeats allow. "
                "The geometric mean is of the inputs that have a figure in every style.", figure)


# --- One option's values.

def sensitivity_plots(analysis: Analysis) -> list[Plot]:
    found = []
    for e in analysis.plan.experiments:
        if not e.sweep:
            continue
        try:
            places, numeric = {value: parse_size(value) for value in e.values}, True
        except ValueError:
            places, numeric = {value: i for i, value in enumerate(e.values)}, False
        figure, (axes, *_) = new_figure(1, 1, 6.4, 4.2)
        results = [r for s in analysis.series if s.experiment is e for r in s.results if not r.projected]
        pairs = dict.fromkeys((r.point.style, r.point.pes) for r in results)
        unit = next((r.figures.report.get("work_unit", "units") for r in results if r.figures), "units")
        for number, (style, pes) in enumerate(pairs):
            mine = sorted(((places[str(r.value)], r) for r in results if (r.point.style, r.point.pes) == (style, pes)),
                          key=lambda pair: pair[0])
            have = [(x, r.figures.rate.times(1e-6)) for x, r in mine if r.figures]
            axes.errorbar([x for x, _ in have], [v.median for _, v in have], yerr=errors([v for _, v in have]),
                          marker=MARKERS[number % len(MARKERS)], capsize=2, elinewidth=0.8,
                          label=f"{STYLES[style]}, {pes} PE{'s' * (pes > 1)}")
            mark_missing(axes, [x for x, r in mine if not r.figures], "#aa0000")
        if numeric:
            axes.set_xscale("log", base=2)
        axes.set_xticks(list(places.values()), list(places), rotation=30)
        axes.minorticks_off()
        axes.set_xlabel(e.sweep)
        axes.set_ylabel(f"10⁶ {unit} a second")
        axes.set_ylim(bottom=0)
        axes.set_title(f"{e.label}, {e.scaling} scaling")
        axes.legend()
        add_notes(figure, results, lambda r: r.rate)
        like = " (the thesis's Figure 5-10)" if e.sweep == "node-buffer-bytes" else ""
        found.append(Plot(f"sweep-{e.label}-{e.scaling}-{e.sweep}".replace("/", "-").replace(" ", "-"), "sensitivity",
                          f"{e.label}: {e.sweep}",
                          f"Work a second over values of {e.sweep}{like}. Median; bars from the lowest to the highest "
                          "repeat.", figure))
    return found


# --- Stages.

def most_pes(results: list[Result]) -> Result | None:
    """The verified and measured one with the most PEs."""
    return max((r for r in results if r.verified and not r.projected), key=lambda r: r.point.pes, default=None)


def stages_of(result: Result) -> dict[str, dict[str, Any]]:
    """The histograms that are not empty."""
    stages = result.figures.report.get("stages") if result.figures else None
    return {name: h for name, h in stages.items() if isinstance(h, dict) and h.get("count")
            and {"p50", "p99", "max", "unit"} <= h.keys()} if isinstance(stages, dict) else {}


def stage_plot(analysis: Analysis) -> Plot | None:
    chosen = [(r, stages) for s in analysis.series if s.style == DEFAULT_STYLE and not s.experiment.sweep
              and (r := most_pes(s.results)) and (stages := stages_of(r))]
    if not chosen:
        return None
    figure, (axes, *_) = new_figure(1, 1, max(6.4, 1.3 * len(chosen) + 2), 4.2)
    for number, (stage, name) in enumerate(STAGES.items()):
        have = [(i, stages[stage]) for i, (_, stages) in enumerate(chosen) if stage in stages]
        if have:  # points, not bars: on a logarithmic axis a bar's length says nothing
            axes.errorbar([i + (number - 1.5) * 0.15 for i, _ in have], [h["p50"] for _, h in have], linestyle="none",
                          yerr=[[0] * len(have), [max(0, h["p99"] - h["p50"]) for _, h in have]], capsize=3,
                          marker=MARKERS[number], label=name)
    axes.set_yscale("log")
    axes.set_xticks(range(len(chosen)),
                    [f"{r.experiment.label} ({r.experiment.scaling})\n{r.point.pes} PEs" for r, _ in chosen])
    axes.set_xlim(-0.5, len(chosen) - 0.5)
    axes.set_ylabel("µs: median, bar up to the 99th percentile")
    axes.legend()
    return Plot("stages", "stages", "Where the time of a message goes: Gravel",
                "How long a package waits to be repacked (with --trace only), a node buffer is filled, is on its way, "
                "and is applied. From the histograms of PE 0 in the last round, since its start, so verification and "
                "every repeat are in them; a quantile is the upper end of its bucket, up to twice the true one.",
                figure)


def all_plots(analysis: Analysis) -> list[Plot]:
    """Raises NoMatplotlib."""
    load_matplotlib()
    plots = [*scaling_plots(analysis), *(style_plot(analysis.comparisons, s) for s in (STRONG, WEAK)),
             *sensitivity_plots(analysis), stage_plot(analysis)]
    return [p for p in plots if p is not None]

"""A plan: which experiments there are, and the runs that they ask for. docs/reference/scaling-study.md describes its fields."""

import difflib
import hashlib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

# Every way that an application can be written, in the order of Figure 5-11, with the thesis's names.
STYLES = {
    "coprocessor": "coprocessor",
    "coprocessor-large": "coprocessor + extra buffering",
    "per-lane": "op-per-lane, no agg",
    "coalesced": "coalesced APIs",
    "coalesced-agg": "coalesced APIs + GPU-wide aggregation",
    "gravel": "Gravel",
}
DEFAULT_STYLE = "gravel"  # what an application is written in unless --style says otherwise
STRONG, WEAK = "strong", "weak"
PROJECTING_APPS = {"gups"}  # those that take --project
OURS = {"style": "styles", "project": "project", "json": None}  # options that the study sets, and by which field

UNITS = {"": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}


class PlanError(Exception):
    """A plan that cannot be run; names the field and says why."""


@dataclass(frozen=True)
class Point:
    """One command, however often it is run: what one figure of the report comes from."""

    app: str
    style: str
    pes: int
    arguments: tuple[str, ...]
    projected_nodes: int | None = None  # the one-node projection of that many

    @property
    def nodes(self) -> int:
        """PEs that the figure stands for."""
        return self.projected_nodes or self.pes

    @property
    def key(self) -> str:
        """Names its files. Two experiments that ask for the same command share it."""
        text = json.dumps([self.app, self.style, self.pes, self.arguments])
        projected = f"-of-{self.projected_nodes}" if self.projected_nodes else ""
        return f"{self.app}-{self.style}-{self.pes}{projected}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


@dataclass(frozen=True)
class Experiment:
    """One application and input in some styles, over some numbers of PEs, and perhaps over values of one option."""

    app: str
    label: str
    scaling: str
    styles: tuple[str, ...]
    pes: tuple[int, ...]
    options: dict[str, Any]
    grow: dict[str, int] = field(default_factory=dict)  # of one PE; times the PEs, or the nodes projected
    sweep: str | None = None
    values: tuple[str, ...] = ()
    project: tuple[int, ...] = ()
    rounds: int = 1
    timeout_s: float = 600

    def settings(self) -> tuple[str | None, ...]:
        return self.values if self.sweep else (None,)

    def point(self, style: str, value: str | None, nodes: int, projected: bool = False) -> Point:
        options = dict(self.options)
        options.update({name: str(each * nodes) for name, each in self.grow.items()})
        if self.sweep:
            options[self.sweep] = value
        if projected:
            options["project"] = str(nodes)
        arguments = [] if style == DEFAULT_STYLE else ["--style", style]
        for name, text in options.items():
            arguments += [f"--{name}"] if text is True else [f"--{name}", "off" if text is False else str(text)]
        return Point(self.app, style, 1 if projected else nodes, tuple(arguments), nodes if projected else None)

    def series(self, style: str, value: str | None) -> list[Point]:
        """From the fewest PEs to the most, then from the fewest nodes projected to the most; some may be both.
        Only Gravel is projected: what the other styles would send to N nodes, one PE of theirs does not."""
        return ([self.point(style, value, n) for n in self.pes]
                + [self.point(style, value, n, projected=True) for n in self.project if style == DEFAULT_STYLE])

    def points(self) -> list[Point]:
        return [point for value in self.settings() for style in self.styles for point in self.series(style, value)]


@dataclass(frozen=True)
class Run:
    """One launch of a point's command."""

    point: Point
    round: int
    timeout_s: float
    title: str


@dataclass(frozen=True)
class Plan:
    name: str
    title: str
    experiments: tuple[Experiment, ...]
    source: dict[str, Any]  # as it was read

    def runs(self) -> list[Run]:
        """Each command once a round, and round by round, so that whatever else the machine does meets all alike."""
        rounds = max(e.rounds for e in self.experiments)
        found: dict[tuple[str, int], Run] = {}
        for number in range(1, rounds + 1):
            for e in self.experiments:
                if number > e.rounds:
                    continue
                for value in e.settings():
                    for style in e.styles:
                        for point in e.series(style, value):
                            title = title_of(e, point, value) + (f", round {number} of {e.rounds}" if e.rounds > 1
                                                                 else "")
                            known = found.get((point.key, number))
                            timeout = max(e.timeout_s, known.timeout_s if known else 0)
                            found[point.key, number] = Run(point, number, timeout, known.title if known else title)
        return list(found.values())


def title_of(experiment: Experiment, point: Point, value: str | None) -> str:
    """A point in words."""
    where = (f"{point.projected_nodes} nodes projected on 1 PE" if point.projected_nodes
             else f"{point.pes} PE" + ("s" if point.pes > 1 else ""))
    setting = f", {experiment.sweep} {value}" if experiment.sweep else ""
    return f"{experiment.label} ({experiment.scaling}), {point.style}, {where}{setting}"


# --- Values.

def parse_size(text: str | int) -> int:
    """As the runtime reads sizes and counts: 4096, 64KiB, 2^26, 1e6. Raises ValueError."""
    match = re.fullmatch(r"\s*(\d+)\^(\d{1,2})\s*|\s*(\d+(?:\.\d+)?(?:e\d{1,2})?)\s*([kmgt]ib)?b?\s*", str(text), re.I)
    if not match:
        raise ValueError(f"'{text}' is not a number like 4096, 64KiB, 2^26 or 1e6")
    value = (Fraction(int(match[1]) ** int(match[2])) if match[1]
             else Fraction(match[3]) * UNITS[(match[4] or "").lower()])
    if value.denominator != 1 or value < 1:
        raise ValueError(f"'{text}' is not a whole number of at least 1")
    return int(value)


# --- Reading.

def fail(where: str, what: str) -> Any:
    raise PlanError(f"{where}: {what}")


def a_dict(value: Any, where: str) -> dict[str, Any]:
    return value if isinstance(value, dict) and all(isinstance(k, str) for k in value) else fail(
        where, f"must be an object of names and values, not {value!r}")


def a_list(value: Any, where: str) -> list[Any]:
    return value if isinstance(value, list) and value else fail(where, f"must be a list with something in it, "
                                                                       f"not {value!r}")


def a_text(value: Any, where: str) -> str:
    return value if isinstance(value, str) and value.strip() else fail(where, f"must be a text, not {value!r}")


def an_integer(value: Any, where: str, least: int = 1) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return value
    raise PlanError(f"{where}: must be a whole number of at least {least}, not {value!r}")


def seconds(value: Any, where: str) -> float:
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= 1e6
    return float(value) if good else fail(where, f"must be a number of seconds above 0, not {value!r}")


def one_of(names: Iterable[str], value: Any, where: str) -> str:
    if value in (names := list(names)):
        return str(value)
    close = difflib.get_close_matches(str(value), names, 1)
    raise PlanError(f"{where}: there is no {value!r}" + (f"; did you mean '{close[0]}'?" if close else "")
                    + f" Legal: {', '.join(names)}")


def numbers(value: Any, where: str, least: int = 1) -> tuple[int, ...]:
    """In rising order, each once."""
    found = [an_integer(n, f"{where}[{i}]", least) for i, n in enumerate(a_list(value, where))]
    if len(set(found)) != len(found):
        fail(where, f"has a number twice: {found}")
    return tuple(sorted(found))


def styles(value: Any, where: str) -> tuple[str, ...]:
    found = [one_of(STYLES, s, f"{where}[{i}]") for i, s in enumerate(a_list(value, where))]
    if len(set(found)) != len(found):
        fail(where, f"has a style twice: {found}")
    return tuple(found)


def option_name(name: str, where: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        fail(f"{where}.{name}", "an option is written without its '--', in small letters: node-buffer-bytes")
    if name in OURS:
        fail(f"{where}.{name}", "is set by the study" + (f", from the field '{OURS[name]}'" if OURS[name] else ""))
    return name


def options(value: Any, where: str) -> dict[str, Any]:
    found = {}
    for name, text in a_dict(value, where).items():
        if text is not None and not isinstance(text, (str, int, float)):
            fail(f"{where}.{name}", f"must be a text, a number, true, false or null, not {text!r}")
        found[option_name(name, where)] = text
    return found


def grow(value: Any, where: str) -> dict[str, int]:
    found = {}
    for name, text in a_dict(value, where).items():
        try:
            found[option_name(name, where)] = parse_size(text)
        except ValueError as error:
            fail(f"{where}.{name}", str(error))
    return found or fail(where, "names no option that grows with the PEs")


def sweep(value: Any, where: str) -> tuple[str, tuple[str, ...]]:
    found = a_dict(value, where)
    if len(found) != 1:
        fail(where, f"must have one option with a list of its values, not {len(found)}: "
                    "write an experiment for each option")
    (name, values), = found.items()
    texts = tuple(str(v) for v in a_list(values, f"{where}.{name}"))
    if len(set(texts)) != len(texts):
        fail(f"{where}.{name}", f"has a value twice: {list(texts)}")
    return option_name(name, where), texts


Reader = Callable[[Any, str], Any]
FIELDS: dict[str, Reader] = {
    "app": a_text, "label": a_text, "scaling": lambda v, w: one_of((STRONG, WEAK), v, w), "styles": styles,
    "pes": numbers, "options": options, "grow": grow, "sweep": sweep,
    "project": lambda v, w: numbers(v, w, 2), "rounds": an_integer, "timeout_s": seconds,
}
DEFAULTS = ("styles", "pes", "options", "rounds", "timeout_s")  # what stands in for the fields of each experiment


def read_fields(value: Any, where: str, legal: Iterable[str]) -> dict[str, Any]:
    found = {}
    for name, content in a_dict(value, where).items():
        one_of(legal, name, where)
        found[name] = FIELDS[name](content, f"{where}.{name}")
    return found


def read_experiment(value: Any, where: str, defaults: dict[str, Any]) -> Experiment:
    own = read_fields(value, where, FIELDS)
    merged_options = {**defaults.get("options", {}), **own.get("options", {})}  # null takes a default away
    merged = {**defaults, **own, "options": {n: v for n, v in merged_options.items() if v is not None}}
    for name in ("app", "pes"):
        if name not in merged:
            fail(f"{where}.{name}", "is missing")
    app, growing, (swept, values) = merged["app"], merged.get("grow", {}), merged.get("sweep", (None, ()))
    scaling = merged.get("scaling", STRONG)
    if scaling == WEAK and not growing:
        fail(f"{where}.grow", "is missing: it says which options grow with the PEs, and their values for one PE")
    if scaling == STRONG and growing:
        fail(f"{where}.grow", "belongs to weak scaling: \"scaling\": \"weak\"")
    for name in growing:
        if own.get("options", {}).get(name) is not None or name == swept:
            fail(f"{where}.grow.{name}", "has a value elsewhere in this experiment")
    if own.get("options", {}).get(swept) is not None:
        fail(f"{where}.sweep.{swept}", "has a value in 'options' too")
    if "project" in merged and DEFAULT_STYLE not in merged.get("styles", (DEFAULT_STYLE,)):
        fail(f"{where}.project", f"only the style {DEFAULT_STYLE} is projected, and it is not in 'styles'")
    if "project" in merged and app not in PROJECTING_APPS:
        fail(f"{where}.project", f"esker-{app} has no one-node projection; these have: {sorted(PROJECTING_APPS)}")
    return Experiment(app, merged.get("label", app), scaling, merged.get("styles", (DEFAULT_STYLE,)), merged["pes"],
                      merged["options"], growing, swept, values, merged.get("project", ()),
                      merged.get("rounds", 1), merged.get("timeout_s", 600.0))


def read_plan(source: Any, name: str) -> Plan:
    """Raises PlanError."""
    legal = ("name", "title", "defaults", "experiments")
    for key in a_dict(source, "plan"):
        one_of(legal, key, "plan")
    defaults = read_fields(source.get("defaults", {}), "defaults", DEFAULTS)
    if "experiments" not in source:
        fail("experiments", "is missing")
    experiments = tuple(read_experiment(e, f"experiments[{i}]", defaults)
                        for i, e in enumerate(a_list(source["experiments"], "experiments")))
    seen: dict[tuple[str, str, str | None], int] = {}
    for i, e in enumerate(experiments):
        first = seen.setdefault((e.label, e.scaling, e.sweep), i)
        if first != i:
            fail(f"experiments[{i}].label", f"'{e.label}' is what experiments[{first}] is called: they would share "
                                            "a line in the report")
    name = a_text(source.get("name", name), "name")
    if not re.fullmatch(r"[\w.-]+", name):
        fail("name", f"'{name}' names a folder: letters, digits, '.', '-' and '_'")
    return Plan(name, a_text(source.get("title", name), "title"), experiments, source)


def load_plan(file: Path) -> Plan:
    """From JSON, or from YAML by the file's name. Raises PlanError, with the file's name."""
    try:
        text = file.read_text(encoding="utf-8")
        if file.suffix in (".yaml", ".yml"):
            source = load_yaml(text)
        else:
            source = json.loads(text)
        return read_plan(source, file.stem)
    except (OSError, ValueError, PlanError) as error:
        raise PlanError(f"{file}: {error}") from None


def load_yaml(text: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise PlanError("the Python package yaml is missing: install python3-yaml (pip: PyYAML), "
                        "or write the plan in JSON") from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise PlanError(str(error)) from None

#!/usr/bin/env python3
"""Random updates a second: HPCC's RandomAccess beside esker-gups, in turn, on as large a table and as many PEs.

A repeat is one run of hpcc and three of esker-gups: --op inc, --op xor and --hpcc. Printed are the median, the
lowest and the highest of each in 10^9 updates a second, all PEs together, and ratios of medians. Of HPCC:
  MPIRandomAccess    XOR into one table over all processes: what --hpcc does, by the same rules
  StarRandomAccess   each process updates its own share of that table; no messages. The sum of all processes.
hpcc cannot be told to run these alone: its other tests, which are most of its time, are made as short as the size
of the table allows; a fast BLAS (Debian: libopenblas0-serial) shortens them further.
The JSON has one object a line: each run, then each median, then each ratio.

A run that failed, that did not verify or that used another table ends the comparison.
Exit status: 0 = compared; 1 = a run is refused, or a ratio is below --min-ratio; 2 = usage.
"""

import argparse
import contextlib
import json
import math
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from hpcc_files import MPI, STAR, Refused, block_size, hpcc_input, hpcc_rates, hpcc_summary, matrix_order

INC, XOR, RULES = "esker-gups --op inc", "esker-gups --op xor", "esker-gups --hpcc"
RATIOS = ((INC, MPI), (XOR, MPI), (RULES, MPI), (INC, STAR))

@dataclass(frozen=True)
class Settings:
    """What all runs share. Table in words and updates are of all PEs together."""

    table: int
    pes: int
    repeats: int
    updates: int
    mpirun: list[str]
    hpcc: Path
    bin: Path

    def as_json(self) -> dict[str, Any]:
        return {"table_words": self.table, "pes": self.pes, "repeats": self.repeats, "updates": self.updates,
                "mpirun": shlex.join(self.mpirun), "hpcc": str(self.hpcc), "hpl_n": matrix_order(self.table),
                "hpl_nb": block_size(self.table, self.pes)}


@dataclass(frozen=True)
class Rate:
    """Of the repeats of one measurement, in 10^9 updates a second."""

    median: float
    lowest: float
    highest: float


# --- Runs.

def say(text: str) -> None:
    print(f"compare_hpcc: {text}", file=sys.stderr, flush=True)


def last_section(file: Path) -> str:
    """What hpcc runs now, by the file that it appends to."""
    text = file.read_text(errors="replace") if file.exists() else ""
    names: list[str] = re.findall(r"^Begin of (\w+) section", text, re.M)
    return names[-1] if names else ""


def run(settings: Settings, pes: int, command: list[str], folder: Path, progress: Path | None = None) -> None:
    """Runs a job to its end. Raises Refused, with the end of its output, if it fails."""
    # HPCC counts processes; a threaded BLAS would give each of them all cores.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    log, shown, started = folder / "output.txt", "", time.monotonic()
    with log.open("w") as output:
        job = subprocess.Popen([*settings.mpirun, "-n", str(pes), *command], cwd=folder, env=environment,
                               stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        try:
            while job.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    job.wait(timeout=1)
                now = last_section(progress) if progress else ""
                if now != shown and job.poll() is None:
                    say(f"  {time.monotonic() - started:6.1f} s  {now}")
                shown = now
        finally:
            job.terminate()  # nothing to do unless this was interrupted
            status = job.wait()
    if status != 0:
        tail = "\n  ".join(log.read_text(errors="replace").splitlines()[-10:])
        raise Refused(f"{shlex.join(command)}: exit status {status}\n  {tail}")


def read_json(file: Path) -> dict[str, Any]:
    report: dict[str, Any]
    try:
        report = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise Refused(f"{file.name}: {error}") from None
    return report


def gups_rate(report: dict[str, Any], name: str, expected: dict[str, Any]) -> float:
    """The rate of an object that esker-gups wrote, in 10^9 updates a second. Raises Refused."""
    for field, value in {"verified": True, **expected}.items():
        if report.get(field) != value:
            raise Refused(f"{name}: '{field}' is {report.get(field)!r} where {value!r} was asked for")
    if name == RULES and not report["hpcc_rules"]["look_ahead_held"]:
        raise Refused(f"{name}: more updates were under way than HPCC's rules allow")
    rate = float(report["rate_per_s"]) / 1e9
    if not 0 < rate < math.inf:
        raise Refused(f"{name}: the rate is {rate}")
    return rate


Keep = Callable[[str, float, dict[str, Any]], None]  # series, rate, everything that the run reported


def run_hpcc(settings: Settings, keep: Keep) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "hpccinf.txt").write_text(hpcc_input(settings.table, settings.pes))
        out = folder / "hpccoutf.txt"
        run(settings, settings.pes, [str(settings.hpcc)], folder, progress=out)
        text = out.read_text(errors="replace") if out.exists() else ""
    rates = hpcc_rates(text, settings.table, settings.pes)
    # Its variant and time bound too: they are chosen when hpcc is built.
    report = {n: v for n, v in hpcc_summary(text).items() if "RandomAccess_" in n and "_LCG_" not in n
              or n.startswith("CPS_RA_")}
    for series, rate in rates.items():
        keep(series, rate, report)


def run_gups(settings: Settings, series: str, commit: str, keep: Keep) -> None:
    updates = 4 * settings.table if series == RULES else settings.updates
    program, *mode = series.split()
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "report.json"
        run(settings, settings.pes,
            [str(settings.bin / program), *mode, "--table", str(settings.table), "--updates", str(updates),
             "--startup", "quiet", "--json", str(file)], Path(name))
        report = read_json(file)
    expected = {"table_words": settings.table, "pes": settings.pes, "work": updates, "commit": commit}
    keep(series, gups_rate(report, series, expected), report)


# --- What is made of the rates.

def summarise(rates: list[float]) -> Rate:
    return Rate(statistics.median(rates), min(rates), max(rates))


def ratios(summary: dict[str, Rate]) -> dict[tuple[str, str], float]:
    return {(of, to): summary[of].median / summary[to].median for of, to in RATIOS}


def below(found: dict[tuple[str, str], float], least: float) -> list[str]:
    """Comparisons with MPIRandomAccess that fall short; no messages are sent in the other."""
    return [f"{of} / {to} is {ratio:.2f}, less than {least:g}"
            for (of, to), ratio in found.items() if to == MPI and ratio < least]


def table_text(settings: Settings, summary: dict[str, Rate]) -> str:
    lines = [f"10^9 updates a second, {settings.pes} PEs, {settings.table} words, {settings.repeats} repeats",
             f"{'':40} {'median':>9} {'lowest':>9} {'highest':>9}"]
    lines += [f"{series:40} {rate.median:9.5f} {rate.lowest:9.5f} {rate.highest:9.5f}"
              for series, rate in summary.items()]
    lines += ["", "ratio of medians"]
    lines += [f"{of + ' / ' + to:40} {ratio:9.2f}" for (of, to), ratio in ratios(summary).items()]
    return "\n".join(lines)


def machine() -> dict[str, Any]:
    """Called before anything runs, so that the load is that of others."""
    names = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    return {"cpu": names[0] if names else "unknown", "cores": os.cpu_count(), "load_average": os.getloadavg()[0]}


def provenance(settings: Settings) -> dict[str, Any]:
    """What every line of the JSON carries."""
    here = machine()
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "info.json"
        run(settings, 1, [str(settings.bin / "esker-info"), "--json", str(file)], Path(name))
        info = read_json(file)
    return {"benchmark": "compare_hpcc", "version": info["version"], "commit": info["commit"], "machine": here,
            "settings": settings.as_json()}


def compare(settings: Settings, json_out: TextIO | None) -> dict[str, Rate]:
    """Every run, side by side in each repeat, so that whatever else the machine does meets all of them alike."""
    common = provenance(settings)
    rates: dict[str, list[float]] = {MPI: [], STAR: [], INC: [], XOR: [], RULES: []}

    def record(line: dict[str, Any]) -> None:
        if json_out:
            print(json.dumps({**common, **line}), file=json_out, flush=True)

    for repeat in range(1, settings.repeats + 1):
        def keep(series: str, rate: float, report: dict[str, Any]) -> None:
            say(f"  {series}: {rate:.5f}")
            rates[series].append(rate)
            record({"record": "run", "series": series, "repeat": repeat, "gups": rate, "report": report})

        for name in ("hpcc", INC, XOR, RULES):
            say(f"repeat {repeat} of {settings.repeats}: {name}")
            started = time.monotonic()
            if name == "hpcc":
                run_hpcc(settings, keep)
            else:
                run_gups(settings, name, common["commit"], keep)
            say(f"  took {time.monotonic() - started:.1f} s")

    summary = {series: summarise(values) for series, values in rates.items()}
    for series, rate in summary.items():
        record({"record": "summary", "series": series, "gups_median": rate.median, "gups_lowest": rate.lowest,
                "gups_highest": rate.highest})
    for (of, to), ratio in ratios(summary).items():
        record({"record": "ratio", "of": of, "to": to, "ratio": ratio})
    return summary


# --- The command line.

def count(text: str) -> int:
    """A positive number such as 1000 or 2^20."""
    match = re.fullmatch(r"(\d+)(?:\^(\d{1,2}))?", text)
    value = int(match[1]) ** int(match[2] or 1) if match else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number like 1000 or 2^20")
    return value


def power_of_two(text: str) -> int:
    value = count(text)
    if value & (value - 1):
        raise argparse.ArgumentTypeError(f"HPCC's tables are powers of two, and each PE has an equal share: "
                                         f"{text} is not a power of two")
    return value


def arguments(argv: list[str]) -> argparse.Namespace:
    root = Path(__file__).resolve().parents[1]
    summary, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(description=summary, epilog=rest,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--table", type=power_of_two, default=2**26, metavar="N", help="words in all (default 2^26)")
    add("--pes", type=power_of_two, default=2, metavar="N", help="processes of either side (default 2)")
    add("--repeats", type=count, default=3, metavar="N", help="runs of each (default 3)")
    add("--updates", type=count, metavar="N",
        help="of --op inc and --op xor, in all (default 4 x table, which is the rule for the others)")
    add("--bin", type=Path, default=root / "build/cpu/bin", metavar="DIR",
        help="where esker-gups and esker-info are (default build/cpu/bin)")
    add("--mpirun", type=shlex.split, default=["mpirun", "--oversubscribe", "--allow-run-as-root"],
        metavar="COMMAND", help="'-n PES PROGRAM...' follows (default 'mpirun --oversubscribe --allow-run-as-root')")
    add("--hpcc", default="hpcc", metavar="PATH", help="the program (default hpcc, of Debian's package hpcc)")
    add("--json", metavar="FILE", help="one object a line; - is standard output")
    add("--min-ratio", type=float, metavar="X", help="exit 1 if a ratio to MPIRandomAccess is below X")
    options = parser.parse_args(argv)
    found = shutil.which(options.hpcc)
    if found is None:
        parser.error(f"there is no '{options.hpcc}': install the package hpcc or name the program with --hpcc")
    options.hpcc = Path(found).resolve()
    for program in ("esker-gups", "esker-info"):
        if not (options.bin / program).is_file():
            parser.error(f"there is no {options.bin / program}: build it, or name its folder with --bin")
    if options.table < 4 * options.pes:
        parser.error(f"a table of {options.table} words is too small for {options.pes} PEs")
    return options


def main(argv: list[str]) -> int:
    options = arguments(argv)
    settings = Settings(options.table, options.pes, options.repeats, options.updates or 4 * options.table,
                        options.mpirun, options.hpcc, options.bin.resolve())
    to_stdout = options.json == "-"
    try:
        json_out = sys.stdout if to_stdout else open(options.json, "w") if options.json else None
        summary = compare(settings, json_out)
    except (Refused, OSError, KeyboardInterrupt) as error:
        say(str(error) or "interrupted")
        return 1
    print(table_text(settings, summary), file=sys.stderr if to_stdout else sys.stdout)
    short = below(ratios(summary), options.min_ratio) if options.min_ratio is not None else []
    for line in short:
        say(line)
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""Runs applications in styles over numbers of PEs and settings, as a plan says, and writes a report of it.

Each run that ends is a file in the study's folder, so a study that was interrupted goes on where it stopped: call
this again with the same plan. In the folder are then report.html, which needs nothing beside it, results.json,
results.csv and plots/. A run that failed, ran past its time-out or was not verified is in the report as that, with its
standard error, and no ratio is made of it.

  scaling_study.py scripts/studies/smoke.json
  scaling_study.py scripts/studies/thesis.json --only GUPS --project 16,32,64
  scaling_study.py scripts/studies/thesis.json --launcher slurm --sbatch 'sbatch --partition=batch'

Plans, Slurm and the report: docs/reference/scaling-study.md.
Exit status: 0 = every run asked for is verified, or the jobs are submitted; 1 = some run is not, or there is no report;
2 = usage, or the plan is wrong; 130 = interrupted.
"""

import argparse
import contextlib
import os
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from study import launch
from study.analysis import analyse, spread_of
from study.launch import Job, Launcher
from study.plan import PROJECTING_APPS, Plan, PlanError, Run, load_plan
from study.plots import NoMatplotlib, load_matplotlib
from study.report import count_of, spread, write_report
from study.store import VERIFIED, Store, StoreError

ROOT = Path(__file__).resolve().parents[1]


def say(text: str) -> None:
    print(f"scaling_study: {text}", file=sys.stderr, flush=True)


# --- Progress.

def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


class Forecast:
    """How long the runs that are left will take, by those that have ended: the same command's other rounds if there
    are some, else the same application's, else all."""

    def __init__(self) -> None:
        self.walls: dict[tuple[str, ...], list[float]] = {}

    @staticmethod
    def groups(run: Run) -> list[tuple[str, ...]]:
        return [(run.point.key,), ("of", run.point.app), ("all",)]

    def learn(self, run: Run, wall_s: float) -> None:
        for group in self.groups(run):
            self.walls.setdefault(group, []).append(wall_s)

    def seconds_for(self, runs: list[Run]) -> float | None:
        """None before the first run has ended."""
        if not self.walls:
            return None
        return sum(statistics.fmean(next(self.walls[g] for g in self.groups(r) if g in self.walls)) for r in runs)


class StatusLine:
    """On a terminal, how long the present run has taken; nothing elsewhere."""

    def __init__(self) -> None:
        self.shown = sys.stderr.isatty()

    def tick(self, passed: float, timeout_s: float) -> None:
        if self.shown:
            print(f"\r  {duration(passed)} of at most {duration(timeout_s)} ", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self.shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def outcome(record: dict[str, Any]) -> str:
    """A line about a run that has ended."""
    if record["status"] != VERIFIED:
        errors = record["stderr"].strip().splitlines()
        return f"{record['status']}: {record['reason']}" + (f": {errors[-1]}" if errors else "")
    report = record["report"]
    rate = f"{report['rate_per_s'] / 1e6:.3g} M {report.get('work_unit', 'units')}/s"
    return f"{spread(spread_of([record]))} s, {rate}, verified"


# --- Measuring.

def measure(store: Store, launcher: Launcher, bin_folder: Path, runs: list[Run], done: list[Run]) -> None:
    """Runs what is left. Every run is kept as soon as it has ended."""
    forecast, status = Forecast(), StatusLine()
    for run in done:
        forecast.learn(run, (store.read(run) or {"wall_s": 0.0})["wall_s"])
    for number, run in enumerate(runs):
        left = forecast.seconds_for(runs[number:])
        say(f"[{len(done) + number + 1}/{len(done) + len(runs)}] {run.title}"
            + (f"; about {duration(left)} left" if left is not None else ""))
        command = launcher.command(bin_folder, run.point, store.scratch_file(run, "json"))
        store.sweep_up(run)
        load = os.getloadavg()[0]
        try:
            ended = launch.run(command, run.timeout_s, store.scratch_file(run, "stdout"),
                               store.scratch_file(run, "stderr"),
                               {"ESKER_HANG_FILE": str(store.scratch_file(run, "hang"))},
                               lambda passed: status.tick(passed, run.timeout_s))
        finally:
            status.clear()
        record = store.keep(run, command, load, ended)
        forecast.learn(run, record["wall_s"])
        say(f"  {outcome(record)}")


@contextlib.contextmanager
def signals_interrupt() -> Iterator[None]:
    """SIGTERM, which Slurm sends before the time is over, and a lost terminal are as Ctrl-C."""
    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# --- Slurm: this script again, in jobs.

def jobs_for(options: argparse.Namespace, plan: Plan, folder: Path, runs: list[Run]) -> list[Job]:
    """One for each number of PEs."""
    passed_on = ["--bin", str(options.bin), "--out", str(folder), "--launcher", "slurm",
                 "--srun", shlex.join(options.srun), "--no-report"]
    if options.only:
        passed_on += ["--only", ",".join(options.only)]
    if options.project:
        passed_on += ["--project", ",".join(map(str, options.project))]
    if options.retry:
        passed_on += ["--retry"]
    found = []
    for pes in sorted({r.point.pes for r in runs}):
        name = f"{plan.name}-{pes}"
        command = [sys.executable, str(Path(__file__).resolve()), str(options.plan.resolve()), *passed_on,
                   "--pes", str(pes)]
        found.append(Job(name, pes, [r for r in runs if r.point.pes == pes], command, folder / "jobs" / f"{name}.out"))
    return found


def submit_jobs(options: argparse.Namespace, plan: Plan, folder: Path, runs: list[Run]) -> int:
    try:
        template = options.template.read_text(encoding="utf-8")
        scripts = [(job, launch.job_script(template, job, options.pes_per_node, options.minutes))
                   for job in jobs_for(options, plan, folder, runs)]
    except (OSError, ValueError) as error:
        say(f"{options.template}: {error}")
        return 2
    if options.dry_run:
        for job, script in scripts:
            print(f"# {folder / 'jobs' / job.name}.sbatch, to {shlex.join(options.sbatch)}:")
            print(script)
        return 0
    (folder / "jobs").mkdir(parents=True, exist_ok=True)
    for job, script in scripts:
        file = folder / "jobs" / f"{job.name}.sbatch"
        file.write_text(script, encoding="utf-8")
        try:
            number = launch.submit(file, options.sbatch)
        except (OSError, subprocess.CalledProcessError) as error:
            say(f"{shlex.join(options.sbatch)}: {error}")
            return 1
        say(f"job {number}: {count_of(len(job.runs), 'run')} on {count_of(job.pes, 'PE')}, output in {job.output}")
    say("when they have ended, the same command with --report-only writes the report")
    return 0


# --- The command line.

def whole_numbers(text: str) -> list[int]:
    if not all(part.isdigit() and int(part) > 0 for part in text.split(",")):
        raise argparse.ArgumentTypeError(f"'{text}' is not a list like 1,2,4")
    return [int(part) for part in text.split(",")]


def a_count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least 1")
    return int(text)


def words(text: str) -> list[str]:
    found = shlex.split(text)
    if not found:
        raise argparse.ArgumentTypeError("is empty")
    return found


def arguments(argv: list[str]) -> argparse.Namespace:
    summary, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(description=summary, epilog=rest,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("plan", type=Path, metavar="PLAN", help="a .json or .yaml file")
    add("--out", type=Path, metavar="DIR", help="the study's folder (default build/studies/NAME)")
    add("--bin", type=lambda t: Path(t).resolve(), default=ROOT / "build/cpu/bin", metavar="DIR",
        help="where esker-APP are (default build/cpu/bin)")
    add("--only", type=lambda t: t.split(","), metavar="LABEL,...", help="these experiments of the plan")
    add("--pes", type=whole_numbers, metavar="N,...", help="measure on these numbers of PEs now; the report has all")
    add("--project", type=whole_numbers, metavar="N,...",
        help=f"also project these numbers of nodes on one (of {', '.join(sorted(PROJECTING_APPS))})")
    add("--retry", action="store_true", help="run again what has not been verified")
    add("--dry-run", action="store_true", help="print the commands and start nothing")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--no-report", action="store_true", help="measure only; needs no matplotlib")
    what.add_argument("--report-only", action="store_true", help="of what there is")
    add("--launcher", choices=("mpirun", "slurm"), default="mpirun",
        help="slurm: srun inside an allocation; elsewhere a job for each number of PEs (default mpirun)")
    add("--mpirun", type=words, default=launch.MPIRUN.split(), metavar="COMMAND",
        help=f"'-n PES PROGRAM...' follows (default '{launch.MPIRUN}')")
    add("--srun", type=words, default=launch.SRUN.split(), metavar="COMMAND",
        help=f"'-n PES PROGRAM...' follows (default '{launch.SRUN}')")
    add("--sbatch", type=words, default=["sbatch"], metavar="COMMAND",
        help="with the site's options: 'sbatch --partition=gpu --account=x' (default sbatch)")
    add("--template", type=Path, default=ROOT / "scripts/studies/slurm.sbatch", metavar="FILE",
        help="of a job (default scripts/studies/slurm.sbatch)")
    add("--pes-per-node", type=a_count, default=1, metavar="N", help="of a job (default 1)")
    add("--minutes", type=a_count, metavar="N", help="a job may take (default: the sum of its runs' time-outs)")
    return parser.parse_args(argv)


def chosen(plan: Plan, options: argparse.Namespace) -> Plan:
    """The plan with --only and --project. Raises PlanError."""
    experiments = list(plan.experiments)
    if options.only:
        labels = list(dict.fromkeys(e.label for e in experiments))
        for label in options.only:
            if label not in labels:
                raise PlanError(f"--only: the plan has no label '{label}', but {', '.join(labels)}")
        experiments = [e for e in experiments if e.label in options.only]
    if options.project:
        if min(options.project) < 2:
            raise PlanError("--project: at least 2 nodes")
        if not any(e.app in PROJECTING_APPS for e in experiments):
            raise PlanError(f"--project: no experiment is of {', '.join(sorted(PROJECTING_APPS))}")
        experiments = [replace(e, project=tuple(sorted({*e.project, *options.project})))
                       if e.app in PROJECTING_APPS and not e.sweep else e for e in experiments]
    return replace(plan, experiments=tuple(experiments))


def check_programs(bin_folder: Path, runs: list[Run], launcher: Launcher) -> str:
    """What is missing to start these runs, or nothing."""
    apps = sorted({r.point.app for r in runs if not os.access(bin_folder / f"esker-{r.point.app}", os.X_OK)})
    if apps:
        return (f"there is no {', '.join(f'esker-{a}' for a in apps)} in {bin_folder}: build it, name its folder with "
                "--bin, or choose experiments with --only")
    if shutil.which(launcher.words[0]) is None:
        return f"there is no '{launcher.words[0]}' on the PATH"
    return ""


def study(options: argparse.Namespace) -> int:
    plan = chosen(load_plan(options.plan), options)
    folder = (options.out or ROOT / "build/studies" / plan.name).resolve()
    store = Store(folder)
    launcher = Launcher(tuple(options.mpirun if options.launcher == "mpirun" else options.srun))
    all_runs = plan.runs()
    wanted = [r for r in all_runs if not options.pes or r.point.pes in options.pes]
    if not wanted:
        raise PlanError(f"--pes: nothing in the plan runs on {', '.join(map(str, options.pes))} PEs")
    records = {run: store.read(run) for run in wanted}
    done = [run for run, record in records.items() if record and (record["status"] == VERIFIED or not options.retry)]
    left = [run for run in wanted if run not in done]
    submits = options.launcher == "slurm" and not launch.inside_allocation()

    if not options.report_only and left:
        if options.dry_run and not submits:
            for run in left:
                print(shlex.join(launcher.command(options.bin, run.point, store.scratch_file(run, "json"))))
            return 0
        if not options.dry_run:
            if not options.no_report and not submits:
                load_matplotlib()  # it is missed before hours of measuring rather than after
            if missing := check_programs(options.bin, left, Launcher(tuple(options.sbatch)) if submits else launcher):
                say(missing)
                return 2
            store.claim(launcher, options.bin)
        if submits:
            return submit_jobs(options, plan, folder, left)
        say(f"{count_of(len(left), 'run')} to measure, {len(done)} measured before, in {folder}")
        interrupted = False
        try:
            measure(store, launcher, options.bin, left, done)
        except KeyboardInterrupt:
            interrupted = True
            say("interrupted; what has ended is kept, and the same command goes on from there")
    else:
        interrupted = False
        say(f"nothing is measured now; {len(done)} of {count_of(len(wanted), 'run')} were before, in {folder}")
        if options.dry_run:
            return 0

    status = report(plan, store, options)
    ended = [store.read(run) for run in wanted]
    verified = sum(1 for r in ended if r and r["status"] == VERIFIED)
    say(f"{verified} of {count_of(len(wanted), 'run')} verified")
    return 130 if interrupted else status or int(verified < len(wanted))


def report(plan: Plan, store: Store, options: argparse.Namespace) -> int:
    analysis = analyse(plan, store.read)
    if options.no_report or not analysis.records:
        return 0
    for warning in analysis.warnings:
        say(f"warning: {warning}")
    say(f"report: {write_report(analysis, store.folder)}")
    return 0


def main(argv: list[str]) -> int:
    options = arguments(argv)
    try:
        with signals_interrupt():
            return study(options)
    except PlanError as error:
        say(str(error))
        return 2
    except (StoreError, NoMatplotlib, OSError) as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("interrupted")
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

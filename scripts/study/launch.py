"""How a run is started: under mpirun, under srun inside an allocation, or as jobs that are handed to sbatch."""

import contextlib
import math
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .plan import Point, Run

MPIRUN = "mpirun --oversubscribe --allow-run-as-root"
SRUN = "srun --mpi=pmix --kill-on-bad-exit=1"
GRACE_S = 10  # between asking a run to end and ending it


@dataclass(frozen=True)
class Launcher:
    """What stands before '-n PES PROGRAM...'."""

    words: tuple[str, ...]

    def command(self, bin_folder: Path, point: Point, json_file: Path) -> list[str]:
        return [*self.words, "-n", str(point.pes), str(bin_folder / f"esker-{point.app}"), *point.arguments,
                "--json", str(json_file)]


@dataclass(frozen=True)
class Ended:
    exit_status: int
    timed_out: bool
    wall_s: float


def run(command: list[str], timeout_s: float, stdout: Path, stderr: Path, environment: Mapping[str, str],
        tick: Callable[[float], None]) -> Ended:
    """Runs a command to its end or its time-out. `tick` is told how long it has run, now and then.

    Whatever interrupts this ends the command first. The command has a session of its own: Ctrl-C reaches it
    through us, once.
    """
    started = time.monotonic()
    with stdout.open("wb") as out, stderr.open("wb") as err:
        job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
                               env={**environment, **os.environ})
        try:
            while job.poll() is None:
                passed = time.monotonic() - started
                if passed >= timeout_s:
                    end(job)
                    return Ended(job.returncode, True, time.monotonic() - started)
                tick(passed)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    job.wait(min(1.0, timeout_s - passed))
        finally:
            end(job)
    return Ended(job.returncode, False, time.monotonic() - started)


def end(job: "subprocess.Popen[bytes]") -> None:
    """Ends a command and what it has started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if job.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(job.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            job.wait(GRACE_S)


def describe_exit(status: int) -> str:
    """An exit status in words, with the signal's name where it stands for one."""
    number = -status if status < 0 else status - 128 if status > 128 else 0
    try:
        return f"exit status {status} ({signal.Signals(number).name})" if number else f"exit status {status}"
    except ValueError:
        return f"exit status {status}"


# --- Slurm.

@dataclass(frozen=True)
class Job:
    """What one sbatch asks for: all runs of one number of PEs that are left."""

    name: str
    pes: int
    runs: list[Run]
    command: list[str]  # this script again, inside the allocation
    output: Path  # of the job

    @property
    def minutes(self) -> int:
        """At most: every run until its time-out, and a minute for the scheduler's own."""
        return math.ceil(sum(r.timeout_s + GRACE_S for r in self.runs) / 60) + 1


def job_script(template: str, job: Job, pes_per_node: int, minutes: int | None) -> str:
    """The template with its @PLACEHOLDERS@ filled in. Raises ValueError for one that is unknown."""
    values = {"NAME": job.name, "NODES": math.ceil(job.pes / pes_per_node), "TASKS": job.pes,
              "TASKS_PER_NODE": min(job.pes, pes_per_node), "MINUTES": minutes or job.minutes,
              "OUTPUT": job.output, "COMMAND": shlex.join(job.command)}

    def fill(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise ValueError(f"there is no placeholder {match[0]}; legal: {', '.join(f'@{n}@' for n in values)}")
        return str(values[match[1]])

    return re.sub(r"@([A-Z_]+)@", fill, template)


def submit(script: Path, sbatch: list[str]) -> str:
    """Hands a script to Slurm; its job's number. Raises OSError or subprocess.CalledProcessError."""
    done = subprocess.run([*sbatch, "--parsable", str(script)], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip().split(";")[0]


def inside_allocation(environment: Mapping[str, str] = os.environ) -> bool:
    return "SLURM_JOB_ID" in environment

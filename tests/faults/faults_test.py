#!/usr/bin/env python3
"""Whole jobs that go wrong: each ends in time, says why, and leaves no process.

faults_test.py CASE --mpiexec mpirun --bin DIR, where DIR has esker-gups and the faults_* programs.
"""

import argparse
import json
import os
import re
import signal
import sys
import tempfile
import time
from pathlib import Path

from job import Failed, Job, require, require_text

END_SECONDS = 10  # a job that has lost a PE is gone by then
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


class Bench:
    """What a case starts jobs with."""

    def __init__(self, mpiexec, folder, scratch):
        self.mpiexec = mpiexec
        self.folder = Path(folder)
        self.scratch = scratch
        self.jobs = []

    def job(self, program, pes, *arguments, environment=None, mpi_options=()):
        job = Job(self.mpiexec, pes, [self.folder / program, *arguments], environment=environment,
                  mpi_options=mpi_options, folder=self.scratch)
        self.jobs.append(job)
        return job

    def program(self, name, pes, *arguments, **more):
        return self.job("faults_program", pes, name, *arguments, **more)

    def gups(self, pes, *arguments, **more):
        return self.job("esker-gups", pes, "--size", "small", *arguments, **more)


def ends_badly(job, *texts, seconds=40):
    with job:
        status, _ = job.wait(seconds)
        require(status != 0, "the exit status is 0")
        require_text(job.output(), *texts)
        return status


def process_of(lines, pe):
    for line in lines:
        match = re.match(rf"PE {pe} \(process (\d+)\)", line)
        if match:
            return int(match.group(1))
    raise Failed(f"PE {pe} has not said its process")


# --- Deaths.

def kill_one(job, pes, victim, names, launcher_fails=True):
    with job:
        lines = job.wait_for_lines(": runs", pes)
        time.sleep(1)  # into the middle of the run; nothing depends on where
        os.kill(process_of(lines, victim), signal.SIGKILL)
        status, took = job.wait(END_SECONDS)
        print(f"ended {took:.2f} s after the kill")
        require(status != 0 or not launcher_fails, "the exit status is 0")
        require(re.search(names, job.output()), f"no line that matches '{names}'")


@case
def killed_while_running(bench):
    kill_one(bench.program("long_run", 4), 4, 2, r"(rank 2 .*signal 9|PE 2 \(process \d+\) has died)")


@case
def killed_in_barrier(bench):
    kill_one(bench.program("one_stays_away", 4), 4, 3, r"(rank 3 .*signal 9|PE 3 \(process \d+\) has died)")


@case
def killed_unnoticed_by_launcher(bench):
    """Under a launcher that does not end the job itself, the peers do. mpirun's own status is then 0."""
    job = bench.program("long_run", 4, mpi_options=("--enable-recovery",), environment={"FAULTS_CATCH": "1"})
    kill_one(job, 4, 2, r"esker: PE [013]: PE 2 \(process \d+\) has died; the job cannot go on", launcher_fails=False)


@case
def killed_in_collectives(bench):
    """Between calls that move much, over a communicator of the program's own: named by both ranks."""
    job = bench.program("move_for_long", 3, mpi_options=("--enable-recovery",),
                        environment={"FAULTS_CATCH": "1", "FAULTS_REVERSED": "1"})
    kill_one(job, 3, 2, r"esker: PE (0 \(world rank 2\)|1): PE 2 \(world rank 0\) \(process \d+\) has died; "
             r"the job cannot go on", launcher_fails=False)


def killed_over_ucx(bench, **variables):
    job = bench.program("long_run", 4, "--transport", "ucx", "--peer-memory", "off", mpi_options=("--enable-recovery",),
                        environment={"FAULTS_CATCH": "1", **variables})
    kill_one(job, 4, 2, r"esker: PE [013]: PE 2 \(process \d+\) has died; the job cannot go on", launcher_fails=False)


@case
def killed_over_ucx_memory(bench):
    killed_over_ucx(bench)


@case
def killed_over_ucx_tcp(bench):
    killed_over_ucx(bench, ESKER_UCX_TLS="tcp,self")


@case
def exception_over_ucx(bench):
    """The others are told by a PE that leaves at once."""
    ends_badly(bench.program("exception", 3, "--transport", "ucx", "--peer-memory", "off",
                             environment={"FAULTS_CATCH": "1", "ESKER_UCX_TLS": "tcp,self"}),
               "PE 1 has left the job by an exception", seconds=END_SECONDS + 10)


@case
def exception_uncaught(bench):
    ends_badly(bench.program("exception", 3), "the program's own fault", seconds=END_SECONDS + 10)


@case
def exception_caught(bench):
    """The PE that threw has left; the others are told, not left waiting. Its own words may be cut off: mpirun
    ends it with the first of the others that exits."""
    ends_badly(bench.program("exception", 3, environment={"FAULTS_CATCH": "1"}),
               "PE 1 has left the job by an exception", seconds=END_SECONDS + 10)


@case
def early_return(bench):
    ends_badly(bench.program("early_return", 3), "~Runtime", "barrier_all", "same order on every PE")


@case
def early_exit(bench):
    ends_badly(bench.program("early_exit", 3))


# --- Misuse.

@case
def handler_throws(bench):
    ends_badly(bench.program("handler_throws", 3, environment={"FAULTS_CATCH": "1"}),
               "handler 'fragile' threw on PE 1 for a message of PE 0: cannot take 7")


@case
def handlers_differ(bench):
    """Both PEs say so, each with its own name for it; the second may be cut off as above."""
    job = bench.program("handlers_differ", 2, environment={"FAULTS_CATCH": "1"})
    ends_badly(job, "PE 1 and PE 0 register different handlers as number 1: another name")
    require(re.search("register_handler '(one|other)'", job.output()), "no line names the handler")


@case
def bad_pe(bench):
    ends_badly(bench.program("bad_pe", 2), "esker: PE 0: shmem_inc", "PE 99 is not below 2")


@case
def bad_address(bench):
    ends_badly(bench.program("bad_address", 2), "esker: PE 0: shmem_put", "outside the symmetric heap")


@case
def different_sizes(bench):
    ends_badly(bench.program("different_sizes", 3, environment={"FAULTS_CATCH": "1"}),
               "heap().allocate: PE 1 asks for 101 elements of 8 bytes, PE 0 for 100")


@case
def different_calls(bench):
    ends_badly(bench.program("different_calls", 3, environment={"FAULTS_CATCH": "1"}), "all_reduce", "barrier_all",
               "same order on every PE")


# --- Hangs.

def hang(bench, name, *texts, **variables):
    """The reports by PE, after a job of two that hangs has ended."""
    pes = 2
    job = bench.program(name, pes, environment={"ESKER_HANG_SECONDS": "2", "FAULTS_CATCH": "1", **variables})
    ends_badly(job, *[f"esker: PE {pe}:   user thread:" for pe in range(pes)], *texts, seconds=30)
    reports = {}
    for pe in range(pes):
        path = Path(bench.scratch) / f"esker-hang.{pe}.json"
        require(path.exists(), f"no JSON report of PE {pe}")
        reports[pe] = json.loads(path.read_text())
        require(reports[pe]["pe"] == pe, f"{path.name} is PE {reports[pe]['pe']}'s")
        require(len(reports[pe]["peers"]) == pes, f"{path.name} does not have every peer")
    return reports


@case
def handler_never_returns(bench):
    """PE 1's network thread does not answer; its user's thread reports."""
    reports = hang(bench, "handler_never_returns", "does not answer: its network thread is inside one step")
    require(reports[1]["handler"] == "endless", "PE 1's report does not name the handler")
    require("endless" in reports[1]["stuck_stage"], "the stuck stage does not name the handler")
    require("barrier_all" in reports[0]["user_thread"], "PE 0's user thread is not in the barrier")


@case
def handler_never_returns_in_a_helper(bench):
    """The network thread lives, and says so; the job still cannot end."""
    reports = hang(bench, "handler_never_returns", ESKER_APPLY_HELPERS="2")
    require(reports[1]["handler"] == "endless", "PE 1's report does not name the handler")
    require("barrier_all" in reports[0]["user_thread"], "PE 0's user thread is not in the barrier")


@case
def handler_never_returns_outside(bench):
    """Nobody on that PE can tell, and it does not answer."""
    job = bench.program("handler_never_returns_outside", 2, environment={"ESKER_HANG_SECONDS": "2"})
    ends_badly(job, "does not answer: its network thread is inside one step", "every PE waits", "and the job ends",
               "esker: PE 0:   user thread: in barrier_all")


def ends_well(bench, name, pes, warning, stop=None, **variables):
    """A job in which nothing moves for several times the limit warns of it, by one PE, and goes on."""
    job = bench.program(name, pes, environment={"ESKER_HANG_SECONDS": "1", **variables})
    with job:
        victim = process_of(job.wait_for_lines(": runs", pes), pes - 1 if stop is None else stop)
        if stop is not None:
            os.kill(victim, signal.SIGSTOP)
        job.wait_for_lines("warning: PE", 2 * 3)  # two of them, of three lines and more
        (Path(bench.scratch) / "enough").touch()
        if stop is not None:
            os.kill(victim, signal.SIGCONT)
        status, _ = job.wait(40)
        output = job.output()
        require(status == 0, f"the exit status is {status}")
        require(output.count("has ended") == pes, "not every PE has ended")
        require(re.search(warning, output), f"no line that matches '{warning}'")
        said = {match for match in re.findall(r"warning: (PE \d+): nothing has moved", output)}
        require(len(said) == 1, f"the warning comes from {said}")


@case
def computes_outside(bench):
    ends_well(bench, "computes_outside", 4, r"PE 3 \(process \d+\) is outside Esker, in the program's own code")


@case
def computes_outside_own_mpi(bench):
    """There a PE answers during its calls alone."""
    ends_well(bench, "computes_outside", 3, r"PE 2 \(process \d+\) does not answer: it is outside Esker",
              FAULTS_OWN_MPI="1")


@case
def long_kernel(bench):
    ends_well(bench, "long_kernel", 3, r"PE 2 \(process \d+\) runs kernel 'patience' for \d")


@case
def stopped_peer(bench):
    ends_well(bench, "computes_outside", 3, r"PE 2 \(process \d+\) does not answer: state T \(stopped\)", stop=2)


@case
def stopped_in_barrier(bench):
    """After it is continued, the PE that was stopped must not take its own absence for a hang."""
    ends_well(bench, "computes_outside", 3, r"PE 0 \(process \d+\) does not answer: state T \(stopped\)", stop=0)


# --- Memory.

@case
def heap_full(bench):
    job = bench.program("heap_full", 2, "--heap-bytes", "64MiB", environment={"FAULTS_CATCH": "1"})
    ends_badly(job, "do not fit", "--heap-bytes", "64.0 MiB")


@case
def heap_full_survived(bench):
    with bench.program("heap_full_survived", 2, "--heap-bytes", "64MiB") as job:
        status, _ = job.wait(40)
        require(status == 0, f"the exit status is {status}")
        require(job.output().count("has gone on") == 2, "not every PE has gone on")


@case
def table_beyond_memory(bench):
    ends_badly(bench.job("esker-gups", 2, "--table", "2^40", "--updates", "1000"), "esker-gups: heap().allocate",
               "ESKER_HEAP_BYTES")


@case
def heap_beyond_memory(bench):
    environment = {"ESKER_HEAP_BYTES": str(2**46), "FAULTS_CATCH": "1"}
    ends_badly(bench.program("heap_beyond_memory", 2, environment=environment), "program: ", "MiB")
    environment["ESKER_HEAP_BYTES"] = str(2**42)
    # A heap that can be reserved but not filled.
    ends_badly(bench.job("esker-gups", 2, "--table", "2^38", "--updates", "1000", environment=environment),
               "esker-gups: heap().allocate", "host's memory has left")


@case
def pools_beyond_memory(bench):
    job = bench.gups(8, "--node-buffer-bytes", "16MiB", "--buffers-per-destination", "512")
    ends_badly(job, "too little memory for the PEs on it", "--node-buffer-bytes")


# --- Settings.

@case
def bad_option(bench):
    status = ends_badly(bench.gups(2, "--jsn", "-"), "no option --jsn", "did you mean --json")
    require(status == 2, f"the exit status is {status}, not 2")


@case
def unknown_variable(bench):
    with bench.gups(2, environment={"ESKER_AGREGATORS": "2"}) as job:
        status, _ = job.wait(40)
        require(status == 0, f"the exit status is {status}")
        require_text(job.output(), "ESKER_AGREGATORS", "ESKER_AGGREGATORS", "warning")


@case
def bad_variable(bench):
    status = ends_badly(bench.gups(2, environment={"ESKER_NODE_BUFFER_BYTES": "plenty"}), "ESKER_NODE_BUFFER_BYTES",
                        "plenty", "a multiple of 64")
    require(status == 2, f"the exit status is {status}, not 2")


# --- What a job costs.

def idle_use(bench, *arguments):
    with bench.job("faults_idle", 2, *arguments) as job:
        status, _ = job.wait(60)
        require(status == 0, f"the exit status is {status}")
        used = [float(u) for u in re.findall(r"used ([0-9.]+) of a core", job.output())]
        require(len(used) == 1 and used[0] < 0.10, f"a PE that waits uses {used} of a core")


@case
def idle(bench):
    idle_use(bench)


@case
def idle_with_one_slot(bench):
    idle_use(bench, "--package-slots", "1")


@case
def idle_over_ucx(bench):
    idle_use(bench, "--transport", "ucx", "--peer-memory", "off")


def memory(bench, pes, limit_mib, *arguments):
    with bench.job("faults_mpi_memory", pes) as job:
        status, _ = job.wait(280)
        require(status == 0, f"MPI alone: the exit status is {status}")
        lines = sorted(line for line in job.output().splitlines() if "of MPI alone" in line)
        print("\n".join(lines[:2]))
    with bench.job("faults_memory", pes, *arguments) as job:
        status, _ = job.wait(280)
        require(status == 0, f"the exit status is {status}")
        output = job.output()
    rows = re.findall(r"^PE (\d+): (updates=.*)$", output, re.MULTILINE)
    require(len(rows) == pes, f"{len(rows)} of {pes} PEs have reported")
    print("\n".join(f"PE {pe}: {row}" for pe, row in rows[:2]))
    worst = {"resident": 0, "peak": 0, "declared": 0, "over": 0}
    for pe, row in rows:
        v = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", row)}
        resident = v["anon_kib"] + v["file_kib"] + v["shmem_kib"] - v["heap_kib"]
        peak = v["peak_kib"] - v["heap_kib"]
        for name, value in (("resident", resident), ("peak", peak), ("declared", v["declared_kib"]),
                            ("over", max(resident, peak) - v["declared_kib"])):
            worst[name] = max(worst[name], value)
    print(f"{pes} PEs, beside the heap, most of any PE in MiB: " +
          ", ".join(f"{name} {value / 1024:.1f}" for name, value in worst.items()))
    updates = sum(int(re.search(r"updates=(\d+)", row).group(1)) for _, row in rows)
    require(updates == 2 * pes * pes * 2**15, f"{updates} updates were applied")
    require(worst["over"] <= 0, "a PE has more beside its heap than the runtime declared")
    require(worst["peak"] <= limit_mib * 1024, f"a PE has more than {limit_mib} MiB beside its heap")
    require(worst["declared"] <= limit_mib * 1024, f"more than {limit_mib} MiB are declared")


@case
def memory_of_2(bench):
    memory(bench, 2, 64)


@case
def memory_of_2_over_ucx(bench):
    memory(bench, 2, 64, "--transport", "ucx", "--peer-memory", "off")


@case
def memory_of_64(bench):
    memory(bench, 64, 128)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=sorted(CASES))
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("--bin", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="esker-faults-") as scratch:
        bench = Bench(options.mpiexec, Path(options.bin).resolve(), scratch)
        try:
            CASES[options.case](bench)
        except Failed as failure:
            print(f"{options.case}: {failure}", file=sys.stderr)
            for job in bench.jobs:
                print(f"--- output of the job\n{job.output()}---", file=sys.stderr)
            return 1
    print(f"{options.case}: as expected")
    return 0


if __name__ == "__main__":
    sys.exit(main())

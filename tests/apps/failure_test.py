#!/usr/bin/env python3
"""Applications that cannot do what they are asked say why, once, before any work, and never end with 0.

failure_test.py --mpiexec FILE BIN CASE
  CASE is one of the functions below that take a Programs.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "faults"))
from job import Failed, Job, require, require_text  # noqa: E402  (where it stands is known only here)

SECONDS = 160
FULL = "cannot be written: No space left on device"
# Each application, small.
SMALL = {
    "gups": ["--updates", "2^10", "--table", "2^10"], "histo": ["--updates", "2^10"],
    "indexgather": ["--reads", "2^10"], "gups-mod": ["--lanes", "2^10"], "kmeans": ["--points", "100"],
    "in-degree": ["--scale", "6"], "pagerank": ["--scale", "6"], "sssp": ["--scale", "6"], "color": ["--scale", "6"],
    "bfs": ["--scale", "6"], "triangles": ["--scale", "6"],
    "mer": ["--genome-bases", "1000"],
}
WRITERS = ["pagerank", "sssp", "bfs", "color", "kmeans", "in-degree"]  # that take --output


class Programs:
    def __init__(self, options, folder):
        self.options = options
        self.folder = Path(folder)

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def run(self, pes, app, *arguments, stdout=None):
        """Exit status and output; 0 PEs are a start without mpirun."""
        command = [str(Path(self.options.bin) / f"esker-{app}"), *map(str, arguments), "--startup", "quiet"]
        print("$", " ".join(command), flush=True)
        if pes == 0:
            done = subprocess.run(command, cwd=self.folder, stdin=subprocess.DEVNULL,
                                  stdout=stdout or subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=SECONDS)
            status, output = done.returncode, (done.stdout or "") + done.stderr
        else:
            with Job(self.options.mpiexec, pes, command, folder=self.folder) as job:
                status, _ = job.wait(SECONDS)
                output = job.output()
        print(output, end="", flush=True)
        return status, output

    def refuses(self, status, text, pes, app, *arguments, stdout=None):
        ended, output = self.run(pes, app, *arguments, stdout=stdout)
        require(ended == status, f"the exit status is {ended}, not {status}")
        said = [line for line in output.splitlines() if line.startswith(f"esker-{app}: ")]
        require_text(output, text)
        require(len(said) == 1, f"{len(said)} lines say what is wrong")
        require("verified" not in output, "it has run all the same")


def bad_lines(programs):
    """One PE of four finds a bad line; all end with what it says."""
    entries = "".join(f"{i} {i + 1} 1\n" for i in range(1, 90))
    banner = "%%MatrixMarket matrix coordinate real general\n"
    graph = programs.file("bad.mtx", f"{banner}90 90 90\n{entries}90 91 1\n")
    for app in ["pagerank", "in-degree"]:
        programs.refuses(1, f"{graph}:92: index 91 is out of range: it is 1 to 90", 4, app, "--graph", graph)
    few = programs.file("few.mtx", f"{banner}90 90 90\n{entries}")
    programs.refuses(1, f"{few}:2: this line states 90 entries, the file has 89", 4, "color", "--graph", few)
    points = programs.file("bad.csv", "1,2\n" * 80 + "1,x\n")
    programs.refuses(1, f"{points}:81: field 2, 'x', is not a number", 4, "kmeans", "--input", points)
    reads = programs.file("bad.fa", ">a\nACGTACGT\n" * 80 + ">b\nAC!T\n")
    programs.refuses(1, f"{reads}:162: '!' is not a base", 4, "mer", "--input", reads)
    # In a style that starts MPI itself.
    programs.refuses(1, f"{graph}:92: ", 2, "sssp", "--graph", graph, "--style", "coprocessor")


def alike_on_all(programs):
    """What every PE finds is said once."""
    programs.refuses(1, "no.mtx: cannot be opened", 3, "pagerank", "--graph", "no.mtx")
    programs.refuses(2, "--source: the graph has no vertex 99", 3, "sssp", "--scale", "6", "--source", "99")
    programs.refuses(2, "--clusters 8: they start from points, of which there are 7", 3, "kmeans", "--points", "7")


def unwritable(programs):
    """Found before the run, which would take longer than this test may."""
    long_runs = {"gups": ["--updates", "2^48"], "gups-mod": ["--lanes", "2^40"], "kmeans": ["--iterations", "2^32"],
                 "pagerank": ["--scale", "6", "--iterations", "2^32"]}
    for app, small in SMALL.items():
        programs.refuses(1, "/no/such/folder/x: cannot be written: No such file or directory", 0, app,
                         "--json", "/no/such/folder/x", *long_runs.get(app, small))
    for app in WRITERS:
        programs.refuses(1, ".: cannot be written: Is a directory", 0, app, "--output", ".",
                         *long_runs.get(app, SMALL[app]))
    # Of those that are no messages' too: a tree, frames, a plan and batches that take as long.
    for app, *long_run in [("fib", "--n", "60"), ("pipe-aes", "--repeats", "1000000"), ("plan", "--repeats", "1000000"),
                           ("batch", "--repeats", "1000000")]:
        programs.refuses(1, "/no/such/folder/x: cannot be written: No such file or directory", 0, app,
                         "--json", "/no/such/folder/x", *long_run)
    for app in ["mandelbrot", "pipe-reyes", "pipe-rasterisation", "pipe-face-detection"]:
        programs.refuses(1, "/no/such/folder/x: cannot be written: No such file or directory", 0, app,
                         "--png", "/no/such/folder/x", "--repeats", "1000000")
    programs.refuses(1, "/no/such/folder/x: cannot be written", 2, "queens", "--json", "/no/such/folder/x", "--n", "19")
    programs.refuses(1, "/no/such/folder/x: cannot be written", 2, "pagerank", "--json", "/no/such/folder/x",
                     *long_runs["pagerank"])
    for option in ["--output", "--contigs"]:
        programs.refuses(1, "/no/such/folder/x.0: cannot be written", 2, "mer", option, "/no/such/folder/x",
                         "--genome-bases", "2^30")
        (programs.folder / "x.1").mkdir(exist_ok=True)
        programs.refuses(1, "x.1: cannot be written: Is a directory", 2, "mer", option, "x", "--genome-bases", "2^30")
        require(not (programs.folder / "x.0").exists(), "PE 0 has left a file")


def one_file(programs):
    """Of two results none is lost in the other's place, or for want of what makes it."""
    for app in WRITERS:
        for name in ["x", "-"]:
            programs.refuses(2, f"--json and --output name one file, {name}", 0, app, "--json", name, "--output", name)
    programs.refuses(2, "--output and --contigs name one file, x", 0, "mer", "--output", "x", "--contigs", "x")
    programs.refuses(2, "--contigs goes with --traverse", 0, "mer", "--traverse", "off", "--contigs", "x")


def full_disk(programs):
    """No run whose results are lost ends with 0."""
    def fails(text, pes, app, *arguments, stdout=None):
        status, output = programs.run(pes, app, *arguments, stdout=stdout)
        require(status == 1, f"the exit status is {status}, not 1")
        require_text(output, text)

    with open("/dev/full", "w") as full:
        for app, small in SMALL.items():
            fails(f"/dev/full: {FULL}", 0, app, "--json", "/dev/full", *small)
            fails(f"standard output: {FULL}", 0, app, "--json", "-", *small, stdout=full)
            fails(f"standard output: {FULL}", 0, app, *small, stdout=full)
        for app in WRITERS:
            fails(f"/dev/full: {FULL}", 0, app, "--output", "/dev/full", *SMALL[app])
        fails(f"/dev/full: {FULL}", 0, "mandelbrot", "--png", "/dev/full", "--width", "9", "--repeats", "1")
        for arguments in [[], ["--json", "-"]]:
            done = subprocess.run([Path(programs.options.bin) / "esker-info", *arguments], stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=SECONDS)
            require(done.returncode == 1, f"esker-info ends with {done.returncode}")
            require_text(done.stderr, "No space left on device")
    fails(f"/dev/full: {FULL}", 2, "sssp", "--output", "/dev/full", *SMALL["sssp"])
    for option in ["--output", "--contigs"]:
        for pe in range(2):
            link = programs.folder / f"full{option}.{pe}"
            link.symlink_to("/dev/full")
        fails(f"full{option}.0: {FULL}", 2, "mer", option, f"full{option}", "--min-count", "1", *SMALL["mer"])


def names(programs):
    """A name that is no UTF-8 is in the report, as far as it is."""
    matrix = os.fsencode(programs.folder) + b"/odd\xff.mtx"
    Path(os.fsdecode(matrix)).write_text("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n2 1\n")
    for app, option in [("pagerank", b"--graph"), ("sptrsv", b"--matrix"), ("info", b"--hang-file")]:
        report = programs.folder / f"{app}.json"
        done = subprocess.run([os.fsencode(Path(programs.options.bin) / f"esker-{app}"), option, matrix, b"--json",
                               os.fsencode(report)], cwd=programs.folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS)
        require(done.returncode == 0, f"esker-{app} ends with {done.returncode}: {done.stdout!r}")
        require_text(report.read_text(encoding="utf-8"), "odd\ufffd.mtx")


def limits(programs):
    """Sizes without sense are refused at once, with the limit."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    huge = str(2**63)
    for app, option, limit in [
            ("gups", "updates", "1 to 2^48"), ("gups", "table", "1 to 2^48"), ("histo", "updates", "0 to 2^40"),
            ("histo", "table", "0 to 2^40"), ("randperm", "entries", "0 to 2^31"), ("indexgather", "reads", "0 to 2^40"),
            ("indexgather", "table", "0 to 2^40"), ("gups-mod", "lanes", "0 to 2^40"),
            ("gups-mod", "table", "0 to 2^40"), ("kmeans", "points", "0 to 2^40"),
            ("kmeans", "dimensions", "0 to 2^16"), ("kmeans", "clusters", "1 to 2^20"),
            ("kmeans", "iterations", "1 to 2^32"), ("kmeans", "combine", "1 to 2^40"),
            ("pagerank", "iterations", "1 to 2^32"), ("mer", "genome-bases", "0 to 2^40"),
            ("mer", "read-length", "1 to 2^30"), ("mer", "table", "0 to 2^40")]:
        programs.refuses(2, f"--{option} {huge}: it is {limit}", 0, app, f"--{option}", huge)
    for app in SMALL:
        programs.refuses(2, "--repeats 0: it is 1 to 2^20", 0, app, "--repeats", "0")
    # Legal, but not on this heap.
    for app, what, *arguments in [
            ("mer", "the generated reads", "--genome-bases", "2^40"), ("kmeans", "the points", "--points", "2^40"),
            ("kmeans", "the centres", "--clusters", "2^20", "--dimensions", "2^16", "--points", "1"),
            ("in-degree", "the generated vertices and edges", "--scale", "34"),
            ("pagerank", "the generated vertices and edges", "--scale", "30"),
            ("color", "the generated vertices and edges", "--scale", "40", "--degree", "2^20"),
            ("histo", "heap().allocate: 1099511627776 elements", "--updates", "2^40"),
            ("gups", "heap().allocate: 281474976710656 elements", "--table", "2^48")]:
        programs.refuses(1, what, 0, app, "--heap-bytes", "1GiB", *arguments)
    programs.refuses(1, "the generated reads take", 2, "mer", "--genome-bases", "2^40", "--heap-bytes", "1GiB")


def main():
    cases = {case.__name__: case for case in [bad_lines, alike_on_all, unwritable, one_file, full_disk, names,
                                          limits]}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("bin")
    parser.add_argument("case", choices=cases)
    options = parser.parse_args()
    for name in [name for name in os.environ if name.startswith("ESKER_")]:
        del os.environ[name]
    try:
        with tempfile.TemporaryDirectory(prefix="esker-failure-") as folder:
            cases[options.case](Programs(options, folder))
    except (Failed, subprocess.TimeoutExpired) as failed:
        print(f"failure_test {options.case}: {failed}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

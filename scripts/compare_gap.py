#!/usr/bin/env python3
"""PageRank, shortest paths and breadth-first search beside threads that share one graph, as in the GAP benchmark suite.

usage: compare_gap.py [--bin DIR] [--graph GRAPH]... [--kernel KERNEL]... [--turns N] [--repeats N] [--json FILE]

A GRAPH is kronecker-SCALE or a file: an edge list (.wel), or a road network in DIMACS's format (.gr, .gr.xz),
whose edges get weights of 1 to 255, the same each time, as GAP weighs graphs without weights. Both sides run
with each of their settings; then the best of each run in turns. Seconds of the computation alone, medians over
turns of the medians of their repeats; a search's repeats are from vertices drawn as GAP draws them, the same on
both sides. Ours is verified before it is timed (--verify off does without), the other side each time.
Exit status 1 if anything failed.
"""

import argparse
import json
import lzma
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOLERANCE = "1e-4"
COUNTED = {"pagerank": "iterations", "sssp": "rounds", "bfs": "steps"}
DELTAS = {"kronecker": (1, 2, 4, 8), "road": (125, 250, 500, 1000)}


class Failed(Exception):
    """A program that ended badly; says which."""


def weight_of(number):
    """Of a file's edge: 1 to 255, by SplitMix64's finaliser."""
    bits = (1 << 64) - 1
    word = (number + 1) * 0x9E3779B97F4A7C15 & bits
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & bits
    word = (word ^ word >> 27) * 0x94D049BB133111EB & bits
    return 1 + (word ^ word >> 31) % 255


def write_weighted_list(network, target):
    """A road network as an edge list that both sides read."""
    opener = lzma.open if network.suffix == ".xz" else open
    number = 0
    with opener(network, "rt", encoding="ascii") as lines, open(target, "w", encoding="ascii") as out:
        for line in lines:
            fields = line.split()
            if not fields or fields[0] in ("c", "p"):
                continue
            start, end = (int(field) - 1 for field in (fields[1:3] if fields[0] == "a" else fields[:2]))
            out.write(f"{start} {end} {weight_of(number)}\n")
            number += 1


class Study:
    def __init__(self, options, folder):
        self.options, self.folder = options, Path(folder)

    def arguments_of(self, graph):
        if graph.startswith("kronecker-"):
            return ["--graph", "kronecker", "--scale", graph.split("-")[1]]
        if graph.endswith((".gr", ".gr.xz")):
            target = self.folder / (Path(graph).name.split(".")[0] + ".wel")
            if not target.exists():
                write_weighted_list(Path(graph), target)
            return ["--graph", str(target)]
        return ["--graph", graph]

    def run(self, command):
        report = self.folder / "report.json"
        report.unlink(missing_ok=True)
        done = subprocess.run([*command, "--json", str(report), "--startup", "quiet"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"{' '.join(map(str, command))} ended with {done.returncode}: {done.stdout.strip()[-500:]}")
        return json.loads(report.read_text(encoding="utf-8"))

    def settings(self, kernel, graph):
        """Of ours, and of the other side's."""
        is_road = not graph.startswith("kronecker-")
        if kernel == "pagerank":
            stop = ["--tolerance", TOLERANCE, "--iterations", "200"]
            in_place = [[*stop, "--sweep", "gauss-seidel", "--partition", partition] for partition in ("block", "metis")]
            return [[*stop, "--sweep", "jacobi"], *(in_place if is_road else in_place[:1])], [stop]
        if kernel == "bfs":
            return [["--partition", partition] for partition in (("block", "metis") if is_road else ("block",))], [[]]
        deltas = [["--delta", str(delta)] for delta in self.options.delta or DELTAS["road" if is_road else "kronecker"]]
        ours = [[*delta, "--partition", partition] for delta in deltas
                for partition in (("block", "metis") if is_road else ("block",))]
        return ours, deltas

    def ours(self, kernel, graph, settings, verify="off"):
        return self.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(self.options.pes),
                         self.options.bin / f"esker-{kernel}", *graph, *settings, "--repeats",
                         str(self.options.repeats), "--verify", verify])

    def other(self, kernel, graph, settings):
        return self.run([self.options.bin / "esker-bench-gap", "--kernel", kernel, *graph, *settings, "--threads",
                         str(self.options.pes), "--repeats", str(self.options.repeats)])

    def compare(self, kernel, name):
        graph = self.arguments_of(name)
        sides = {"ours": self.ours, "GAP-like": self.other}
        best = {}
        for (side, run), settings in zip(sides.items(), self.settings(kernel, name)):
            tried = [(run(kernel, graph, one)["seconds"], one) for one in settings] if len(settings) > 1 else \
                [(0, settings[0])]
            best[side] = min(tried)[1]
            for seconds, one in tried if len(tried) > 1 else ():
                print(f"  {side:9} {' '.join(one):62} {seconds:9.4f} s", flush=True)
        if self.options.verify == "on" and not self.ours(kernel, graph, best["ours"], "on")["verified"]:
            raise Failed(f"esker-{kernel} on {name}: not verified")
        reports = {side: [] for side in sides}
        for _ in range(self.options.turns):
            for side, run in sides.items():
                reports[side].append(run(kernel, graph, best[side]))
        row = {"kernel": kernel, "graph": name, "commit": reports["ours"][0]["commit"]}
        for side, all_reports in reports.items():
            seconds = [report["seconds"] for report in all_reports]
            counted = COUNTED[kernel]
            row[side] = {"settings": best[side], "seconds": seconds, counted: all_reports[0][counted]}
            print(f"{kernel:9} {Path(name).name:13} {side:9} {statistics.median(seconds):9.4f} s ({min(seconds):.4f} to "
                  f"{max(seconds):.4f}), {row[side][counted]} {counted}, {' '.join(best[side])}", flush=True)
        row["ratio"] = statistics.median(row["GAP-like"]["seconds"]) / statistics.median(row["ours"]["seconds"])
        print(f"{kernel:9} {Path(name).name:13} speed of ours over GAP-like {row['ratio']:.2f}", flush=True)
        return row


def main():
    kernels = list(COUNTED)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--bin", type=Path, default=ROOT / "build/cpu/bin")
    add("--graph", action="append", help="default: kronecker-18 and kronecker-20")
    add("--kernel", action="append", choices=kernels)
    add("--pes", type=int, default=os.cpu_count(), help="PEs of ours, threads of the other side")
    add("--turns", type=int, default=3)
    add("--repeats", type=int, default=5, help="of a turn")
    add("--delta", action="append", type=int, help="of shortest paths, for both sides; default: four")
    add("--verify", choices=["on", "off"], default="on")
    add("--json", type=Path)
    options = parser.parse_args()
    options.bin = options.bin.resolve()
    rows, failed = [], False
    with tempfile.TemporaryDirectory() as folder:
        study = Study(options, folder)
        for name in options.graph or ["kronecker-18", "kronecker-20"]:
            for kernel in options.kernel or kernels:
                try:
                    rows.append(study.compare(kernel, name))
                except (Failed, OSError, ValueError, lzma.LZMAError) as error:
                    print(f"compare_gap: {error}", file=sys.stderr)
                    failed = True
    if options.json:
        options.json.write_text(json.dumps({"pes": options.pes, "rows": rows}, indent=2) + "\n", encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

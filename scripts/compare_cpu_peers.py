#!/usr/bin/env python3
"""Applications beside what else does the same work on the CPUs of this machine, in turn, and the ratios.

usage: compare_cpu_peers.py [--bin DIR] [--pes N] [--repeats N] [--only NAME]... [--json FILE]
  kmeans, kmeans_wide, kmeans_long
            scikit-learn's Lloyd, as many threads as PEs, on the same points from the same start: 2^20 points
            of 4 coordinates and 8 clusters, 2^21 of 16 and 16, 2^24 of 2 and 8
  mer       jellyfish count -C, as many threads as PEs, on the same FASTQ file
  pagerank, sssp
            the serial code that verifies them, in the style of the GAP benchmark suite

Seconds of the work alone: of jellyfish the whole process, which reads the file too, so that of mer is the
whole job's as well. A peer that is not installed is an error that names it. Exit status 1 if anything failed.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class Failed(Exception):
    """A program that ended badly, or is not there; says which."""


def output_of(command, folder, environment=None):
    try:
        done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False, env=environment)
    except FileNotFoundError as error:
        raise Failed(f"{command[0]} is not there") from error
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout


class Study:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder

    def run_app(self, app, *arguments):
        """The report of a job, and the whole job's seconds."""
        report = Path(self.folder) / "report.json"
        start = time.monotonic()
        output_of(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(self.options.pes),
                   str(self.options.bin / f"esker-{app}"), "--json", str(report), "--startup", "quiet", *arguments],
                  self.folder)
        seconds = time.monotonic() - start
        result = json.loads(report.read_text())
        if not result["verified"] and "off" not in arguments:
            raise Failed(f"esker-{app}: not verified")
        return result, seconds

    def in_turn(self, name, ours, peer):
        """Medians of both, measured in turn."""
        ours_seconds, peer_seconds = [], []
        for _ in range(self.options.repeats):
            ours_seconds.append(ours())
            peer_seconds.append(peer())
        row = {"ours": ours_seconds, "peer": peer_seconds,
               "peer_over_ours": statistics.median(peer_seconds) / statistics.median(ours_seconds)}
        for who in ("ours", "peer"):
            seconds = row[who]
            print(f"{name:10} {who:5} {statistics.median(seconds):8.3f} s ({min(seconds):.3f} to {max(seconds):.3f})")
        print(f"{name:10} ratio {row['peer_over_ours']:8.2f}: above 1, ours is faster")
        return row

    def kmeans(self):
        return self.lloyd("kmeans", 1 << 20, 4, 8)

    def kmeans_wide(self):
        return self.lloyd("kmeans_wide", 1 << 21, 16, 16)

    def kmeans_long(self):
        return self.lloyd("kmeans_long", 1 << 24, 2, 8)

    def lloyd(self, name, points, dimensions, clusters):
        try:
            import numpy
            from sklearn.cluster import KMeans
            from threadpoolctl import threadpool_limits
        except ImportError as error:
            raise Failed(f"kmeans: {error.name} is not there: pip install scikit-learn") from error
        iterations = 10
        random = numpy.random.default_rng(1)
        centres = random.uniform(-10, 10, (clusters, dimensions))
        data = centres[random.integers(0, clusters, points)] + random.normal(0, 1, (points, dimensions))
        file = Path(self.folder) / "points.npy"
        numpy.save(file, data)

        def ours():
            return self.run_app("kmeans", "--input", str(file), "--clusters", str(clusters), "--iterations",
                                str(iterations), "--combine", "1024")[0]["seconds"]

        def peer():
            model = KMeans(clusters, init=data[:clusters].copy(), n_init=1, max_iter=iterations, tol=0,
                           algorithm="lloyd")
            with threadpool_limits(self.options.pes):
                start = time.monotonic()
                model.fit(data)
            return (time.monotonic() - start) * iterations / model.n_iter_
        return self.in_turn(name, ours, peer)

    def mer(self):
        if shutil.which("jellyfish") is None:
            raise Failed("mer: jellyfish is not there: apt-get install jellyfish")
        reads = Path(self.folder) / "reads.fq"
        self.write_reads(reads, 1_000_000, 10)

        def ours():
            return self.run_app("mer", "--input", str(reads), "--k", "31", "--traverse", "off",
                                "--verify", "off")[1]

        def peer():
            start = time.monotonic()
            output_of(["jellyfish", "count", "-C", "-m", "31", "-s", "8M", "-t", str(self.options.pes), "-o",
                       str(Path(self.folder) / "counts.jf"), str(reads)], self.folder)
            return time.monotonic() - start
        return self.in_turn("mer", ours, peer)

    @staticmethod
    def write_reads(file, bases, coverage, length=100):
        import random
        generator = random.Random(1)
        genome = "".join(generator.choices("ACGT", k=bases))
        with open(file, "w", encoding="ascii") as out:
            for number in range(bases * coverage // length):
                at = generator.randrange(bases - length)
                out.write(f"@{number}\n{genome[at:at + length]}\n+\n{'I' * length}\n")

    def serial(self, app, *arguments):
        """Ours and the serial code of one job: verification times itself."""
        ours, peer = [], []
        for _ in range(self.options.repeats):
            report, _ = self.run_app(app, *arguments)
            ours.append(report["seconds"])
            peer.append(report["serial_seconds"])
        ours_left, peer_left = iter(ours), iter(peer)
        return self.in_turn(app, lambda: next(ours_left), lambda: next(peer_left))

    def pagerank(self):
        return self.serial("pagerank", "--graph", "kronecker", "--scale", "16")

    def sssp(self):
        return self.serial("sssp", "--graph", "kronecker", "--scale", "16")


def main():
    names = ["kmeans", "kmeans_wide", "kmeans_long", "mer", "pagerank", "sssp"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=ROOT / "build/cpu/bin")
    parser.add_argument("--pes", type=int, default=os.cpu_count())
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", action="append", choices=names)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    options.bin = options.bin.resolve()
    results, failed = {}, False
    with tempfile.TemporaryDirectory() as folder:
        study = Study(options, folder)
        for name in options.only or names:
            try:
                results[name] = getattr(study, name)()
            except Failed as error:
                print(f"compare_cpu_peers: {error}", file=sys.stderr)
                failed = True
    if options.json:
        options.json.write_text(json.dumps({"pes": options.pes, "seconds": results}, indent=2) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

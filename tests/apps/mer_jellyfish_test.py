#!/usr/bin/env python3
"""The k-mers and counts of esker-mer are those of jellyfish, on the same reads.

mer_jellyfish_test.py --mpiexec FILE --mer FILE --reads FILE PES K
  READS is FASTA or FASTQ, plain or gzip. Ends with 77 where there is no jellyfish.
"""

import argparse
import gzip
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "faults"))
from job import Failed, Job, require  # noqa: E402  (where it stands is known only here)

SECONDS = 180
SKIPPED = 77


def jellyfish_counts(reads, k, folder):
    plain = Path(folder) / "reads"
    with (gzip.open(reads) if reads.name.endswith(".gz") else open(reads, "rb")) as source, open(plain, "wb") as to:
        shutil.copyfileobj(source, to)
    counted = Path(folder) / "jellyfish"
    subprocess.run(["jellyfish", "count", "-C", "-m", str(k), "-s", "1M", "-t", "2", "-o", counted, plain],
                   check=True, timeout=SECONDS)
    dump = subprocess.run(["jellyfish", "dump", "-c", counted], check=True, timeout=SECONDS, capture_output=True,
                          text=True).stdout
    return dict(line.split() for line in dump.splitlines())


def mer_counts(options, folder):
    output = Path(folder) / "kmers"
    command = [options.mer, "--startup", "quiet", "--k", str(options.k), "--input", options.reads, "--min-count", "1",
               "--output", output]
    with Job(options.mpiexec, options.pes, command, folder=folder) as job:
        status, _ = job.wait(SECONDS)
        print(job.output(), end="")
    require(status == 0, f"esker-mer ended with {status}")
    require(", verified" in job.output(), "esker-mer has not verified its result")
    lines = [line.split() for pe in range(options.pes)
             for line in Path(f"{output}.{pe}").read_text().splitlines()]
    counts = {kmer: count for kmer, count, _ in lines}
    require(len(counts) == len(lines), "a k-mer is in two lines")
    return counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("--mer", required=True)
    parser.add_argument("--reads", required=True, type=Path)
    parser.add_argument("pes", type=int)
    parser.add_argument("k", type=int)
    options = parser.parse_args()
    if shutil.which("jellyfish") is None:
        print("no jellyfish here: skipped")
        return SKIPPED
    try:
        with tempfile.TemporaryDirectory() as folder:
            expected = jellyfish_counts(options.reads, options.k, folder)
            counts = mer_counts(options, folder)
        require(len(expected) > 0, "jellyfish has counted nothing")
        require(counts.keys() == expected.keys(),
                f"{len(counts.keys() - expected.keys())} k-mers that jellyfish lacks, "
                f"{len(expected.keys() - counts.keys())} that only it has")
        wrong = [kmer for kmer, count in counts.items() if count != expected[kmer]]
        require(not wrong, f"{len(wrong)} counts differ, of {wrong[:3]} first")
        print(f"{len(counts)} k-mers as jellyfish counts them")
    except Failed as failed:
        print(f"mer_jellyfish_test: {failed}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

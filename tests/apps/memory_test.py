#!/usr/bin/env python3
"""An application holds its input once: a PE's peak is at most 1.5 times its input's bytes and what the runtime declares.

memory_test.py --mpiexec FILE APP PES ARGUMENT...
  Without verification, whose serial reference may hold everything.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "faults"))
from job import Failed, Job, require  # noqa: E402  (where it stands is known only here)

SECONDS = 300
LEAST_INPUT = 64 << 20  # below, the runtime's own memory is most of it
MOST_OF_INPUT = 1.5


def check(options, folder):
    file = Path(folder) / "report.json"
    command = [options.app, "--verify", "off", "--json", str(file), "--startup", "quiet", *options.arguments]
    with Job(options.mpiexec, options.pes, command, folder=folder) as job:
        status, _ = job.wait(SECONDS)
        print(job.output(), end="")
    require(status == 0, f"the exit status is {status}")
    memory = json.loads(file.read_text())["memory"]
    peak, of_input, declared = memory["peak_bytes"], memory["input_bytes"], memory["declared_bytes"]
    print(f"peak {peak >> 20} MiB, input {of_input >> 20} MiB, declared {declared >> 20} MiB")
    require(of_input >= LEAST_INPUT, f"an input of {of_input} bytes a PE shows nothing")
    require(peak >= of_input, f"a peak of {peak} bytes is less than the input's {of_input}")
    limit = MOST_OF_INPUT * of_input + declared
    require(peak <= limit, f"a peak of {peak} bytes, above {limit:.0f}: {MOST_OF_INPUT} x {of_input} + {declared}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("app")
    parser.add_argument("pes", type=int)
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as folder:
            check(options, folder)
    except Failed as failed:
        print(f"memory_test: {failed}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Compiles a user's program several times, as a user does: its CPU time has a limit.

usage: compile_time_test.py readme|cuda COMPILER [HOST_COMPILER]

The limits hold on the machine where they were set, whose time for reference.cpp is REFERENCE_SECONDS. The reference is
compiled in turn with the program, so a machine that is slower changes both, and what is compared is
REFERENCE_SECONDS times the ratio of their least times, which a busy machine changes the least. Exits with 1 above the
limit, with 77 where the compiler is missing.
"""

import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
REFERENCE_SECONDS = 0.40  # g++ 12.2 -O2 on two cores of a cloud machine

# Source, flags, limit in seconds, compilations
PROGRAMS = {
    "readme": (ROOT / "tests/runtime/readme_example.cpp", ["-std=c++20", "-O2"], 0.6, 5),
    "cuda": (HERE / "active_messages.cu",
             ["-std=c++20", "-O2", "-arch=sm_90", "--extended-lambda", "--expt-relaxed-constexpr",
              "-diag-suppress=20014"], 10.0, 2),
}


def cpu_seconds(command):
    """CPU time of a command and of those that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    if len(sys.argv) not in (3, 4) or sys.argv[1] not in PROGRAMS:
        print(__doc__)
        return 2
    source, flags, limit, repeats = PROGRAMS[sys.argv[1]]
    compiler, host_compiler = sys.argv[2], sys.argv[3] if len(sys.argv) == 4 else "g++"
    for tool in (compiler, host_compiler):
        if shutil.which(tool) is None:
            print(f"skipped: there is no {tool}")
            return 77

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "esker").symlink_to(ROOT)
        out = f"{folder}/program.o"
        program = [compiler, *flags, f"-I{ROOT}/include", f"-I{folder}", "-c", str(source), "-o", out]
        reference = [host_compiler, "-std=c++20", "-O2", "-c", str(HERE / "reference.cpp"), "-o", out]
        times = [(cpu_seconds(program), cpu_seconds(reference)) for _ in range(repeats)]
    program_seconds, reference_seconds = (min(column) for column in zip(*times))
    ratio = program_seconds / reference_seconds
    comparable = ratio * REFERENCE_SECONDS
    print(f"{source.name}: {program_seconds:.3f} s of CPU here, {ratio:.2f} times the reference's "
          f"{reference_seconds:.3f} s: {comparable:.3f} s where that takes {REFERENCE_SECONDS} s; at most {limit} s")
    if comparable > limit:
        print("see what the public headers include: g++ -H, g++ -ftime-report")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

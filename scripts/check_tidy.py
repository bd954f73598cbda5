#!/usr/bin/env python3
"""clang-tidy has no findings in the library: check_tidy.py BUILD_FOLDER, which clang++ is configured for.

The library as that build compiles it: many sources at a time, which have most headers in common. A source is looked at
again when it, a header, .clang-tidy or clang-tidy has changed, if there is ccache. Exit status: 0 = none, 1 = some.
"""
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = re.compile(r" -o CMakeFiles/esker(_tasks|_pipeline|_transfer)?\.dir/")


def environment():
    """What decides a finding and is neither a source nor an option."""
    version = subprocess.run(["clang-tidy", "--version"], check=True, stdout=subprocess.PIPE).stdout
    files = (ROOT / name for name in (".clang-tidy", "scripts/tidy.sh"))
    decisive = hashlib.sha256(b"".join([version, *(file.read_bytes() for file in files)])).hexdigest()
    return {**os.environ, "CCACHE_COMPILERCHECK": f"string:{decisive}", "CCACHE_COMPILERTYPE": "clang",
            "CCACHE_COMMENTS": "1"}  # one may say NOLINT


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    build = Path(sys.argv[1]).resolve()
    entries = [e for e in json.loads((build / "compile_commands.json").read_text()) if LIBRARY.search(e["command"])]
    if not entries:
        print(f"check_tidy: {build} compiles nothing of the library")
        return 1
    launcher = [ccache] if (ccache := shutil.which("ccache")) else []
    variables = environment()

    def look(entry):
        words = shlex.split(entry["command"])
        output = words.index("-o") + 1
        words[output] += ".tidy.o"
        return subprocess.run([*launcher, str(ROOT / "scripts/tidy.sh"), *words[1:]], cwd=entry["directory"],
                              env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        results = list(pool.map(look, entries))
    for result in results:
        print(result.stdout, end="")
    failed = sum(result.returncode != 0 for result in results)
    print(f"check_tidy: {len(entries)} sources, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

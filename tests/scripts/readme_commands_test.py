#!/usr/bin/env python3
"""The README's commands that start programs run as they stand: as root, on two cores.

readme_commands_test.py BIN
  What the README exports is the only setting of Open MPI. Files that it names are the repository's.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SECONDS = 600


def code_lines(text):
    """Lines of blocks of code, without comments."""
    inside = False
    for line in text.splitlines():
        if line.startswith("```"):
            inside = not inside
        elif inside:
            yield re.sub(r"\s+#.*", "", line)


def environment(lines):
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "ESKER_"))}
    for line in lines:
        if line.startswith("export OMPI_"):
            plain.update(word.split("=", 1) for word in line.split()[1:])
    return plain


def main():
    lines = list(code_lines((ROOT / "README.md").read_text()))
    commands = [line for line in lines if re.match(r"(mpirun .*)?build/release/bin/esker-", line)]
    if len(commands) < 4:
        print(f"the README has {len(commands)} commands: this test has lost them", file=sys.stderr)
        return 1
    failed = 0
    with tempfile.TemporaryDirectory(prefix="esker-readme-") as folder:
        for entry in ROOT.iterdir():  # what is written goes to the folder
            if entry.name != "build":
                (Path(folder) / entry.name).symlink_to(entry)
        (Path(folder) / "build/release").mkdir(parents=True)
        (Path(folder) / "build/release/bin").symlink_to(Path(sys.argv[1]).resolve())
        for command in commands:
            print("$", command, flush=True)
            done = subprocess.run(command, shell=True, cwd=folder, env=environment(lines), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS)
            print(done.stdout, end="", flush=True)
            is_verified = ", verified" in done.stdout or '"verified": true' in done.stdout
            if done.returncode != 0 or not is_verified:
                print(f"ends with {done.returncode}, {'' if is_verified else 'not '}verified: {command}",
                      file=sys.stderr)
                failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

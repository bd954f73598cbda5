#!/usr/bin/env python3
"""Scripts that are given another file than they read name it and say why, and end with 1."""

import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
FAILURES = []


def refuses(text, script, *arguments):
    done = subprocess.run([sys.executable, str(SCRIPTS / script), *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60)
    if done.returncode != 1 or text not in done.stdout or "Traceback" in done.stdout:
        FAILURES.append(f"{script}: status {done.returncode}, no '{text}': {done.stdout}")


def main():
    with tempfile.TemporaryDirectory(prefix="esker-wrong-") as name:
        folder = Path(name)
        report, events, cut = folder / "report.json", folder / "list.json", folder / "cut.json"
        report.write_text('{"app": "fib", "seconds": 1}')
        events.write_text("[]")
        cut.write_text('{"traceEvents": [')
        for file in (report, events):
            refuses(f"{file}: it has no figures", "plot_tasks.py", folder / "plots", file)
            refuses(f"{file}: no trace", "merge_traces.py", folder / "merged.json", file)
        for script in ("plot_tasks.py", "merge_traces.py"):
            refuses(f"{cut}: ", script, folder / "out", cut)
            refuses("nothing.json", script, folder / "out", folder / "nothing.json")
    for failure in FAILURES:
        print(failure, file=sys.stderr)
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())

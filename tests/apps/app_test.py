#!/usr/bin/env python3
"""An application as its users run it: the job ends with 0, verified, with a sound report.

app_test.py --mpiexec FILE [--backend NAME] APP PES STYLE[,STYLE]... ARGUMENT...
  Runs the job in each style. What a style may not change, the work, must agree.
app_test.py --mpiexec FILE --refuses TEXT APP PES STYLE ARGUMENT...
  The job ends with 2, says TEXT, and writes no report.
PES is 0 for a start without mpirun.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "faults"))
import gups_report  # noqa: E402  (where job.py stands is known only here)
from job import Failed, Job, require, require_text  # noqa: E402

SECONDS = 400
FIELDS = {
    "app": str, "backend": str, "style": str, "pes": int, "seconds": float, "work": float, "rate_per_s": float,
    "verified": bool, "messages_local": int, "messages_remote": int, "remote_fraction": float, "buffers_sent": int,
    "average_buffer_bytes": float, "config": dict, "version": str,
}


def finish(options, style, folder):
    """Exit status and output of a whole job, and where its report would be."""
    report = Path(folder) / f"{style}.json"
    command = [options.app, "--style", style, "--json", str(report), "--startup", "quiet", *options.arguments]
    if options.pes == 0:
        done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=SECONDS)
        status, output = done.returncode, done.stdout
    else:
        with Job(options.mpiexec, options.pes, command, folder=folder) as job:
            status, _ = job.wait(SECONDS)
            output = job.output()
    print(output, end="")
    return status, output, report


def check_report(report, app, backend, pes, style):
    for name, kind in FIELDS.items():
        require(name in report, f"the report has no '{name}'")
        value = report[name]
        # A whole number is a legal way to write a real one.
        fits = isinstance(value, kind) or (kind is float and isinstance(value, int))
        require(fits and not (kind is not bool and isinstance(value, bool)), f"'{name}' is {value!r}")
    require(report["verified"] is True, "the result is not verified")
    require((f"esker-{report['app']}", report["backend"]) == (app, backend), "another application or back end")
    require(report["style"] == style, f"the report says {report['style']}")
    require(report["pes"] == pes, f"{report['pes']} PEs instead of {pes}")
    require(report["version"] != "", "the version is empty")
    require("heap_bytes" in report["config"], "the configuration has no heap_bytes")
    require(report["work"] > 0 and report["seconds"] > 0, "no work, or no time")
    work = report["work"]
    require(abs(report["rate_per_s"] * report["seconds"] - work) < 1e-6 * work, "rate, time and work do not agree")
    require(0 <= report["remote_fraction"] <= 1, f"{report['remote_fraction']} of the accesses are remote")
    if pes == 1 and "projected_pes" not in report:
        require(report["messages_remote"] == 0, "remote messages on one PE")


def run(options, style, folder):
    status, output, file = finish(options, style, folder)
    require(status == 0, f"the exit status is {status}")
    require_text(output, ", verified")
    report = json.loads(file.read_text())
    check_report(report, Path(options.app).name, options.backend, max(options.pes, 1), style)
    if report["app"] == "gups" and style == "gravel":
        gups_report.check(report, options.arguments)
    if report.get("push") == "edges":  # a put along each edge, whether or not it is a message
        require(abs(report["remote_fraction"] - report["cut_fraction"]) < 1e-9,
                f"{report['remote_fraction']} of the accesses are remote, of the edges {report['cut_fraction']}")
    return report


def refuse(options, folder):
    status, output, file = finish(options, options.styles, folder)
    require(status == 2, f"the exit status is {status}, not 2")
    require_text(output, f"{Path(options.app).name}: ", options.refuses)
    require(not file.exists(), "there is a report")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("--refuses")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("app")
    parser.add_argument("pes", type=int)
    parser.add_argument("styles")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    style = options.styles
    try:
        with tempfile.TemporaryDirectory(prefix="esker-app-") as folder:
            if options.refuses:
                refuse(options, folder)
                return 0
            works = {}
            for style in options.styles.split(","):
                works[style] = run(options, style, folder)["work"]
            require(len(set(works.values())) == 1, f"the styles' work is {works}")
    except Failed as failed:
        print(f"app_test: --style {style} {' '.join(options.arguments)} on {options.pes} PEs: {failed}",
              file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""An application as its users run it: the job ends with 0, verified, with a sound report.

app_test.py --mpiexec FILE APP PES STYLE[,STYLE]... ARGUMENT...
  Runs the job in each style. What a style may not change, the work and the messages, must agree.
app_test.py --mpiexec FILE --refuses TEXT APP PES STYLE ARGUMENT...
  The job ends with 2, says TEXT, and writes no report.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "faults"))
from job import Failed, Job, require, require_text  # noqa: E402  (where it stands is known only here)

SECONDS = 100


def run(options, style, folder):
    report_file = Path(folder) / f"{style}.json"
    command = [options.app, "--style", style, "--json", str(report_file), "--startup", "quiet", *options.arguments]
    with Job(options.mpiexec, options.pes, command, folder=folder) as job:
        status, _ = job.wait(SECONDS)
        print(job.output(), end="")
    require(status == 0, f"--style {style}: ended with {status}")
    report = json.loads(report_file.read_text())
    require(report["verified"] is True, f"--style {style}: not verified")
    require(report["style"] == style, f"--style {style}: the report says {report['style']}")
    require(report["pes"] == options.pes, f"{report['pes']} PEs instead of {options.pes}")
    require(f"esker-{report['app']}" == Path(options.app).name, f"the report is {report['app']}'s")
    require(report["work"] > 0 and report["seconds"] > 0 and report["rate_per_s"] > 0, "no work, or no time")
    if options.pes == 1:
        require(report["messages_remote"] == 0, "remote messages on one PE")
    if report["app"] == "pagerank":  # a put along each edge, whether or not it is a message
        require(abs(report["remote_fraction"] - report["cut_fraction"]) < 1e-9,
                f"{report['remote_fraction']} of the accesses are remote, of the edges {report['cut_fraction']}")
    require(0 <= report["remote_fraction"] <= 1, f"{report['remote_fraction']} of the accesses are remote")
    return report


def refuse(options, folder):
    command = [options.app, "--style", options.styles, "--json", "report.json", *options.arguments]
    with Job(options.mpiexec, options.pes, command, folder=folder) as job:
        status, _ = job.wait(SECONDS)
        print(job.output(), end="")
        require(status == 2, f"the exit status is {status}, not 2")
        require_text(job.output(), f"{Path(options.app).name}: ", options.refuses)
    require(not (Path(folder) / "report.json").exists(), "there is a report")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("--refuses")
    parser.add_argument("app")
    parser.add_argument("pes", type=int)
    parser.add_argument("styles")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as folder:
            if options.refuses:
                refuse(options, folder)
                return 0
            reports = [run(options, style, folder) for style in options.styles.split(",")]
        for report in reports[1:]:
            require(report["work"] == reports[0]["work"], f"--style {report['style']}: other work")
    except Failed as failed:
        print(f"app_test: {failed}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""esker-gups as its users run it: every way must finish, verify, and report what it has done.

gups_test.py [--mpiexec mpirun] --gups FILE CASE ARGUMENT..., where CASE is
  runs PES ARGUMENT...     the job ends with 0 and a sound report
  refuses PES TEXT ARGUMENT...
                           the job ends with 2 and says TEXT
PES is 0 for a start without mpirun.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "faults"))
from job import Failed, Job, require, require_text  # noqa: E402  (where it stands is known only here)

SECONDS = 50
FIELDS = {
    "app": str, "backend": str, "style": str, "pes": int, "seconds": float, "work": float, "rate_per_s": float,
    "verified": bool, "messages_local": int, "messages_remote": int, "remote_fraction": float, "buffers_sent": int,
    "average_buffer_bytes": float, "config": dict, "version": str,
}


def finish(options, pes, arguments, folder):
    """Exit status and output of a whole job."""
    command = [options.gups, *arguments]
    if pes == 0:
        done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=SECONDS)
        status, output = done.returncode, done.stdout
    else:
        with Job(options.mpiexec, pes, command, folder=folder) as job:
            status, _ = job.wait(SECONDS)
            output = job.output()
    print(output, end="")
    return status, output


def option(arguments, name, default):
    return arguments[arguments.index(name) + 1] if name in arguments else default


def number(text):
    base, _, exponent = text.partition("^")
    return int(base) ** int(exponent or 1)


def hpcc_remote(table, pes):
    """Updates of HPCC's stream, from its start, whose entry is another PE's. The start is far from random."""
    remote, a = 0, 1
    for k in range(4 * table):
        a = (a << 1) ^ 7 if a >> 63 else a << 1
        a &= 2**64 - 1
        remote += k // (4 * table // pes) != (a & (table - 1)) // (table // pes)
    return remote


def check_report(report, pes, arguments):
    for name, kind in FIELDS.items():
        require(name in report, f"the report has no '{name}'")
        value = report[name]
        # A whole number is a legal way to write a real one.
        fits = isinstance(value, kind) or (kind is float and isinstance(value, int))
        require(fits and not (kind is not bool and isinstance(value, bool)), f"'{name}' is {value!r}")
    require(report["verified"] is True, "the result is not verified")
    require((report["app"], report["backend"]) == ("gups", "cpu"), "another application or back end")
    require(report["pes"] == pes, f"{report['pes']} PEs instead of {pes}")
    require(report["version"] != "", "the version is empty")
    require("heap_bytes" in report["config"], "the configuration has no heap_bytes")

    hpcc = "--hpcc" in arguments
    nodes = int(option(arguments, "--project", "0"))
    require(report["op"] == ("xor" if hpcc else option(arguments, "--op", "inc")), f"op is {report['op']}")
    require(report["election"] == option(arguments, "--election", "auto"), f"election is {report['election']}")

    # Each PE sends as many updates, and no fewer than asked for in all; of a projection one PE's are sent.
    work = report["work"]
    if "--size" not in arguments:
        table = number(option(arguments, "--table", "2^22"))
        asked = 4 * table if hpcc else number(option(arguments, "--updates", "2^24"))
        parts = nodes or pes
        require(work == -(-asked // parts) * (1 if nodes else parts), f"{work} updates of {asked}")
        require(report["table_words"] == -(-table // parts) * parts, f"{report['table_words']} words")
    require(report["seconds"] > 0, "it took no time")
    require(abs(report["rate_per_s"] * report["seconds"] - work) < 1e-6 * work, "rate, time and work do not agree")

    local, remote = report["messages_local"], report["messages_remote"]
    puts_at_home = option(arguments, "--op", "inc") == "put" and option(arguments, "--election", "auto") == "auto"
    if puts_at_home:  # a put to the PE itself is a store and no message
        require(local == 0, f"{local} of the puts to this PE are messages")
        require(abs(remote / work - (pes - 1) / pes) < 0.02, f"{remote} of {work} puts are remote")
        require(abs(report["remote_fraction"] - remote / work) < 1e-9, "remote_fraction is not of all puts")
    else:
        require(local + remote == work, f"{local} + {remote} messages for {work} updates")
        require(abs(report["remote_fraction"] - remote / work) < 1e-9, "remote_fraction is another one")
        expected = hpcc_remote(table, pes) / work if hpcc else 1 - 1 / (nodes or pes)
        require(abs(remote / work - expected) < (1e-9 if hpcc else 0.02),
                f"{remote / work:.3f} of the messages are remote, not {expected:.3f}")
    if pes > 1 or nodes > 1:
        require(report["buffers_sent"] > 0, "no buffer was sent")
        limit = report["config"]["node_buffer_bytes"]
        require(64 < report["average_buffer_bytes"] <= limit, f"buffers of {report['average_buffer_bytes']} bytes")
    else:
        require(report["buffers_sent"] == 0, "one PE has sent buffers")
    if hpcc:
        require(report["hpcc_rules"]["look_ahead_held"] is True, "the look-ahead is not that of the rules")
        require(report["wrong_entries"] * 100 <= report["table_words"], "more than 1 % of the entries are wrong")
    if nodes:
        require(report["projected_pes"] == nodes, "the projection is of another size")


def runs(options, pes, arguments):
    with tempfile.TemporaryDirectory(prefix="esker-gups-") as folder:
        status, output = finish(options, pes, [*arguments, "--json", "report.json"], folder)
        require(status == 0, f"the exit status is {status}")
        require_text(output, ", verified")
        check_report(json.loads((Path(folder) / "report.json").read_text()), max(pes, 1), arguments)


def refuses(options, pes, text, arguments):
    with tempfile.TemporaryDirectory(prefix="esker-gups-") as folder:
        status, output = finish(options, pes, [*arguments, "--json", "report.json"], folder)
        require(status == 2, f"the exit status is {status}, not 2")
        require_text(output, "esker-gups: ", text)
        require(not (Path(folder) / "report.json").exists(), "there is a report")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpiexec", default="mpirun")
    parser.add_argument("--gups", required=True)
    parser.add_argument("case", choices=("runs", "refuses"))
    parser.add_argument("pes", type=int)
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    try:
        if options.case == "runs":
            runs(options, options.pes, options.arguments)
        else:
            refuses(options, options.pes, options.arguments[0], options.arguments[1:])
    except Failed as failure:
        print(f"{options.case} {' '.join(options.arguments)} on {options.pes} PEs: {failure}", file=sys.stderr)
        return 1
    print("as expected")
    return 0


if __name__ == "__main__":
    sys.exit(main())

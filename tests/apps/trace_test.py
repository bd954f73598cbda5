#!/usr/bin/env python3
"""The trace of esker-gups on several PEs: one file a PE, whole after merging, and as the report counts it.

trace_test.py --mpiexec mpirun --gups FILE --merge FILE PES ARGUMENT...
"""

import argparse
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "faults"))
from job import Failed, Job, require  # noqa: E402  (where it stands is known only here)

SECONDS = 180
CLOCKS_US = 100  # PEs of a host read the same clocks, a moment apart


def of(events, name, phase):
    return [event for event in events if event["name"] == name and event["ph"] == phase]


def check_flows(events, followed_across):
    flows = collections.defaultdict(list)
    for event in events:
        if event["name"] == "messages":
            flows[event["id"]].append(event)
    require(flows, "no flow")
    across = 0
    for name, flow in flows.items():
        phases = collections.Counter(event["ph"] for event in flow)
        require(phases["s"] == 1 and phases["f"] == 1, f"flow {name} has {dict(phases)}")
        start = next(event for event in flow if event["ph"] == "s")
        end = next(event for event in flow if event["ph"] == "f")
        require(start["ts"] <= end["ts"] + CLOCKS_US, f"flow {name} ends {start['ts'] - end['ts']} us early")
        across += start["pid"] != end["pid"]
    require(across == followed_across, f"{across} flows lead to another PE, not {followed_across}")


def check(files, merged, report, pes):
    sent = 0
    for pe, file in enumerate(files):
        trace = json.loads(file.read_text())
        other, events = trace["otherData"], trace["traceEvents"]
        require((other["pe"], other["pes"]) == (pe, pes), f"{file} is that of PE {other['pe']} of {other['pes']}")
        require(other["events_dropped"] == 0, f"{other['events_dropped']} events dropped")
        require({event["pid"] for event in events} == {pe + 1}, f"{file} has another process")
        names = [event["args"]["name"] for event in events if event["name"] in ("process_name", "thread_name")]
        require(names[0] == f"PE {pe}" and "network" in names and "aggregator 0" in names, f"names are {names}")
        published = sum(event["args"]["messages"] for event in of(events, "publish", "X"))
        repacked = sum(event["args"]["messages"] for event in of(events, "repack", "X"))
        require(published == repacked == report["work"] / pes, f"{published} messages published, {repacked} repacked")
        require(len(of(events, "run: gups", "X")) > 0, "the kernel does not show")
        sent += len(of(events, "send", "b"))
        if pe == 0:
            stages = report["stages"]
            require(stages["pe"] == 0, "the stages are another PE's")
            require(stages["send"]["count"] == len(of(events, "send", "e")), "another number of buffers sent")
            require(stages["gather"]["count"] == stages["fill"]["count"] == len(of(events, "close", "X")),
                    "another number of buffers closed")
            require(stages["package_wait"]["count"] == len(of(events, "publish", "X")), "another number of packages")
            require(stages["apply"]["count"] == len(of(events, "apply", "X")), "another number of frames applied")
    require(sent == report["buffers_sent"], f"{sent} sends, the report has {report['buffers_sent']}")
    together = json.loads(merged.read_text())
    require(len(together["otherData"]["pes"]) == pes, "the merged file has not all PEs")
    check_flows(together["traceEvents"], report["buffers_sent"])


def run(options):
    with tempfile.TemporaryDirectory(prefix="esker-trace-") as name:
        folder = Path(name)
        arguments = [*options.arguments, "--json", "report.json", "--trace", "trace.json"]
        with Job(options.mpiexec, options.pes, [options.gups, *arguments], folder=folder) as job:
            status, _ = job.wait(SECONDS)
            print(job.output(), end="")
        require(status == 0, f"the exit status is {status}")
        files = [folder / f"trace.{pe}.json" for pe in range(options.pes)]
        require(sorted(folder.glob("trace*")) == files, f"the traces are {sorted(folder.glob('trace*'))}")
        merged = folder / "merged.json"
        subprocess.run([sys.executable, options.merge, merged, *files], check=True, timeout=SECONDS)
        check(files, merged, json.loads((folder / "report.json").read_text()), options.pes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpiexec", default="mpirun")
    parser.add_argument("--gups", required=True)
    parser.add_argument("--merge", required=True)
    parser.add_argument("pes", type=int)
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    try:
        run(options)
    except Failed as failure:
        print(f"{' '.join(options.arguments)} on {options.pes} PEs: {failure}", file=sys.stderr)
        return 1
    print("as expected")
    return 0


if __name__ == "__main__":
    sys.exit(main())

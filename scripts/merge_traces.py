#!/usr/bin/env python3
"""Puts the traces of several PEs into one file, so that the ways of messages between them show.

usage: merge_traces.py OUTPUT FILE...
"""

import json
import sys
from pathlib import Path


def merge(files):
    """One trace with the events of all; times count from the midnight before the first file's start."""
    events, other, midnight = [], [], None
    for file in files:
        trace = json.loads(Path(file).read_text(encoding="utf-8"))
        mine = trace["otherData"]["midnight_unix_s"]
        midnight = mine if midnight is None else midnight
        for event in trace["traceEvents"]:
            if "ts" in event:
                event["ts"] += (mine - midnight) * 1e6
            events.append(event)
        other.append(trace["otherData"])
    return {"displayTimeUnit": "ns", "traceEvents": events, "otherData": {"pes": other}}


def main():
    if len(sys.argv) < 3:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    try:
        Path(sys.argv[1]).write_text(json.dumps(merge(sys.argv[2:])), encoding="utf-8")
    except (OSError, ValueError, KeyError) as error:
        print(f"merge_traces.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

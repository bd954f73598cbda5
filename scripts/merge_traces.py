#!/usr/bin/env python3
"""Puts the traces of several PEs into one file, so that the ways of messages between them show.

usage: merge_traces.py OUTPUT FILE...
"""

import json
import sys
from pathlib import Path


def read(file):
    """Raises OSError, or ValueError for what is no trace."""
    try:
        trace = json.loads(Path(file).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None
    other = trace.get("otherData") if isinstance(trace, dict) else None
    if not isinstance(other, dict) or "midnight_unix_s" not in other or "traceEvents" not in trace:
        raise ValueError(f"{file}: no trace that --trace has written")
    return trace


def merge(files):
    """One trace with the events of all; times count from the midnight before the first file's start."""
    events, other, midnight = [], [], None
    for file in files:
        trace = read(file)
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
    except (OSError, ValueError) as error:
        print(f"merge_traces.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Takes the place of mpirun, srun and sbatch, by its name, and writes what an application would write.

Time falls with the PEs to the power of 0.9, and each style has its own pace; so tests know every figure. What goes
wrong stands in behaviour.json beside this: {"gups coprocessor 2": "crash"}, by application, style and PEs. Each run
adds a line to runs.txt.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACE = {"gravel": 1.0, "coalesced-agg": 1.25, "coalesced": 2.0, "per-lane": 8.0, "coprocessor": 4.0,
        "coprocessor-large": 1.6}


def histogram(p50):
    return {"unit": "us", "count": 10, "p50": p50, "p99": 4 * p50, "max": 5 * p50, "buckets": []}


def report(app, style, pes, options):
    nodes = int(options.get("--project", 0))
    work = float(options.get("--updates", 1e6)) / max(1, nodes)
    seconds = work / 1e7 / pes**0.9 * PACE[style]
    remote = 1 - 1 / max(pes, nodes)
    return {
        "app": app, "backend": "cpu", "device": "cpu", "style": style, "pes": pes, "seconds": seconds,
        "seconds_least": 0.9 * seconds, "seconds_most": 1.2 * seconds, "work": work, "work_unit": "updates",
        "rate_per_s": work / seconds, "verified": True, "verification": "on",
        "messages_local": work * (1 - remote), "messages_remote": work * remote, "remote_fraction": remote,
        "buffers_sent": 17, "average_buffer_bytes": 65440.0, "config": {"cpu_threads": 1}, "transport": "fake",
        "version": "0.1.0", "commit": "abc",
        "stages": {"pe": 0, "gather": histogram(100), "send": histogram(800), "apply": histogram(50),
                   "package_wait": {"unit": "us", "count": 0, "buckets": []}},
        **({"projected_pes": nodes} if nodes else {}),
    }


def launch(words):
    pes = int(words[words.index("-n") + 1])
    program, *arguments = words[words.index("-n") + 2:]
    app = Path(program).name.removeprefix("esker-")
    options = {a: b for a, b in zip(arguments, [*arguments[1:], ""]) if a.startswith("--")}
    style = options.get("--style", "gravel")
    with (HERE / "runs.txt").open("a") as log:
        log.write(f"{Path(sys.argv[0]).name} {pes} {app} {style}\n")
    file = HERE / "behaviour.json"
    what = (json.loads(file.read_text()) if file.exists() else {}).get(f"{app} {style} {pes}", "")
    result = report(app, style, pes, options)
    if what == "crash":
        print("esker: PE 1: <b>the network</b> is gone & lost", file=sys.stderr)
        return 134
    if what == "hang":
        print("waiting for nothing", file=sys.stderr, flush=True)
        time.sleep(600)
    if what == "wrong":
        print("esker-gups: 3 words of the table are wrong", file=sys.stderr)
        Path(options["--json"]).write_text(json.dumps({**result, "verified": False}))
        return 1
    if what == "interrupt":  # as Ctrl-C would, in the middle of a run
        os.kill(os.getppid(), 2)
        time.sleep(600)
    changed = {"unverified": {"verified": False, "verification": "off"}, "another style": {"style": "other"},
               "nan": {"seconds": float("nan")}, "lies": {"verified": "yes"}}.get(what, {})
    if what != "silent":
        Path(options["--json"]).write_text(json.dumps({**result, **changed}))
    return 0


def submit(words):
    """Runs the job at once, as the scheduler would later."""
    script = Path(words[-1])
    number = str(sum(1 for _ in (HERE / "jobs.txt").open()) + 1 if (HERE / "jobs.txt").exists() else 1)
    with (HERE / "jobs.txt").open("a") as log:
        log.write(" ".join(words) + "\n")
    done = subprocess.run(["bash", str(script)], env={**os.environ, "SLURM_JOB_ID": number}, stderr=subprocess.PIPE)
    (HERE / f"job.{number}.txt").write_bytes(done.stderr)
    print(number)
    return 0


if __name__ == "__main__":
    sys.exit((submit if Path(sys.argv[0]).name == "sbatch" else launch)(sys.argv[1:]))

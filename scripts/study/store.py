"""The folder of a study: one file a run, so that nothing that was measured is lost and an interrupted study goes on."""

import json
import math
import os
import re
import socket
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .launch import Ended, Launcher, describe_exit
from .plan import Point, Run

KEPT_BYTES = 64 * 1024  # of a run's stdout and stderr each, from their end

# How a run can end. Only the first gives figures.
VERIFIED, FAILED, TIMED_OUT, NOT_VERIFIED, REFUSED = "verified", "failed", "timed out", "not verified", "refused"

NUMBERS = ("seconds", "work", "rate_per_s", "messages_local", "messages_remote", "remote_fraction", "buffers_sent",
           "average_buffer_bytes")
SPREAD = ("seconds_least", "seconds_most")  # of an application that repeats its work


class StoreError(Exception):
    """A folder that cannot be used for this study."""


def judge(point: Point, ended: Ended, report: Any) -> tuple[str, str]:
    """The status of a run and, unless it is verified, why. `report` is None where the run wrote none."""
    if ended.timed_out:
        return TIMED_OUT, f"was ended after {ended.wall_s:.0f} s"
    wrong_result = isinstance(report, dict) and report.get("verified") is False and report.get("verification") != "off"
    if ended.exit_status != 0:
        return ((NOT_VERIFIED, f"its result is wrong; {describe_exit(ended.exit_status)}") if wrong_result
                else (FAILED, describe_exit(ended.exit_status)))
    if not isinstance(report, dict):
        return REFUSED, "it wrote no JSON object"
    expected = {"app": point.app, "style": point.style, "pes": point.pes}
    if point.projected_nodes:
        expected["projected_pes"] = point.projected_nodes
    for name, value in expected.items():
        if report.get(name) != value:
            return REFUSED, f"its JSON has '{name}': {report.get(name)!r} where {value!r} was asked for"
    for name in (*NUMBERS, *(n for n in SPREAD if n in report)):
        value = report.get(name)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value) or value < 0:
            return REFUSED, f"its JSON has '{name}': {value!r}, which is no number"
    for name in ("seconds", "work", "rate_per_s", "seconds_least"):
        if report.get(name) == 0:
            return REFUSED, f"its JSON has '{name}': 0"
    least, most = (report.get(n, report["seconds"]) for n in SPREAD)
    if not least <= report["seconds"] <= most:
        return REFUSED, f"its JSON has a median of {report['seconds']} s outside {least} to {most}"
    if report.get("verified") is not True:
        return NOT_VERIFIED, ("its result is wrong" if wrong_result else "verification was off")
    return VERIFIED, ""


class Store:
    """State     DIR/study.json: how runs are started. DIR/runs/KEY.ROUND.json: each run that has ended.
    Contract  A record is written whole or not at all. Several processes may measure different runs of one study."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = folder / "runs"
        self.scratch = folder / "scratch"

    def claim(self, launcher: Launcher, bin_folder: Path) -> None:
        """Refuses to mix runs that were started in different ways. Raises StoreError."""
        now = {"launcher": list(launcher.words), "bin": str(bin_folder), "environment": our_environment(os.environ)}
        self.runs.mkdir(parents=True, exist_ok=True)
        self.scratch.mkdir(exist_ok=True)
        file = self.folder / "study.json"
        before = read_json(file)
        if before is None:
            write_whole(file, json.dumps(now, indent=2) + "\n")
            return
        for name, value in now.items():
            if before.get(name) != value:
                raise StoreError(f"{self.folder} was measured with {name} {before.get(name)!r}, and this is {value!r}: "
                                 "name another folder with --out")

    def file_of(self, run: Run) -> Path:
        return self.runs / f"{run.point.key}.{run.round}.json"

    def read(self, run: Run) -> dict[str, Any] | None:
        """The record of a run, or None if it has not ended yet."""
        record = read_json(self.file_of(run))
        return record if isinstance(record, dict) and "status" in record else None

    def scratch_file(self, run: Run, suffix: str) -> Path:
        return self.scratch / f"{run.point.key}.{run.round}.{suffix}"

    def keep(self, run: Run, command: list[str], load: float, ended: Ended) -> dict[str, Any]:
        """Makes a run that has ended a record."""
        report_file = self.scratch_file(run, "json")
        report = read_json(report_file)
        status, reason = judge(run.point, ended, report)
        record = {
            **asdict(run.point), "round": run.round, "title": run.title, "command": command, "status": status,
            "reason": reason, "exit_status": ended.exit_status, "wall_s": round(ended.wall_s, 3),
            "ended": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "machine": {**machine(), "load_average": load},
            "stdout": tail(self.scratch_file(run, "stdout")), "stderr": tail(self.scratch_file(run, "stderr")),
            "report": report,
        }
        write_whole(self.file_of(run), json.dumps(record, indent=1) + "\n")
        self.sweep_up(run)
        return record

    def sweep_up(self, run: Run) -> None:
        for suffix in ("json", "stdout", "stderr"):
            self.scratch_file(run, suffix).unlink(missing_ok=True)


def read_json(file: Path) -> Any:
    """None for a file that is not there or not JSON."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def write_whole(file: Path, content: str | bytes) -> None:
    """The file has its old content or the new one, whenever this is interrupted."""
    partial = file.with_name(f".{file.name}.{socket.gethostname()}.{os.getpid()}")
    with partial.open("wb") as out:
        out.write(content.encode() if isinstance(content, str) else content)
        out.flush()
        os.fsync(out.fileno())
    partial.replace(file)


def tail(file: Path) -> str:
    """The end of a run's output; says how much is missing before it."""
    try:
        content = file.read_bytes()
    except OSError:
        return ""
    left_out = len(content) - KEPT_BYTES
    return (f"[{left_out} bytes before this are left out]\n" if left_out > 0 else "") + content[-KEPT_BYTES:].decode(
        errors="replace")


def our_environment(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in sorted(environment.items()) if name.startswith("ESKER_")}


def machine() -> dict[str, Any]:
    try:
        cpu = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        cpu = None
    return {"host": socket.gethostname(), "cpu": cpu[1] if cpu else "unknown", "cores": os.cpu_count() or 1}

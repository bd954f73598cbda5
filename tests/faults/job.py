"""Starts a job under mpirun, watches it, and leaves no process of it behind."""

import os
import signal
import subprocess
import threading
import time
import uuid

MARK = "TEST_JOB_MARK"


class Failed(Exception):
    """The case does not hold; the text says why."""


class Job:
    """One mpirun and its processes, found again by a mark in their environment.

    Output is standard output and standard error together, as it comes. Use as a context manager: leaving
    it ends whatever of the job is left, and complains if that was more than nothing.
    """

    def __init__(self, mpiexec, pes, command, environment=None, mpi_options=(), folder=None):
        self.mark = uuid.uuid4().hex
        variables = {name: value for name, value in os.environ.items() if not name.startswith("ESKER_")}
        variables.update(environment or {})
        variables[MARK] = self.mark
        launch = [mpiexec, "--allow-run-as-root", "--oversubscribe", *mpi_options, "-n", str(pes)]
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            launch + [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, env=variables, cwd=folder, text=True, errors="replace",
            start_new_session=True)
        self._lines = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self._changed:
                self._lines.append(line)
                self._changed.notify_all()
        with self._changed:
            self._lines.append("")
            self._changed.notify_all()

    def output(self):
        with self._changed:
            return "".join(self._lines)

    def wait_for_lines(self, text, count, seconds=60):
        """Waits until `count` lines hold `text`; returns these lines."""
        until = time.monotonic() + seconds
        with self._changed:
            while True:
                found = [line for line in self._lines if text in line]
                if len(found) >= count:
                    return found
                ended = self._lines and self._lines[-1] == ""
                if ended or not self._changed.wait(max(0.0, until - time.monotonic())):
                    raise Failed(f"{len(found)} of {count} lines with '{text}'")

    def wait(self, seconds):
        """The exit status, and how long it took from now."""
        begin = time.monotonic()
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failed(f"the job has not ended after {seconds} s; still there: {self.names()}") from None
        self._reader.join(10)
        return status, time.monotonic() - begin

    def processes(self):
        """Process ids of the job, mpirun's own included."""
        wanted = f"{MARK}={self.mark}".encode()
        found = []
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if wanted in file.read().split(b"\0"):
                        found.append(int(name))
            except OSError:
                pass  # it has ended, or is somebody else's
        return found

    def names(self):
        """What processes() are, for a message."""
        found = []
        for process in self.processes():
            try:
                with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
                    name, _, rest = file.read().partition("(")[2].rpartition(")")
                found.append(f"{name} ({process}, {rest.split()[0]})")
            except OSError:
                pass
        return ", ".join(found) or "none"

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        until = time.monotonic() + (5 if kind is None else 0)
        while (left := self.processes()) and time.monotonic() < until:
            time.sleep(0.05)
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        if left and kind is None:
            raise Failed(f"processes left behind: {left}")


def require(condition, message):
    if not condition:
        raise Failed(message)


def require_text(output, *texts):
    for text in texts:
        require(text in output, f"the output lacks '{text}'")

#!/usr/bin/env python3
"""esker-topology and esker-batch: what they say, and the status with which they end."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FAILURES = []
FOUR_IMAGES = "host>0:32MB:3200us,host>1:128MB:12800us,host>2:128MB:12800us,host>3:32MB:3200us"


def run(arguments, pattern, status=0):
    """Runs a program; its output, both streams, has to match, and its status be this one."""
    done = subprocess.run([str(one) for one in arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=300)
    said = f"{' '.join(map(str, arguments))}:\n{done.stdout}"
    if done.returncode != status:
        FAILURES.append(f"status {done.returncode}, not {status}: {said}")
    if not re.search(pattern, done.stdout, re.DOTALL):
        FAILURES.append(f"no '{pattern}' in: {said}")
    return done.stdout


def check(is_right, what):
    if not is_right:
        FAILURES.append(what)


def test_models(topology, batch):
    run([topology, "--model", "example", "--batch", FOUR_IMAGES],
        r"batch: 44\.8000 ms.*bandwidth allocation: 76\.8000 ms.*time division: 56\.5333 ms")
    run([batch, "--app", "wafer", "--system", "sandy-bridge"], r"by utilisation alone 155\.90 MB")
    # A few bytes behind a long kernel, and exchanges in pieces: predictions that took for ever.
    for text, makespan in (("host>0:64:10ms", r"10\.0000"), ("host>0:64:100ms", r"100\.0000"),
                           ("0>2:60000000,2>0:60000000:3ms,host>1:900001", r"17\.\d+"),
                           ("0>2:5000011,2>0:5000011:3ms", r"4\.\d+")):
        run([topology, "--device", "cpu", "--model", "example", "--batch", text], rf"batch: {makespan} ms")


def test_batches(topology, folder):
    """The same batch as text, in a file, and as JSON; and a kernel alone."""
    model = [topology, "--model", "example", "--batch"]
    said = run([*model, FOUR_IMAGES], "batch: ")
    (folder / "text").write_text(FOUR_IMAGES + "\n")
    check(run([*model, f"@{folder}/text"], "batch: ") == said, "a batch of a file is another one")
    streams = [{"to": str(i), "from": "host", "bytes": size, "kernel": kernel}
               for i, (size, kernel) in enumerate([("32MB", "3200us"), ("128MB", "12800us")] +
                                                  [("128MB", "12800us"), ("32MB", "3200us")])]
    (folder / "json").write_text("\n" + json.dumps(streams) + "\n")
    check(run([*model, f"@{folder}/json"], "batch: ") == said, "a batch of JSON is another one")
    run([*model, "3:7ms"], r"batch: 7\.0000 ms\n  stream 0: copy 0\.0000 to 0\.0000, kernel 0\.0000 to 7\.0000")


def test_refusals(topology, batch, folder):
    model = [topology, "--model", "example", "--batch"]
    run([*model, "0>0:1MB"], "batch: stream 0: a copy within GPU0 uses no link", 1)
    run([topology, "--device", "cpu", "--measure", "--bytes", "1000"],
        "measure_links: largest copies of 1000 bytes: at least 65536", 1)
    run([topology, "--from", folder], f"'{folder}' cannot be read", 2)
    run([*model, "host>9:1MB"], "batch: stream 0: device 9 is not there: 'example' has 4", 1)
    run([*model, "host>1"], "is not FROM>TO:BYTES", 2)
    run([*model, "[{}]"], "--batch '\\[\\{\\}\\]'", 2)
    run([*model, '[{"to": "0", "byte": "1MB"}]'], "a stream has no 'byte'", 2)
    run([*model, " "], "is not FROM>TO:BYTES", 2)
    run([*model, f"@{folder}/nothing"], "cannot be read", 2)
    run([topology, "--model", "example", "--measure"], "one of them", 2)
    run([batch, "--method", "bandwidth"], "nothing on this machine divides the bandwidth", 1)


def test_files(topology, folder):
    """Written as JSON and read again it is the same; Graphviz draws it. Returns what could not be tested."""
    graph = folder / "graph.json"
    run([topology, "--model", "nehalem", "--json", graph, "--dot", folder / "graph.dot"], "nehalem")
    run([topology, "--from", graph, "--json", folder / "again.json"], "nehalem")
    check(graph.read_text() == (folder / "again.json").read_text(), "--from changes what --json wrote")
    dot = (folder / "graph.dot").read_text()
    check(dot.startswith("digraph") and dot.count("->") == 2 * len(json.loads(graph.read_text())["links"]),
          f"--dot: {dot}")
    (folder / "broken.json").write_text("{}")
    run([topology, "--from", folder / "broken.json"], "topology in .*broken.json", 1)
    svg = folder / "graph.svg"
    if shutil.which("dot") is None:
        run([topology, "--model", "example", "--svg", svg], "install the package graphviz", 1)
        check(not list(folder.glob("graph.svg*")), "a drawing that failed leaves files")
        return ["--svg (no program dot)"]
    run([topology, "--model", "example", "--svg", svg], "example")
    check("<svg" in svg.read_text(), f"--svg: {svg.read_text()}")
    check(list(folder.glob("graph.svg*")) == [svg], "a drawing leaves files beside it")
    return []


def test_this_machine(topology, batch, folder):
    graph = folder / "machine-graph.json"
    # Whose profile is whose is also by the number of devices.
    for devices in ("4", "2"):
        run([topology, "--measure", "--bytes", "1MiB", "--devices", devices, "--json", graph], "GB/s +alone")
    nodes = json.loads(graph.read_text())
    devices = {node["name"] for node in nodes["nodes"] if node["kind"] == "device"}
    check(devices, "this machine has no device")
    for link in nodes["links"]:
        if devices & {link["from"], link["to"]}:
            check(link["there"]["bytes_per_s"] and link["back"]["bytes_per_s"], f"after --measure: {link}")
    verified = r": [1-9]\d* batches in .*, verified"
    run([batch, "--app", "domain", "--devices", "2"], verified)
    run([batch, "--app", "domain", "--method", "time-division", "--devices", "2"], verified)
    run([batch, "--app", "wafer", "--images", "4", "--devices", "4"], verified)
    # No image meets its deadline, and nothing is verified: of links as slow as this; on the CPU, whose links
    # esker-batch measures itself, of images that take longer than that to make.
    kept = folder / "machine.json"
    kept.write_text(re.sub(r'("(both_)?bytes_per_s\\*":) *[-+.e\d]+', r"\g<1>1000.0", kept.read_text()))
    size = "paper" if " x cpu" in kept.read_text() else "small"
    run([batch, "--app", "wafer", "--images", "1", "--size", size, "--devices", "4"],
        "1 refused.*nothing to verify", 1)


def main():
    topology, batch = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        os.environ["ESKER_MACHINE_FILE"] = str(folder / "machine.json")
        test_models(topology, batch)
        test_batches(topology, folder)
        test_refusals(topology, batch, folder)
        skipped = test_files(topology, folder)
        test_this_machine(topology, batch, folder)
    if FAILURES:
        sys.exit("\n".join(FAILURES))
    print("all cases", *(f"but {one}" for one in skipped))


if __name__ == "__main__":
    main()

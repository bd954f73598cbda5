#!/usr/bin/env python3
"""Checks that includes point down and that vendors' names stay where they belong.

Layers:  apps -> containers -> runtime -> net -> aggregator -> queue -> device, and pipeline -> tasks -> queue, transfer -> device
(net knows aggregator's wire format, never the other way round). tests/ and bench/ see everything but apps;
bench/gap/, bench/peers/, bench/pipeline/, bench/tasks/ and bench/transfer/ run the same problems in other ways, so they see those too. examples/ are
applications, which may name vendors. So may what an application is compared with, where the library has no such call.

Public headers stand in include/esker/. cmake/public_headers.txt, which drives the installation too, lists them, each
with the layer that it belongs to. One of them, mpi.hpp, includes MPI's, and no other may include it. Applications and examples include those and no others of the library.

A file outside tests/ has at most 400 lines, or says in its first line why it has more.

usage: check_includes.py [ROOT]     prints one line a violation; exits 1 if there is one
"""

import re
import sys
from pathlib import Path

LAYER = {
    "device": 0,
    "queue": 1,
    "tasks": 2,
    "transfer": 2,
    "pipeline": 3,
    "aggregator": 3,
    "net": 4,
    "runtime": 5,
    "containers": 6,
    "apps": 7,
}
SOURCES = {".hpp", ".cpp", ".cu", ".hip"}

PUBLIC_FOLDER = "include/esker/"
PUBLIC_LIST = "cmake/public_headers.txt"
MOST_PUBLIC_HEADERS = 15
MOST_LINES = 400
FRONT_DOOR = PUBLIC_FOLDER + "esker.hpp"
MPI_DOOR = PUBLIC_FOLDER + "mpi.hpp"  # includes MPI's header, for programs that do too

VENDOR_HEADER = re.compile(
    r"(cuda|hip|cub|thrust|nvtx3|cooperative_groups|ucp|ucs|uct)(/|_|\.h)|nvshmem|mpi\.h|hsa/|nv/"
)
APPS_READERS = ("bench/gap/", "bench/peers/", "bench/pipeline/", "bench/tasks/", "bench/transfer/")
VENDOR_RIVALS = ("apps/pipelines/launch_graph.cu",)  # graphs of launches and copies
VENDOR_TEXT = ("transfer/plan/emit.cpp",)  # writes a program that calls CUDA
MPI_HEADER = re.compile(r"mpi\.h")
UCX_HEADER = re.compile(r"(ucp|ucs|uct)/")
VENDOR_NAME = re.compile(
    r"\b(__CUDACC__|__NVCC__|__HIPCC__|__HIP__|__CUDA_ARCH__|__HIP_DEVICE_COMPILE__|__AMDGCN__|__NVPTX__"
    r"|__global__|__device__|__host__|__shared__|__launch_bounds__|__syncthreads|__hip_\w+"
    r"|(?:cuda|hip)[A-Z]\w*|cuda::|cub::|threadIdx|blockIdx)"
)
# A public header may declare names of the library's own namespace, not define them.
DETAIL = re.compile(r"^namespace (?:esker::)?detail \{\n(.*?)^\}", re.S | re.M)
DECLARATION = re.compile(r"\s*(?:template <[^<>]*>)?\s*(?:struct|class) \w+;")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CONDITION = re.compile(r"^\s*#\s*(if|ifdef|ifndef|endif)\b")
DEVICE_COMPILER = re.compile(r"^\s*#\s*if defined\(ESKER_DEVICE_COMPILER\)\s*$")


def code_lines(text):
    """The lines without comments, and without string contents except those of includes."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group())
    text = re.sub(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/',
                  lambda m: m.group() if m.group().startswith('"') else blank(m), text, flags=re.S)
    return [line if INCLUDE.match(line) else re.sub(r'"(?:\\.|[^"\\\n])*"', '""', line)
            for line in text.split("\n")]


def our_header(root, file, quote, name):
    """Path of an included header of ours relative to root, or None for anyone else's."""
    if name.startswith("esker/"):
        public = "include/" + name
        return public if (root / public).exists() else name[len("esker/"):]
    if quote == '"' and (file.parent / name).exists():
        return (file.parent / name).resolve().relative_to(root).as_posix()
    return None


class Checker:
    def __init__(self, root):
        self.root = Path(root).resolve()
        self.violations = []
        self.files = 0
        self.layer_of_public = self.read_list()
        self.reaches_users = self.closure(self.layer_of_public.keys() - {MPI_DOOR})

    def report(self, file, line, what):
        self.violations.append(f"{file.relative_to(self.root).as_posix()}:{line}: {what}")

    def read_list(self):
        """Layer of each public header, by its path."""
        lines = (self.root / PUBLIC_LIST).read_text(encoding="utf-8").splitlines()
        return {PUBLIC_FOLDER + name: layer for name, layer in
                (line.split() for line in lines if line and not line.startswith("#"))}

    def layer(self, path):
        """The folder whose rules a file keeps: its first one, or the layer of a public header."""
        return self.layer_of_public.get(path, path.split("/")[0])

    def check(self):
        folders = ["include", *LAYER, "tests", "bench", "examples"]
        files = [p for f in folders for p in (self.root / f).rglob("*") if p.suffix in SOURCES]
        for file in sorted(files):
            self.check_file(file)
        there = {p.relative_to(self.root).as_posix() for p in (self.root / PUBLIC_FOLDER).rglob("*.hpp")}
        for header in sorted(there ^ self.layer_of_public.keys()):
            state = "is not listed" if header in there else "is listed and does not exist"
            self.violations.append(f"{PUBLIC_LIST}: {header} {state}")
        if len(there) > MOST_PUBLIC_HEADERS:
            self.violations.append(f"{PUBLIC_FOLDER}: {len(there)} public headers, at most {MOST_PUBLIC_HEADERS}")
        return self.violations

    def check_file(self, file):
        path = file.relative_to(self.root).as_posix()
        folder = self.layer(path)
        conditions = 0
        self.files += 1
        if path in self.layer_of_public:
            self.check_detail(file)
        text = file.read_text(encoding="utf-8").splitlines()
        if len(text) > MOST_LINES and folder != "tests" and "Over 400 lines: " not in text[0]:
            self.report(file, 1, f"{len(text)} lines, at most {MOST_LINES} where the first does not say why")
        for number, line in enumerate(code_lines(file.read_text(encoding="utf-8")), 1):
            if match := CONDITION.match(line):
                conditions += -1 if match[1] == "endif" else 1
            if match := INCLUDE.match(line):
                header = our_header(self.root, file, match[1], match[2])
                if header is None:
                    self.check_foreign(file, number, path, match[2], conditions)
                else:
                    self.check_direction(file, number, path, header)
            elif folder not in ("device", "bench", "examples") and not path.startswith(
                    ("tests/device/", "tests/install/", *VENDOR_RIVALS, *VENDOR_TEXT)):
                if match := VENDOR_NAME.search(line):
                    self.report(file, number, f"{match[1]} outside device/")

    def check_detail(self, file):
        text = "\n".join(code_lines(file.read_text(encoding="utf-8")))
        for block in DETAIL.finditer(text):
            if DECLARATION.sub("", block[1]).strip():
                line = text.count("\n", 0, block.start()) + 1
                self.report(file, line, "a public header only declares names of namespace detail")

    def check_direction(self, file, number, path, header):
        folder, target = self.layer(path), self.layer(header)
        if target in ("tests", "bench") and target != folder:
            self.report(file, number, f"{folder} may not include {header}")
        if target == "apps" and folder not in ("apps", "tests") and not path.startswith(APPS_READERS):
            self.report(file, number, f"{folder} may not include {header}")
        if folder in ("apps", "examples") and target != "apps":
            if header not in self.layer_of_public:
                self.report(file, number, f"an application includes public headers ({PUBLIC_LIST}), not {header}")
        elif folder in LAYER:
            below = target in LAYER and LAYER[target] < LAYER[folder]
            if header == FRONT_DOOR:
                below = LAYER[folder] > LAYER["runtime"]
                target = header
            if target != folder and not below:
                self.report(file, number, f"{folder} may not include {header}")

    def check_foreign(self, file, number, path, name, conditions):
        """A vendor's header: its place is device/, or its transport's folder; in a header, behind an #if."""
        if not VENDOR_HEADER.match(name) or path.startswith(("bench/", "tests/", "examples/", *VENDOR_RIVALS, *VENDOR_TEXT)):
            return
        allowed = path.startswith("device/")
        if MPI_HEADER.match(name):
            allowed = path.startswith(("net/mpi/", "apps/styles/")) or path == MPI_DOOR
        elif UCX_HEADER.match(name):
            allowed = path.startswith("net/ucx/")
        if not allowed:
            self.report(file, number, f"<{name}> does not belong here")
        elif path in self.reaches_users and conditions == 0:
            self.report(file, number, f"<{name}> reaches every user of the library: put it behind an #if")

    def closure(self, headers):
        """Those of `headers` that exist, and every header of ours that they need on a host compiler."""
        found, open_ = set(), list(headers)
        while open_:
            name = open_.pop()
            file = self.root / name
            if name in found or not file.exists():
                continue
            found.add(name)
            conditions = []  # of each #if that is open: whether a device compiler alone gets there
            for line in code_lines(file.read_text(encoding="utf-8")):
                if match := CONDITION.match(line):
                    if match[1] == "endif":
                        conditions.pop()
                    else:
                        conditions.append(DEVICE_COMPILER.match(line) is not None)
                elif (match := INCLUDE.match(line)) and not any(conditions):
                    if inner := our_header(self.root, file, match[1], match[2]):
                        open_.append(inner)
        return found


def main():
    checker = Checker(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent)
    violations = checker.check()
    for violation in violations:
        print(violation)
    print(f"check_includes: {checker.files} files, {len(violations)} violations")
    return 1 if violations or checker.files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())

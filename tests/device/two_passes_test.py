#!/usr/bin/env python3
"""One definition a name, in a program of host sources and simulated GPU's sources.

Compares the objects of two sources that use the same parts of Esker, one of each pass: a function that both
define for the linker to choose one of has the same instructions in both, with the same symbols, and an object that
both define has the same size.

usage: two_passes_test.py HOST_OBJECT SIMULATED_OBJECT
"""

import re
import subprocess
import sys


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def weak_symbols(file):
    """Name: (type, size) of what the linker chooses one of."""
    found = {}
    for line in output_of("nm", "-S", "--defined-only", file).splitlines():
        fields = line.split()
        if len(fields) == 4 and fields[2] in "WVu":
            found[fields[3]] = (fields[2], int(fields[1], 16))
    return found


def functions(file):
    """Name: its instructions, without addresses. Symbols of one source alone, such as strings, are left out."""
    found, name = {}, None
    for line in output_of("objdump", "-dr", "--no-show-raw-insn", "--no-addresses", file).splitlines():
        if match := re.match(r"<(\S+)>:$", line):
            name = match[1]
            found[name] = []
        elif line.startswith("Disassembly of section"):
            name = None
        elif name and line.strip():
            line = re.sub(r"\s+#.*$", "", line)
            line = re.sub(r"\.(LC|L|text|rodata|data|bss|gcc_except_table)[\w.$]*([+-]0x[0-9a-f]+)?", ".local", line)
            line = re.sub(r"<([^>+]*)(\+0x[0-9a-f]+)?>", r"<\1>", line)
            found[name].append(re.sub(r"\b[0-9a-f]+ (?=<)", "", line))
    return found


def main():
    host, simulated = sys.argv[1:3]
    host_symbols, simulated_symbols = weak_symbols(host), weak_symbols(simulated)
    common = sorted(host_symbols.keys() & simulated_symbols.keys())
    host_code, simulated_code = functions(host), functions(simulated)
    wrong = []
    for name in common:
        if name in host_code and name in simulated_code:
            if host_code[name] != simulated_code[name]:
                wrong.append(name)
        elif host_symbols[name][1] != simulated_symbols[name][1]:
            wrong.append(name)
    for name in wrong:
        print("two definitions:", output_of("c++filt", name).strip())
    print(f"{len(common)} names in both objects, {len(wrong)} with two definitions")
    # The sources are useless for this if they share nothing.
    return 1 if wrong or len(common) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())

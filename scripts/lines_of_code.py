#!/usr/bin/env python3
"""Prints the thesis's Table 3-2 for our sources: lines of host and device code of GUPS in each style.

A line counts if something is left of it without comments and spaces. What belongs to a style stands in TABLE: whole
files, or regions of files between two comments, any number of them in a file:
    // lines: gravel device
    ...
    // lines: end
A style whose files or regions are not there has no figures: it is named on standard error, and the exit status is 1.

usage: lines_of_code.py [--json] [ROOT]
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from check_includes import code_lines


@dataclass(frozen=True)
class Source:
    """A file, all of it or the regions of that name in it."""

    path: str
    region: str | None = None


# histo is GUPS with its offsets in memory, which is the thesis's (Table 3-1): our esker-gups has eight programs in one.
HISTO = "apps/histo/histo.cpp"
STYLES = "apps/styles"
ELECTIONS = "device/election"

# For each style the program that it makes, as the thesis counts: what the host runs and what the device runs. The
# styles' programs share a part of each, and what the runtime does for a style is counted where a user would write it.
HOST = Source(HISTO, "host")
DEVICE = Source(HISTO, "device")
TABLE: dict[str, dict[str, list[Source]]] = {
    "coprocessor": {
        "host": [HOST, Source(f"{STYLES}/coprocessor.hpp", "host"), Source(f"{STYLES}/exchange.hpp"),
                 Source(f"{STYLES}/exchange.cpp")],
        "device": [DEVICE, Source(f"{STYLES}/coprocessor.hpp", "device")],
    },
    "gravel": {"host": [HOST], "device": [DEVICE, Source(f"{STYLES}/superstep.hpp", "each")]},
    "per-lane": {"host": [HOST], "device": [DEVICE, Source(f"{STYLES}/superstep.hpp", "each")]},
    "coalesced": {
        "host": [HOST],
        "device": [DEVICE, Source(f"{STYLES}/superstep.hpp", "sorted"), Source(f"{ELECTIONS}/by_destination.hpp")],
    },
}

# The thesis's own, in the same order of rows: its message-per-lane and Gravel are one program.
THESIS = {"coprocessor": (296, 46), "gravel": (174, 19), "per-lane": (174, 19), "coalesced": (187, 131)}

BEGIN = re.compile(r"^\s*//\s*lines:\s*(.*?)\s*$")


class Missing(Exception):
    """Something that TABLE names is not there, or its comments do not match; says what."""


def regions(text: str, where: str) -> Iterator[tuple[str | None, str]]:
    """Each line with the region that it is in. The comments that mark regions are in none."""
    now, since = None, 0
    for number, line in enumerate(text.split("\n"), 1):
        match = BEGIN.match(line)
        if match is None:
            yield now, line
        elif match[1] == "end":
            if now is None:
                raise Missing(f"{where}:{number}: 'lines: end' without a beginning")
            now = None
        elif now is not None:
            raise Missing(f"{where}:{number}: 'lines: {match[1]}' inside '{now}', which began in line {since}")
        else:
            now, since = match[1], number
    if now is not None:
        raise Missing(f"{where}:{since}: '{now}' has no 'lines: end'")


def count(root: Path, source: Source) -> int:
    """Raises Missing."""
    try:
        text = (root / source.path).read_text(encoding="utf-8")
    except OSError as error:
        raise Missing(f"{source.path}: {error.strerror}") from None
    marked = list(regions(text, source.path))
    # Comments may span lines, so they are taken away from the whole file.
    blank = code_lines("\n".join(line for _, line in marked))
    lines = [code for (region, _), code in zip(marked, blank) if source.region in (None, region)]
    if source.region is not None and all(region != source.region for region, _ in marked):
        raise Missing(f"{source.path}: it has no region '// lines: {source.region}'")
    found = sum(1 for line in lines if line.strip())
    if found == 0:
        raise Missing(f"{source.path}: '{source.region or 'the file'}' has no code")
    return found


def count_style(root: Path, parts: dict[str, list[Source]]) -> dict[str, int]:
    """Raises Missing, with everything that is."""
    missing, found = [], {}
    for kind, sources in parts.items():
        found[kind] = 0
        for source in sources:
            try:
                found[kind] += count(root, source)
            except Missing as error:
                missing.append(str(error))
    if missing:
        raise Missing("; ".join(dict.fromkeys(missing)))
    return found


def table_text(counts: dict[str, dict[str, int] | None]) -> str:
    lines = [f"{'GUPS, lines of code':22} {'host':>6} {'device':>7} {'total':>6}    thesis: host, GPU, total"]
    for style, found in counts.items():
        ours = (f"{found['host']:6} {found['device']:7} {sum(found.values()):6}" if found
                else f"{'-':>6} {'-':>7} {'-':>6}")
        lines.append(f"{style:22} {ours}    " + ", ".join(map(str, (*THESIS[style], sum(THESIS[style])))))
    return "\n".join(lines)


def main(argv: list[str]) -> int:
    summary, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(description=summary, epilog=rest,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path, nargs="?", default=Path(__file__).resolve().parents[1], metavar="ROOT",
                        help="of the sources (default: this checkout)")
    parser.add_argument("--json", action="store_true", help="print JSON; null for a style that is not there")
    options = parser.parse_args(argv)
    counts: dict[str, dict[str, int] | None] = {}
    for style, parts in TABLE.items():
        try:
            counts[style] = count_style(options.root, parts)
        except Missing as error:
            counts[style] = None
            print(f"lines_of_code: {style}: {error}", file=sys.stderr)
    print(json.dumps(counts, indent=2) if options.json else table_text(counts))
    return int(None in counts.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

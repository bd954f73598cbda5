#!/usr/bin/env python3
"""Relative links of every tracked .md file lead to a file, and their anchors to one of its headings.

Prints a line for each broken link, "page.md:12: target: what is wrong". Exit status: 0 = none, 1 = some.
"""
import re
import subprocess
import sys
import urllib.parse
from pathlib import Path

LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE = re.compile(r"^ {0,3}\[[^\]]+\]:\s+<?(\S+?)>?(?:\s|$)")
HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*\s*$")
HTML_ANCHOR = re.compile(r"<a\s+(?:id|name)=\"([^\"]+)\"")
FENCE = re.compile(r"^\s*(```+|~~~+)")
CODE = re.compile(r"(`+)(?!`)(.*?)(?<!`)\1(?!`)")


def prose(path: Path):
    """(number, line) of what is not in a fenced block."""
    fence = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        mark = FENCE.match(line)
        if fence is not None:
            if mark and mark[1].startswith(fence) and line.strip() == mark[1]:
                fence = None
            continue
        if mark:
            fence = mark[1]
            continue
        yield number, line


def anchors(path: Path) -> set[str]:
    """As GitHub makes them: lower case, no punctuation, a hyphen a space, -1 for the second of a name."""
    found: set[str] = set()
    seen: dict[str, int] = {}
    for _, line in prose(path):
        found.update(HTML_ANCHOR.findall(line))
        heading = HEADING.match(line)
        if not heading:
            continue
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[2])
        text = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        repeat = seen.get(text, 0)
        seen[text] = repeat + 1
        found.add(text if repeat == 0 else f"{text}-{repeat}")
    return found


def links(path: Path):
    """(number, target) of each link, whose text may go over lines; code spans hold none."""
    lines = {number: CODE.sub(lambda span: " " * len(span[0]), line) for number, line in prose(path)}
    text = "\n".join(lines.get(number, "") for number in range(1, max(lines, default=0) + 1))
    for link in LINK.finditer(text):
        yield text.count("\n", 0, link.start(1)) + 1, link[1]
    for number, line in lines.items():
        reference = REFERENCE.match(line)
        if reference:
            yield number, reference[1]


def defect(page: Path, target: str, root: Path, known: dict[Path, set[str]]) -> str:
    if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:", target) or target.startswith("//"):
        return ""
    name, _, anchor = target.partition("#")
    name = urllib.parse.unquote(name)
    if name.startswith("/"):
        return "is absolute: it works on one site only"
    file = (page.parent / name).resolve() if name else page.resolve()
    if not file.is_relative_to(root):
        return "leads out of the repository"
    if not file.exists():
        return "there is no such file"
    if not anchor or file.suffix != ".md":
        return ""
    if file not in known:
        known[file] = anchors(file)
    return "" if urllib.parse.unquote(anchor) in known[file] else f"{file.name} has no heading '#{anchor}'"


def main() -> int:
    top = ["git", "rev-parse", "--show-toplevel"]
    root = Path(subprocess.run(top, check=True, capture_output=True, text=True, cwd=Path(__file__).parent)
                .stdout.strip()).resolve()
    files = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.md"],
                           check=True, capture_output=True, text=True, cwd=root).stdout.split("\0")
    pages = sorted({root / file for file in files if file and (root / file).is_file()})
    if not pages:
        print("check_links: no .md file found", file=sys.stderr)
        return 1
    known: dict[Path, set[str]] = {}
    broken = 0
    for page in pages:
        for number, target in links(page):
            what = defect(page, target, root, known)
            if what:
                broken += 1
                print(f"{page.relative_to(root)}:{number}: {target}: {what}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""The report of a whole study, in a browser: images are there, failures say what they are, the console is empty.

Without chromium or matplotlib it is skipped: exit status 77.
"""

import functools
import html.parser
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
STYLES = ["coprocessor", "coprocessor-large", "per-lane", "coalesced", "coalesced-agg", "gravel"]
PLAN = {
    "name": "test", "title": "A <test> of the report & its figures",
    "defaults": {"pes": [1, 2, 4], "options": {"updates": 1000000}, "timeout_s": 30},
    "experiments": [
        {"app": "gups", "label": "GUPS", "styles": STYLES, "project": [4, 16]},
        {"app": "mer", "label": "mer", "styles": STYLES},
        {"app": "kmeans", "label": "kmeans", "styles": STYLES},
        {"app": "gups", "label": "GUPS", "scaling": "weak", "options": {"updates": None}, "grow": {"updates": 1000000}},
        {"app": "gups", "label": "GUPS", "sweep": {"node-buffer-bytes": ["4KiB", "16KiB", "64KiB"]}},
    ],
}
WRONG = {"mer coalesced 4": "wrong", "mer per-lane 1": "crash"}
PLOTS = ["stages", "strong-efficiency", "strong-speedup", "strong-speedup-gravel", "styles-strong",
         "sweep-GUPS-strong-node-buffer-bytes", "weak-efficiency", "weak-speedup"]

# Added to a copy of the page: writes into it what the browser made of the images.
PROBE = """<script>addEventListener("load", () => {
  const sizes = [...document.images].map(i => [i.complete, i.naturalWidth, i.naturalHeight, i.clientWidth]);
  document.body.dataset.images = JSON.stringify(sizes);
  document.body.dataset.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  console.log("probe has run");
});</script>"""


@functools.cache
def browser():
    """One that starts: Ubuntu's chromium-browser without its snap does not."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found and subprocess.run([found, "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                    timeout=300).returncode == 0:
            return found
    return None


def open_page(page, *options):
    """Standard output, and the messages on the console."""
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run([browser(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                               "--hide-scrollbars", "--enable-logging=stderr", f"--user-data-dir={profile}",
                               "--virtual-time-budget=10000", *options, page.as_uri()],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


class Page(html.parser.HTMLParser):
    """The text of each element with an id, of each row of a table, and the links."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.sources, self.rows, self.cell = [], [], [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.links += [attributes["href"]] if "href" in attributes else []
        self.sources += [attributes["src"]] if "src" in attributes else []
        if tag == "tr":
            self.rows.append([attributes.get("class", "")])
        self.cell = [] if tag in ("td", "th") else self.cell

    def handle_endtag(self, tag):
        if tag in ("td", "th") and self.cell is not None:
            self.rows[-1].append("".join(self.cell))
            self.cell = None

    def handle_data(self, data):
        if self.cell is not None:
            self.cell.append(data)


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = Path(scratch.name)
        cls.out = cls.folder / "out"
        launcher = cls.folder / "mpirun"
        launcher.write_text((HERE / "fake_launcher.py").read_text())
        for app in ("gups", "mer", "kmeans"):
            (cls.folder / f"esker-{app}").touch(mode=0o755)
        (cls.folder / "behaviour.json").write_text(json.dumps(WRONG))
        (cls.folder / "plan.json").write_text(json.dumps(PLAN))
        cls.done = subprocess.run(
            [sys.executable, str(ROOT / "scripts/scaling_study.py"), str(cls.folder / "plan.json"),
             "--bin", str(cls.folder), "--out", str(cls.out), "--mpirun", f"'{sys.executable}' '{launcher}'"],
            stderr=subprocess.PIPE, text=True)
        if not (cls.out / "report.html").exists():
            raise AssertionError(cls.done.stderr)
        cls.source = (cls.out / "report.html").read_text(encoding="utf-8")
        probed = cls.folder / "probed.html"
        probed.write_text(cls.source.replace("</body>", PROBE + "</body>"), encoding="utf-8")
        cls.dom, cls.console = open_page(probed, "--dump-dom", "--window-size=1280,900")
        cls.page = Page(cls.dom)

    def assert_shows(self, text, page=None):
        """assertIn would print all of the page."""
        self.assertTrue(text in (page or self.dom), f"the page does not have: {text}")

    def rows(self, *cells):
        """Rows that begin with these cells."""
        return [row for row in self.page.rows if row[1:1 + len(cells)] == list(cells)]

    def test_the_study_says_that_two_runs_are_missing(self):
        self.assertEqual(self.done.returncode, 1)
        self.assertIn("65 of 67 runs verified", self.done.stderr)

    def test_every_plot_is_a_picture_in_both_forms(self):
        self.assertEqual(sorted(f.name for f in (self.out / "plots").iterdir()),
                         sorted(f"{name}.{form}" for name in PLOTS for form in ("png", "svg")))
        for name in PLOTS:
            content = (self.out / f"plots/{name}.png").read_bytes()
            self.assertEqual(content[:8], b"\x89PNG\r\n\x1a\n")
            width, height = struct.unpack(">II", content[16:24])
            self.assertGreater(min(width, height), 300)
            self.assert_shows("<svg", (self.out / f"plots/{name}.svg").read_text())

    def test_the_browser_shows_every_image(self):
        sizes = json.loads(re.search(r'data-images="([^"]*)"', self.dom)[1])
        self.assertEqual(len(sizes), len(PLOTS))
        for complete, width, height, shown in sizes:
            self.assertTrue(complete)
            self.assertGreater(min(width, height, shown), 200)

    def test_the_page_is_no_wider_than_the_window(self):
        self.assertEqual(re.search(r'data-overflow="([^"]*)"', self.dom)[1], "0")

    def test_the_console_has_no_error(self):
        self.assertEqual(len(self.console), 1, self.console)
        self.assertIn("probe has run", self.console[0])

    def test_the_page_needs_nothing_else(self):
        for place in self.page.sources + self.page.links:
            self.assertRegex(place, r"^(#|data:)")
        for link in self.page.links:
            if link.startswith("#"):
                self.assertIn(link[1:], self.page.ids)
        self.assertIsNone(re.search(r"<script|@import|url\(", self.source))

    def test_text_of_runs_cannot_become_markup(self):
        self.assert_shows("&lt;b&gt;the network&lt;/b&gt; is gone &amp; lost", self.source)
        self.assertFalse("<b>the network" in self.dom)
        self.assert_shows("A &lt;test&gt; of the report &amp; its figures</h1>")

    def test_a_run_that_went_wrong_says_so_and_has_no_figure(self):
        row, = [r for r in self.rows("mer", "coalesced APIs", "4")]
        self.assertEqual(row[0], "bad")
        self.assertIn("not verified: its result is wrong; exit status 1", row)
        self.assertEqual([c for c in row[5:] if c], [])
        self.assert_shows("3 words of the table are wrong")
        self.assert_shows("65 of 67 runs verified, 2 without a figure.")

    def test_without_its_baseline_a_line_has_no_speedup(self):
        row, = self.rows("mer", "op-per-lane, no agg", "2")
        self.assertIn("none: the run on 1 PE is failed", row)
        self.assertNotEqual(row[5], "")

    def test_speedups_are_those_of_the_figures(self):
        row, = self.rows("GUPS", "Gravel", "4", "verified", "0.02872 (0.02585 to 0.03446)")[:1]
        self.assertEqual(row[8:], ["3.48 (2.61 to 4.64)", "0.871 (0.653 to 1.16)"])

    def test_a_projection_says_so(self):
        row, = self.rows("GUPS", "Gravel", "16 projected")
        self.assertEqual(row[0], "projected")
        self.assert_shows("Projected: one PE runs 1/N of the work")
        plot = (self.out / "plots/strong-speedup-gravel.svg").read_text()
        self.assert_shows("<!-- hollow, dashed: projected on one node, not measured", plot)
        self.assert_shows("<!-- GUPS, projected -->", plot)

    def test_failures_are_marked_on_the_plots(self):
        self.assert_shows("<!-- × not verified -->", (self.out / "plots/styles-strong.svg").read_text())
        self.assert_shows("×: failed, not verified or not measured",
                          (self.out / "plots/strong-speedup.svg").read_text())

    def test_network_statistics_stand_beside_the_thesis(self):
        row, = self.rows("GUPS", "strong", "Gravel", "4", "1,000,000")
        self.assertEqual(row[6:], ["75.0%", "17", "65,440", "87.5%", "65,440"])

    def test_a_screenshot_is_not_empty(self):
        picture = self.folder / "screenshot.png"
        open_page(self.out / "report.html", f"--screenshot={picture}", "--window-size=1280,2000")
        from matplotlib import image
        pixels = image.imread(picture)[:, :, :3]
        self.assertEqual(pixels.shape[1], 1280)
        dark = (pixels.min(axis=2) < 0.5).mean()
        self.assertGreater(dark, 0.005)
        self.assertLess(dark, 0.5)
        if keep := os.environ.get("ESKER_KEEP_REPORT"):  # a folder: to look at it
            shutil.copytree(self.out, keep, dirs_exist_ok=True)
            shutil.copy(picture, keep)


if __name__ == "__main__":
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        print(f"skipped: {error}")
        sys.exit(77)
    if browser() is None:
        print("skipped: there is no chromium")
        sys.exit(77)
    unittest.main()

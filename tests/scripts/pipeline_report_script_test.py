#!/usr/bin/env python3
"""What scripts/pipeline_report.py draws of real programs' reports, and what it refuses.

pipeline_report_script_test.py BIN
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "pipeline_report.py"
SKIPPED = 77
PROGRAMS = [  # a chain, a loop whose topics have several ends, and a program with several inputs a stage
    ["esker-pipe-raid6", "--frames", "4"],
    ["esker-pipe-reyes"],
    ["esker-pipe-stencil"],
]
folder = Path()  # of the programs


def draw(*arguments, **more):
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=300,
                          check=False, **more)


def texts_of(svg):
    """What the picture says, without line breaks."""
    root = xml.etree.ElementTree.fromstring(svg)
    return " ".join("".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text"))


class PipelineReport(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)
        self.report, self.picture, self.trace = (self.scratch / name for name in ("r.json", "p.svg", "t.json"))

    def run_program(self, program, *options):
        command = [folder / program[0], *program[1:], "--repeats", "1", "--json", self.report, *options]
        run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(self.report.read_text())

    def test_each_stage_and_topic_is_drawn(self):
        for program in PROGRAMS:
            with self.subTest(program[0]):
                report = self.run_program(program)
                drawn = draw(self.report, "-o", self.picture)
                self.assertEqual((drawn.returncode, drawn.stderr), (0, ""))
                said = texts_of(self.picture.read_text())
                pipeline = report["pipeline"]
                for named in [*pipeline["stages"], *pipeline["topics"]]:
                    self.assertIn(named["name"], said)
                self.assertEqual(said.count("holds the others up"), 1)
                for stage in pipeline["stages"]:
                    counted = "calls" if stage["kind"] == "source" else "frames"
                    self.assertIn(f"{stage['frames']:,} {counted}", said)
                self.assertIn(report["app"], said)
                self.assertRegex(said, r"latency to [\w ]+ p50 .*, p99 ")

    def test_the_stage_that_works_most_is_marked(self):
        report = self.run_program(PROGRAMS[0])
        stages = report["pipeline"]["stages"]
        for slow in range(len(stages)):
            for place, stage in enumerate(stages):
                ns = int(stage["teams"] * report["pipeline"]["seconds"] * 1e8)  # a tenth of the run
                stage.update(busy_ns=8 * ns if place == slow else ns, starved_ns=2 * ns, blocked_ns=0)
            drawn = draw("-", input=json.dumps(report))
            self.assertEqual((drawn.returncode, drawn.stderr), (0, ""))
            nodes = re.findall(r'<g id="node\d+" class="node">.*?</g>\n', drawn.stdout, re.S)
            self.assertEqual(["holds the others up" in node for node in nodes],
                             [place == slow for place in range(len(stages))])

    def test_a_report_without_its_program_is_drawn(self):
        report = self.run_program(PROGRAMS[0])
        drawn = draw("-", input=json.dumps(report["pipeline"]))
        self.assertEqual((drawn.returncode, drawn.stderr), (0, ""))
        self.assertIn("encode", texts_of(drawn.stdout))

    def test_names_are_text(self):
        report = self.run_program(PROGRAMS[0])
        report["pipeline"]["stages"][1]["name"] = name = '<b>"Tom" & Jerry'
        drawn = draw("-", input=json.dumps(report))
        self.assertEqual((drawn.returncode, drawn.stderr), (0, ""))
        self.assertIn(name, texts_of(drawn.stdout).replace("\xa0", " "))

    def test_what_cannot_be_drawn_is_refused(self):
        for content, message in [("{}", "it has no pipeline"), ("[]", "it has no pipeline"), ("{", "Expecting"),
                                 ('{"stages": []}', "the report has no 'topics'")]:
            self.report.write_text(content)
            drawn = draw(self.report)
            self.assertEqual((drawn.returncode, drawn.stdout), (1, ""))
            self.assertIn(message, drawn.stderr)
        self.assertEqual(draw(self.scratch / "none").returncode, 1)
        self.assertEqual(draw().returncode, 2)

    def test_a_missing_dot_is_named(self):
        self.run_program(PROGRAMS[0])
        drawn = draw(self.report, env={**os.environ, "PATH": str(self.scratch)})
        self.assertEqual((drawn.returncode, drawn.stdout), (1, ""))
        self.assertIn("install the package graphviz", drawn.stderr)

    def test_the_program_writes_a_trace_that_names_its_stages(self):
        report = self.run_program(PROGRAMS[0], "--trace", self.trace)
        trace = json.loads(self.trace.read_text())
        tracks = [event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name"]
        self.assertEqual([track.split(" (")[0] for track in tracks],
                         ["run", *(stage["name"] for stage in report["pipeline"]["stages"])])
        refused = subprocess.run([folder / PROGRAMS[0][0], "--scheme", "streams", "--trace", self.trace],
                                 capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--trace is for --scheme esker", refused.stderr)


if __name__ == "__main__":
    folder = Path(sys.argv.pop(1))
    if shutil.which("dot") is None:
        print("Graphviz's dot is missing: nothing is drawn")
        sys.exit(SKIPPED)
    unittest.main()

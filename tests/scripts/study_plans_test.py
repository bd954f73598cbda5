#!/usr/bin/env python3
"""The plans that we ship: their applications take the options that they name.

usage: study_plans_test.py BIN
"""

import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.argv.pop(1))
sys.path.insert(0, str(ROOT / "scripts"))

from study.plan import load_plan  # noqa: E402


class Plans(unittest.TestCase):
    def test_their_options_are_legal(self):
        commands = set()
        for plan in sorted((ROOT / "scripts/studies").glob("*.json")):
            for run in load_plan(plan).runs():
                arguments = run.point.arguments
                # Which device is a matter of the build.
                while "--device" in arguments:
                    at = arguments.index("--device")
                    arguments = arguments[:at] + arguments[at + 2:]
                commands.add((plan.name, run.point.app, *arguments))
        self.assertGreater(len(commands), 100)
        for plan, app, *arguments in sorted(commands):
            with self.subTest(plan=plan, app=app, arguments=arguments):
                # Options before --help are read, and a wrong one ends the program with 2.
                done = subprocess.run([str(BIN / f"esker-{app}"), *arguments, "--help"], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()

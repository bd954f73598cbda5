#!/usr/bin/env python3
"""A small study of the real esker-gups on 1 and 2 PEs: what it writes is what scripts/scaling_study.py reads.

usage: scaling_gups_test.py BIN MPIRUN
"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN, MPIRUN = sys.argv[1:3]
PLAN = {
    "name": "gups",
    "defaults": {"pes": [1, 2], "options": {"cpu-threads": 1, "table": "2^12"}, "timeout_s": 60},
    "experiments": [
        {"app": "gups", "label": "GUPS", "options": {"updates": "2^16", "repeats": 2}, "project": [8]},
        {"app": "gups", "label": "GUPS", "scaling": "weak", "grow": {"updates": "2^15"}},
        {"app": "gups", "label": "bad", "pes": [1], "options": {"updates": 0}},
    ],
}


class Gups(unittest.TestCase):
    def test_a_study_of_gups(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            (folder / "plan.json").write_text(json.dumps(PLAN))
            done = subprocess.run([sys.executable, str(ROOT / "scripts/scaling_study.py"), str(folder / "plan.json"),
                                   "--bin", BIN, "--out", str(folder / "out"), "--mpirun", MPIRUN, "--no-report"],
                                  stderr=subprocess.PIPE, text=True)
            records = [json.loads(f.read_text()) for f in sorted((folder / "out/runs").glob("*.json"))]
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("5 of 6 runs verified", done.stderr)
        good = [r for r in records if r["status"] == "verified"]
        self.assertEqual(sorted((r["pes"], r["projected_nodes"] or 0, r["report"]["work"]) for r in good),
                         [(1, 0, 2**15), (1, 0, 2**16), (1, 8, 2**13), (2, 0, 2**16), (2, 0, 2**16)])
        bad, = [r for r in records if r["status"] != "verified"]
        self.assertEqual(bad["status"], "failed")
        self.assertIn("--updates 0: it is 1 to 2^48", bad["stderr"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

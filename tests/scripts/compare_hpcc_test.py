#!/usr/bin/env python3
"""What scripts/compare_hpcc.py reads from HPCC and esker-gups, makes of it, and refuses. Neither is run."""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import compare_hpcc  # noqa: E402
from compare_hpcc import INC, MPI, RULES, STAR, XOR, Rate, Refused  # noqa: E402

# From a run of hpcc 1.5.0 on two processes.
HPCC_OUTPUT = """\
Begin of MPIRandomAccess section.
Running on 2 processors (PowerofTwo)
Total Main table size = 2^20 = 1048576 words
Found 0 errors in 1048576 locations (passed).

End of MPIRandomAccess section.
Begin of StarRandomAccess section.
Main table size   = 2^19 = 524288 words
Node(s) with error 0
Minimum GUP/s 0.023631
Average GUP/s 0.023649
Maximum GUP/s 0.023666
End of StarRandomAccess section.
Begin of Summary section.
VersionMajor=1
LANG=C
Success=1
CommWorldProcs=2
HPL_N=1024
MPIRandomAccess_LCG_N=1048576
MPIRandomAccess_LCG_GUPs=0.00191883
MPIRandomAccess_N=1048576
MPIRandomAccess_time=3.96635
MPIRandomAccess_CheckTime=0.78943
MPIRandomAccess_Errors=0
MPIRandomAccess_ErrorsFraction=0
MPIRandomAccess_ExeUpdates=4194304
MPIRandomAccess_GUPs=0.00211494
MPIRandomAccess_TimeBound=60
MPIRandomAccess_Algorithm=0
RandomAccess_LCG_N=524288
StarRandomAccess_LCG_GUPs=0.0286553
RandomAccess_N=524288
StarRandomAccess_GUPs=0.0236488
SingleRandomAccess_GUPs=0.0225362
CPS_RA_SANDIA_OPT2=0
End of Summary section.
"""

GUPS_REPORT = {"verified": True, "table_words": 1048576, "pes": 2, "work": 4194304.0, "commit": "abc",
               "rate_per_s": 5e7, "hpcc_rules": {"look_ahead_held": True}}
ASKED_FOR = {"table_words": 1048576, "pes": 2, "work": 4194304, "commit": "abc"}

# Takes mpirun's place: writes what the program would write, at a rate that grows with each run of it.
LAUNCHER = """\
import json, pathlib, sys
pes, program, arguments = int(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4:]
here = pathlib.Path(__file__).parent
log = here / "runs.txt"
earlier = log.read_text().splitlines() if log.exists() else []
name = " ".join([program.name, *[a for a in arguments if a in ("inc", "xor", "--hpcc")]])
log.write_text("\\n".join([*earlier, name]) + "\\n")
run = earlier.count(name) + 1
if program.name == "hpcc":
    pathlib.Path("hpccoutf.txt").write_text((here / "sample.txt").read_text().replace(
        "MPIRandomAccess_GUPs=0.00211494", f"MPIRandomAccess_GUPs={0.001 * run}"))
    sys.exit((here / "hpcc_fails").exists())
option = dict(zip(arguments, arguments[1:]))
report = {"version": "0.1.0", "commit": "abc"}
if program.name == "esker-gups":
    report |= {"verified": True, "table_words": int(option["--table"]), "pes": pes,
               "work": float(option["--updates"]), "rate_per_s": 1e7 * run, "hpcc_rules": {"look_ahead_held": True}}
pathlib.Path(option["--json"]).write_text(json.dumps(report))
"""


class HpccFiles(unittest.TestCase):
    def assert_refused(self, message, old, new):
        self.assertIn(old, HPCC_OUTPUT)
        with self.assertRaisesRegex(Refused, message):
            compare_hpcc.hpcc_rates(HPCC_OUTPUT.replace(old, new), 2**20, 2)

    def test_the_figure_of_one_process_counts_for_all(self):
        self.assertEqual(compare_hpcc.hpcc_rates(HPCC_OUTPUT, 2**20, 2), {MPI: 0.00211494, STAR: 2 * 0.0236488})

    def test_another_table_is_refused(self):
        self.assert_refused("MPIRandomAccess_N is 2097152 where 1048576 was asked for",
                            "MPIRandomAccess_N=1048576", "MPIRandomAccess_N=2097152")

    def test_another_share_of_the_table_is_refused(self):
        self.assert_refused("RandomAccess_N is 262144", "\nRandomAccess_N=524288", "\nRandomAccess_N=262144")

    def test_another_number_of_processes_is_refused(self):
        self.assert_refused("CommWorldProcs is 1 where 2", "CommWorldProcs=2", "CommWorldProcs=1")

    def test_errors_of_one_percent_are_refused(self):
        for fraction in ("0.01", "0.5", "nan"):
            self.assert_refused("table is wrong", "ErrorsFraction=0", f"ErrorsFraction={fraction}")

    def test_fewer_errors_are_within_the_rules(self):
        text = HPCC_OUTPUT.replace("ErrorsFraction=0", "ErrorsFraction=0.0099")
        self.assertEqual(compare_hpcc.hpcc_rates(text, 2**20, 2)[MPI], 0.00211494)

    def test_an_error_of_star_is_refused(self):
        self.assert_refused("StarRandomAccess has nodes with errors", "with error 0", "with error 1")

    def test_a_failed_run_is_refused(self):
        self.assert_refused("Success is 0", "Success=1", "Success=0")

    def test_a_run_that_ended_early_is_refused(self):
        self.assert_refused("no complete section 'Summary'", "End of Summary section.\n", "")

    def test_a_figure_that_is_missing_is_refused(self):
        self.assert_refused("MPIRandomAccess_GUPs=nothing", "MPIRandomAccess_GUPs=0.00211494\n", "")

    def test_a_rate_that_is_none_is_refused(self):
        for rate in ("0", "-1", "nan", "inf"):
            self.assert_refused("the rate of StarRandomAccess", "StarRandomAccess_GUPs=0.0236488",
                                f"StarRandomAccess_GUPs={rate}")

    def test_the_matrix_just_holds_the_table(self):
        for exponent in range(4, 40):
            order = compare_hpcc.matrix_order(2**exponent)
            self.assertGreaterEqual(order**2, 2**exponent)
            self.assertLess((order - 1) ** 2, 2**exponent)

    def test_the_input_has_each_value_on_its_line(self):
        lines = compare_hpcc.hpcc_input(2**26, 4).splitlines()
        self.assertEqual(len(lines), 36)
        self.assertEqual([lines[n - 1].split()[0] for n in (5, 6, 7, 8, 10, 11, 12, 33, 35)],
                         ["1", "8192", "1", "128", "1", "1", "4", "0", "0"])

    def test_every_process_has_a_block(self):
        self.assertEqual(compare_hpcc.block_size(2**20, 64), 16)


class GupsReport(unittest.TestCase):
    def assert_refused(self, message, name=INC, **changed):
        with self.assertRaisesRegex(Refused, message):
            compare_hpcc.gups_rate({**GUPS_REPORT, **changed}, name, ASKED_FOR)

    def test_the_rate_is_in_units_of_hpcc(self):
        self.assertEqual(compare_hpcc.gups_rate(GUPS_REPORT, RULES, ASKED_FOR), 0.05)

    def test_what_was_not_asked_for_is_refused(self):
        for field, value in (("verified", False), ("verified", None), ("table_words", 4), ("pes", 1), ("work", 1),
                             ("commit", "def")):
            self.assert_refused(f"'{field}' is {value!r}", **{field: value})

    def test_too_much_look_ahead_is_refused_where_it_is_bounded(self):
        self.assert_refused("more updates were under way", RULES, hpcc_rules={"look_ahead_held": False})

    def test_a_rate_that_is_none_is_refused(self):
        self.assert_refused("the rate is 0", rate_per_s=0)


class Figures(unittest.TestCase):
    def test_the_median_of_three_is_the_middle_one(self):
        self.assertEqual(compare_hpcc.summarise([9.0, 1.0, 2.0]), Rate(2.0, 1.0, 9.0))

    def test_the_median_of_four_lies_between_the_middle_two(self):
        self.assertEqual(compare_hpcc.summarise([8.0, 1.0, 2.0, 4.0]), Rate(3.0, 1.0, 8.0))

    def summary(self):
        medians = {MPI: 0.02, STAR: 0.1, INC: 0.05, XOR: 0.04, RULES: 0.03}
        return {series: Rate(median, 0.001, 0.9) for series, median in medians.items()}

    def test_ratios_are_of_medians(self):
        found = compare_hpcc.ratios(self.summary())
        for pair, expected in (((INC, MPI), 2.5), ((XOR, MPI), 2), ((RULES, MPI), 1.5), ((INC, STAR), 0.5)):
            self.assertAlmostEqual(found.pop(pair), expected)
        self.assertEqual(found, {})

    def test_the_least_ratio_is_asked_of_what_sends_messages(self):
        found = compare_hpcc.ratios(self.summary())
        self.assertEqual(compare_hpcc.below(found, 1.4), [])
        self.assertEqual(compare_hpcc.below(found, 1.6), [f"{RULES} / {MPI} is 1.50, less than 1.6"])


class WholeScript(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        (self.folder / "launcher.py").write_text(LAUNCHER)
        (self.folder / "sample.txt").write_text(HPCC_OUTPUT)
        for program in ("hpcc", "esker-gups", "esker-info"):
            (self.folder / program).touch(mode=0o755)

    def run_script(self, *options):
        """Exit status, standard output, standard error; the status of a usage error too."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = compare_hpcc.main([
                    "--table", "2^20", "--bin", str(self.folder), "--hpcc", str(self.folder / "hpcc"),
                    "--mpirun", f"'{sys.executable}' '{self.folder / 'launcher.py'}'", *options])
            except SystemExit as end:
                status = end.code
        return status, out.getvalue(), err.getvalue()

    def test_the_sides_take_turns(self):
        self.assertEqual(self.run_script("--repeats", "2")[0], 0)
        turn = ["hpcc", "esker-gups inc", "esker-gups xor", "esker-gups --hpcc"]
        self.assertEqual((self.folder / "runs.txt").read_text().splitlines(), ["esker-info", *turn, *turn])

    def test_medians_and_ratios_are_printed(self):
        status, out, _ = self.run_script("--repeats", "3")
        self.assertEqual(status, 0)
        self.assertIn(["MPIRandomAccess", "0.00200", "0.00100", "0.00300"], [line.split() for line in out.splitlines()])
        self.assertRegex(out, r"--op inc / MPIRandomAccess +10\.00\n")

    def test_every_line_of_the_json_says_where_it_is_from(self):
        status, out, _ = self.run_script("--repeats", "2", "--json", "-")
        self.assertEqual(status, 0)
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([line["record"] for line in lines], ["run"] * 10 + ["summary"] * 5 + ["ratio"] * 4)
        for line in lines:
            self.assertEqual(line["commit"], "abc")
            self.assertEqual(line["machine"]["cores"], os.cpu_count())
            self.assertEqual(line["settings"]["updates"], 2**22)

    def test_the_number_of_updates_is_free_but_where_rules_say_it(self):
        _, out, _ = self.run_script("--repeats", "1", "--updates", "1000", "--json", "-")
        runs = [line for line in map(json.loads, out.splitlines()) if line["record"] == "run"]
        self.assertEqual({line["series"]: line["report"].get("work") for line in runs},
                         {MPI: None, STAR: None, INC: 1000, XOR: 1000, RULES: 2**22})

    def test_a_failed_hpcc_ends_it(self):
        (self.folder / "hpcc_fails").touch()
        status, out, err = self.run_script()
        self.assertEqual((status, out), (1, ""))
        self.assertIn("hpcc: exit status 1", err)

    def test_a_refused_hpcc_ends_it(self):
        (self.folder / "sample.txt").write_text(HPCC_OUTPUT.replace("Success=1", "Success=0"))
        status, out, err = self.run_script()
        self.assertEqual((status, out), (1, ""))
        self.assertIn("Success is 0", err)

    def test_too_low_a_ratio_fails(self):
        self.assertEqual(self.run_script("--min-ratio", "9.9")[0], 0)
        status, _, err = self.run_script("--min-ratio", "10.1")
        self.assertEqual(status, 1)
        self.assertIn("less than 10.1", err)

    def test_a_table_that_hpcc_cannot_have_is_a_usage_error(self):
        for options in (("--table", "1000"), ("--pes", "3"), ("--table", "many")):
            self.assertEqual(self.run_script(*options)[0], 2)
        self.assertFalse((self.folder / "runs.txt").exists())


if __name__ == "__main__":
    unittest.main()

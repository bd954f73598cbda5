#!/usr/bin/env python3
"""Plans, runs, resumption and figures of scripts/scaling_study.py, with a launcher that only pretends. No plots."""

import contextlib
import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import scaling_study  # noqa: E402
from study import launch, report, store  # noqa: E402
from study.analysis import Spread, analyse, spread_of  # noqa: E402
from study.plan import PlanError, load_plan, parse_size, read_plan  # noqa: E402
from study.store import FAILED, NOT_VERIFIED, REFUSED, TIMED_OUT, VERIFIED  # noqa: E402

STRONG = {"app": "gups", "label": "GUPS", "pes": [1, 2, 4], "options": {"updates": 1000000}}


def plan_of(*experiments, **more):
    return {"name": "test", "experiments": list(experiments), **more}


class Plans(unittest.TestCase):
    def assert_refused(self, message, source):
        with self.assertRaisesRegex(PlanError, message):
            read_plan(source, "test")

    def refused_experiment(self, message, **changed):
        experiment = {k: v for k, v in {**STRONG, **changed}.items() if v is not None}
        self.assert_refused(message, plan_of(experiment))

    def commands(self, *experiments, **more):
        return [(r.point.pes, *r.point.arguments) for r in read_plan(plan_of(*experiments, **more), "x").runs()]

    def test_a_strong_experiment_has_the_same_options_on_all_pes(self):
        self.assertEqual(self.commands(STRONG), [(n, "--updates", "1000000") for n in (1, 2, 4)])

    def test_a_weak_experiment_grows_with_the_pes(self):
        weak = {"app": "gups", "scaling": "weak", "pes": [1, 4], "grow": {"updates": "2^10", "table": "1KiB"}}
        self.assertEqual(self.commands(weak), [(1, "--updates", "1024", "--table", "1024"),
                                               (4, "--updates", "4096", "--table", "4096")])

    def test_a_projection_runs_on_one_pe_with_the_whole_problem(self):
        weak = {"app": "gups", "scaling": "weak", "pes": [2], "grow": {"updates": 10}, "project": [8]}
        self.assertEqual(self.commands(weak), [(2, "--updates", "20"), (1, "--updates", "80", "--project", "8")])

    def test_only_gravel_is_projected(self):
        both = {**STRONG, "pes": [1], "project": [2], "styles": ["coprocessor", "gravel"]}
        self.assertEqual([c[1] for c in self.commands(both)], ["--style", "--updates", "--updates"])

    def test_gravel_is_what_runs_without_a_style(self):
        self.assertEqual(self.commands({**STRONG, "pes": [1], "styles": ["gravel", "per-lane"]}),
                         [(1, "--updates", "1000000"), (1, "--style", "per-lane", "--updates", "1000000")])

    def test_rounds_take_turns(self):
        self.assertEqual([c[0] for c in self.commands({**STRONG, "rounds": 2})], [1, 2, 4, 1, 2, 4])

    def test_a_command_that_two_experiments_share_is_run_once(self):
        sweep = {**STRONG, "pes": [2], "options": {}, "sweep": {"updates": ["1000000", "5"]}}
        self.assertEqual(len(self.commands(STRONG, sweep)), 4)

    def test_null_takes_a_default_away(self):
        self.assertEqual(self.commands({"app": "gups", "options": {"size": None, "verify": False, "hpcc": True}},
                                       defaults={"pes": [1], "options": {"size": "paper"}}),
                         [(1, "--verify", "off", "--hpcc")])

    def test_a_wrong_field_is_named(self):
        self.refused_experiment(r"experiments\[0\]: there is no 'stiles'; did you mean 'styles'", stiles=["gravel"])
        self.refused_experiment(r"experiments\[0\]\.styles\[1\]: there is no 'gravle'; did you mean 'gravel'",
                                styles=["per-lane", "gravle"])
        self.refused_experiment(r"experiments\[0\]\.pes\[1\]: must be a whole number of at least 1, not 0", pes=[1, 0])
        self.refused_experiment(r"experiments\[0\]\.pes: must be a list", pes=4)
        self.refused_experiment(r"experiments\[0\]\.pes: has a number twice", pes=[1, 1])
        self.refused_experiment(r"experiments\[0\]\.pes: is missing", pes=None)
        self.refused_experiment(r"experiments\[0\]\.app: is missing", app=None)
        self.refused_experiment(r"experiments\[0\]\.scaling: there is no 'wek'", scaling="wek")
        self.refused_experiment(r"experiments\[0\]\.grow: is missing", scaling="weak")
        self.refused_experiment(r"experiments\[0\]\.grow: belongs to weak scaling", grow={"table": 1})
        self.refused_experiment(r"experiments\[0\]\.grow\.updates: has a value elsewhere", scaling="weak",
                                grow={"updates": 1})
        self.refused_experiment(r"experiments\[0\]\.grow\.table: 'much' is not a number", scaling="weak",
                                grow={"table": "much"})
        self.refused_experiment(r"experiments\[0\]\.options\.style: is set by the study, from the field 'styles'",
                                options={"style": "gravel"})
        self.refused_experiment(r"experiments\[0\]\.options\.--table: an option is written without",
                                options={"--table": 1})
        self.refused_experiment(r"experiments\[0\]\.options\.table: must be a text", options={"table": [1]})
        self.refused_experiment(r"experiments\[0\]\.sweep: must have one option", sweep={"a": [1], "b": [2]})
        self.refused_experiment(r"experiments\[0\]\.sweep\.a: has a value twice", sweep={"a": [1, "1"]})
        self.refused_experiment(r"experiments\[0\]\.project: esker-mer has no one-node projection", app="mer",
                                project=[4])
        self.refused_experiment(r"experiments\[0\]\.project: only the style gravel", styles=["coalesced"], project=[4])
        self.refused_experiment(r"experiments\[0\]\.timeout_s: must be a number of seconds", timeout_s="1 h")
        self.refused_experiment(r"experiments\[0\]\.rounds", rounds=True)

    def test_a_wrong_plan_is_named(self):
        self.assert_refused("plan: must be an object", [])
        self.assert_refused("experiments: is missing", {})
        self.assert_refused("experiments: must be a list with something in it", {"experiments": []})
        self.assert_refused("plan: there is no 'experiment'; did you mean 'experiments'", {"experiment": []})
        self.assert_refused("defaults: there is no 'app'", plan_of(STRONG, defaults={"app": "gups"}))
        self.assert_refused(r"experiments\[1\]\.label: 'GUPS' is what experiments\[0\] is called",
                            plan_of(STRONG, STRONG))
        self.assert_refused("name: '../x' names a folder", {**plan_of(STRONG), "name": "../x"})

    def test_a_file_that_is_no_plan_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "plan.json"
            file.write_text('{"experiments": [')
            for path, message in ((file, "plan.json: .*line 1"),
                                  (Path(folder) / "none.json", "none.json: .*No such file")):
                with self.assertRaisesRegex(PlanError, message):
                    load_plan(path)

    def test_yaml_says_the_same_as_json(self):
        try:
            import yaml  # noqa: F401
        except ImportError:
            self.skipTest("there is no Python package yaml")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "test.yaml"
            file.write_text("experiments:\n  - app: gups\n    label: GUPS\n    pes: [1, 2, 4]\n"
                            "    options: {updates: 1000000}\n")
            self.assertEqual(load_plan(file).runs(), read_plan(plan_of(STRONG), "test").runs())
            file.write_text("experiments: [")
            with self.assertRaisesRegex(PlanError, "test.yaml"):
                load_plan(file)

    def test_yaml_without_its_package_names_it(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(sys.modules, {"yaml": None}):
            file = Path(folder) / "test.yml"
            file.write_text("experiments: []")
            with self.assertRaisesRegex(PlanError, "install python3-yaml"):
                load_plan(file)

    def test_sizes_are_read_as_the_runtime_reads_them(self):
        for text, value in (("4096", 4096), (7, 7), ("64KiB", 65536), ("2^26", 2**26), ("1e6", 10**6),
                            ("1.5GiB", 3 * 2**29)):
            self.assertEqual(parse_size(text), value)
        for text in ("", "-1", "0", "0.5", "much", "2^"):
            with self.assertRaises(ValueError):
                parse_size(text)

    def test_the_plans_that_we_ship_are_plans(self):
        plans = sorted((ROOT / "scripts/studies").glob("*.json"))
        self.assertGreaterEqual(len(plans), 5)
        for plan in plans:
            self.assertGreater(len(load_plan(plan).runs()), 10)


class Judgement(unittest.TestCase):
    def judge(self, exit_status=0, **changed):
        experiment, = read_plan(plan_of({**STRONG, "project": [4]}), "x").experiments
        point = experiment.point("gravel", None, 4, projected=True)
        good = {"app": "gups", "style": "gravel", "pes": 1, "projected_pes": 4, "seconds": 0.5, "work": 4.0,
                "rate_per_s": 8.0, "verified": True, "messages_local": 0, "messages_remote": 0, "remote_fraction": 0.0,
                "buffers_sent": 0, "average_buffer_bytes": 0}
        return store.judge(point, launch.Ended(exit_status, False, 1.0), {**good, **changed})[0]

    def test_what_was_asked_for_and_verified_counts(self):
        self.assertEqual(self.judge(), VERIFIED)

    def test_nothing_else_does(self):
        self.assertEqual(self.judge(1), FAILED)
        self.assertEqual(self.judge(1, verified=False), NOT_VERIFIED)
        for wrong in (False, None, "true", 1):
            self.assertEqual(self.judge(verified=wrong), NOT_VERIFIED)
        for field, wrong in (("app", "mer"), ("style", "coalesced"), ("pes", 2), ("projected_pes", None),
                             ("seconds", 0), ("seconds", float("nan")), ("seconds", -1.0), ("seconds", "1"),
                             ("rate_per_s", float("inf")), ("work", None), ("remote_fraction", None),
                             ("average_buffer_bytes", True), ("seconds_least", 0.6), ("seconds_most", 0.4),
                             ("seconds_least", None), ("seconds_least", 0)):
            self.assertEqual(self.judge(**{field: wrong}), REFUSED, (field, wrong))

    def test_a_signal_is_named(self):
        self.assertEqual(launch.describe_exit(134), "exit status 134 (SIGABRT)")
        self.assertEqual(launch.describe_exit(-9), "exit status -9 (SIGKILL)")
        self.assertEqual(launch.describe_exit(255), "exit status 255")


class Figures(unittest.TestCase):
    def analysis(self, plan, seconds):
        """Of verified runs; `seconds` gives least, median and most of a run, or None for one that failed."""
        def read(run):
            times = seconds(run)
            common = {"machine": {"host": "h", "cpu": "c", "cores": 8}, "command": ["mpirun", "-n", "1"]}
            if times is None:
                return {**common, "status": FAILED, "reason": "exit status 1", "report": None}
            work = 1e6 / run.point.nodes if run.point.projected_nodes else 1e6
            if "--grow" in run.point.arguments:
                work = 1e6 * run.point.pes
            return {**common, "status": VERIFIED, "reason": "",
                    "report": {"work": work, "seconds_least": times[0], "seconds": times[1], "seconds_most": times[2]}}
        return analyse(read_plan(plan, "test"), read)

    def assert_spread(self, value, median, low, high):
        self.assertIsNotNone(value)
        for found, expected in zip((value.median, value.low, value.high), (median, low, high)):
            self.assertAlmostEqual(found, expected)

    def test_a_median_is_of_the_rounds_medians(self):
        records = [{"report": {"seconds": m, "seconds_least": m - 1, "seconds_most": m + 1}} for m in (7, 5, 20)]
        self.assertEqual(spread_of(records), Spread(7, 4, 21))

    def test_a_speedup_is_a_ratio_of_times_with_its_spread(self):
        found = self.analysis(plan_of(STRONG), lambda r: tuple(t / r.point.pes for t in (3, 4, 5))).results
        self.assert_spread(found[0].speedup, 1, 1, 1)
        self.assert_spread(found[2].speedup, 4, 4 * 3 / 5, 4 * 5 / 3)
        self.assert_spread(found[2].efficiency, 1, 3 / 5, 5 / 3)

    def test_weak_scaling_compares_rates(self):
        weak = {"app": "gups", "scaling": "weak", "pes": [1, 4], "grow": {"grow": 1}}
        found = self.analysis(plan_of(weak), lambda r: (1, 1, 1) if r.point.pes == 1 else (2, 2, 2)).results
        self.assert_spread(found[1].speedup, 2, 2, 2)
        self.assert_spread(found[1].efficiency, 0.5, 0.5, 0.5)

    def test_a_projection_stands_for_all_its_nodes(self):
        found = self.analysis(plan_of({**STRONG, "pes": [1], "project": [8]}),
                              lambda r: (1, 1, 1) if not r.point.projected_nodes else (0.25, 0.25, 0.25)).results
        self.assertTrue(found[1].projected)
        self.assertAlmostEqual(found[1].figures.work, 1e6)
        self.assert_spread(found[1].rate, 4e6, 4e6, 4e6)
        self.assert_spread(found[1].speedup, 4, 4, 4)
        self.assert_spread(found[1].efficiency, 0.5, 0.5, 0.5)

    def test_one_number_of_pes_has_no_speedup(self):
        found, = self.analysis(plan_of({**STRONG, "pes": [2]}), lambda r: (1, 1, 1)).results
        self.assertEqual((found.speedup, found.no_speedup), (None, ""))

    def test_another_baseline_is_not_taken(self):
        found = self.analysis(plan_of(STRONG), lambda r: None if r.point.pes == 1 else (1, 1, 1)).results
        self.assertEqual([r.speedup for r in found], [None, None, None])
        self.assertEqual(found[1].no_speedup, "the run on 1 PE is failed")

    def test_a_point_with_a_bad_round_has_no_figure(self):
        found = self.analysis(plan_of({**STRONG, "rounds": 3}),
                              lambda r: None if (r.point.pes, r.round) == (2, 2) else (1, 1, 1)).results
        self.assertEqual((found[1].status, found[1].reason), (FAILED, "exit status 1 (1 of 3 rounds)"))
        self.assertIsNone(found[1].seconds)
        self.assertIsNotNone(found[2].speedup)

    def test_styles_are_compared_with_gravel_at_the_most_pes(self):
        styles = {**STRONG, "styles": ["gravel", "coprocessor", "coalesced"]}
        found, = self.analysis(plan_of(styles), lambda r: None if r.point.style == "coalesced" else
                               (2, 2, 2) if r.point.style == "coprocessor" else (1, 1, 1)).comparisons
        self.assertEqual(found.pes, 4)
        self.assertEqual(list(found.relative), ["coprocessor", "coalesced", "gravel"])
        self.assert_spread(found.relative["coprocessor"], 0.5, 0.5, 0.5)
        self.assertIsNone(found.relative["coalesced"])

    def test_without_gravel_no_style_is_compared(self):
        styles = {**STRONG, "styles": ["gravel", "coprocessor"]}
        found, = self.analysis(plan_of(styles),
                               lambda r: None if r.point.style == "gravel" else (1, 1, 1)).comparisons
        self.assertEqual(found.relative, {"coprocessor": None, "gravel": None})

    def test_crowded_cores_are_warned_about(self):
        warnings = self.analysis(plan_of({**STRONG, "pes": [1, 16]}), lambda r: (1, 1, 1)).warnings
        self.assertIn("16 PEs shared 8 cores", " ".join(warnings))


class WholeScript(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.out = self.folder / "out"
        (self.folder / "path").mkdir()
        for name in ("mpirun", "srun", "sbatch"):
            program = self.folder / "path" / name
            program.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{self.folder / name}' \"$@\"\n")
            program.chmod(0o755)
            shutil.copy(HERE / "fake_launcher.py", self.folder / name)
        for app in ("gups", "mer"):
            (self.folder / f"esker-{app}").touch(mode=0o755)
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "ESKER_"))}
        environment["PATH"] = f"{self.folder / 'path'}:{os.environ['PATH']}"
        patch = mock.patch.dict(os.environ, environment, clear=True)
        patch.start()
        self.addCleanup(patch.stop)

    def write_plan(self, *experiments, **more):
        file = self.folder / "plan.json"
        file.write_text(json.dumps(plan_of(*experiments, **more)))
        return file

    def behave(self, **by_point):
        (self.folder / "behaviour.json").write_text(json.dumps({k.replace("_", " "): v for k, v in by_point.items()}))

    def run_script(self, plan, *options):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = scaling_study.main([str(plan), "--bin", str(self.folder), "--out", str(self.out), *options])
            except SystemExit as end:
                status = end.code
        return status, out.getvalue(), err.getvalue()

    def started(self):
        file = self.folder / "runs.txt"
        return file.read_text().splitlines() if file.exists() else []

    def records(self):
        return [json.loads(f.read_text()) for f in sorted((self.out / "runs").glob("*.json"))]

    def test_runs_are_kept_and_not_run_again(self):
        plan = self.write_plan(STRONG)
        status, _, err = self.run_script(plan, "--no-report")
        self.assertEqual(status, 0, err)
        self.assertIn("[3/3] GUPS (strong), gravel, 4 PEs; about ", err)
        self.assertEqual(self.started(), ["mpirun 1 gups gravel", "mpirun 2 gups gravel", "mpirun 4 gups gravel"])
        self.assertEqual(self.run_script(plan, "--no-report")[0], 0)
        self.assertEqual(len(self.started()), 3)
        self.assertEqual(list((self.out / "scratch").iterdir()), [])

    def test_a_plan_that_grows_keeps_what_it_has(self):
        self.run_script(self.write_plan(STRONG), "--no-report")
        self.run_script(self.write_plan({**STRONG, "pes": [1, 2, 4, 8]}), "--no-report")
        self.assertEqual(self.started()[3:], ["mpirun 8 gups gravel"])

    def test_an_interrupted_study_goes_on(self):
        plan = self.write_plan(STRONG)
        self.behave(gups_gravel_2="interrupt")
        status, _, err = self.run_script(plan, "--no-report")
        self.assertEqual(status, 130, err)
        self.assertIn("what has ended is kept", err)
        self.assertEqual([r["pes"] for r in self.records()], [1])
        self.behave()
        self.assertEqual(self.run_script(plan, "--no-report")[0], 0)
        self.assertEqual([line.split()[1] for line in self.started()], ["1", "2", "2", "4"])

    def test_a_killed_study_goes_on(self):
        """As Slurm ends a job: SIGTERM to this process, which ends the run as well."""
        plan = self.write_plan(STRONG)
        self.behave(gups_gravel_2="hang")
        job = subprocess.Popen([sys.executable, str(ROOT / "scripts/scaling_study.py"), str(plan), "--no-report",
                                "--bin", str(self.folder), "--out", str(self.out)], stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 120
        while len(self.started()) < 2 and time.monotonic() < deadline:
            job.poll()
            os.sched_yield()
        job.send_signal(signal.SIGTERM)
        _, err = job.communicate(timeout=120)
        self.assertEqual(job.returncode, 130, err)
        self.assertEqual([r["pes"] for r in self.records()], [1])

    def test_a_torn_record_is_measured_again(self):
        plan = self.write_plan({**STRONG, "pes": [1]})
        self.run_script(plan, "--no-report")
        file, = (self.out / "runs").glob("*.json")
        file.write_text(file.read_text()[:40])
        self.assertEqual(self.run_script(plan, "--no-report")[0], 0)
        self.assertEqual(len(self.started()), 2)

    def test_what_goes_wrong_is_kept_with_its_standard_error(self):
        styles = ["coprocessor", "coalesced", "per-lane", "coalesced-agg", "coprocessor-large"]
        plan = self.write_plan({**STRONG, "pes": [1, 2], "timeout_s": 8, "styles": styles})
        self.behave(gups_coprocessor_2="crash", gups_coalesced_2="hang", **{
            "gups_per-lane_2": "wrong", "gups_coalesced-agg_2": "silent", "gups_coprocessor-large_2": "another style"})
        status, _, err = self.run_script(plan, "--no-report")
        self.assertEqual(status, 1)
        self.assertIn("failed: exit status 134 (SIGABRT): esker: PE 1: <b>the network</b> is gone & lost", err)
        self.assertIn("5 of 10 runs verified", err)
        by_style = {r["style"]: r for r in self.records() if r["pes"] == 2}
        self.assertEqual({s: r["status"] for s, r in by_style.items()},
                         {"coprocessor": FAILED, "coalesced": TIMED_OUT, "per-lane": NOT_VERIFIED,
                          "coalesced-agg": REFUSED, "coprocessor-large": REFUSED})
        self.assertEqual(by_style["coalesced"]["stderr"], "waiting for nothing\n")
        self.assertIn("3 words of the table are wrong", by_style["per-lane"]["stderr"])

    def test_what_went_wrong_is_run_again_when_asked(self):
        plan = self.write_plan(STRONG)
        self.behave(gups_gravel_2="crash")
        self.assertEqual(self.run_script(plan, "--no-report")[0], 1)
        self.behave()
        self.assertEqual(self.run_script(plan, "--no-report")[0], 1)
        self.assertEqual(self.run_script(plan, "--no-report", "--retry")[0], 0)
        self.assertEqual([line.split()[1] for line in self.started()], ["1", "2", "4", "2"])

    def test_the_output_of_a_run_is_bounded(self):
        file = self.folder / "long"
        file.write_bytes(b"x" * store.KEPT_BYTES + b"the end")
        self.assertTrue(store.tail(file).startswith("[7 bytes before this are left out]\nxx"))
        self.assertTrue(store.tail(file).endswith("the end"))

    def test_runs_of_two_ways_are_not_mixed(self):
        plan = self.write_plan(STRONG)
        self.run_script(plan, "--no-report")
        status, _, err = self.run_script(plan, "--no-report", "--mpirun", "mpirun --bind-to none", "--retry")
        self.assertEqual(status, 0, err)  # nothing is left to run
        plan = self.write_plan({**STRONG, "pes": [8]})
        status, _, err = self.run_script(plan, "--no-report", "--mpirun", "mpirun -x")
        self.assertEqual(status, 1)
        self.assertIn("was measured with launcher", err)

    def test_a_bad_plan_is_a_usage_error_that_names_the_field(self):
        status, _, err = self.run_script(self.write_plan({**STRONG, "styles": ["gravle"]}))
        self.assertEqual(status, 2)
        self.assertIn("plan.json: experiments[0].styles[0]: there is no 'gravle'", err)

    def test_a_missing_application_is_named_before_anything_runs(self):
        plan = self.write_plan(STRONG, {**STRONG, "app": "sssp", "label": "SSSP"})
        status, _, err = self.run_script(plan, "--no-report")
        self.assertEqual(status, 2)
        self.assertIn("there is no esker-sssp in", err)
        self.assertEqual(self.started(), [])

    def test_only_chooses_experiments(self):
        plan = self.write_plan(STRONG, {**STRONG, "app": "sssp", "label": "SSSP"})
        self.assertEqual(self.run_script(plan, "--no-report", "--only", "GUPS")[0], 0)
        status, _, err = self.run_script(plan, "--only", "PR")
        self.assertEqual(status, 2)
        self.assertIn("no label 'PR', but GUPS, SSSP", err)

    def test_nodes_are_projected_where_the_application_can(self):
        plan = self.write_plan({**STRONG, "pes": [1]}, {**STRONG, "app": "mer", "label": "mer", "pes": [1]})
        self.assertEqual(self.run_script(plan, "--no-report", "--project", "16,64")[0], 0)
        self.assertEqual(sorted((r["app"], r["projected_nodes"] or 0) for r in self.records()),
                         [("gups", 0), ("gups", 16), ("gups", 64), ("mer", 0)])

    def test_a_dry_run_prints_the_commands_and_starts_nothing(self):
        status, out, _ = self.run_script(self.write_plan(STRONG), "--dry-run")
        self.assertEqual(status, 0)
        self.assertRegex(out.splitlines()[1], r"^mpirun --oversubscribe --allow-run-as-root -n 2 \S+/esker-gups "
                                              r"--updates 1000000 --json \S+$")
        self.assertEqual(self.started(), [])
        self.assertFalse(self.out.exists())

    def test_matplotlib_is_missed_before_anything_runs(self):
        with mock.patch.dict(sys.modules, {"matplotlib": None}):
            status, _, err = self.run_script(self.write_plan(STRONG))
        self.assertEqual(status, 1)
        self.assertIn("install python3-matplotlib", err)
        self.assertEqual(self.started(), [])

    def test_rows_of_the_csv_are_empty_where_there_is_no_figure(self):
        plan = self.write_plan({**STRONG, "pes": [1, 2]})
        self.behave(gups_gravel_2="wrong")
        self.run_script(plan, "--no-report")
        analysis = analyse(load_plan(plan), store.Store(self.out).read)
        good, bad = csv.DictReader(io.StringIO(report.csv_text(analysis)))
        self.assertEqual((good["status"], float(good["seconds_median"]), float(good["speedup_median"])),
                         ("verified", 0.1, 1.0))
        self.assertEqual(bad["status"], "not verified")
        for name in ("seconds_median", "rate_per_s_median", "speedup_median", "efficiency_median", "remote_fraction"):
            self.assertEqual(bad[name], "")
        self.assertEqual(len(json.loads(report.json_text(analysis))["runs"]), 2)

    # Slurm.

    def test_srun_starts_runs_inside_an_allocation(self):
        with mock.patch.dict(os.environ, {"SLURM_JOB_ID": "7"}):
            status, _, err = self.run_script(self.write_plan(STRONG), "--no-report", "--launcher", "slurm")
        self.assertEqual(status, 0, err)
        self.assertEqual(self.started(), [f"srun {n} gups gravel" for n in (1, 2, 4)])
        self.assertEqual(self.records()[0]["command"][:4], ["srun", "--mpi=pmix", "--kill-on-bad-exit=1", "-n"])

    def test_sbatch_gets_a_job_for_each_number_of_pes(self):
        plan = self.write_plan({**STRONG, "project": [16]})
        status, _, err = self.run_script(plan, "--launcher", "slurm", "--sbatch", "sbatch --partition=test",
                                         "--pes-per-node", "2")
        self.assertEqual(status, 0, err)
        jobs = (self.folder / "jobs.txt").read_text().splitlines()
        self.assertEqual(len(jobs), 3)
        self.assertTrue(jobs[0].startswith("--partition=test --parsable "))
        script = (self.out / "jobs/test-4.sbatch").read_text()
        for line in ("--job-name=test-4", "--nodes=2", "--ntasks=4", "--ntasks-per-node=2", "--time=12"):
            self.assertIn(f"#SBATCH {line}\n", script)
        self.assertNotRegex(script, r"@[A-Z_]+@")
        self.assertEqual(self.started(), ["srun 1 gups gravel", "srun 1 gups gravel", "srun 2 gups gravel",
                                          "srun 4 gups gravel"])
        self.assertIn("job 3: 1 run on 4 PEs", err)
        self.assertIn("--report-only", err)
        status, _, err = self.run_script(plan, "--launcher", "slurm", "--no-report")
        self.assertEqual(len((self.folder / "jobs.txt").read_text().splitlines()), 3, "nothing was left to submit")
        self.assertEqual(status, 0, err)

    def test_a_dry_run_prints_the_jobs(self):
        status, out, _ = self.run_script(self.write_plan(STRONG), "--launcher", "slurm", "--dry-run")
        self.assertEqual(status, 0)
        self.assertEqual(out.count("#!/usr/bin/env bash"), 3)
        self.assertEqual(self.started(), [])
        self.assertFalse((self.out / "jobs").exists())

    def test_an_unknown_placeholder_is_named(self):
        template = self.folder / "mine.sbatch"
        template.write_text("#SBATCH --nodes=@NODE@\n@COMMAND@\n")
        status, _, err = self.run_script(self.write_plan(STRONG), "--launcher", "slurm", "--template", str(template))
        self.assertEqual(status, 2)
        self.assertIn("there is no placeholder @NODE@", err)

    def test_a_refused_job_is_an_error(self):
        (self.folder / "path/sbatch").write_text("#!/bin/sh\necho 'sbatch: error: invalid partition' >&2\nexit 1\n")
        status, _, err = self.run_script(self.write_plan(STRONG), "--launcher", "slurm")
        self.assertEqual(status, 1)
        self.assertIn("returned non-zero exit status 1", err)


if __name__ == "__main__":
    unittest.main()

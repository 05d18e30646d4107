"""topsim sweep as a shell sees it: killed at random it loses nothing and repeats nothing; streams, exit codes, formats."""

import contextlib
import csv
import io
import json
import os
import pathlib
import random
import resource
import signal
import sqlite3
import subprocess
import time
import unittest

import program

SMALL = {"topology": {"node": "h100x1", "nodes": 1},
         "workload": {"model": {"layers": 2, "hidden": 1024, "heads": 8, "vocab": 32000}, "sequence": 1024,
                      "precision": "bf16", "plan": {"micro_batch": 1, "global_batch": 4}},
         "run": {"steps": 1, "warmup": 0}}
BATCHES = ",".join(str(n) for n in range(1, 101))
GRID = ["--vary", f"workload.plan.global_batch={BATCHES}", "--vary", "run.seed=" + ",".join(map(str, range(10)))]
POINTS = 1000
KILLS = 10


def query(file, sql):
    # A file that was just made has no tables yet.
    with contextlib.closing(sqlite3.connect(file, timeout=10)) as database, \
            contextlib.suppress(sqlite3.OperationalError):
        return database.execute(sql).fetchall()
    return []


class Sweep(unittest.TestCase):
    def setUp(self):
        folder = program.temporary_folder()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.scenario = self.folder / "small.json"
        self.scenario.write_text(json.dumps(SMALL))

    def sweep(self, *words, **options):
        return program.topsim("sweep", self.scenario, *words, **options)

    def test_a_mistake_of_the_base_keeps_its_place(self):
        for text, said in (('{"topology": {"node": "h100x1",},}', ":1:32"), ('{"topology": {"nods": 1}}', ":1:15")):
            self.scenario.write_text(text)
            done = self.sweep("--vary", "run.seed=1,2")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(f"--> {self.scenario}{said}", done.stderr)
        missing = program.topsim("sweep", self.folder / "smal.json", "--vary", "run.seed=1,2")
        self.assertIn("small.json?", missing.stderr)

    def test_a_point_may_supply_what_the_base_lacks(self):
        base = json.loads(json.dumps(SMALL))
        del base["workload"]["model"]
        self.scenario.write_text(json.dumps(base))
        self.assertEqual(self.sweep("--vary", "workload.model=megatron-1.7b").returncode, 0)

    def test_killed_at_random_ten_times_the_table_is_that_of_an_undisturbed_one(self):
        undisturbed = self.folder / "undisturbed.sqlite"
        calm = self.sweep(*GRID, "--out", undisturbed, "--format", "csv", "--quiet")
        self.assertEqual(calm.returncode, 0, calm.stderr)
        self.assertEqual(len(calm.stdout.splitlines()), POINTS + 1)

        file = self.folder / "killed.sqlite"
        draw = random.Random(20)
        before, survived = [], 0
        for _ in range(KILLS):
            # The kernel ends it in the middle of the write that would make a file longer than this: at a byte, not at a
            # time. The log begins anew in every run (query() closes it) and is longer than a MiB after 95 rows.
            longest = draw.randrange(64 << 10, 1 << 20)
            died = self.sweep(*GRID, "--out", file, "--format", "csv", "--quiet", limits={resource.RLIMIT_FSIZE: longest})
            self.assertEqual(died.returncode, -signal.SIGXFSZ, died.stderr)
            rows = query(file, "SELECT * FROM runs")
            self.assertLessEqual(set(before), set(rows), "a committed row was lost or changed")
            survived += len(rows) > len(before)
            before = rows
        self.assertEqual(survived, KILLS)
        self.assertLess(len(before), POINTS)

        last = self.sweep(*GRID, "--out", file, "--format", "csv")
        self.assertEqual(last.returncode, 0, last.stderr)
        self.assertEqual(last.stdout, calm.stdout)
        self.assertIn(f"{len(before)} of {POINTS} points were there, {POINTS - len(before)} simulated now", last.stderr)
        for table in ("rows", "runs", "points"):
            self.assertEqual(query(file, f"SELECT * FROM {table}"), query(undisturbed, f"SELECT * FROM {table}"))

    def test_the_table_is_the_same_for_any_number_of_jobs(self):
        words = ("--vary", "workload.plan.global_batch=2,4,6", "--vary", "run.seed=1,2", "--format", "json", "--quiet")
        one = self.sweep(*words, "--jobs", 1)
        self.assertEqual(one.returncode, 0, one.stderr)
        for jobs in (2, 5):
            self.assertEqual(self.sweep(*words, "--jobs", jobs).stdout, one.stdout)

    def test_what_engines_leave_free_does_not_count_as_room(self):
        # The same bytes, once of a hundredth of the memory and once of nine tenths.
        self.scenario.write_text(json.dumps({
            "topology": {"node": "dgx-h100", "nodes": 1},
            "workload": {"model": "llama3-8b", "task": "decode", "plan": {"tp": 8, "global_batch": 8}}}))
        file = self.folder / "s.sqlite"
        words = ("--vary", "workload.plan.memory_utilization=0.01,0.9", "--allow-oom", "--out", file)
        rows = json.loads(self.sweep(*words, "--format", "json").stdout)["rows"]
        self.assertLess(rows[0]["figures"]["memory_bytes"], rows[0]["figures"]["memory_capacity_bytes"])
        self.assertEqual([row["fits"] for row in rows], [False, True])
        self.assertEqual(query(file, "SELECT fits FROM rows"), [(0,), (1,)])

    def test_rows_are_those_of_run_and_json_csv_and_sqlite_agree(self):
        file = self.folder / "s.sqlite"
        words = ("--vary", "workload.plan.global_batch=2,4,5", "--vary", "workload.plan.micro_batch=2", "--out", file)
        document = json.loads(self.sweep(*words, "--format", "json").stdout)
        self.assertEqual(document["format"], "topsim.sweep/1")
        self.assertEqual([row["status"] for row in document["rows"]], ["ok", "ok", "failed"])
        self.assertIn("global_batch", document["rows"][2]["message"])
        table = list(csv.DictReader(io.StringIO(self.sweep(*words, "--format", "csv").stdout)))
        stored = query(file, 'SELECT "workload.plan.global_batch", step_seconds, message FROM rows')
        for row, line, record in zip(document["rows"], table, stored):
            self.assertEqual(record[0], row["values"]["workload.plan.global_batch"])
            self.assertEqual(record[1], row["figures"]["step_seconds"])
            self.assertEqual(record[2], row["message"])
            self.assertEqual(line["step_seconds"], "" if record[1] is None else repr(record[1]))
        run = json.loads(program.output("run", self.scenario, "--set", "workload.plan.global_batch=4", "--set",
                                        "workload.plan.micro_batch=2", "--format", "json", "--quiet"))
        self.assertEqual(document["rows"][1]["figures"]["step_seconds"], run["step"]["seconds"])
        self.assertEqual(document["rows"][1]["figures"]["mfu"], run["throughput"]["mfu"])

    def test_a_row_says_what_its_run_warns_of(self):
        # An Ascend 910B has no 8-bit units that its data sheet names, and nothing is known that would refuse.
        words = ["--vary", "workload.precision=bf16,fp8", "--set", "topology.node=ascend-910b-8",
                 "--set", "workload.plan.global_batch=8"]
        rows = {row["values"]["workload.precision"]: row["message"]
                for row in json.loads(self.sweep(*words, "--format", "json", "--quiet").stdout)["rows"]}
        self.assertNotIn("fp8 units", rows["bf16"])
        self.assertIn("no fp8 units", rows["fp8"])
        table = self.sweep(*words, "--quiet").stdout
        self.assertRegex(table, r"\n  precision=fp8: (Huawei )?Ascend 910B")
        self.assertEqual(table.count("no fp8 units"), 1)

    def test_lists_of_points_are_read(self):
        points = self.folder / "points.csv"
        points.write_text("workload.plan.global_batch,workload.plan.micro_batch\n4,2\n6,3\n")
        done = self.sweep("--points", points, "--format", "csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line.split(",")[1:4] for line in done.stdout.splitlines()[1:]],
                         [["4", "2", "ok"], ["6", "3", "ok"]])

    def test_an_interrupted_sweep_prints_what_is_done_and_goes_on_later(self):
        file = self.folder / "s.sqlite"
        process = subprocess.Popen([program.TOPSIM, "sweep", self.scenario, *GRID, "--out", file, "--format", "json"],
                                   cwd=program.ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not query(file, "SELECT 1 FROM runs LIMIT 1"):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        self.assertEqual(process.returncode, 130)
        document = json.loads(out)
        self.assertIs(document["complete"], False)
        self.assertEqual(len(document["rows"]), len(query(file, "SELECT 1 FROM runs")))
        self.assertIn("the same command goes on from there", err)

    def test_what_a_varied_value_replaces_cannot_be_set(self):
        for words, said in ((("--vary", "run.seed=1,2", "--seed", 7), "run.seed is varied"),
                            (("--vary", "network.model=flow", "--network", "analytic"), "network.model is varied"),
                            (("--vary", 'run={},{"steps":1}', "--set", "run.warmup=2"), "run is varied as a whole")):
            with self.subTest(words):
                done = self.sweep(*words)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(said, done.stderr)

    def test_dp_within_an_object_that_is_set_is_kept(self):
        # Of 16 accelerators tp 4 would leave dp 4.
        words = ("sweep", "8xH100-ib", "--set", "topology.nodes=2", "--allow-oom", "--vary", "workload.plan.tp=4,8")
        plan = {"tp": 8, "dp": 2, "micro_batch": 1, "global_batch": 8}
        held = program.topsim(*words, "--set", f"workload.plan={json.dumps(plan)}", "--format", "json")
        self.assertNotIn("dp follows", held.stderr)
        rows = json.loads(held.stdout)["rows"]
        self.assertEqual([row["status"] for row in rows], ["failed", "ok"])
        self.assertIn("8 accelerators", rows[0]["message"])
        self.assertIn("dp follows", program.topsim(*words, "--set", "workload.plan.pp=1").stderr)

    def test_is_named_as_run_names_it(self):
        for source in (str(self.scenario), "-", "8xH100-ib"):
            with self.subTest(source):
                names = [json.loads(subprocess.run(
                    [program.TOPSIM, command, source, *words, "--network", "analytic", "--format", "json", "--quiet"],
                    cwd=program.ROOT, input=json.dumps(SMALL), text=True, capture_output=True, check=True).stdout)[key]
                    for command, words, key in (("run", (), "name"), ("sweep", ("--vary", "run.seed=1"), "scenario"))]
                self.assertEqual(*names)

    def test_mistakes_are_refused_before_anything_runs(self):
        for words in ([], ["--vary", "run.sead=1"], ["--vary", "run.seed=x"], ["--vary", "run.seed"],
                      ["--vary", "run.seed=1", "--best", "speed"], ["--vary", "run.seed=1", "--format", "xml"],
                      ["--vary", "run.seed=1", "--vary", "run.seed=2"], ["--points", "nowhere.csv"],
                      ["--vary", "run.seed=1", "--out", str(self.scenario)],
                      ["--vary", "run.seed=1", "--out", os.devnull + "/x"]):
            with self.subTest(words):
                done = self.sweep(*words)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertEqual(done.stdout, "")
                self.assertTrue(done.stderr.startswith("error: "), done.stderr)

    def test_a_sweep_of_nothing_that_runs_is_the_users_mistake(self):
        done = self.sweep("--vary", "workload.plan.tp=3,5")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no point of the sweep can be simulated", done.stderr)


if __name__ == "__main__":
    unittest.main()

"""topsim.sweep: the rows of the command, resumable, on this machine and on dask's workers."""

import contextlib
import importlib.util
import json
import os
import pathlib
import pickle
import signal
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import topsim
from small import two_boxes, written_page

HAS_DASK = importlib.util.find_spec("distributed") is not None
GRID = {"workload.plan.tp": [4, 8], "workload.plan.micro_batch": [1, 2, 3]}


def stored(file, sql="SELECT * FROM rows"):
    with contextlib.closing(sqlite3.connect(file)) as database:
        return database.execute(sql).fetchall()


class Sweeps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.scenario = self.folder / "two.json"
        self.scenario.write_text(json.dumps(two_boxes()))

    def test_gives_the_bytes_that_the_command_prints(self):
        program = pathlib.Path("build/release/topsim")
        if not program.exists():
            self.skipTest("the topsim program is not built")
        words = [word for path, values in GRID.items() for word in ("--vary", f"{path}={','.join(map(str, values))}")]
        printed = {form: subprocess.run([program, "sweep", self.scenario, *words, "--format", form, "--quiet"], check=True,
                                        stdout=subprocess.PIPE, text=True).stdout for form in ("json", "csv")}
        swept = topsim.sweep(self.scenario, GRID)
        self.assertEqual(swept.to_json(), printed["json"])
        self.assertEqual(swept.to_csv(), printed["csv"])

    def test_takes_a_list_of_points_where_a_grid_may_stand(self):
        points = [{"workload.plan.tp": 8, "workload.plan.micro_batch": 1}, {"workload.plan.tp": 4, "workload.plan.micro_batch": 2}]
        self.assertEqual(topsim.sweep(two_boxes(), points).to_json(), topsim.sweep(two_boxes(), points=points).to_json())
        for wrong in ("workload.plan.tp=4", 4, ["workload.plan.tp=4"]):
            with self.subTest(wrong), self.assertRaisesRegex(TypeError, "path: value"):
                topsim.sweep(two_boxes(), wrong)

    def test_writes_its_page(self):
        swept = topsim.sweep(two_boxes(), GRID)
        with written_page(self, swept.html) as (_, result):
            self.assertIn(swept.best["step_seconds"], [row["figures"].get("step_seconds") for row in result["rows"]])

    def test_what_does_not_fit_is_never_the_best_of_those_that_do(self):
        # Four tensor ranks are quicker than eight, and need 104 of 80 GiB.
        swept = topsim.sweep("8xH100-ib", {"workload.plan.tp": [4, 8]}, allow_oom=True)
        self.assertEqual([row["fits"] for row in swept], [False, True])
        self.assertGreater(swept[0]["tokens_per_second"], swept[1]["tokens_per_second"])
        self.assertEqual((swept.best["workload.plan.tp"], swept.best["fits"]), (8, True))
        self.assertEqual(swept.pareto["workload.plan.tp"], [8])
        self.assertIn("x does not fit the memory", str(swept))
        alone = topsim.sweep("8xH100-ib", {"workload.plan.tp": [4]}, allow_oom=True)
        self.assertEqual((alone.best["workload.plan.tp"], alone.best["fits"]), (4, False))
        self.assertIn("no point fits", str(alone))

    def test_columns_are_in_the_order_of_the_csv(self):
        swept = topsim.sweep(two_boxes(), {"run.seed": [1]})
        self.assertEqual(swept.columns, swept.to_csv().split("\n")[0].split(","))
        self.assertLess(swept.columns.index("step_seconds"), swept.columns.index("accelerators"))

    def test_names_of_figures_are_checked_before_anything_runs(self):
        for names in ({"best": "step_second"}, {"pareto": ["step_second", "mfu"]}):
            with self.assertRaises(topsim.ConfigError) as caught:
                topsim.sweep(two_boxes(), GRID, progress=lambda *_: self.fail("it runs"), **names)
            self.assertIn("step_seconds", caught.exception.help)

    def test_points_are_rows_of_frames_and_dicts_in_any_order(self):
        points = [{"workload.plan.tp": 8, "run.seed": 1}, {"run.seed": 2, "workload.plan.tp": 4}]
        swept = topsim.sweep(two_boxes(), points)
        self.assertEqual([(row["workload.plan.tp"], row["run.seed"]) for row in swept], [(8, 1), (4, 2)])
        with self.assertRaisesRegex(ValueError, "names the same paths"):
            topsim.sweep(two_boxes(), [{"workload.plan.tp": 8}, {"run.seed": 2}])
        try:
            import pandas
        except ImportError as error:
            self.skipTest(str(error))
        frame = pandas.DataFrame(points)
        for given in (frame, [row for _, row in frame.iterrows()]):
            self.assertEqual(topsim.sweep(two_boxes(), given), swept)

    def test_a_row_is_what_run_gives_and_failures_say_why(self):
        swept = topsim.sweep(two_boxes(), GRID)
        self.assertEqual(len(swept), 6)
        row = next(row for row in swept if (row["workload.plan.tp"], row["workload.plan.micro_batch"]) == (4, 2))
        ran = topsim.run(two_boxes(), **{"workload.plan.tp": 4, "workload.plan.micro_batch": 2, "workload.plan.dp": None})
        self.assertEqual(row["step_seconds"], ran.step_seconds)
        self.assertEqual(row["idle_seconds.tensor_parallel"], ran.idle_seconds["tensor_parallel"])
        # global_batch 8 does not divide into micro-batches of 3.
        self.assertEqual([row["workload.plan.micro_batch"] for row in swept.failed], [3, 3])
        self.assertTrue(all(row["message"] for row in swept.failed))
        self.assertEqual(swept.best["tokens_per_second"], max(row["tokens_per_second"] or 0 for row in swept))
        self.assertIn(swept.best["point"], swept.pareto["point"])
        self.assertIn("step time", str(swept))
        self.assertEqual(pickle.loads(pickle.dumps(swept)), swept)

    def test_says_which_releases_its_points_are_assumed_to_run(self):
        nodes = {"topology.node": ["dgx-a100", "dgx-h100"]}
        machines = topsim.sweep(two_boxes(), nodes)
        self.assertEqual(machines.assumed_releases, ["megatron@2023", "megatron@2025"])
        self.assertEqual(json.loads(machines.to_json())["assumed_releases"], machines.assumed_releases)
        self.assertEqual(machines["assumed_release"], machines.assumed_releases)
        self.assertIn("megatron@2023 or megatron@2025: they differ by the release, too", " ".join(str(machines).split()))
        one = topsim.sweep(two_boxes(), nodes, set={"workload.framework": "megatron@2025"})
        self.assertEqual(one.assumed_releases, [])
        self.assertEqual(one["assumed_release"], [None, None])
        self.assertNotIn("assumed", str(one))

    def test_says_what_its_figures_are(self):
        swept = topsim.sweep(two_boxes(), {"run.seed": [1]})
        figures = {row["name"]: row for row in swept.figures}
        self.assertEqual(list(figures), swept.columns[swept.columns.index("step_seconds"):])
        self.assertEqual((figures["mfu"]["unit"], figures["mfu"]["more_is_better"]), ("1", True))

    def test_makes_frames(self):
        try:
            import pandas
        except ImportError as error:
            self.skipTest(str(error))
        swept = topsim.sweep(two_boxes(), {"workload.plan.micro_batch": [1, 2, 3]})
        for frame in (swept.to_pandas(), pandas.DataFrame(swept)):
            self.assertEqual(list(frame["workload.plan.micro_batch"]), [1, 2, 3])
            self.assertEqual(frame["step_seconds"].dtype, float)
            self.assertEqual(frame["step_seconds"].isna().sum(), 1)

    def test_lists_of_points_and_numpys_numbers(self):
        listed = topsim.sweep(two_boxes(), points=[{"workload.plan.tp": 8, "run.seed": 1}, {"workload.plan.tp": 4, "run.seed": 2}])
        self.assertEqual([(row["workload.plan.tp"], row["run.seed"]) for row in listed], [(8, 1), (4, 2)])
        try:
            import numpy
        except ImportError as error:
            self.skipTest(str(error))
        self.assertEqual(topsim.sweep(two_boxes(), {"run.seed": numpy.array([1, 2])})["run.seed"], [1, 2])

    def test_what_is_no_sweep_is_refused(self):
        for vary in ({}, {"run.seed": []}, {"run.seed": "12"}, {"run.seed": 4}):
            with self.assertRaises(ValueError):
                topsim.sweep(two_boxes(), vary)
        for vary in ({"run.sead": [1]}, {"run.seed": ["x"]}, {"topology.nodes": [0]}):
            with self.assertRaises(topsim.ConfigError):
                topsim.sweep(two_boxes(), vary)

    def test_what_is_set_and_varied_in_one_call_is_refused(self):
        for vary, set_too in (({"run.seed": [1, 2]}, {"seed": 7}), ({"network.model": ["flow"]}, {"network": "analytic"}),
                              ({"workload.plan.tp": [4]}, {"set": ["workload.plan.tp=8"]}),
                              ({"topology.fabric.link": ["ib-ndr"]}, {"topology.fabric.link.latency": "700 ns"})):
            with self.subTest(set_too), self.assertRaisesRegex(topsim.ConfigError, "has no effect"):
                topsim.sweep(two_boxes(), vary, **set_too)
        # A scenario may have been changed before: the sweep begins with it, as with a file.
        self.assertEqual(topsim.sweep(topsim.Scenario(two_boxes(), {"run.seed": 7}), {"run.seed": [1, 2]})["run.seed"], [1, 2])

    def test_dp_within_an_object_that_is_set_is_kept(self):
        # tp 4 on 16 accelerators would leave dp 4.
        plan = {"tp": 8, "dp": 2, "micro_batch": 1, "global_batch": 8}
        swept = topsim.sweep(two_boxes(), {"workload.plan.tp": [4, 8]}, set={"workload.plan": plan})
        self.assertEqual(swept["status"], ["failed", "ok"])
        self.assertIn("8 accelerators", swept.failed["message"][0])

    def test_is_named_as_run_names_it(self):
        twice = self.folder / "two.json.json"
        twice.write_text(json.dumps(two_boxes()))
        for source in (self.scenario, twice, two_boxes(), "8xH100-ib"):
            with self.subTest(source):
                swept = topsim.sweep(source, {"run.seed": [1]}, network="analytic")
                self.assertEqual(swept.to_dict()["scenario"], topsim.Scenario(source).name)

    def test_goes_on_where_the_command_or_an_interrupted_call_stopped(self):
        file = self.folder / "s.sqlite"
        topsim.sweep(self.scenario, {"workload.plan.tp": [4], "workload.plan.micro_batch": [1, 2]}, out=file)
        before = stored(file, "SELECT * FROM runs")
        seen = []
        swept = topsim.sweep(self.scenario, GRID, out=file, progress=lambda *state: seen.append(state))
        self.assertLess(set(before), set(stored(file, "SELECT * FROM runs")))
        self.assertEqual(swept, topsim.sweep(self.scenario, GRID))
        self.assertEqual([row[0] for row in stored(file)], list(range(6)))

    def test_control_c_keeps_what_is_finished(self):
        file = self.folder / "s.sqlite"
        # A shell that starts the tests in the background has them ignore SIGINT.
        script = ("import signal, threading, topsim, sys\n"
                  "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
                  "threading.Timer(0.7, lambda: signal.raise_signal(signal.SIGINT)).start()\n"
                  "try:\n    topsim.sweep(sys.argv[1], {'run.seed': list(range(100000))}, out=sys.argv[2])\n"
                  "except KeyboardInterrupt:\n    print('stopped')\n")
        ran = subprocess.run([sys.executable, "-c", script, self.scenario, file], stdout=subprocess.PIPE, text=True,
                             timeout=120, check=True)
        self.assertEqual(ran.stdout, "stopped\n")
        self.assertEqual(stored(file, "PRAGMA integrity_check"), [("ok",)])

    def test_plots(self):
        try:
            import matplotlib
        except ImportError as error:
            self.skipTest(str(error))
        matplotlib.use("Agg")
        swept = topsim.sweep(two_boxes(), {"workload.plan.tp": [4, 8], "workload.plan.recompute": ["none", "full"]})
        axes = swept.plot(x="tp", y="step_seconds")
        self.assertEqual(len(axes.lines), 2)
        self.assertEqual(swept.plot(x="recompute").get_xlabel(), "workload.plan.recompute")
        for x, y in (("tp", "recompute"), ("tp", "message"), ("status", "mfu")):
            with self.assertRaisesRegex(ValueError, "no figure"):
                swept.plot(x=x, y=y)


@unittest.skipUnless(HAS_DASK, "dask.distributed is not installed (python3-distributed)")
class OnDask(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        from dask.distributed import Client, LocalCluster
        cls.cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1",
                                   dashboard_address=None)
        cls.client = Client(cls.cluster)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.cluster.close()

    def test_rows_and_resuming_are_those_of_one_machine(self):
        with tempfile.TemporaryDirectory() as folder:
            here, there = os.path.join(folder, "here.sqlite"), os.path.join(folder, "there.sqlite")
            alone = topsim.sweep("configs/8xH100-ib.json", {"workload.plan.tp": [8, 16], "run.seed": [1, 2]}, out=here)
            half = topsim.sweep("configs/8xH100-ib.json", {"workload.plan.tp": [8], "run.seed": [1, 2]}, out=there)
            self.assertEqual(len(half), 2)
            done = []
            spread = topsim.sweep("configs/8xH100-ib.json", {"workload.plan.tp": [8, 16], "run.seed": [1, 2]}, out=there,
                                  client=self.client, progress=lambda *state: done.append(state[:2]))
            self.assertEqual(spread.to_json(), alone.to_json())
            self.assertEqual(stored(here), stored(there))
            self.assertEqual(done, [(3, 4), (4, 4)], "what one machine had done was run again")

    def test_a_worker_killed_midway_costs_nothing_but_time(self):
        vary = {"workload.plan.micro_batch": [1, 2, 4], "run.seed": list(range(20))}
        killed = []

        def progress(done, total, *_):
            if done >= 5 and not killed:
                killed.append(list(self.client.run(os.getpid).values())[0])
                os.kill(killed[0], signal.SIGKILL)

        swept = topsim.sweep(two_boxes(), vary, client=self.client, progress=progress)
        self.assertTrue(killed, "the sweep was over before a worker could be killed")
        self.assertEqual(swept, topsim.sweep(two_boxes(), vary))


if __name__ == "__main__":
    unittest.main()

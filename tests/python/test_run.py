"""topsim.run, load and Result: what goes in, what comes out, and that it is the command's own answer."""

import contextlib
import io
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import topsim
from small import two_boxes, written_page

try:
    import numpy
except ImportError:
    numpy = None

SCENARIO = "configs/8xH100-ib.json"


class Files(unittest.TestCase):
    def test_of_a_scenario_are_not_overwritten(self):
        with tempfile.TemporaryDirectory() as folder:
            mine = pathlib.Path(folder) / "mine.json"
            text = json.dumps(two_boxes())
            mine.write_text(text)
            result = topsim.run(mine)
            for write in (result.html, result.save, result.trace, topsim.compare(mine, mine, seeds=1).html):
                with self.assertRaisesRegex(topsim.ConfigError, "is the scenario that is read; name another file"):
                    write(mine)
                self.assertEqual(mine.read_text(), text)


@unittest.skipUnless(numpy, "needs numpy")
class NumpyScalars(unittest.TestCase):
    def test_are_numbers_wherever_a_number_is_taken(self):
        plain = topsim.run(two_boxes(), set={"workload.plan.global_batch": 16}, seed=3)
        given = topsim.run(two_boxes(), set={"workload.plan.global_batch": numpy.int64(16)}, seed=numpy.uint32(3))
        self.assertEqual(given.to_dict(), plain.to_dict())
        slow = {"workload.compute.gemm_efficiency": 0.5, "workload.plan.overlap_grad_reduce": False}
        scalars = {path: numpy.array([value])[0] for path, value in slow.items()}  # float64 and bool_
        self.assertEqual(topsim.run(two_boxes(), set=scalars).to_dict(), topsim.run(two_boxes(), set=slow).to_dict())


class Run(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        begin = time.perf_counter()
        cls.result = topsim.run(SCENARIO)
        print(f"topsim.run({SCENARIO!r}) took {1e3 * (time.perf_counter() - begin):.0f} ms", flush=True)

    def test_gives_the_bytes_that_the_command_prints(self):
        program = pathlib.Path("build/release/topsim")
        if not program.exists():
            self.skipTest("the topsim program is not built")
        printed = subprocess.run([program, "run", SCENARIO, "--format", "json", "--quiet"], check=True,
                                 stdout=subprocess.PIPE, text=True).stdout
        self.assertEqual(self.result.to_json(), printed)

    def test_attributes_are_those_of_result_json(self):
        document = json.loads(self.result.to_json())
        self.assertEqual(document["format"], "topsim.result/1")
        self.assertEqual(self.result.to_dict(), document)
        self.assertEqual(self.result.step_seconds, document["step"]["seconds"])
        self.assertEqual(self.result.mfu, document["throughput"]["mfu"])
        self.assertEqual(self.result.tokens_per_second, document["throughput"]["tokens_per_second"])
        self.assertEqual(self.result.idle_seconds, document["accelerators"]["idle_seconds"])
        self.assertTrue(self.result.complete)
        self.assertEqual(self.result.seed, 1)

    def test_a_result_without_a_measured_step_says_so(self):
        stopped = self.result.to_dict()
        stopped.update(complete=False, step={"per_step": [], "seconds": 0.0})
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "result.json"
            file.write_text(json.dumps(stopped))
            self.assertIn("no measured step, interrupted", repr(topsim.load(file)))
        self.assertNotIn("no measured step", repr(self.result))

    def test_busy_and_idle_sum_to_the_step(self):
        # Exact in picoseconds; as doubles each of the eleven terms is off by at most half an ulp of the step.
        self.assertAlmostEqual(self.result.busy_seconds + sum(self.result.idle_seconds.values()),
                               self.result.step_seconds, delta=1e-12)

    def test_a_dict_gives_what_its_file_gives(self):
        with open(SCENARIO, encoding="utf-8") as file:
            from_dict = topsim.run(json.load(file))
        self.assertEqual(from_dict.to_dict()["step"], self.result.to_dict()["step"])
        self.assertEqual(from_dict.links, self.result.links)

    def test_a_scenario_and_its_resolved_echo_give_the_same(self):
        self.assertEqual(topsim.run(topsim.Scenario(SCENARIO)), self.result)
        self.assertEqual(topsim.run(self.result.scenario), self.result)

    def test_a_path_and_the_name_of_a_shipped_scenario_work(self):
        self.assertEqual(topsim.run(pathlib.Path(SCENARIO)), self.result)
        self.assertEqual(topsim.run("8xH100-ib"), self.result)

    def test_folding_and_the_timeline_change_no_figure(self):
        folded = topsim.run(two_boxes())
        self.assertEqual(topsim.run(two_boxes(), fold=False).step_seconds, folded.step_seconds)
        kept = topsim.run(two_boxes(), timeline=True)
        self.assertEqual(kept, folded)
        self.assertEqual(kept.timeline, folded.timeline)

    def test_a_result_that_this_version_does_not_give_has_no_timeline(self):
        document = topsim.run(two_boxes()).to_dict()
        document["step"]["seconds"] *= 2
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "result.json")
            with open(file, "w", encoding="utf-8") as out:
                json.dump(document, out)
            with self.assertRaisesRegex(ValueError, "run the scenario again"):
                topsim.load(file).timeline

    def test_the_run_record_stays_out_of_the_result(self):
        self.assertGreater(self.result.run_record["events"], 0)
        self.assertNotIn("wall_seconds", self.result.to_json())

    def test_repr_is_one_line_and_the_notebook_gets_the_screen_of_the_command(self):
        self.assertRegex(repr(self.result), r"^<Result 8xH100-ib: step [\d.]+ s, [\d.]+% idle, MFU [\d.]+%>$")
        self.assertIn("step time", str(self.result))
        self.assertIn("step time", self.result._repr_html_())
        self.assertIn("<td>tensor parallel</td>", self.result._repr_html_())

    def test_a_rank_that_is_not_there_is_said_shortly(self):
        for number in (-1, 64, 1 << 40):
            with self.assertRaisesRegex(topsim.ConfigError, f"has no rank {number}"):
                self.result.rank(number)
        with self.assertRaisesRegex(TypeError, "^.{1,80}$"):
            self.result.rank("3")

    def test_a_saved_result_loads_equal(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "result.json")
            self.result.save(file)
            self.assertEqual(topsim.load(file), self.result)
            self.assertEqual(topsim.load(folder), self.result)
            self.assertIsNone(topsim.load(file).run_record)
            self.assertEqual(topsim.load(file).idle, self.result.idle)

    def test_pickles_with_its_tables(self):
        copy = pickle.loads(pickle.dumps(self.result))
        self.assertEqual(copy, self.result)
        self.assertEqual(copy.run_record, self.result.run_record)
        self.assertEqual(copy.timeline, self.result.timeline)
        self.assertEqual(copy.idle, self.result.idle)
        self.assertEqual(copy.scenario, self.result.scenario)

    def test_writes_traces(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "trace.json")
            topsim.run(two_boxes()).trace(file)
            with open(file, encoding="utf-8") as trace:
                self.assertTrue(json.load(trace)["traceEvents"])
            with self.assertRaises(topsim.ConfigError):
                self.result.trace(os.path.join(folder, "trace.unknown"))

    def test_writes_its_page(self):
        with written_page(self, self.result.html) as (page, result):
            self.assertEqual(result["step"]["seconds"], self.result.step_seconds)
            self.assertNotIn("src=\"http", page)


class Changes(unittest.TestCase):
    def test_keywords_set_mappings_and_assignments_are_the_same(self):
        wanted = topsim.run(two_boxes(), **{"workload.plan.tp": 4, "workload.plan.dp": 4})
        self.assertEqual(topsim.run(two_boxes(), set={"workload.plan.tp": 4, "workload.plan.dp": 4}), wanted)
        self.assertEqual(topsim.run(two_boxes(), set=["workload.plan.tp=4", "workload.plan.dp=4"]), wanted)
        changed = two_boxes()
        changed["workload"]["plan"].update(tp=4, dp=4)
        self.assertEqual(topsim.run(changed).to_dict()["step"], wanted.to_dict()["step"])
        self.assertNotEqual(topsim.run(two_boxes()).step_seconds, wanted.step_seconds)

    def test_objects_and_strings_arrive_as_they_are(self):
        scenario = topsim.Scenario(two_boxes(), {"topology.fabric.link": {"use": "ib-ndr", "latency": "5 us"}})
        self.assertEqual(scenario.to_dict()["topology"]["fabric"]["link"]["latency"], "5 us")
        self.assertEqual(scenario.replace(**{"network.model": "analytic"})["network.model"], "analytic")

    def test_seed_and_network_have_keywords_of_their_own(self):
        result = topsim.run(two_boxes(), seed=7, network="analytic")
        self.assertEqual(result.seed, 7)
        self.assertEqual(result.to_dict()["network"]["model"], "analytic")

    def test_paths_reach_into_lists(self):
        fault = {"at": "1 ms", "kind": "link_down", "target": "node0/nic0"}
        faulty = topsim.Scenario(two_boxes(), {"faults": [fault]})
        self.assertEqual(faulty["faults[0].kind"], "link_down")
        for path in ("faults[1].kind", "faults.kind", "workload[0]", "nowhere"):
            with self.assertRaises(KeyError):
                faulty[path]

    def test_bytes_are_a_path(self):
        self.assertEqual(topsim.Scenario(b"configs/8xH100-ib.json"), topsim.Scenario("configs/8xH100-ib.json"))

    def test_replace_leaves_the_scenario_alone(self):
        scenario = topsim.Scenario(two_boxes())
        self.assertEqual(scenario.replace(**{"topology.nodes": 4})["topology.nodes"], 4)
        self.assertEqual(scenario["topology.nodes"], 2)
        self.assertNotEqual(scenario, scenario.replace(**{"topology.nodes": 4}))

    def test_scenarios_pickle(self):
        scenario = topsim.Scenario("configs/8xH100-ib.json", {"workload.plan.tp": 4})
        copy = pickle.loads(pickle.dumps(scenario))
        self.assertEqual(copy, scenario)
        self.assertEqual(copy.name, "8xH100-ib")
        self.assertEqual(copy.replace(**{"topology.nodes": 4})["workload.plan.tp"], 4)


class Threads(unittest.TestCase):
    def test_side_by_side_runs_give_what_one_after_the_other_give(self):
        seeds = range(6)
        alone = [topsim.run(two_boxes(), seed=seed).to_json() for seed in seeds]
        together = [None] * len(alone)

        def work(seed):
            together[seed] = topsim.run(two_boxes(), seed=seed).to_json()

        threads = [threading.Thread(target=work, args=(seed,)) for seed in seeds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(together, alone)

    def test_other_threads_run_during_a_simulation(self):
        ticks, done = [], threading.Event()

        def tick():
            while not done.wait(0.001):
                ticks.append(time.perf_counter())

        thread = threading.Thread(target=tick)
        thread.start()
        begin = time.perf_counter()
        topsim.run(SCENARIO, timeline=False)
        end = time.perf_counter()
        done.set()
        thread.join()
        # With the GIL held there would be none between the first and the last quarter of the run.
        middle = [at for at in ticks if begin + (end - begin) / 4 < at < end - (end - begin) / 4]
        self.assertGreater(len(middle), 0)

    def test_what_progress_raises_stops_the_run(self):
        class Enough(Exception):
            pass

        seen = []

        def progress(done, total, seconds, events, step):
            seen.append((done, total))
            raise Enough

        # Long enough for one call, ten times a second, on any machine: a step of it is a second or so.
        with self.assertRaises(Enough):
            topsim.run(SCENARIO, progress=progress, **{"run.steps": 400})
        self.assertEqual(len(seen), 1)

    def test_a_bar_is_shown_where_one_is_wanted(self):
        try:
            import tqdm  # noqa: F401
        except ImportError as error:
            self.skipTest(str(error))
        shown = io.StringIO()
        with contextlib.redirect_stderr(shown):
            topsim.run(SCENARIO, timeline=False, progress=True, **{"run.steps": 4000})  # seconds
        self.assertIn("simulating", shown.getvalue())

    def test_a_run_is_stopped_while_it_is_prepared(self):
        stopped = []

        def stop(done, total, *_):  # ten times a second; before the first step there are no operations
            if total == 0:
                stopped.append(time.monotonic())
                raise KeyboardInterrupt

        begin = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):  # some seconds of preparation
            topsim.run("configs/131072xH100-llama3-405b.json", fold=False, progress=stop)
        preparing = time.monotonic() - stopped[0]
        self.assertLess(preparing, 2, f"stopped after {stopped[0] - begin:.1f} s")

    def test_control_c_stops_a_run_at_once(self):
        # A shell that starts the tests in the background has them ignore SIGINT.
        script = ("import signal, threading, topsim\n"
                  "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
                  "threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT)).start()\n"
                  "try:\n    topsim.run('configs/8xH100-ib.json', timeline=False, **{'run.steps': 10000})\n"
                  "except KeyboardInterrupt:\n    print('stopped')\n")
        ran = subprocess.run([sys.executable, "-c", script],
                             stdout=subprocess.PIPE, text=True, timeout=60, check=True)
        self.assertEqual(ran.stdout, "stopped\n")


if __name__ == "__main__":
    unittest.main()

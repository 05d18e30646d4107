"""topsim.plan and topsim.explain: the commands' own answers as objects."""

import pathlib
import pickle
import subprocess
import unittest

import topsim
from small import page_data, two_boxes, written_page

PROGRAM = pathlib.Path("build/release/topsim")
SCENARIO = "configs/16xA100-hdr.json"


class Plan(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plans = topsim.plan(SCENARIO, top=3, keep=["recompute", "micro_batch"], schedules=["1f1b", "interleaved"])

    def test_gives_the_bytes_that_the_command_prints(self):
        if not PROGRAM.exists():
            self.skipTest("the topsim program is not built")
        printed = subprocess.run([PROGRAM, "plan", SCENARIO, "--top", "3", "--keep", "recompute,micro_batch", "--schedules",
                                  "1f1b,interleaved", "--format", "json", "--quiet"], check=True, stdout=subprocess.PIPE,
                                 text=True).stdout
        self.assertEqual(self.plans.to_json(), printed)

    def test_the_best_first_and_it_runs_as_it_says(self):
        steps = self.plans["step_seconds"]
        self.assertEqual(list(steps), sorted(steps))
        self.assertEqual(topsim.run(self.plans.best).step_seconds, steps[0])
        self.assertEqual(self.plans.best["workload.plan.tp"], self.plans[0]["tp"])
        self.assertLessEqual(steps[0], self.plans.own["step_seconds"])
        self.assertEqual(self.plans.assumed_release, "megatron@2024")
        space = self.plans.space
        self.assertEqual(space["plans"], sum(space[key] for key in ("impossible", "too_large", "cut", "simulated")))

    def test_an_exhaustive_search_cuts_nothing_and_finds_the_same_best(self):
        every = topsim.plan(SCENARIO, top=1, keep=["recompute"], exhaustive=True)
        quick = topsim.plan(SCENARIO, top=1, keep=["recompute"])
        self.assertEqual(every.space["cut"], 0)
        self.assertGreater(quick.space["cut"], 0)
        self.assertEqual(every.best, quick.best)

    def test_the_own_plan_has_the_keys_of_a_row(self):
        self.assertEqual(list(self.plans.own), self.plans.columns)
        own = self.plans.own
        keys = ("tp", "pp", "schedule", "virtual_stages")
        same = [row for row in self.plans if all(row[key] == own[key] for key in keys)]
        self.assertEqual(own["first_step_seconds"], same[0]["first_step_seconds"] if same else None)

    def test_the_network_is_that_of_the_best_scenario(self):
        plans = topsim.plan(two_boxes(), top=1, keep=["micro_batch", "recompute", "pp"], network="analytic")
        self.assertEqual(plans.best["network.model"], "analytic")
        self.assertIn("judged with the flow model", str(plans))

    def test_pickles_and_shows_itself(self):
        self.assertEqual(pickle.loads(pickle.dumps(self.plans)), self.plans)
        self.assertIn("plans for 16 accelerators", str(self.plans))

    def test_mistakes(self):
        with self.assertRaisesRegex(ValueError, "dimensions: tp"):
            topsim.plan(SCENARIO, keep=["tpp"])
        with self.assertRaises(topsim.ConfigError):
            topsim.plan(SCENARIO, schedules=["1f1c"])
        with self.assertRaises(topsim.ConfigError):
            topsim.plan(two_boxes(), **{"workload.model": "gpt3-175b"})


class Explain(unittest.TestCase):
    def test_is_what_the_command_prints(self):
        if not PROGRAM.exists():
            self.skipTest("the topsim program is not built")
        explained = topsim.explain(SCENARIO)
        printed = subprocess.run([PROGRAM, "explain", SCENARIO, "--format", "json"], check=True, stdout=subprocess.PIPE,
                                 text=True).stdout
        self.assertEqual(explained.to_json(), printed)
        gains = explained.what_if["gain"]
        self.assertEqual(list(gains), sorted(gains, reverse=True))
        self.assertEqual(pickle.loads(pickle.dumps(explained)).to_json(), printed)

    def test_a_result_is_explained_without_running_it(self):
        result = topsim.run(two_boxes())
        explained = topsim.explain(result, what_if=False)
        self.assertEqual(explained.critical_path, result.critical_path)
        self.assertEqual(len(explained.what_if), 0)
        with self.assertRaises(ValueError):
            topsim.explain(result, faster=0)

    def test_its_page_says_what_a_faster_part_would_buy(self):
        explained = topsim.explain(two_boxes(), faster=20)
        for each in (explained, pickle.loads(pickle.dumps(explained))):
            with written_page(self, each.html) as (page, result):
                self.assertEqual(result["step"]["seconds"], topsim.run(two_boxes()).step_seconds)
                self.assertEqual(page_data(page, "extra")["what_if"], explained.to_dict()["what_if"])


if __name__ == "__main__":
    unittest.main()

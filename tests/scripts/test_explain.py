"""What explain says a faster part would buy, beside a scenario that has the faster part, and beside the critical path."""

import json
import pathlib
import sys
import tempfile
import unittest

import program

sys.path.insert(0, str(program.ROOT / "tests"))
from page_data import page_data

SCENARIOS = ("configs/8xH100-ib.json", "configs/8xV100-dgx1.json", "configs/4xA800.json")
FASTER = 1.1
SAVED = 1 - 1 / FASTER  # of the time that the part alone sets


class Explain(unittest.TestCase):
    def explained(self, scenario):
        return json.loads(program.output("explain", scenario, "--format", "json"))

    def gains(self, explained):
        return {part["part"]: part["gain"] for part in explained["what_if"]["parts"]}

    def test_no_part_saves_more_than_its_share_of_the_critical_path(self):
        # A part that sets the share s of the path alone saves at most s (1 - 1/1.1), within 2 % of the step. Less
        # where NCCL drives a link: it searches its rings among fixed speeds, and 10 % may not reach the next one.
        for scenario in SCENARIOS:
            explained = self.explained(scenario)
            shares = {each["what"]: each["share"] for each in explained["critical_path_links"]}
            nvlink = sum(share for what, share in shares.items() if what.startswith("NVLink"))
            gains = self.gains(explained)
            with self.subTest(scenario=scenario):
                self.assertAlmostEqual(gains["computation"], SAVED * shares["computation"], delta=0.02)
                self.assertLessEqual(gains["NVLink"], SAVED * nvlink + 0.02)
                latency = shares["latency of messages and of collectives' steps"]
                self.assertLessEqual(gains["latency of wires, switches and NICs"], SAVED * latency + 0.02)
                self.assertGreater(shares["computation"], 0.3)  # else the comparison says nothing

    def test_memory_is_what_a_decode_step_waits_for(self):
        # 64 tokens read all weights and 64 caches: kernels are as fast as the memory. A training step of 8,192 tokens
        # a row multiplies; only its norms, activations and sums are.
        def gains(scenario):
            parts = json.loads(program.output("explain", scenario, "--format", "json"))["what_if"]["parts"]
            return {part["part"]: part["gain"] for part in parts}
        decode, train = gains("configs/8xH100-decode.json"), gains("configs/8xH100-ib.json")
        self.assertGreater(decode["accelerator memory"], 0.85 * decode["computation"])
        self.assertLessEqual(decode["accelerator memory"], decode["computation"])
        self.assertLess(train["accelerator memory"], 0.3 * train["computation"])
        self.assertGreater(train["accelerator memory"], 0)

    def test_a_scenario_with_the_faster_cable_takes_the_step_that_explain_names(self):
        # Cables of 100 Gbit/s, slower than anything beside them, against a scenario that says 200 itself.
        scenario = "configs/8xH100-ib.json"
        changes = ["--set", "workload.plan.overlap_grad_reduce=false"]
        cable = 'topology.fabric.link={"use": "ib-ndr", "bandwidth": "%d Gbit/s"}'
        explained = json.loads(program.output("explain", scenario, *changes, "--set", cable % 100, "--faster", "100",
                                              "--format", "json"))
        faster = {part["part"]: part["step_seconds"] for part in explained["what_if"]["parts"]}
        run = json.loads(program.output("run", scenario, *changes, "--set", cable % 200, "--format", "json"))
        step = explained["what_if"]["step_seconds"]
        self.assertLess(run["step"]["seconds"], 0.98 * step)
        self.assertAlmostEqual(faster["NIC to leaf links"], run["step"]["seconds"], delta=0.02 * step)

    def test_a_scenario_with_faster_accelerators_takes_the_step_that_explain_names(self):
        scenario = "configs/1xH100.json"  # nothing but computation
        explained = self.explained(scenario)
        gain = self.gains(explained)["computation"]
        self.assertAlmostEqual(gain, SAVED, delta=0.02)

    def test_faster_nvlinks_pay_though_nccl_plans_with_speeds_from_a_list(self):
        # NCCL searches a DGX-1's rings among speeds 10 to 30 % apart, but its kernels send as fast as the wires carry: NVLinks
        # a tenth faster buy something, at most a tenth of the time that they limit.
        explained = self.explained("configs/8xV100-dgx1.json")
        limited = sum(each["share"] for each in explained["critical_path_links"] if each["what"].startswith("NVLink"))
        gain = self.gains(explained)["NVLink"]
        self.assertGreater(gain, 0.005)
        self.assertLessEqual(gain, SAVED * limited + 0.001)

    def test_a_part_that_buys_less_than_nothing_says_what_nccl_does(self):
        # Two DGX-1 whose replicas reduce over four GPUs: with PCIe links a tenth faster NCCL takes a tree for a ring.
        plan = {"tp": 4, "dp": 4, "micro_batch": 1}
        with tempfile.TemporaryDirectory() as folder:
            scenario = pathlib.Path(folder) / "two-dgx1.json"
            scenario.write_text(json.dumps({
                "topology": {"node": "dgx1-v100", "nodes": 2,
                             "fabric": {"kind": "rail", "link": "ib-ndr", "nodes_per_leaf": 2}},
                "workload": {"model": "gpt2-large", "sequence": 1024, "framework": "megatron", "plan": plan},
                "run": {"steps": 1}}))
            parts = self.explained(scenario)["what_if"]["parts"]
        losses = [part for part in parts if part["gain"] < -0.001]
        self.assertTrue(losses, parts)
        for part in losses:
            self.assertIn("NCCL chooses otherwise", part.get("choices", ""), part)

    def test_the_page_shows_the_gains_that_explain_prints(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.html"
            done = program.topsim("explain", "configs/4xA800.json", "--format", "json", "--html", str(page))
            if "no report page" in done.stderr:
                self.skipTest("topsim was built without the chart library (npm)")
            self.assertEqual(page_data(page.read_text(), "extra")["what_if"], json.loads(done.stdout)["what_if"])


if __name__ == "__main__":
    unittest.main()

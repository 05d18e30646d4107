"""The same scenario said in other words, asked for in another form, or made worse: drawn from a seed."""

import copy
import csv
import json
import pathlib
import random
import unittest

import program
from test_metamorphic import drawn

DRAWN = 18
LINKS = ("ib-ndr", "ib-hdr", "roce-400g")


class SaidOtherwise(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = program.temporary_folder()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.random = random.Random(91)
        cls.pairs = []
        while len(cls.pairs) < DRAWN:
            scenario = drawn(cls.random)
            if "fabric" in scenario["topology"]:
                scenario["topology"]["fabric"]["link"] = cls.random.choice(LINKS)
            done = cls.run_of(scenario)
            if done.returncode == 0:
                cls.pairs.append((scenario, json.loads(done.stdout)))

    @classmethod
    def file_of(cls, scenario, name="drawn.json"):
        path = cls.folder / name
        path.write_text(scenario if isinstance(scenario, str) else json.dumps(scenario))
        return path

    @classmethod
    def run_of(cls, scenario, *words):
        return program.topsim("run", cls.file_of(scenario), "--format", "json", "--quiet", "--allow-oom", *words)

    def assert_same(self, again, result, scenario):
        self.assertEqual(again.returncode, 0, again.stderr)
        again = json.loads(again.stdout)
        for part in ("step", "memory", "accelerators", "ranks", "links", "collectives", "critical_path"):
            self.assertEqual(again[part], result[part], json.dumps(scenario))

    def shuffled(self, value):
        """Keys in another order, with remarks between them."""
        if not isinstance(value, dict):
            return value
        members = [(key, self.shuffled(inner)) for key, inner in value.items()] + [("// why", None)]
        self.random.shuffle(members)
        return dict(members)

    def test_the_order_of_keys_remarks_and_white_space_are_of_no_account(self):
        for scenario, result in self.pairs[::2]:
            text = json.dumps(self.shuffled(scenario), indent=self.random.choice((1, "\t"))).replace("\n", "\r\n")
            self.assert_same(self.run_of(text), result, scenario)

    def test_a_value_set_by_an_option_is_the_value_in_the_file(self):
        for scenario, result in self.pairs[1::2]:
            other = copy.deepcopy(scenario)
            section = self.random.choice(("plan", "workload", "run"))
            inner = other["workload"]["plan"] if section == "plan" else other[section]
            path = "workload.plan" if section == "plan" else section
            key = self.random.choice(list(inner))
            value, inner[key] = json.dumps(inner[key]), ["nonsense"]
            self.assert_same(self.run_of(other, "--set", f"{path}.{key}={value}"), result, scenario)

    def test_a_topology_written_out_is_the_recipe(self):
        for scenario, result in self.pairs[::3]:
            exported = program.output("topo", "export", self.file_of(scenario))
            self.file_of(exported, "cluster.json")
            self.assert_same(self.run_of({**scenario, "topology": {"file": "cluster.json"}}), result, scenario)
            self.assert_same(self.run_of({**scenario, "topology": json.loads(exported)}), result, scenario)

    def test_quantities_may_be_said_in_any_unit(self):
        # 50 GB/s = 400 Gbit/s; 700 ns = 0.7 us; 40 MiB = 41,943,040 B; 5 us = 5,000 ns; 4 MiB = 4,194,304 B.
        def said(bandwidth, latency, bucket, launch, buffer):
            return {"topology": {"node": "hgx-h100", "nodes": 2,
                                 "fabric": {"kind": "rail", "link": {"use": "ib-ndr", "bandwidth": bandwidth,
                                                                     "latency": latency}}},
                    "workload": {"model": "gpt2-large", "framework": "ddp", "sequence": 1024,
                                 "compute": {"launch_overhead": launch},
                                 "plan": {"dp": 16, "micro_batch": 1, "grad_accumulation": 2, "bucket_size": bucket}},
                    "network": {"nccl": {"buffsize": buffer}}, "run": {"steps": 1}}

        one = self.run_of(said("400 Gbit/s", "700 ns", "40 MiB", "5 us", "4 MiB"))
        two = self.run_of(said("50GB/s", " +0.7 us", "41943040 B", "5e3 ns", "4194.304 kB"))
        self.assertEqual(one.returncode, 0, one.stderr)
        self.assertEqual(one.stdout, two.stdout)

    def test_every_form_of_a_result_has_the_same_figures(self):
        for scenario, result in self.pairs[2::6]:
            out = self.folder / "out"
            program.output("run", self.file_of(scenario), "--quiet", "--allow-oom", "--out", out)
            self.assertEqual(json.loads((out / "result.json").read_text()), result)
            for table in ("links", "collectives"):
                with open(out / f"{table}.csv", encoding="utf-8", newline="") as file:
                    rows = list(csv.DictReader(file))
                self.assertEqual(len(rows), len(result[table]))
                for row, members in zip(rows, result[table]):
                    for key, value in members.items():
                        if isinstance(value, (int, float)):
                            self.assertEqual(float(row[key]), value, key)

    def test_a_sweep_of_one_value_and_a_comparison_repeat_the_run(self):
        for scenario, result in self.pairs[3::6]:
            file = self.file_of(scenario)
            swept = json.loads(program.output("sweep", file, "--vary", f"workload.plan.tp={scenario['workload']['plan']['tp']}",
                                              "--format", "json", "--quiet", "--allow-oom"))
            self.assertEqual(swept["rows"][0]["figures"]["step_seconds"], result["step"]["seconds"])
            other = self.run_of(scenario, "--set", "workload.compute.clock=0.8")
            first, second = self.file_of(result, "a.json"), self.file_of(other.stdout, "b.json")
            compared = json.loads(program.output("compare", first, second, "--format", "json", "--all"))
            steps = next(row for row in compared["rows"] if row["metric"].startswith("step"))
            self.assertEqual(steps["values"], [each["step"]["seconds"] for each in (result, json.loads(other.stdout))])


class WorseFabrics(unittest.TestCase):
    """Of one choice of NCCL's, with both models that share links."""

    @classmethod
    def setUpClass(cls):
        folder = program.temporary_folder()
        cls.addClassCleanup(folder.cleanup)
        cls.file = pathlib.Path(folder.name) / "drawn.json"

    def time(self, model, fabric, faults=()):
        self.file.write_text(json.dumps({
            "topology": {"node": "h100x1", "nodes": 4, "fabric": {"kind": "fat-tree", "nodes_per_leaf": 2, **fabric}},
            "faults": list(faults)}))
        rows = program.output("bench", "all_gather", self.file, "--algorithm", "ring", "--protocol", "simple", "--channels", "2",
                              "-b", "4M", "-e", "4M", "--network", model, "--format", "json")
        return json.loads(rows)["rows"][0]["time_us"]

    def test_a_worse_fabric_is_no_faster(self):
        for model in ("flow", "packet"):
            for link in ("ib-ndr", "roce-400g"):
                for routing in ("static", "adaptive"):
                    with self.subTest(model=model, link=link, routing=routing):
                        fabric = {"link": link, "routing": routing}
                        best = self.time(model, fabric)
                        # Of about 140 us: 3 steps over 2 cables of 4 us more are 24 us; half of the rate adds 3 MiB at
                        # 48.5 GB/s, 65 us, less what hosts and switches hold up anyway.
                        for worse in {"latency": "5 us"}, {"bandwidth": "200 Gbit/s"}:
                            self.assertGreater(self.time(model, {**fabric, "link": {"use": link, **worse}}), 1.15 * best)
                        # The ring crosses each leaf once: nothing is lost, and packets choose paths.
                        self.assertGreater(self.time(model, {**fabric, "oversubscription": 2}), 0.998 * best)
                        half = {"kind": "link_degraded", "target": "node0/nic0 -> leaf0", "at": "0 s", "factor": 0.5}
                        self.assertGreater(self.time(model, fabric, [half]), 1.05 * best)
                        self.assertEqual(self.time(model, fabric, [{**half, "factor": 1}]), best)

"""What must hold between runs of scenarios that nobody chose: drawn from a seed, small, valid or refused."""

import copy
import json
import pathlib
import random
import unittest

import program

NODES = {"hgx-h100": 8, "dgx-a100": 8, "h100x1": 1, "gb200x4": 4, "mi300x-8": 8, "gaudi2-8": 8, "tpu-v4-host": 4,
         "dgx-1-v100": 8, "pcie-l40s": 8}
MODELS = ("llama3.2-1b", "gpt2-large", "qwen2.5-1.5b", "qwen2-57b-a14b", "gpt-oss-20b")
FRAMEWORKS = ("megatron", "megatron@2021", "fsdp", "fsdp@2024-compile", "ddp", "deepspeed", "internevo", "paddle",
              "dataparallel")
DRAWN = 80


def divisors(number):
    return [each for each in range(1, number + 1) if number % each == 0]


def drawn(random_):
    def sometimes(share, section, key, values):
        if random_.random() < share:
            section[key] = random_.choice(values)

    node, nodes = random_.choice(list(NODES)), random_.choice((1, 1, 2, 4))
    ranks = NODES[node] * nodes
    topology = {"node": node, "nodes": nodes}
    if nodes > 1:
        fabric = topology["fabric"] = {"kind": random_.choice(("rail", "fat-tree", "rail-only"))}
        sometimes(0.3, fabric, "nodes_per_leaf", (1, 2, 9))
        sometimes(0.3, fabric, "routing", ("static", "adaptive"))
    tp = random_.choice([each for each in divisors(ranks) if each <= 8])
    plan = {"tp": tp, "pp": random_.choice([each for each in divisors(ranks // tp) if each <= 4]),
            "micro_batch": 1, "grad_accumulation": 8}
    sometimes(0.3, plan, "zero", (0, 1, 2, 3))
    sometimes(0.2, plan, "zero_group", (2, 4))
    sometimes(0.2, plan, "ep", (2, 4))
    sometimes(0.3, plan, "recompute", ("none", "selective", "full"))
    workload = {"model": random_.choice(MODELS), "framework": random_.choice(FRAMEWORKS), "plan": plan,
                "sequence": random_.choice((1000, 2048, 4096))}
    sometimes(0.5, workload, "precision", ("fp16", "fp32", "fp8"))
    return {"topology": topology, "workload": workload, "run": {"steps": 1, "warmup": 1, "seed": 1}}


def merged(given, more):
    """`given` with the members of `more`; a name that they detail becomes its "use"."""
    for key, value in more.items():
        if isinstance(value, dict):
            inner = given.get(key, {})
            details = {"gemm" if key == "precision" else "use": inner} if isinstance(inner, str) else inner
            given[key] = merged(details, value)
        else:
            given[key] = value
    return given


class Relations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = program.temporary_folder()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.random = random.Random(90)
        cls.scenarios = [drawn(cls.random) for _ in range(DRAWN)]
        cls.results = [cls.run_of(scenario) for scenario in cls.scenarios]

    @classmethod
    def file_of(cls, scenario):
        path = pathlib.Path(cls.folder.name) / "drawn.json"
        path.write_text(json.dumps(scenario, indent=1))
        return path

    @classmethod
    def run_of(cls, scenario):
        return program.topsim("run", cls.file_of(scenario), "--format", "json", "--quiet", "--allow-oom")

    def ran(self):
        """Those that are valid, with their results."""
        pairs = [(scenario, json.loads(done.stdout))
                 for scenario, done in zip(self.scenarios, self.results) if done.returncode == 0]
        self.assertGreater(len(pairs), DRAWN // 4)
        return pairs

    def assert_same(self, scenario, result):
        done = self.run_of(scenario)
        self.assertEqual(done.returncode, 0, done.stderr)
        again = json.loads(done.stdout)
        for part in ("step", "memory", "accelerators"):
            self.assertEqual(again[part], result[part], json.dumps(scenario))

    def test_every_scenario_runs_or_is_refused_with_a_place_and_a_remedy(self):
        for scenario, done in zip(self.scenarios, self.results):
            with self.subTest(json.dumps(scenario)):
                self.assertIn(done.returncode, (0, 2), done.stderr)
                if done.returncode == 2:
                    for message in done.stderr.split("error: ")[1:]:
                        self.assertRegex(message, r"--> \S+:\d+:\d+   at \w+")
                        self.assertRegex(message, r"\n +\d* *= ")

    def test_the_scenario_that_a_result_repeats_gives_the_result(self):
        for _, result in self.ran()[::3]:
            self.assert_same(result["scenario"], result)

    def test_what_is_left_open_said_as_it_was_taken_changes_nothing(self):
        for scenario, result in self.ran():
            with self.subTest(json.dumps(scenario)):
                said = copy.deepcopy(scenario)
                merged(said["workload"], result["left_open"])
                self.assert_same(said, result)

    def test_a_faster_clock_is_no_slower(self):
        for scenario, result in self.ran()[1::3]:
            faster = copy.deepcopy(scenario)
            faster["workload"]["compute"] = {"clock": 1.1}
            quick = json.loads(self.run_of(faster).stdout)
            # A step that waits for its host throughout gains nothing from faster kernels.
            host = sum(each["share"] for each in result["critical_path"] if each["what"] == "host")
            most = 1.0 if host < 0.5 else 1.01
            self.assertLess(quick["step"]["seconds"], most * result["step"]["seconds"], json.dumps(scenario))

    def test_inside_an_nvlink_domain_the_fabric_is_of_no_account(self):
        def time(link):
            topology = {"node": "gb200-nvl72", "nodes": 4, "fabric": {"kind": "rail", "link": link}}
            rows = program.output("bench", "all_gather", self.file_of({"topology": topology}), "-b", "64M",
                                  "-e", "64M", "--format", "json")
            return json.loads(rows)["rows"][0]["time_us"]

        self.assertEqual(time("eth-100g"), time("roce-400g"))

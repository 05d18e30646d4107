"""Every shipped scenario: its file satisfies the schema, as the hardware's do theirs, and its result adds up."""

import json
import pathlib
import tempfile
import unittest

import program

PICOSECONDS = 10**12


def picoseconds(seconds):
    """Results hold whole picoseconds written in seconds: rounding gives the integer back."""
    return round(seconds * PICOSECONDS)


class Accounting(unittest.TestCase):
    def test_busy_and_idle_of_every_rank_sum_to_the_step_exactly(self):
        for path in program.SCENARIOS:
            with self.subTest(path.name):
                result = program.result(path)
                step = picoseconds(result["step"]["seconds"])
                self.assertGreater(step, 0)
                for rank in result["ranks"] + [result["accelerators"]]:
                    parts = [rank["busy_seconds"], *rank["idle_seconds"].values()]
                    self.assertEqual(sum(map(picoseconds, parts)), step, rank.get("rank", "mean"))
                    self.assertTrue(all(part >= 0 for part in parts), parts)

    def test_rank_classes_hold_every_accelerator_once(self):
        for path in program.SCENARIOS:
            with self.subTest(path.name):
                result = program.result(path)
                self.assertEqual(sum(rank["count"] for rank in result["ranks"]), result["accelerators"]["count"])

    def test_the_mean_over_ranks_is_the_mean_over_accelerators(self):
        for path in program.SCENARIOS:
            with self.subTest(path.name):
                result = program.result(path)
                count = result["accelerators"]["count"]
                busy = sum(rank["count"] * rank["busy_seconds"] for rank in result["ranks"]) / count
                # Each class is rounded to whole picoseconds over the steps, and so is the mean.
                self.assertAlmostEqual(busy, result["accelerators"]["busy_seconds"], delta=2 / PICOSECONDS)

    def test_shares_are_shares_and_steps_are_mean_of_steps(self):
        for path in program.SCENARIOS:
            with self.subTest(path.name):
                result = program.result(path)
                self.assertTrue(result["complete"])
                steps = result["step"]["per_step"]
                self.assertEqual(len(steps), result["scenario"]["run"]["steps"])
                self.assertAlmostEqual(sum(steps) / len(steps), result["step"]["seconds"], delta=1 / PICOSECONDS)
                for link in result["links"]:
                    self.assertTrue(0 <= link["utilization"] <= link["peak_utilization"] + 1e-9, link["id"])
                    self.assertLessEqual(link["peak_utilization"], 1 + 1e-9, link["id"])
                idle = result["accelerators"]["idle_fraction"]
                busy = result["accelerators"]["busy_seconds"] / result["step"]["seconds"]
                self.assertAlmostEqual(idle + busy, 1, places=9)

    def test_the_critical_path_is_as_long_as_the_step(self):
        for path in program.SCENARIOS:
            with self.subTest(path.name):
                result = program.result(path)
                length = sum(part["seconds"] for part in result["critical_path"])
                last = result["step"]["per_step"][-1]  # whose path it is
                self.assertAlmostEqual(length, last, delta=0.02 * last)


class Schemas(unittest.TestCase):
    def setUp(self):
        try:
            import jsonschema
        except ImportError:
            self.skipTest("python3-jsonschema is not installed")
        self.jsonschema = jsonschema

    def test_every_shipped_scenario_satisfies_the_schema(self):
        schema = json.loads(program.output("schema"))
        self.jsonschema.Draft202012Validator.check_schema(schema)
        for path in program.SCENARIOS:
            with self.subTest(path.name):
                self.jsonschema.validate(json.loads(path.read_text()), schema)

    def test_every_hardware_file_satisfies_its_schema(self):
        for path in sorted((program.ROOT / "configs" / "hardware").glob("*.json")):
            with self.subTest(path.name):
                schema = json.loads(program.output("schema", path.stem))
                self.jsonschema.Draft202012Validator.check_schema(schema)
                file = json.loads(path.read_text())
                self.jsonschema.validate(file, schema)
                self.assertEqual(file["$schema"], f"../schema/{path.stem}.schema.json")

    def test_an_accelerator_needs_sources_and_known_keys_for_its_schema_too(self):
        schema = json.loads(program.output("schema", "accelerators"))
        file = json.loads((program.ROOT / "configs" / "hardware" / "accelerators.json").read_text())
        for key, value in (("tdp", "700 W"), ("tdp", ["700 V", "a"]), ("thermal", ["700 W", "a"]), ("name", None)):
            with self.subTest(key), self.assertRaises(self.jsonschema.ValidationError):
                broken = dict(file["accelerators"]["h100-sxm5"], **{key: value})
                self.jsonschema.validate(dict(file, accelerators={"broken": broken}), schema)

    def test_the_schema_refuses_what_the_reader_refuses(self):
        schema = json.loads(program.output("schema"))
        scenario = json.loads(program.SCENARIOS[0].read_text())
        scenario["topology"]["node_count"] = 3
        with self.assertRaises(self.jsonschema.ValidationError):
            self.jsonschema.validate(scenario, schema)

    def test_null_means_left_out_for_the_schema_and_for_the_reader(self):
        schema = json.loads(program.output("schema"))
        scenario = json.loads((program.ROOT / "configs" / "8xH100-ib.json").read_text())
        scenario["network"] = scenario["faults"] = scenario["run"]["seed"] = None  # a section, a list, a count
        scenario["workload"]["plan"]["schedule"] = scenario["workload"]["plan"]["dp"] = None  # a word
        self.jsonschema.validate(scenario, schema)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "nulls.json")
            path.write_text(json.dumps(scenario))
            nulls = json.loads(program.output("run", str(path), "--format", "json", "--quiet"))
        self.assertEqual(nulls["step"], program.result(program.ROOT / "configs" / "8xH100-ib.json")["step"])
        with self.assertRaises(self.jsonschema.ValidationError):
            self.jsonschema.validate(dict(scenario, topology=None), schema)

    def test_the_schema_takes_the_includes_that_the_reader_takes(self):
        schema = json.loads(program.output("schema"))
        base = str(program.SCENARIOS[0].resolve())
        for scenario in ({"file": base, "run": {"steps": 1}}, {"file": base, "faults": []}):
            self.jsonschema.validate(scenario, schema)
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, "included.json")
                path.write_text(json.dumps(scenario))
                self.assertIn('"topsim.result/1"', program.output("run", str(path), "--format", "json", "--quiet"))
        with self.assertRaises(self.jsonschema.ValidationError):
            self.jsonschema.validate({"run": {"steps": 1}}, schema)


if __name__ == "__main__":
    unittest.main()

"""Same input and seed: the same bytes, on the screen and in every file that `--out` writes."""

import json
import os
import pathlib
import unittest

import program


def files_below(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(pathlib.Path(folder).rglob("*"))
            if path.is_file()}


class Determinism(unittest.TestCase):
    def test_two_runs_of_every_shipped_scenario_are_the_same_bytes(self):
        for path in program.SCENARIOS:
            with self.subTest(path.name):
                again = program.output("run", path, "--format", "json", "--quiet")
                self.assertTrue(program.result_text(path) == again)

    def test_files_of_two_runs_are_the_same_bytes(self):
        for path in program.SCENARIOS:
            with self.subTest(path.name), program.temporary_folder() as one, program.temporary_folder() as two:
                for folder in (one, two):
                    program.output("run", path, "--quiet", "--out", folder)
                first, second = files_below(one), files_below(two)
                self.assertEqual(first.keys(), second.keys())
                self.assertIn("result.json", first)
                # run.json holds what was measured about the run itself: wall time, memory.
                self.assertIn("run.json", first)
                for name in first.keys() - {"run.json"}:
                    self.assertEqual(first[name], second[name], name)
                self.assertEqual(first["result.json"].decode(), program.result_text(path))

    def test_where_the_program_is_started_changes_nothing(self):
        path = program.SCENARIOS[0]
        with program.temporary_folder() as elsewhere:
            there = program.output("run", path, "--format", "json", cwd=elsewhere)
        self.assertTrue(there == program.result_text(path))

    def test_the_number_of_threads_changes_nothing(self):
        words = ["compare", "configs/8xH100-ib.json", "configs/8xH100-roce.json", "--format", "json"]
        many = program.output(*words)
        # The thread pool takes as many threads as the process may use processors.
        allowed = os.sched_getaffinity(0)
        try:
            os.sched_setaffinity(0, {min(allowed)})
            one = program.output(*words)
        finally:
            os.sched_setaffinity(0, allowed)
        self.assertTrue(many == one)

    def test_set_is_the_same_as_writing_it_in_the_file(self):
        path = program.ROOT / "configs/8xH100-ib.json"
        text = path.read_text()
        changed = text.replace('"global_batch": 128', '"global_batch": 64')
        self.assertNotEqual(text, changed)
        with program.temporary_folder() as folder:
            copy = pathlib.Path(folder) / path.name
            copy.write_text(changed)
            written = program.output("run", copy, "--format", "json")
        by_option = program.output("run", path, "--set", "workload.plan.global_batch=64", "--format", "json")
        self.assertTrue(written == by_option)
        self.assertFalse(by_option == program.result_text(path))

    def test_a_seed_changes_only_what_is_drawn(self):
        def without_seed(text):
            result = json.loads(text)
            del result["seed"], result["scenario"]["run"]["seed"]
            return result

        # Adaptive routing draws nothing; paths hashed onto the spines of a two-tier tree are drawn.
        path = program.ROOT / "configs/8xH100-ib.json"
        self.assertTrue(without_seed(program.output("run", path, "--seed", 7, "--format", "json")) ==
                        without_seed(program.result_text(path)))
        hashed = [word for change in ("topology.nodes=16", "workload.plan.dp=8", "topology.fabric.kind=fat-tree",
                                      "topology.fabric.routing=ecmp") for word in ("--set", change)]
        one, same, other = (program.output("run", path, "--seed", seed, "--format", "json", *hashed)
                            for seed in (1, 1, 7))
        self.assertEqual(one, same)
        self.assertFalse(without_seed(one) == without_seed(other))


if __name__ == "__main__":
    unittest.main()

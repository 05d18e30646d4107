"""What topsim list prints: every entry, one entry whole, and what it answers to names that it does not know."""

import json
import re
import unittest

import picture
import program


class Lists(unittest.TestCase):
    def test_years_that_are_not_listed_are_explained_with_one_that_works(self):
        text = " ".join(program.topsim("list", "frameworks").stdout.split())
        said = re.search(r"has the one that was in use: (\S+) is (\S+?)\.", text)
        self.assertIn(said[2], text[:said.start()])
        self.assertNotIn(said[1], text[:said.start()])
        steps = [json.loads(program.topsim("run", "configs/1xH100.json", "--set", f"workload.framework={name}", "--format", "json").stdout)["step"]
                 for name in said.groups()]
        self.assertEqual(*steps)

    def test_a_release_is_shown_with_the_defaults_that_a_run_takes_from_it(self):
        for release, tp in (("megatron@2025", 2), ("megatron@2021", 2), ("fsdp@2024", 2), ("ddp@2024", 1),
                            ("deepspeed@2024-transformers", 1)):
            with self.subTest(release):
                plan = json.dumps({"tp": tp, "dp": 4 // tp, "micro_batch": 1})
                rows = dict(line.split(None, 1) for line in program.topsim("list", "frameworks", release).stdout.splitlines())
                run = json.loads(program.topsim(
                    "run", "configs/4xA800.json", "--set", f"workload.framework={release}", "--set",
                    "workload.model=gpt2", "--set", f"workload.plan={plan}", "--format", "json").stdout)
                for setting, taken in run["left_open"]["plan"].items():
                    if setting in ("ep", "bucket_size", "global_batch"):  # not the release's, or the model's size counts
                        continue
                    said = json.dumps(taken).strip('"')
                    self.assertEqual(rows[f"plan.{setting}"].strip(), said, setting)
                self.assertEqual(rows["model.attention.kernel"].strip(),
                                 run["left_open"]["model"]["attention"]["kernel"])
        names = [line.split()[0] for line in program.topsim("list", "frameworks", "megatron").stdout.splitlines()[1:]]
        self.assertIn("megatron@2021", names)
        self.assertTrue(all(name.startswith("megatron@") for name in names))
        refused = program.topsim("list", "frameworks", "nemo")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("megatron@2024", refused.stderr)

    def test_a_listed_model_is_shown_as_its_file_says_it(self):
        known = json.loads((program.ROOT / "configs/models/llama3-70b.json").read_text())
        rows = dict(line.split(None, 1) for line in program.topsim("list", "models", "llama3-70b").stdout.splitlines()[1:])
        self.assertEqual(rows["hidden"], str(known["hidden"]))
        self.assertEqual(rows["source"], known["source"])
        self.assertEqual(rows["parameters"].strip(), "70.6 B")  # 80 layers of 0.856 B, 128,256 words of 8,192 twice
        refused = program.topsim("list", "models", "lama3-70b")
        self.assertEqual(refused.returncode, 2)
        self.assertIn('did you mean "llama3-70b"?', refused.stderr)

    def test_lists_are_as_wide_as_the_window(self):
        for words in (["topo", "list"], ["list", "models"], ["list", "hardware"], ["list", "fabrics"]):
            with self.subTest(words):
                text = picture.on_terminal(*words, COLUMNS="80")
                broken = [line for line in text.splitlines() if len(line) > 80 and " " in line.strip()]
                self.assertEqual(broken, [])


if __name__ == "__main__":
    unittest.main()

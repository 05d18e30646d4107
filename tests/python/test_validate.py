"""topsim.validate: the command's own answer as an object."""

import pathlib
import pickle
import subprocess
import tempfile
import unittest

import topsim

PROGRAM = pathlib.Path("build/release/topsim")
FAMILY = "korthikanti-2022"


class Validate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.report = topsim.validate(FAMILY)

    def test_gives_the_bytes_that_the_command_prints(self):
        if not PROGRAM.exists():
            self.skipTest("the topsim program is not built")
        done = subprocess.run([PROGRAM, "validate", FAMILY, "--format", "json", "--quiet"], stdout=subprocess.PIPE, text=True)
        self.assertEqual(self.report.to_json(), done.stdout)
        self.assertEqual(self.report.passed, done.returncode == 0)

    def test_its_parts_are_those_of_the_json(self):
        whole = self.report.to_dict()
        self.assertEqual(whole["format"], "topsim.validate/1")
        self.assertEqual(self.report.families, whole["families"])
        self.assertEqual(self.report.totals, whole["totals"])
        self.assertEqual(len(self.report.cases), sum(family["n"] for family in whole["families"].values()))
        self.assertEqual({case["figure"] for case in whole["cases"]}, {"step", "ratio"})
        for row, case in zip(self.report.cases, whole["cases"]):
            self.assertEqual({key: row[key] for key in case}, case)
            self.assertAlmostEqual(row["error"], row["predicted"] / row["published"] - 1, places=5)

    def test_a_file_of_ones_own_is_read_where_it_lies(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "ours.json"
            path.write_text("""{"base": {"topology": {"node": "dgx-h100"}, "workload": {"model": "llama3-8b", "framework": "megatron",
                "plan": {"tp": 8, "global_batch": 8}}}, "columns": ["name", "published"], "rows": [["ours", "1 s"]]}""")
            self.assertEqual([case["name"] for case in topsim.validate(path).cases], ["ours"])
            self.assertEqual(len(topsim.validate([str(path), path]).cases), 1)
            with self.assertRaisesRegex(topsim.ConfigError, "no such file: .*theirs.json"):
                topsim.validate(pathlib.Path(folder) / "theirs.json")

    def test_a_case_is_found_by_its_name_and_jobs_change_nothing(self):
        name = self.report.cases[0]["name"]
        one = topsim.validate([name], jobs=1)
        self.assertEqual(one.cases[0], self.report.cases[0])

    def test_pickles_and_shows_itself(self):
        self.assertEqual(pickle.loads(pickle.dumps(self.report)), self.report)
        self.assertIn(FAMILY, str(self.report))
        self.assertIn(FAMILY, self.report._repr_html_())

    def test_mistakes(self):
        with self.assertRaisesRegex(topsim.ConfigError, "korthikanti"):
            topsim.validate("korthikanti-2023")
        with self.assertRaises(ValueError):
            topsim.validate(FAMILY, jobs=-1)


if __name__ == "__main__":
    unittest.main()

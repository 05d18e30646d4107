"""What the tests of pages share: runs of several sizes, each made once, and one Chromium for a class of tests."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path[:0] = [os.path.dirname(__file__), os.path.dirname(os.path.dirname(__file__))]
from browser import CHROMIUM, Browser

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOPSIM = shutil.which("topsim", path=str(ROOT / "build/release")) or shutil.which("topsim")

# accelerators: (nodes, model, changes of the plan)
SIZES = {
    8: (1, "llama3-8b", {"tp": 8, "pp": 1, "dp": 1, "global_batch": 4}),
    64: (8, "llama3-70b", {}),
    1024: (128, "llama3-70b", {"pp": 4, "dp": 32, "global_batch": 512}),
    16384: (2048, "llama3-405b", {"pp": 16, "dp": 128, "global_batch": 2048, "stage_layers": [7] + [8] * 14 + [7]}),
}


def scenario_of(accelerators):
    nodes, model, plan = SIZES[accelerators]
    scenario = json.loads((ROOT / "configs/8xH100-ib.json").read_text())
    scenario.pop("$schema")
    scenario["topology"]["nodes"] = nodes
    if nodes > 64:
        scenario["topology"]["fabric"].update(kind="fat-tree", tiers=3)
    scenario["workload"]["model"] = model
    scenario["workload"]["plan"].update(plan)
    return scenario


def topsim(*arguments, check=True):
    return subprocess.run([TOPSIM, *map(str, arguments)], check=check, capture_output=True, text=True, timeout=300)


@unittest.skipUnless(TOPSIM, "topsim is not built")
class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not CHROMIUM:
            raise unittest.SkipTest("chromium is not installed")
        cls.folder = tempfile.TemporaryDirectory()
        cls.made = {}
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def path(self, name):
        return pathlib.Path(self.folder.name) / name

    def run_of(self, accelerators):
        """Simulates once; returns (page file, result)."""
        if accelerators not in self.made:
            out = self.path(str(accelerators))
            out.mkdir()
            (out / "case.json").write_text(json.dumps(scenario_of(accelerators)))
            topsim("run", out / "case.json", "--out", out, "--quiet")
            if not (out / "report.html").exists():
                raise unittest.SkipTest("topsim was built without the chart library (npm)")
            self.made[accelerators] = (out / "report.html", json.loads((out / "result.json").read_text()))
        return self.made[accelerators]

    def page_of_interrupted(self, *arguments, ready):
        """The page of a command that gets Ctrl-C as soon as ready(what it wrote to stderr) holds."""
        page, said = self.path(f"page{len(self.made)}.html"), self.path(f"said{len(self.made)}.txt")
        self.made[page] = page
        with open(said, "w") as stderr:
            child = subprocess.Popen([TOPSIM, *map(str, arguments), "--html", page], stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=stderr)
        while child.poll() is None and not ready(said.read_text()):
            time.sleep(0.1)
        if "no report page" in said.read_text():
            self.skipTest("topsim was built without the chart library (npm)")
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.wait(timeout=300), 130, said.read_text())
        return page

    def page_of(self, *arguments):
        """Runs a command with --html; returns (the page's file, what it printed)."""
        page = self.path(f"page{len(self.made)}.html")
        self.made[page] = page
        done = topsim(*arguments, "--html", page, check=False)
        if "no report page" in done.stderr:
            self.skipTest("topsim was built without the chart library (npm)")
        self.assertTrue(page.exists(), done.stderr)
        return page, done.stdout

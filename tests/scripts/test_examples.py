"""Every command line that README.md, the READMEs of the folders and `--help` show runs, in a folder like a fresh checkout."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import unittest

import program

EXAMPLE_LIMIT_SECONDS = 1500  # calibrate takes ten minutes of CPU time, more beside other work
# Files that examples take for granted, and how a user gets them.
GIVEN = {
    "topo.xml": ["topo", "export", "configs/8xH100-ib.json", "--as", "nccl", "-o", "topo.xml"],
    "results/result.json": ["run", "configs/8xH100-ib.json", "--out", "results", "--quiet"],
    "old/result.json": ["run", "configs/8xH100-ib.json", "--out", "old"],
    "new/result.json": ["run", "configs/8xH100-ib.json", "--out", "new"],
}


def command_names():
    listed = program.output("--help").split("commands:\n")[1].split("\n\n")[0]
    return [line.split()[0] for line in listed.splitlines()]


def examples_of_help(name):
    return [line.strip() for line in program.output(name, "--help").split("Examples:\n")[1].splitlines()
            if line.strip()]


def examples_of_page(path):
    """Lines of fenced blocks that start with topsim, without comments; `sh install.sh && topsim ...` counts too."""
    fenced = re.findall(r"^```[a-z]*\n(.*?)^```", path.read_text(), re.M | re.S)
    lines = [line.strip().removeprefix("$ ").removeprefix("sh install.sh && ")
             for block in fenced for line in block.splitlines()]
    return [re.sub(r"\s+#.*", "", line) for line in lines if line.startswith("topsim ")]


def pages():
    """README.md and the READMEs of the folders."""
    below = sorted(program.ROOT.glob("*/**/README.md"))
    return [program.ROOT / "README.md", *(page for page in below if page.relative_to(program.ROOT).parts[0] != "build"
                                          and "node_modules" not in page.parts)]


def prose_of(page):
    return re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(), flags=re.M | re.S)


def sections(page):
    """Anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S), re.M)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings]


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = program.temporary_folder()
        root = pathlib.Path(cls.folder.name)
        shutil.copytree(program.ROOT / "configs", root / "configs")
        (root / "home").mkdir()
        cls.environment = program.environment(HOME=str(root / "home"),
                                              PATH=f"{program.BUILD}:{os.environ['PATH']}")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        self.runs = 0

    def check(self, example):
        for name, words in GIVEN.items():
            if name in shlex.split(example) and not (pathlib.Path(self.folder.name) / name).exists():
                program.output(*words, cwd=self.folder.name)
        done = subprocess.run(["bash", "-o", "pipefail", "-c", example], cwd=self.folder.name, env=self.environment, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=EXAMPLE_LIMIT_SECONDS, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.runs += 1

    def test_examples_of_help(self):
        for name in command_names():
            for example in examples_of_help(name):
                with self.subTest(example):
                    self.check(example)
        self.assertGreaterEqual(self.runs, len(command_names()))

    def test_examples_of_pages(self):
        for page in pages():
            for example in examples_of_page(page):
                with self.subTest(f"{page.relative_to(program.ROOT)}: {example}"):
                    self.check(example)
        self.assertGreater(self.runs, 0)

    def test_the_readmes_python_runs(self):
        if not list((program.BUILD / "python/topsim").glob("_core*.so")):
            self.skipTest("the Python module is not built")
        blocks = re.findall(r"^```python\n(.*?)^```", (program.ROOT / "README.md").read_text(), re.M | re.S)
        environment = dict(self.environment, PYTHONPATH=str(program.BUILD / "python"))
        for block in blocks:
            done = subprocess.run([sys.executable, "-c", block], cwd=self.folder.name, env=environment, text=True,
                                  capture_output=True, timeout=program.LIMIT_SECONDS, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(blocks)

    def test_the_readme_shows_every_command(self):
        shown = {example.split()[1] for example in examples_of_page(program.ROOT / "README.md")}
        self.assertEqual(sorted(set(command_names()) - shown), [])

    def test_links_of_pages_lead_somewhere(self):
        for page in pages():
            for target, section in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", prose_of(page)):
                there = page.parent / target if target else page
                with self.subTest(f"{page.relative_to(program.ROOT)}: {target}#{section}"):
                    self.assertTrue(there.exists())
                    if section:
                        self.assertIn(section, sections(there))


if __name__ == "__main__":
    unittest.main()

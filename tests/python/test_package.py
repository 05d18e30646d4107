"""The package itself: documented, typed, its examples run, and pip can install it without a network."""

import ast
import inspect
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import topsim

ROOT = pathlib.Path(__file__).resolve().parents[2]


def public_functions():
    """(name, function) of everything that topsim exports and of the public methods."""
    for name in topsim.__all__:
        thing = getattr(topsim, name)
        yield name, thing
        if inspect.isclass(thing):
            for attribute, value in vars(thing).items():
                if attribute.startswith("_"):
                    continue
                value = getattr(value, "fget", None) or getattr(value, "__func__", value)
                if inspect.isfunction(value):
                    yield f"{name}.{attribute}", value


def _names(scope):
    """What a stub's module or class declares."""
    return {getattr(each, "name", None) or each.target.id for each in scope.body
            if isinstance(each, (ast.ClassDef, ast.FunctionDef, ast.AnnAssign))}


class Package(unittest.TestCase):
    def test_everything_public_says_what_it_returns(self):
        frames = ("to_pandas",)  # pandas is optional, so its type has no name here
        missing = [name for name, function in public_functions() if inspect.isfunction(function)
                   and "return" not in function.__annotations__ and not name.endswith(frames)]
        self.assertEqual(missing, [])

    def test_what_the_name_does_not_say_is_documented(self):
        plain = {"Result.name", "Result.tokens_per_second", "Result.busy_seconds", "Result.seed", "Scenario.description",
                 "Topology.accelerators", "Topology.to_dict"}
        missing = {name for name, function in public_functions() if not function.__doc__}
        self.assertLessEqual(missing, plain)

    def test_types_travel_with_it(self):
        folder = pathlib.Path(topsim.__file__).parent
        self.assertTrue((folder / "py.typed").exists())
        # The stub names what the extension has, and nothing else; so do its classes.
        stub = ast.parse((folder / "_core.pyi").read_text())
        self.assertEqual(_names(stub), {name for name in dir(topsim._core) if not name.startswith("__")})
        for each in stub.body:
            if isinstance(each, ast.ClassDef):
                there = {name for name in vars(getattr(topsim._core, each.name)) if not name.startswith("_")}
                self.assertEqual(_names(each) - {"__init__"}, there, each.name)

    def test_names_are_those_that_scenarios_may_have(self):
        self.assertIn("8xH100-ib", topsim.names("scenarios"))
        self.assertIn("hgx-h100", topsim.names("hardware"))
        self.assertIn("llama3-70b", topsim.names("models"))
        self.assertIn("megatron@2025", topsim.names("frameworks"))
        self.assertIn("ib-ndr", topsim.names("fabrics") + topsim.names("hardware"))
        self.assertLessEqual({"analytic", "flow", "packet"}, {*topsim.names("networks")})
        bench = topsim.bench(topsim.names("collectives")[0], "8xH100-ib", first="1M", last="1M")
        self.assertEqual(bench["size"], [1 << 20])
        with self.assertRaisesRegex(topsim.ConfigError, "scenarios, hardware"):
            topsim.names("hardwares")

    def test_versions_agree(self):
        project = (ROOT / "CMakeLists.txt").read_text()
        version = re.search(r"project\(topsim VERSION ([\d.]+)", project).group(1)
        self.assertEqual(topsim.__version__, version)
        self.assertIn(f'version = "{version}"', (ROOT / "pyproject.toml").read_text())

    def test_imports_nothing_that_is_optional(self):
        optional = ["numpy", "pandas", "matplotlib", "networkx", "tqdm"]
        script = f"import sys, topsim; topsim.run('8xH100-ib'); print([m for m in {optional} if m in sys.modules])"
        self.assertEqual(subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.PIPE,
                                        text=True).stdout, "[]\n")

    def test_the_examples_of_its_readme_run(self):
        try:
            import matplotlib
            import pandas  # noqa: F401
        except ImportError as error:
            self.skipTest(str(error))
        matplotlib.use("Agg")
        (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "python/README.md").read_text(), re.S)
        here = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                exec(compile(example, "python/README.md", "exec"), {})
                self.assertTrue(os.path.getsize("dgx.svg"))
            finally:
                os.chdir(here)

    def check_installed_by_pip(self, *options):
        """In an environment of its own, without a network, the package and the command are there and agree."""
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            subprocess.run([f"{folder}/bin/pip", "install", "--quiet", "--no-index", str(ROOT), *options], check=True)
            environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
            script = "import topsim; print(topsim.run('8xH100-ib').to_json(), end='')"
            printed = subprocess.run([f"{folder}/bin/python", "-c", script], cwd=folder, env=environment, check=True,
                                     stdout=subprocess.PIPE, text=True).stdout
            command = subprocess.run([f"{folder}/bin/topsim", "run", "8xH100-ib", "--format", "json", "--quiet"],
                                     cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
            self.assertEqual(printed, command)
            where = subprocess.run([f"{folder}/bin/python", "-c", "import topsim; print(topsim.__file__)"], cwd=folder,
                                   env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
            self.assertTrue(where.startswith(os.path.realpath(folder)) or where.startswith(folder), where)

    def test_pip_installs_what_is_built_without_a_network(self):
        self.check_installed_by_pip("--config-settings", "build=build/release")

    @unittest.skipUnless(os.environ.get("TOPSIM_FULL"), "builds everything again: with --full")
    def test_pip_builds_and_installs_it_without_a_network(self):
        self.check_installed_by_pip()


if __name__ == "__main__":
    unittest.main()

"""Every notebook runs from top to bottom, is stored without outputs, and ends in seconds."""

import json
import os
import pathlib
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "python" / "notebooks").glob("*.ipynb"))
LIMIT_SECONDS = 300  # of a machine with other work; alone each takes less than 20

try:
    import nbclient
    import nbformat
    import ipykernel  # noqa: F401
    import matplotlib  # noqa: F401
except ImportError as missing:
    nbclient = None
    WHY = f"{missing.name} is not installed (python3-nbclient, python3-ipykernel, python3-matplotlib)"


class Notebooks(unittest.TestCase):
    def test_there_is_one_for_each_question(self):
        self.assertEqual([each.stem for each in NOTEBOOKS], [
            "how-does-it-scale-to-16k", "import-my-cluster", "infiniband-or-roce", "validate-against-published-numbers",
            "where-does-my-step-time-go"])

    def test_they_are_stored_without_outputs(self):
        for file in NOTEBOOKS:
            for cell in json.loads(file.read_text())["cells"]:
                if cell["cell_type"] == "code":
                    self.assertEqual((cell["outputs"], cell["execution_count"]), ([], None), file.name)


def runs(file):
    def test(self):
        if nbclient is None:
            self.skipTest(WHY)
        notebook = nbformat.read(file, as_version=4)
        build = ROOT / "build" / "release"
        # The kernel is this very python, with the package that these tests were given and the program beside it.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each),
                       "PATH": f"{build}{os.pathsep}{os.environ['PATH']}", "MPLBACKEND": "agg"}
        client = nbclient.NotebookClient(notebook, timeout=LIMIT_SECONDS, kernel_name="python3",
                                         resources={"metadata": {"path": str(file.parent)}})
        client.create_kernel_manager()
        client.km.kernel_spec.argv[0] = sys.executable
        begin = time.monotonic()
        client.execute(env=environment)
        self.assertLess(time.monotonic() - begin, LIMIT_SECONDS)
        said = "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []))
        self.assertNotEqual(said, "")
        self.assertNotIn("error:", said)
    return test


for each in NOTEBOOKS:
    setattr(Notebooks, f"test_{each.stem.replace('-', '_')}_runs", runs(each))

if __name__ == "__main__":
    unittest.main()

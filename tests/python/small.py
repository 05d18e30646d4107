"""A scenario of two boxes that simulates in milliseconds, and what tests of pages share."""

import contextlib
import copy
import pathlib
import sys
import tempfile

import topsim

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from page_data import page_data

_TWO_BOXES = {
    "description": "two HGX H100 boxes",
    "topology": {"node": "hgx-h100", "nodes": 2,
                 "fabric": {"kind": "rail", "link": "ib-ndr", "switch": "qm9700"}},
    "workload": {"model": "megatron-1.7b", "sequence": 2048, "precision": "bf16", "framework": "megatron",
                 "plan": {"tp": 8, "dp": 2, "micro_batch": 1, "global_batch": 8}},
    "run": {"steps": 1, "warmup": 1, "seed": 1},
}


def two_boxes():
    return copy.deepcopy(_TWO_BOXES)


@contextlib.contextmanager
def written_page(test, write):
    """The text and the result of the page that `write(file)` makes; a build without the chart library must say what is missing, and
    then the test ends there."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "page.html")
        try:
            write(file)
        except topsim.ConfigError as error:
            test.assertIn("npm", str(error))
            test.assertFalse(file.exists())
            test.skipTest("this build has no page")
        page = file.read_text(encoding="utf-8")
        yield page, page_data(page, "result")

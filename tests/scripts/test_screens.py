"""Screens word for word: what the program prints is compared with tests/golden/screens and with the pictures of the pages.

Figures may change with the models, the form may not: digits are compared as digits, not by value. Renew the files with
TOPSIM_UPDATE=1 python3 tests/run.py screens, look at the difference, and commit it with the change that caused it.
"""

import os
import re
import unittest

import picture
import program

GOLDEN = program.ROOT / "tests/golden/screens"
UPDATE = os.environ.get("TOPSIM_UPDATE") == "1"
SCREENS = {
    "teaching": [],
    "run": ["run", "configs/8xH100-ib.json"],
    "run-one-accelerator": ["run", "configs/1xH100.json"],
    "topo-show": ["topo", "show", "configs/8xH100-ib.json"],
    "topo-check": ["topo", "check", "configs/8xH100-ib.json"],
    "bench": ["bench", "all_reduce", "configs/8xH100-ib.json", "-b", "1M", "-e", "1G", "-f", "8"],
    "list-networks": ["list", "networks"],
}


def form(text):
    """Text with every figure as one #, units without their prefix, no bars, and runs of spaces as one."""
    text = re.sub(r" *[\u2580-\u258f]+", "", text)
    text = re.sub(r"\d[\d. ]*\d|\d", "#", text)
    text = re.sub(r"# (?:[kMGTPnum]|)(B|s|B/s|W)\b", r"# \1", text)
    return re.sub(r" +", " ", text)


class Screens(unittest.TestCase):
    def test_screens_keep_their_form(self):
        for name, words in SCREENS.items():
            path = GOLDEN / f"{name}.txt"
            text = program.output(*words, env=program.environment(COLUMNS="80"))
            text = re.sub(r",\s+[\d.]+ m?s of wall time", "", text)
            if UPDATE:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
            with self.subTest(name):
                self.assertEqual(form(text), form(path.read_text()))

    def test_pictures_show_what_the_program_prints(self):
        for path, words in picture.PICTURES.items():
            drawn = picture.svg(picture.screen(words))
            if UPDATE:
                path.write_text(drawn)
            with self.subTest(path.name):
                now, then = (form("\n".join(picture.lines_of(text))) for text in (drawn, path.read_text()))
                self.assertEqual(now, then)

    def test_drawings_of_fabrics_are_what_the_program_draws(self):
        for name in picture.DRAWINGS:
            path, drawn = program.ROOT / f"configs/pictures/{name}.svg", picture.drawing(name)
            if UPDATE:
                path.write_text(drawn)
            with self.subTest(name):
                self.assertEqual(drawn, path.read_text())


if __name__ == "__main__":
    unittest.main()

"""Renews the picture of the page in README.md: python3 tests/web/picture.py. Look at it before it is committed."""

import os
import pathlib
import sys
import tempfile

sys.path.insert(0, os.path.dirname(__file__))
from browser import Browser
from pages import ROOT, topsim

PICTURE = ROOT / "configs/pictures/page.webp"

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        page = pathlib.Path(folder) / "page.html"
        topsim("run", ROOT / "configs/8xH100-ib.json", "--html", page, "--quiet")
        browser.open(page, width=1180, height=1420)
        browser.picture(PICTURE)

"""Draws what the program writes to a terminal as SVG: python3 tests/scripts/picture.py renews the picture of README.md.

Text only: the picture is the program's own output, and test_screens.py compares the two.
"""

import html
import os
import pathlib
import pty
import re
import subprocess

import program

DRAWINGS = ["superpod-h100", "llama3-roce", "alibaba-hpn7", "megascale", "spectrum-x-100k", "gaudi2", "tpu-v4", "tpu-v5p",
            "rail-only", "dragonfly", "gb200-nvl72"]  # fabrics of configs/README.md
PICTURES = {program.ROOT / "configs/pictures/run.svg": ["run", "configs/8xH100-ib.json"]}
COLUMNS = 80
CHARACTER, LINE, MARGIN = 7.8, 17, 14
BOLD, PLAIN = "\x1b[1m", "\x1b[0m"


def on_terminal(*words, **environment):
    """What the program writes when standard output and standard error are a terminal."""
    main, other = pty.openpty()
    child = subprocess.Popen([program.TOPSIM, *words], cwd=program.ROOT, stdin=subprocess.DEVNULL, stdout=other,
                             stderr=other, env=program.environment(**{"TERM": "xterm", **environment}))
    os.close(other)
    text = b""
    try:
        while block := os.read(main, 65536):
            text += block
    except OSError:  # the terminal is gone: the program has ended
        pass
    os.close(main)
    child.wait(timeout=program.LIMIT_SECONDS)
    return text.decode().replace("\r\n", "\n")


def screen(words):
    """The command and what it prints on a terminal of 80 columns, without what depends on the machine."""
    text = on_terminal(*words, "--quiet", COLUMNS=str(COLUMNS))
    text = re.sub(r",\s+[\d.]+ m?s of wall time", "", text)
    return ["$ topsim " + " ".join(words), *text.splitlines()]


def svg(lines):
    width, height = COLUMNS * CHARACTER + 2 * MARGIN, len(lines) * LINE + 2 * MARGIN
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
             f'viewBox="0 0 {width:.0f} {height}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" '
             f'font-size="13" fill="#d8dee9">',
             '<rect width="100%" height="100%" rx="8" fill="#1c2128"/>']
    for row, line in enumerate(lines):
        text = line.replace(BOLD, "").replace(PLAIN, "")
        if not text.strip():
            continue
        weight = ' font-weight="bold" fill="#ffffff"' if BOLD in line or row == 0 else ""
        parts.append(f'<text x="{MARGIN}" y="{MARGIN + 12 + row * LINE}" xml:space="preserve"{weight} '
                     f'textLength="{len(text) * CHARACTER:.1f}">{html.escape(text)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def drawing(name):
    """What topsim topo draw makes of a shipped scenario."""
    return program.output("topo", "draw", f"configs/{name}.json")


def lines_of(picture):
    """The text of a picture, line by line."""
    return [html.unescape(text) for text in re.findall(r"<text [^>]*>(.*?)</text>", picture)]


if __name__ == "__main__":
    for path, command in PICTURES.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(svg(screen(command)))
        print(pathlib.Path(path).relative_to(program.ROOT))
    for name in DRAWINGS:
        path = program.ROOT / f"configs/pictures/{name}.svg"
        path.write_text(drawing(name))
        print(path.relative_to(program.ROOT))

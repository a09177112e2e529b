# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Draw a recorded transcript as a picture: ``python -m tests.tools.picture FILE.txt ...``.

The picture (SVG) is written beside the transcript. Lines of a transcript that begin with ``#`` are
comments: they say where it is from, and are not drawn. ``--layers`` draws the layers of packages,
docs/pictures/layers.svg, from the contract in pyproject.toml.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from pathlib import Path
from xml.sax.saxutils import escape

from tests.tools.environments import REPOSITORY

# In pixels: a column and a line of text, and the border.
COLUMN, LINE, BORDER = 7.8, 18, 16
# What stands between two or more spaces.
_CELL = re.compile(r"\S+(?: \S+)*")
HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" \
height="{height}" role="img">
<!-- Drawn by tests/tools/picture.py. -->
<rect width="100%" height="100%" rx="8" fill="#0d1117"/>
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="13" \
style="white-space: pre" xml:space="preserve">
"""


def draw(transcript: str) -> str:
    """Return a transcript as SVG, a text element for each cell of a line."""
    lines = [line.rstrip() for line in transcript.splitlines() if not line.startswith("#")]
    columns = max(len(line) for line in lines)
    width = round(columns * COLUMN) + 2 * BORDER
    height = len(lines) * LINE + 2 * BORDER
    drawn = [HEAD.format(width=width, height=height)]
    for number, line in enumerate(lines):
        if line:
            y = BORDER + LINE * number + 13
            # Each cell has its place, so that columns are aligned in any font.
            for cell in _CELL.finditer(line):
                x = BORDER + cell.start() * COLUMN
                size = f'textLength="{len(cell[0]) * COLUMN:.1f}" lengthAdjust="spacing"'
                place = f'x="{x:.1f}" y="{y}" fill="{_colour(line)}"'
                drawn.append(f"<text {place} {size}>{escape(cell[0])}</text>\n")
    return "".join([*drawn, "</g>\n</svg>\n"])


def _colour(line: str) -> str:
    if line.startswith("$ "):
        return "#7ee787"
    if set(line) <= {"-", " "}:
        return "#484f58"
    if "refused" in line or "failed" in line:
        return "#ffa198"
    return "#e6edf3"


def draw_layers(settings: str) -> str:
    """Return the layers of module_utils in pyproject.toml as SVG: a row of boxes for each."""
    contracts = tomllib.loads(settings)["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one["type"] == "layers")
    rows = [[name.strip() for name in layer.split("|")] for layer in layers]
    width, high = 760, 34
    drawn = [HEAD.format(width=width, height=len(rows) * (high + 8) + 2 * BORDER)]
    for number, row in enumerate(rows):
        y = BORDER + number * (high + 8)
        wide = (width - 2 * BORDER - 8 * (len(row) - 1)) / len(row)
        for at, name in enumerate(row):
            x = BORDER + at * (wide + 8)
            size = f'width="{wide:.1f}" height="{high}"'
            drawn.append(f'<rect x="{x:.1f}" y="{y}" {size} rx="4" fill="#1f6feb"/>\n')
            place = f'x="{x + wide / 2:.1f}" y="{y + 22}" fill="#ffffff" text-anchor="middle"'
            drawn.append(f"<text {place}>{escape(name)}</text>\n")
    return "".join([*drawn, "</g>\n</svg>\n"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("transcripts", type=Path, nargs="*")
    parser.add_argument("--layers", action="store_true", help="draw the layers of packages")
    arguments = parser.parse_args()
    if arguments.layers:
        settings = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
        target = REPOSITORY / "docs" / "pictures" / "layers.svg"
        target.write_text(draw_layers(settings), encoding="utf-8")
    for transcript in arguments.transcripts:
        text = draw(transcript.read_text(encoding="utf-8"))
        transcript.with_suffix(".svg").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

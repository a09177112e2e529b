# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Draw a recorded transcript as a picture: ``python -m tests.tools.picture FILE.txt ...``.

The picture (SVG) is written beside the transcript. Lines of a transcript that begin with ``#`` are
comments: they say where it is from, and are not drawn. ``--design`` draws the pictures of
docs/design.md: the layers of packages, from the contract in pyproject.toml, and its diagram, which
the site shows as a picture because what draws mermaid comes from the network.
"""

from __future__ import annotations

import argparse
import itertools
import re
import textwrap
import tomllib
from pathlib import Path
from xml.sax.saxutils import escape

from tests.tools.environments import REPOSITORY

# In pixels: a column and a line of text, and the border.
COLUMN, LINE, BORDER = 7.8, 18, 16
# What stands between two or more spaces.
_CELL = re.compile(r"\S+(?: \S+)*")
# A diagram of a page: what it shows, the file of its picture, its edges.
DIAGRAM = re.compile(r"```mermaid\n%% ([^:\n]+): (\S+\.svg)\n(.*?)```\n", re.DOTALL)
# A box by its id, with its text where it is first named.
_BOX = re.compile(r"(\w+)(?:\[\(?([^])]+)\)?\])?")
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


def draw_flow(edges: str) -> str:
    """Return a mermaid flowchart of single edges as SVG: each box below those that lead to it."""
    texts: dict[str, str] = {}
    arrows = []
    for line in edges.splitlines():
        if "-->" in line:
            ends = [_BOX.findall(end) for end in line.split("-->")]
            for name, text in itertools.chain(*ends):
                texts.setdefault(name, text or name)
            arrows += [(above[0], below[0]) for above, below in itertools.product(*ends)]
    width, wide, high, step = 760, 172, 3 * LINE, 3 * LINE + 30
    rows, paths = _rows(list(texts), arrows)
    drawn = [HEAD.format(width=width, height=(len(rows) - 1) * step + high + 2 * BORDER)]
    places = {
        name: (round((at + 0.5) * width / len(row)), BORDER + number * step)
        for number, row in enumerate(rows)
        for at, name in enumerate(row)
    }
    for path in paths:
        points = [f"{x},{y} {x},{y + high}" for x, y in map(places.__getitem__, path)]
        points[0], points[-1] = points[0].split()[1], points[-1].split()[0]
        drawn.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="#8b949e"/>\n')
    for name, text in texts.items():
        x, y = places[name]
        size = f'width="{wide}" height="{high}"'
        drawn.append(f'<rect x="{x - wide // 2}" y="{y}" {size} rx="4" fill="#1f6feb"/>\n')
        lines = textwrap.wrap(text, int(wide / COLUMN) - 1)
        for at, line in enumerate(lines):
            baseline = y + high // 2 + 5 + (2 * at - len(lines) + 1) * LINE // 2
            place = f'x="{x}" y="{baseline}" fill="#ffffff" text-anchor="middle"'
            drawn.append(f"<text {place}>{escape(line)}</text>\n")
    return "".join([*drawn, "</g>\n</svg>\n"])


def _rows(
    names: list[str], arrows: list[tuple[str, str]]
) -> tuple[list[list[str]], list[tuple[str, ...]]]:
    """Return the rows of a diagram, and the path of each arrow: a place in each row it passes."""
    depth = dict.fromkeys(names, 0)
    for _name in names:
        for above, below in arrows:
            depth[below] = max(depth[below], depth[above] + 1)
    rows: list[list[str]] = [[] for _depth in range(max(depth.values()) + 1)]
    for name in names:
        rows[depth[name]].append(name)
    paths = []
    for above, below in arrows:
        passed = range(depth[above] + 1, depth[below])
        paths.append((above, *(f"{above} {below} {number}" for number in passed), below))
        for number, place in zip(passed, paths[-1][1:], strict=False):
            rows[number].append(place)
    for before, row in itertools.pairwise(rows):
        at = {name: index / len(before) for index, name in enumerate(before)}
        left = {
            name: [at[a] for path in paths for a, b in itertools.pairwise(path) if b == name]
            for name in row
        }
        # mypy infers no type of a lambda with a default.
        row.sort(key=lambda name, left=left: sum(left[name]) / len(left[name]))  # type: ignore[misc]
    return rows, paths


def design() -> dict[Path, str]:
    """Return the pictures of docs/design.md by their files."""
    docs = REPOSITORY / "docs"
    settings = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    diagrams = DIAGRAM.findall((docs / "design.md").read_text(encoding="utf-8"))
    drawn = {docs / file: draw_flow(edges) for _title, file, edges in diagrams}
    return {docs / "pictures" / "layers.svg": draw_layers(settings), **drawn}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("transcripts", type=Path, nargs="*")
    parser.add_argument("--design", action="store_true", help="draw the pictures of design.md")
    arguments = parser.parse_args()
    if arguments.design:
        for target, picture in design().items():
            target.write_text(picture, encoding="utf-8")
    for transcript in arguments.transcripts:
        text = draw(transcript.read_text(encoding="utf-8"))
        transcript.with_suffix(".svg").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

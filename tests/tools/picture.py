# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Draw a recorded transcript as a picture: ``python -m tests.tools.picture FILE.txt ...``.

The picture (SVG) is written beside the transcript. Lines of a transcript that begin with ``#`` are
comments: they say where it is from, and are not drawn.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from xml.sax.saxutils import escape

# In pixels: a column and a line of text, and the border.
COLUMN, LINE, BORDER = 7.8, 18, 16
HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" \
height="{height}" role="img">
<!-- Drawn by tests/tools/picture.py. -->
<rect width="100%" height="100%" rx="8" fill="#0d1117"/>
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="13" \
style="white-space: pre" xml:space="preserve">
"""


def draw(transcript: str) -> str:
    """Return a transcript as SVG, a text element for each line."""
    lines = [line.rstrip() for line in transcript.splitlines() if not line.startswith("#")]
    columns = max(len(line) for line in lines)
    width = round(columns * COLUMN) + 2 * BORDER
    height = len(lines) * LINE + 2 * BORDER
    drawn = [HEAD.format(width=width, height=height)]
    for number, line in enumerate(lines):
        if line:
            y = BORDER + LINE * number + 13
            text = line.lstrip()
            x = BORDER + (len(line) - len(text)) * COLUMN
            # So that columns stand below each other in whatever font there is.
            size = f'textLength="{len(text) * COLUMN:.1f}" lengthAdjust="spacing"'
            place = f'x="{x:.1f}" y="{y}" fill="{_colour(line)}"'
            drawn.append(f"<text {place} {size}>{escape(text)}</text>\n")
    return "".join([*drawn, "</g>\n</svg>\n"])


def _colour(line: str) -> str:
    if line.startswith("$ "):
        return "#7ee787"
    if set(line) <= {"-", " "}:
        return "#484f58"
    if "refused" in line or "failed" in line:
        return "#ffa198"
    return "#e6edf3"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("transcripts", type=Path, nargs="+")
    for transcript in parser.parse_args().transcripts:
        text = draw(transcript.read_text(encoding="utf-8"))
        transcript.with_suffix(".svg").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

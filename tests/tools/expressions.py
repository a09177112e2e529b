# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Long Jinja expressions in the YAML of roles and playbooks: ``python -m tests.tools.expressions``.

YAML says what happens, and Python decides. An expression of five lines and more decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.tools.environments import REPOSITORY

LONG = 5
_EXPRESSION = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)


def long_expressions() -> Iterator[tuple[str, int]]:
    """Return the place of each long expression, and its lines."""
    for folder in ("roles", "playbooks"):
        for path in sorted((REPOSITORY / folder).rglob("*.yml")):
            text = path.read_text(encoding="utf-8")
            for found in _EXPRESSION.finditer(text):
                lines = found.group().count("\n") + 1
                if lines >= LONG:
                    line = text.count("\n", 0, found.start()) + 1
                    yield f"{path.relative_to(REPOSITORY)}:{line}", lines


if __name__ == "__main__":
    places = list(long_expressions())
    for place, lines in places:
        print(f"{lines:4} {place}")
    print(f"{len(places)} expressions of {LONG} lines and more, {sum(n for _, n in places)} lines")

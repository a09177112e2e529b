# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a message of another program means is known in one place: ``_known_faults``.

A pattern of words elsewhere is a second table, which no case of ``tests/reports`` proves, and which
facts do not decide. Found are regular expressions with two words, and comparisons with a text of
two words (``"some words" in text``, ``startswith``, ``partition``).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PLUGINS = Path(__file__).parents[2] / "plugins"
KNOWLEDGE = "module_utils/_known_faults/"
#: Files that read a program's fixed form, or one answer that has no other form, and why.
ALLOWED: dict[str, str] = {}
_TWO_WORDS = re.compile(r"[A-Za-z']{3,}(?:,|:)?(?: |\\s[+*]?| \+)\(?(?:\?:)?[A-Za-z]{2,}")
_REGEX = {"compile", "search", "match", "fullmatch", "finditer", "findall", "sub", "split"}
_COMPARING = {"startswith", "endswith", "partition", "rpartition", "removeprefix", "removesuffix"}


def texts(node: ast.AST) -> Iterator[str]:
    """The literal texts in an expression."""
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, (str, bytes)):
            yield one.value if isinstance(one.value, str) else one.value.decode("latin-1")


def reads_words(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of each place that looks for words in a text."""
    for node in ast.walk(tree):
        looked_for: list[ast.AST] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of_re = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
            if (of_re and node.func.attr in _REGEX) or node.func.attr in _COMPARING:
                looked_for = list(node.args[:1])
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            looked_for = [node.left]
        for one in looked_for:
            words = " ".join(texts(one))
            if _TWO_WORDS.search(words):
                yield node.lineno, words


def files() -> Iterator[tuple[str, ast.AST]]:
    for path in sorted(PLUGINS.rglob("*.py")):
        name = path.relative_to(PLUGINS).as_posix()
        if not name.startswith(KNOWLEDGE):
            yield name, ast.parse(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    for name, tree in files():
        for line, words in reads_words(tree):
            print(name, line, words[:110])

# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Redacts secrets in TOML text, for diffs. Pure."""

from __future__ import annotations

import re

from .._core.redact import MARK, is_header_table, is_secret, redact_items
from .._core.redact_lines import redact_lines
from .toml_edit import Document, render
from .toml_scan import Pair, Path, Scanner

_TOKENS = re.compile(
    r"""(?P<comment>\#[^\n]*)"""
    r"""|(?P<long>"{3}(?:[^"\\]|\\[\s\S]|"{1,2}(?!"))*"{3,5}|'{3}[\s\S]*?'{3,5})"""
    r"""|(?P<basic>"(?:[^"\\\n]|\\.)*")|(?P<literal>'[^'\n]*')"""
)


def redact(text: str) -> str:
    """Return the text with passwords, tokens and registry credentials redacted.

    :raises InputError: the text is not TOML.
    """
    document = Document(text)
    spans: list[tuple[int, int]] = []

    def visit(pair: Pair) -> None:
        if _is_secret(pair.path):
            # An empty table or value holds no secret; its form can be useful.
            if document.literal(pair) not in ('""', "''", "{}", "[]"):
                spans.append((pair.value_start, pair.value_end))
        elif document.is_inline_table(pair):
            for inner in document.inline_pairs(pair):
                visit(inner)

    for top in document.pairs:
        visit(top)
    parts: list[str] = []
    at = 0
    for start, end in sorted(spans):
        parts += [text[at:start], f'"{MARK}"']
        at = end
    # Comments and multi-line strings.
    return redact_lines(_redact_strings("".join([*parts, text[at:]])))


def _redact_strings(text: str) -> str:
    """Redact secrets in the values of strings and keys, also in the string after ``"--token"``."""
    before, end_before = "", 0

    def shown(match: re.Match[str]) -> str:
        nonlocal before, end_before
        if match["comment"] or match["long"]:
            return match[0]
        value = match[0][1:-1]
        if match["basic"] and "\\" in value:
            value = Scanner(match[0]).string()
        follows = text[end_before : match.start()].strip() == ","
        covered = redact_items([before, value] if follows else [value])[-1]
        before, end_before = value, match.end()
        return match[0] if covered == value else render(covered)

    return _TOKENS.sub(shown, text)


def _is_secret(path: Path) -> bool:
    return is_secret(path[-1]) or any(is_header_table(part) for part in path[:-1])

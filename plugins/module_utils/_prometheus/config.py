# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Our lines in prometheus.yml. Pure.

Prometheus' file has no folder of parts in the releases of Debian 12. Lines are put below the keys
that are there, and each has a mark by which it can be taken out again.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Sequence

from .._core.errors import KubegpuError

_MARK = "  # kubegpu.nodes"
# An item of a list or a value, quoted or not.
_VALUE = re.compile(r"""^(?![ \t]*#).*?(?:-|:|\[|,)[ \t]+["']?(?P<text>[^\s"'#,\[\]]+)""", re.M)
_ITEM = re.compile(r"^(?P<indent>[ \t]*)-(?:[ \t]|$)")
_COMMENT = re.compile(r"[ \t]*(?:#|$)")


def not_named(
    text: str, path: str, rules: Sequence[str], targets: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the rules that the file does not name, and why it has to change.

    :param path: of the file, which relative names in it begin from.
    """
    missing = tuple(rule for rule in rules if not _names(_part(text, "rule_files"), path, rule))
    named = _names(_part(text, "scrape_configs"), path, targets)
    files = (*missing, *(() if named else (targets,)))
    return missing, tuple(f"{path} does not name {file}" for file in files)


def add_lines(
    text: str, path: str, rules: Sequence[str], targets: str, job: str
) -> tuple[str, tuple[str, ...]]:
    """Return the file with lines for the rules and targets that it does not name, and the reasons.

    :param path: of the file, which relative names in it begin from.
    :raises KubegpuError: a key has a value on its own line.
    """
    plain = without_lines(text)
    missing, reasons = not_named(plain, path, rules, targets)
    if missing:
        plain = _insert(plain, path, "rule_files", [[rule] for rule in missing])
    if len(reasons) > len(missing):
        block = [
            f"job_name: {job}",
            "  honor_labels: true",
            "  file_sd_configs:",
            f"    - files: [{targets}]",
            # Exporters of DCGM before 4.8.3 call the host Hostname.
            "  metric_relabel_configs:",
            "    - source_labels: [Hostname]",
            "      regex: (.+)",
            "      target_label: hostname",
        ]
        plain = _insert(plain, path, "scrape_configs", [block])
    return (plain, reasons) if plain != text else (text, ())


def without_lines(text: str) -> str:
    """Return the file without our lines."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.rstrip("\r\n").endswith(_MARK))


def _part(text: str, key: str) -> str:
    """Return a key of the uppermost level with its value; empty if there is none."""
    lines = text.splitlines(keepends=True)
    found = next((number for number, line in enumerate(lines) if _is_key(line, key)), None)
    return "" if found is None else "".join((lines[found], *_below(lines, found)))


def _is_key(line: str, key: str) -> bool:
    return re.match(rf"{key}[ \t]*:", line) is not None


def _names(text: str, path: str, wanted: str) -> bool:
    """Return whether lines name a file, also by a pattern.

    :param path: of the file that has the lines.
    """
    folder = posixpath.dirname(path)
    return any(
        _matches(wanted, posixpath.normpath(posixpath.join(folder, match["text"])))
        for match in _VALUE.finditer(text)
    )


def _matches(path: str, pattern: str) -> bool:
    """Return whether a pattern of Prometheus has the path: ``*`` ends at a slash."""
    names, parts = path.split("/"), pattern.split("/")
    return len(names) == len(parts) and all(map(fnmatch.fnmatchcase, names, parts))


def _insert(text: str, path: str, key: str, items: Sequence[Sequence[str]]) -> str:
    """Return the text with items at the beginning of a list of the uppermost level."""
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    first = next((number for number, line in enumerate(lines) if _is_key(line, key)), None)
    if first is None:
        return "".join((*lines, f"{key}:{_MARK}\n", *_marked(items, "  ")))
    if not _COMMENT.match(lines[first].split(":", 1)[1]):
        raise KubegpuError(
            f"{path} has a value on the line of {key}, into which nothing is put.",
            evidence=f"line {first + 1}",
            next_step=f"Write the items of {key} on lines of their own, or add these yourself and "
            "set gpu_monitoring_prometheus_manage_config: false:\n"
            + "".join(_marked(items, "  ")).replace(_MARK, ""),
        )
    indent = next((match for match in map(_ITEM.match, _below(lines, first)) if match), None)
    lines[first + 1 : first + 1] = _marked(items, indent["indent"] if indent else "  ")
    return "".join(lines)


def _below(lines: Sequence[str], first: int) -> Sequence[str]:
    """Return the lines that belong to the key of a line."""
    end = first + 1
    while end < len(lines) and (lines[end][:1] in " \t-#\n"):
        end += 1
    return lines[first + 1 : end]


def _marked(items: Sequence[Sequence[str]], indent: str) -> list[str]:
    return [
        f"{indent}{'- ' if number == 0 else '  '}{line[2:] if number else line}{_MARK}\n"
        for item in items
        for number, line in enumerate(item)
    ]

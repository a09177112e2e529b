# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the table of ``dcgmi diag``, and give it the form of its JSON. Pure.

A message is cut after 45 characters, also within a word. DCGM 3 has the GPUs in the result
(``Fail - GPU: 0, 1``), DCGM 4 in a row for each (``GPU0: Fail``); its messages are warnings of the
test or, with the name of a GPU, of that GPU. github.com/NVIDIA/DCGM, dcgmi/Diag.cpp,
DisplayVerboseInfo and HelperDisplayEntityResults; tables of NVIDIA/go-dcgm#52 and NVIDIA/DCGM#253.
Read 2026-11-28.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .dcgm import Diag, read_tests

_HEAD = "Diagnostic                | Result"
_CATEGORY = re.compile(r"[|+]-{3,9}  ([A-Za-z]{1,20})  -{2,20}[+|]")
_ROW = re.compile(r"\|(.{27})\|(.{48})\|")
_RESULT = re.compile(r"(Pass|Fail|Warn|Skip|Not Run)(?: - (?:All|GPUs?: ([\d, ]{1,40})))?$")
_OF_ENTITY = re.compile(r"(GPU|CPU|NvSwitch)(\d{1,5}): ?(Pass|Fail|Warn|Skip|)$")
_MESSAGE = re.compile(r"(Warning|Error|Info)(?:: (GPU|CPU|NvSwitch)(\d{1,5}))?$")
_METADATA = "metadata"
_WIDTH = 45
# More rows than the tests and messages of the largest machines have.
_MOST_ROWS = 20_000


def read_table(text: str) -> Diag | None:
    """Return what a table says; None if there is none."""
    begin = text.find(_HEAD)
    if begin < 0:
        return None
    categories: list[dict[str, Any]] = []
    version = ""
    for kind, name, value in _rows(text[begin:]):
        if kind == "category":
            categories.append({"category": name, "tests": []})
        elif not categories:
            continue
        elif categories[-1]["category"].lower() == _METADATA:
            version = value if name == "DCGM Version" else version
        else:
            _add(categories[-1]["tests"], name, value)
    tested = [one for one in categories if one["category"].lower() != _METADATA]
    for test in (test for category in tested for test in category["tests"]):
        # A result of all GPUs, or of the software, names none.
        test["results"] = test["results"] or [{"status": test["test_summary"]["status"]}]
    return read_tests({"test_categories": tested, "version": version}, {}, 0) if tested else None


def _rows(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield categories and rows, each message as one."""
    name, message = "", ""
    for line in text.splitlines()[:_MOST_ROWS]:
        category, row = _CATEGORY.search(line), _ROW.search(line)
        first, cell = (row[1].strip(), row[2][1:]) if row else ("", "")
        if row and name and not first and not _stands_alone(cell):
            message += cell[:_WIDTH]
            continue
        if name:
            yield "row", name, " ".join(message.split())
        name, message = "", ""
        if category:
            yield "category", category[1], ""
        elif row and _MESSAGE.match(first):
            name, message = first, cell[:_WIDTH]
        elif row and cell.strip() != "Result":
            yield "row", first, cell.strip()
    if name:
        yield "row", name, " ".join(message.split())


def _stands_alone(cell: str) -> bool:
    return bool(_RESULT.match(cell.strip()) or _OF_ENTITY.match(cell.strip()))


def _add(tests: list[dict[str, Any]], name: str, value: str) -> None:
    """Add a row to the tests: a test, the result of a GPU, or a message."""
    message, result, entity = _MESSAGE.match(name), _RESULT.match(value), _OF_ENTITY.match(value)
    if message and tests:
        if message[1] != "Info":
            _warn(tests[-1], message, value)
    elif result and (name or tests):
        if name:
            summary: dict[str, Any] = {"status": result[1], "warnings": []}
            tests.append({"name": name, "results": [], "test_summary": summary})
        for gpu in filter(None, re.split(r"[, ]+", result[2] or "")):
            tests[-1]["results"].append({"gpu_id": gpu, "status": result[1], "warnings": []})
    elif entity and tests:
        tests[-1]["results"].append(
            {
                "entity_group": entity[1],
                "entity_id": int(entity[2]),
                "status": entity[3] or "Not Run",
                "warnings": [],
            }
        )


def _warn(test: dict[str, Any], message: re.Match[str], text: str) -> None:
    for result in test["results"]:
        if message[2] == result.get("entity_group") and message[3] == str(result.get("entity_id")):
            result["warnings"].append({"warning": text})
            return
    test["test_summary"]["warnings"].append({"warning": text})

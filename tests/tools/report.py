# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the end of a run says: seconds by stage, the slowest tests, and stages over their budget."""

from __future__ import annotations

import os
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.tools.stages import Result

SLOWEST = 10
# A stage is over its budget where it takes half as much again: machines differ.
_TOLERANCE = 1.5


def table(results: Sequence[Result]) -> list[str]:
    """Return a line for each stage: result, seconds of the clock, seconds of processors."""
    rows = [("stage", "result", "seconds", "CPU seconds")]
    rows += [
        (
            result.name,
            "FAILED" if result.code else "passed",
            f"{result.seconds:.0f}",
            f"{result.cpu_seconds:.0f}",
        )
        for result in sorted(results, key=lambda result: result.name)
    ]
    return [f"{name:12} {said:8} {wall:>8} {cpu:>12}" for name, said, wall, cpu in rows]


def slowest_tests(folder: Path, stages: Iterable[str]) -> list[str]:
    """Return a line for each of the slowest tests, from the stages' JUnit files.

    :param folder: where the stages leave ``STAGE.xml`` and ``STAGE-*.xml``.
    :param stages: the stages of this run; files of others are older.
    """
    found = []
    for stage in stages:
        for path in sorted({*folder.glob(f"{stage}.xml"), *folder.glob(f"{stage}-*.xml")}):
            try:
                cases = ET.parse(path).iter("testcase")
            except ET.ParseError:
                # pytest was ended while it wrote.
                continue
            for case in cases:
                name = f"{case.get('classname', '')}::{case.get('name', '')}"
                found.append((float(case.get("time", "0")), stage, name.replace("\n", " ")))
    found.sort(reverse=True)
    return [f"{seconds:7.1f} s  {stage:10}  {name}" for seconds, stage, name in found[:SLOWEST]]


def over_budget(budget: Path, results: Iterable[Result]) -> list[str]:
    """Return a line for each stage that took half as many processor seconds again as it may.

    :param budget: a TOML file with the table ``cpu_seconds``: a number for each stage.
    """
    allowed = tomllib.loads(budget.read_text(encoding="utf-8"))["cpu_seconds"]
    return [
        f"{result.name} took {result.cpu_seconds:.0f} CPU seconds; {budget.name} expects "
        f"{allowed[result.name]} (docs/development.md shows what to do)"
        for result in results
        if result.cpu_seconds > _TOLERANCE * allowed[result.name]
    ]


def busy_seconds() -> float:
    """Return for how many seconds this machine's processors have worked, nodes included."""
    with open("/proc/stat", encoding="ascii") as handle:
        user, nice, system, _idle, _iowait, irq, softirq, *_rest = handle.readline().split()[1:]
    ticks = sum(int(one) for one in (user, nice, system, irq, softirq))
    return ticks / os.sysconf("SC_CLK_TCK")

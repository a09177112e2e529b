# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much the default tier does of what varies only by data."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.driver_branches import BRANCHES
from tests.tools import tiers
from tests.unit.fixtures.branches import FIXED

# What hypothesis takes where a test names no number: all of it in the full tier.
EXAMPLES = 25
OLD_PYTHON = sys.version_info < (3, 11)


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    if not tiers.is_full() and importlib.util.find_spec("hypothesis"):
        hypothesis = importlib.import_module("hypothesis")
        parent = hypothesis.settings.get_profile("any load")
        hypothesis.settings.register_profile("default tier", parent, max_examples=EXAMPLES)
        hypothesis.settings.load_profile("default tier")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """With a Python as old as a node's, take the first variation of every test.

    What the release of Python changes (a module that is not there, a method without an argument)
    lies in the code that a test runs; its variations run the same code with other data, and all of
    them run with the newest Python.
    """
    if tiers.is_full() or not OLD_PYTHON:
        return
    taken: set[tuple[str, str]] = set()
    chosen, others = [], []
    here = Path(__file__).parent
    for item in items:
        if here not in item.path.parents:
            chosen.append(item)
            continue
        name = (item.nodeid.partition("[")[0], item.name.partition("[")[0])
        (others if name in taken else chosen).append(item)
        taken.add(name)
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = chosen


@pytest.fixture(autouse=True)
def fixed_branches() -> Iterator[None]:
    """Decide by branches that do not change with NVIDIA's releases (fixtures/branches.py)."""
    rows = dict(BRANCHES)
    BRANCHES.clear()
    BRANCHES.update(FIXED)
    yield
    BRANCHES.clear()
    BRANCHES.update(rows)

# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Makes ``ansible_collections.kubegpu.nodes`` this checkout, wherever it lies.

The packages in between are made in memory, so that neither a folder of a certain name nor a
symbolic link is needed. Collections that the ``ansible`` package brings stay importable.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import random
import signal
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from tests.testbed.processes import own_name
from tests.tools import tiers

# Before the test bed's modules are imported, for their names depend on it (tests/testbed/runs.py).
os.environ.setdefault("KUBEGPU_TEST_RUN", own_name())

from tests.testbed import runs

CHECKOUT = Path(__file__).resolve().parent.parent


def _package(name: str, path: list[str]) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__path__ = path
    sys.modules[name] = module
    parent, _dot, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)
    return module


def _make_importable() -> None:
    try:
        importlib.import_module("ansible_collections")
    except ImportError:
        _package("ansible_collections", [])
    _package("ansible_collections.kubegpu", [])
    _package("ansible_collections.kubegpu.nodes", [str(CHECKOUT)])


def _same_libraries_on_old_pythons() -> None:
    """Python before 3.11 has no ``tomllib``; ``tomli`` is the same by its first name."""
    if sys.version_info < (3, 11) and importlib.util.find_spec("tomli"):
        sys.modules.setdefault("tomllib", importlib.import_module("tomli"))


def pytest_configure(config: Any) -> None:
    """Begin a run of the test bed, and choose the seed of made inputs: workers get both."""
    config.addinivalue_line(
        "markers",
        "full(*variations, why=...): the full tier alone runs the test, or those variations of it "
        "by their ids; why says what it varies, and of which test of the default tier",
    )
    runs.begin()
    if not hasattr(config, "workerinput"):
        # A run that is told to end takes down what its fixtures brought up.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    os.environ.setdefault("KUBEGPU_PROPERTY_SEED", str(random.SystemRandom().randrange(2**32)))
    if importlib.util.find_spec("hypothesis"):
        hypothesis = importlib.import_module("hypothesis")
        # How long an example takes says something of the machine's load, and nothing of us.
        hypothesis.settings.register_profile(
            "any load",
            deadline=None,
            suppress_health_check=[hypothesis.HealthCheck.too_slow],
        )
        hypothesis.settings.load_profile("any load")


def pytest_unconfigure() -> None:
    """End the run, if it began here."""
    runs.end()


def _only_in_full_tier(item: Any) -> bool:
    """Return whether ``make test-full`` alone runs the item; UsageError without a reason."""
    marks = list(item.iter_markers("full"))
    if any(not mark.kwargs.get("why") for mark in marks):
        raise pytest.UsageError(f"{item.nodeid}: the mark 'full' needs why='...'")
    return any(not mark.args or item.callspec.id in mark.args for mark in marks)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave to the full tier what is marked for it."""
    full = [item for item in items if _only_in_full_tier(item)]
    if tiers.is_full() or not full:
        return
    config.hook.pytest_deselected(items=full)
    left_out = set(map(id, full))
    items[:] = [item for item in items if id(item) not in left_out]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say with which seed made inputs come again."""
    if "tests.unit.engine_documents" in sys.modules or "xdist" in sys.modules:
        seed = os.environ["KUBEGPU_PROPERTY_SEED"]
        terminalreporter.write_line(f"made inputs: KUBEGPU_PROPERTY_SEED={seed}")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out what needs a controller where Python is too old for one."""
    if sys.version_info >= (3, 11) or collection_path.suffix != ".py":
        return None
    text = collection_path.read_text(encoding="utf-8")
    return True if "nodes.plugins.action" in text else None


_make_importable()
_same_libraries_on_old_pythons()

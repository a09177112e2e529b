# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from ansible_collections.kubegpu.nodes.plugins.plugin_utils import _hosts, _preload
from tests.tools.environments import collections

_PLUGINS = "ansible_collections.kubegpu.nodes.plugins"
_PLANS = _preload._FOR_PLANS


@pytest.fixture
def imported(monkeypatch):
    """Return the list of the names that are imported from now on."""
    names = []
    monkeypatch.setattr(_preload.importlib, "import_module", names.append)
    return names


@pytest.mark.parametrize("select", _PLANS)
def test_what_plans_of_the_hosts_need_is_imported(imported, select):
    _preload.preload_plans(select)
    assert imported == [f"{_PLUGINS}.{name}" for name in _PLANS[select]]
    assert all(importlib.util.find_spec(name) for name in imported)


def test_plans_are_those_of_selections_of_hosts():
    assert set(_PLANS) <= set(_hosts._SELECT)


def test_other_selections_import_nothing(imported):
    _preload.preload_plans("failed")
    assert imported == []


def test_the_action_that_checks_variables_brings_the_readers_of_options():
    script = f"import sys, {_PLUGINS}.action.fleet_variables; print(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(collections())},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.split()
    assert {f"{_PLUGINS}.{name}" for name in _preload._OPTIONS} <= set(found)

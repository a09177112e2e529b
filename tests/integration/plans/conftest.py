# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The thirteen machines, planned once."""

from __future__ import annotations

import fcntl
import json
from dataclasses import asdict

import pytest

from tests.integration.plans import machines, playbook
from tests.unit.fixtures.machines import MACHINES


@pytest.fixture(scope="session")
def inventory(tmp_path_factory):
    folder = tmp_path_factory.mktemp("thirteen")
    return machines.write(folder, {name: MACHINES[name] for name in machines.THIRTEEN})


@pytest.fixture(scope="session")
def thirteen(inventory, tmp_path_factory, request):
    """The plan of all; with workers side by side, the first one makes it."""
    folder = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):
        folder = folder.parent
    kept = folder / "thirteen.json"
    with (folder / "thirteen.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            run = playbook.run(inventory)
            assert run.status == 0, run.screen
            kept.write_text(json.dumps(asdict(run)))
    return playbook.Plan(**json.loads(kept.read_text()))


@pytest.fixture
def plan(tmp_path):
    """Plan some machines of one's own: name to machine, and variables by name."""

    def planned(own, variables=None, **wishes):
        run = playbook.run(machines.write(tmp_path, own, variables), **wishes)
        assert run.status == 0, run.screen
        return run.rows

    return planned

# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the module puts back; its flow is tested with the action, and live."""

from __future__ import annotations

import types

from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply.run import (
    PHASES,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.record import Record
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from tests.unit.fixtures.driver_cases import facts


def test_the_mig_layout_comes_back_with_the_earlier_module(tree):
    calls = []

    def run(argv, **_more):
        calls.append(" ".join(argv))
        return Result(0, "", "")

    work = types.SimpleNamespace(
        run=run,
        reader=tree(sys__module__nvidia__version="580.95.05\n", etc__kubegpu__mig_layout=""),
        facts=facts("T4", "u24", "-"),
        pending={"files": {}, "loaded": "580.95.05"},
        record=Record(),
        store=types.SimpleNamespace(drop=calls.append),
        save_record=lambda record: None,
        warn=calls.append,
    )
    PHASES["rollback"](work)
    assert "systemctl restart kubegpu-mig.service" not in calls
    work.reader = tree(**{"etc__kubegpu__mig-layout": ""})
    PHASES["rollback"](work)
    assert "systemctl restart kubegpu-mig.service" in calls

# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.steps import Step
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply.diff import (
    change_diff,
    describe_file,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.config_files import (
    NOUVEAU,
    TOKEN,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from tests.unit.fixtures.node_facts import node


def test_a_token_is_shown_by_its_checksum():
    assert "secret" not in describe_file(TOKEN, b"secret")
    assert describe_file(TOKEN, b"a") != describe_file(TOKEN, b"b")
    assert describe_file(NOUVEAU, b"text\n") == "text\n"
    assert describe_file(NOUVEAU, None) == ""


PERSISTENCED = "nvidia-persistenced"


def stopped(enabled, active, *, present=True):
    """What the comparison needs of a node whose driver works, and whose service does not run."""
    facts = node(driver__installed="580.1", driver__loaded="580.1")
    facts["driver"]["services"][PERSISTENCED] = active
    start = Step("service", "start", PERSISTENCED, f"it is {active}, and must run")
    return SimpleNamespace(
        present=present,
        plan=SimpleNamespace(
            action="none", steps=(start,), services={PERSISTENCED: "enabled"}, files={}
        ),
        record=SimpleNamespace(installed=None, managed=True, services={}, original=None),
        facts=facts,
        run=lambda _argv: Result(0, f"{enabled}\n", ""),
    )


def compared(context):
    module_state, loading = SimpleNamespace(loaded="580.1"), SimpleNamespace(now=False)
    return change_diff(context, module_state, loading, {})


@pytest.mark.parametrize("enabled", ["enabled", "static"])
def test_a_service_that_is_started_is_a_change(enabled):
    (shown,) = compared(stopped(enabled, "inactive"))
    assert f"service {PERSISTENCED} is: inactive\n" in shown["before"]
    assert f"service {PERSISTENCED} is: active\n" in shown["after"]


def test_a_service_that_remains_masked_is_no_change():
    assert compared(stopped("masked", "inactive")) == []

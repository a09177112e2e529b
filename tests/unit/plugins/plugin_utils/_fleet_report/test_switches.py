# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A fix names the variable with which it would change nothing on the host."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import (
    Finding,
    Subject,
    read_finding,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis import switches as words
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.fixes import find_fix
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.join import (
    diagnose,
    roots_of,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.switches import (
    reason,
    with_switch,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.actions import (
    make_actions,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.judge import (
    diagnosed,
    find_causes,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.types import Source
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._hosts import switches
from tests.unit.fixtures.kernel_gpus import amd_node, intel_node
from tests.unit.fixtures.node_facts import node
from tests.unit.plugins.module_utils._diagnosis.test_catalogue import NODE, amd_without_driver

OFF = {"nvidia_driver_enabled": False, "nvidia_driver_load": True, "amd_driver_enabled": False}
ON = {"nvidia_driver_enabled": True, "nvidia_driver_load": True, "amd_driver_enabled": True}
RUN = "ansible-playbook kubegpu.nodes.site --limit gpu1 --tags driver"


def finding(code, template=""):
    about = Subject("gpu1")
    return Finding(code, "It is.", "", "Run it.", subject=about, fix=RUN, template=template)


@pytest.mark.parametrize("row", ["no_driver", "nouveau_loaded", "dkms_build_failed"])
def test_the_diagnosis_of_a_host_whose_driver_is_not_managed(row):
    host = NODE[row][0]()
    (plain,) = [one for one in diagnose([host])["findings"] if one["severity"] == "error"]
    (managed,) = [
        one for one in diagnose([replace(host, switches=ON)])["findings"]
        if one["severity"] == "error"
    ]  # fmt: skip
    (found,) = [
        one for one in diagnose([replace(host, switches=OFF)])["findings"]
        if one["severity"] == "error"
    ]  # fmt: skip
    assert managed == plain and RUN in plain["fix"]
    assert found["fix"] == f"nvidia_driver_enabled: true, then: {plain['fix']}"
    assert "not managed (nvidia_driver_enabled: false)" in found["next_step"] or (
        found["next_step"] == plain["next_step"] and "role" not in plain["next_step"]
    )


def test_a_driver_that_is_not_to_be_loaded():
    known = node(driver__installed="580.95.05")
    load = {**ON, "nvidia_driver_load": False}
    found = with_switch(finding("driver_not_loaded"), known, load)
    assert found.fix == f"nvidia_driver_load: true, then: {RUN}"
    assert found.next_step == f"{reason('nvidia_driver_load')} Run it."
    # What has to be installed first is not about loading.
    assert with_switch(finding("driver_missing"), node(), load).fix == RUN
    # Not a word of the fix decides: the row of the code does.
    other = replace(finding("driver_not_loaded"), fix="Other words.")
    assert with_switch(other, known, load).fix == found.fix


@pytest.mark.parametrize("container", ["", "a mount of {nvidia}"])
def test_a_step_has_the_sentence_once_however_it_is_worded(monkeypatch, container):
    known = node(driver__installed="580.95.05", driver__container=container)
    load = {**ON, "nvidia_driver_load": False}
    first = with_switch(finding("driver_not_loaded", template="Run it on {host}."), known, load)
    for name in ("reason", "by_container"):
        monkeypatch.setattr(words, name, lambda _given: "Other words.")
    later = read_finding(first.as_problem(), str, Subject())
    assert with_switch(replace(later, fix=""), known, load).next_step == first.next_step
    assert first.template.format(host="a").endswith(" Run it on a.")
    again = with_switch(finding("driver_not_loaded"), known, load)
    assert again.next_step == "Other words. Run it."


@pytest.mark.parametrize(
    ("facts", "on", "expected"),
    [
        # The role may mend it, so that it has no command.
        (amd_node(), OFF, ""),
        (amd_node(), ON, RUN),
        (intel_node("i915"), ON, ""),
    ],
)
def test_drivers_of_other_vendors(facts, on, expected):
    assert with_switch(finding("gpu_not_bound"), facts, on).fix == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("driver_missing", f"nvidia_driver_enabled: true, then: {RUN}"),
        ("gpu_unsupported",
         f"nvidia_driver_enabled: true, nvidia_driver_branch, then: {RUN}"),
        ("ptx_toolchain",
         f"an older image, or nvidia_driver_enabled: true, nvidia_driver_branch and: {RUN}"),
        ("gpu_lost", ""),
    ],
)  # fmt: skip
def test_the_variable_stands_where_the_command_is(code, expected):
    names = {"switch": "nvidia_driver_enabled"}
    assert str(find_fix(code, Subject("gpu1"), names)) == expected
    plain = expected.replace("nvidia_driver_enabled: true, ", "").replace(
        "then: ", "", code == "driver_missing"
    )
    assert str(find_fix(code, Subject("gpu1"), {})) == plain


def test_an_action_of_several_hosts_has_the_variable():
    hosts = [replace(NODE["no_driver"][0](), name=name, switches=OFF) for name in ("a", "b")]
    findings = diagnose(hosts)["findings"]
    (action,) = make_actions([diagnosed(one) for one in findings if one["severity"] == "error"], {})
    assert action.finding.fix == (
        "nvidia_driver_enabled: true, then: ansible-playbook kubegpu.nodes.site --limit a,b "
        "--tags driver"
    )


def test_the_report_of_a_host_that_was_not_diagnosed_has_it():
    for facts in (node(), amd_without_driver()):
        causes = find_causes(Source("gpu1", facts, switches=OFF))
        (fix,) = {one.fix for one in causes if "site" in one.fix}
        assert "_driver_enabled: true, then: ansible-playbook" in fix
    assert roots_of([]) == []


def test_values_are_those_of_the_host_and_defaults_of_the_roles():
    assert switches({}) == {**ON, "amd_driver_enabled": False}
    found = switches({"nvidia_driver_enabled": "false", "nvidia_driver_load": "a list"})
    assert found["nvidia_driver_enabled"] is False and "nvidia_driver_load" not in found

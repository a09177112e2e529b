# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Variables of hosts and of the play, as a task reads them that runs once for all hosts."""

from __future__ import annotations

from types import SimpleNamespace

from ansible.errors import AnsibleUndefinedVariable
from jinja2 import Undefined

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._host_variables import (
    HostVariables,
    fact_of_hosts,
    play_names,
)


class Hostvars(dict):
    def raw_get(self, host):
        return self[host]


OWN = {"gpu1": {"branch": "580", "name": "gpu1"}, "gpu2": {"branch": "595", "name": "gpu2"}}


def read(play, **variables):
    return HostVariables(
        {"hostvars": Hostvars(OWN), "inventory_hostname": "gpu1", **variables}, play
    )


def test_a_variable_of_the_play_counts_where_the_first_host_has_the_same_value():
    assert read(["branch"], **{**OWN["gpu1"]}).every("gpu2")["branch"] == "580"
    # Without the play it is the host's own.
    assert read([], **{**OWN["gpu1"]}).every("gpu2")["branch"] == "595"
    assert read([], **{**OWN["gpu1"], "branch": "570"}).every("gpu2")["branch"] == "570"


def test_the_names_of_a_play():
    play = SimpleNamespace(get_vars=lambda: {"branch": "580"})
    block = SimpleNamespace(_play=play)
    include = SimpleNamespace(_parent=block)
    assert play_names(SimpleNamespace(_parent=include)) == ["branch"]
    assert play_names(SimpleNamespace(_parent=None)) == []


def test_a_variable_that_cannot_be_read_is_left_out():
    class Variables(dict):
        def get(self, name, default=None):
            if self["kind"] == "raises":
                raise AnsibleUndefinedVariable("nope")
            return self["value"]

    hostvars = {
        "gpu1": Variables(kind="value", value="mon1"),
        "gpu2": Variables(kind="value", value=None),
        # A filter gets this, an action the exception.
        "gpu3": Variables(kind="value", value=Undefined(name="nope")),
        "gpu4": Variables(kind="raises"),
    }
    assert fact_of_hosts(list(hostvars), hostvars, "gpu_monitoring_prometheus_host") == {
        "gpu1": "mon1"
    }

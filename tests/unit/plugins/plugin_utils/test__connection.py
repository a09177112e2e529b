# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The connection to a cluster is that of before any node was read, but for its token."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._connection import (
    is_connection,
    merged,
    public,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._hosts import connection

OWN = {"host": "https://cluster.example", "token": "secret", "context": None}
LATE = {"host": "https://of-the-node.example", "delegate": "gpu1", "token": "secret"}


def host(now, before=OWN, **more):
    """Return a host's variables as they are after the read, with what was checked before it."""
    checked = {"connections": {"gpu1": {"kubegpu_kube": public(before)}}}
    return {
        "inventory_hostname": "gpu1",
        "__kubegpu_variables": checked,
        "kubegpu_kube": now,
        **more,
    }


def test_a_value_that_came_later_is_ignored():
    """Such as that of a template, whose variables a fact of the node replaced."""
    variables = host(LATE)
    found = merged({"kubegpu_kube": LATE}, variables)
    assert found["host"] == "https://cluster.example" and found["delegate"] == "localhost"
    assert found["token"] == "secret"
    assert connection(variables) == {"host": "https://cluster.example"}


def test_what_the_play_or_the_caller_of_a_role_sets_is_taken():
    play = {"host": "https://of-the-play.example"}
    assert merged({"kubegpu_kube": play}, host(OWN))["host"] == play["host"]
    # And where nothing was checked before, as in a playbook of the user's own.
    assert merged({"kubegpu_kube": LATE}, {"kubegpu_kube": LATE})["delegate"] == "gpu1"


def test_a_later_mapping_replaces_keys_of_those_before_it():
    given = {"kubegpu_kube": OWN, "gpu_verify_kube": {"context": "b", "host": None}}
    found = merged(given, host(OWN))
    assert (found["host"], found["context"], found["ca_file"]) == (OWN["host"], "b", "")


def test_a_host_whose_facts_have_the_name_is_refused():
    variables = host(LATE, ansible_facts={"kubegpu_kube": LATE})
    with pytest.raises(InputError, match="gpu1 has facts with names of variables: kubegpu_kube"):
        merged({"kubegpu_kube": LATE}, variables)


def test_no_token_is_kept():
    assert public(OWN) == {"host": "https://cluster.example"}
    assert public("{{ a template }}") == {} and public(None) == {}
    assert is_connection("kubegpu_kube") and not is_connection("kubegpu_kube_namespace")

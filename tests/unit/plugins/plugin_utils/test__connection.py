# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The connection to a cluster is that of before any node was read, but for its token."""

from __future__ import annotations

import sys

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._connection import (
    connected,
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


def at(given, variables, **others):
    return connected(given, {"gpu1": variables, **others}, "gpu1")


def test_a_value_that_came_later_is_ignored():
    """Such as that of a template, whose variables a fact of the node replaced."""
    variables = host(LATE)
    found = at(LATE, variables)
    assert found["host"] == "https://cluster.example" and found["delegate"] == "localhost"
    assert found["token"] == "secret"
    assert connection(variables) == {"host": "https://cluster.example"}


def test_what_the_play_or_the_caller_of_a_role_sets_is_taken():
    play = {"host": "https://of-the-play.example"}
    assert at(play, host(OWN))["host"] == play["host"]
    # And where nothing was checked before, as in a playbook of the user's own.
    assert at(LATE, {"kubegpu_kube": LATE})["delegate"] == "gpu1"


@pytest.mark.parametrize(
    ("given", "in_cluster"),
    [
        ({}, False),
        (None, False),
        ({"host": None}, False),
        ({"kubeconfig": "/k"}, True),
        (OWN, True),
    ],
)
def test_whether_there_is_a_cluster(given, in_cluster):
    found = at(given, {})
    assert found["in_cluster"] is in_cluster and found["ca_file"] == ""


def test_modules_get_what_is_set_by_the_names_of_their_options():
    given = {
        "kubeconfig": "/k", "context": "b", "host": "", "token": "t", "ca_file": "/ca",
        "client_cert": "/c", "client_key": "/y",
    }  # fmt: skip
    found = at(given, {})
    options = {"kubeconfig": "/k", "context": "b", "api_key": "t", "ca_cert": "/ca"}
    certificate = {"client_cert": "/c", "client_key": "/y"}
    assert found["options"] == {**options, **certificate}
    # The modules of kubernetes.core can be told by the environment not to verify TLS.
    assert found["core"] == {**options, **certificate, "validate_certs": True}
    assert found["helm"] == {**options, "validate_certs": True}


@pytest.mark.parametrize(
    ("delegate", "python"),
    [("localhost", sys.executable), ("jump", "/venv/python"), ("gpu1", "auto"), ("gone", "auto")],
)
def test_the_interpreter_is_the_controllers_own_or_that_of_the_delegate(delegate, python):
    jump = {"ansible_python_interpreter": "/venv/python"}
    assert at({"delegate": delegate}, {}, jump=jump)["interpreter"] == python


def test_a_host_whose_facts_have_the_name_is_refused():
    variables = host(LATE, ansible_facts={"kubegpu_kube": LATE})
    with pytest.raises(InputError, match="gpu1 has facts with names of variables: kubegpu_kube"):
        at(LATE, variables)


def test_no_token_is_kept():
    assert public(OWN) == {"host": "https://cluster.example"}
    assert public("{{ a template }}") == {} and public(None) == {}

# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of what a cluster has once."""

from __future__ import annotations

from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.differing_options import (
    differing_options,
)


def differing(**hosts):
    known = {name: {"options": options} for name, options in hosts.items()}
    return differing_options(known, "role_", "the part", "One may differ.")


def test_hosts_that_agree():
    assert differing() == []
    assert differing(a={}, b={"one": 1}) == []
    assert differing(a={"one": 1, "two": []}, b={"two": [], "one": 1}, c={}) == []


def test_each_option_is_refused_once_with_both_hosts_and_values():
    found = differing(
        a={"one": 1, "two": 2}, b={"one": 1, "two": 3}, c={"two": 4, "more": "x"}
    )  # fmt: skip
    assert [one.cause for one in found] == [
        "role_more differs between a and c, and the part is one for the whole cluster",
        "role_one differs between a and c, and the part is one for the whole cluster",
        "role_two differs between a and b, and the part is one for the whole cluster",
    ]
    assert found[2].evidence == "a: 2; b: 3"
    assert found[2].next_step == "Set it for all hosts of the cluster alike. One may differ."

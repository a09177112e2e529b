# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What kubernetes.core.k8s says of a refusal, in words."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._object_errors import (
    changed_kinds,
    in_words,
)

OPTIONS = {"host": "https://api:6443", "state": "present"}


def status(code, reason, message, **details):
    return {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
        "message": message, "reason": reason,
        "details": {"name": "plugin", "kind": "daemonsets", **details},
    }  # fmt: skip


def failed(found, quoted):
    text = json.dumps(found)
    shown = repr(f"{text}\n".encode()) if quoted else text
    return {"failed": True, "msg": f"Failed to apply object: {shown}", "reason": "x",
            "exception": "x"}  # fmt: skip


@pytest.mark.parametrize("quoted", [True, False])
def test_a_missing_right_is_named_by_its_rule(quoted):
    said = (
        'daemonsets.apps "plugin" is forbidden: User "jane" cannot patch resource "daemonsets" '
        'in API group "apps" in the namespace "kubegpu"'
    )
    found = in_words(failed(status(403, "Forbidden", said), quoted), OPTIONS)
    assert found["cause"].startswith("The right 'patch' on 'daemonsets' in the namespace kubegpu")
    assert found["evidence"] == said and found["reason"] == "x"
    assert "Status" not in found["msg"] and "exception" not in found


def test_an_owner_of_a_field_and_an_object_that_is_not_valid_are_named():
    conflict = {"reason": "FieldManagerConflict", "field": ".spec.template",
                "message": 'conflict with "kubectl" using apps/v1'}  # fmt: skip
    found = in_words(failed(status(409, "Conflict", "x", causes=[conflict]), True), OPTIONS)
    assert "apply of daemonsets plugin sets fields" in found["cause"]
    assert "spec.template (owner: kubectl)" in found["cause"]
    found = in_words(failed(status(422, "Invalid", "name: it's wrong"), True), OPTIONS)
    assert "finds the object not valid" in found["cause"]
    assert found["evidence"] == "name: it's wrong"


@pytest.mark.parametrize(
    "result",
    [
        {"changed": True, "result": {}},
        {"failed": True, "msg": "Failed to find exact match for v1.Thing"},
        {"failed": True, "msg": "Failed to apply object: {'a': 1}"},
        {"failed": True, "msg": "Failed to apply object: b'{\\xff"},
        {"failed": True},
    ],
)
def test_other_results_are_left_as_they_are(result):
    assert in_words(result, OPTIONS) == result


def applied(kind, changed):
    return {"changed": changed, "result": {"kind": kind, "metadata": {"name": "plugin"}}}


def test_only_the_kinds_that_differ_are_named():
    several = [applied("ServiceAccount", False), applied("DaemonSet", True)]
    assert changed_kinds({"changed": True, "result": {"results": several}}) == ["DaemonSet"]
    assert changed_kinds(applied("DaemonSet", True)) == ["DaemonSet"]
    assert changed_kinds(applied("DaemonSet", False)) == []
    # A removal has objects without a kind.
    assert changed_kinds({"changed": True, "result": {"results": [{"changed": True}]}}) == []

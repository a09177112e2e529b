# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which objects the role gpu_kubernetes_objects applies in which call, and what it says of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

ROLE = Path(__file__).parents[3] / "roles" / "gpu_kubernetes_objects"
PREFIX = "gpu_kubernetes_objects_"
LOADER = DataLoader()

NAMESPACE = {"kind": "Namespace", "metadata": {"name": "kubegpu"}}
RIGHTS = {"kind": "ClusterRole", "metadata": {"name": "kubegpu"}}
DAEMONSET = {"kind": "DaemonSet", "metadata": {"name": "plugin", "namespace": "kubegpu"}}
OBJECTS = [NAMESPACE, RIGHTS, DAEMONSET]


def value(name, check=False, private=None, **options):
    known = {"ansible_check_mode": check}
    for folder in ("defaults", "vars"):
        path = str(ROLE / folder / "main.yml")
        known.update(LOADER.load_from_file(path, trusted_as_template=True))
    known.update({PREFIX + option: given for option, given in options.items()})
    known.update({f"__{PREFIX}{part}": given for part, given in (private or {}).items()})
    text = trust_as_template("{{ __" + PREFIX + name + " }}")
    return Templar(LOADER, variables=known).template(text)


def calls(**known):
    return value("first", **known), value("rest", **known), value("predicted", **known)


@pytest.mark.parametrize("check", [True, False])
def test_all_is_one_call_where_the_namespace_exists(check):
    there = {"present": OBJECTS, "existing": [NAMESPACE]}
    assert calls(check=check, **there) == ([], OBJECTS, False)


def test_a_namespace_that_does_not_exist_comes_first_and_the_rest_is_predicted():
    new = {"present": OBJECTS}
    first, rest = [NAMESPACE, RIGHTS], [DAEMONSET]
    assert calls(**new) == (first, rest, False)
    assert calls(check=True, **new) == (first, rest, True)
    assert calls(dry_run=True, **new) == (first, rest, True)


def test_a_secret_comes_before_the_objects_that_use_it():
    known = {"present": OBJECTS, "existing": [NAMESPACE], "secret": {"kind": "Secret"}}
    assert calls(**known) == ([NAMESPACE, RIGHTS], [DAEMONSET], False)


def test_a_namespace_that_a_role_before_makes_is_predicted_once():
    new = {"check": True, "present": OBJECTS}
    assert value("new_namespaces", **new) == ["kubegpu"]
    assert calls(private={"promised": ["kubegpu"]}, **new) == ([], [RIGHTS, DAEMONSET], True)
    assert calls(private={"promised": ["other"]}, **new) == ([NAMESPACE, RIGHTS], [DAEMONSET], True)
    # In a run that is no prediction the namespace exists by then.
    assert value("new_namespaces", present=OBJECTS) == []


def test_a_removal_alone_predicts_nothing():
    assert calls(check=True, absent=OBJECTS) == ([], [], False)


def answer(name, changed):
    return {"changed": changed, "result": {"kind": "DaemonSet", "metadata": {"name": name}}}


@pytest.mark.parametrize(
    ("results", "names"),
    [
        ([], []),
        ([answer("plugin", False), answer("discovery", False)], []),
        ([answer("plugin", False), answer("discovery", True)], ["discovery"]),
        # One call for all objects answers in one.
        ([{"changed": True, "result": {"results": [answer("plugin", True)]}}], ["plugin"]),
    ],
)
def test_which_daemonsets_were_changed(results, names):
    found = value("daemonsets", private={"applied": {"results": results}})
    assert [one["metadata"]["name"] for one in found] == names


def test_which_kinds_differ():
    tried = {"begun": {"results": [{"kinds": ["Namespace"]}, {"skipped": True}]},
             "applied": {"results": [{"kinds": ["DaemonSet"]}]}}  # fmt: skip
    there = {"present": OBJECTS, "existing": [NAMESPACE]}
    known = {**tried, "login": {"changed": False}}
    plan = {"predicted": False, "rest": OBJECTS}
    assert value("kinds", private=known, plan=plan, **there) == ["Namespace", "DaemonSet"]
    # What the API server cannot try yet is all new; a secret's answer is censored.
    known = {"begun": tried["begun"], "login": {"changed": True}}
    plan = {"predicted": True, "rest": [DAEMONSET]}
    assert value("kinds", private=known, plan=plan, **there) == [
        "Namespace", "Secret", "DaemonSet",
    ]  # fmt: skip

# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The record of a node: what a release restores, and what it leaves."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.names import KEEP_NODE
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.pause import PAUSE
from ansible_collections.kubegpu.nodes.plugins.module_utils._maintenance.record import (
    cordon,
    find_obstacle,
    read_node,
    read_record,
    release,
    view,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._maintenance.types import (
    RECORD,
    Request,
)

NOW = "2026-11-23T12:00:00Z"


def request(**options):
    state, run = options.pop("state", "cordoned"), options.pop("run", "r1")
    return Request((), state, run, **options)


def node(**more):
    meta = {"name": "n1", "resourceVersion": "7", "labels": {"a": "b"}}
    return {"metadata": meta, "spec": more, "status": {}}


def merge(data, patch):
    """Return an object after a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    merged = copy.deepcopy(data) if isinstance(data, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def act(data, patch):
    return data if patch is None else merge(data, patch)


def cordoned(data, **options):
    return act(data, cordon(read_node(data), request(**options), NOW))


def essence(data):
    """Return what a maintenance may change, absent and empty being the same."""
    meta, spec = data["metadata"], data["spec"]
    return (
        bool(spec.get("unschedulable")),
        meta.get("labels") or {},
        meta.get("annotations") or {},
        {name: value for name, value in spec.items() if name != "unschedulable"},
    )


def test_cordon_and_record_are_in_one_patch_that_has_the_version():
    patch = cordon(read_node(node()), request(reason="fans", pause=True), NOW)
    annotations = patch["metadata"].pop("annotations")
    assert annotations[KEEP_NODE] == "true"
    assert json.loads(annotations[RECORD]) == {
        "run": "r1",
        "reason": "fans",
        "since": NOW,
        "was_unschedulable": False,
        "paused": True,
        "kept_before": "",
    }
    assert patch == {
        "metadata": {"resourceVersion": "7", "labels": {PAUSE: "maintenance"}},
        "spec": {"unschedulable": True},
    }


def test_a_node_that_is_as_wanted_needs_no_patch():
    once = cordoned(node(), reason="fans")
    assert cordon(read_node(once), request(), "later") is None
    # Whoever lifted the cordon meanwhile did not end the maintenance.
    del once["spec"]["unschedulable"]
    assert cordon(read_node(once), request(), "later")["spec"] == {"unschedulable": True}


def test_a_run_that_takes_over_keeps_what_was_before():
    first = cordoned(node(unschedulable=True), pause=True)
    second = cordoned(first, run="r2", take_over=True)
    record = read_record(read_node(second))
    assert (record.run, record.since) == ("r2", NOW)
    assert record.was_unschedulable and record.paused


def test_a_pause_ends_while_the_node_stays_cordoned():
    """A call for a cordon without a pause, and not the drain in between."""
    paused = cordoned(node(), pause=True)
    assert cordon(read_node(paused), request(state="drained"), "later") is None
    open_again = cordoned(paused)
    assert PAUSE not in open_again["metadata"]["labels"] and open_again["spec"]["unschedulable"]
    record = read_record(read_node(open_again))
    assert (record.run, record.since, record.paused) == ("r1", NOW, False)
    # Meanwhile another one has set it for a reason of its own.
    paused["metadata"]["labels"][PAUSE] = "mig"
    theirs = cordoned(paused)
    assert theirs["metadata"]["labels"][PAUSE] == "mig"
    assert not read_record(read_node(theirs)).paused


def test_nobodys_node_is_not_released():
    assert release(read_node(node(unschedulable=True))) is None


def test_what_others_changed_meanwhile_stays():
    data = cordoned(node(), pause=True)
    data["metadata"]["labels"][PAUSE] = "mig"
    del data["spec"]["unschedulable"]
    patch = release(read_node(data))
    assert "labels" not in patch["metadata"] and "spec" not in patch


@pytest.mark.parametrize(
    "text",
    ["", "x", "[]", "{}", '{"run": "r1"}', '{"run": "r1", "was_unschedulable": 1, "paused": true}',
     '{"run": 1, "was_unschedulable": true, "paused": true}', "[" * 100000,
     '{"run": "r1", "was_unschedulable": true, "paused": true, "kept_before": 1}'],
)  # fmt: skip
def test_a_record_that_is_none_of_ours_stops(text):
    data = node()
    data["metadata"]["annotations"] = {RECORD: text}
    broken = read_node(data)
    with pytest.raises(InputError, match="kubectl annotate node n1"):
        read_record(broken)
    assert find_obstacle(broken, request()).code == "record_unreadable"
    assert find_obstacle(broken, request(take_over=True)).code == "record_unreadable"
    assert view(broken)["run"] is None


def test_another_run_is_named_with_reason_and_time():
    held = read_node(cordoned(node(), run="r2", reason="fans"))
    finding = find_obstacle(held, request())
    assert finding.code == "held_by_other"
    assert "by the run r2 (fans), since 2026-11-23T12:00:00Z" in finding.cause
    assert "take_over: true" in finding.next_step
    assert find_obstacle(held, request(run="r2")) is None
    assert find_obstacle(held, request(take_over=True)) is None


def test_readiness_is_read_with_its_message():
    data = node()
    data["status"] = {"conditions": [{"type": "Ready", "status": "Unknown", "message": "silent"}]}
    assert (read_node(data).ready, read_node(data).ready_message) == (False, "silent")
    data["status"]["conditions"][0]["status"] = "True"
    assert (read_node(data).ready, read_node(data).ready_message) == (True, "")


CALLS = st.lists(
    st.fixed_dictionaries({"pause": st.booleans(), "reason": st.sampled_from(["", "a", "b"])}),
    min_size=1,
    max_size=4,
)


def keep(data, value):
    """Set the annotation for cluster-autoscaler as an administrator does; None removes it."""
    return merge(data, {"metadata": {"annotations": {KEEP_NODE: value}}})


def kept(data):
    return (data["metadata"].get("annotations") or {}).get(KEEP_NODE)


@pytest.mark.parametrize("value", [None, "false", "true", "yes"])
def test_the_autoscaler_leaves_a_node_while_it_is_ours(value):
    held = cordoned(keep(node(), value))
    assert kept(held) == "true" and view(read_node(held))["scale_down_disabled"]
    # A run that was killed leaves cordon, record and annotation, which the next one takes back.
    again = cordoned(held, run="r2", take_over=True)
    assert kept(again) == "true"
    assert kept(act(again, release(read_node(again)))) == value


@pytest.mark.parametrize("value", [None, "false"])
def test_what_an_administrator_sets_meanwhile_stays(value):
    held = keep(cordoned(node()), value)
    assert cordon(read_node(held), request(), "later") is None
    assert kept(act(held, release(read_node(held)))) == value


def test_a_node_that_an_earlier_release_holds_gets_the_annotation():
    record = {"run": "r1", "was_unschedulable": False, "paused": False}
    data = merge(
        node(unschedulable=True), {"metadata": {"annotations": {RECORD: json.dumps(record)}}}
    )
    held = cordoned(data)
    assert kept(held) == "true" and read_record(read_node(held)).run == "r1"
    released = act(held, release(read_node(held)))
    assert kept(released) is None and "unschedulable" not in released["spec"]
    # Released without another cordon, it is as that release left it.
    assert kept(act(keep(data, "true"), release(read_node(keep(data, "true"))))) == "true"


@given(
    st.sampled_from([None, False, True]),
    st.sampled_from([None, "mig", "maintenance"]),
    st.sampled_from([None, "true", "false", "x"]),
    CALLS,
)
def test_a_node_is_after_its_release_as_before(unschedulable, pause, kept_from, calls):
    data = node(podCIDR="10.0.0.0/24")
    if unschedulable is not None:
        data["spec"]["unschedulable"] = unschedulable
    if pause:
        data["metadata"]["labels"][PAUSE] = pause
    if kept_from:
        data["metadata"]["annotations"] = {KEEP_NODE: kept_from}
    before = copy.deepcopy(data)
    for options in calls:
        data = cordoned(data, **options)
        seen = view(read_node(data))
        assert seen["unschedulable"] and seen["run"] == "r1"
        assert not options["reason"] or seen["reason"] == options["reason"]
        assert cordon(read_node(data), request(**options), "later") is None
    after = act(data, release(read_node(data)))
    assert essence(after) == essence(before)
    assert release(read_node(after)) is None

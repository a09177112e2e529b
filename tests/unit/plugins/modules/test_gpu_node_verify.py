# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``gpu_node_verify`` as Ansible starts it: on this machine, which has no GPU of its own."""

from __future__ import annotations

import json
import signal

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._host.signals import (
    SIGNALS,
    Interrupted,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.verification import (
    verification_due,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify import verify
from ansible_collections.kubegpu.nodes.plugins.modules import gpu_node_verify
from tests.unit.module_process import run_module


@pytest.fixture(autouse=True)
def signals():
    """The module listens to signals; this process is no module."""
    kept = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.fixture
def no_gpu(monkeypatch):
    """Whatever machine runs the tests."""
    facts = {"gpus": [], "os": {"hostname": "here"}}
    monkeypatch.setattr(verify, "gather", lambda *_given, **_options: facts)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"image_archive": "/nowhere.tar"}, "no file /nowhere.tar"),
        ({"expect": "("}, "not a regular expression"),
        ({"devices": ["all; reboot"]}, "devices is"),
        ({"devices": []}, "devices is"),
        ({"timeout": 0}, "timeout is 0"),
        ({"layers": ["driver"]}, "layers"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_is_asked(arguments, word):
    answer = run_module(gpu_node_verify.main, arguments)
    assert answer["failed"] and word in answer["msg"]


@pytest.mark.parametrize("check", [True, False])
def test_a_node_without_a_gpu_is_told_as_that(no_gpu, check):
    answer = run_module(gpu_node_verify.main, {"layers": ["pci", "nvml"]}, check=check)
    assert answer["ok"] and not answer["changed"] and not answer["failed_layers"]
    assert [(one["layer"], one["ok"], one["code"]) for one in answer["layers"]] == [
        ("pci", None, "no_gpu"),
        ("nvml", None, "no_gpu"),
    ]
    assert answer["layers"][0]["node"] == "here"
    assert answer["ansible_facts"]["gpu_node"]["gpus"] == []


def test_the_mark_that_a_node_has_to_be_verified(tmp_path, monkeypatch):
    monkeypatch.setattr(verify, "gather", None)
    place = tmp_path / "record" / "state.json"

    def run(state, **options):
        given = {"state": state, "state_path": str(place)}
        return run_module(gpu_node_verify.main, given, **options)

    def read():
        record = json.loads(place.read_text()) if place.exists() else {}
        return verification_due(record)

    assert not run("passed")["changed"] and not place.parent.exists()
    told = run("due", check=True, diff=True)
    assert told["changed"] and told["diff"]["after"] == {"verification": "due"} and not read()
    assert run("due") == told or "diff" not in run("due")
    assert read() is True and not run("due")["changed"]
    assert run("passed", check=True)["changed"] and read() is True
    assert run("passed")["changed"] and read() is False
    # Nothing else is recorded: the record and its folder are gone.
    assert not place.parent.exists()


def test_a_record_that_only_root_reads_says_nothing():
    assert verification_due(None) is None


def test_a_signal_is_no_ordinary_error_and_is_told(monkeypatch):
    def stopped(*_arguments, **_options):
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(verify, "gather", stopped)
    answer = run_module(gpu_node_verify.main, {})
    assert answer["failed"] and "Stopped by SIGTERM" in answer["msg"]
    assert not issubclass(Interrupted, Exception)

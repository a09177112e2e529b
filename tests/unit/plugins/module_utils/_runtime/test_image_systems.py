# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A runtime is configured on an image that keeps /etc, and refused on one that does not."""

from __future__ import annotations

import inspect
from types import SimpleNamespace

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import Refusal
from ansible_collections.kubegpu.nodes.plugins.module_utils._distro.image_data import BY_KEY
from ansible_collections.kubegpu.nodes.plugins.module_utils._runtime import module as shared
from ansible_collections.kubegpu.nodes.plugins.modules import (
    containerd_runtime,
    crio_runtime,
    docker_runtime,
)
from tests.unit.fixtures.node_facts import node

KEPT = {"rhcos", "scos", "ublue", "transactional-update", "rpm-ostree", "bootc"}


def applied(monkeypatch, key, state="present", *, changed=True, check=False):
    """Return the calls of a runtime, on a system of this kind."""
    system = {**node()["os"], "id": "x", "image": key and "ID=x in os-release",
              "image_system": key}  # fmt: skip
    monkeypatch.setattr(shared, "read_os", lambda _reader: system)
    done = []

    def runtime(predicts):
        done.append("predicted" if predicts else "applied")
        return SimpleNamespace(changed=changed)

    module = SimpleNamespace(params={"state": state}, check_mode=check)
    shared.apply_runtime(module, None, runtime)
    return done


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("key", sorted(BY_KEY))
def test_only_an_image_that_keeps_etc_is_changed(monkeypatch, key, check):
    last = ["predicted" if check else "applied"]
    if key in KEPT:
        assert applied(monkeypatch, key, check=check) == last
        return
    with pytest.raises(Refusal) as raised:
        applied(monkeypatch, key, check=check)
    row = BY_KEY[key]
    assert "is an image" in raised.value.cause and "container runtime" in raised.value.cause
    assert raised.value.next_step == f"{row.toolkit or row.software}."
    # What is as requested remains, and what this collection wrote can be removed.
    assert applied(monkeypatch, key, changed=False, check=check) == ["predicted", *last]
    assert applied(monkeypatch, key, "absent", check=check) == last


def test_no_other_system_is_refused(monkeypatch):
    assert applied(monkeypatch, None) == ["applied"]


@pytest.mark.parametrize("module", [containerd_runtime, crio_runtime, docker_runtime])
def test_each_module_asks(module):
    assert "apply_runtime(" in inspect.getsource(module.main)

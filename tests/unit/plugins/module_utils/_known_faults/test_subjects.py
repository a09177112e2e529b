# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each GPU that a text names has its own finding, and facts of another form are refused."""

from __future__ import annotations

import time

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.explain import explain
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.predicates import (
    PREDICATES,
)

MISMATCH = "Failed to initialize NVML: Driver/library version mismatch"
SEVERAL = "NVRM: Xid (PCI:0000:%s:00): %d, pid=1, name=x, said"


def lines(*xids):
    return "\n".join(SEVERAL % one for one in xids)


def subjects(text, facts=None):
    return [(one.code, one.subject.gpu) for one in explain(text, facts)]


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("NVRM: Xid (PCI:{}): 48, pid=1, name=x, DBE", "gpu_memory_error"),
        ("NVRM: Xid (PCI:{}): 31, pid=1, name=x, MMU Fault", "xid"),
        ("NVRM: Xid (PCI:{}): 79, GPU has fallen off the bus.", "gpu_lost"),
        ("amdgpu {}: amdgpu: ring gfx_0.0.0 timeout, signaled seq=1", "drm_ring_timeout"),
        ("amdgpu {}: amdgpu: GPU reset(1) succeeded!", "drm_gpu_reset"),
        ("xe {}: [drm] Tile0: GT0: Engine reset: engine_class=ccs", "drm_engine_reset"),
        ("nvidia-nvswitch0: SXid (PCI:{}): 20034, Fatal, Link 30", "nvswitch_error"),
    ],
)
def test_two_gpus_with_one_fault_are_two_findings(message, code):
    gpus = ["0000:07:00.0", "0000:0a:00.0"]
    text = "\n".join(message.format(gpu) for gpu in [*gpus, gpus[0], gpus[1]])
    assert subjects(text) == [(code, gpu) for gpu in gpus]


def test_a_gpu_that_no_finding_names_keeps_its_worse_xids_only():
    found = subjects(lines(("07", 48), ("0a", 31), ("0b", 109), ("0c", 110)))
    assert ("gpu_memory_error", "0000:07:00") in found
    assert "0000:0a:00" not in {gpu for _code, gpu in found}
    assert {"0000:0b:00", "0000:0c:00"} <= {gpu for _code, gpu in found}


def test_the_number_of_gpus_and_the_time_are_bounded():
    text = "\n".join(SEVERAL % (f"{number:04x}", 48) for number in range(20_000))
    begin = time.monotonic()
    assert 1 < len(explain(text)) <= 40
    assert time.monotonic() - begin < 10


def test_the_recovery_that_the_driver_asks_for_decides_and_names_the_error_before_it():
    changed = "NVRM: Xid (PCI:0000:07:00): 154, GPU recovery action changed from 0x0 (None) to %s"
    text = lines(("07", 31)) + "\n" + changed % "0x1 (GPU Reset Required)"
    (found,) = explain(text)
    assert found.code == "recovery_action" and "Xid 31" in found.cause
    assert "nvidia-smi --gpu-reset" in found.next_step
    (worse,) = explain(text + "\n" + changed % "0x2 (Node Reboot Required)")
    assert "Node Reboot Required" in worse.cause and "--gpu-reset" not in worse.next_step
    assert [one.code for one in explain(text + "\n" + changed % "0x0 (None)")] == ["xid"]


def test_the_alternatives_of_a_finding_are_other_codes():
    (found,) = explain(MISMATCH)
    assert found.confidence == "possible" and found.alternatives == ()


def test_the_versions_of_a_text_count_like_facts():
    shown = (
        f"{MISMATCH}\nNVML library version: 580.178\nNVRM version: NVIDIA UNIX x86_64 Kernel "
        "Module  580.173.02  Tue Jun 23 08:38:17 UTC 2026\n"
    )
    (found,) = explain(shown)
    assert "580.173.02" in found.evidence and "580.178" in found.evidence
    assert "container" not in found.cause
    # NVML leaves out the last part of its version.
    (same,) = explain(shown.replace("580.178", "580.173"))
    assert "the libraries of the node" not in same.evidence


@pytest.mark.parametrize(
    "facts",
    [
        *([], "gpu_node", 5, [1]),
        {"driver": "580"},
        {"driver": ["loaded"]},
        {"gpus": 5},
        {"gpus": "abc"},
        {"gpus": [1]},
        {"os": "Debian"},
        {"container_toolkit": [1], "driver": 3},
    ],
)
def test_facts_of_another_form_are_refused_with_one_error_or_not_needed(facts):
    """A part that no rule asks for is not read."""
    text = f"{MISMATCH}\nFailed to initialize NVML: Unknown Error\nFound no NVIDIA driver on your "
    with pytest.raises(InputError, match="not a fact gpu_node"):
        explain(f"{text}system. docker: /dev/kfd: no such file or directory", facts)


@pytest.mark.parametrize("name", sorted(PREDICATES))
def test_no_predicate_fails_without_facts(name):
    assert PREDICATES[name]({}) in (True, False, None)

# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.vgpu_licence import (
    read_licence,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.common import (
    unlicensed_guest,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.explain import (
    explain,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.licence import (
    licence_fault,
    wait_for_licence,
)

BUSY = "CUDA error: CUDA-capable device(s) is/are busy or unavailable"
END = datetime(2026, 7, 7, 16, 1, 44, tzinfo=timezone.utc).timestamp()


def licence(status):
    return read_licence("VGPU", "NVIDIA Virtual Compute Server", status)


def gpu(status=None, guest=True):
    return {
        "address": "0002:00:00.0",
        "vendor": "nvidia",
        "vgpu": {"guest": guest, "licence": licence(status) if status else None},
    }


def test_a_guest_without_a_licence():
    found = licence_fault("0002:00:00.0", licence("Unlicensed (Restricted)"), END)
    assert found.code == "vgpu_unlicensed" and "reduces its performance" in found.cause
    assert "Unlicensed (Restricted) (NVIDIA Virtual Compute Server)" in found.evidence
    for word in ("nvidia-gridd", "gridd.conf", "ClientConfigToken", "clock", "reachable"):
        assert word in found.next_step
    grace = licence_fault("0002:00:00.0", licence("Unlicensed (Unrestricted)"), END)
    assert grace.code == "vgpu_unlicensed" and "still has its full performance" in grace.cause


@pytest.mark.parametrize(
    ("status", "now", "code"),
    [
        # A lease is renewed long before its end: one that is near shows nothing.
        ("Licensed (Expiry: 2026-7-7 16:1:44 GMT)", END - 60, None),
        ("Licensed (Expiry: 2026-7-7 16:1:44 GMT)", END + 60, "vgpu_licence_expired"),
        ("Licensed (Expiry: 2026-7-7 16:1:44 GMT)", 0, None),
        ("Licensed (Expiry: Permanent)", END, None),
        ("Unknown", END, None),
    ],
)
def test_a_guest_with_one(status, now, code):
    found = licence_fault("a", licence(status), now)
    assert (found and found.code) == code


def test_none_is_no_fault():
    assert licence_fault("a", None, END) is None
    assert licence_fault("a", dict.fromkeys(("product", "status", "state", "expiry")), END) is None
    assert unlicensed_guest([gpu(), gpu("Licensed")]) is None
    assert unlicensed_guest([gpu(), gpu("Unlicensed")]).code == "vgpu_unlicensed"


def test_a_busy_gpu_of_an_unlicensed_guest():
    (found,) = explain(BUSY, {"gpus": [gpu("Unlicensed (Restricted)")]})
    assert found.code == "vgpu_unlicensed"
    assert "busy or unavailable" in found.evidence and "License Status" in found.evidence


@pytest.mark.parametrize(
    ("gpus", "possible"),
    [
        ([gpu(guest=False)], False),
        ([gpu("Licensed")], False),
        # Full performance: the licence is not the cause now.
        ([gpu("Unlicensed (Unrestricted)")], True),
        ([gpu()], True),
        ([gpu(guest=None)], True),
        ([gpu(guest=False), gpu()], True),
        ([], True),
    ],
)
def test_a_busy_gpu_where_facts_do_not_decide(gpus, possible):
    (found,) = explain(BUSY, {"gpus": gpus})
    assert found.code == "gpu_busy" and found.cause.startswith("Another program holds")
    assert ("without a licence" in found.cause) == possible
    assert ("License Status" in found.next_step) == possible


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def waited(timeout, *answers):
    clock, given = Clock(), list(answers)

    def devices():
        answer = given.pop(0) if len(given) > 1 else given[0]
        return [{"address": "a", "licence": one} for one in answer]

    return wait_for_licence(devices, timeout, clock, clock.sleep)


def test_a_licence_is_waited_for():
    no, yes = licence("Unlicensed (Unrestricted)"), licence("Licensed")
    found = waited(60, [no, yes], [no, yes], [yes, yes])
    assert (found.finding(), found.seconds) == (None, 6)
    found = waited(10, [no])
    assert found.finding().evidence.endswith("seen for 12 s")
    assert waited(0, [no]).seconds == 0
    # A driver that does not tell it, or does not answer any more, ends the wait.
    assert waited(60, [None]).finding() is None and waited(60, [no], []).seconds == 3


def test_partial_facts_of_a_gpu_decide_nothing():
    for part in ({"vendor": "nvidia"}, {"vendor": "nvidia", "address": "0000:01:00.0"}, {}):
        (found,) = explain(BUSY, {"gpus": [part]})
        assert (found.code, found.confidence) == ("gpu_busy", "possible")
        explain("NVRM: The NVIDIA GPU 0000:00:07.0 (PCI ID: 10de:2236)\n"
                "NVRM: installed in this system is not supported by the\n"
                "NVRM: NVIDIA 535.129.03 driver release.", {"gpus": [part]})  # fmt: skip


_LOST = (
    "nvidia-gridd[812]: Valid GRID license not found. GPU features and performance are restricted."
)
_GOT = "nvidia-gridd[812]: License acquired successfully. (Info: 192.0.2.10, NVIDIA AI Enterprise)"


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (_LOST, ["vgpu_unlicensed"]),
        # The daemon says so at each start, before it asks the server.
        (f"{_LOST}\n{_GOT}", []),
        (f"{_GOT}\n{_LOST}", ["vgpu_unlicensed"]),
        # Another program that has licences of media.
        ("player: Failed to acquire license from proxy.example", []),
        ("    License Status                    : Licensed (Expiry: 2026-7-7 16:1:44 GMT)", []),
        ("    License Status                    : N/A", []),
    ],
)
def test_the_journal_of_the_daemon(text, codes):
    assert [one.code for one in explain(text)] == codes


_NO_LICENCE = "Failed to acquire license from dls.example (Info: NVIDIA Virtual Compute Server - "


@pytest.mark.parametrize(
    ("text", "cause", "step"),
    [
        (f"{_NO_LICENCE}Error: SSL peer certificate or SSH remote key was not OK)",
         "does not accept the certificate of the licence server dls.example",
         "openssl s_client -connect dls.example:443"),
        (f"{_NO_LICENCE}Error: The allowed time to process response has expired)",
         "The clocks of this node and of the licence server dls.example differ", "timedatectl"),
        (f"{_NO_LICENCE}Error: Clock windback has been detected)", "The clocks of", "timedatectl"),
        (f"{_NO_LICENCE}Error: No pool features found for : NVIDIA Virtual Compute Server)",
         "has no licence of the kind NVIDIA Virtual Compute Server left", "release leases"),
        (f"{_NO_LICENCE}Error: insufficient number of licenses)",
         "has no licence of the kind NVIDIA Virtual Compute Server left", "release leases"),
        ("nvidia-gridd[5]: Unable to fetch the client configuration token file",
         "No client configuration token", "token_path"),
        ("nvidia-gridd[5]: Failed to decode signature from token received",
         "is not a client configuration token", "Download the client configuration token"),
        ("nvidia-gridd[5]: Invalid feature type requested", "FeatureType in /etc/nvidia/gridd.conf",
         "FeatureType=1"),
        ("nvidia-gridd[5]: Failed to acquire license from dls.example", "dls.example",
         "Check the token"),
    ],
)  # fmt: skip
def test_the_reason_that_the_daemon_names_decides_the_next_step(text, cause, step):
    (found,) = explain(text)
    assert (found.code, found.severity) == ("vgpu_unlicensed", "error")
    assert cause in found.cause and step in found.next_step
    # The text is of the journal already.
    assert "journalctl" not in found.next_step
    assert explain(f"{text}\n{_GOT}") == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Configuration parameter ( ServerAddress  FeatureType) not set", True),
        ("Unable to open directory /etc/nvidia/license (No such file or directory)", True),
        # So says a guest that gets its licence by a token.
        ("Configuration parameter ( ServerAddress  ) not set", False),
    ],
)
def test_a_daemon_without_settings_may_be_right(text, found):
    text = f"nvidia-gridd[2986]: {text}"
    assert [(one.severity, one.confidence) for one in explain(text)] == (
        [("warning", "possible")] if found else []
    )
    assert explain(f"{text}\n{_GOT}") == []


@pytest.mark.parametrize(
    ("status", "severity"),
    [
        ("Unlicensed (Restricted)", "error"),
        ("Unlicensed", "error"),
        ("Unlicensed (Unrestricted)", "warning"),
    ],
)
def test_a_single_line_of_nvidia_smi(status, severity):
    (found,) = explain(f"License Status : {status}")

    assert (found.code, found.severity) == ("vgpu_unlicensed", severity)
    assert "gridd.conf" in found.next_step and status in found.evidence

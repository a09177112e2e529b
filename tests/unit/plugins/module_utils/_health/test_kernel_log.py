# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import time
import tracemalloc

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._health import kernel_log
from ansible_collections.kubegpu.nodes.plugins.module_utils._health.kernel_log import KernelLog
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.kernel_events import (
    address_of,
)
from tests.unit.fixtures.health_node import A100, BOOTED, OTHER, journal, recovery, xid


def read(text, booted=None, boot=0):
    log = KernelLog(boot, booted)
    log.feed(text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text)
    log.close()
    return log.events()


# A line, and what it is: kind, address, number, variant, programs, MIG instances.
LINES = [
    (
        "NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the "
        "bus.",
        ("xid", "0000:05:00.0", 79, "", (), ()),
    ),
    (
        "NVRM: Xid (PCI:0000:05:00 GPU-I:02): 94, pid=7194, name=python, Contained: CE User "
        "Channel (0x9). RST: No, D-RST: No",
        ("xid", "0000:05:00.0", 94, "", ("python",), ("GPU-I:02",)),
    ),
    (
        "NVRM: Xid (PCI:0000:05:00 GPU-I:02 GPU-CI:01): 43, pid=7, name=a b, Ch 00000008",
        ("xid", "0000:05:00.0", 43, "", ("a b",), ("GPU-I:02 GPU-CI:01",)),
    ),
    (
        "NVRM: Xid (0000:03:00): 14, Channel 00000001",
        ("xid", "0000:03:00.0", 14, "", (), ()),
    ),
    (
        "NVRM: Xid (PCI:0000:9b:00): 149, NETIR_LINK_EVT Fatal   XC0 i0 Link 08 (0x004505c6)",
        ("xid", "0000:9b:00.0", 149, "fatal", (), ()),
    ),
    (
        "NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2)",
        ("xid", "0018:01:00.0", 145, "non-fatal", (), ()),
    ),
    (
        "NVRM: Xid (PCI:0018:01:00): 154, GPU recovery action changed from 0x1 (GPU Reset "
        "Required) to 0x0 (None)",
        ("xid", "0018:01:00.0", 154, "none", (), ()),
    ),
    (
        "NVRM: Xid (PCI:0018:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 "
        "(Node Reboot Required)",
        ("xid", "0018:01:00.0", 154, "", (), ()),
    ),
    (
        "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted "
        "PRIV error (First)",
        ("sxid", "0000:05:00.0", 12028, "non-fatal", (), ()),
    ),
    (
        "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
        ("sxid", "0000:c1:00.0", 20034, "fatal", (), ()),
    ),
    (
        "NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.",
        ("driver", "0000:18:00.0", 0, "gpu_lost", (), ()),
    ),
    (
        "NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x26:0xffff:1482)",
        ("driver", "0000:01:00.0", 0, "gpu_init_failed", (), ()),
    ),
    (
        "NVRM: The NVIDIA probe routine was not called for 1 device(s).",
        ("driver", "", 0, "gpu_probe_failed", (), ()),
    ),
    (
        "amdgpu 0000:03:00.0: amdgpu: GPU reset begin!",
        ("kernel_driver", "0000:03:00.0", 0, "kernel_driver_errors", (), ()),
    ),
    (
        # A domain of Hyper-V.
        "amdgpu c05b:00:00.0: amdgpu: GPU reset begin!",
        ("kernel_driver", "c05b:00:00.0", 0, "kernel_driver_errors", (), ()),
    ),
    (
        "xe 0000:03:00.0: [drm] *ERROR* GT0: timed out",
        ("kernel_driver", "0000:03:00.0", 0, "kernel_driver_errors", (), ()),
    ),
    (
        "INFO: task nvidia-smi:4242 blocked for more than 120 seconds.",
        ("hung_task", "", 0, "", ("nvidia-smi",), ()),
    ),
]


@pytest.mark.parametrize("stamp", ["", f"{BOOTED + 7}.500000 node1 kernel: ", "[    7.500000] "])
@pytest.mark.parametrize(("line", "expected"), LINES, ids=[line[:40] for line, _what in LINES])
def test_each_form_of_a_line(stamp, line, expected):
    (event,) = read(f"{stamp}{line}\n", BOOTED)
    found = (event.kind, event.address, event.number, event.variant)
    assert (*found, event.programs, event.instances) == expected
    assert event.sample == line and event.count == 1
    time_of_line = BOOTED + 7.5 if stamp else None
    assert event.first == event.last == time_of_line


@pytest.mark.parametrize(
    "line",
    [
        "usb 1-1: new device",
        "i915 0000:00:02.0: [drm] Initialized",
        "INFO: task cp:1 blocked for more than 120 seconds.",
        "audit: comm=\"NVRM: Xid (PCI:0000:05:00): 79, \"",
        "NVRM: loading NVIDIA UNIX Open Kernel Module",
        "NVRM: Xid (PCI:0000:05:00): many, ",
        "[drm] NVRM: Xid (PCI:0000:05:00): 79, not at the begin",
    ],
)  # fmt: skip
def test_what_is_no_event(line):
    assert read(journal((1, line))) == ()


# Both wordings of the driver, as entries of the journal and as lines of dmesg.
MISMATCH = [
    "1700000001.000000 n kernel: NVRM: API mismatch: the client has the version 580.95.05, but\n"
    "                            NVRM: this kernel module has the version 580.82.07.  Please\n",
    "1700000001.000000 n kernel: NVRM: API mismatch: the client 'nvidia-smi' (pid 4242)\n"
    "                            NVRM: has the version 580.95.05, but\n"
    "                            NVRM: this kernel module has the version 580.82.07.\n",
    "[    1.000000] NVRM: API mismatch: the client 'nvidia-smi' (pid 4242)\n"
    "[    1.000000] NVRM: has the version 580.95.05, but\n"
    "[    1.000000] NVRM: this kernel module has the version 580.82.07.  Please\n",
]


@pytest.mark.parametrize("text", MISMATCH, ids=["before 595", "595", "dmesg"])
def test_libraries_of_another_version(text):
    (event,) = read(text * 3)
    assert (event.kind, event.count) == ("mismatch", 3)
    assert event.versions == ("libraries 580.95.05", "module 580.82.07")
    assert event.programs in ((), ("nvidia-smi",))


def test_equal_lines_are_counted():
    lines = [(seconds, xid(31, f"text {seconds}", name=f"p{seconds % 3}")) for seconds in range(9)]
    (event,) = read(journal(*lines))
    assert (event.count, event.first, event.last) == (9, BOOTED, BOOTED + 8)
    assert event.sample.endswith("text 8") and event.programs == ("p0", "p1", "p2")


def test_the_parts_of_the_log_may_end_anywhere():
    text = journal((1, xid(79)), (2, recovery("Reset")), (3, xid(31, gpu=OTHER))).encode()
    whole = read(text)
    assert len(whole) == 3
    for size in (1, 7, 64):
        log = KernelLog()
        for begin in range(0, len(text), size):
            log.feed(text[begin : begin + size])
        log.close()
        assert log.events() == whole


def test_secrets_and_control_characters_are_not_shown():
    text = "\x1b[2J http://svc:hunter2@host/ \udcff"
    (event,) = read(journal((1, xid(13, text, name="x\x07y"))))
    assert "hunter2" not in event.sample and "\x1b" not in event.sample
    assert event.programs == ("x\\x07y",)


def flood(count):
    """Yield parts of a log: each line is an Xid of another kind."""
    for number in range(count):
        address = f"{number % 7919:04x}:{number % 251:02x}:00.0"
        line = xid(number % 997, "y" * 200, gpu=address, name=f"program{number}")
        yield journal((number, line)).encode()


@pytest.mark.parametrize(
    "count", [9_000, pytest.param(100_000, marks=pytest.mark.full(why="more lines"))]
)
def test_a_boot_with_many_xids_takes_bounded_memory_and_says_so(count):
    log = KernelLog()
    tracemalloc.start()
    try:
        for part in flood(count):
            log.feed(part)
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40 << 20
    events = log.events()
    assert len(events) == kernel_log.MOST_EVENTS and log.overflowed and log.lines == count
    assert all(len(event.programs) <= kernel_log.MOST_NAMES for event in events)


def test_many_equal_xids_are_one_event():
    text = journal((1, xid(31, name="python"))).encode() * 30_000
    begin = time.process_time()
    (event,) = read(text)
    assert event.count == 30_000 and time.process_time() - begin < 20


@pytest.mark.full(why="50 MB")
@pytest.mark.parametrize("lines", ["ordinary", "one"])
def test_a_log_of_50_megabytes(lines):
    end = b"\n" if lines == "ordinary" else b""
    part = (journal((1, "usb 1-1: new high-speed device number 5 using xhci_hcd"))[:-1].encode()
            + end) * 1000  # fmt: skip
    log = KernelLog()
    begin = time.process_time()
    tracemalloc.start()
    try:
        for _number in range(50_000_000 // len(part)):
            log.feed(part)
        log.feed(b"\n" + journal((9, xid(79))).encode())
        log.close()
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    (event,) = log.events()
    assert event.number == 79 and peak < 10 << 20
    assert time.process_time() - begin < 120


def test_what_is_kept_does_not_depend_on_the_order(monkeypatch):
    monkeypatch.setattr(kernel_log, "MOST_EVENTS", 5)
    lines = [(number, xid(number, gpu=A100)) for number in range(40)] * 2
    found = {read(journal(*order)) for order in (lines, lines[::-1], lines[20:] + lines[:20])}
    (events,) = found
    assert [event.number for event in events] == [0, 1, 2, 3, 4]
    assert all(event.count == 2 for event in events)


def test_addresses():
    assert address_of("0000:05:00") == "0000:05:00.0"
    assert address_of("00000000:3B:00.1") == "0000:3b:00.1"
    assert address_of("05:00") == "0000:05:00.0"

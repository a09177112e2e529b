# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The findings of a kernel's log do not depend on the order of its lines, nor on how it is read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._health.judge import judge
from ansible_collections.kubegpu.nodes.plugins.module_utils._health.kernel_log import KernelLog
from ansible_collections.kubegpu.nodes.plugins.module_utils._health.types import (
    Node,
    PciGpu,
    Request,
    Smi,
)
from tests.unit.fixtures.health_node import A100, OTHER, journal, recovery, xid

GPUS = tuple(PciGpu(address, "nvidia", None, "nvidia") for address in (A100, OTHER))
ADDRESSES = st.sampled_from([A100, OTHER])
MESSAGES = st.one_of(
    st.builds(
        xid,
        st.sampled_from([13, 31, 43, 45, 48, 62, 63, 64, 74, 79, 94, 95, 119, 149, 171, 999]),
        st.sampled_from(["text", "Fatal XC0", "Non-fatal XC0", "GPU has fallen off the bus."]),
        gpu=ADDRESSES,
        name=st.sampled_from(["", "python", "train"]),
        mig=st.sampled_from(["", " GPU-I:02"]),
    ),
    st.builds(recovery, st.sampled_from(["None", "GPU Reset Required", "Drain P2P"]), ADDRESSES),
    st.sampled_from(
        [
            "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
            "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Non-fatal, Link 30 LTSSM Fault Up",
            "NVRM: API mismatch: the client 'train' (pid 7)",
            "NVRM: has the version 580.95.05, but",
            "NVRM: this kernel module has the version 580.82.07.",
            f"NVRM: GPU {A100}: RmInitAdapter failed! (0x26:0xffff:1482)",
            "INFO: task nvidia-smi:7 blocked for more than 120 seconds.",
            "usb 1-1: new device",
        ]
    ),
)
LINES = st.lists(st.tuples(st.integers(0, 200), MESSAGES), max_size=8)


def findings(lines, sizes=(1 << 20,)):
    log = KernelLog()
    text = journal(*lines).encode()
    while text:
        for size in sizes:
            log.feed(text[:size])
            text = text[size:]
    log.close()
    return judge(Node(GPUS, Smi("failed", 1, "590"), log.events()), Request())


@given(
    lines=LINES,
    random=st.randoms(use_true_random=False),
    sizes=st.lists(st.integers(1, 90), min_size=1),
)
def test_any_order_of_lines_gives_the_same_findings(lines, random, sizes):
    before = findings(lines)
    shuffled = list(lines)
    random.shuffle(shuffled)
    assert findings(shuffled) == before
    assert findings(lines, sizes) == before
    # Nothing of what is no event shows, and each finding says what to do.
    assert all(one.cause and one.next_step for one in before)

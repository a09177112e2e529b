# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Say why a driver was not built, not loaded, or does not answer on a node. Pure.

What was read on the node (versions, keys, builds, devices) decides first; then :func:`.explain` is
asked what the kernel and the programs said.
"""

from __future__ import annotations

import re

from .._core.finding import ERROR, WARNING, Finding
from .codes import MISMATCH, UNKNOWN
from .driver import find_cause
from .evidence_types import Evidence, plain_line
from .explain import explain
from .predicates import Facts

_SEVERITIES = (ERROR, WARNING)


def diagnose(evidence: Evidence, facts: Facts | None = None) -> Finding:
    """Return the most likely cause; without evidence, the code is ``unknown``.

    :param facts: the fact ``gpu_node`` of the node.
    """
    return find_cause(evidence) or _in_texts(evidence, facts) or _unknown(evidence)


def _in_texts(evidence: Evidence, facts: Facts | None) -> Finding | None:
    """Return the first known error in what the kernel and programs said; else a warning."""
    # What a package manager printed is explained by what called it. Versions that do not fit are
    # found by the facts alone: a line of the kernel's log may be older than they are.
    text = "\n".join((evidence.kernel_log, evidence.modprobe, evidence.nvml))
    found = [one for one in explain(text, facts) if one.code != MISMATCH]
    for severity in _SEVERITIES:
        for one in found:
            if one.severity == severity:
                return one
    return None


def _unknown(evidence: Evidence) -> Finding:
    lines = [
        line
        for text in (evidence.modprobe, evidence.nvml, evidence.output)
        for line in text.strip().splitlines()[-3:]
    ]
    kernel = [plain_line(line) for line in evidence.dmesg if re.search("NVRM|nvidia", line)][-5:]
    return Finding(
        UNKNOWN,
        "The driver is not loaded or does not answer, and none of the known causes was found.",
        "; ".join(dict.fromkeys(filter(None, (*lines, *kernel)))) or "no output",
        "Check dmesg | grep -i -e NVRM -e nvidia -e Xid; nvidia-bug-report.sh collects all that "
        "NVIDIA asks for.",
    )

# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Recognise the output of a test of GPUs by its form, and return what it says. Pure."""

from __future__ import annotations

from ..._core.finding import Finding
from . import dcgm, gpu_burn, nvbandwidth, nvidia_smi_judge
from .dcgm_table import read_table

# The JSON of the largest machines has less than a tenth of it.
_MOST = 4 * 1024 * 1024
_MOST_FINDINGS = 256


def of_documents(text: str) -> list[Finding]:
    """Return what the output of ``dcgmi diag``, ``gpu_burn`` or ``nvbandwidth`` in a text says."""
    text = text[-_MOST:]
    found = [*_of_diag(text), *(gpu_burn.findings(text) or ())]
    found += nvbandwidth.findings(text) or ()
    return found[:_MOST_FINDINGS]


def of_smi(text: str) -> list[Finding]:
    """Return what the output of nvidia-smi in a text shows of GPUs."""
    return nvidia_smi_judge.findings(text[-_MOST:])[:_MOST_FINDINGS]


def _of_diag(text: str) -> list[Finding]:
    diag = dcgm.read_document(text) if '"test_categories"' in text else None
    diag = diag or read_table(text)
    return list(diag.judged) if diag else []

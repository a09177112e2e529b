# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The output of a test of GPUs, pasted as a text, is explained as the acceptance judges it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance.dcgm import read_diag
from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance.gpu_burn import read_burn
from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance.nvbandwidth import (
    read_bandwidth,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.documents import (
    dcgm_table,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.documents.read import (
    of_documents,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.explain import explain

RECORDED = Path(__file__).parents[4] / "fixtures" / "acceptance"


def judged(name, text):
    """Return what the acceptance judges."""
    if name.startswith("dcgm"):
        answer = {"rc": 0, "stdout": text, "stderr": ""}
        return read_diag(answer, level=2, timeout="t", otherwise="o").judged
    if name.startswith("burn"):
        return read_burn(text, 0, "", 0).judged
    return read_bandwidth(text, 0, "", {}).judged


@pytest.mark.parametrize(
    "name",
    ["burn-124-nothing.txt", "burn-14-init.txt", "dcgm-284-pass-warning.json",
     "dcgm-summary-only.json", "nvbw-34.json", "nvbw-34.txt"],
)  # fmt: skip
def test_a_pasted_document_says_what_the_acceptance_says(name):
    text = (RECORDED / name).read_text()
    right = {(one.code, one.severity) for one in judged(name, text)}
    assert {(one.code, one.severity) for one in of_documents(text)} == right
    assert {code for code, _severity in right} <= {one.code for one in explain(text)}
    # Between other lines it is the same.
    assert [one.code for one in of_documents(f"$ a command\n{text}\nits end\n")] == [
        one.code for one in of_documents(text)
    ]


HEAD = """\
Successfully ran diagnostic for group.
+---------------------------+------------------------------------------------+
| Diagnostic                | Result                                         |
+===========================+================================================+
|-----  Metadata  ----------+------------------------------------------------|
| DCGM Version              | 4.2.3                                          |
| GPU Device IDs Detected   | 26b9, 26b9                                     |
|-----  Deployment  --------+------------------------------------------------|
"""


def row(name, value):
    return f"| {name:<26}| {value:<47}|\n"


def message(name, text):
    parts = [text[begin : begin + 45] for begin in range(0, len(text), 45)]
    return row(name, parts[0]) + "".join(row("", one) for one in parts[1:])


def hardware(*rows):
    line = "+-----  Hardware  ----------+------------------------------------------------+\n"
    return line + "".join(rows)


# A word is cut where the column ends: dcgmi/Diag.cpp, DisplayVerboseInfo.
LONG = "Persistence mode for GPU 0 is currently disabled. Enable it with nvidia-smi -pm 1 as root."
DCGM3 = HEAD + row("Denylist", "Pass") + row("Persistence Mode", "Fail") + message("Error", LONG)
DCGM4 = HEAD + row("software", "Pass") + row("", "GPU0: Pass") + row("", "GPU1: Pass")
MEMORY4 = hardware(
    row("memory", "Fail"), message("Warning", "The hostengine was restarted."),
    row("", "GPU0: Pass"), row("", "GPU1: Fail"),
    message("Warning: GPU1", "A DBE was found in the memory of GPU 1, so that the test ended."),
    message("Info: GPU1", "Allocated 99 MB."),
    row("pulse_test", "Skip"), row("", "GPU0: Skip"), row("", "GPU1: Skip"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (DCGM3 + hardware(row("GPU Memory", "Skip - All"), row("Memtest", "Pass - All")),
         [("dcgm_failed", "error", ""), ("dcgm_skipped", "info", "")]),
        (DCGM3, [("dcgm_failed", "error", "")]),
        (HEAD + row("Denylist", "Pass"), []),
        (HEAD + row("Denylist", "Pass") + hardware(row("GPU Memory", "Skip - All")),
         [("dcgm_nothing_tested", "error", "")]),
        (HEAD + hardware(row("GPU Memory", "Pass - GPU: 1"), row("", "Fail - GPU: 0")),
         [("dcgm_failed", "error", "GPU 0")]),
        (DCGM4, []),
        (DCGM4 + MEMORY4,
         [("dcgm_failed", "error", "GPU 1"), ("dcgm_failed", "error", ""),
          ("dcgm_skipped", "info", "")]),
    ],
)  # fmt: skip
def test_the_table_of_a_diag(text, expected):
    found = dcgm_table.read_table(text).judged
    assert [(one.code, one.severity, one.subject.part) for one in found] == expected


def test_a_message_of_the_table_is_put_together():
    (found,) = dcgm_table.read_table(DCGM3).judged
    assert found.evidence == LONG
    assert [one.code for one in explain(DCGM3)] == ["persistence_off", "dcgm_failed"]
    assert "A DBE was found" in dcgm_table.read_table(DCGM4 + MEMORY4).judged[0].evidence
    assert dcgm_table.read_table(DCGM4).version == "4.2.3"


def test_the_error_of_cuda_decides():
    text = (
        "Couldn't init a GPU test: Error in load module: no kernel image is available for "
        "execution on the device\n"
    )
    assert [one.code for one in explain(text)] == ["no_kernel_image"]
    found = read_burn(text, 1, "", 1).judged
    assert [one.code for one in found] == ["gpu_burn_not_run", "no_kernel_image"]

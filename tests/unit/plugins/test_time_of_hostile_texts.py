# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Readers of texts that a hostile node, pod or server writes take time in proportion to them.

A text of four times the length takes four times as long; a reader that looks back for each match
takes sixteen times as long, and hours for what a node may return.
"""

from __future__ import annotations

import contextlib
import time

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance.gpu_burn import read_burn
from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance.nvbandwidth import (
    read_bandwidth,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.pods import (
    shorten as shorten_message,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.printable import printable
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.redact import (
    addresses,
    redact,
    redact_items,
    secrets,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.redact_lines import (
    redact_lines,
    redact_yaml,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.observe import safe_text
from ansible_collections.kubegpu.nodes.plugins.module_utils._formats.toml_redact import (
    redact as redact_toml,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._health.kernel_log import KernelLog
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.answers import (
    why_unhealthy,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.documents import (
    dcgm_table,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.documents import (
    nvidia_smi as smi_output,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.documents.printed import (
    find_object,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.documents.read import (
    of_documents,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.explain import (
    explain,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.kernel_lines import (
    interesting,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.errors import (
    shorten as shorten_answer,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._node_texts.read import _Tail
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.failures import (
    explain as explain_packages,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.evidence import (
    shorten as shorten_output,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.texts import text

_SMALL, _FACTOR = 8_000, 4
# Seconds of the processor for four times the text: below, nothing is said about growth.
_ENOUGH = 0.25


def kernel_log(lines):
    log = KernelLog(0, 1.0)
    log.feed(f"[ 1.0] NVRM: Xid (PCI:0000:05:00): 79, {lines}".encode())
    log.close()
    log.events()


def tail(lines):
    log = _Tail(300)
    log.feed(lines.encode())
    log.text()


READERS = {
    "addresses": addresses,
    "redact": redact,
    "redact_items": lambda given: redact_items(given.split()),
    "redact_lines": redact_lines,
    "redact_yaml": redact_yaml,
    "redact_toml": lambda given: redact_toml("# " + given.replace("\n", "\n# ") + "\nx = 1\n"),
    "secrets": secrets,
    "printable": printable,
    "explain": explain,
    "explain_packages": lambda given: explain_packages(given, "x"),
    "kernel_log": kernel_log,
    "kernel_lines": lambda given: interesting(given.splitlines()),
    "gpu_burn": lambda given: read_burn(f"Tested 1 GPUs:\n{given}", 0, given, 1),
    "nvbandwidth": lambda given: read_bandwidth(given, 0, given, {}),
    "documents": of_documents,
    "dcgm_table": lambda given: dcgm_table.read_table(
        f"| Diagnostic                | Result{given}"
    ),
    "find_object": lambda given: find_object(given, "a"),
    "smi": lambda given: (smi_output.without_processes(given), smi_output.beside_document(given)),
    "smi_text": lambda given: smi_output.read_any(f"GPU 00000000:10:1C.0\n{given}"),
    "unhealthy": why_unhealthy,
    "tail": tail,
    "report": lambda given: text(given + str(time.monotonic())),
}
PARTS = [
    'token="', "token: '", 'token="" ', "token = [", '\\"token\\":', "a=", "\\", "\n", " ", "\t",
    "//a:b", "https://a:b@c/", "-u a:", '-u "', "eyJaaaaaaaa.", "is ", "token is ", "token for a ",
    "token -> ", "name:token value:", '"value":"', "login ", '\\u0061', '"--token", "',
    "- name: token\n  value: x\n", "  - value: x\n", "? token\n", "GPU ", "GPU 1: OK\n",
    "NVRM: Xid (PCI:0000:05:00): 79, ", "SXid (", "<process_info>", '{"a":', "[ 1.0] ", "E: ",
    "version ", "\u202e", "Couldn't init CUDA: ", "[CUDA_ERROR_ABC] a in expression b",
    "NCCL WARN ", "|-----  ab  ---", f"|{' ' * 27}|{' ' * 48}|\n", "Running a", '{"nvbandwidth":',
    '{"DCGM":{"test_categories":[', "    a : b\n", "GPU 00000000:10:1C.0\n",
    "<nvidia_smi_log><gpu>", "|   0  a  On  | 00000000:07:00.0 Off |", "cuda-installer ",
]  # fmt: skip
# Those that took a reader too long, and some of other forms.
FEW = ['token="', "\n", " ", "//a:b", "token is ", "NVRM: Xid (PCI:0000:05:00): 79, "]


def seconds(reader, given):
    begin = time.process_time()
    with contextlib.suppress(KubegpuError, ValueError, RecursionError):
        reader(given)
    return time.process_time() - begin


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(FEW, id="few"),
        pytest.param(PARTS, id="all", marks=pytest.mark.full(why="many texts for each reader")),
    ],
)
@pytest.mark.parametrize("name", READERS)
def test_time_grows_with_the_length_and_not_with_its_square(name, parts):
    reader = READERS[name]
    for part in parts:
        small = part * (_SMALL // len(part))
        # The best of three: other processes of the machine cost time too.
        for _try in range(3):
            large = seconds(reader, small * _FACTOR)
            if large < _ENOUGH or large < 2.5 * _FACTOR * seconds(reader, small):
                break
        else:
            pytest.fail(f"{name} of {part!r}: {large:.2f} s for {len(small) * _FACTOR} characters")


_LINE = 16 * 1024 * 1024


@pytest.mark.parametrize(
    "given",
    [
        '{"DCGM Diagnostic": {"test_categories": ' + "[" * 200_000,
        '{"DCGM Diagnostic": {"test_categories": ' * 100_000,
        '{"nvbandwidth": "' + "x" * _LINE,
        '{"nvbandwidth": {"testcases": [' + '{"name": "a"},' * 200_000 + "]}}",
        "Tested 8 GPUs:" * 100_000 + "x" * 1_000_000,
        "proc'd: 1 (" + "- 1 (" * 1_000_000,
        "| Diagnostic                | Result |" + "|" * _LINE,
        f"Couldn't init CUDA: {'x' * _LINE}",
    ],
    ids=range(8),
)
def test_a_hostile_document_is_read_in_time_and_says_little(given):
    begin = time.process_time()
    found = of_documents(given)
    assert time.process_time() - begin < 8
    assert sum(len(one.cause) + len(one.evidence) for one in found) < 512 * 1024


@pytest.mark.parametrize(
    "cut", [safe_text, shorten_output, shorten_answer, shorten_message], ids=range(4)
)
def test_texts_are_redacted_before_they_are_cut(cut):
    """Half an address has no @, so that its password would be shown."""
    address = "https://ops:hunter2hunter2@mirror.example/x"
    for length in range(150, 2100, 31):
        shown = cut(f"{'a' * length} {address} {'b' * (2200 - length)}")
        assert "hunter2" not in shown, length
        assert "hunter2" not in cut(f"{'a' * length}{' b' * 1100} {address} {'c' * length}"), length

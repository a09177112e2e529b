# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import json
import time
import tracemalloc
from dataclasses import asdict

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.documents import (
    nvidia_smi as smi_output,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.explain import explain
from tests.unit.fixtures.health_node import (
    A100,
    A100_MIG,
    OTHER,
    P4,
    SECRET,
    T4,
    smi_document,
    smi_gpu,
)


def gpu(**changed):
    return smi_output.read_document(smi_document(smi_gpu(**changed)))[1][0]


def test_a_card_that_is_fine():
    version, (one,) = smi_output.read_document(smi_document(smi_gpu()))
    assert version == "590.44.01"
    assert (one.index, one.address, one.uuid) == (0, A100, f"GPU-{A100}")
    assert one.values["ecc"]["volatile_dram_corrected"] == 3
    assert one.values["ecc"]["aggregate_dram_uncorrected"] == 1
    assert one.values["recovery"] == {
        "action": "none",
        # "Requested functionality has been deprecated" is neither yes nor no.
        "reset_required": None,
        "drain_and_reset_recommended": None,
    }
    assert one.values["remapped_rows"] == {
        "corrected": 0,
        "uncorrected": 1,
        "pending": False,
        "failed": False,
        "banks_without_spares": 0,
    }
    assert one.values["retired_pages"] == {"count": None, "pending": None}
    assert one.values["temperature"]["margin"] == 60
    # An idle GPU and the power limit are no faults.
    assert one.values["clocks"] == {"slowdowns": []}
    assert one.values["fabric"]["state"] is None and one.broken == {}


def test_older_names():
    document = smi_document(smi_gpu(OTHER, T4))
    _version, (one,) = smi_output.read_document(document)
    assert one.values["retired_pages"] == {"count": 0, "pending": False}
    assert one.values["remapped_rows"]["pending"] is None
    assert one.values["ecc"]["volatile_sram_uncorrected"] == 0
    assert one.values["temperature"]["margin"] == 53
    assert one.values["clocks"] == {"slowdowns": []}
    assert one.values["recovery"]["action"] is None


def test_a_card_with_mig_devices_does_not_tell_its_rows():
    _version, (one,) = smi_output.read_document(smi_document(smi_gpu(A100, A100_MIG)))
    assert one.values["mig"] == {"mode": "enabled", "mode_pending": "enabled"}
    assert set(one.values["remapped_rows"].values()) == {None}
    assert one.values["recovery"] == {
        "action": None, "reset_required": False, "drain_and_reset_recommended": False,
    }  # fmt: skip
    assert (one.values["temperature"]["margin"], one.values["temperature"]["memory"]) == (62, 44)
    assert one.values["clocks"] == {"slowdowns": []}


def test_names_before_turing():
    _version, (one,) = smi_output.read_document(smi_document(smi_gpu(A100, P4)))
    assert set(one.values["ecc"].values()) == {None} and one.values["clocks"] == {"slowdowns": None}
    counted = {"volatile/double_bit/total": "2", "aggregate/single_bit/total": "7"}
    _version, (one,) = smi_output.read_document(smi_document(smi_gpu(A100, P4, **counted)))
    assert one.values["ecc"]["volatile_dram_uncorrected"] == 2
    assert one.values["ecc"]["aggregate_dram_corrected"] == 7


def test_parts_of_a_sum():
    one = gpu(**{
        "volatile/sram_uncorrectable_parity": "2",
        "volatile/sram_uncorrectable_secded": "3",
    })  # fmt: skip
    assert one.values["ecc"]["volatile_sram_uncorrected"] == 5


@pytest.mark.parametrize(
    "text",
    ["[GPU requires reset]", "ERR!", "Unknown Error", "GPU is lost"],
)
def test_a_text_in_the_place_of_a_value(text):
    one = gpu(fan_speed=text, **{"temperature/gpu_temp": text})
    ((fault, names),) = one.broken.items()
    assert fault in text and set(names) == {"fan_speed", "gpu_temp"}
    assert one.values["temperature"]["gpu"] is None


def test_slowdowns():
    one = gpu(hw_slowdown="Active", hw_power_brake_slowdown="Active")
    assert one.values["clocks"]["slowdowns"] == ["hw_slowdown", "hw_power_brake_slowdown"]


def test_command_lines_are_gone_before_anything_is_read():
    document = smi_document(smi_gpu(), smi_gpu(OTHER))
    assert "hunter2" in document and "hunter2" not in smi_output.without_processes(document)
    found = smi_output.read_document(document)[1]
    assert len(found) == 2 and "hunter2" not in json.dumps([asdict(one) for one in found])


# A program's name that is not escaped, one that never ends, a document that was cut off in it.
UNESCAPED = smi_document(smi_gpu()).replace("--token", "</process_name><x>--token <b")
BROKEN = [
    UNESCAPED,
    smi_document(smi_gpu()).replace(
        "train.py", f"{SECRET} </processes><process_name>{SECRET} </nvidia_smi_log> "
    ),
    smi_document(smi_gpu()).partition("--data")[0],
]


@pytest.mark.parametrize("document", BROKEN, ids=["unescaped", "closing", "cut off"])
def test_no_error_and_no_text_has_a_command_line(document):
    assert "hunter2" in document
    try:
        said = str(smi_output.read_document(document))
    except ValueError as error:
        said = str(error)
    said += smi_output.beside_document(f"WARNING: a line\n{document}\nanother line\n")
    assert "hunter2" not in said and "WARNING: a line" in said


def test_what_stands_beside_the_document():
    warning = "WARNING: infoROM is corrupted at gpu 0000:3B:00.0"
    assert smi_output.beside_document(smi_document(smi_gpu()) + f"{warning}\n\x1b[2J") == (
        f"{warning}\n\\x1b[2J"
    )
    assert smi_output.beside_document("No devices were found\n") == "No devices were found"


def document_of(content):
    return f"<?xml version='1.0'?><nvidia_smi_log>{content}</nvidia_smi_log>"


BOMB = (
    '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "hunter2">]><nvidia_smi_log>&b;</nvidia_smi_log>'
)
EXTERNAL = (
    '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]>'
    "<nvidia_smi_log><gpu>&b;</gpu></nvidia_smi_log>"
)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("", "no complete document"),
        ("<?xml version='1.0'?><nvidia_smi_log>", "no complete document"),
        ("<?xml version='1.0'?><other></nvidia_smi_log>", "no XML"),
        (BOMB, "declares the entity"),
        (EXTERNAL, "declares the entity"),
        (document_of("<a>" * 40 + "</a>" * 40), "levels"),
        (document_of("<a/>" * 101000), "elements"),
        (document_of(" " * (9 << 20)), "more than"),
    ],
    ids=["empty", "cut", "broken", "bomb", "external", "deep", "many", "long"],
)  # fmt: skip
def test_hostile_documents_are_refused(document, words):
    with pytest.raises(ValueError, match=words):
        smi_output.read_document(document)


def test_what_looks_like_many_lists_of_processes_takes_little_time():
    """The output is searched once, not once for each of them."""
    output = smi_document(smi_gpu()).partition("</processes>")[0] + "<processes>" * 60_000
    begin = time.monotonic()
    with contextlib.suppress(ValueError):
        assert "hunter2" not in str(smi_output.read_document(output))
    assert "hunter2" not in smi_output.beside_document(output)
    assert time.monotonic() - begin < 20


def test_hostile_values_are_cut_and_take_little_memory():
    digits, words = "9" * 50_000, "x" * 50_000
    hostile = smi_gpu(remapped_row_unc=digits, serial=words, gpu_recovery_action=words)
    document = smi_document(*[hostile] * 20, *[smi_gpu()] * 50)
    tracemalloc.start()
    try:
        _version, found = smi_output.read_document(document)
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found) == 64 and peak < 50 << 20
    assert len(found[0].serial) == 256 and len(str(found[0].values["remapped_rows"])) < 200


REPORT = """\
==============NVSMI LOG==============

Driver Version                            : 550.54.15
Attached GPUs                             : 2
GPU 00000000:10:1C.0
    Product Name                          : NVIDIA A100-SXM4-80GB
    ECC Mode
        Current                           : Enabled
        Pending                           : Disabled
    ECC Errors
        Volatile
            SRAM Correctable              : 0
            DRAM Uncorrectable            : 3
        Aggregate
            DRAM Correctable              : 177
            SRAM Threshold Exceeded       : No
    Remapped Rows
        Correctable Error                 : 0
        Uncorrectable Error               : 1
        Pending                           : Yes
        Remapping Failure Occurred        : No
    Clocks Event Reasons
        Idle                              : Not Active
        HW Slowdown                       : Active
            HW Thermal Slowdown           : Active
            HW Power Brake Slowdown       : Not Active
    Fabric
        State                             : Completed
        Status                            : Success
GPU 00000000:20:1C.0
    ECC Mode
        Current                           : GPU requires reset
        Pending                           : Enabled
Another text:
    Remapped Rows
        Remapping Failure Occurred        : Yes
"""


def codes(text):
    return [(one.code, one.severity, one.subject.gpu) for one in explain(text)]


def test_the_report_for_people_is_judged_as_the_document():
    assert codes(REPORT) == [
        ("gpu_memory_error", "error", "0000:10:1c.0"),
        ("recovery_action", "error", "0000:20:1c.0"),
        ("row_remap_pending", "warning", "0000:10:1c.0"),
        ("ecc_pending", "warning", "0000:10:1c.0"),
        ("hw_slowdown", "warning", "0000:10:1c.0"),
    ]
    found = {one.code: one.evidence for one in explain(REPORT)}
    assert "hw_slowdown, hw_thermal_slowdown active" in found["hw_slowdown"]


def test_the_table_shows_errors_of_the_memory_and_what_cannot_be_read():
    row = "|   0  NVIDIA A100-SXM4-80GB          On  | 00000000:07:00.0 Off |{:>21} |"
    fine = (
        "| N/A   30C    P0              62W / 400W |      4MiB / 81920MiB |      0%      Default |"
    )
    assert codes(f"{row.format(0)}\n{fine}") == []
    assert codes(f"{row.format('N/A')}\n{fine}") == []
    assert codes(f"{row.format(5)}\n{fine}") == [("gpu_memory_error", "error", "0000:07:00.0")]
    broken = (
        "|ERR!  ERR! ERR!             ERR! / ERR!  |      4MiB / 81920MiB |      0%      Default |"
    )
    assert codes(f"{row.format(0)}\n{broken}") == [
        ("gpu_values_unreadable", "warning", "0000:07:00.0")
    ]


def test_a_document_in_a_pasted_text_is_judged_as_the_nodes():
    text = (
        f"$ nvidia-smi -q -x\n{smi_document(smi_gpu(remapped_row_failure='Yes'), smi_gpu(OTHER))}"
    )
    assert codes(text) == [("row_remap_failed", "error", A100)]
    assert codes(smi_document(smi_gpu())) == []
    # Cut off: it shows nothing.
    assert codes(text[: len(text) // 2]) == []


@pytest.mark.parametrize(
    ("number", "code"),
    [(6, "no_devices"), (8, "power_cable"), (9, "driver_not_loaded"), (14, "inforom_corrupt"),
     (15, "gpu_lost"), (16, "recovery_action"), (17, "gpu_access_blocked"),
     (18, "driver_library_mismatch")],
)  # fmt: skip
def test_the_status_of_nvidia_smi(number, code):
    (found,) = explain(f"nvidia-smi -q -x ended with status {number}")
    assert (found.code, found.severity) == (code, "error")
    assert "  " not in found.cause and "{" not in found.cause and " ," not in found.cause

# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The comparison of the tables with public lists, on a few lines in the form of each."""

from __future__ import annotations

import json

import pytest

from tests.tools import compare_data
from tests.tools.compare_data import Chip

# A few rows of README.md of NVIDIA/open-gpu-kernel-modules, tags 535.104.05 and 550.90.07.
README = """\
This is the source release of the NVIDIA Linux open GPU kernel modules,
version {version}.

| Product Name                                            | PCI ID         |
| ------------------------------------------------------- | -------------- |
| NVIDIA H100 NVL                                         | 2321 10DE 1839 |
| NVIDIA L40S                                             | 26B9 10DE 1851 |
| NVIDIA L40S                                             | 26B9 10DE 18CF |
{more}"""
H200 = "| NVIDIA H200                                             | 2335 10DE 18BE |\n"
# A few rows of supported-gpus.json, driver 550.163.01 (Debian's package nvidia-driver).
GPUS = {
    "chips": [
        {"devid": "0x0FEF", "name": "GRID K340", "legacybranch": "367.xx", "features": []},
        {"devid": "0x06D1", "name": "Tesla C2050", "legacybranch": "390.xx", "features": []},
        {"devid": "0x0040", "name": "GeForce 6800", "legacybranch": "304.xx", "features": []},
        {"devid": "0x102D", "name": "Tesla K80", "legacybranch": "470.xx", "features": []},
        {"devid": "0x1DB6", "name": "Tesla V100-PCIE-32GB", "features": []},
        {"devid": "0x1E09", "name": "NVIDIA CMP 50HX", "features": []},
        {"devid": "0x2335", "name": "NVIDIA H200", "features": ["kernelopen"]},
    ]
}
# A few lines of pci.ids, 2026-08-22.
PCI_IDS = """\
# Vendors
1002  Advanced Micro Devices, Inc. [AMD/ATI]
\t74a1  Aqua Vanjaram [Instinct MI300X]
10de  NVIDIA Corporation
\t1725  GP100
\t2330  GH100 [H100 SXM5 80GB]
\t\t10de 16c1  H100 SXM5
\t22ce  GB10 GEN5 X4 PCIe host
\t3021  GR100 [PCIe Faber]
8086  Intel Corporation
\t56c0  ATS-M [Data Center GPU Flex 170]
C 01  Mass storage controller
"""


@pytest.fixture
def files(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
        return str(path)

    return write


@pytest.fixture
def readmes(files):
    return (
        files("old.md", README.format(version="535.104.05", more="")),
        files("new.md", README.format(version="550.90.07", more=H200)),
    )


def run(capsys, *arguments):
    status = compare_data.main(arguments)
    return status, capsys.readouterr()


def test_all_three_agree(capsys, files, readmes):
    gpus = f"550.163.01={files('gpus.json', GPUS)}"
    pci = files("pci.ids", PCI_IDS)
    status, said = run(capsys, "--readme", *readmes, "--gpus", gpus, "--pci-ids", pci)
    lines = said.out.splitlines()
    assert status == 0
    assert lines[:2] == [
        "README 535.104.05: 2 ids compared, 0 wrong, 0 missing, 0 left out",
        "README 550.90.07: 3 ids compared, 0 wrong, 0 missing, 0 left out",
    ]
    assert (
        lines[2] == "supported-gpus.json 550.163.01: 7 ids compared, 0 wrong, 0 missing, 1 left out"
    )
    assert lines[3].startswith("  left out: 1e09: a mining card")
    # The bridge of GB10 is no GPU. Ids of AMD and Intel that pci.ids lacks are no fault.
    assert lines[4].startswith("pci.ids: ") and " 0 wrong, 0 missing, " in lines[4]
    assert not any("74a1" in line or "56c0" in line for line in lines[5:])


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"minimum": "535.113.01"}, "26b9: L40S at 0000:01:00.0 needs driver 535.113.01 or newer"),
        ({"modules": ["proprietary"]}, "26b9: open kernel modules: listed"),
        ({"last": "525"}, "26b9: L40S at 0000:01:00.0 (ada) is served up to branch 525"),
    ],
)
def test_what_the_tables_say_otherwise_is_wrong(capsys, monkeypatch, readmes, row, said):
    monkeypatch.setitem(compare_data.data.PRODUCTS, "26b9", row)
    status, out = run(capsys, "--readme", readmes[0])
    assert status == 1
    assert out.out.splitlines() == [
        "README 535.104.05: 2 ids compared, 1 wrong, 0 missing, 0 left out",
        f"  wrong: {said}",
    ]


def test_a_gpu_that_came_later_must_not_be_served_before(capsys, monkeypatch, readmes):
    """As it was before H200 had its lowest driver."""
    monkeypatch.delitem(compare_data.data.PRODUCTS, "2335")
    status, said = run(capsys, "--readme", *readmes)
    assert status == 1
    assert "  wrong: 2335: this list does not have it, the tables serve it" in said.out.splitlines()


def test_what_a_branch_listed_once_counts_as_listed(readmes, files):
    lists = [
        ("550.78", {"2335": Chip()}),
        ("550.90.07", {"26b9": Chip()}),
        ("535.98", {}),
        ("555.58", {"2335": Chip(), "26b9": Chip(), "1db6": Chip()}),
    ]
    assert compare_data.later_ids(lists, 0) == {"26b9"}
    assert compare_data.later_ids(lists, 1) == set()
    # No id older than Turing: the lists end there.
    assert compare_data.later_ids(lists, 2) == {"2335", "26b9"}


@pytest.mark.parametrize(
    ("chip", "said"),
    [
        (("0FEF", "390.xx"), "0fef: last branch 367, not 390"),
        (("102D", "390.xx"), "102d: last branch 470, not 390"),
        (("1DB6", "470.xx"), "1db6: last branch 580, not 470"),
        (("2335", "580.xx"), "2335: last branch None, not 580"),
    ],
)
def test_another_last_branch_is_wrong(capsys, files, chip, said):
    device, last = chip
    row = {"devid": f"0x{device}", "name": "x", "legacybranch": last, "features": []}
    gpus = files("gpus.json", {"chips": [row]})
    status, out = run(capsys, "--gpus", f"550.163.01={gpus}")
    assert status == 1 and f"  wrong: {said}" in out.out.splitlines()


@pytest.mark.parametrize(
    ("device", "features", "said"),
    [
        ("2335", ["kernelopen", "proprietary_supported"], None),
        ("2335", ["kernelopen"], "proprietary kernel modules: not listed"),
        ("2335", ["proprietary_supported"], "open kernel modules: not listed"),
        ("1DB6", ["proprietary_required"], None),
        ("1DB6", ["kernelopen", "proprietary_required"], "open kernel modules: listed"),
        ("2342", ["kernelopen"], None),
        ("2342", ["kernelopen", "proprietary_supported"], "proprietary kernel modules: listed"),
    ],
)
def test_kernel_modules_are_compared_where_the_file_says_them(files, device, features, said):
    rows = [
        {"devid": f"0x{device}", "name": "x", "features": features},
        {"devid": "0x20B5", "name": "y", "features": ["kernelopen", "proprietary_supported"]},
    ]
    chips = compare_data.read_gpus(json.dumps({"chips": rows}), "gpus.json")
    wrong = compare_data.compare_list("gpus", "580.126.20", chips, ()).wrong
    assert wrong == ([f"{device.lower()}: {said}"] if said else [])


def test_ids_that_the_tables_do_not_know_are_missing(capsys, files):
    pci = files("pci.ids", PCI_IDS.replace("3021  GR100", "3a00  GR100").replace("GP100", "GM200"))
    status, said = run(capsys, "--pci-ids", pci)
    lines = said.out.splitlines()
    assert status == 1 and " 1 wrong, 1 missing, " in lines[0]
    assert "  wrong: 1725: pascal, not maxwell (GM200)" in lines
    assert "  missing: 3a00: GR100 [PCIe Faber]" in lines
    more = "| NVIDIA New                                              | 3A00           |\n"
    readme = files("x.md", README.format(version="535.104.05", more=more))
    status, said = run(capsys, "--readme", readme)
    assert status == 1
    assert "  missing: 3a00: its generation is not known" in said.out.splitlines()


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        ("--readme", "| NVIDIA L40S | 26B9 |\n", "it has no line with the version"),
        ("--readme", "version 550.90.07.\n", "it has no table of GPUs"),
        ("--gpus", "{}", "is not a supported-gpus.json of NVIDIA's: KeyError('chips')"),
        ("--gpus", "<html>", "is not a supported-gpus.json of NVIDIA's"),
        ("--gpus", {"chips": [{"devid": 1, "features": []}]}, "is not a supported-gpus.json"),
        ("--pci-ids", "1af4  Red Hat, Inc.\n", "is not a pci.ids"),
    ],
)
def test_a_file_that_is_another_is_named(capsys, files, option, text, said):
    path = files("given", text)
    given = f"550.163.01={path}" if option == "--gpus" else path
    status, out = run(capsys, option, given)
    assert status == 2 and out.out == ""
    assert path in out.err and said in out.err


def test_a_file_that_is_not_there_and_a_version_that_is_not_given(capsys, tmp_path):
    status, said = run(capsys, "--readme", str(tmp_path / "none.md"))
    assert status == 2 and "none.md cannot be read: No such file or directory" in said.err
    status, said = run(capsys, "--gpus", "supported-gpus.json")
    assert status == 2 and "write the driver's version before it" in said.err
    with pytest.raises(SystemExit) as caught:
        compare_data.main([])
    assert caught.value.code == 2

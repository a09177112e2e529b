# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The driver's tables: that they are whole, and what a user can put over them."""

from __future__ import annotations

import datetime

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.pci import generation
from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.pci_data import NVIDIA_RANGES
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.driver_branches import (
    BRANCHES,
    GENERATIONS,
    KINDS,
    PRODUCTS,
    REPOSITORIES,
    driver_data,
)

# shared/facts/drivers.md, section 3.1.
_DOCUMENTED = "470 535 550 560 565 570 575 580 590 595 610 615 620"


def test_every_generation_has_a_row():
    generations = {name for _first, _last, name in NVIDIA_RANGES}
    assert {*generations, "unknown", "fermi"} == set(GENERATIONS)


def test_every_documented_branch_has_a_row():
    assert set(_DOCUMENTED.split()) <= set(BRANCHES)
    assert {branch for branch, row in BRANCHES.items() if row["modules"] == ["open"]} == {"620"}


def test_the_long_term_branches():
    # "Supported drivers" of NVIDIA's data center drivers 615 and 620, read 2026-11-28.
    kinds = {branch: (row["end"], row["newest"]) for branch, row in BRANCHES.items()
             if row["kind"] == "ltsb"}  # fmt: skip
    assert kinds == {
        "535": ("2026-06-30", "535.309.01"),
        "580": ("2028-06-30", "580.178.04"),
        "620": ("2029-09-30", None),
    }
    assert BRANCHES["595"]["newest"] == "595.99.02"
    assert BRANCHES["615"]["kind"] == "new_feature" and BRANCHES["615"]["end"] is None


def test_the_newest_version_of_a_branch():
    # Package indices of Ubuntu (535.309.01 transitional, 615.71.09), Debian (550.163.01) and
    # release notes of 570.211.01, as of 2026-11-21.
    newest = {branch: row["newest"] for branch, row in BRANCHES.items()}
    assert newest["535"] == "535.309.01" and newest["550"] == "550.163.01"
    assert newest["570"] == "570.211.01" and newest["615"] == "615.71.09"
    for branch, version in newest.items():
        assert version is None or version.startswith(f"{branch}.")


@pytest.mark.parametrize("release", ["2204", "2404", "2604"])
def test_the_branches_of_ubuntus_archive(release):
    # Packages of {jammy,noble,resolute}{,-updates,-security}, 2026-11-21; packages.ubuntu.com has
    # linux-modules-nvidia-610-server-generic in stonking (26.10) alone.
    row = REPOSITORIES[f"ubuntu{release}-archive"]
    assert row["branches"] == ["580", "595", "615"]
    assert row["multiverse"] == (["615"] if release == "2604" else ["595", "615"])
    assert row["transitional"] == {
        "535": "580", "550": "580", "565": "580", "570": "580", "575": "580",
        "590": "595", "610": "615",
    }  # fmt: skip
    assert set(row["transitional"].values()) <= set(row["branches"])
    assert row["modules"] == {"615": ["open"]}


def test_rows_point_to_rows():
    for row in (*GENERATIONS.values(), *PRODUCTS.values()):
        for key in ("first", "last"):
            assert row.get(key) is None or row[key] in {*BRANCHES, "367", "418", "450"}
    for device in PRODUCTS:
        assert generation("nvidia", device) in set(GENERATIONS) - {"unknown"}, device
    for name, row in REPOSITORIES.items():
        for branch in row["branches"] or ():
            assert branch in BRANCHES, name
        assert name.endswith("-archive") == (row["branches"] is not None)
        for fingerprint in row.get("key_fingerprints", ()):
            assert len(fingerprint) == 40 and fingerprint == fingerprint.upper()


def test_the_built_in_rows_would_be_accepted_from_a_user():
    data = driver_data(BRANCHES, {**GENERATIONS, **PRODUCTS}, REPOSITORIES)
    assert data == driver_data()
    assert data.newest_branch() == "620"
    assert {row["kind"] for row in BRANCHES.values()} == set(KINDS)


def test_rows_are_merged_by_key_and_field():
    data = driver_data(
        {595: {"end": datetime.date(2027, 6, 30)}, "625": {"kind": "ltsb"}},
        {"2BB5": {"first": 575}},
        {"ubuntu2404": {"url": "https://mirror.example/cuda", "branches": [580, "595"]}},
    )
    assert data.branches["595"] == {**BRANCHES["595"], "end": "2027-06-30"}
    # A branch newer than the newest has its kernel modules.
    assert data.branches["625"]["modules"] == ["open"] and data.branches["625"]["supported"]
    assert data.gpus["2bb5"] == {"minimum": "575.57.08", "first": "575"}
    assert data.repositories["ubuntu2404"]["branches"] == ["580", "595"]
    assert data.repositories["ubuntu2404"]["key"] == "3bf863cc.pub"
    assert BRANCHES["595"]["end"] == "2027-03-31"
    row = {"branches": [580], "multiverse": [], "transitional": {535: 580}}
    row["modules"] = {580: ["open"]}
    data = driver_data(repositories={"ubuntu2404-archive": row})
    found = data.repositories["ubuntu2404-archive"]
    assert found["transitional"] == {"535": "580"} and found["modules"] == {"580": ["open"]}


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"branches": ["625"]}, "nvidia_driver_branches is not a mapping"),
        ({"branches": {"R625": {}}}, "'R625'.*a branch is a number"),
        ({"branches": {"625": "ltsb"}}, "'625'.*is not a mapping"),
        ({"branches": {"625": {"kind": "lts"}}}, "kind is not of ltsb, production"),
        ({"branches": {"625": {"end": "June 2028"}}}, "end is not a date"),
        ({"branches": {"625": {"end": "2028-06-31"}}}, "end is not a date"),
        ({"branches": {"625": {"kernel_modules": []}}}, "kernel_modules, which is not known"),
        ({"branches": {"625": {"modules": []}}}, "modules is not of open"),
        ({"branches": {"625": {"modules": ["free"]}}}, "modules is not of open"),
        ({"branches": {"625": {"supported": "soon"}}}, "supported is not true or false"),
        ({"gpus": {"3340": {"minimum": 620.1}}}, "minimum is not a version"),
        ({"gpus": {"3340": {"minimum": ["620.10.01", "new"]}}}, "minimum.* or a list of them"),
        ({"gpus": {"3340": {"minimum": []}}}, "minimum is not a version"),
        ({"gpus": {"3340": {"first": "new"}}}, "first is not the number of a branch"),
        ({"gpus": {"10de:3340": {}}}, "'10de:3340'.*neither a device id nor a generation"),
        ({"gpus": {"Vulta": {}}}, "'Vulta'.*neither.*Next step"),
        ({"repositories": {"ubuntu2404": {"branches": ["580-server"]}}}, "a list of branches"),
        ({"repositories": {"debian14": {"url": ["x"]}}}, "url is not a text"),
        ({"repositories": {"ubuntu2404-archive": {"multiverse": "595"}}}, "a list of branches"),
        (
            {"repositories": {"ubuntu2404-archive": {"transitional": {"535": "new"}}}},
            "branches to branches",
        ),
        (
            {"repositories": {"ubuntu2404-archive": {"modules": {615: "open"}}}},
            "lists of open and proprietary",
        ),
        (
            {"repositories": {"ubuntu2404-archive": {"modules": {615: []}}}},
            "lists of open and proprietary",
        ),
        ({"repositories": {"debian14": {"architectures": ["x86_64"]}}}, "not a mapping"),
    ],
)
def test_a_bad_row_is_named(tables, words):
    with pytest.raises(InputError, match=f"(?s){words}"):
        driver_data(**tables)

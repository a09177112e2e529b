# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The driver's tables: that they are whole, and what a user can put over them."""

from __future__ import annotations

import datetime

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._distro.upstream import UBUNTU
from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.pci import generation
from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.pci_data import NVIDIA_RANGES
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.cuda_releases import (
    DISTRO_CUDA,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.driver_branches import (
    BRANCHES,
    GENERATIONS,
    KINDS,
    PRODUCTS,
    REPOSITORIES,
    driver_data,
)
from tests.unit.fixtures.driver_cases import SYSTEMS

# Each branch: kind, end of support, newest version, kernel modules. By hand, from the sources of
# driver_branches.py, so that a slip in the data is found: a new branch needs a row here.
DOCUMENTED = """
390 legacy      -          390.157    proprietary
470 legacy      -          470.256.02 proprietary
525 production  -          -          both
535 ltsb        2026-06-30 535.309.01 both
545 new_feature -          -          both
550 production  -          550.163.01 both
555 new_feature -          -          both
560 new_feature -          -          both
565 new_feature -          -          both
570 production  2026-02-28 570.211.01 both
575 new_feature -          -          both
580 ltsb        2028-06-30 580.178.04 both
590 new_feature -          590.48.01  both
595 production  2027-03-31 595.99.02  both
610 new_feature 2026-08-31 610.57.04  both
615 new_feature -          615.71.09  both
620 ltsb        2029-09-30 -          open
"""
# Releases of Ubuntu whose package index was read: the branches in multiverse.
UBUNTU_ARCHIVES = {"2204": ["595", "615"], "2404": ["595", "615"], "2604": ["615"]}
HERE = "tests/unit/plugins/module_utils/_nvidia/test_driver_branches.py"


def test_every_generation_has_a_row():
    generations = {name for _first, _last, name in NVIDIA_RANGES}
    assert {*generations, "unknown", "fermi"} == set(GENERATIONS)


def test_each_branch_is_as_documented():
    documented = {}
    for line in DOCUMENTED.split("\n")[1:-1]:
        branch, kind, end, newest, modules = (None if one == "-" else one for one in line.split())
        both = ["open", "proprietary"] if modules == "both" else [modules]
        documented[branch] = {"kind": kind, "end": end, "newest": newest, "modules": both}
    for branch in sorted({*BRANCHES, *documented}):
        found = BRANCHES.get(branch, {})
        row = {name: found.get(name) for name in ("kind", "end", "newest", "modules")}
        assert row == documented.get(branch), (
            f"branch {branch} differs from its documented row. Next step: the row in DOCUMENTED of "
            f"{HERE}, after its source; other tests need no change (fixtures/branches.py)"
        )
        assert row["newest"] is None or row["newest"].startswith(f"{branch}."), (
            f"the newest version of {branch} is of another branch. Next step: correct BRANCHES"
        )
    supported = {branch for branch, row in BRANCHES.items() if row["supported"]}
    assert {branch for branch, row in BRANCHES.items() if row["end"]} <= supported, (
        "a branch with an end of support is not supported. Next step: correct BRANCHES; the plan "
        "compares the end with the date of the run"
    )


@pytest.mark.parametrize("release", UBUNTU_ARCHIVES)
def test_the_branches_of_ubuntus_archive(release):
    # Packages of {jammy,noble,resolute}{,-updates,-security}, 2026-11-21; packages.ubuntu.com has
    # linux-modules-nvidia-610-server-generic in stonking (26.10) alone.
    row = REPOSITORIES[f"ubuntu{release}-archive"]
    assert row["branches"] == ["580", "595", "615"]
    assert row["multiverse"] == UBUNTU_ARCHIVES[release]
    assert row["transitional"] == {
        "535": "580", "550": "580", "565": "580", "570": "580", "575": "580",
        "590": "595", "610": "615",
    }  # fmt: skip
    assert set(row["transitional"].values()) <= set(row["branches"])
    assert row["modules"] == {"615": ["open"]}


def test_a_release_of_ubuntu_has_all_its_rows():
    """``_ubuntu_archive`` gives each release the same branches, so that a new one looks whole."""
    releases = [name[len("ubuntu") :] for name in REPOSITORIES if name.startswith("ubuntu")]
    here, nvidia = HERE, "plugins/module_utils/_nvidia"
    for release in sorted({name.removesuffix("-archive") for name in releases}):
        version = f"{release[:2]}.{release[2:]}"
        missing = {
            f"ubuntu{release} in REPOSITORIES of {nvidia}/driver_branches.py": release in releases,
            f"ubuntu{release}-archive in REPOSITORIES of {nvidia}/driver_branches.py, with the "
            "branches of its -server packages": f"{release}-archive" in releases,
            "its codename in UBUNTU of plugins/module_utils/_distro/upstream.py": (
                version in UBUNTU.values()
            ),
            f"ubuntu{version} in DISTRO_CUDA of {nvidia}/cuda_releases.py": (
                f"ubuntu{version}" in DISTRO_CUDA
            ),
            "a machine in SYSTEMS of tests/unit/fixtures/driver_cases.py, with rows in "
            "driver_table.py": any(row[:2] == ("ubuntu", version) for row in SYSTEMS.values()),
            f"the branches of its archive in UBUNTU_ARCHIVES of {here}, after its package index; "
            "what no document says gets (u), and a row in the table of uncertain data in "
            "docs/driver.md": release in UBUNTU_ARCHIVES,
        }
        wrong = [what for what, good in missing.items() if not good]
        assert not wrong, f"Ubuntu {version} is not whole. Next step: add " + "; ".join(wrong)


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
    assert {row["kind"] for row in BRANCHES.values()} == set(KINDS)


def test_rows_are_merged_by_key_and_field():
    data = driver_data(
        {595: {"end": datetime.date(2027, 6, 30)}, "999": {"kind": "ltsb"}},
        {"2BB5": {"first": 575}},
        {"ubuntu2404": {"url": "https://mirror.example/cuda", "branches": [580, "595"]}},
    )
    assert data.branches["595"] == {**BRANCHES["595"], "end": "2027-06-30"}
    # A branch newer than the newest has its kernel modules.
    newest = BRANCHES[max(BRANCHES, key=int)]
    assert data.branches["999"]["modules"] == newest["modules"]
    assert data.branches["999"]["supported"]
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
        ({"branches": ["999"]}, "nvidia_driver_branches is not a mapping"),
        ({"branches": {"R999": {}}}, "'R999'.*a branch is a number"),
        ({"branches": {"999": "ltsb"}}, "'999'.*is not a mapping"),
        ({"branches": {"999": {"kind": "lts"}}}, "kind is not of ltsb, production"),
        ({"branches": {"999": {"end": "June 2028"}}}, "end is not a date"),
        ({"branches": {"999": {"end": "2028-06-31"}}}, "end is not a date"),
        ({"branches": {"999": {"kernel_modules": []}}}, "kernel_modules, which is not known"),
        ({"branches": {"999": {"modules": []}}}, "modules is not of open"),
        ({"branches": {"999": {"modules": ["free"]}}}, "modules is not of open"),
        ({"branches": {"999": {"supported": "soon"}}}, "supported is not true or false"),
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

# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import functools
import random

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.compatibility import (
    check,
    nearest,
    ordered,
    parse_driver,
    release_of,
    required_by,
    runs,
    supported_by,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.cuda_releases import (
    ARCHITECTURES,
    BUILT_IN,
    FIRST_CUDA,
    LAST_CUDA,
    RELEASES,
    cuda_data,
)

# NVIDIA's table once more, as the release notes write it: update names, and groups of updates. Of
# 13.4, whose third number counts builds, and where a document has no update's name, the version.
# Not in the notes' tables: 12.3.2, 12.8.2, 12.9.2, 13.0.3 and 13.1.2, whose installers of NVIDIA's
# CUDA toolkit archive name the driver (cuda_13.0.3_580.126.20_linux.run).
PUBLISHED = """
13.5|620.10.01
13.4.2|615.71.09
13.4.1|615.71.09
13.3 U1|610.43.02
13.3 GA|610.43.02
13.2.2|595.71.05
13.2 U1|595.58.03
13.2 GA|595.45.04
13.1.2|590.48.01
13.1 U1|590.48.01
13.1 GA|590.44.01
13.0.3|580.126.20
13.0 U2|580.95.05
13.0 U1|580.82.07
13.0 GA|580.65.06
12.9.2|575.57.08
12.9 U1|575.57.08
12.9 GA|575.51.03
12.8.2|570.211.01
12.8 U1|570.124.06
12.8 GA|570.26
12.6 U3|560.35.05
12.6 U2 U1|560.35.03
12.6 GA|560.28.03
12.5 U1|555.42.06
12.5 GA|555.42.02
12.4 U1|550.54.15
12.4 GA|550.54.14
12.3.2|545.23.08
12.3 U1|545.23.08
12.3 GA|545.23.06
12.2 U2|535.104.05
12.2 U1|535.86.09
12.2 GA|535.54.03
12.1 U1 GA|530.30.02
12.0 U1|525.85.12
12.0 GA|525.60.13
11.8 GA|520.61.05
11.7 U1|515.48.07
11.7 GA|515.43.04
11.6 U2 U1|510.47.03
11.6 GA|510.39.01
11.5 U2 U1 GA|495.29.05
11.4 U4 U3|470.82.01
11.4 U2 U1|470.57.02
11.4 GA|470.42.01
11.3 U1 GA|465.19.01
11.2 U2 U1|460.32.03
11.2 GA|460.27.03
11.1 U1|455.32
11.1 GA|455.23
11.0.3|450.51.06
11.0.2|450.51.05
10.2.89|440.33
10.1|418.39
10.0.130|410.48
9.2.148|396.37
9.2.88|396.26
9.1|390.46
9.0|384.81
8.0.61|375.26
8.0.44|367.48
7.5|352.31
7.0|346.46
"""


def published():
    rows = {}
    for line in PUBLISHED.split("\n"):
        if line:
            names, driver = line.split("|")
            version, *updates = names.split()
            for update in updates:
                number = 0 if update == "GA" else int(update[1:])
                rows[f"{version}.{number}"] = driver
            if not updates:
                rows[version] = driver
    return rows


def gpu(generation, product="Card", address="0000:3b:00.0"):
    return {
        "vendor": "nvidia",
        "generation": generation,
        "product": product,
        "address": address,
        "device_id": "1234",
    }


def test_the_table_is_the_published_one():
    assert dict(RELEASES) == published()


def test_each_release_names_its_paired_driver():
    for release, driver in published().items():
        answer = required_by(release)
        assert answer["release"] == release
        assert answer["paired"] == driver
        assert answer["branch"] == driver.split(".")[0]


def test_a_newer_release_never_needs_an_older_driver():
    needs = [tuple(map(int, RELEASES[release].split("."))) for release in ordered()]
    assert needs == sorted(needs)


@pytest.mark.parametrize(
    ("driver", "native", "minor", "newest"),
    [
        ("615", "13.4", "13.x", "13.5"),
        ("610.57.04", "13.3", "13.x", "13.5"),
        ("595.91.07", "13.2", "13.x", "13.5"),
        ("595", "13.2", "13.x", "13.5"),
        ("590.48.01", "13.1", "13.x", "13.5"),
        ("580.178.04", "13.0", "13.x", "13.5"),
        ("580.65.05", "12.9", "13.x", "13.5"),
        ("580", "13.0", "13.x", "13.5"),
        ("575.57.08", "12.9", "12.x", "12.9"),
        ("570.133.20", "12.8", "12.x", "12.9"),
        ("565.57.01", "12.6", "12.x", "12.9"),
        ("560.35.03", "12.6", "12.x", "12.9"),
        ("550.163.01", "12.4", "12.x", "12.9"),
        ("535.288.01", "12.2", "12.x", "12.9"),
        ("525.60.13", "12.0", "12.x", "12.9"),
        ("525.60.12", "11.8", "11.x", "11.8"),
        ("470.256.02", "11.4", "11.x", "11.8"),
        ("450.80.02", "11.0", "11.x", "11.8"),
        ("450.80.01", "11.0", None, "11.0"),
        ("440.33.01", "10.2", None, "10.2"),
        ("390.157", "9.1", None, "9.1"),
        ("340.108", None, None, None),
    ],
)
def test_what_a_driver_runs(driver, native, minor, newest):
    answer = supported_by(driver)
    assert (answer["native"], answer["minor"], answer["newest"]) == (native, minor, newest)


@pytest.mark.parametrize(
    ("cuda", "minimum"),
    [
        ("13.4", "580"),
        ("13.0", "580"),
        ("12.9", "525.60.13"),
        ("12.0", "525.60.13"),
        ("11.8", "450.80.02"),
        ("11.1", "450.80.02"),
        # Paired with a driver that is older than what 11.x needs in general.
        ("11.0", "450.51.05"),
        ("10.2", "440.33"),
        ("9.0", "384.81"),
    ],
)
def test_minor_version_compatibility(cuda, minimum):
    assert required_by(cuda)["minimum"] == minimum


def test_the_limit_of_compatibility_is_said_where_it_matters():
    assert "PTX" in required_by("12.4")["limit"]
    assert required_by("12.0.0")["limit"] == ""
    assert "NVIDIA_REQUIRE_CUDA" in supported_by("535.104.05")["limit"]
    assert supported_by("440.33")["limit"] == ""


def test_an_unverified_driver_is_told_apart_until_somebody_gives_it():
    assert required_by("13.4.2")["verified"] is False
    assert required_by("13.5")["verified"] is False
    assert required_by("13.4")["verified"] is True
    data = cuda_data({"releases": {"13.4.2": "615.80.01"}})
    assert required_by("13.4.2", data)["verified"] is True


known = functools.lru_cache(maxsize=None)(supported_by)


def drivers():
    """Yield each driver of the table, one below, one above, branches, and some at random."""
    dice = random.Random(3)
    for text in sorted({*RELEASES.values(), *BUILT_IN.compatible_since.values()}):
        numbers = [*map(int, text.split(".")), 0, 0][:3]
        yield text if "." in text else f"{text}.10"
        yield ".".join(str(n) for n in (numbers[0], numbers[1], numbers[2] + 1))
        if numbers[2] or numbers[1]:
            less = (numbers[1], numbers[2] - 1) if numbers[2] else (numbers[1] - 1, 99)
            yield f"{numbers[0]}.{less[0]}.{less[1]}"
        yield str(numbers[0])
    for _count in range(60):
        yield f"{dice.randint(340, 640)}.{dice.randint(0, 180)}.{dice.randint(0, 20):02}"


@pytest.mark.full(
    *(release for number, release in enumerate(RELEASES) if number % 6), why="every sixth will do"
)
@pytest.mark.parametrize("release", RELEASES)
def test_both_directions_agree_on_every_driver(release):
    seen = set()
    need = required_by(release)
    for driver in drivers():
        answer = known(driver)
        have = parse_driver(driver)
        number = tuple(map(int, release.split(".")))
        native = answer["native_release"]
        is_native = native is not None and number <= tuple(map(int, native.split(".")))
        assert is_native == (have >= tuple(map(int, need["paired"].split("."))))
        by_major = (answer["minor"] or "0").split(".")[0]
        # A driver runs the older major versions too, each at least as its own compatibility says.
        compatible = number[0] >= 11 and int(by_major) >= number[0]
        can = runs(release, driver)
        assert can == (is_native or compatible)
        seen.add(can)
    assert seen == {True, False}


BRANCHES = {
    # Branch: the newest CUDA whose own driver it is, the newest that runs on it.
    "470": ("11.4", "11.8"),
    "535": ("12.2", "12.9"),
    "550": ("12.4", "12.9"),
    "560": ("12.6", "12.9"),
    "565": ("12.6", "12.9"),
    "570": ("12.8", "12.9"),
    "575": ("12.9", "12.9"),
    "580": ("13.0", "13.5"),
    "590": ("13.1", "13.5"),
    "595": ("13.2", "13.5"),
    "610": ("13.3", "13.5"),
    "615": ("13.4", "13.5"),
    "620": ("13.5", "13.5"),
}


@pytest.mark.parametrize("branch", BRANCHES)
def test_every_cuda_on_every_branch(branch):
    native, newest = (tuple(int(part) for part in text.split(".")) for text in BRANCHES[branch])
    for release in RELEASES:
        number = tuple(int(part) for part in release.split("."))[:2]
        verdict = check(release, [gpu("turing")], branch)
        assert bool(verdict.refusals) == (number > newest), release
        compatible = any("minor-version compatibility only" in text for text in verdict.warnings)
        assert compatible == (native < number <= newest), release


@pytest.mark.parametrize("generation", LAST_CUDA)
def test_every_generation_has_its_rows(generation):
    assert generation in FIRST_CUDA
    assert generation in ARCHITECTURES


@pytest.mark.parametrize("generation", LAST_CUDA)
def test_every_cuda_on_every_generation(generation):
    last = {"kepler": 11, "maxwell": 12, "pascal": 12, "volta": 12}.get(generation, 99)
    first = tuple(int(part) for part in FIRST_CUDA[generation].split("."))
    for release in RELEASES:
        major = int(release.split(".")[0])
        verdict = check(release, [gpu(generation)], "620")
        assert bool(verdict.refusals) == (major > last), release
        too_old = tuple(int(part) for part in release.split("."))[:2] < first
        said = any("cannot compile for it" in text for text in verdict.warnings)
        assert said == too_old, release
        assert (generation in required_by(release)["dropped"]) == (major > last), release


def test_a_dropped_gpu_is_named_once_with_both_ways_over():
    cards = [gpu("volta", "Tesla V100", f"0000:{n:02x}:00.0") for n in range(8)]
    verdict = check("13.0", [*cards, gpu("turing", "Tesla T4")], "580.95.05")
    assert len(verdict.refusals) == 1
    assert "Tesla V100 (volta, 0000:00:00.0)" in verdict.refusals[0].line
    assert "ask for CUDA 12.9 or older" in verdict.refusals[0].line
    assert "images with CUDA 12.x or older" in verdict.refusals[0].line


def test_an_old_driver_is_named_with_both_ways_over():
    (refusal,) = check("12.3", [gpu("turing")], "470.57.02").refusals
    text = refusal.line
    assert "Driver 470.57.02 cannot run CUDA 12.3" in text
    assert "driver 525.60.13 or newer (545.23.06 for all features of 12.3)" in text
    assert "or use a toolkit or an image with CUDA 11.8 or older" in text


def test_a_driver_too_old_for_all():
    (refusal,) = check("12.3", [gpu("turing")], "340.108").refusals
    text = refusal.line
    assert "no CUDA of the table" in text


def test_without_a_driver_there_is_a_warning_only():
    verdict = check("12.9", [gpu("turing")], None)
    assert verdict.refusals == ()
    assert "525.60.13 or newer (575.51.03" in verdict.warnings[0]


def test_a_generation_without_row_and_cards_of_others():
    amd = {**gpu("CDNA3", "MI300X"), "vendor": "amd"}
    verdict = check("13.0", [gpu("unknown", None), amd], "580.95.05")
    assert verdict.refusals == ()
    (text,) = verdict.warnings
    assert "1234 (unknown" in text


@pytest.mark.parametrize(
    ("asked", "release"),
    [
        ("12.9", "12.9.0"),
        ("12.4.1", "12.4.1"),
        ("12.9.7", "12.9.2"),
        # 13.4.1 is 13.4 itself, 13.4.0 was a preview (release notes of 13.4.1).
        ("13.4", "13.4.1"),
        ("13.4.0", "13.4.1"),
        ("13.4.2", "13.4.2"),
        # No document names its third number.
        ("13.5", "13.5"),
        ("13.5.1", "13.5"),
        ("11.0.1", "11.0.2"),
        ("10.2", "10.2.89"),
        ("cuda>=12.3", "12.3.0"),
        ("CUDA >= 12.3", "12.3.0"),
        ("8.0.61", "8.0.61"),
    ],
)
def test_which_release_is_meant(asked, release):
    assert release_of(asked) == release


@pytest.mark.parametrize("value", ["", "twelve", "12", None, True, "12.9-1", "12.9; rm", "1" * 9])
def test_nonsense_for_cuda_is_named(value):
    with pytest.raises(InputError) as caught:
        required_by(value)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("value", ["", "new", None, True, 580.95, "580.95.05-1", "5", "580."])
def test_nonsense_for_a_driver_is_named(value):
    with pytest.raises(InputError) as caught:
        supported_by(value)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("cuda", ["12.7", "14.0", "6.5"])
def test_a_cuda_that_the_table_does_not_have(cuda):
    with pytest.raises(InputError, match="is not in the table") as caught:
        required_by(cuda)
    assert cuda in str(caught.value)


@pytest.mark.parametrize(
    ("cuda", "near"),
    [
        ("12.99", ["12.9", "13.0"]),
        ("12.7", ["12.6", "12.8"]),
        ("12.1", ["12.1", "12.2"]),
        ("14.0", ["13.5"]),
        ("6.5", ["7.0"]),
    ],
)
def test_the_nearest_known_releases(cuda, near):
    assert nearest(cuda) == near


def test_an_unknown_release_is_answered_with_the_nearest_ones():
    with pytest.raises(InputError) as caught:
        release_of("12.99")
    assert "CUDA 12.99 is not in the table" in caught.value.cause
    assert "the nearest known ones are 12.9 and 13.0" in caught.value.cause
    assert caught.value.next_step.startswith("Ask for '12.9'")
    assert "'12.99.0': '<driver>'" in caught.value.next_step


def test_a_new_release_is_a_change_of_data():
    data = cuda_data(
        {
            "releases": {"14.0.0": "650.11.02"},
            "compatible_since": {"14": "650"},
            "first": {"feynman": "14.0"},
            "last": {"feynman": None, "turing": 13},
            "architectures": {"feynman": "sm_130"},
        }
    )
    assert required_by("14.0", data)["minimum"] == "650"
    assert supported_by("650.11.02", data)["native"] == "14.0"
    assert check("14.0", [gpu("turing")], "650.11.02", data).refusals
    assert not check("14.0", [gpu("feynman")], "650.11.02", data).refusals
    assert "14.0.0" not in BUILT_IN.releases


@pytest.mark.parametrize(
    "rows",
    [
        {"release": {}},
        {"releases": ["13.5"]},
        {"releases": {"13": "620"}},
        {"releases": {"13.5": "new"}},
        {"releases": {"13.5": None}},
        {"compatible_since": {"13.1": "580"}},
        {"first": {"rubin": "new"}},
        {"last": {"rubin": "13.4"}},
        {"architectures": {"rubin": "compute_130"}},
        {"distributions": {"debian14": "new"}},
    ],
)
def test_rows_that_cannot_be_understood(rows):
    with pytest.raises(InputError, match="data of CUDA"):
        cuda_data(rows)


@pytest.mark.parametrize(
    ("cuda", "end"),
    [
        ("12.0", "runs with 525.60.13 or newer."),
        ("12.9", "runs with 525.60.13 or newer (575.51.03 for all its features)."),
    ],
)
def test_without_a_driver_the_one_that_is_needed_is_named_once(cuda, end):
    (text,) = check(cuda, [gpu("ampere")], None).warnings
    assert text.endswith(end)

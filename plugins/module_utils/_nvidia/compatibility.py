# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compatibility of CUDA versions, drivers and GPUs. Pure."""

from __future__ import annotations

import bisect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._core.errors import InputError, Refusal
from .._core.versions import Version, version_numbers
from .cuda_releases import BUILT_IN, UNVERIFIED, CudaData

# A branch alone means its newest driver.
_NEWEST = 10**6
_DRIVER = re.compile(r"\d{2,4}(?:\.\d{1,4}(?:\.\d{1,3})?)?\Z")
_CUDA = re.compile(r"(?:cuda\s*>=\s*)?(\d{1,2}\.\d{1,2}(?:\.\d{1,3})?)\Z", re.IGNORECASE)

LIMIT = (
    "Minor-version compatibility: features that came with a newer driver, and compiling PTX for "
    "the GPU at start (JIT), need the paired driver; so does an image that demands its CUDA "
    "(cuda>=X in NVIDIA_REQUIRE_CUDA) without an exception for the driver."
)


@dataclass(frozen=True)
class Verdict:
    """Whether a CUDA version runs on a node."""

    refusals: tuple[Refusal, ...] = ()
    warnings: tuple[str, ...] = ()


def parse_driver(driver: Any) -> Version:
    """Return a driver's version as numbers. A branch alone means its newest driver.

    :raises InputError: the value is not a driver version.
    """
    text = str(driver).strip()
    if isinstance(driver, (bool, float)) or not _DRIVER.match(text):
        raise InputError(
            f"{driver!r} is not the version of an NVIDIA driver.",
            next_step="Give a version such as '580.95.05', or a branch such as '580'.",
        )
    numbers = version_numbers(text)
    return (*numbers, _NEWEST) if len(numbers) == 1 else numbers


def parse_cuda(cuda: Any) -> Version:
    """Return the numbers of a CUDA version, or of an image's condition such as ``cuda>=12.3``.

    :raises InputError: the value is not a CUDA version.
    """
    match = _CUDA.match(str(cuda).strip())
    if isinstance(cuda, bool) or not match:
        raise InputError(
            f"{cuda!r} is not a version of CUDA.",
            next_step="Give a version such as '12.9' or '12.4.1', in quotes.",
        )
    return version_numbers(match.group(1))


def release_of(cuda: Any, data: CudaData = BUILT_IN) -> str:
    """Return the release in the table for a version: ``12.9`` is the first 12.9.

    An update newer than the table counts as the newest update in the table.

    :raises InputError: the table has no such CUDA.
    """
    wanted = parse_cuda(cuda)
    updates = [release for release in ordered(data) if version_numbers(release)[:2] == wanted[:2]]
    if not updates:
        near = nearest(cuda, data)
        raise InputError(
            f"CUDA {minor(wanted)} is not in the table of CUDA releases; the nearest known ones "
            f"are {' and '.join(near)}.",
            evidence=f"the table has {', '.join(_minors(data))}",
            next_step=f"Ask for '{near[0]}' or another of them; or, where NVIDIA has released "
            f"{minor(wanted)} since, add it with its driver: data: {{releases: "
            f"{{'{minor(wanted)}.0': '<driver>'}}}}.",
        )
    if len(wanted) == 2:
        return updates[0]
    older = [release for release in updates if version_numbers(release) <= wanted]
    return older[-1] if older else updates[0]


def nearest(cuda: Any, data: CudaData = BUILT_IN) -> list[str]:
    """Return the known releases next to a version, as ``12.9``: the one below, the one above.

    :raises InputError: it is no CUDA version.
    """
    known = _minors(data)
    place = bisect.bisect([version_numbers(name) for name in known], parse_cuda(cuda)[:2])
    return known[max(place - 1, 0) : place + 1]


def _minors(data: CudaData) -> list[str]:
    return list(dict.fromkeys(minor(release) for release in ordered(data)))


def ordered(data: CudaData = BUILT_IN) -> list[str]:
    """Return the releases of the table, oldest first."""
    return sorted(data.releases, key=version_numbers)


def minor(version: str | Version) -> str:
    """Return ``12.4`` of 12.4.1."""
    numbers = version_numbers(version) if isinstance(version, str) else version
    return ".".join(str(number) for number in numbers[:2])


def supported_by(driver: Any, data: CudaData = BUILT_IN) -> dict[str, Any]:
    """Return the CUDA versions that a driver runs.

    :raises InputError: the value is not a driver version.
    """
    have = parse_driver(driver)
    native = [release for release in ordered(data) if _enough(have, data.releases[release])]
    compatible = [major for major, since in data.compatible_since.items() if _enough(have, since)]
    major = max(compatible, key=int) if compatible else None
    runnable = [
        release
        for release in ordered(data)
        if release in native or release.partition(".")[0] in compatible
    ]
    return {
        "driver": str(driver).strip(),
        "native": minor(native[-1]) if native else None,
        "native_release": native[-1] if native else None,
        "minor": f"{major}.x" if major else None,
        "newest": minor(runnable[-1]) if runnable else None,
        "limit": LIMIT if runnable and runnable[-1] not in native else "",
    }


def required_by(cuda: Any, data: CudaData = BUILT_IN) -> dict[str, Any]:
    """Return the driver that a CUDA version needs.

    For ``cuda>=12.3``, the condition of an image, minor-version compatibility does not count: the
    container toolkit compares it with the CUDA that came with the driver.

    :raises InputError: it is no CUDA version, or not in the table.
    """
    release = release_of(cuda, data)
    paired = data.releases[release]
    since = data.compatible_since.get(release.partition(".")[0])
    # The paired driver always does: 11.0 came with one that is older than 11.x needs in general.
    demanded = ">=" in str(cuda)
    newer = since and not demanded and not _enough(version_numbers(since), paired)
    minimum = since if since and newer else paired
    return {
        "cuda": str(cuda).strip(),
        "release": release,
        "paired": paired,
        "branch": paired.partition(".")[0],
        "minimum": minimum,
        "minimum_branch": minimum.partition(".")[0],
        "verified": release not in UNVERIFIED
        or data.releases[release] != BUILT_IN.releases[release],
        "dropped": [name for name in data.last if _too_new(release, name, data)],
        "limit": LIMIT if minimum != paired else "",
    }


def runs(cuda: Any, driver: Any, data: CudaData = BUILT_IN) -> bool:
    """Return whether a driver runs a CUDA version, at least by minor-version compatibility."""
    return _enough(parse_driver(driver), required_by(cuda, data)["minimum"])


def check(
    cuda: str,
    gpus: Sequence[Mapping[str, Any]],
    driver: str | None,
    data: CudaData = BUILT_IN,
) -> Verdict:
    """Check whether a CUDA version runs on these GPUs with this driver.

    :param gpus: entries of the fact ``gpu_node.gpus``; other vendors' are ignored.
    :param driver: version or branch; None if no driver is installed.
    """
    release = release_of(cuda, data)
    refusals: list[Refusal] = []
    warnings: list[str] = []
    for gpu in _distinct(gpus):
        generation = str(gpu.get("generation") or "unknown")
        name = f"{gpu.get('product') or gpu.get('device_id')} ({generation}, {gpu['address']})"
        if generation not in data.last:
            warnings.append(
                f"Which CUDA knows {name} is not in the table; CUDA {minor(release)} is taken as "
                "good."
            )
        elif _too_new(release, generation, data):
            last = data.last[generation]
            refusals.append(
                Refusal(
                    f"CUDA {minor(release)} has dropped {name}; {last}.x is the last one that "
                    "knows it.",
                    f"ask for CUDA {_last_release(str(last), data)} or older, and run images with "
                    f"CUDA {last}.x or older; no driver changes this.",
                )
            )
        elif version_numbers(release) < version_numbers(data.first.get(generation, "0")):
            warnings.append(
                f"CUDA {minor(release)} is older than {name} and cannot compile for it: "
                f"{data.first[generation]} is the first. Its programs run only where they bring "
                "PTX, which the driver then compiles at start."
            )
    refusal, warning = _check_driver(release, driver, data)
    refusals.extend(refusal)
    warnings.extend(warning)
    return Verdict(tuple(refusals), tuple(warnings))


def _check_driver(
    release: str, driver: str | None, data: CudaData
) -> tuple[tuple[Refusal, ...], tuple[str, ...]]:
    need = required_by(release, data)
    if not driver:
        full = f" ({need['paired']} for all its features)" if need["limit"] else ""
        return (), (
            f"No NVIDIA driver is on this node: CUDA {minor(release)} compiles without one, and "
            f"runs with {need['minimum']} or newer{full}.",
        )
    have = parse_driver(driver)
    if not _enough(have, need["minimum"]):
        can = supported_by(driver, data)
        older = (
            f"use a toolkit or an image with CUDA {can['newest']} or older"
            if can["newest"]
            else "no CUDA of the table is old enough for it"
        )
        paired = (
            f" ({need['paired']} for all features of {minor(release)})"
            if need["paired"] != need["minimum"]
            else ""
        )
        refusal = Refusal(
            f"Driver {driver} cannot run CUDA {minor(release)}.",
            f"install driver {need['minimum']} or newer{paired}, or {older}.",
        )
        return (refusal,), ()
    if not _enough(have, need["paired"]):
        return (), (
            f"Driver {driver} runs CUDA {release} by minor-version compatibility only; its own "
            f"is {supported_by(driver, data)['native']}. Features of a newer driver and PTX "
            f"that is compiled at start need {need['paired']} or newer.",
        )
    return (), ()


def _distinct(gpus: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return one NVIDIA GPU of each kind, so that equal cards give one refusal."""
    found: dict[Any, Mapping[str, Any]] = {}
    for gpu in gpus:
        if gpu.get("vendor", "nvidia") == "nvidia":
            found.setdefault((gpu.get("generation"), gpu.get("product")), gpu)
    return list(found.values())


def _too_new(release: str, generation: str, data: CudaData) -> bool:
    last = data.last.get(generation)
    return last is not None and version_numbers(release)[0] > int(last)


def _last_release(major: str, data: CudaData) -> str:
    of_major = [release for release in ordered(data) if release.partition(".")[0] == major]
    return minor(of_major[-1]) if of_major else major


def _enough(have: Version, least: str) -> bool:
    return have >= version_numbers(least)

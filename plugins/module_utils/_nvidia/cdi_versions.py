# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which version of CDI specifications a release of a container engine reads. Data, not code.

An engine refuses a specification of a version that its library (container-device-interface) does
not know, and leaves out its devices: they are unresolvable. Source, read 2026-11-28: the version of
that library in go.mod (Docker: vendor.mod) of the tags of each engine, and the versions that the
library's tags know (pkg/cdi/version.go). NVIDIA's release notes of the container toolkit 1.19.1
have the same first releases for 0.7.0. Packages of a distribution that changed the library are not
known.
"""

from __future__ import annotations

from collections.abc import Mapping

from .._core.versions import version_numbers

#: Engine -> first release and the newest version of a specification that it reads, oldest first.
READERS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "containerd": (
        ("1.7.0", "0.5.0"),
        ("1.7.12", "0.6.0"),
        ("1.7.16", "0.7.0"),
        ("1.7.27", "0.8.0"),
        # 2.0 is older than the last releases of 1.7.
        ("2.0.0", "0.8.0"),
        ("2.0.5", "1.0.0"),
        ("2.2.1", "1.1.0"),
    ),
    "docker": (
        ("25.0.0", "0.6.0"),
        ("26.1.0", "0.7.0"),
        ("27.4.0", "0.8.0"),
        ("28.1.0", "1.0.0"),
        ("29.2.0", "1.1.0"),
    ),
    "crio": (
        ("1.24.0", "0.3.0"),
        ("1.25.0", "0.5.0"),
        ("1.28.0", "0.6.0"),
        ("1.30.0", "0.7.0"),
        ("1.31.0", "0.8.0"),
        ("1.33.0", "1.0.0"),
        ("1.35.0", "1.1.0"),
    ),
    "podman": (
        ("4.1.0", "0.4.0"),
        ("4.3.0", "0.5.0"),
        ("4.7.0", "0.6.0"),
        ("5.1.0", "0.7.0"),
        ("5.2.0", "0.8.0"),
        ("5.5.0", "1.0.0"),
    ),
}


def newest_read(engine: str, release: str | None) -> str | None:
    """Return the newest version of a specification that an engine reads; None if not known."""
    have = version_numbers(release)
    found = [read for first, read in READERS[engine] if have and have >= version_numbers(first)]
    return found[-1] if found else None


def is_newer(version: str, read: str) -> bool:
    """Return whether a specification is newer than what an engine reads."""
    return version_numbers(version) > version_numbers(read)


def first_reader(engine: str, version: str) -> str | None:
    """Return the first release of an engine that reads the version; None if not known."""
    return next(
        (first for first, read in READERS[engine] if not is_newer(version, read)),
        None,
    )

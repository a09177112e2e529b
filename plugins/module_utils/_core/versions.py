# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds versions in texts, and compares them as tuples of numbers.

Package managers compare their own versions.
"""

from __future__ import annotations

import re

Version = tuple[int, ...]

_VERSION = re.compile(r"\bv?(\d+\.\d+(?:\.\d+)?(?:-(?:rc|beta|alpha)[.\d]+)?)")


def find_version(text: str | None) -> str | None:
    """Return the first version in a text, such as the output of ``--version``.

    ``containerd github.com/containerd/containerd 1.6.20~ds1`` gives ``1.6.20``, and ``v2.0.0-rc.3``
    gives ``2.0.0-rc.3``.
    """
    match = _VERSION.search(text or "")
    return match.group(1) if match else None


def version_numbers(version: str | None) -> Version:
    """Return all numbers of a version: (580, 126, 9) of ``580.126.09``; () for None."""
    return tuple(int(number) for number in re.findall(r"\d+", version or ""))


def upstream_version(version: str | None) -> str | None:
    """Return a package's version without epoch and revision: ``9.8.0.87`` of ``1:9.8.0.87-1``."""
    match = re.match(r"(?:\d+:)?(\d+(?:\.\d+)*)", version or "")
    return match.group(1) if match else None


def upstream_numbers(version: str | None) -> Version:
    """Return the numbers of a package's version without epoch and revision; () for no version.

    ``1:9.8.0.87-1`` gives (9, 8, 0, 87).
    """
    return version_numbers(upstream_version(version))


def package_numbers(version: str) -> Version:
    """Return the numbers of a package's version and its revision, up to the first word.

    ``1:1.20.0-1`` gives (1, 20, 0, 1), and ``1.20.0~rc.1-1`` (1, 20, 0).
    """
    match = re.match(r"\d+(?:[.~+-]\d+)*", version.partition(":")[2] or version)
    return version_numbers(match.group()) if match else ()

# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CUDA releases, the drivers they need and the GPUs they support. Data, not code.

Sources, gathered 2026-11-23: the CUDA release notes (13.2.2, table 3, and those of 13.3 to 13.4.2;
of 13.5: 2026-11-28) for the drivers, and where they have no row, the driver in the name of NVIDIA's
installer (12.3.2, 12.8.2, 12.9.2, 13.0.3, 13.1.2); docs.nvidia.com/deploy/cuda-compatibility for
minor-version compatibility, and that 13.x has dropped Maxwell, Pascal and Volta. What is marked (u)
could not be checked against a source: it is from memory. docs/data.md says how to compare.

Up to 13.3, update N of X.Y is X.Y.N. From 13.4 on the third number is that of a build: 13.4 itself
is 13.4.1 (13.4.0 was a preview), its update 1 is 13.4.2. What is asked as X.Y is the first X.Y.
Each value can be overridden (:func:`cuda_data`), so that a new CUDA needs no release of the
collection.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from .._core.errors import InputError
from .._distro.data import DEB, RPM

SOURCE_DATE = "2026-11-28"

# Release: the lowest driver that has all its features. The table is that of x86_64, and taken for
# sbsa too (u). Oldest last.
RELEASES: Mapping[str, str] = MappingProxyType(
    {
        # Its third number, and the driver, which is that of cuda-compat-13-5 in lists of others:
        # (u). Its notes do not pair it with one.
        "13.5": "620.10.01",
        # The notes name the branch only, R615. 615.71.09 came the same day; none before it is
        # known.
        "13.4.2": "615.71.09",
        "13.4.1": "615.71.09",
        "13.3.1": "610.43.02",
        "13.3.0": "610.43.02",
        "13.2.2": "595.71.05",
        "13.2.1": "595.58.03",
        "13.2.0": "595.45.04",
        "13.1.2": "590.48.01",
        "13.1.1": "590.48.01",
        "13.1.0": "590.44.01",
        "13.0.3": "580.126.20",
        "13.0.2": "580.95.05",
        "13.0.1": "580.82.07",
        "13.0.0": "580.65.06",
        "12.9.2": "575.57.08",
        "12.9.1": "575.57.08",
        "12.9.0": "575.51.03",
        "12.8.2": "570.211.01",
        "12.8.1": "570.124.06",
        "12.8.0": "570.26",
        # There is no 12.7 in the table.
        "12.6.3": "560.35.05",
        "12.6.2": "560.35.03",
        "12.6.1": "560.35.03",
        "12.6.0": "560.28.03",
        "12.5.1": "555.42.06",
        "12.5.0": "555.42.02",
        "12.4.1": "550.54.15",
        "12.4.0": "550.54.14",
        "12.3.2": "545.23.08",
        "12.3.1": "545.23.08",
        "12.3.0": "545.23.06",
        "12.2.2": "535.104.05",
        "12.2.1": "535.86.09",
        "12.2.0": "535.54.03",
        "12.1.1": "530.30.02",
        "12.1.0": "530.30.02",
        "12.0.1": "525.85.12",
        "12.0.0": "525.60.13",
        "11.8.0": "520.61.05",
        "11.7.1": "515.48.07",
        "11.7.0": "515.43.04",
        "11.6.2": "510.47.03",
        "11.6.1": "510.47.03",
        "11.6.0": "510.39.01",
        "11.5.2": "495.29.05",
        "11.5.1": "495.29.05",
        "11.5.0": "495.29.05",
        "11.4.4": "470.82.01",
        "11.4.3": "470.82.01",
        "11.4.2": "470.57.02",
        "11.4.1": "470.57.02",
        "11.4.0": "470.42.01",
        "11.3.1": "465.19.01",
        "11.3.0": "465.19.01",
        "11.2.2": "460.32.03",
        "11.2.1": "460.32.03",
        "11.2.0": "460.27.03",
        "11.1.1": "455.32",
        "11.1.0": "455.23",
        "11.0.3": "450.51.06",
        "11.0.2": "450.51.05",
        "10.2.89": "440.33",
        "10.1": "418.39",
        "10.0.130": "410.48",
        "9.2.148": "396.37",
        "9.2.88": "396.26",
        "9.1": "390.46",
        "9.0": "384.81",
        "8.0.61": "375.26",
        "8.0.44": "367.48",
        "7.5": "352.31",
        "7.0": "346.46",
    }
)

# Minor-version compatibility: what a driver must be at least to run any release of a major one.
COMPATIBLE_SINCE: Mapping[str, str] = MappingProxyType(
    {"13": "580", "12": "525.60.13", "11": "450.80.02"}
)

# No document pairs it with an exact driver: see its row in the table.
UNVERIFIED = ("13.5", "13.4.2")

# The first CUDA that compiles for a generation, and the last major one that knows it; None: all
# since. Of a generation with several chips it is the first of them. All of the first ones, and
# Kepler's last, are (u).
FIRST_CUDA: Mapping[str, str] = MappingProxyType(
    {
        "kepler": "6.0",
        "maxwell": "6.5",
        "pascal": "8.0",
        "volta": "9.0",
        "turing": "10.0",
        "ampere": "11.0",
        "ada": "11.8",
        "hopper": "11.8",
        "blackwell": "12.8",
        # A preview: sm_107 of nvcc 13.4 (release notes).
        "rubin": "13.4",
    }
)
LAST_CUDA: Mapping[str, str | None] = MappingProxyType(
    {
        # Kepler 3.5 and 3.7 (K40, K80); 3.0 ended with 10.2.
        "kepler": "11",
        "maxwell": "12",
        "pascal": "12",
        "volta": "12",
        "turing": None,
        "ampere": None,
        "ada": None,
        "hopper": None,
        "blackwell": None,
        "rubin": None,
    }
)

# What nvcc calls a generation (its first chip; Kepler and Maxwell: the first that servers had), for
# the proof that it compiles. Turing to Hopper were compiled with the real nvcc 13.0; the others
# are (u).
ARCHITECTURES: Mapping[str, str] = MappingProxyType(
    {
        "kepler": "sm_35",
        "maxwell": "sm_52",
        "pascal": "sm_60",
        "volta": "sm_70",
        "turing": "sm_75",
        "ampere": "sm_80",
        "ada": "sm_89",
        "hopper": "sm_90",
        "blackwell": "sm_100",
        "rubin": "sm_107",
    }
)

# The CUDA that a distribution has itself, by its id and version: of Debian's archive, where 12's
# was also installed; Ubuntu's are (u).
DISTRO_PACKAGE = "nvidia-cuda-toolkit"
DISTRO_COMPONENTS = {"debian": ("contrib", "non-free"), "ubuntu": ("multiverse",)}
DISTRO_CUDA: Mapping[str, str] = MappingProxyType(
    {
        "debian12": "11.8.0",
        "debian13": "12.4.1",
        "ubuntu22.04": "11.5.1",
        "ubuntu24.04": "12.0.1",
        "ubuntu26.04": "12.4.1",
    }
)

# glibc: the first CUDA whose headers compile with it. glibc 2.41 declares sinpi and cospi, and 2.42
# rsqrt, with another exception specification than the headers of older releases
# (crt/math_functions.h), so that no program compiles. Sources, read 2026-11-28:
# github.com/NVIDIA/cuda-samples/issues/378 (12.9 with 2.41), github.com/NixOS/nixpkgs/pull/512796
# (13.0: sinpi and cospi are right, rsqrt is not), github.com/llvm/llvm-project/pull/185701 (13.2 is
# right with 2.42).
GLIBC: Mapping[str, str] = MappingProxyType({"2.41": "13.0", "2.42": "13.2"})

# CUDA: the newest gcc that its headers accept (crt/host_config.h), from this release on. Sources,
# read 2026-11-28: _cuda/db/bootstrap/nvcc.nix of github.com/NixOS/nixpkgs, which names NVIDIA's
# installation guides (11.0 to 13.0); 11.4.1 is (u);
# github.com/cms-patatrack/pixeltrack-standalone/pull/432 (13.3) and
# github.com/cms-sw/cmsdist/pull/10844 (13.4).
GCC: Mapping[str, str] = MappingProxyType(
    {
        "11.0": "9",
        "11.1": "10",
        "11.4.1": "11",
        "12.0": "12",
        "12.4": "13",
        "12.8": "14",
        "13.0": "15",
        "13.4": "16",
    }
)

# The packages of NCCL, by the kind of packages; RPM's are (u). cuDNN's is called alike in both (u).
NCCL_PACKAGES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {DEB: ("libnccl2", "libnccl-dev"), RPM: ("libnccl", "libnccl-devel")}
)

_VERSION = re.compile(r"\d+(?:\.\d+){0,3}\Z")
_CUDA = re.compile(r"\d+\.\d+(?:\.\d+)?\Z")


@dataclass(frozen=True)
class CudaData:
    """The CUDA tables, with the user's entries merged over the built-in ones."""

    releases: Mapping[str, str]
    compatible_since: Mapping[str, str]
    first: Mapping[str, str]
    last: Mapping[str, str | None]
    architectures: Mapping[str, str]
    distributions: Mapping[str, str]
    glibc: Mapping[str, str]
    gcc: Mapping[str, str]


BUILT_IN = CudaData(
    *(RELEASES, COMPATIBLE_SINCE, FIRST_CUDA, LAST_CUDA, ARCHITECTURES, DISTRO_CUDA, GLIBC, GCC)
)


def cuda_data(rows: Mapping[str, Any] | None = None) -> CudaData:
    """Return the built-in tables with the user's entries merged over them.

    :param rows: the tables by name (``releases``, ``compatible_since``, ``first``, ``last``,
        ``architectures``, ``distributions``, ``glibc``, ``gcc``), each a mapping.
    :raises InputError: an entry is not valid.
    """
    if not rows:
        return BUILT_IN
    unknown = sorted(set(rows) - set(CudaData.__dataclass_fields__))
    if unknown:
        raise InputError(
            f"data of CUDA: unknown table {', '.join(unknown)}.",
            next_step=f"Name one of {', '.join(CudaData.__dataclass_fields__)}.",
        )
    tables: dict[str, Any] = {}
    for name in CudaData.__dataclass_fields__:
        more = rows.get(name) or {}
        if not isinstance(more, Mapping):
            raise InputError(f"data of CUDA: {name} is {more!r}, which is not a mapping.")
        built_in: Mapping[str, Any] = getattr(BUILT_IN, name)
        tables[name] = {**built_in, **{str(key): _row(name, key, more[key]) for key in more}}
    return CudaData(**tables)


def _row(table: str, key: Any, value: Any) -> str | None:
    text = None if value is None else str(value)
    good = {
        "releases": _CUDA.match(str(key)) and text and _VERSION.match(text),
        "compatible_since": str(key).isdigit() and text and _VERSION.match(text),
        "first": text and _CUDA.match(text),
        "last": text is None or text.isdigit(),
        "architectures": text and re.match(r"sm_\d+[af]?\Z", text),
        "distributions": text and _CUDA.match(text),
        "glibc": _VERSION.match(str(key)) and text and _CUDA.match(text),
        "gcc": _CUDA.match(str(key)) and text and text.isdigit(),
    }[table]
    if not good:
        raise InputError(
            f"data of CUDA: the row {key!r}: {value!r} of {table} cannot be understood.",
            next_step="Write it as the built-in ones: releases: {'13.6.0': '620.10'}, "
            "compatible_since: {'14': '650.01'}, first: {feynman: '14.0'}, last: {volta: '12'}, "
            "architectures: {feynman: sm_130}, distributions: {'debian99': '13.1.0'}, "
            "glibc: {'2.44': '13.6'}, gcc: {'13.6': '17'}. "
            "Put quotes around versions.",
        )
    return text

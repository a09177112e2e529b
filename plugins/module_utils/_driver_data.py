# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Driver branches, generations, products and repositories. Data, not code.

Read 2026-11-21. Sources: docs.nvidia.com (data center driver 615, driver installation guide 580 to
620, cuda-toolkit-driver-and-architecture-matrix), versions.mk of NVIDIA's gpu-driver-container,
packages.ubuntu.com, Debian's own package lists (bookworm, trixie), SIGNATURES.md and issues 30, 38
and 39 of NVIDIA/cuda-repo-management. What is marked (u) was found in no document and is a guess
that a user can correct: every table can be overridden, row by row, by variables of the role
``nvidia_driver`` (``nvidia_driver_branches``, ``_gpus`` and ``_repositories``).
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ._errors import InputError

READ = "2026-11-21"

LTSB = "ltsb"
PRODUCTION = "production"
NEW_FEATURE = "new_feature"
# No longer maintained, and for GPUs that nothing newer serves.
LEGACY = "legacy"

KINDS = {
    LTSB: "long-term support branch",
    PRODUCTION: "production branch",
    NEW_FEATURE: "new feature branch",
    LEGACY: "legacy branch",
}

OPEN = "open"
PROPRIETARY = "proprietary"
_BOTH = [OPEN, PROPRIETARY]

# The open modules are NVIDIA's default from this branch on, and are there from the other on.
OPEN_DEFAULT_FROM = 560
OPEN_FROM = 515
# From this branch on NVIDIA's packages for apt have no branch in their names, but are pinned.
PINNED_FROM = 590


def _branch(kind: str, end: str | None, newest: str | None, **more: Any) -> dict[str, Any]:
    return {
        "kind": kind,
        "end": end,
        "supported": True,
        "newest": newest,
        "modules": _BOTH,
        **more,
    }


# ``end``: the last day of support (documents name the month); null where no document says it, and
# ``supported`` is what counts then.
BRANCHES: dict[str, dict[str, Any]] = {
    "390": _branch(LEGACY, None, "390.157", supported=False, modules=[PROPRIETARY]),
    "470": _branch(LEGACY, None, "470.256.02", supported=False, modules=[PROPRIETARY]),
    "525": _branch(PRODUCTION, None, None, supported=False),
    "535": _branch(LTSB, "2026-06-30", "535.288.01"),
    "545": _branch(NEW_FEATURE, None, None, supported=False),
    "550": _branch(PRODUCTION, None, None, supported=False),
    "555": _branch(NEW_FEATURE, None, None, supported=False),
    "560": _branch(NEW_FEATURE, None, None, supported=False),
    "565": _branch(NEW_FEATURE, None, None, supported=False),
    "570": _branch(PRODUCTION, "2026-02-28", None),
    "575": _branch(NEW_FEATURE, None, None, supported=False),
    "580": _branch(LTSB, "2028-06-30", "580.178.04"),  # end: another page says August (u)
    "590": _branch(NEW_FEATURE, None, "590.48.01", supported=False),
    "595": _branch(PRODUCTION, "2027-03-31", "595.91.07"),
    "610": _branch(NEW_FEATURE, "2026-08-31", "610.57.04"),
    "615": _branch(NEW_FEATURE, None, None),  # kind (u)
    "620": _branch(NEW_FEATURE, None, None, modules=[OPEN]),  # kind (u)
}

# ``first`` and ``last`` branch, and the kernel modules that work. ``first`` below 525 matters to
# nobody who asks for a driver today; it is there so that each row says the whole.
_OLD = {"last": "580", "modules": [PROPRIETARY]}
_OPEN_ONLY = {"first": "570", "last": None, "modules": [OPEN]}
GENERATIONS: dict[str, dict[str, Any]] = {
    "fermi": {"first": "390", "last": "390", "modules": [PROPRIETARY]},
    "kepler": {"first": "390", "last": "470", "modules": [PROPRIETARY]},
    "maxwell": {"first": "390", **_OLD},
    "pascal": {"first": "390", **_OLD},
    "volta": {"first": "390", **_OLD},
    "turing": {"first": "418", "last": None, "modules": _BOTH},
    "ampere": {"first": "450", "last": None, "modules": _BOTH},
    "hopper": {"first": "525", "last": None, "modules": _BOTH},
    "ada": {"first": "525", "last": None, "modules": _BOTH},
    "blackwell": _OPEN_ONLY,
    # An id that is not in the table and not older than Turing: taken for something newer.
    "unknown": {"first": None, "last": None, "modules": [OPEN]},
}

# By device id: what differs from the generation. ``minimum`` is an exact version.
PRODUCTS: dict[str, dict[str, Any]] = {
    "2342": dict(_OPEN_ONLY),  # first (u)
    "2348": dict(_OPEN_ONLY),  # first (u)
    "2901": {"minimum": "570.133.20"},
    "2909": {"minimum": "570.133.20"},
    "2bb5": {"minimum": "575.57.08"},
    "2c3a": {"minimum": "595.58.03"},
}

_CUDA = "https://developer.download.nvidia.com/compute/cuda/repos"
_ARCHITECTURES = {"x86_64": "x86_64", "aarch64": "sbsa"}
_OLD_DEB_KEY = {
    "key": "3bf863cc.pub",
    "key_fingerprints": ["EB693B3035CD5710E231E123A4B469963BF863CC"],
}
_RPM_KEY = {
    "key": "D42D0685.pub",
    "key_fingerprints": ["610C7B14E068A878070DA4E99CD0A493D42D0685"],
}
# From cuda-repo-management, issue 49, and two public repository files.
_FEDORA_KEY = {
    "key": "73CD9B30.pub",
    "key_fingerprints": ["129994480EC63D2789BC98E490DFED2F73CD9B30"],
}
# From SUSE's build configuration of its base container images, and two public pins.
_SUSE_16_KEY = {
    "key": "3A8B5622.pub",
    "key_fingerprints": ["CF65941A859D4B4E6870F188736A284B3A8B5622"],
}
# The name stands in NVIDIA's gpu-driver-container (rhel10/Dockerfile). No public text has the whole
# fingerprint, and a short one can be forged: who uses it has to give it.
_EL_10_KEY: dict[str, Any] = {"key": "CDF6BA43.pub", "key_fingerprints": []}


def _nvidia(first: str, key: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "url": _CUDA,
        "first": first,
        "last": None,
        "branches": None,
        "architectures": _ARCHITECTURES,
        **key,
        **more,
    }


# The streams of dnf's module nvidia-driver, by kernel modules, where a repository has them.
STREAM_MODULE = "nvidia-driver"
_STREAMS = {OPEN: "{branch}-open", PROPRIETARY: "{branch}-dkms"}
# Kernel modules that are built and signed already: of which kind, whose signature, whether the
# firmware is known to trust it, and by which stream or packages. All of it is (u).
_PRECOMPILED = {
    "modules": [PROPRIETARY],
    "architectures": ["x86_64"],
    "by": "NVIDIA",
    "trusted": False,
    "stream": "{branch}",
}
_SUSE_SIGNED = {
    "modules": [OPEN],
    "architectures": ["x86_64", "aarch64"],
    "by": "SUSE",
    "trusted": True,
    # {flavour}: of the kernel, without its "kernel-".
    "packages": ["nvidia-open-driver-G06-signed-cuda-kmp-{flavour}", "nvidia-compute-utils-G06"],
    "more": ["nvidia-video-G06"],
}


def _archive(*branches: str, **more: Any) -> dict[str, Any]:
    return {
        "first": None,
        "last": None,
        "branches": list(branches),
        "architectures": {"x86_64": "amd64", "aarch64": "arm64"},
        **more,
    }


_NON_FREE = ["contrib", "non-free", "non-free-firmware"]

# By the name of NVIDIA's folder; the distribution's own archive has ``-archive`` behind it.
# ``first`` and ``last`` branch that it has, or exactly ``branches``. ``kernel`` is the series that
# a release of Ubuntu began with: other kernels of the flavour generic are its hardware enablement.
REPOSITORIES: dict[str, dict[str, Any]] = {
    "ubuntu2204": _nvidia("520", _OLD_DEB_KEY),
    "ubuntu2404": _nvidia("550", _OLD_DEB_KEY),
    "ubuntu2604": _nvidia(  # first (u)
        "590",
        {
            "key": "60DF8A40.pub",
            "key_fingerprints": ["14BAFBC7562AD710CA04E69905FBB6DA60DF8A40"],
        },
    ),
    "debian12": _nvidia("530", _OLD_DEB_KEY),
    "debian13": _nvidia(
        "590",
        {
            "key": "8793F200.pub",
            "key_fingerprints": ["02182E60104FCDC26EAE1B8597A5D4CB8793F200"],
        },
        architectures={"x86_64": "x86_64"},
    ),
    "rhel8": _nvidia("515", _RPM_KEY, streams=_STREAMS, signed=_PRECOMPILED),
    "rhel9": _nvidia("515", _RPM_KEY, streams=_STREAMS, signed=_PRECOMPILED),
    "rhel10": _nvidia("575", _EL_10_KEY),  # first (u)
    "fedora44": _nvidia("595", _FEDORA_KEY),  # first (u)
    "amzn2023": _nvidia("560", _RPM_KEY, streams=_STREAMS),
    "azl3": _nvidia("570", _RPM_KEY),  # folder's name and first (u)
    "kylin10": _nvidia(  # first (u); the guide names open-dkms alone
        "550", _RPM_KEY, streams={OPEN: "open-dkms", PROPRIETARY: "latest-dkms"}
    ),
    "kylin11": _nvidia("610", _RPM_KEY),  # key (u)
    "sles15": _nvidia("515", _RPM_KEY, signed=_SUSE_SIGNED),
    "opensuse15": _nvidia("515", _RPM_KEY, signed=_SUSE_SIGNED),
    "suse16": _nvidia("590", _SUSE_16_KEY, signed=_SUSE_SIGNED),  # first (u)
    # Which branches the archives of 22.04 and 24.04 have beside 580: (u).
    "ubuntu2204-archive": _archive("535", "570", "580", kernel="5.15"),
    "ubuntu2404-archive": _archive("535", "570", "580", "595", kernel="6.8"),
    "ubuntu2604-archive": _archive("580", "595", "610", kernel="7.0"),
    # The open modules of bookworm did not follow the libraries into its security archive.
    "debian12-archive": _archive("535", components=_NON_FREE, open_version="535.261.03"),
    "debian13-archive": _archive("550", components=_NON_FREE),
}

# The kernels for which Ubuntu signs modules, by the end of the kernel's name. That -64k and, for
# nvidia, -hwe-<release> stand behind it as in the name of the kernel's own package is (u).
UBUNTU_FLAVOURS = {
    "generic": "generic",
    "virtual": "generic",
    "lowlatency": "lowlatency",
    "aws": "aws",
    "azure": "azure",
    "gcp": "gcp",
    "oracle": "oracle",
    "nvidia": "nvidia",
}

# {host} and {folder} of the two places that have a runfile; some versions are on one of them only.
RUNFILE_URL = "https://us.download.nvidia.com/tesla/{version}/NVIDIA-Linux-{arch}-{version}.run"

_TABLES: dict[str, dict[str, tuple[str, tuple[str, ...]]]] = {
    "branches": {
        "kind": ("str", tuple(KINDS)),
        "end": ("date", ()),
        "supported": ("bool", ()),
        "newest": ("version", ()),
        "modules": ("list", (OPEN, PROPRIETARY)),
    },
    "gpus": {
        "first": ("branch", ()),
        "last": ("branch", ()),
        "minimum": ("version", ()),
        "modules": ("list", (OPEN, PROPRIETARY)),
    },
    "repositories": {
        "url": ("str", ()),
        "folder": ("str", ()),
        "key": ("str", ()),
        "key_fingerprints": ("list", ()),
        "first": ("branch", ()),
        "last": ("branch", ()),
        "branches": ("branches", ()),
        "architectures": ("dict", ()),
        "components": ("list", ()),
        "kernel": ("str", ()),
        "open_version": ("version", ()),
        "streams": ("dict", ()),
        "signed": ("dict", ()),
    },
}
_PATTERNS = {
    "date": (re.compile(r"\d{4}-\d\d-\d\d\Z"), "a date as YYYY-MM-DD"),
    "version": (re.compile(r"\d{3,}\.\d+(\.\d+)?\Z"), "a version such as 580.126.09, in quotes"),
    "branch": (re.compile(r"\d{3,}\Z"), "the number of a branch, such as 580"),
}
_DEVICE_ID = re.compile(r"[0-9a-f]{4}\Z")
_TYPES: dict[str, tuple[type, str]] = {
    "str": (str, "a text"),
    "bool": (bool, "true or false"),
    "list": (list, "a list"),
    "branches": (list, "a list of branches"),
    "dict": (dict, "a mapping"),
}
_NEW_BRANCH = {"kind": NEW_FEATURE, "end": None, "supported": True, "newest": None}
_NEW_REPOSITORY = {
    **{"url": _CUDA, "first": None, "last": None, "branches": None},
    **{"architectures": _ARCHITECTURES, "key": "", "key_fingerprints": []},
    "components": _NON_FREE,
}


@dataclass(frozen=True)
class DriverData:
    """The tables that the decision uses, with the user's own rows merged over them.

    ``gpus`` has rows by generation and by device id.
    """

    branches: Mapping[str, Mapping[str, Any]]
    gpus: Mapping[str, Mapping[str, Any]]
    repositories: Mapping[str, Mapping[str, Any]]

    def newest_branch(self) -> str:
        return max(self.branches, key=int)


def driver_data(
    branches: Mapping[Any, Any] | None = None,
    gpus: Mapping[Any, Any] | None = None,
    repositories: Mapping[Any, Any] | None = None,
) -> DriverData:
    """Return the built-in data with the user's rows merged over it.

    :raises InputError: a row is not as it has to be.
    """
    newest = BRANCHES[max(BRANCHES, key=int)]
    new_branch = {**_NEW_BRANCH, "modules": newest["modules"]}
    return DriverData(
        _merged("branches", BRANCHES, branches, new_branch),
        _merged("gpus", {**GENERATIONS, **PRODUCTS}, gpus, {}),
        _merged("repositories", REPOSITORIES, repositories, _NEW_REPOSITORY),
    )


def _merged(
    table: str,
    built_in: Mapping[str, Mapping[str, Any]],
    given: Mapping[Any, Any] | None,
    new: Mapping[str, Any],
) -> dict[str, dict[str, Any]]:
    rows = {name: dict(row) for name, row in built_in.items()}
    if not given:
        return rows
    if not isinstance(given, Mapping):
        raise InputError(
            f"nvidia_driver_{table} is not a mapping.",
            evidence=str(given)[:80],
            next_step='Write it as {"625": {...}}: name of the row, then its values.',
        )
    for key, row in given.items():
        _check_row(table, str(key), row)
        name = str(key).lower()
        values = {field: _plain(value) for field, value in row.items()}
        if isinstance(values.get("branches"), list):
            values["branches"] = [str(branch) for branch in values["branches"]]
        # A row for another system's packages is like that system's in what it does not say.
        like = rows.get(str(values.get("folder") or ""), new)
        rows[name] = {**rows.get(name, like), **values}
    return rows


def _plain(value: Any) -> Any:
    """Return a value as the tables have it: YAML reads an unquoted 580 or 2028-06-30 as more."""
    if isinstance(value, bool) or not isinstance(value, (int, datetime.date)):
        return value
    return str(value)[:10]


def is_date(text: str) -> bool:
    """Return whether the text is a day that there is, as YYYY-MM-DD."""
    try:
        return datetime.date(*(int(part) for part in text.split("-"))).isoformat() == text
    except (ValueError, TypeError):
        return False


def _check_row(table: str, name: str, row: Any) -> None:
    where = f"nvidia_driver_{table}[{name!r}]"
    if table == "branches" and not _PATTERNS["branch"][0].match(name):
        raise InputError(f"{where}: a branch is a number.", next_step='Name it like "625".')
    if table == "gpus" and name.lower() not in GENERATIONS and not _DEVICE_ID.match(name.lower()):
        raise InputError(
            f"{where}: neither a device id nor a generation.",
            next_step='Name it by the four hexadecimal digits of its device id, in quotes ("26b9"),'
            f" or by one of {', '.join(GENERATIONS)}.",
        )
    if not isinstance(row, Mapping):
        raise InputError(f"{where} is not a mapping.", evidence=str(row)[:80])
    fields = _TABLES[table]
    unknown = sorted(str(field) for field in row if field not in fields)
    if unknown:
        raise InputError(
            f"{where} has {', '.join(unknown)}, which is not known.",
            next_step=f"It can have {', '.join(fields)}.",
        )
    for field, value in row.items():
        kind, choices = fields[field]
        if value is None and field not in ("modules", "kind", "supported"):
            continue
        if kind in _PATTERNS:
            pattern, words = _PATTERNS[kind]
            text = str(_plain(value))
            good = isinstance(value, (str, int, datetime.date)) and bool(pattern.match(text))
            good = good and (kind != "date" or is_date(text))
        else:
            expected, words = _TYPES[kind]
            good = isinstance(value, expected)
            if good and kind == "branches":
                good = all(_PATTERNS["branch"][0].match(str(one)) for one in value)
            if good and choices:
                members = value if isinstance(value, list) else [value]
                good = bool(members) and all(member in choices for member in members)
                words = f"of {', '.join(choices)}"
        if not good:
            raise InputError(f"{where}: {field} is not {words}.", evidence=f"{field}: {value!r}")

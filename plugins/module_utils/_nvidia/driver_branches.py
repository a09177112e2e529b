# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Driver branches, generations, products and repositories. Data, not code.

Read 2026-11-21, -22 and -28. Sources: docs.nvidia.com (data center drivers 615 and 620, driver
installation guide 580 to 620, cuda-toolkit-driver-and-architecture-matrix), versions.mk of NVIDIA's
gpu-driver-container, the package indices of Ubuntu (jammy, noble, resolute with -updates and
-security) and Debian (bookworm, trixie), packages.ubuntu.com, SIGNATURES.md and issues 30, 38, 39
and 49 of NVIDIA/cuda-repo-management, SUSE's blog post of 2026-02-22 on G07 and its
BCI-dockerfile-generator. What is marked (u) was found in no document and is a guess
that a user can correct: every table can be overridden, row by row, by variables of the role
``nvidia_driver`` (``nvidia_driver_branches``, ``_gpus`` and ``_repositories``).
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._core.errors import InputError
from .gpu_drivers_data import PRODUCTS

READ = "2026-11-28"

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
# The packages that pin are there from this branch on (NVIDIA's guide, version locking with apt).
PINNING_FROM = 580
# From this branch on SUSE and NVIDIA call the packages for SUSE G07, before it G06 (changes of
# nvidia-open-driver-G07-signed: its first version is 590.44.01).
G07_FROM = 590


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
    "535": _branch(LTSB, "2026-06-30", "535.309.01"),
    "545": _branch(NEW_FEATURE, None, None, supported=False),
    "550": _branch(PRODUCTION, None, "550.163.01", supported=False),
    "555": _branch(NEW_FEATURE, None, None, supported=False),
    "560": _branch(NEW_FEATURE, None, None, supported=False),
    "565": _branch(NEW_FEATURE, None, None, supported=False),
    "570": _branch(PRODUCTION, "2026-02-28", "570.211.01"),
    "575": _branch(NEW_FEATURE, None, None, supported=False),
    "580": _branch(LTSB, "2028-06-30", "580.178.04"),  # end: another page says August (u)
    "590": _branch(NEW_FEATURE, None, "590.48.01", supported=False),
    # NVIDIA's folder of runfiles and ten public reports have it; the operator has 595.91.07.
    "595": _branch(PRODUCTION, "2027-03-31", "595.99.02"),
    "610": _branch(NEW_FEATURE, "2026-08-31", "610.57.04"),
    # In no list of long-term and production branches, and new feature branches have no end.
    "615": _branch(NEW_FEATURE, None, "615.71.09"),
    # 620.10.01 is only in lists of others (u): without a version NVIDIA names, no automatic choice.
    "620": _branch(LTSB, "2029-09-30", None, modules=[OPEN]),
}

# ``first`` and ``last`` branch, and the kernel modules that work. ``first`` below 525 has no
# effect today; it is there so that each row is complete.
_OLD = {"last": "580", "modules": [PROPRIETARY]}
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
    "blackwell": {"first": "570", "last": None, "modules": [OPEN]},
    # First: NVIDIA's notes on CUTLASS 4.8 and CUDA 13.4 ask for R615.
    "rubin": {"first": "615", "last": None, "modules": [OPEN]},
    # An id that is not in the table and not older than Turing: taken for something newer.
    "unknown": {"first": None, "last": None, "modules": [OPEN]},
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
# The name is in issue 49 of cuda-repo-management and in public repository files, the whole
# fingerprint in no public text.
_FEDORA_43_KEY: dict[str, Any] = {"key": "1940C73E.pub", "key_fingerprints": []}
# From SUSE's build configuration of its base container images, and two public pins.
_SUSE_16_KEY = {
    "key": "3A8B5622.pub",
    "key_fingerprints": ["CF65941A859D4B4E6870F188736A284B3A8B5622"],
}
# The name is in NVIDIA's gpu-driver-container (rhel10/Dockerfile). No public text has the whole
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
    # {flavour}: of the kernel, without its "kernel-"; {generation}: G06 or G07, by the branch.
    "packages": [
        "nvidia-open-driver-{generation}-signed-cuda-kmp-{flavour}",
        "nvidia-compute-utils-{generation}",
    ],
    "more": ["nvidia-video-{generation}"],
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


def _ubuntu_archive(kernel: str, *multiverse: str) -> dict[str, Any]:
    """Return the row of a release of Ubuntu: the branches of its -server packages.

    :param kernel: the kernel series that the release began with.
    :param multiverse: the branches of which the packages are in that component.
    """
    return _archive(
        *("580", "595", "615"),
        kernel=kernel,
        multiverse=list(multiverse),
        # Packages that are named after these branches are transitional: they install the other.
        transitional={
            **dict.fromkeys(("535", "550", "565", "570", "575"), "580"),
            **{"590": "595", "610": "615"},
        },
        # nvidia-headless-615-server is transitional to nvidia-headless-615-server-open.
        modules={"615": [OPEN]},
    )


# By the name of NVIDIA's folder; the distribution's own archive has ``-archive`` behind it.
# ``first`` and ``last`` branch that it has, or exactly ``branches``; ``modules`` by branch, where
# it has not both kinds. ``kernel`` is the series that a release of Ubuntu began with: other kernels
# of the flavour generic are its hardware enablement.
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
    # NVIDIA continues with the next release of Fedora: 42 ends with CUDA 13.1. First and last (u).
    "fedora42": _nvidia("580", _RPM_KEY, last="590"),
    "fedora43": _nvidia("595", _FEDORA_43_KEY),  # first (u)
    "fedora44": _nvidia("595", _FEDORA_KEY),  # first (u)
    "amzn2023": _nvidia("560", _RPM_KEY, streams=_STREAMS),
    "azl3": _nvidia("570", _RPM_KEY),  # folder's name and first (u)
    "kylin10": _nvidia(  # first (u); the guide names open-dkms alone
        "550", _RPM_KEY, streams={OPEN: "open-dkms", PROPRIETARY: "latest-dkms"}
    ),
    "kylin11": _nvidia("610", _RPM_KEY),  # key (u)
    "sles15": _nvidia("515", _RPM_KEY, signed=_SUSE_SIGNED),
    "opensuse15": _nvidia("515", _RPM_KEY, signed=_SUSE_SIGNED),
    # SUSE builds its driver images for SLE 16 from 595 on, as the folder has nothing older.
    "suse16": _nvidia("595", _SUSE_16_KEY, signed=_SUSE_SIGNED),
    "ubuntu2204-archive": _ubuntu_archive("5.15", "595", "615"),
    "ubuntu2404-archive": _ubuntu_archive("6.8", "595", "615"),
    "ubuntu2604-archive": _ubuntu_archive("7.0", "615"),
    # The open modules of bookworm did not follow the libraries into its security archive.
    "debian12-archive": _archive("535", components=_NON_FREE, open_version="535.261.03"),
    "debian13-archive": _archive("550", components=_NON_FREE),
}

# The kernels for which Ubuntu signs modules, by the end of the kernel's name. -64k and, for
# generic, lowlatency and nvidia, -hwe-<release> stand behind it as in the name of the kernel's own
# package.
UBUNTU_FLAVOURS = (
    *("generic", "lowlatency", "nvidia", "nvidia-bos"),
    *("aws", "azure", "azure-fde", "azure-nvidia", "gcp", "gke", "ibm", "oracle"),
)
# Those whose plain name moves to later kernel series within a release, and with it the package
# of the modules, which requires a kernel of that series: linux-modules-nvidia-580-server-open-aws
# of 24.04 requires a kernel 7.0. A name with the series (-aws-6.8) remains with it; each has one
# (packages.ubuntu.com: aws-5.15, aws-6.8, aws-7.0, azure-fde-7.0, gke-6.8, gke-64k-7.0; Google's
# guide for confidential GPUs: gcp-6.17).
UBUNTU_ROLLING = (
    *("aws", "azure", "azure-fde", "azure-nvidia", "gcp", "gke", "ibm", "oracle", "nvidia-bos"),
)
# Those of the clouds whose kernel of the release's first series has packages named -lts-<release>.
UBUNTU_LTS = ("aws", "azure", "gcp", "ibm", "oracle")

# Distributions that publish signed open kernel modules for NVIDIA's packages themselves, in
# repositories of their own, by os.id: from which major release on, which package, and what brings
# it. Sources: DISTROS.md of NVIDIA's yum-packaging-precompiled-kmod, AlmaLinux's documentation and
# almalinux-release-nvidia-driver, rhel-drivers, CIQ's SIG/Cloud Next.
SIGNED_ELSEWHERE: dict[str, tuple[int, str, str]] = {
    "almalinux": (9, "nvidia-open-kmod", "the repository of almalinux-release-nvidia-driver"),
    "azurelinux": (3, "cuda-open", "Microsoft's repository for NVIDIA's packages"),
    "rhel": (10, "kmod-nvidia-open", "Red Hat's tool rhel-drivers"),
    "rocky": (8, "kmod-nvidia-dc-open-latest", "CIQ's repositories SIG/Cloud Next"),
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
        "minimum": ("versions", ()),
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
        "multiverse": ("branches", ()),
        "transitional": ("renamed", ()),
        "modules": ("kinds", (OPEN, PROPRIETARY)),
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
    "renamed": (dict, "a mapping of branches to branches"),
    "kinds": (dict, "a mapping of branches to lists of open and proprietary"),
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
    """The driver tables, with the user's entries merged over the built-in ones.

    ``gpus`` has entries by generation and by device ID.
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
    """Return the built-in tables with the user's entries merged over them.

    :raises InputError: an entry is not valid.
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
        for field, value in values.items():
            kind = _TABLES[table][field][0]
            if kind == "branches" and value is not None:
                values[field] = [str(branch) for branch in value]
            elif kind in ("renamed", "kinds") and value is not None:
                values[field] = {str(branch): _plain(it) for branch, it in value.items()}
        # An entry with another system's folder inherits the values of that system.
        like = rows.get(str(values.get("folder") or ""), new)
        rows[name] = {**rows.get(name, like), **values}
    return rows


def _plain(value: Any) -> Any:
    """Return numbers and dates as text: YAML reads an unquoted 580 or 2028-06-30 as such."""
    if isinstance(value, bool) or not isinstance(value, (int, datetime.date)):
        return value
    return str(value)[:10]


def is_date(text: str) -> bool:
    """Return whether the text is a valid date as YYYY-MM-DD."""
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
        if kind == "versions":
            pattern, words = _PATTERNS["version"]
            words += ", or a list of them with one for each branch"
            members = value if isinstance(value, list) else [value]
            good = bool(members) and all(
                isinstance(one, str) and bool(pattern.match(one)) for one in members
            )
        elif kind in _PATTERNS:
            pattern, words = _PATTERNS[kind]
            text = str(_plain(value))
            good = isinstance(value, (str, int, datetime.date)) and bool(pattern.match(text))
            good = good and (kind != "date" or is_date(text))
        else:
            expected, words = _TYPES[kind]
            good = isinstance(value, expected)
            if good and kind in ("branches", "renamed", "kinds"):
                named = [*value, *(value.values() if kind == "renamed" else ())]
                good = all(_PATTERNS["branch"][0].match(str(one)) for one in named)
            if good and kind == "kinds":
                good = all(
                    isinstance(it, list) and it and set(it) <= set(choices) for it in value.values()
                )
            elif good and choices:
                members = value if isinstance(value, list) else [value]
                good = bool(members) and all(member in choices for member in members)
                words = f"of {', '.join(choices)}"
        if not good:
            raise InputError(f"{where}: {field} is not {words}.", evidence=f"{field}: {value!r}")

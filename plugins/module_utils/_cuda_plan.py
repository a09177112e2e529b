# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CUDA toolkits of a node: from facts and wishes to a plan with reasons. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ._cuda import check, minor, parse_cuda, parse_driver, release_of, required_by, runs
from ._cuda_data import (
    BUILT_IN,
    DISTRO_COMPONENTS,
    DISTRO_CUDA,
    DISTRO_PACKAGE,
    CudaData,
    cuda_data,
)
from ._cuda_files import (
    LINK,
    LOADER,
    PROFILE,
    distro_profile_text,
    folder,
    loader_text,
    profile_text,
)
from ._driver_data import NVIDIA_FOLDERS, DriverData, driver_data
from ._driver_sources import DEBIAN_REPOSITORY
from ._driver_types import Step
from ._errors import InputError
from ._package_set import fits
from ._repository import same_repository
from ._runfile import check_cuda, cuda_arguments, parse_checksum, shown

AUTO = "auto"
PACKAGE = "package"
RUNFILE = "runfile"
DISTRO = "distro"
SOURCES = (AUTO, PACKAGE, RUNFILE, DISTRO)
NO_DEFAULT = "none"
LIBRARIES = ("cudnn", "nccl")

# gpu_node_facts reports our repository files whatever their address is, by this prefix.
_OUR_PREFIX = "kubegpu-"
_CREDENTIALS = re.compile(r"://[^/@\s]+@")
# Where a distribution's own keys lie on it.
_KEYRING = "/usr/share/keyrings/{}-archive-keyring.gpg"
# The third number of many version.json is a date or a build, and no update.
_LAST_UPDATE = 20
_CUDNN = re.compile(r"(?:lib)?cudnn\d+-(?:\w+-)?cuda-\d+")
_NCCL = re.compile(r"\d+(?:\.\d+){0,2}(?:-\d+\+cuda\d+\.\d+)?\Z")


@dataclass(frozen=True)
class CudaWish:
    """What the user asks for. Empty strings, tuples and mappings mean: what the collection knows.

    ``default`` empty is the newest of ``versions``; ``none`` leaves the link as it is.
    ``driver_version``: version or branch that this run leaves on the node, where the facts are
    older than that. ``planned_repositories``: addresses that this run adds before.
    """

    versions: tuple[str, ...] = ()
    default: str = ""
    source: str = AUTO
    runfiles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    libraries: Mapping[str, str] = field(default_factory=dict)
    hold: bool = True
    configure: bool = True
    verify: bool = True
    host_compiler: str = ""
    temporary: str = ""
    driver_version: str = ""
    manage_repository: bool = True
    repository_name: str = "kubegpu-nvidia-cuda"
    repository_url: str = ""
    repository_key_url: str = ""
    key_fingerprints: tuple[str, ...] = ()
    planned_repositories: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tables:
    """The data that the plan is made from."""

    cuda: CudaData
    drivers: DriverData


@dataclass(frozen=True)
class CudaPlan:
    """What would be done on one node.

    ``action`` is none, install, upgrade, downgrade or refuse; ``change`` is whether there is
    anything at all to do.
    """

    action: str = "none"
    # version, path, source, action (none, install, upgrade, downgrade) and architecture of each.
    versions: tuple[Mapping[str, Any], ...] = ()
    default: str | None = None
    packages: Mapping[str, str | None] = field(default_factory=dict)
    optional_packages: Mapping[str, str | None] = field(default_factory=dict)
    obsolete: tuple[str, ...] = ()
    lock: Mapping[str, Any] = field(default_factory=lambda: {"patterns": [], "version": None})
    hold: bool = False
    change_packages: bool = False
    repository: Mapping[str, Any] | None = None
    runfiles: tuple[Mapping[str, Any], ...] = ()
    link: Mapping[str, str] | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    verify: bool = False
    change: bool = False
    steps: tuple[Step, ...] = ()
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        data = asdict(self)
        for name in ("versions", "obsolete", "runfiles", "steps", "reasons", "warnings"):
            data[name] = list(data[name])
        return data


@dataclass(frozen=True)
class _Wanted:
    """One version that is asked for, and what is there of it."""

    version: str
    release: str
    path: str
    source: str
    action: str
    reason: str = ""
    seen: str | None = None

    @property
    def name(self) -> str:
        return f"cuda-toolkit-{minor(self.version).replace('.', '-')}"


class _Refusal(Exception):
    """The wish cannot be met; the texts say why and what would do."""

    def __init__(self, *reasons: str) -> None:
        super().__init__(*reasons)
        self.reasons = reasons


def read_options(options: Mapping[str, Any]) -> tuple[CudaWish, Tables]:
    """Return wish and data from the options of the filter and of the module.

    :raises InputError: an option is not as it has to be; it is named.
    """
    wishes = {name: options[name] for name in CudaWish.__dataclass_fields__ if name in options}
    for name in ("versions", "key_fingerprints", "planned_repositories"):
        if name in wishes:
            wishes[name] = _texts(name, wishes[name])
    for name in ("runfiles", "libraries"):
        wishes[name] = _mapping(name, wishes.get(name))
    wish = CudaWish(**wishes)
    for version in wish.versions:
        parse_cuda(version)
    if wish.default not in ("", NO_DEFAULT):
        parse_cuda(wish.default)
    if wish.source not in SOURCES:
        raise InputError(
            f"source is {wish.source!r}.", next_step=f"Give one of {', '.join(SOURCES)}."
        )
    unknown = sorted(set(wish.libraries) - set(LIBRARIES))
    if unknown:
        raise InputError(
            f"libraries: {', '.join(unknown)} is not known.",
            next_step=f"Name {' or '.join(LIBRARIES)}; install others by package_set.",
        )
    if wish.driver_version:
        parse_driver(wish.driver_version)
    tables = Tables(
        cuda_data(options.get("data")), driver_data(repositories=options.get("repositories"))
    )
    return wish, tables


def plan_cuda(node: Mapping[str, Any], wish: CudaWish, tables: Tables | None = None) -> CudaPlan:
    """Return what has to be done so that the node's CUDA toolkits are as wished.

    :param node: the facts ``gpu_node``.
    :param wish: what is asked for.
    :param tables: the data, with the user's rows merged in.
    """
    if not wish.versions and not wish.libraries:
        return CudaPlan(
            reasons=("No CUDA toolkit is asked for: containers bring their own.",),
            warnings=_unasked(node, ()),
        )
    gpus = [gpu for gpu in node["gpus"] if gpu["vendor"] == "nvidia"]
    if not gpus:
        return CudaPlan(reasons=("No NVIDIA GPU is in this node: nothing to do.",))
    try:
        return _plan(node, gpus, wish, tables or Tables(BUILT_IN, driver_data()))
    except _Refusal as refusal:
        return CudaPlan("refuse", reasons=refusal.reasons)
    except InputError as error:
        return CudaPlan("refuse", reasons=(str(error),))


def _plan(
    node: Mapping[str, Any], gpus: Sequence[Mapping[str, Any]], wish: CudaWish, tables: Tables
) -> CudaPlan:
    wanted = _versions(node, wish, tables)
    warnings = _check(node, gpus, wish, wanted, tables)
    default = _default(wish, wanted)
    packages = _packages(wish, wanted, default)
    repository, repository_step, note = _repository(node, wish, wanted, packages, tables)
    package_steps = _package_steps(node, wish, wanted, packages)
    runfiles = _runfiles(node, wish, wanted)
    runfile_steps = [
        Step(
            "runfile",
            "install",
            f"CUDA {entry['version']} into {entry['path']}",
            f"{entry['reason']}; the driver in {entry['name']} is not installed",
        )
        for entry in runfiles
    ]
    local = [one for one in wanted if one.source != DISTRO]
    link, link_step = _link(node, default, local)
    files, file_steps = _files(node, wish, default, local)
    steps = tuple(
        step
        for step in (repository_step, *package_steps, *runfile_steps, link_step, *file_steps)
        if step is not None
    )
    actions = {one.action for one in wanted}
    action = next((name for name in ("install", "upgrade", "downgrade") if name in actions), "none")
    if action == "none" and any(step.action == "install" for step in package_steps):
        action = "install"
    return CudaPlan(
        action=action,
        versions=tuple(
            {
                "version": one.version,
                "path": one.path,
                "source": one.source,
                "action": one.action,
                "architecture": _architecture(one.release, gpus, tables.cuda),
            }
            for one in wanted
        ),
        default=default.version if default else None,
        packages=packages,
        obsolete=_obsolete(node, packages),
        lock=_lock(wish, wanted, packages),
        hold=wish.hold,
        change_packages=bool(package_steps),
        repository=repository,
        runfiles=tuple(
            {name: value for name, value in entry.items() if name not in ("reason", "name")}
            for entry in runfiles
        ),
        link=link,
        files=files,
        verify=wish.verify,
        change=bool(steps),
        steps=steps,
        reasons=tuple(f"{step.step}: {step.reason}" for step in steps)
        or (f"CUDA {', '.join(one.version for one in wanted)} is as wished.",),
        warnings=tuple(
            dict.fromkeys((*warnings, *([note] if note else []), *_unasked(node, wanted)))
        ),
    )


# What is asked for.


def _versions(node: Mapping[str, Any], wish: CudaWish, tables: Tables) -> list[_Wanted]:
    if not wish.versions:
        raise _Refusal(
            f"libraries ({', '.join(wish.libraries)}) are asked for without a version of CUDA. "
            "Next step: name it in versions; the libraries are built for one."
        )
    found: dict[str, _Wanted] = {}
    for version in sorted(wish.versions, key=parse_cuda, reverse=True):
        path = folder(version)
        if path in found:
            raise _Refusal(
                f"CUDA {found[path].version} and {version} are both asked for, and both would be "
                f"in {path}. Next step: ask for one of them."
            )
        found[path] = _one(node, wish, version, release_of(version, tables.cuda))
    stray = sorted(set(wish.runfiles) - set(wish.versions))
    if stray:
        raise _Refusal(
            f"runfiles has {', '.join(stray)}, which versions does not name. Next step: write "
            "the same text in both."
        )
    return list(found.values())


def _one(node: Mapping[str, Any], wish: CudaWish, version: str, release: str) -> _Wanted:
    source = wish.source
    path = folder(version)
    if source == AUTO:
        source = RUNFILE if version in wish.runfiles else PACKAGE
    _check_source(node, wish, version, source)
    if source == DISTRO:
        return _from_distro(node, version, release)
    there = next((kit for kit in node["cuda"]["toolkits"] if kit["path"] == path), None)
    package = node["cuda"]["packages"].get(f"cuda-toolkit-{minor(version).replace('.', '-')}")
    seen = package or (there or {}).get("version")
    if source == PACKAGE and (there is None or there["source"] == PACKAGE):
        action, reason = _compared(version, package)
        return _Wanted(version, release, path, source, action, reason, seen)
    if there is None:
        return _Wanted(version, release, path, source, "install", "it is not there", None)
    # Whoever put it there: it is kept where it is the version that is asked for.
    if _is_other(version, seen):
        raise _Refusal(
            f"CUDA {seen} stands in {path}, from {there['source'] or 'an unknown source'}; "
            f"{version} would go into the same folder. Next step: ask for "
            f"{minor(version)}, or remove it"
            + (f" by {there['uninstaller']} and run again." if there["uninstaller"] else " first.")
        )
    return _Wanted(version, release, path, there["source"] or "unknown", "none", "", seen)


def _check_source(node: Mapping[str, Any], wish: CudaWish, version: str, source: str) -> None:
    system = node["os"]
    if source == RUNFILE:
        given = wish.runfiles.get(version)
        if not given:
            raise _Refusal(
                f"source is runfile, and runfiles has no {version}. Next step: give "
                f"runfiles: {{'{version}': {{url: ..., checksum: 'sha256:...'}}}}."
            )
        return
    if system["package_manager"] != "apt":
        raise _Refusal(
            f"{system['id']} {system['version']} installs packages with "
            f"{system['package_manager'] or 'a tool that is not known'}; this release installs "
            f"CUDA's packages with apt. Next step: give a runfile: runfiles: {{'{version}': "
            "{url: ..., checksum: 'sha256:...'}}."
        )


def _from_distro(node: Mapping[str, Any], version: str, release: str) -> _Wanted:
    system = node["os"]
    has = DISTRO_CUDA.get(f"{system['id']}{system['version']}")
    if has and minor(has) != minor(version):
        raise _Refusal(
            f"{system['id']} {system['version']} itself has CUDA {minor(has)}, not {version}. "
            f"Next step: ask for {minor(has)}, or take NVIDIA's packages (source: package)."
        )
    package = node["cuda"]["packages"].get(DISTRO_PACKAGE)
    action = "none" if package else "install"
    return _Wanted(version, release, "/usr", DISTRO, action, "it is not there", package)


def _compared(version: str, package: str | None) -> tuple[str, str]:
    """Return what has to be done with the package of a version, and why."""
    if package is None:
        return "install", "it is not there"
    if not _is_other(version, package):
        return "none", ""
    older = _numbers(package) < parse_cuda(version)
    return ("upgrade" if older else "downgrade"), f"{package} is installed"


def _is_other(version: str, seen: str | None) -> bool:
    """Return whether what is there is certainly another version than the one asked for."""
    asked, have = parse_cuda(version), _numbers(seen or "")
    if len(asked) < 3 or (len(have) > 2 and have[2] > _LAST_UPDATE):
        return False
    return asked != (*have, 0, 0)[:3]


def _numbers(version: str) -> tuple[int, ...]:
    match = re.match(r"(?:\d+:)?(\d+(?:\.\d+)*)", version)
    return tuple(int(part) for part in match.group(1).split(".")) if match else ()


def _check(
    node: Mapping[str, Any],
    gpus: Sequence[Mapping[str, Any]],
    wish: CudaWish,
    wanted: Sequence[_Wanted],
    tables: Tables,
) -> list[str]:
    """Return warnings; refuse what GPUs or driver cannot run."""
    installed = node["driver"]["installed"]
    driver = wish.driver_version or node["driver"]["loaded"] or installed
    refusals: list[str] = []
    warnings: list[str] = []
    for one in wanted:
        verdict = check(one.release, gpus, driver, tables.cuda)
        refusals.extend(verdict.refusals)
        warnings.extend(verdict.warnings)
        waits = installed and installed != driver and not wish.driver_version
        can = [runs(one.release, which, tables.cuda) for which in (driver, installed) if waits]
        if can == [False, True]:
            refusals.append(
                f"Driver {installed}, which runs CUDA {minor(one.version)}, is installed and not "
                f"loaded yet, but {driver} is. Next step: reboot, and run again."
            )
    if refusals:
        raise _Refusal(*dict.fromkeys(refusals))
    return warnings


def _unasked(node: Mapping[str, Any], wanted: Sequence[_Wanted]) -> tuple[str, ...]:
    """Return a warning where toolkits stay that an earlier run was asked for.

    Facts do not say who installed one. It is taken to be ours where our files are, and where it
    is held or has an uninstaller.
    """
    cuda = node["cuda"]
    if not cuda["configuration"]:
        return ()
    asked = {one.path for one in wanted}
    unheld = set(cuda.get("unheld") or ())
    names = {
        kit["path"]: f"cuda-toolkit-{kit['path'].rpartition('cuda-')[2].replace('.', '-')}"
        for kit in cuda["toolkits"]
        if kit["source"] == PACKAGE
    }
    left = [
        f"{kit['version']} ({kit['path']})"
        for kit in cuda["toolkits"]
        if kit["path"] not in asked
        and (
            kit["source"] == RUNFILE
            or (names.get(kit["path"]) in cuda["packages"] and names[kit["path"]] not in unheld)
        )
    ]
    if not left:
        return ()
    return (
        f"There is CUDA {', '.join(left)} not asked for, which stays. Next step: nothing, or "
        "teardown and a new run, where what this collection installed shall go.",
    )


def _default(wish: CudaWish, wanted: Sequence[_Wanted]) -> _Wanted | None:
    local = [one for one in wanted if one.source != DISTRO]
    if wish.default == NO_DEFAULT or not local:
        return None
    if not wish.default:
        return local[0]
    for one in local:
        if wish.default == one.version or minor(wish.default) == minor(one.version):
            return one
    raise _Refusal(
        f"default is {wish.default}, which versions ({', '.join(wish.versions)}) does not have. "
        "Next step: add it to versions, or name one of them."
    )


# Packages.


def _packages(
    wish: CudaWish, wanted: Sequence[_Wanted], default: _Wanted | None
) -> dict[str, str | None]:
    packages: dict[str, str | None] = {}
    for one in wanted:
        if one.source == DISTRO:
            packages[DISTRO_PACKAGE] = None
        elif one.source == PACKAGE:
            # With an update: any packaging revision of it.
            exact = len(parse_cuda(one.version)) > 2
            packages[one.name] = f"{one.version}-*" if exact else None
    if wish.libraries:
        packages.update(_library_packages(wish, wanted, default))
    return dict(sorted(packages.items()))


def _library_packages(
    wish: CudaWish, wanted: Sequence[_Wanted], default: _Wanted | None
) -> dict[str, str | None]:
    of = default or wanted[0]
    if of.source == DISTRO:
        raise _Refusal(
            "libraries come from NVIDIA's repository, which source: distro does not use. Next "
            "step: source: package, or install the distribution's own by package_set."
        )
    cuda = minor(of.version)
    packages: dict[str, str | None] = {}
    if "cudnn" in wish.libraries:
        version = str(wish.libraries["cudnn"] or "")
        numbers = _numbers(version)
        if version and (not numbers or numbers[0] < 9):
            raise _Refusal(
                f"libraries: cudnn {version!r} is not a version from 9 on, whose packages are "
                "known. Next step: leave it empty for the newest of 9, or install libcudnn8 by "
                "package_set."
            )
        major = numbers[0] if numbers else 9
        name = f"cudnn{major}-cuda-{cuda.partition('.')[0]}"
        packages[name] = f"{version}*" if len(numbers) > 1 else None
    if "nccl" in wish.libraries:
        version = str(wish.libraries["nccl"] or "")
        if version and not _NCCL.match(version):
            raise _Refusal(
                f"libraries: nccl {version!r} is no version. Next step: give '2.28.3' or '2.28', "
                f"which is taken for CUDA {cuda}; in full '2.28.3-1+cuda{cuda}', where NVIDIA "
                f"builds it for another {cuda.partition('.')[0]}.x; or '' for the newest."
            )
        # Its packages for all CUDA versions have one name: the version says which one it is for.
        full = version if "+cuda" in version else f"{version}*+cuda{cuda}"
        packages.update({"libnccl2": full, "libnccl-dev": full})
    return packages


def _obsolete(node: Mapping[str, Any], packages: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return cuDNN's packages for another CUDA than the default, which exclude those that come.

    Only held ones: they are ours. What an admin has installed goes by their own hand.
    """
    ending = next((name.partition("-")[2] for name in packages if _CUDNN.match(name)), None)
    have: Mapping[str, str] = node["cuda"]["packages"]
    if ending is None or all(name in have for name in packages if _CUDNN.match(name)):
        return ()
    unheld = set(node["cuda"].get("unheld") or ())
    return tuple(
        name
        for name in sorted(have)
        if _CUDNN.match(name) and not name.endswith(f"-{ending}") and name not in unheld
    )


def _lock(
    wish: CudaWish, wanted: Sequence[_Wanted], packages: Mapping[str, str | None]
) -> dict[str, Any]:
    """Return the names and patterns of what is held: the packages, and what comes along."""
    if not wish.hold:
        return {"patterns": [], "version": None}
    patterns = list(packages)
    for one in wanted:
        if one.source == PACKAGE:
            ending = minor(one.version).replace(".", "-")
            patterns.extend((f"cuda-*-{ending}", f"lib*-{ending}"))
    patterns.extend(
        f"lib{name.partition('-')[0]}*-{name.partition('-')[2]}"
        for name in packages
        if name.startswith("cudnn")
    )
    return {"patterns": patterns, "version": None}


def _package_steps(
    node: Mapping[str, Any],
    wish: CudaWish,
    wanted: Sequence[_Wanted],
    packages: Mapping[str, str | None],
) -> list[Step]:
    have: Mapping[str, str] = node["cuda"]["packages"]
    steps = []
    done: set[str] = set()
    for one in wanted:
        if one.source not in (PACKAGE, DISTRO):
            continue
        name = DISTRO_PACKAGE if one.source == DISTRO else one.name
        done.add(name)
        if one.action != "none":
            steps.append(Step("packages", one.action, f"CUDA {one.version} ({name})", one.reason))
    for name, version in packages.items():
        if name in done:
            continue
        text = have.get(name)
        if text is None:
            gone = _obsolete(node, packages) if _CUDNN.match(name) else ()
            reason = f"it replaces {', '.join(gone)}" if gone else "it is not there"
            steps.append(Step("packages", "install", name, reason))
        elif not fits(version, text):
            steps.append(Step("packages", "change", f"{name} {version}", f"{text} is installed"))
    unheld = set(node["cuda"].get("unheld") or ())
    differing = [name for name in packages if name in have and (name in unheld) == wish.hold]
    if differing and not steps:
        verb = "hold" if wish.hold else "unhold"
        reason = "an upgrade could replace a part of the set" if wish.hold else "hold is false"
        steps.append(Step("packages", verb, ", ".join(differing), reason))
    return steps


# Repository.


def _repository(
    node: Mapping[str, Any],
    wish: CudaWish,
    wanted: Sequence[_Wanted],
    packages: Mapping[str, str | None],
    tables: Tables,
) -> tuple[dict[str, Any] | None, Step | None, str]:
    if not wish.manage_repository or not packages:
        return None, None, ""
    if not wish.repository_name.startswith(_OUR_PREFIX):
        raise _Refusal(
            f"repository_name is {wish.repository_name!r}. Next step: let it begin with "
            f"{_OUR_PREFIX!r}, by which the facts know our own file."
        )
    if DISTRO_PACKAGE in packages:
        return (*_archive(node, wish), "")
    return _nvidia(node, wish, wanted, tables)


def _nvidia(
    node: Mapping[str, Any], wish: CudaWish, wanted: Sequence[_Wanted], tables: Tables
) -> tuple[dict[str, Any] | None, Step | None, str]:
    system = node["os"]
    name = _folder(system)
    row: Mapping[str, Any] = tables.drivers.repositories.get(name) or {}
    architecture = (row.get("architectures") or {}).get(system["arch"])
    original = f"{row['url']}/{name}/{architecture}" if architecture else ""
    if not original and not wish.repository_url:
        raise _Refusal(
            f"NVIDIA's repository for {system['id']} {system['version']} on {system['arch']} is "
            "not known. Next step: give a runfile, or a mirror: repository_url, "
            "repository_key_url and key_fingerprints."
        )
    url = (wish.repository_url or original).rstrip("/")
    for mark, text in (("{distribution}", name), ("{architecture}", architecture or "")):
        url = url.replace(mark, text)
    accepted = tuple(
        text.replace(" ", "").upper()
        for text in wish.key_fingerprints or row.get("key_fingerprints") or ()
    )
    earlier = (original,) if original and original != url else ()
    note = _too_old_for(row, name, wanted, tables) if not wish.repository_url else ""
    if any(same_repository(address, (url,)) for address in wish.planned_repositories):
        return None, None, note
    entries = [
        entry
        for entry in node["repositories"]
        if entry["enabled"] and same_repository(entry["uri"], (url, *earlier))
    ]
    if len(entries) == 1 and same_repository(entries[0]["uri"], (url,)):
        keys = tuple(
            entries[0].get("key_fingerprints") or filter(None, [entries[0]["key_fingerprint"]])
        )
        if not accepted or (keys and set(keys) <= set(accepted)):
            return None, None, note
        reason = f"{entries[0]['file']} trusts {', '.join(keys) or 'no key of its own'}"
    elif entries:
        files = ", ".join(sorted({str(entry["file"]) for entry in entries}))
        reason = f"{files} has it at another address, or several times"
    else:
        reason = "no source of NVIDIA's CUDA packages is there"
    public = _CREDENTIALS.sub("://***@", url)
    key_url = wish.repository_key_url or (f"{url}/{row['key']}" if row.get("key") else "")
    wished = {
        "name": wish.repository_name,
        "url": public,
        "suite": "/",
        "components": [],
        "key_url": _CREDENTIALS.sub("://***@", key_url),
        "key_fingerprints": list(accepted),
        "keyring": None,
        "replaces": list(earlier),
    }
    return wished, Step("repository", "replace" if entries else "add", public, reason), note


def _too_old_for(
    row: Mapping[str, Any], name: str, wanted: Sequence[_Wanted], tables: Tables
) -> str:
    """Return a warning where the repository began later than a version that is to come from it."""
    first = row.get("first")
    older = [
        one.version
        for one in wanted
        if first
        and one.source == PACKAGE
        and one.action != "none"
        and int(required_by(one.release, tables.cuda)["branch"]) < int(first)
    ]
    if not older:
        return ""
    return (
        f"NVIDIA's repository {name} begins with driver branch {first}, so it hardly has CUDA "
        f"{', '.join(older)}. Next step, if it does not: give a runfile."
    )


def _archive(node: Mapping[str, Any], wish: CudaWish) -> tuple[dict[str, Any] | None, Step | None]:
    """Return the distribution's own archive with the components that CUDA is in."""
    system, archive = node["os"], node["os"].get("archive")
    needed = DISTRO_COMPONENTS.get(system["id"], ())
    if archive is None or not set(needed) - set(archive["components"]):
        return None, None
    # Ours, or the driver's for the same components.
    files = tuple(f"/{name}.sources" for name in (wish.repository_name, DEBIAN_REPOSITORY))
    if any(
        entry["enabled"] and str(entry["file"]).endswith(files) for entry in node["repositories"]
    ) or any(same_repository(address, (archive["uri"],)) for address in wish.planned_repositories):
        return None, None
    missing = [name for name in needed if name not in archive["components"]]
    wished = {
        "name": wish.repository_name,
        "url": archive["uri"],
        "suite": system.get("codename") or archive["suites"][0],
        "components": missing,
        "key_url": "",
        "key_fingerprints": [],
        "keyring": archive["signed_by"] or _KEYRING.format(system["id"]),
        "replaces": [],
    }
    detail = f"{archive['uri']} {' '.join(missing)}"
    reason = f"{DISTRO_PACKAGE} is in a component that {archive['file']} does not have"
    return wished, Step("repository", "add", detail, reason)


def _folder(system: Mapping[str, Any]) -> str:
    return f"{NVIDIA_FOLDERS.get(system['id'], '')}{(system['version'] or '').replace('.', '')}"


# Runfiles, link and files.


def _runfiles(
    node: Mapping[str, Any], wish: CudaWish, wanted: Iterable[_Wanted]
) -> list[dict[str, Any]]:
    found = []
    for one in wanted:
        if one.source != RUNFILE or one.action == "none":
            continue
        given = wish.runfiles[one.version]
        place = str(given.get("url") or given.get("path") or "")
        if bool(given.get("url")) == bool(given.get("path")):
            raise _Refusal(
                f"runfiles[{one.version}] needs url or path, one of them. Next step: "
                f"cuda_{one.release}_<driver>_linux.run of NVIDIA's archive, with checksum."
            )
        named = check_cuda(place, arch=node["os"]["arch"])
        if named.cuda and parse_cuda(named.cuda)[: len(parse_cuda(one.version))] != parse_cuda(
            one.version
        ):
            raise _Refusal(
                f"{named.name} is CUDA {named.cuda}, and runfiles gives it for {one.version}. "
                "Next step: correct one of the two."
            )
        parse_checksum(given.get("checksum"), named.name)
        found.append(
            {
                "version": one.version,
                "path": one.path,
                "url": given.get("url"),
                "file": given.get("path"),
                "remote": bool(given.get("remote", False)),
                "checksum": given.get("checksum"),
                "arguments": cuda_arguments(one.path, temporary=wish.temporary or None),
                "reason": one.reason,
                "name": shown(named.name),
            }
        )
    return found


def _link(
    node: Mapping[str, Any], default: _Wanted | None, local: Sequence[_Wanted]
) -> tuple[dict[str, str] | None, Step | None]:
    if default is None or not local:
        return None, None
    link = {"path": LINK, "target": default.path}
    now = next((kit for kit in node["cuda"]["toolkits"] if kit["default"]), None)
    if now and now["path"] == default.path:
        return link, None
    reason = (
        f"it leads to {now['path']}" if now and now["path"] != "/usr" else "it leads nowhere yet"
    )
    return link, Step("default", "set", f"{LINK} to {default.path}", reason)


def _files(
    node: Mapping[str, Any], wish: CudaWish, default: _Wanted | None, local: Sequence[_Wanted]
) -> tuple[dict[str, str], list[Step]]:
    if not wish.configure:
        return {}, []
    if local:
        first = LINK if default else local[0].path
        skipped = (default or local[0]).path
        files = {
            LOADER: loader_text(first, [one.path for one in local if one.path != skipped]),
            PROFILE: profile_text(first),
        }
    else:
        files = {PROFILE: distro_profile_text()}
    seen: Mapping[str, str | None] = node["cuda"]["configuration"] or {}
    steps = []
    for path, text in files.items():
        # What may not be read is taken to be right.
        if path in seen and seen[path] in (None, hashlib.sha256(text.encode()).hexdigest()):
            continue
        reason = "it differs" if path in seen else "it is not there"
        steps.append(Step("files", "write", path, reason))
    return files, steps


def _architecture(release: str, gpus: Sequence[Mapping[str, Any]], data: CudaData) -> str | None:
    """Return what the proof is compiled for: a GPU of the node that this CUDA knows."""
    for gpu in gpus:
        name = str(gpu["generation"])
        first = data.first.get(name)
        if first and parse_cuda(first) <= parse_cuda(minor(release)):
            return data.architectures.get(name)
    return None


# Options.


def _texts(name: str, value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence):
        raise InputError(f"{name} is {value!r}, which is no list.", next_step="Write ['12.9'].")
    for item in value:
        if not isinstance(item, str):
            raise InputError(
                f"{name} has {item!r}, which is no text.", next_step="Put it in quotes: '12.9'."
            )
    return tuple(value)


def _mapping(name: str, value: Any) -> dict[str, Any]:
    if not value:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(f"{name} is {value!r}, which is no mapping.")
    for key, item in value.items():
        if not isinstance(key, str):
            raise InputError(f"{name}: put {key!r} in quotes.")
        if name == "runfiles" and not isinstance(item, Mapping):
            raise InputError(
                f"runfiles[{key}] is {item!r}, which is no mapping.",
                next_step="Write {url: ..., checksum: 'sha256:...'}.",
            )
    return dict(value)

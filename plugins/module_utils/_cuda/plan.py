# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CUDA toolkits of a node: from facts and wishes to a plan with reasons. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._core.errors import InputError
from .._core.steps import Step
from .._distro.data import DEB, FAMILIES, best_effort
from .._distro.support import MANAGERS, unsupported
from .._driver.plan.sources import system_of
from .._nvidia.checksum import parse_checksum, shown
from .._nvidia.compatibility import check, minor, parse_cuda, release_of, runs
from .._nvidia.cuda_releases import (
    BUILT_IN,
    DISTRO_PACKAGE,
    CudaData,
)
from .._nvidia.driver_branches import driver_data
from .._nvidia.runfile import check_cuda, cuda_arguments
from .config_files import (
    LINK,
    LOADER,
    PROFILE,
    distro_profile_text,
    folder,
    loader_text,
    profile_text,
)
from .packages import lock, numbers, obsolete, packages_of, steps_of
from .sources import plan_repository
from .types import (
    AUTO,
    DISTRO,
    NO_DEFAULT,
    PACKAGE,
    RUNFILE,
    CudaPlan,
    CudaWish,
    Refusal,
    Tables,
    Wanted,
)

# The third number of many version.json is a date or a build, and no update.
_LAST_UPDATE = 20
# From this release on there is no driver in NVIDIA's file, and none in its name.
_WITHOUT_DRIVER = (13, 4)


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
    except Refusal as refusal:
        return CudaPlan("refuse", reasons=refusal.reasons)
    except InputError as error:
        return CudaPlan("refuse", reasons=(str(error),))


def _plan(
    node: Mapping[str, Any], gpus: Sequence[Mapping[str, Any]], wish: CudaWish, tables: Tables
) -> CudaPlan:
    wanted = _versions(node, wish, tables)
    warnings = _check(node, gpus, wish, wanted, tables)
    default = _default(wish, wanted)
    family = FAMILIES.get(node["os"]["family"] or "")
    packages = packages_of(wish, wanted, default, family.packages if family else DEB)
    repository, repository_step, note = plan_repository(node, wish, wanted, packages, tables)
    package_steps = steps_of(node, wish, wanted, packages)
    old = unsupported(node["os"], wish.controller) if package_steps else ""
    if old:
        raise Refusal(old)
    runfiles = _runfiles(node, wish, wanted)
    runfile_steps = [
        Step(
            "runfile",
            "install",
            f"CUDA {entry['version']} into {entry['path']}",
            f"{entry['reason']}; no driver is installed from {entry['name']}",
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
    if package_steps or repository_step:
        warnings.append(best_effort(node["os"], system_of(node, tables.drivers).folder))
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
        obsolete=obsolete(node, packages),
        lock=lock(wish, wanted, packages),
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
            text for text in dict.fromkeys((*warnings, note, *_unasked(node, wanted))) if text
        ),
    )


# What is asked for.


def _versions(node: Mapping[str, Any], wish: CudaWish, tables: Tables) -> list[Wanted]:
    if not wish.versions:
        raise Refusal(
            f"libraries ({', '.join(wish.libraries)}) are asked for without a version of CUDA. "
            "Next step: name it in versions; the libraries are built for one."
        )
    found: dict[str, Wanted] = {}
    for version in sorted(wish.versions, key=parse_cuda, reverse=True):
        path = folder(version)
        if path in found:
            raise Refusal(
                f"CUDA {found[path].version} and {version} are both asked for, and both would be "
                f"in {path}. Next step: ask for one of them."
            )
        found[path] = _one(node, wish, version, tables)
    stray = sorted(set(wish.runfiles) - set(wish.versions))
    if stray:
        raise Refusal(
            f"runfiles has {', '.join(stray)}, which versions does not name. Next step: write "
            "the same text in both."
        )
    return list(found.values())


def _one(node: Mapping[str, Any], wish: CudaWish, version: str, tables: Tables) -> Wanted:
    source, release = wish.source, release_of(version, tables.cuda)
    path = folder(version)
    if source == AUTO:
        source = RUNFILE if version in wish.runfiles else PACKAGE
    _check_source(node, wish, version, source)
    if source == DISTRO:
        return _from_distro(node, version, release, tables)
    there = next((kit for kit in node["cuda"]["toolkits"] if kit["path"] == path), None)
    package = node["cuda"]["packages"].get(f"cuda-toolkit-{minor(version).replace('.', '-')}")
    seen = package or (there or {}).get("version")
    if source == PACKAGE and (there is None or there["source"] == PACKAGE):
        action, reason = _compared(version, package)
        return Wanted(version, release, path, source, action, reason, seen)
    if there is None:
        return Wanted(version, release, path, source, "install", "it is not there", None)
    # Whoever put it there: it is kept where it is the version that is asked for.
    if _is_other(version, seen):
        raise Refusal(
            f"CUDA {seen} stands in {path}, from {there['source'] or 'an unknown source'}; "
            f"{version} would go into the same folder. Next step: ask for "
            f"{minor(version)}, or remove it"
            + (f" by {there['uninstaller']} and run again." if there["uninstaller"] else " first.")
        )
    return Wanted(version, release, path, there["source"] or "unknown", "none", "", seen)


def _check_source(node: Mapping[str, Any], wish: CudaWish, version: str, source: str) -> None:
    system = node["os"]
    if source == RUNFILE:
        given = wish.runfiles.get(version)
        if not given:
            raise Refusal(
                f"source is runfile, and runfiles has no {version}. Next step: give "
                f"runfiles: {{'{version}': {{url: ..., checksum: 'sha256:...'}}}}."
            )
        return
    if system["package_manager"] not in MANAGERS:
        raise Refusal(
            f"{system['id']} {system['version']} installs packages with "
            f"{system['package_manager'] or 'a tool that is not known'}; this release knows "
            f"{', '.join(MANAGERS)}. Next step: give a runfile: runfiles: {{'{version}': "
            "{url: ..., checksum: 'sha256:...'}}."
        )
    if source == DISTRO and system["package_manager"] != "apt":
        raise Refusal(
            f"{system['id']} {system['version']} has no CUDA of its own. Next step: take NVIDIA's "
            "packages (source: package), or a runfile."
        )


def _from_distro(node: Mapping[str, Any], version: str, release: str, tables: Tables) -> Wanted:
    system = node["os"]
    has = tables.cuda.distributions.get(f"{system['id']}{system['version']}")
    if has and minor(has) != minor(version):
        raise Refusal(
            f"{system['id']} {system['version']} itself has CUDA {minor(has)}, not {version}. "
            f"Next step: ask for {minor(has)}, or take NVIDIA's packages (source: package)."
        )
    package = node["cuda"]["packages"].get(DISTRO_PACKAGE)
    action = "none" if package else "install"
    return Wanted(version, release, "/usr", DISTRO, action, "it is not there", package)


def _compared(version: str, package: str | None) -> tuple[str, str]:
    """Return what has to be done with the package of a version, and why."""
    if package is None:
        return "install", "it is not there"
    if not _is_other(version, package):
        return "none", ""
    older = numbers(package) < parse_cuda(version)
    return ("upgrade" if older else "downgrade"), f"{package} is installed"


def _is_other(version: str, seen: str | None) -> bool:
    """Return whether what is there is certainly another version than the one asked for."""
    asked, have = parse_cuda(version), numbers(seen or "")
    if len(asked) < 3 or (len(have) > 2 and have[2] > _LAST_UPDATE):
        return False
    return asked != (*have, 0, 0)[:3]


def _check(
    node: Mapping[str, Any],
    gpus: Sequence[Mapping[str, Any]],
    wish: CudaWish,
    wanted: Sequence[Wanted],
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
        raise Refusal(*dict.fromkeys(refusals))
    return warnings


def _unasked(node: Mapping[str, Any], wanted: Sequence[Wanted]) -> tuple[str, ...]:
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


def _default(wish: CudaWish, wanted: Sequence[Wanted]) -> Wanted | None:
    local = [one for one in wanted if one.source != DISTRO]
    if wish.default == NO_DEFAULT or not local:
        return None
    if not wish.default:
        return local[0]
    for one in local:
        if wish.default == one.version or minor(wish.default) == minor(one.version):
            return one
    raise Refusal(
        f"default is {wish.default}, which versions ({', '.join(wish.versions)}) does not have. "
        "Next step: add it to versions, or name one of them."
    )


# Runfiles, link and files.


def _runfiles(
    node: Mapping[str, Any], wish: CudaWish, wanted: Iterable[Wanted]
) -> list[dict[str, Any]]:
    found = []
    for one in wanted:
        if one.source != RUNFILE or one.action == "none":
            continue
        given = wish.runfiles[one.version]
        place = str(given.get("url") or given.get("path") or "")
        if bool(given.get("url")) == bool(given.get("path")):
            driver = "" if parse_cuda(one.release) >= _WITHOUT_DRIVER else "_<driver>"
            raise Refusal(
                f"runfiles[{one.version}] needs url or path, one of them. Next step: "
                f"cuda_{one.release}{driver}_linux.run of NVIDIA's archive, with checksum."
            )
        named = check_cuda(place, arch=node["os"]["arch"])
        if named.cuda and parse_cuda(named.cuda)[: len(parse_cuda(one.version))] != parse_cuda(
            one.version
        ):
            raise Refusal(
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
    node: Mapping[str, Any], default: Wanted | None, local: Sequence[Wanted]
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
    node: Mapping[str, Any], wish: CudaWish, default: Wanted | None, local: Sequence[Wanted]
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

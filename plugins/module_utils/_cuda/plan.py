# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan the CUDA toolkits of a node from its facts and the request. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._core.errors import InputError, Refusal
from .._core.failure import parts
from .._core.steps import Step
from .._core.versions import upstream_numbers
from .._distro.data import DEB, FAMILIES, best_effort
from .._distro.images import CUDA, image_system, immutable, keeps_etc
from .._distro.support import MANAGERS, unsupported
from .._distro.upstream import package_base
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
from .compiles import check_compiles
from .config_files import (
    LINK,
    LOADER,
    PROFILE,
    distro_profile_text,
    folder,
    loader_text,
    profile_text,
)
from .packages import lock, obsolete, packages_of, steps_of
from .sources import plan_repository
from .types import (
    AUTO,
    DISTRO,
    NO_DEFAULT,
    PACKAGE,
    RUNFILE,
    Plan,
    PlannedVersion,
    Request,
    Tables,
)

# In many version.json the third number is a date or a build, not an update.
_LAST_UPDATE = 20
# From this release on, NVIDIA's runfile contains no driver, and its name no driver version.
_WITHOUT_DRIVER = (13, 4)


def plan_cuda(node: Mapping[str, Any], request: Request, tables: Tables | None = None) -> Plan:
    """Return the changes that the request needs on a node, each with a reason.

    :param node: the fact ``gpu_node``.
    :param tables: the data, with the user's rows merged in; None is the built-in data.
    :returns: the plan; an unsatisfiable request has the action ``refuse``.
    """
    if not request.versions and not request.libraries:
        return Plan(
            reasons=("No CUDA toolkit is requested: containers bring their own.",),
            warnings=_unrequested(node, ()),
        )
    gpus = [gpu for gpu in node["gpus"] if gpu["vendor"] == "nvidia"]
    if not gpus:
        return Plan(reasons=("This node has no NVIDIA GPU: nothing to do.",))
    try:
        return _plan(node, gpus, request, tables or Tables(BUILT_IN, driver_data()))
    except Refusal as refusal:
        return _refused((refusal,))
    except InputError as error:
        return Plan("refuse", reasons=(str(error),), refusals=(parts(error),))


def _refused(refusals: Iterable[Refusal]) -> Plan:
    unique = {one.line: one for one in refusals}
    return Plan("refuse", reasons=tuple(unique), refusals=tuple(map(parts, unique.values())))


def _plan(
    node: Mapping[str, Any], gpus: Sequence[Mapping[str, Any]], request: Request, tables: Tables
) -> Plan:
    planned = _versions(node, request, tables)
    refusals, warnings = _check(node, gpus, request, planned, tables)
    if refusals:
        return _refused(refusals)
    default = _default(request, planned)
    family = FAMILIES.get(node["os"]["family"] or "")
    packages = packages_of(request, planned, default, family.packages if family else DEB)
    local = [one for one in planned if one.source != DISTRO]
    if image_system(node["os"]):
        # Kept, or a runfile: neither needs a repository, and a hold means nothing to an image.
        packages = {}
    repository, repository_step, note = plan_repository(node, request, planned, packages, tables)
    package_steps = steps_of(node, request, planned, packages) if packages else []
    old = unsupported(node["os"], request.controller) if package_steps else None
    if old:
        raise old
    runfiles = _runfiles(node, request, planned)
    link, link_step = _link(node, default, local)
    files, file_steps = _files(node, request, default, local)
    made = (repository_step, *package_steps, *_runfile_steps(runfiles), link_step, *file_steps)
    steps = tuple(step for step in made if step is not None)
    if package_steps or repository_step:
        warnings.append(best_effort(node["os"], system_of(node, tables.drivers).folder))
    actions = {one.action for one in planned}
    action = next((name for name in ("install", "upgrade", "downgrade") if name in actions), "none")
    if action == "none" and any(step.action == "install" for step in package_steps):
        action = "install"
    return Plan(
        action=action,
        versions=_version_entries(planned, gpus, tables),
        default=default.version if default else None,
        packages=packages,
        obsolete=obsolete(node, packages),
        lock=lock(request, planned, packages),
        hold=request.hold,
        change_packages=bool(package_steps),
        repository=repository,
        runfiles=tuple(
            {name: value for name, value in entry.items() if name not in ("reason", "name")}
            for entry in runfiles
        ),
        link=link,
        files=files,
        verify=request.verify,
        change=bool(steps),
        steps=steps,
        reasons=tuple(f"{step.step}: {step.reason}" for step in steps)
        or (f"CUDA {', '.join(one.version for one in planned)} is up to date.",),
        warnings=tuple(
            text for text in dict.fromkeys((*warnings, note, *_unrequested(node, planned))) if text
        ),
    )


def _runfile_steps(runfiles: Sequence[Mapping[str, Any]]) -> list[Step]:
    return [
        Step(
            "runfile",
            "install",
            f"CUDA {entry['version']} into {entry['path']}",
            f"{entry['reason']}; no driver is installed from {entry['name']}",
        )
        for entry in runfiles
    ]


def _version_entries(
    planned: Sequence[PlannedVersion], gpus: Sequence[Mapping[str, Any]], tables: Tables
) -> tuple[dict[str, Any], ...]:
    """Return the plan's entry of each version."""
    return tuple(
        {
            "version": one.version,
            "path": one.path,
            "source": one.source,
            "action": one.action,
            "architecture": _architecture(one.release, gpus, tables.cuda),
        }
        for one in planned
    )


# Versions.


def _versions(node: Mapping[str, Any], request: Request, tables: Tables) -> list[PlannedVersion]:
    if not request.versions:
        raise Refusal(
            f"libraries ({', '.join(request.libraries)}) are requested without a CUDA version.",
            "add one to versions; the libraries are built for a CUDA version.",
        )
    found: dict[str, PlannedVersion] = {}
    for version in sorted(request.versions, key=parse_cuda, reverse=True):
        path = folder(version)
        if path in found:
            raise Refusal(
                f"CUDA {found[path].version} and {version} are both requested, and both use "
                f"{path}.",
                "request one of them.",
            )
        found[path] = _one(node, request, version, tables)
    stray = sorted(set(request.runfiles) - set(request.versions))
    if stray:
        raise Refusal(
            f"runfiles has {', '.join(stray)}, which versions does not list.",
            "write the same version in both.",
        )
    return list(found.values())


def _one(node: Mapping[str, Any], request: Request, version: str, tables: Tables) -> PlannedVersion:
    source, release = request.source, release_of(version, tables.cuda)
    path = folder(version)
    if source == AUTO:
        source = RUNFILE if version in request.runfiles else PACKAGE
    toolkit = next((kit for kit in node["cuda"]["toolkits"] if kit["path"] == path), None)
    package = node["cuda"]["packages"].get(f"cuda-toolkit-{minor(version).replace('.', '-')}")
    installed = package or (toolkit or {}).get("version")
    image = immutable(node["os"], CUDA)
    if image:
        # A runfile writes below /usr/local, and the loader's file is below /etc.
        if installed and not _differs(version, installed):
            origin = (toolkit or {}).get("source") or "unknown"
            return PlannedVersion(version, release, path, origin, "none", "", installed)
        if source != RUNFILE or not keeps_etc(node["os"]):
            raise image
    _check_source(node, request, version, source)
    if source == DISTRO:
        return _from_distro(node, version, release, tables)
    if source == PACKAGE and (toolkit is None or toolkit["source"] == PACKAGE):
        action, reason = _compared(version, package)
        return PlannedVersion(version, release, path, source, action, reason, installed)
    if toolkit is None:
        return PlannedVersion(version, release, path, source, "install", "it is not there", None)
    # A toolkit of the requested version is kept, whoever installed it.
    if _differs(version, installed):
        raise Refusal(
            f"CUDA {installed} is in {path}, from {toolkit['source'] or 'an unknown source'}; "
            f"{version} would go into the same folder.",
            "ask for "
            f"{minor(version)}, or remove it"
            + (
                f" by {toolkit['uninstaller']} and run again."
                if toolkit["uninstaller"]
                else " first."
            ),
        )
    return PlannedVersion(
        version, release, path, toolkit["source"] or "unknown", "none", "", installed
    )


def _check_source(node: Mapping[str, Any], request: Request, version: str, source: str) -> None:
    system = node["os"]
    if source == RUNFILE:
        given = request.runfiles.get(version)
        if not given:
            raise Refusal(
                f"source is runfile, and runfiles has no {version}.",
                f"give runfiles: {{'{version}': {{url: ..., checksum: 'sha256:...'}}}}.",
            )
        return
    if system["package_manager"] not in MANAGERS:
        raise Refusal(
            f"{system['id']} {system['version']} installs packages with "
            f"{system['package_manager'] or 'a tool that is not known'}; this release knows "
            f"{', '.join(MANAGERS)}.",
            f"give a runfile: runfiles: {{'{version}': {{url: ..., checksum: 'sha256:...'}}}}.",
        )
    if source == DISTRO and system["package_manager"] != "apt":
        raise Refusal(
            f"{system['id']} {system['version']} has no CUDA of its own.",
            "take NVIDIA's packages (source: package), or a runfile.",
        )


def _from_distro(
    node: Mapping[str, Any], version: str, release: str, tables: Tables
) -> PlannedVersion:
    system = package_base(node["os"])
    has = tables.cuda.distributions.get(f"{system['id']}{system['version']}")
    if has and minor(has) != minor(version):
        raise Refusal(
            f"{system['id']} {system['version']} itself has CUDA {minor(has)}, not {version}.",
            f"ask for {minor(has)}, or take NVIDIA's packages (source: package).",
        )
    package = node["cuda"]["packages"].get(DISTRO_PACKAGE)
    action = "none" if package else "install"
    return PlannedVersion(version, release, "/usr", DISTRO, action, "it is not there", package)


def _compared(version: str, package: str | None) -> tuple[str, str]:
    """Return the action for the package of a version, and its reason."""
    if package is None:
        return "install", "it is not there"
    if not _differs(version, package):
        return "none", ""
    older = upstream_numbers(package) < parse_cuda(version)
    return ("upgrade" if older else "downgrade"), f"{package} is installed"


def _differs(version: str, installed: str | None) -> bool:
    """Return whether the installed version certainly differs from the requested one."""
    requested, current = parse_cuda(version), upstream_numbers(installed or "")
    if len(requested) < 3 or (len(current) > 2 and current[2] > _LAST_UPDATE):
        return False
    return requested != (*current, 0, 0)[:3]


def _check(
    node: Mapping[str, Any],
    gpus: Sequence[Mapping[str, Any]],
    request: Request,
    planned: Sequence[PlannedVersion],
    tables: Tables,
) -> tuple[list[Refusal], list[str]]:
    """Return why GPUs, driver, glibc or g++ do not fit a version, and warnings."""
    installed = node["driver"]["installed"]
    driver = request.driver_version or node["driver"]["loaded"] or installed
    refusals, warnings = check_compiles(node, request, planned, tables.cuda)
    for one in planned:
        verdict = check(one.release, gpus, driver, tables.cuda)
        refusals.extend(verdict.refusals)
        warnings.extend(verdict.warnings)
        pending = installed and installed != driver and not request.driver_version
        supported = [
            runs(one.release, which, tables.cuda) for which in (driver, installed) if pending
        ]
        if supported == [False, True]:
            cause = (
                f"Driver {installed}, which runs CUDA {minor(one.version)}, is installed, but "
                f"{driver} is still loaded."
            )
            refusals.append(Refusal(cause, "reboot, and run again."))
    return refusals, warnings


def _unrequested(node: Mapping[str, Any], planned: Sequence[PlannedVersion]) -> tuple[str, ...]:
    """Return a warning about installed toolkits that are no longer requested.

    The facts do not say who installed a toolkit. It counts as managed if our files exist and it is
    held or has an uninstaller.
    """
    cuda = node["cuda"]
    if not cuda["configuration"]:
        return ()
    requested = {one.path for one in planned}
    unheld = set(cuda.get("unheld") or ())
    names = {
        kit["path"]: f"cuda-toolkit-{kit['path'].rpartition('cuda-')[2].replace('.', '-')}"
        for kit in cuda["toolkits"]
        if kit["source"] == PACKAGE
    }
    left = [
        f"{kit['version']} ({kit['path']})"
        for kit in cuda["toolkits"]
        if kit["path"] not in requested
        and (
            kit["source"] == RUNFILE
            or (names.get(kit["path"]) in cuda["packages"] and names[kit["path"]] not in unheld)
        )
    ]
    if not left:
        return ()
    return (
        f"CUDA {', '.join(left)} is installed but not requested, and is kept. Next step: none, or, "
        "to remove what this collection installed, run teardown and then install again.",
    )


def _default(request: Request, planned: Sequence[PlannedVersion]) -> PlannedVersion | None:
    local = [one for one in planned if one.source != DISTRO]
    if request.default == NO_DEFAULT or not local:
        return None
    if not request.default:
        return local[0]
    for one in local:
        if request.default == one.version or minor(request.default) == minor(one.version):
            return one
    raise Refusal(
        f"default is {request.default}, which versions ({', '.join(request.versions)}) does not "
        "list.",
        "add it to versions, or choose one of them.",
    )


# Runfiles, link and files.


def _runfiles(
    node: Mapping[str, Any], request: Request, planned: Iterable[PlannedVersion]
) -> list[dict[str, Any]]:
    found = []
    for one in planned:
        if one.source != RUNFILE or one.action == "none":
            continue
        given = request.runfiles[one.version]
        location = str(given.get("url") or given.get("path") or "")
        if bool(given.get("url")) == bool(given.get("path")):
            driver = "" if parse_cuda(one.release) >= _WITHOUT_DRIVER else "_<driver>"
            raise Refusal(
                f"runfiles[{one.version}] needs url or path, one of them.",
                f"cuda_{one.release}{driver}_linux.run of NVIDIA's archive, with checksum.",
            )
        named = check_cuda(location, arch=node["os"]["arch"])
        if named.cuda and parse_cuda(named.cuda)[: len(parse_cuda(one.version))] != parse_cuda(
            one.version
        ):
            raise Refusal(
                f"{named.name} is CUDA {named.cuda}, and runfiles gives it for {one.version}.",
                "correct one of the two.",
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
                "arguments": cuda_arguments(one.path),
                "temporary": request.temporary,
                "reason": one.reason,
                "name": shown(named.name),
            }
        )
    return found


def _link(
    node: Mapping[str, Any], default: PlannedVersion | None, local: Sequence[PlannedVersion]
) -> tuple[dict[str, str] | None, Step | None]:
    if default is None or not local or not keeps_etc(node["os"]):
        return None, None
    link = {"path": LINK, "target": default.path}
    current = next((kit for kit in node["cuda"]["toolkits"] if kit["default"]), None)
    if current and current["path"] == default.path:
        return link, None
    reason = (
        f"it leads to {current['path']}"
        if current and current["path"] != "/usr"
        else "it leads nowhere yet"
    )
    return link, Step("default", "set", f"{LINK} to {default.path}", reason)


def _files(
    node: Mapping[str, Any],
    request: Request,
    default: PlannedVersion | None,
    local: Sequence[PlannedVersion],
) -> tuple[dict[str, str], list[Step]]:
    # In an image that does not keep them, link and files are those of the image.
    if not request.configure or not keeps_etc(node["os"]):
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
    checksums: Mapping[str, str | None] = node["cuda"]["configuration"] or {}
    steps = []
    for path, text in files.items():
        # A file that cannot be read counts as unchanged.
        if path in checksums and checksums[path] in (
            None,
            hashlib.sha256(text.encode()).hexdigest(),
        ):
            continue
        reason = "it differs" if path in checksums else "it is not there"
        steps.append(Step("files", "write", path, reason))
    return files, steps


def _architecture(release: str, gpus: Sequence[Mapping[str, Any]], data: CudaData) -> str | None:
    """Return the architecture of the compiler test: that of a GPU which this CUDA supports."""
    for gpu in gpus:
        name = str(gpu["generation"])
        first = data.first.get(name)
        if first and parse_cuda(first) <= parse_cuda(minor(release)):
            return data.architectures.get(name)
    return None

# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which driver a node shall have, or why it can have none: wish against GPUs and facts. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..._core.errors import InputError
from ..._distro.data import major
from ..._nvidia.checksum import file_name
from ..._nvidia.driver_branches import SIGNED_ELSEWHERE
from ..._nvidia.runfile import check_driver
from ..types import DriverWish, branch_of
from . import gpu_support as rules
from .decision import PLACES, Case, Refused, Target, upper
from .gpu_support import Gpu
from .packages import prebuilt_flavour, signed_modules
from .select import alternatives, choose_branch, choose_flavour
from .sources import (
    DISTRO,
    MULTIVERSE,
    NVIDIA,
    RUNFILE,
    offers,
    replacement,
    row,
    switched_off,
)


def decide(case: Case) -> Target:
    """Return the driver that the node shall have.

    :raises Refused: there is none that meets the wish.
    """
    pair = rules.conflict(case.gpus, case.data)
    if pair:
        raise Refused(
            f"No driver serves {pair[0].name} ({_limits(pair[0])}) and {pair[1].name} "
            f"({_limits(pair[1])}) together.",
            "take one of the two out of this node, or give one of them to a virtual machine.",
        )
    case, runfile, notes = _exact(case)
    wish = case.wish
    asked = branch_of(wish.version) or (None if wish.branch == "auto" else wish.branch)
    if asked and asked not in case.data.branches:
        variable = "nvidia_driver_version" if wish.version else "nvidia_driver_branch"
        raise Refused(
            f"{variable} asks for branch {asked}, which this release does not know; it knows "
            f"{', '.join(sorted(case.data.branches, key=int))}.",
            f'add it: nvidia_driver_branches: {{"{asked}": {{"kind": "production", "end": '
            '"YYYY-MM-DD"}}.',
        )
    kept = _kept(case, asked)
    if kept:
        return replace(kept, warnings=(*notes, *kept.warnings))
    _check_guest(case, runfile)
    _check_legacy(case)
    if asked:
        _check_asked(case, asked)
    branch, source, reasons, warnings = choose_branch(case, asked, runfile)
    flavour, why_flavour = choose_flavour(case, branch, source)
    target = Target(
        branch=branch,
        version=wish.version or None,
        flavour=flavour,
        source=source,
        runfile=_described(case, runfile) if source == RUNFILE else None,
        reasons=(*reasons, why_flavour),
        warnings=(*notes, *warnings),
    )
    target = _with_version(case, target)
    _check_source(case, target)
    return _checked_boot(case, target)


def _limits(gpu: Gpu) -> str:
    kind = " or ".join(gpu.modules)
    if gpu.last:
        return f"{gpu.generation}: up to branch {gpu.last}, {kind} kernel modules"
    return f"{gpu.generation}: {kind} kernel modules"


def _exact(case: Case) -> tuple[Case, Mapping[str, Any] | None, tuple[str, ...]]:
    """Return the case with ``previous`` and the runfile's version in its wish."""
    wish = case.wish
    if wish.version == "previous":
        previous = case.node["driver"]["previous"]
        if not previous or not previous.get("version"):
            raise Refused(
                "nvidia_driver_version is previous, but this node's record has no earlier driver.",
                "ask for the version by its number.",
            )
        flavour, source = previous.get("kernel_module"), previous.get("source")
        case = replace(case, back=True)
        wish = replace(
            wish,
            version=previous["version"],
            branch="auto",
            kernel_module=flavour
            if wish.kernel_module == "auto" and flavour
            else wish.kernel_module,
            source=source if wish.source == "auto" and source else wish.source,
        )
    runfile = wish.runfile if wish.source in ("auto", RUNFILE) else None
    if not runfile:
        _check_same_branch(wish)
        return replace(case, wish=wish), None, ()
    place = str(runfile.get("url") or runfile.get("path") or "")
    try:
        named = check_driver(
            place,
            arch=case.system.arch or None,
            guest=True if case.guest else _not_guest(case.gpus),
        )
    except InputError as error:
        raise Refused(error.cause, error.next_step or "give another file.") from error
    version = str(runfile.get("version") or named.version or wish.version or "")
    if not version:
        raise Refused(
            f"nvidia_driver_runfile: the name {file_name(place)!r} does not tell the driver's "
            "version.",
            "set nvidia_driver_runfile.version.",
        )
    if wish.version and wish.version != version:
        raise Refused(
            f"nvidia_driver_version is {wish.version}, but the runfile is {version}.",
            "let them agree, or leave the version out.",
        )
    wish = replace(wish, version=version, source=RUNFILE)
    _check_same_branch(wish)
    return replace(case, wish=wish), {**runfile, "version": version}, _host_note(case, version)


def _not_guest(gpus: Sequence[Gpu]) -> bool | None:
    return False if all(gpu.guest is False for gpu in gpus) else None


def _check_same_branch(wish: DriverWish) -> None:
    if wish.version and wish.branch not in ("auto", branch_of(wish.version)):
        raise Refused(
            f"nvidia_driver_branch is {wish.branch}, but version {wish.version} is of branch "
            f"{branch_of(wish.version)}.",
            "let them agree, or leave the branch at auto.",
        )


def _host_note(case: Case, version: str) -> tuple[str, ...]:
    host = rules.host_branch(case.gpus)
    if not case.guest or host is None or host == branch_of(version):
        return ()
    return (
        f"The vGPU host's driver is of branch {host}, the guest driver given is {version}: look "
        "in NVIDIA's vGPU release notes whether they go together.",
    )


def _kept(case: Case, asked: str | None) -> Target | None:
    """Return the driver that is there, where it meets the wish."""
    present, wish = case.present, case.wish
    if present is None:
        return None
    if unfit(case) and not _proven(case):
        return None
    if case.guest and not (present.loaded or present.source == RUNFILE):
        return None
    if asked and asked != present.branch:
        return None
    if wish.version and wish.version != present.version:
        return None
    if case.asked_flavour and present.flavour and case.asked_flavour != present.flavour:
        return None
    other = wish.source not in ("auto", present.source)
    if other and wish.replace_source:
        return None
    if wish.version:
        reason = f"{upper(present.words)} is the version that was asked for."
    elif asked:
        reason = f"{upper(present.words)} is of branch {asked}, as asked for."
    else:
        reason = (
            f"{upper(present.words)} serves {rules.names(case.gpus)}: kept, as nothing else was "
            "asked for."
        )
    warnings = [rules.support_warning(present.branch, case.data, wish.today)]
    instead = replacement(case.system, present.branch, case.data)
    if present.source == DISTRO and instead:
        warnings.append(
            f"The distribution's archive has branch {present.branch} no more: its packages of that "
            f"name install {instead}. Held, the driver stays; an upgrade without the hold changes "
            f'the branch. Next step: plan the change (nvidia_driver_branch: "{instead}").'
        )
    if other:
        warnings.append(
            f"nvidia_driver_source is {wish.source}, but the driver came "
            f"{present.words.partition('(')[2].partition(',')[0].rstrip(')')}; it meets the wish "
            "otherwise and is kept. To change it: nvidia_driver_replace_source: true."
        )
    return Target(
        branch=present.branch,
        version=present.version,
        flavour=present.flavour,
        source=present.source,
        keep=True,
        reasons=(reason,),
        warnings=tuple(one for one in warnings if one),
    )


def unfit(case: Case) -> str | None:
    """Return why the driver that is there does not serve the GPUs, as far as the data know."""
    present = case.present
    if present is None:
        return None
    found = rules.problem(case.gpus, present.branch, case.data, version=present.version)
    if found or not present.flavour:
        return found
    if present.flavour in rules.flavours(case.gpus, present.branch, case.data):
        return None
    alone = [gpu for gpu in case.gpus if present.flavour not in gpu.modules]
    which = f"{alone[0].name} ({alone[0].generation})" if alone else rules.names(case.gpus)
    return f"{which} does not work with {present.flavour} kernel modules"


def _proven(case: Case) -> bool:
    """Return whether the driver that is there is seen to serve all GPUs, whatever the data say."""
    nvml, present = case.node["nvml"], case.present
    return bool(
        nvml
        and present
        and present.loaded == present.version == nvml["driver_version"]
        and len(nvml["devices"]) >= len(case.gpus)
    )


def _check_guest(case: Case, runfile: Mapping[str, Any] | None) -> None:
    guest = next((gpu for gpu in case.gpus if gpu.guest), None)
    if guest is None or runfile:
        return
    host = rules.host_branch(case.gpus)
    if guest.host_version:
        seen = f"its host has driver {guest.host_version} ({guest.host_branch or f'r{host}'})"
        which = f"of the host's branch {host}"
    else:
        seen = "its host's driver is not told without root"
        which = "of the host's branch"
    arch = case.system.arch or "x86_64"
    name = f"NVIDIA-Linux-{arch}-{guest.host_version or '<version>'}-grid.run"
    raise Refused(
        f"{guest.name} is a virtual GPU (vGPU) of this guest: {seen}. No data-centre driver works "
        "in a vGPU guest.",
        f"get the GRID guest driver {which} from the licence portal or the cloud provider "
        f"({name}, or the guest version that its release notes name) and give it as "
        "nvidia_driver_runfile with path or url, and checksum.",
    )


def _check_legacy(case: Case) -> None:
    old = next((gpu for gpu in case.gpus if gpu.legacy), None)
    if old is None:
        return
    newest = rules.newest_known(old.last or "", case.data) or f"{old.last}.<version>"
    raise Refused(
        f"{old.name} ({old.generation}) is served up to branch {old.last}, which nobody maintains "
        "any more and this collection does not install.",
        f"install NVIDIA-Linux-{case.system.arch}-{newest}.run by hand on a kernel that it "
        "builds for, or take the card out; a driver that is there already is kept.",
    )


def _check_asked(case: Case, asked: str) -> None:
    wish = case.wish
    found = rules.problem(
        case.gpus, asked, case.data, version=wish.version or None, asked=case.asked_flavour
    )
    if found is None:
        return
    what = f"driver {wish.version}" if wish.version else f"branch {asked}"
    with_modules = f" with {case.asked_flavour} kernel modules" if case.asked_flavour else ""
    before = f" The driver {case.present.version} that is there stays." if case.present else ""
    raise Refused(
        f"{upper(what)}{with_modules} was asked for, but {found}.{before}", alternatives(case)
    )


def _with_version(case: Case, target: Target) -> Target:
    """Return the target with an exact version where the source would mix two."""
    found = row(case.system, target.source or "", case.data) or {}
    version = found.get("open_version")
    if target.version or target.flavour != "open" or not version:
        return target
    if branch_of(version) != target.branch:
        return target
    reason = (
        f"Version {version}: the archive has its open kernel modules in no other, and libraries "
        "of another version would not go with them."
    )
    return replace(target, version=version, reasons=(*target.reasons, reason))


def _described(case: Case, runfile: Mapping[str, Any] | None) -> Mapping[str, Any]:
    given = runfile or {}
    if not given.get("checksum"):
        raise Refused(
            "nvidia_driver_runfile has no checksum.",
            "set nvidia_driver_runfile.checksum to sha256:<64 hex digits>, or to the URL of the "
            "publisher's .sha256sum or redistrib JSON.",
        )
    return given


def _check_source(case: Case, target: Target) -> None:
    present, wish = case.present, case.wish
    if present is None or present.source == target.source:
        return
    if present.source is None:
        raise Refused(
            f"{upper(present.words)} is there and does not meet the wish, and nothing tells how "
            "to remove it.",
            "remove it the way it was installed, then run again; or ask for what it is (branch "
            f"{present.branch}).",
        )
    if not wish.replace_source:
        removal = (
            f"runs {case.node['driver']['uninstaller'] or 'its own uninstaller'} first"
            if present.source == RUNFILE
            else "removes its packages in the same change"
        )
        raise Refused(
            f"{upper(present.words)} is there and does not meet the wish; branch {target.branch} "
            f"would come from {PLACES[str(target.source)]}.",
            f"nvidia_driver_replace_source: true, which {removal}; or remove it by hand; or ask "
            f"for what it is (branch {present.branch}).",
        )
    if present.source == RUNFILE and not case.node["driver"]["uninstaller"]:
        raise Refused(
            f"{upper(present.words)} is there, and its uninstaller is not.",
            "run the same .run file with --uninstall by hand, then run again.",
        )


def _checked_boot(case: Case, target: Target) -> Target:
    """Return the target with what Secure Boot means for it."""
    if case.node["secure_boot"] is not True:
        return target
    if target.source == DISTRO and prebuilt_flavour(case.node, case.system, case.wish, case.data):
        reason = "Secure Boot is on: Ubuntu's prebuilt modules are signed with its own key."
        return replace(target, reasons=(*target.reasons, reason))
    found = signed_modules(case.node, case.system, target.source, case.wish, case.data)
    if found and target.flavour in found["modules"]:
        return _signed_by(found, target)
    if case.present and case.present.loaded and case.node["driver"]["dkms"]:
        # A module that was built here is loaded: its key is enrolled.
        return target
    key = (
        "/var/lib/shim-signed/mok/MOK.der"
        if case.system.id == "ubuntu"
        else "/var/lib/dkms/mok.pub"
    )
    steps = (
        f"mokutil --import {key} (choose a password), reboot, and at the console: Enroll MOK, "
        "Continue, the password"
    )
    signed = case.system.id == "ubuntu" and prebuilt_flavour(
        case.node, case.system, replace(case.wish, dkms="auto"), case.data
    )
    has = [
        branch
        for branch in rules.serving(case.gpus, case.data, case.asked_flavour)
        if signed
        and offers(case.system, DISTRO, branch, case.data, case.asked_flavour)
        # Whether an older branch serves a newer GPU is not known.
        and all(gpu.known for gpu in case.gpus)
    ]
    # Without signed modules nothing would work until a person has been at the console.
    if case.wish.dkms == "true":
        other = f" Ubuntu's archive has signed modules of {', '.join(has)}." if has else ""
        warning = (
            "Secure Boot is on, and modules that are built on this node load only with an "
            f"enrolled key: {steps}.{other}"
        )
        return replace(target, warnings=(*target.warnings, warning))
    way = (
        f"let them be built here and enrol their key: nvidia_driver_dkms: true, then {steps}; or "
        "switch Secure Boot off in the firmware."
    )
    kinds = _other_kinds(case, target)
    if kinds:
        raise Refused(
            f"Secure Boot is on, and there are signed kernel modules of branch {target.branch} for "
            f"{case.system.words} that are {kinds}, not {target.flavour}.",
            f"ask for them: nvidia_driver_kernel_module: {kinds}; or {way}",
        )
    if has:
        raise Refused(
            f"Secure Boot is on, and {PLACES[str(target.source)]} has no signed kernel modules of "
            f"branch {target.branch}.",
            f"take Ubuntu's own signed modules (nvidia_driver_source: distro, branch "
            f"{' or '.join(has)}); or {way}",
        )
    archive = (row(case.system, DISTRO, case.data) or {}).get("branches") or ()
    off = [
        branch
        for branch in rules.serving(case.gpus, case.data, case.asked_flavour)
        if signed and branch in archive and switched_off(case.system, branch, case.data)
    ]
    if off:
        raise Refused(
            f"Secure Boot is on, and Ubuntu's signed kernel modules of branch {' or '.join(off)} "
            f"are in the component {MULTIVERSE}, which this node's apt does not enable.",
            f"enable {MULTIVERSE} in {case.node['os']['archive']['file']}; or {way}",
        )
    raise Refused(
        "Secure Boot is on, and no source has signed kernel modules for "
        f"{case.system.words} with kernel {case.node['os']['kernel']}.{_signed_elsewhere(case)}",
        way,
    )


def _signed_elsewhere(case: Case) -> str:
    """Return which signed kernel modules the distribution itself has beside these sources."""
    first, package, place = SIGNED_ELSEWHERE.get(case.system.id, (0, "", ""))
    number = major(case.system.version)
    if not package or not number.isdigit() or int(number) < first:
        return ""
    return (
        f" {package} has open ones, from {place}, which this collection does not set up; "
        "docs/driver.md says how to use it (nvidia_driver_repositories: signed)."
    )


def _signed_by(signed: Mapping[str, Any], target: Target) -> Target:
    """Return the target whose modules are signed by somebody else than the distribution."""
    by = signed["by"]
    reason = f"Secure Boot is on: these kernel modules come built and signed by {by}."
    warnings = target.warnings
    if not signed["trusted"]:
        warnings = (
            *warnings,
            f"Whether this node's firmware trusts {by}'s signature is not told by facts. Where it "
            "does not, the module does not load, and the run says so. Next step then: enrol the "
            f"certificate that {by} publishes for it (mokutil --import, reboot, Enroll MOK), or "
            "nvidia_driver_dkms: true for a key of the node's own.",
        )
    return replace(target, reasons=(*target.reasons, reason), warnings=warnings)


def _other_kinds(case: Case, target: Target) -> str:
    """Return the kind of kernel modules that would be signed, where the GPUs work with it."""
    found = signed_modules(case.node, case.system, NVIDIA, case.wish, case.data)
    if found is None or not offers(case.system, NVIDIA, target.branch, case.data):
        return ""
    possible = rules.flavours(case.gpus, target.branch, case.data)
    return next((kind for kind in possible if kind in found["modules"]), "")

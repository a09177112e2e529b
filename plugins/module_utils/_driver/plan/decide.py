# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decides which driver a node gets, or why the request cannot be met. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..._core.errors import InputError, Refusal
from ..._nvidia.checksum import file_name, parse_checksum
from ..._nvidia.driver_branches import BRANCHES
from ..._nvidia.runfile import check_driver
from ..types import Request, branch_of
from . import gpu_support as rules
from . import vgpu
from .container import check_container
from .decision import PLACES, DecisionInput, Target, capitalize_first
from .gpu_support import Gpu
from .installed import InstalledDriver
from .plan_image import check_system
from .secure_boot import check_secure_boot
from .select import alternatives, choose_branch, choose_kernel_module
from .sources import (
    DISTRO,
    RUNFILE,
    replacement,
    repository_entry,
)
from .working import (
    broken_gpus,
    check_blocked,
    check_works,
    lacks_module_for_good,
    why_not_loaded,
)

# So many branches are named that somebody may have meant.
_MOST_NEAR = 2


def decide(inputs: DecisionInput) -> Target:
    """Return the driver that the node gets.

    :raises Refusal: no driver meets the request, or the one that does cannot work here.
    """
    target = _decide(inputs)
    blocked = check_blocked(inputs, target)
    return replace(target, warnings=(*broken_gpus(inputs.node), *target.warnings, *blocked))


def _decide(inputs: DecisionInput) -> Target:
    check_container(inputs)
    pair = rules.conflict(inputs.gpus, inputs.data)
    if pair:
        raise Refusal(
            f"No driver serves {pair[0].name} ({_limits(pair[0])}) and {pair[1].name} "
            f"({_limits(pair[1])}) together.",
            "take one of the two out of this node, or give one of them to a virtual machine.",
        )
    inputs, runfile, notes = _resolve_version(inputs)
    request = inputs.request
    asked = branch_of(request.version) or (None if request.branch == "auto" else request.branch)
    if asked and asked not in inputs.data.branches:
        variable = "nvidia_driver_version" if request.version else "nvidia_driver_branch"
        raise Refusal(
            f"{variable} asks for branch {asked}, which this release does not know; it knows "
            f"{', '.join(sorted(inputs.data.branches, key=int))}.",
            f"{_near(asked, _usable(inputs))} A newer branch is added with "
            f'nvidia_driver_branches: {{"{asked}": {{"kind": "production", "end": '
            '"YYYY-MM-DD"}}.',
        )
    kept = _keep_installed(inputs, asked)
    if kept and vgpu.is_kept(inputs, works=_serves_all_gpus(inputs)):
        return replace(kept, warnings=(*notes, *kept.warnings, *check_works(inputs)))
    check_system(inputs, runfile=bool(runfile))
    _check_guest(inputs, runfile)
    _check_legacy(inputs)
    if asked:
        _check_asked(inputs, asked)
    choice = choose_branch(inputs, asked, runfile)
    kernel_module, module_reason = choose_kernel_module(inputs, choice.branch, choice.source)
    target = Target(
        branch=choice.branch,
        version=request.version or None,
        kernel_module=kernel_module,
        source=choice.source,
        runfile=_require_checksum(inputs, runfile) if choice.source == RUNFILE else None,
        reasons=(*choice.reasons, module_reason),
        warnings=(*notes, *choice.warnings),
    )
    target = _with_version(inputs, target)
    _check_source(inputs, target)
    return check_secure_boot(inputs, target)


def _usable(inputs: DecisionInput) -> list[str]:
    """Return the branches that serve the GPUs and have a release; all if there is none."""
    data = inputs.data
    found = [
        branch
        for branch in rules.serving(inputs.gpus, data)
        if branch not in BRANCHES or rules.newest_known(branch, data)
    ]
    return found or list(data.branches)


def _near(asked: str, known: Sequence[str]) -> str:
    """Return the step that names the branches that somebody may have meant."""
    near = difflib.get_close_matches(asked, sorted(known, key=int), _MOST_NEAR)
    if asked.isdigit() and len(asked) in map(len, known):
        # No digit too many or too few: the branch may be a newer or an older one.
        near = sorted(known, key=lambda one: abs(int(one) - int(asked)))[:_MOST_NEAR]
    return f"write {' or '.join(near) or 'one of these'}, if that was meant."


def _limits(gpu: Gpu) -> str:
    kind = " or ".join(gpu.modules)
    if gpu.last:
        return f"{gpu.generation}: up to branch {gpu.last}, {kind} kernel modules"
    return f"{gpu.generation}: {kind} kernel modules"


def _resolve_version(
    inputs: DecisionInput,
) -> tuple[DecisionInput, Mapping[str, Any] | None, tuple[str, ...]]:
    """Return the input with an exact version for ``previous`` or the runfile; runfile; warnings."""
    request = inputs.request
    if request.version == "previous":
        previous = inputs.node["driver"]["previous"]
        if not previous or not previous.get("version"):
            raise Refusal(
                "nvidia_driver_version is previous, but this node's record has no earlier driver.",
                "ask for the version by its number.",
            )
        kernel_module, source = previous.get("kernel_module"), previous.get("source")
        inputs = replace(inputs, back=True)
        request = replace(
            request,
            version=previous["version"],
            branch="auto",
            kernel_module=kernel_module
            if request.kernel_module == "auto" and kernel_module
            else request.kernel_module,
            source=source if request.source == "auto" and source else request.source,
        )
    runfile = request.runfile if request.source in ("auto", RUNFILE) else None
    if not runfile:
        _check_same_branch(request)
        return replace(inputs, request=request), None, ()
    place = str(runfile.get("url") or runfile.get("path") or "")
    try:
        named = check_driver(
            place,
            arch=inputs.system.arch or None,
            guest=True if inputs.guest else _not_guest(inputs.gpus),
        )
    except InputError as error:
        raise Refusal(error.cause, error.next_step or "give another file.") from error
    version = str(runfile.get("version") or named.version or request.version or "")
    if not version:
        raise Refusal(
            f"nvidia_driver_runfile: the name {file_name(place)!r} does not contain the driver's "
            "version.",
            "set nvidia_driver_runfile.version.",
        )
    if request.version and request.version != version:
        raise Refusal(
            f"nvidia_driver_version is {request.version}, but the runfile is {version}.",
            "let them agree, or leave the version out.",
        )
    request = replace(request, version=version, source=RUNFILE)
    _check_same_branch(request)
    return (
        replace(inputs, request=request),
        {**runfile, "version": version},
        vgpu.warnings(inputs, version),
    )


def _not_guest(gpus: Sequence[Gpu]) -> bool | None:
    return False if all(gpu.guest is False for gpu in gpus) else None


def _check_same_branch(request: Request) -> None:
    if request.version and request.branch not in ("auto", branch_of(request.version)):
        raise Refusal(
            f"nvidia_driver_branch is {request.branch}, but version {request.version} is of branch "
            f"{branch_of(request.version)}.",
            "let them agree, or leave the branch at auto.",
        )


def _keep_installed(inputs: DecisionInput, asked: str | None) -> Target | None:
    """Return the installed driver as the target if it meets the request."""
    installed, request = inputs.installed, inputs.request
    if installed is None:
        return None
    if why_unsuitable(inputs) and not _serves_all_gpus(inputs):
        return None
    if inputs.guest and not (installed.loaded or installed.source == RUNFILE):
        return None
    if asked and asked != installed.branch:
        return None
    if request.version and request.version != installed.version:
        return None
    # Of which kind the modules are may be unknown: those that are loaded are kept then.
    if (
        inputs.requested_kernel_module
        and (installed.kernel_module or not installed.loaded)
        and inputs.requested_kernel_module != installed.kernel_module
    ):
        return None
    other = request.source not in ("auto", installed.source)
    if other and request.replace_source:
        return None
    if request.runfile and lacks_module_for_good(inputs):
        return None
    warnings = [
        vgpu.support_warning(inputs, installed.branch),
        *vgpu.warnings(inputs, installed.version),
    ]
    instead = replacement(inputs.system, installed.branch, inputs.data)
    if installed.source == DISTRO and instead:
        warnings.append(
            f"The distribution's archive has branch {installed.branch} no more: its packages of "
            f"that name install {instead}. Held, the driver is kept; an upgrade without the hold "
            f'changes the branch. Next step: plan the change (nvidia_driver_branch: "{instead}").'
        )
    if other:
        warnings.append(
            f"nvidia_driver_source is {request.source}, but the driver came "
            f"{installed.title.partition('(')[2].partition(',')[0].rstrip(')')}; it meets the "
            "request otherwise and is kept. To change it: nvidia_driver_replace_source: true."
        )
    return Target(
        branch=installed.branch,
        version=installed.version,
        kernel_module=installed.kernel_module,
        source=installed.source,
        keep=True,
        reasons=(_why_kept(inputs, installed, asked),),
        warnings=tuple(one for one in warnings if one),
    )


def _why_kept(inputs: DecisionInput, installed: InstalledDriver, asked: str | None) -> str:
    title = capitalize_first(installed.title)
    not_loaded = why_not_loaded(inputs)
    if not_loaded:
        return f"{title} serves {rules.describe_gpus(inputs.gpus)}, and {not_loaded}."
    if inputs.request.version:
        return f"{title} is the version that was requested."
    if asked:
        return f"{title} is of branch {asked}, as requested."
    return (
        f"{title} serves {rules.describe_gpus(inputs.gpus)}: kept, as nothing else was requested."
    )


def why_unsuitable(inputs: DecisionInput) -> str | None:
    """Return why the installed driver does not serve the GPUs, according to the data."""
    installed = inputs.installed
    if installed is None:
        return None
    found = rules.problem(inputs.gpus, installed.branch, inputs.data, version=installed.version)
    if found or not installed.kernel_module:
        return found
    if installed.kernel_module in rules.kernel_modules(inputs.gpus, installed.branch, inputs.data):
        return None
    alone = [gpu for gpu in inputs.gpus if installed.kernel_module not in gpu.modules]
    which = (
        f"{alone[0].name} ({alone[0].generation})" if alone else rules.describe_gpus(inputs.gpus)
    )
    return f"{which} does not work with {installed.kernel_module} kernel modules"


def _serves_all_gpus(inputs: DecisionInput) -> bool:
    """Return whether NVML reports all GPUs with the installed driver, whatever the data say."""
    nvml, installed = inputs.node["nvml"], inputs.installed
    return bool(
        nvml
        and installed
        and installed.loaded == installed.version == nvml["driver_version"]
        and len(nvml["devices"]) >= len(inputs.gpus)
    )


def _check_guest(inputs: DecisionInput, runfile: Mapping[str, Any] | None) -> None:
    guest = next((gpu for gpu in inputs.gpus if gpu.guest), None)
    if guest is None:
        return
    wrong = vgpu.misfit(inputs, runfile["version"]) if runfile else ""
    if runfile and not wrong:
        return
    host = rules.host_branch(inputs.gpus)
    if guest.host_version:
        seen = f"its host has driver {guest.host_version} ({guest.host_branch or f'r{host}'})"
        which = f"of the host's branch {host}"
    else:
        seen = "its host's driver is unknown without root"
        which = "of the host's branch"
    arch = inputs.system.arch or "x86_64"
    name = f"NVIDIA-Linux-{arch}-{guest.host_version or '<version>'}-grid.run"
    why = wrong or (vgpu.misfit(inputs, inputs.installed.version) if inputs.installed else "")
    raise Refusal(
        f"{guest.name} is a virtual GPU (vGPU) of this guest: {seen}. "
        f"{why or 'No data-centre driver works in a vGPU guest.'}",
        f"get the GRID guest driver {which} from the licence portal or the cloud provider "
        f"({name}, or the guest version that its release notes name) and give it as "
        "nvidia_driver_runfile with path or url, and checksum.",
    )


def _check_legacy(inputs: DecisionInput) -> None:
    old = next((gpu for gpu in inputs.gpus if gpu.legacy), None)
    if old is None:
        return
    newest = rules.newest_known(old.last or "", inputs.data) or f"{old.last}.<version>"
    raise Refusal(
        f"{old.name} ({old.generation}) is served up to branch {old.last}, which is not "
        "maintained any more and which this collection does not install.",
        f"install NVIDIA-Linux-{inputs.system.arch}-{newest}.run manually on a kernel that it "
        "builds for, or take the card out; an installed driver is kept.",
    )


def _check_asked(inputs: DecisionInput, asked: str) -> None:
    request = inputs.request
    found = rules.problem(
        inputs.gpus,
        asked,
        inputs.data,
        version=request.version or None,
        asked=inputs.requested_kernel_module,
    )
    if found is None:
        return
    what = f"driver {request.version}" if request.version else f"branch {asked}"
    with_modules = (
        f" with {inputs.requested_kernel_module} kernel modules"
        if inputs.requested_kernel_module
        else ""
    )
    before = f" Driver {inputs.installed.version} is kept." if inputs.installed else ""
    raise Refusal(
        f"{capitalize_first(what)}{with_modules} was requested, but {found}.{before}",
        alternatives(inputs),
    )


def _with_version(inputs: DecisionInput, target: Target) -> Target:
    """Return the target with an exact version if the source would mix two versions."""
    found = repository_entry(inputs.system, target.source or "", inputs.data) or {}
    version = found.get("open_version")
    if target.version or target.kernel_module != "open" or not version:
        return target
    if branch_of(version) != target.branch:
        return target
    reason = (
        f"Version {version}: the archive has its open kernel modules in no other, and libraries "
        "of another version would not go with them."
    )
    return replace(target, version=version, reasons=(*target.reasons, reason))


def _require_checksum(
    inputs: DecisionInput, runfile: Mapping[str, Any] | None
) -> Mapping[str, Any]:
    given = runfile or {}
    if not given.get("checksum"):
        raise Refusal(
            "nvidia_driver_runfile has no checksum.",
            "set nvidia_driver_runfile.checksum to sha256:<64 hex digits>, or to the URL of the "
            "publisher's .sha256sum or redistrib JSON.",
        )
    name = file_name(str(given.get("url") or given.get("path") or ""))
    try:
        parse_checksum(str(given["checksum"]), name)
    except InputError as error:
        raise Refusal(error.cause, error.next_step or "give another checksum.") from error
    return given


def _check_source(inputs: DecisionInput, target: Target) -> None:
    installed, request = inputs.installed, inputs.request
    if installed is None or installed.source == target.source:
        return
    if installed.source is None:
        raise Refusal(
            f"{capitalize_first(installed.title)} is installed and does not meet the request, "
            "and nothing shows how to remove it.",
            "remove it the way it was installed, then run again; or ask for what it is (branch "
            f"{installed.branch}).",
        )
    if not request.replace_source:
        removal = (
            f"runs {inputs.node['driver']['uninstaller'] or 'its own uninstaller'} first"
            if installed.source == RUNFILE
            else "removes its packages in the same change"
        )
        raise Refusal(
            f"{capitalize_first(installed.title)} is installed and does not meet the request; "
            f"branch {target.branch} would come from {PLACES[str(target.source)]}.",
            f"nvidia_driver_replace_source: true, which {removal}; or remove it manually; or ask "
            f"for what it is (branch {installed.branch}).",
        )
    if installed.source == RUNFILE and not inputs.node["driver"]["uninstaller"]:
        raise Refusal(
            f"{capitalize_first(installed.title)} is installed, and its uninstaller is not.",
            "run the same .run file with --uninstall manually, then run again.",
        )

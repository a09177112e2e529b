# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Selects branch, source and kernel modules of a driver to be installed, with reasons. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._core.errors import Refusal
from ..._nvidia.driver_branches import OPEN_DEFAULT_FROM, RUNFILE_URL
from . import gpu_support as rules
from . import vgpu
from .decision import PLACES, DecisionInput
from .fabric import carries, component_packages, needs
from .packages import signed_modules
from .sources import (
    DISTRO,
    MULTIVERSE,
    NVIDIA,
    RUNFILE,
    component_disabled,
    describe_source,
    modules_of,
    offers,
    replacement,
    repository_entry,
    source_order,
)


@dataclass(frozen=True)
class Choice:
    """A branch and its source, with the reasons for them."""

    branch: str
    source: str
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]


def alternatives(inputs: DecisionInput) -> str:
    good = rules.serving(inputs.gpus, inputs.data, inputs.requested_kernel_module)
    if good:
        return f"ask for {_describe_branches(inputs, good)}, or for auto."
    good = rules.serving(inputs.gpus, inputs.data)
    if good:
        kinds = " or ".join(rules.kernel_modules(inputs.gpus, good[0], inputs.data))
        return f"ask for {kinds} kernel modules: they are in {_describe_branches(inputs, good)}."
    return "take the GPU out of this node."


def _offers(inputs: DecisionInput, source: str, branch: str, asked: str | None = None) -> bool:
    """Return whether a source has the branch with usable kernel modules.

    :param asked: the kind of kernel modules; empty is any, None is that of the request.
    """
    kind = inputs.requested_kernel_module if asked is None else asked
    kinds = (kind,) if kind else rules.kernel_modules(inputs.gpus, branch, inputs.data)
    return any(offers(inputs.system, source, branch, inputs.data, one) for one in kinds)


def _describe_branches(inputs: DecisionInput, good: Sequence[str]) -> str:
    """Return a text about the branches that can be requested on this node."""
    request, order = inputs.request, source_order(inputs.system)
    alive = [branch for branch in good if rules.supported(branch, inputs.data, request.today)]
    here = [
        branch for branch in good if any(_offers(inputs, source, branch, "") for source in order)
    ]
    both = [branch for branch in alive if branch in here]
    if both:
        return f"a branch that this node can have ({', '.join(both)})"
    if here:
        return f"a branch that this node can have ({', '.join(here)}, without support)"
    return f"a branch that serves its GPUs ({', '.join(alive or good)}), as a runfile"


def choose_branch(
    inputs: DecisionInput, asked: str | None, runfile: Mapping[str, Any] | None
) -> Choice:
    """Return the branch and the source to install from.

    :raises Refusal: no source has a branch that meets the request.
    """
    if inputs.request.source == RUNFILE and not runfile:
        raise Refusal(*_no_runfile(inputs, asked))
    order = _preferred_sources(inputs)
    if asked:
        return _requested_branch(inputs, asked, order)
    return _keep_branch(inputs, order) or _best_branch(inputs, order)


def _requested_branch(inputs: DecisionInput, asked: str, order: Sequence[str]) -> Choice:
    request, data = inputs.request, inputs.data
    source = next((one for one in order if _offers(inputs, one, asked)), None)
    if source is None:
        raise Refusal(
            f"Branch {asked} was requested, but {_describe_sources(inputs, order, asked)}.",
            _next_steps(inputs, asked, order),
        )
    why = f"Branch {asked} ({rules.describe(asked, data)}) was requested."
    if request.version:
        which = "was installed before the last change" if inputs.back else "was requested"
        why = f"Version {request.version} {which}; its branch is {asked}"
        why += f" ({rules.describe(asked, data)})."
    ending = vgpu.support_warning(inputs, asked)
    return Choice(
        asked, source, (why, _source_reason(inputs, source, asked)), (ending,) if ending else ()
    )


def _best_branch(inputs: DecisionInput, order: Sequence[str]) -> Choice:
    """Return the best branch that serves all GPUs, of those that the sources offer."""
    data, today = inputs.data, inputs.request.today
    served = rules.describe_gpus(inputs.gpus)
    good = rules.serving(inputs.gpus, data, inputs.requested_kernel_module)
    order = _sources_with_components(inputs, tuple(order), good)
    offered = [branch for branch in good if any(_offers(inputs, one, branch) for one in order)]
    unknown = [gpu for gpu in inputs.gpus if not gpu.known]
    chosen = max(offered, key=int, default=None) if unknown else rules.choose(offered, data, today)
    if chosen is None:
        if not good:
            raise Refusal(
                f"No branch has {inputs.requested_kernel_module or 'the'} kernel modules for "
                f"{served}.",
                alternatives(inputs),
            )
        best = rules.choose(good, data, today) or good[0]
        raise Refusal(
            f"{served} would be served by branch {best}, but "
            f"{_describe_sources(inputs, order, best)}.",
            _next_steps(inputs, best, order),
        )
    source = next(one for one in order if _offers(inputs, one, chosen))
    place = f"{PLACES[source]} for {inputs.system.name}"
    warning = vgpu.support_warning(inputs, chosen)
    warnings = [warning] if warning else []
    if unknown:
        reason = f"Branch {chosen} is the newest that may serve {served} and that {place} has."
        taken = (
            "a GPU newer than it, with the newest branch and open kernel modules"
            if unknown[0].generation == "unknown"
            else f"one of the generation {unknown[0].generation}, by its id"
        )
        warnings.append(
            f"{unknown[0].name} is not in this release's table: taken for {taken}. Next step: add "
            "its device id to nvidia_driver_gpus."
        )
    elif rules.supported(chosen, data, today):
        reason = (
            f"Branch {chosen} ({rules.describe(chosen, data)}) serves {served}; of the supported "
            f"ones that {place} has, long-term branches come before production ones."
        )
    else:
        reason = f"Branch {chosen} is the newest that serves {served} and that {place} has."
        newer = rules.choose(good, data, today)
        if newer and rules.supported(newer, data, today):
            warnings.append(
                f"The way over to branch {newer}, which is supported, is the runfile: "
                f"{_runfile_url(inputs, newer)} as nvidia_driver_runfile, with its checksum."
            )
    reasons = (reason, _source_reason(inputs, source, chosen))
    return Choice(chosen, source, reasons, tuple(warnings))


def _preferred_sources(inputs: DecisionInput) -> tuple[str, ...]:
    request, installed = inputs.request, inputs.installed
    if request.source != "auto":
        return (request.source,)
    order = source_order(inputs.system)
    if installed and installed.source in order and not request.replace_source:
        # The source is not changed if the installed driver's own has what is requested.
        return (installed.source, *(one for one in order if one != installed.source))
    wanted, newest = needs(inputs.node, request), inputs.data.newest_branch()
    return tuple(sorted(order, key=lambda one: not carries(wanted, inputs.system, one, newest)))


def _sources_with_components(
    inputs: DecisionInput, order: tuple[str, ...], good: Sequence[str]
) -> tuple[str, ...]:
    """Return the sources that have a driver and all components; all sources if none has."""
    installed = inputs.installed
    if installed and installed.source in order and not inputs.request.replace_source:
        return order
    wanted = needs(inputs.node, inputs.request)
    able = tuple(
        one
        for one in order
        for branches in [[it for it in good if _offers(inputs, one, it)]]
        if any(carries(wanted, inputs.system, one, branch) for branch in branches)
    )
    return able or order


def _keep_branch(inputs: DecisionInput, order: Sequence[str]) -> Choice | None:
    """Return the installed driver's branch if only other kernel modules are requested."""
    installed = inputs.installed
    if installed is None or not inputs.requested_kernel_module:
        return None
    if rules.problem(
        inputs.gpus, installed.branch, inputs.data, asked=inputs.requested_kernel_module
    ):
        return None
    source = next((one for one in order if _offers(inputs, one, installed.branch)), None)
    if source is None:
        return None
    warning = vgpu.support_warning(inputs, installed.branch)
    served = rules.describe_gpus(inputs.gpus)
    reason = f"Branch {installed.branch} is installed and serves {served}: it is kept."
    return Choice(
        installed.branch,
        source,
        (reason, _source_reason(inputs, source, installed.branch)),
        (warning,) if warning else (),
    )


def _source_reason(inputs: DecisionInput, source: str, branch: str) -> str:
    place = PLACES[source]
    if inputs.request.source == source:
        return f"Source: {place}, {'as it was then' if inputs.back else 'as requested'}."
    if inputs.installed and inputs.installed.source == source:
        return f"Source: {place}, from which the driver that is there came."
    if source == NVIDIA and inputs.system.id == "ubuntu":
        wanted = needs(inputs.node, inputs.request)
        missing = component_packages(
            wanted, inputs.system, DISTRO, inputs.data.newest_branch(), None
        ).missing
        if missing:
            return (
                f"Source: {place}, as the distribution's archive does not carry "
                f"{', '.join(missing)}, which this node needs ({wanted.why})."
            )
        if component_disabled(inputs.system, branch, inputs.data):
            return (
                f"Source: {place}, as the distribution's archive has it in the component "
                f"{MULTIVERSE}, which this node's apt does not enable."
            )
        instead = replacement(inputs.system, branch, inputs.data)
        if instead:
            return (
                f"Source: {place}, as the distribution's archive has no such branch: its packages "
                f"of {branch} are transitional and install {instead}."
            )
        return f"Source: {place}, as the distribution's archive has no such branch."
    if source == DISTRO and inputs.system.id == "debian":
        return f"Source: {place}, as NVIDIA's repository has no such branch for it."
    return f"Source: {place}."


def _describe_sources(inputs: DecisionInput, order: Sequence[str], branch: str) -> str:
    return ", and ".join(
        describe_source(inputs.system, source, inputs.data, branch) for source in order
    )


def _next_steps(inputs: DecisionInput, branch: str, order: Sequence[str]) -> str:
    ways = []
    others = [one for one in source_order(inputs.system) if one not in order]
    good = rules.serving(inputs.gpus, inputs.data, inputs.requested_kernel_module)
    nothing = not any(repository_entry(inputs.system, one, inputs.data) for one in order)
    if DISTRO in order and component_disabled(inputs.system, branch, inputs.data):
        file = inputs.node["os"]["archive"]["file"]
        ways.append(f"enable the component {MULTIVERSE} in {file}")
    for source in others:
        has = [one for one in good if _offers(inputs, source, one)]
        if _offers(inputs, source, branch):
            ways.append(f"nvidia_driver_source: {source} has it")
        elif nothing and has:
            ways.append(f"nvidia_driver_source: {source} has {', '.join(has)}")
    if any(_offers(inputs, one, it) for one in source_order(inputs.system) for it in good):
        ways.append(f"ask for {_describe_branches(inputs, good)}")
    ways.append(
        f"give the runfile ({_runfile_url(inputs, branch)}) as nvidia_driver_runfile, with its "
        "checksum"
    )
    if inputs.system.folder and not any(
        repository_entry(inputs.system, one, inputs.data) for one in (NVIDIA, DISTRO)
    ):
        ways.append(
            "or describe a repository that has packages for it in nvidia_driver_repositories: "
            f"{{{inputs.system.folder}: {{url: ..., folder: ..., key: ..., "
            "key_fingerprints: [...]}}"
        )
    return "; ".join(ways) + "."


def _runfile_url(inputs: DecisionInput, branch: str, version: str = "") -> str:
    newest = version or rules.newest_known(branch, inputs.data) or f"{branch}.<version>"
    return RUNFILE_URL.format(version=newest, arch=inputs.system.arch or "x86_64")


def _no_runfile(inputs: DecisionInput, asked: str | None) -> tuple[str, str]:
    good = rules.serving(inputs.gpus, inputs.data, inputs.requested_kernel_module)
    branch = (
        asked
        or rules.choose(good, inputs.data, inputs.request.today)
        or inputs.data.newest_branch()
    )
    return (
        "nvidia_driver_source is runfile, but nvidia_driver_runfile is not given.",
        f"give it, for example {{url: {_runfile_url(inputs, branch, inputs.request.version)}, "
        "checksum: sha256:...}.",
    )


def choose_kernel_module(inputs: DecisionInput, branch: str, source: str) -> tuple[str, str]:
    there = modules_of(inputs.system, source, branch, inputs.data)
    possible = [
        kind for kind in rules.kernel_modules(inputs.gpus, branch, inputs.data) if kind in there
    ]
    if inputs.requested_kernel_module:
        why = "as they were then" if inputs.back else "as requested"
        return (
            inputs.requested_kernel_module,
            f"Kernel modules: {inputs.requested_kernel_module}, {why}.",
        )
    installed = inputs.installed
    only = [gpu for gpu in inputs.gpus if len(gpu.kernel_modules(branch, inputs.data)) == 1]
    if len(possible) == 1 and not only:
        return possible[0], (
            f"Kernel modules: {possible[0]}, the only ones of branch {branch} that "
            f"{PLACES[source]} has."
        )
    if len(possible) == 1:
        first = only[0]
        return possible[0], (
            f"Kernel modules: {possible[0]}, the only ones of branch {branch} that "
            f"{first.name} ({first.generation}) works with."
        )
    if installed and installed.branch == branch and installed.kernel_module in possible:
        return str(
            installed.kernel_module
        ), f"Kernel modules: {installed.kernel_module}, as they are now."
    signed = signed_modules(inputs, source)
    kinds = [kind for kind in possible if signed and kind in signed["modules"]]
    if signed and kinds:
        return kinds[0], f"Kernel modules: {kinds[0]}, those that {signed['by']} has signed."
    chosen = rules.default_kernel_module(possible, branch)
    return chosen, (
        f"Kernel modules: {chosen}, NVIDIA's default "
        f"{'from' if chosen == 'open' else 'before'} branch {OPEN_DEFAULT_FROM}."
    )

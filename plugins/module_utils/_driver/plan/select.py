# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Branch, source and kernel modules of a driver that has to be installed, with reasons. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..._nvidia.driver_branches import OPEN_DEFAULT_FROM, RUNFILE_URL
from . import gpu_support as rules
from .decision import PLACES, Case, Refused
from .fabric import carries, members, needs
from .packages import signed_modules
from .sources import (
    DISTRO,
    MULTIVERSE,
    NVIDIA,
    RUNFILE,
    describe_row,
    modules_of,
    offers,
    replacement,
    row,
    sources,
    switched_off,
)


def alternatives(case: Case) -> str:
    good = rules.serving(case.gpus, case.data, case.asked_flavour)
    if good:
        return f"ask for {_fitting(case, good)}, or for auto."
    good = rules.serving(case.gpus, case.data)
    if good:
        kinds = " or ".join(rules.flavours(case.gpus, good[0], case.data))
        return f"ask for {kinds} kernel modules: they are in {_fitting(case, good)}."
    return "take the GPU out of this node."


def _has(case: Case, source: str, branch: str, asked: str | None = None) -> bool:
    """Return whether a source has the branch with kernel modules that can be taken.

    :param asked: the kind that is asked for, empty for any; None is what the user says.
    """
    kind = case.asked_flavour if asked is None else asked
    kinds = (kind,) if kind else rules.flavours(case.gpus, branch, case.data)
    return any(offers(case.system, source, branch, case.data, one) for one in kinds)


def _fitting(case: Case, good: Sequence[str]) -> str:
    """Return in words those of the branches that are worth asking for on this node."""
    wish, order = case.wish, sources(case.system)
    alive = [branch for branch in good if rules.supported(branch, case.data, wish.today)]
    here = [branch for branch in good if any(_has(case, source, branch, "") for source in order)]
    both = [branch for branch in alive if branch in here]
    if both:
        return f"a branch that this node can have ({', '.join(both)})"
    if here:
        return f"a branch that this node can have ({', '.join(here)}, without support)"
    return f"a branch that serves its GPUs ({', '.join(alive or good)}), as a runfile"


def choose_branch(
    case: Case, asked: str | None, runfile: Mapping[str, Any] | None
) -> tuple[str, str, tuple[str, ...], tuple[str, ...]]:
    """Return branch and source, with reasons and warnings."""
    wish, data, system = case.wish, case.data, case.system
    if wish.source == RUNFILE and not runfile:
        raise Refused(*_no_runfile(case, asked))
    order = _order(case)
    if asked:
        having = next((one for one in order if _has(case, one, asked)), None)
        if having is None:
            raise Refused(
                f"Branch {asked} was asked for, but {_rows(case, order, asked)}.",
                _ways(case, asked, order),
            )
        why = f"Branch {asked} ({rules.describe(asked, data)}) was asked for."
        if wish.version:
            which = "stood there before the last change" if case.back else "was asked for"
            why = f"Version {wish.version} {which}; its branch is {asked}"
            why += f" ({rules.describe(asked, data)})."
        ending = rules.support_warning(asked, data, wish.today)
        return asked, having, (why, _why_source(case, having, asked)), (ending,) if ending else ()
    stay = _stay(case, order)
    if stay:
        return stay
    good = rules.serving(case.gpus, data, case.asked_flavour)
    order = _able(case, order, good)
    offered = [branch for branch in good if any(_has(case, one, branch) for one in order)]
    unknown = [gpu for gpu in case.gpus if not gpu.known]
    chosen = (
        max(offered, key=int, default=None) if unknown else rules.choose(offered, data, wish.today)
    )
    if chosen is None:
        if not good:
            raise Refused(
                f"No branch has {case.asked_flavour or 'the'} kernel modules for "
                f"{rules.names(case.gpus)}.",
                alternatives(case),
            )
        best = rules.choose(good, data, wish.today) or good[0]
        raise Refused(
            f"{rules.names(case.gpus)} would be served by branch {best}, but "
            f"{_rows(case, order, best)}.",
            _ways(case, best, order),
        )
    source = next(one for one in order if _has(case, one, chosen))
    place = f"{PLACES[source]} for {system.words}"
    served = rules.names(case.gpus)
    warning = rules.support_warning(chosen, data, wish.today)
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
    elif rules.supported(chosen, data, wish.today):
        reason = (
            f"Branch {chosen} ({rules.describe(chosen, data)}) serves {served}; of the supported "
            f"ones that {place} has, long-term branches come before production ones."
        )
    else:
        reason = f"Branch {chosen} is the newest that serves {served} and that {place} has."
        way = rules.choose(good, data, wish.today)
        if way and rules.supported(way, data, wish.today):
            warnings.append(
                f"The way over to branch {way}, which is supported, is the runfile: "
                f"{_runfile_url(case, way)} as nvidia_driver_runfile, with its checksum."
            )
    return chosen, source, (reason, _why_source(case, source, chosen)), tuple(warnings)


def _order(case: Case) -> tuple[str, ...]:
    wish, present = case.wish, case.present
    if wish.source != "auto":
        return (wish.source,)
    order = sources(case.system)
    if present and present.source in order and not wish.replace_source:
        # A change of source is not made where the driver's own has what is wished.
        return (present.source, *(one for one in order if one != present.source))
    wanted, newest = needs(case.node, wish), case.data.newest_branch()
    return tuple(sorted(order, key=lambda one: not carries(wanted, case.system, one, newest)))


def _able(case: Case, order: tuple[str, ...], good: Sequence[str]) -> tuple[str, ...]:
    """Return the sources that have all that the node needs, where there is one with a driver."""
    present = case.present
    if present and present.source in order and not case.wish.replace_source:
        return order
    wanted = needs(case.node, case.wish)
    able = tuple(
        one
        for one in order
        for branches in [[it for it in good if _has(case, one, it)]]
        if any(carries(wanted, case.system, one, branch) for branch in branches)
    )
    return able or order


def _stay(
    case: Case, order: Sequence[str]
) -> tuple[str, str, tuple[str, ...], tuple[str, ...]] | None:
    """Return the branch of the driver that is there, where only other modules are wished."""
    present = case.present
    if present is None or not case.asked_flavour:
        return None
    if rules.problem(case.gpus, present.branch, case.data, asked=case.asked_flavour):
        return None
    source = next((one for one in order if _has(case, one, present.branch)), None)
    if source is None:
        return None
    warning = rules.support_warning(present.branch, case.data, case.wish.today)
    reason = f"Branch {present.branch} is there and serves {rules.names(case.gpus)}: it stays."
    return (
        present.branch,
        source,
        (reason, _why_source(case, source, present.branch)),
        (warning,) if warning else (),
    )


def _why_source(case: Case, source: str, branch: str) -> str:
    place = PLACES[source]
    if case.wish.source == source:
        return f"Source: {place}, {'as it was then' if case.back else 'as asked for'}."
    if case.present and case.present.source == source:
        return f"Source: {place}, from which the driver that is there came."
    if source == NVIDIA and case.system.id == "ubuntu":
        wanted = needs(case.node, case.wish)
        missing = members(wanted, case.system, DISTRO, case.data.newest_branch(), None).missing
        if missing:
            return (
                f"Source: {place}, as the distribution's archive does not carry "
                f"{', '.join(missing)}, which this node needs ({wanted.why})."
            )
        if switched_off(case.system, branch, case.data):
            return (
                f"Source: {place}, as the distribution's archive has it in the component "
                f"{MULTIVERSE}, which this node's apt does not enable."
            )
        instead = replacement(case.system, branch, case.data)
        if instead:
            return (
                f"Source: {place}, as the distribution's archive has no such branch: its packages "
                f"of {branch} are transitional and install {instead}."
            )
        return f"Source: {place}, as the distribution's archive has no such branch."
    if source == DISTRO and case.system.id == "debian":
        return f"Source: {place}, as NVIDIA's repository has no such branch for it."
    return f"Source: {place}."


def _rows(case: Case, order: Sequence[str], branch: str) -> str:
    return ", and ".join(describe_row(case.system, source, case.data, branch) for source in order)


def _ways(case: Case, branch: str, order: Sequence[str]) -> str:
    ways = []
    others = [one for one in sources(case.system) if one not in order]
    good = rules.serving(case.gpus, case.data, case.asked_flavour)
    nothing = not any(row(case.system, one, case.data) for one in order)
    if DISTRO in order and switched_off(case.system, branch, case.data):
        file = case.node["os"]["archive"]["file"]
        ways.append(f"enable the component {MULTIVERSE} in {file}")
    for source in others:
        has = [one for one in good if _has(case, source, one)]
        if _has(case, source, branch):
            ways.append(f"nvidia_driver_source: {source} has it")
        elif nothing and has:
            ways.append(f"nvidia_driver_source: {source} has {', '.join(has)}")
    if any(_has(case, one, it) for one in sources(case.system) for it in good):
        ways.append(f"ask for {_fitting(case, good)}")
    ways.append(
        f"give the runfile ({_runfile_url(case, branch)}) as nvidia_driver_runfile, with its "
        "checksum"
    )
    if case.system.folder and not any(row(case.system, one, case.data) for one in (NVIDIA, DISTRO)):
        ways.append(
            "or describe a repository that has packages for it in nvidia_driver_repositories: "
            f"{{{case.system.folder}: {{url: ..., folder: ..., key: ..., "
            "key_fingerprints: [...]}}"
        )
    return "; ".join(ways) + "."


def _runfile_url(case: Case, branch: str, version: str = "") -> str:
    newest = version or rules.newest_known(branch, case.data) or f"{branch}.<version>"
    return RUNFILE_URL.format(version=newest, arch=case.system.arch or "x86_64")


def _no_runfile(case: Case, asked: str | None) -> tuple[str, str]:
    good = rules.serving(case.gpus, case.data, case.asked_flavour)
    branch = asked or rules.choose(good, case.data, case.wish.today) or case.data.newest_branch()
    return (
        "nvidia_driver_source is runfile, but nvidia_driver_runfile is not given.",
        f"give it, for example {{url: {_runfile_url(case, branch, case.wish.version)}, checksum: "
        "sha256:...}.",
    )


def choose_flavour(case: Case, branch: str, source: str) -> tuple[str, str]:
    there = modules_of(case.system, source, branch, case.data)
    possible = [kind for kind in rules.flavours(case.gpus, branch, case.data) if kind in there]
    if case.asked_flavour:
        why = "as they were then" if case.back else "as asked for"
        return case.asked_flavour, f"Kernel modules: {case.asked_flavour}, {why}."
    present = case.present
    only = [gpu for gpu in case.gpus if len(gpu.flavours(branch, case.data)) == 1]
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
    if present and present.branch == branch and present.flavour in possible:
        return str(present.flavour), f"Kernel modules: {present.flavour}, as they are now."
    signed = signed_modules(case.node, case.system, source, case.wish, case.data)
    kinds = [kind for kind in possible if signed and kind in signed["modules"]]
    if signed and kinds:
        return kinds[0], f"Kernel modules: {kinds[0]}, those that {signed['by']} has signed."
    chosen = rules.default_flavour(possible, branch)
    return chosen, (
        f"Kernel modules: {chosen}, NVIDIA's default "
        f"{'from' if chosen == 'open' else 'before'} branch {OPEN_DEFAULT_FROM}."
    )

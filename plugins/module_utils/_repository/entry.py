# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a node's own entries give a repository, from the fact ``repositories``. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .._core.errors import Refusal
from .._core.redact import addresses
from .._core.steps import Step
from .addresses import same_repository

# Folders of NVIDIA's repositories: stable/deb and stable/rpm of the container toolkit, and those of
# the distributions, such as repos/rhel9/x86_64.
_KIND = re.compile(
    r"(?<![:/])/(?:(?P<kind>deb|rpm)"
    r"|(?P<system>(?:ubuntu|debian|rhel|fedora|sles|suse|opensuse|amzn|azl|kylin)\d+))(?=/|\Z)"
)
_DEB_SYSTEM = re.compile(r"ubuntu|debian")
# gpu_node_facts reports managed repository files by this prefix, whatever their address.
_MANAGED_PREFIX = "kubegpu-"


def plan_entry(
    entries: Sequence[Mapping[str, Any]],
    wanted: Mapping[str, Any],
    url: str,
    what: str,
) -> tuple[dict[str, Any] | None, Step | None]:
    """Return the arguments of ``package_repository`` and the step, or None if nothing is to do.

    :param entries: the fact ``repositories``.
    :param wanted: arguments, with ``key_fingerprints`` and ``replaces`` (more addresses of the
        same repository).
    :param url: its address, which may have a password. The result has it without.
    :param what: what the repository has, for the reason.
    """
    accepted = wanted["key_fingerprints"]
    found = [
        entry
        for entry in entries
        if entry["enabled"] and same_repository(entry["uri"], (url, *wanted["replaces"]))
    ]
    shown = addresses(url, True)
    arguments = {**wanted, "url": shown}
    if not found:
        return arguments, Step("repository", "add", shown, f"no configured repository has {what}")
    ours = same_repository(found[0]["uri"], (url,))
    if len(found) == 1 and ours and _trusted(found[0], accepted):
        return None, None
    files = ", ".join(sorted({str(entry["file"]) for entry in found}))
    if len(found) > 1:
        reason = (
            f"more than one entry gives it ({files}); package managers refuse that or mix them up"
        )
    elif ours:
        seen = ", ".join(_keys(found[0])) or "no key of its own"
        reason = f"{files} trusts {seen}, not {', '.join(accepted)}"
    else:
        reason = f"{files} gives {found[0]['uri']}"
    return arguments, Step("repository", "replace", shown, reason)


def name_refusal(managed: bool, name: str, variable: str) -> Refusal | None:
    """Return why a repository cannot have its name.

    :param managed: whether this collection writes its file.
    :param variable: the user's variable with the settings of the repository.
    """
    if not managed or name.startswith(_MANAGED_PREFIX):
        return None
    return Refusal(
        f"{variable}.name is {name!r}.",
        f"let it begin with {_MANAGED_PREFIX!r}, by which the facts know our own file.",
    )


def check_kind(url: str, manager: str | None, variable: str, ends: str = "") -> None:
    """Check that a mirror's address is not one of the other kind of packages.

    :param url: the address that the user gives; empty for none.
    :param manager: the node's package manager.
    :param variable: the user's variable with the settings of the repository.
    :param ends: the end of the right address; by default the last folder of the other kind.
    :raises Refusal: it is.
    """
    place = url.partition("?")[0].partition("#")[0]
    # The last folder that names a kind: a mirror can have /deb/ in front of everything.
    found = list(_KIND.finditer(place))
    if not found or not manager:
        return
    last = found[-1]
    is_deb = last["kind"] == "deb" or bool(_DEB_SYSTEM.match(last["system"] or ""))
    if is_deb == (manager == "apt"):
        return
    kind, other = ("deb", "rpm") if is_deb else ("rpm", "deb")
    right = (
        f"one that ends in {ends or 'the folder of their distribution'}"
        if ends or not last["kind"]
        else addresses(f"{place[: last.start('kind')]}{other}", True)
    )
    raise Refusal(
        f"{variable}.url is a repository of {kind} packages ({last.group().strip('/')}), and this "
        f"node installs packages with {manager}.",
        f"give hosts with {manager} another address, for example in group_vars: {right}.",
        addresses(url, True),
    )


def accepted_keys(given: Sequence[str], default: Sequence[str]) -> list[str]:
    """Return full fingerprints as the facts have them."""
    return [text.replace(" ", "").upper() for text in given or default]


def _keys(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the fingerprints of all keys that an entry trusts."""
    one = entry["key_fingerprint"]
    return tuple(entry.get("key_fingerprints") or ((one,) if one else ()))


def _trusted(entry: Mapping[str, Any], accepted: Sequence[str]) -> bool:
    keys = _keys(entry)
    return bool(keys) and set(keys) <= set(accepted)

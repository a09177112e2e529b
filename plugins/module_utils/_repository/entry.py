# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a node's own entries give a repository, from the fact ``repositories``. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._core.errors import Refusal
from .._core.redact import addresses
from .._core.steps import Step
from .addresses import same_repository

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

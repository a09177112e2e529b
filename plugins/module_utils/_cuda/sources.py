# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The repository that CUDA packages come from. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._core.redact import addresses
from .._core.steps import Step
from .._driver.plan.sources import DEBIAN_REPOSITORY, system_of
from .._nvidia.compatibility import required_by
from .._nvidia.cuda_releases import DISTRO_COMPONENTS, DISTRO_PACKAGE
from .._repository.addresses import below, same_repository
from .types import PACKAGE, CudaWish, Refusal, Tables, Wanted

# gpu_node_facts reports our repository files whatever their address is, by this prefix.
_OUR_PREFIX = "kubegpu-"
# Where a distribution's own keys lie on it.
_KEYRING = "/usr/share/keyrings/{}-archive-keyring.gpg"


def plan_repository(
    node: Mapping[str, Any],
    wish: CudaWish,
    wanted: Sequence[Wanted],
    packages: Mapping[str, str | None],
    tables: Tables,
) -> tuple[dict[str, Any] | None, Step | None, str]:
    if not wish.manage_repository or not packages:
        return None, None, ""
    if not wish.repository_name.startswith(_OUR_PREFIX):
        raise Refusal(
            f"repository_name is {wish.repository_name!r}. Next step: let it begin with "
            f"{_OUR_PREFIX!r}, by which the facts know our own file."
        )
    if DISTRO_PACKAGE in packages:
        return (*_archive(node, wish), "")
    return _nvidia(node, wish, wanted, tables)


def _nvidia(
    node: Mapping[str, Any], wish: CudaWish, wanted: Sequence[Wanted], tables: Tables
) -> tuple[dict[str, Any] | None, Step | None, str]:
    system = node["os"]
    name = system_of(node, tables.drivers).folder or ""
    row: Mapping[str, Any] = tables.drivers.repositories.get(name) or {}
    name = str(row.get("folder") or name)
    architecture = (row.get("architectures") or {}).get(system["arch"])
    original = f"{row['url']}/{name}/{architecture}" if architecture else ""
    if not original and not wish.repository_url:
        raise Refusal(
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
    reason = _why_changed(entries, url, accepted)
    if not reason:
        return None, None, note
    public = addresses(url, True)
    key_url = wish.repository_key_url or (below(url, str(row["key"])) if row.get("key") else "")
    if not accepted:
        raise Refusal(
            f"The key of {public} is not known by its whole fingerprint. Next step: compare it "
            "with what NVIDIA tells you by other means, and give all 40 digits as "
            "key_fingerprints; or set the repository up yourself (manage_repository: false)."
        )
    wished = {
        "name": wish.repository_name,
        "url": public,
        "suite": "/",
        "components": [],
        "key_url": addresses(key_url, True),
        "key_fingerprints": list(accepted),
        "keyring": None,
        "replaces": list(earlier),
    }
    return wished, Step("repository", "replace" if entries else "add", public, reason), note


def _why_changed(entries: Sequence[Mapping[str, Any]], url: str, accepted: Sequence[str]) -> str:
    """Return why the repository has to be written; an empty string where it is right.

    :param entries: the repositories of this address, and of the original where ``url`` mirrors it.
    :param accepted: the fingerprints of the keys that may sign it.
    """
    if len(entries) == 1 and same_repository(entries[0]["uri"], (url,)):
        keys = tuple(
            entries[0].get("key_fingerprints") or filter(None, [entries[0]["key_fingerprint"]])
        )
        if not accepted or (keys and set(keys) <= set(accepted)):
            return ""
        return f"{entries[0]['file']} trusts {', '.join(keys) or 'no key of its own'}"
    if entries:
        files = ", ".join(sorted({str(entry["file"]) for entry in entries}))
        return f"{files} has it at another address, or several times"
    return "no source of NVIDIA's CUDA packages is there"


def _too_old_for(
    row: Mapping[str, Any], name: str, wanted: Sequence[Wanted], tables: Tables
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

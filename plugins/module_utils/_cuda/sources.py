# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan the repository of the CUDA packages. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._core.errors import Refusal
from .._core.redact import addresses
from .._core.steps import Step
from .._distro.upstream import package_base, unknown_base
from .._driver.plan.sources import DEBIAN_REPOSITORY, system_of
from .._nvidia.compatibility import required_by
from .._nvidia.cuda_releases import DISTRO_COMPONENTS, DISTRO_PACKAGE
from .._repository.addresses import below, same_repository
from .._repository.entry import check_kind, name_refusal
from .types import PACKAGE, PlannedVersion, Request, Tables

# The keyring of a distribution.
_KEYRING = "/usr/share/keyrings/{}-archive-keyring.gpg"


def plan_repository(
    node: Mapping[str, Any],
    request: Request,
    planned: Sequence[PlannedVersion],
    packages: Mapping[str, str | None],
    tables: Tables,
    variable: str = "cuda_toolkit_repository",
) -> tuple[dict[str, Any] | None, Step | None, str]:
    """Return the repository to write, its step, and a warning; None and "" for nothing.

    :param variable: the user's variable with the settings of the repository.
    :raises Refusal: the repository or its key is unknown.
    """
    if not request.manage_repository or not packages:
        return None, None, ""
    refusal = name_refusal(True, request.repository_name, variable)
    if refusal:
        raise refusal
    if DISTRO_PACKAGE in packages:
        return (*_archive(node, request), "")
    return _nvidia(node, request, planned, tables, variable)


def _address(system: Mapping[str, Any], request: Request, variable: str, original: str) -> str:
    """Return the address of the mirror, or else NVIDIA's; a mirror of other packages is refused."""
    ends = "/".join(original.split("/")[-2:])
    check_kind(request.repository_url, system["package_manager"], variable, ends)
    return (request.repository_url or original).rstrip("/")


def _nvidia(
    node: Mapping[str, Any],
    request: Request,
    planned: Sequence[PlannedVersion],
    tables: Tables,
    variable: str,
) -> tuple[dict[str, Any] | None, Step | None, str]:
    system = node["os"]
    name = system_of(node, tables.drivers).folder or ""
    row: Mapping[str, Any] = tables.drivers.repositories.get(name) or {}
    name = str(row.get("folder") or name)
    architecture = (row.get("architectures") or {}).get(system["arch"])
    original = f"{row['url']}/{name}/{architecture}" if architecture else ""
    if not original and not request.repository_url:
        raise _not_known(system, planned, variable)
    url = _address(system, request, variable, original)
    for placeholder, text in (("{distribution}", name), ("{architecture}", architecture or "")):
        url = url.replace(placeholder, text)
    accepted = tuple(
        text.replace(" ", "").upper()
        for text in request.key_fingerprints or row.get("key_fingerprints") or ()
    )
    earlier = (original,) if original and original != url else ()
    warning = _coverage_warning(row, name, planned, tables) if not request.repository_url else ""
    if any(same_repository(address, (url,)) for address in request.planned_repositories):
        return None, None, warning
    entries = [
        entry
        for entry in node["repositories"]
        if entry["enabled"] and same_repository(entry["uri"], (url, *earlier))
    ]
    reason = _why_changed(entries, url, accepted)
    if not reason:
        return None, None, warning
    public = addresses(url, True)
    key_url = request.repository_key_url or (below(url, str(row["key"])) if row.get("key") else "")
    if not accepted:
        raise Refusal(
            f"The key of {public} is not known by its whole fingerprint.",
            "compare it "
            "with what NVIDIA publishes by other means, and give all 40 digits as "
            f"{variable}.key_fingerprints; or set the repository up yourself "
            f"({variable}.manage: false).",
        )
    repository = {
        "name": request.repository_name,
        "url": public,
        "suite": "/",
        "components": [],
        "key_url": addresses(key_url, True),
        "key_fingerprints": list(accepted),
        "keyring": None,
        "replaces": list(earlier),
    }
    return repository, Step("repository", "replace" if entries else "add", public, reason), warning


def _not_known(
    system: Mapping[str, Any], planned: Sequence[PlannedVersion], variable: str
) -> Refusal:
    """Return why no repository is known for a system."""
    mirror = (
        f"{'a runfile, or ' if planned else ''}a mirror by url, key_url and key_fingerprints of "
        f"{variable}"
    )
    return unknown_base(system, mirror) or Refusal(
        f"NVIDIA's repository for {system['id']} {system['version']} on {system['arch']} is not "
        "known.",
        f"give {mirror}.",
    )


def _why_changed(entries: Sequence[Mapping[str, Any]], url: str, accepted: Sequence[str]) -> str:
    """Return why the repository has to be written, or "" if it is up to date.

    :param entries: the enabled repositories with this address or the original of a mirror.
    :param accepted: the fingerprints of the keys that may sign it.
    """
    if len(entries) == 1 and same_repository(entries[0]["uri"], (url,)):
        keys = tuple(
            entries[0].get("key_fingerprints") or filter(None, [entries[0]["key_fingerprint"]])
        )
        if not accepted or (keys and set(keys) <= set(accepted)):
            return ""
        return f"{entries[0]['file']} trusts {', '.join(keys) or 'no key'}"
    if entries:
        files = ", ".join(sorted({str(entry["file"]) for entry in entries}))
        return f"{files} has it with another address, or more than once"
    return "NVIDIA's CUDA repository is not configured"


def _coverage_warning(
    row: Mapping[str, Any], name: str, planned: Sequence[PlannedVersion], tables: Tables
) -> str:
    """Return a warning if the repository is newer than a version that it has to provide."""
    first = row.get("first")
    missing = [
        one.version
        for one in planned
        if first
        and one.source == PACKAGE
        and one.action != "none"
        and int(required_by(one.release, tables.cuda)["branch"]) < int(first)
    ]
    if not missing:
        return ""
    return (
        f"NVIDIA's repository {name} begins with driver branch {first}, so it probably lacks CUDA "
        f"{', '.join(missing)}. Next step, if so: give a runfile."
    )


def _archive(
    node: Mapping[str, Any], request: Request
) -> tuple[dict[str, Any] | None, Step | None]:
    """Return the distribution's archive with the components that contain CUDA."""
    system, archive = node["os"], node["os"].get("archive")
    base = package_base(system)
    needed = DISTRO_COMPONENTS.get(base["id"], ())
    if archive is None or not set(needed) - set(archive["components"]):
        return None, None
    # Our file, or the driver's for the same components.
    files = tuple(f"/{name}.sources" for name in (request.repository_name, DEBIAN_REPOSITORY))
    if any(
        entry["enabled"] and str(entry["file"]).endswith(files) for entry in node["repositories"]
    ) or any(
        same_repository(address, (archive["uri"],)) for address in request.planned_repositories
    ):
        return None, None
    absent = [name for name in needed if name not in archive["components"]]
    repository = {
        "name": request.repository_name,
        "url": archive["uri"],
        "suite": base.get("codename") or archive["suites"][0],
        "components": absent,
        "key_url": "",
        "key_fingerprints": [],
        "keyring": archive["signed_by"] or _KEYRING.format(base["id"]),
        "replaces": [],
    }
    detail = f"{archive['uri']} {' '.join(absent)}"
    reason = f"{DISTRO_PACKAGE} is in a component that {archive['file']} does not have"
    return repository, Step("repository", "add", detail, reason)

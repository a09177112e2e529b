# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The sources of a driver: what each offers for a system, and its repository. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..._core.redact import addresses
from ..._distro.data import folder_of, own_folder
from ..._distro.upstream import package_base
from ..._nvidia.driver_branches import OPEN, PROPRIETARY, DriverData
from ..._repository.addresses import below, same_repository
from ..types import Request

DISTRO = "distro"
NVIDIA = "nvidia"
RUNFILE = "runfile"
# The component of Ubuntu's archive that has the newer branches.
MULTIVERSE = "multiverse"

DEBIAN_REPOSITORY = "kubegpu-debian-non-free"
DEBIAN_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


@dataclass(frozen=True)
class System:
    """The operating system; of a derived one, the release that its packages are of.

    ``folder``: its key in the data on repositories. ``components``: the components that apt enables
    for the distribution's archive; None where apt has no entry for it. ``title``: the name of a
    derived system, for messages.
    """

    id: str
    version: str
    family: str
    manager: str
    arch: str
    folder: str | None
    components: tuple[str, ...] | None = None
    title: str = ""

    @property
    def name(self) -> str:
        return self.title or f"{self.id} {self.version}".strip()


def system_of(node: Mapping[str, Any], data: DriverData) -> System:
    facts = node["os"]
    identity, version = facts["id"] or "", facts["version"] or ""
    # An entry of the user comes before the built-in one for the system.
    own = own_folder(identity, version)
    base = package_base(facts)
    known = folder_of(base["id"] or "", base["version"] or "")
    archive = facts.get("archive")
    return System(
        base["id"] or "",
        base["version"] or "",
        facts["family"] or "",
        facts["package_manager"] or "",
        facts["arch"] or "",
        own if known is None or own in data.repositories else known,
        tuple(archive["components"]) if archive else None,
        "" if base is facts else f"{identity} {version}".strip(),
    )


def repository_entry(system: System, source: str, data: DriverData) -> Mapping[str, Any] | None:
    """Return the data on the source's repository for this system; None without one."""
    if system.folder is None or source == RUNFILE:
        return None
    name = system.folder if source == NVIDIA else f"{system.folder}-archive"
    found = data.repositories.get(name)
    if found is None or system.arch not in (found["architectures"] or {}):
        return None
    return found


def offers(system: System, source: str, branch: str, data: DriverData, kind: str = "") -> bool:
    """Return whether the source has the branch for this system, according to the data.

    :param kind: open or proprietary kernel modules; empty is either.
    """
    if source == RUNFILE:
        return True
    found = repository_entry(system, source, data)
    if found is None or (kind and kind not in modules_of(system, source, branch, data)):
        return False
    if found["branches"] is not None:
        return branch in found["branches"] and not component_disabled(system, branch, data)
    number = int(branch)
    return (found["first"] is None or number >= int(found["first"])) and (
        found["last"] is None or number <= int(found["last"])
    )


def modules_of(system: System, source: str, branch: str, data: DriverData) -> tuple[str, ...]:
    """Return the kinds of kernel modules that the source has of a branch."""
    found = repository_entry(system, source, data) or {}
    return tuple((found.get("modules") or {}).get(branch, (OPEN, PROPRIETARY)))


def replacement(system: System, branch: str, data: DriverData) -> str | None:
    """Return the branch that the distribution's transitional packages install instead."""
    found = repository_entry(system, DISTRO, data) or {}
    renamed: Mapping[str, str] = found.get("transitional") or {}
    return renamed.get(branch)


def component_disabled(system: System, branch: str, data: DriverData) -> bool:
    """Return whether the branch is in a component of the archive that the node does not enable."""
    found = repository_entry(system, DISTRO, data) or {}
    return (
        branch in (found.get("multiverse") or ())
        and system.components is not None
        and MULTIVERSE not in system.components
    )


def source_order(system: System) -> tuple[str, ...]:
    """Return the sources in the order in which ``auto`` tries them."""
    return (DISTRO, NVIDIA) if system.id == "ubuntu" else (NVIDIA, DISTRO)


def describe_source(system: System, source: str, data: DriverData, branch: str = "") -> str:
    """Return a text about the branches that a source has for the system.

    :param branch: the branch in question, about which details are added.
    """
    found = repository_entry(system, source, data)
    place = "NVIDIA's repository" if source == NVIDIA else "the distribution's own archive"
    if found is None:
        what = f"{system.name or 'this system'} on {system.arch or 'this architecture'}"
        return f"{place} has nothing for {what}"
    if found["branches"] is not None:
        has = f"{place} for {system.name} has {', '.join(found['branches']) or 'none'}"
        return has + (_more(system, data, branch) if source == DISTRO else "")
    last = f" to {found['last']}" if found["last"] else ""
    return f"{place} for {system.name} has branches from {found['first'] or 'the first'}{last}"


def _more(system: System, data: DriverData, branch: str) -> str:
    """Return why the node cannot get a branch from its archive."""
    instead = replacement(system, branch, data)
    if instead:
        return f" (its packages of {branch} are transitional and install {instead})"
    if component_disabled(system, branch, data):
        return f" ({branch} in the component {MULTIVERSE}, which this node's apt does not enable)"
    kinds = modules_of(system, DISTRO, branch, data)
    return f" ({branch} with {kinds[0]} kernel modules only)" if len(kinds) == 1 else ""


def repository(
    node: Mapping[str, Any],
    system: System,
    source: str,
    request: Request,
    data: DriverData,
) -> tuple[dict[str, Any] | None, tuple[str, str, str] | None]:
    """Return the repository to set up and (action, detail, reason); (None, None) if none is."""
    found = repository_entry(system, source, data)
    if not request.manage_repository or found is None:
        return None, None
    if source == DISTRO:
        return _debian_repository(node, system, found) if system.id == "debian" else (None, None)
    distribution = str(found.get("folder") or system.folder)
    official = f"{found['url']}/{distribution}/{found['architectures'][system.arch]}"
    url = request.repository_url or official
    for name, value in (
        ("{distribution}", distribution),
        ("{architecture}", found["architectures"][system.arch]),
    ):
        url = url.replace(name, value)
    url = url.rstrip("/")
    accepted = [
        text.replace(" ", "").replace(":", "").upper()
        for text in request.key_fingerprints or found["key_fingerprints"]
    ]
    wanted = {
        "name": request.repository_name,
        # A password is never part of a plan; the role has the address itself.
        "url": addresses(url, True),
        "suite": "/",
        "components": [],
        "key_url": addresses(request.repository_key_url or below(url, str(found["key"])), True),
        "key_fingerprints": accepted,
        "keyring": None,
        "replaces": [official] if url != official else [],
    }
    return _compare(node, wanted, (url, official), accepted)


def comes_after_ours(path: str) -> bool:
    """Return whether apt reads the file after our entry for Debian's archive."""
    folder, _slash, name = path.rpartition("/")
    return folder.endswith(".d") and name > f"{DEBIAN_REPOSITORY}.sources"


def _compare(
    node: Mapping[str, Any],
    wanted: dict[str, Any],
    addresses: tuple[str, ...],
    accepted: list[str],
) -> tuple[dict[str, Any] | None, tuple[str, str, str] | None]:
    shown = wanted["url"]
    entries = [
        entry
        for entry in node["repositories"]
        if entry["enabled"] and same_repository(entry["uri"], addresses)
    ]
    if not entries:
        return wanted, ("add", shown, "no configured repository has the driver")
    files = ", ".join(sorted({str(entry["file"]) for entry in entries}))
    if len(entries) > 1:
        return wanted, ("replace", shown, f"more than one entry gives it ({files})")
    entry = entries[0]
    one = entry["key_fingerprint"]
    keys = set(entry.get("key_fingerprints") or ([one] if one else []))
    if not same_repository(entry["uri"], (wanted["url"],)):
        return wanted, ("replace", shown, f"{files} gives {entry['uri']}")
    # Without a known key the repository is the user's own, and any key is accepted.
    if accepted and (not keys or not keys <= set(accepted)):
        seen = ", ".join(sorted(keys)) or "no key of its own"
        return wanted, ("replace", shown, f"{files} trusts {seen}, not {', '.join(accepted)}")
    return None, None


def _debian_repository(
    node: Mapping[str, Any], system: System, found: Mapping[str, Any]
) -> tuple[dict[str, Any] | None, tuple[str, str, str] | None]:
    archive = node["os"].get("archive")
    if not archive:
        return None, None
    missing = [one for one in found["components"] or () if one not in archive["components"]]
    ours = any(
        entry["enabled"] and str(entry["file"]).endswith(f"/{DEBIAN_REPOSITORY}.sources")
        for entry in node["repositories"]
    )
    if not missing or ours or "***" in archive["uri"]:
        return None, None
    wanted = {
        "name": DEBIAN_REPOSITORY,
        "url": archive["uri"],
        "suite": package_base(node["os"]).get("codename") or archive["suites"][0],
        "components": missing,
        "key_url": None,
        "key_fingerprints": [],
        "keyring": archive["signed_by"] or DEBIAN_KEYRING,
        "replaces": [],
    }
    reason = (
        f"{archive['file']} does not enable {' '.join(missing)}, where Debian has the driver "
        "(newer builds can be in its security archive, which is left as it is)"
    )
    return wanted, ("add", f"{archive['uri']} {' '.join(missing)}", reason)

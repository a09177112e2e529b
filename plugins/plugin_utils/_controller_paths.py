# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The paths of the controller in variables: read and checked before any node is read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import (
    InputError,
    KubegpuError,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._formats.openpgp import (
    MAX_SIZE,
    read_keys,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.vgpu_licence import (
    token_fault,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.checksum import (
    MOST_TEXT,
    checksum_from_text,
    file_name,
    parse_checksum,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._repository.plan import (
    check_fingerprints,
)

from ._files import FORMS, check_file, check_report
from ._paths import Search, file_digest, find_file
from ._variables import Wrong
from ._variables_data import ROLES

# Files and folders that playbooks write: form, and the variable of the playbooks that is the
# default of a role's own.
OUTPUTS: Mapping[str, tuple[str, str]] = {
    "kubegpu_plan_file": ("rows", ""),
    "gpu_verify_file": ("rows", "kubegpu_verify_file"),
    "gpu_report_dir": ("report", "kubegpu_report_dir"),
    "gpu_upgrade_file": ("upgrade", ""),
    "gpu_acceptance_file": ("acceptance", ""),
    "gpu_diagnose_file": ("diagnosis", ""),
    "gpu_diagnose_bundle_file": ("bundle", ""),
}
# Roles whose repository can have the file of a key.
_REPOSITORIES = (
    "nvidia_driver", "cuda_toolkit", "nvidia_container_toolkit", "amd_driver",
    "amd_container_toolkit", "gpu_monitoring",
)  # fmt: skip
_KEY_FILE = ".key_file"
# How a file begins that ansible-vault encrypted.
_VAULT = b"$ANSIBLE_VAULT"
# Their default.
_ENABLED = {"amd_driver": False, "amd_container_toolkit": False, "gpu_monitoring": False}


@dataclass(frozen=True)
class HostValues:
    """What is set for a host, without those whose facts are refused.

    :param names: of all variables that are set.
    :param values: of those that are known already.
    :param inventory_dir: the folder of the host's inventory.
    """

    names: Iterable[str]
    values: Mapping[str, Any]
    inventory_dir: object = None


def find_outputs(hosts: Iterable[HostValues], writes: Mapping[str, str]) -> dict[str, str]:
    """Return the absolute path of each file and folder that is written; empty means none.

    The first host that sets it decides. A path that depends on a variable which is defined later
    is left out.

    :param writes: the variables of this playbook, with their defaults.
    """
    known = list(hosts)
    found: dict[str, str] = {}
    for name in OUTPUTS:
        given = _given(name, known)
        path = writes.get(name) if given is None else given[1].values.get(given[0])
        if isinstance(path, str):
            found[name] = _absolute(path)
    return found


def _given(name: str, hosts: Iterable[HostValues]) -> tuple[str, HostValues] | None:
    """Return the variable that gives a path, and the first host that sets it."""
    known = list(hosts)
    names = (name, OUTPUTS[name][1])
    return next(((one, host) for one in names for host in known if one in set(host.names)), None)


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expandvars(os.path.expanduser(path))) if path else ""


def check_outputs(
    outputs: Mapping[str, str], writes: Mapping[str, str], hosts: Iterable[HostValues] = ()
) -> list[str]:
    """Return why paths cannot be written, by the variable that is set. Nothing is changed."""
    known, texts = list(hosts), []
    for name in writes:
        path, form = outputs.get(name), OUTPUTS[name][0]
        if not path:
            continue
        given = _given(name, known)
        variable = given[0] if given else name
        try:
            if form == "report":
                check_report(path, variable)
            else:
                check_file(path, FORMS[form], variable)
        except InputError as error:
            texts.append(str(error))
    return texts


def wrong_hooks(hosts: Iterable[HostValues], search: Search) -> list[str]:
    """Return which files of hooks of an upgrade are not there, each once."""
    texts: dict[str, None] = {}
    for host in hosts:
        hooks = host.values.get("gpu_upgrade_hooks")
        release = boolean(host.values.get("gpu_upgrade_release", False), strict=False)
        for hook, path in hooks.items() if isinstance(hooks, Mapping) and not release else ():
            if path:
                name = f"gpu_upgrade_hooks.{hook}"
                texts.update(
                    {str(error): None for error in _missing(name, str(path), host, search)}
                )
    return list(texts)


def _missing(option: str, path: str, host: HostValues, search: Search) -> list[InputError]:
    try:
        find_file(option, path, {"inventory_dir": host.inventory_dir}, search)
    except InputError as error:
        return [error]
    return []


def _content(option: str, path: str, host: HostValues, search: Search) -> bytes | None:
    """Return the bytes of a token or a key; None where they cannot be judged here.

    A file that is missing is named elsewhere; one that cannot be read, where it is used. One that
    ansible-vault encrypted is decrypted there, too.
    """
    try:
        found = find_file(option, path, {"inventory_dir": host.inventory_dir}, search)
        with open(found, "rb") as handle:
            data = handle.read(MAX_SIZE + 1)
    except (InputError, OSError):
        return None
    return None if data.startswith(_VAULT) else data


def _unusable(option: str, path: str, host: HostValues, search: Search) -> list[InputError]:
    """Return what is wrong with the content of a token or a key; its text is never shown."""
    data = _content(option, path, host, search)
    if data is None:
        return []
    if not option.endswith(_KEY_FILE):
        step = "Download the client configuration token again, and put it there."
        return [] if data.strip() else [InputError(f"{option}: {path} is empty.", next_step=step)]
    try:
        read_keys(data)
    except KubegpuError as error:
        return [
            InputError(
                f"{option}: {path} holds no public key that can be used. {error.cause}",
                next_step=error.next_step
                or "Put the repository's public key there, ASCII-armored or binary.",
            )
        ]
    return []


def doubtful_inputs(hosts: Iterable[HostValues], search: Search) -> list[str]:
    """Return warnings about files that the hosts' variables name, each once."""
    texts: dict[str, None] = {}
    for host in hosts:
        for _role, option, path in _inputs(host.values):
            data = None if option.endswith(_KEY_FILE) else _content(option, path, host, search)
            text = token_fault(f"{option}: {path}", data) if data and data.strip() else ""
            texts.update({text: None} if text else {})
    return list(texts)


def foreign_keys(
    plans: Mapping[str, Mapping[str, Any]], host: HostValues, search: Search
) -> dict[str, InputError]:
    """Return the parts whose plan adds a repository with a key that is not the expected one.

    Which one is expected depends on the node's distribution, so that this is known with its plan.

    :param plans: by the name of the role.
    """
    found: dict[str, InputError] = {}
    for part, plan in plans.items():
        settings, repository = host.values.get(f"{part}_repository"), plan.get("repository") or {}
        path = settings.get("key_file") if isinstance(settings, Mapping) else None
        if not path or repository.get("keyring") or not repository.get("key_fingerprints"):
            continue
        option = f"{part}_repository{_KEY_FILE}"
        data = _content(option, str(path), host, search)
        try:
            if data is not None:
                cause = f"{option}: {path} is not the key of the repository that is expected."
                check_fingerprints(read_keys(data), repository["key_fingerprints"], cause)
        except InputError as error:
            found[part] = error
    return found


def wrong_inputs(host: HostValues, search: Search) -> list[Wrong]:
    """Return the files of the controller that the host's variables name and that cannot be used.

    :param search: Ansible's own search for files.
    """
    found = []
    for role, option, path in _inputs(host.values):
        part, cluster = ROLES[role]
        for error in _missing(option, path, host, search):
            found.append(Wrong(option, part, error, cluster, "names no file"))
        for error in _unusable(option, path, host, search):
            found.append(Wrong(option, part, error, cluster, "names a wrong file"))
    return found


def _inputs(values: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Return role, option and path of each file that a role would read."""
    for role in _REPOSITORIES:
        repository = values.get(f"{role}_repository")
        if _uses(role, values) and isinstance(repository, Mapping):
            path = repository.get("key_file")
            if path and boolean(repository.get("manage", True), strict=False):
                yield role, f"{role}_repository.key_file", str(path)
    if _uses("nvidia_driver", values):
        licence = values.get("nvidia_driver_licence")
        if isinstance(licence, Mapping) and licence.get("token_path"):
            yield "nvidia_driver", "nvidia_driver_licence.token_path", str(licence["token_path"])


def wrong_runfiles(
    plans: Mapping[str, Mapping[str, Any]],
    host: HostValues,
    search: Search,
    digests: dict[str, str],
) -> dict[str, InputError]:
    """Return the parts whose plan runs a file that the controller does not have, or another one.

    A node that has the version needs no file, so that this is known with its plan only.

    :param plans: by the name of the role.
    :param digests: those of the files that were read for another host; they are added.
    """
    found: dict[str, InputError] = {}
    for part, option, path, checksum in _planned_runfiles(plans):
        try:
            place = find_file(f"{option}.path", path, {"inventory_dir": host.inventory_dir}, search)
            _compare(f"{option}.checksum", place, checksum, host, digests)
        except InputError as error:
            found.setdefault(part, error)
    return found


def _planned_runfiles(
    plans: Mapping[str, Mapping[str, Any]],
) -> Iterator[tuple[str, str, str, str]]:
    """Return part, option, path and checksum of each file of the controller that a plan runs."""
    driver = plans.get("nvidia_driver", {}).get("runfile") or {}
    if driver.get("path") and not driver.get("remote"):
        given = str(driver.get("checksum") or "")
        yield "nvidia_driver", "nvidia_driver_runfile", str(driver["path"]), given
    for one in plans.get("cuda_toolkit", {}).get("runfiles") or ():
        if one["file"] and not one["remote"]:
            option = f"cuda_toolkit_runfiles[{one['version']!r}]"
            yield "cuda_toolkit", option, str(one["file"]), str(one.get("checksum") or "")


def _compare(
    option: str, place: str, given: str, host: HostValues, digests: dict[str, str]
) -> None:
    """Compare a runfile with its checksum, unless only the node can read that.

    :raises InputError: they differ, or the checksum's file is not there or has none of it.
    """
    name = file_name(place)
    checksum = parse_checksum(given, name)
    if checksum.is_url:
        return
    wanted = checksum.sha256
    try:
        if wanted is None:
            source = str(checksum.source)
            known = find_file(option, source, {"inventory_dir": host.inventory_dir})
            with open(known, encoding="utf-8", errors="replace") as text:
                wanted = checksum_from_text(text.read(MOST_TEXT), name, source)
        if place not in digests:
            digests[place] = file_digest(place)
    except OSError as error:
        raise InputError(
            f"{option.rpartition('.')[0]}: {error.filename or place} cannot be read.",
            evidence=str(error),
            next_step="Make it readable for the user of ansible-playbook.",
        ) from error
    if digests[place] != wanted:
        raise InputError(
            f"{option}: {place} has another SHA-256.",
            evidence=f"the file has {digests[place]}, the checksum is {wanted}",
            next_step="Compare the checksum with the publisher's, or copy the file again.",
        )


def _uses(role: str, values: Mapping[str, Any]) -> bool:
    enabled = values.get(f"{role}_enabled", _ENABLED.get(role, True))
    return boolean(enabled, strict=False) and values.get(f"{role}_state", "present") != "absent"

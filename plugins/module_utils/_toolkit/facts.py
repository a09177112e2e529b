# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The container toolkit of a node, and the package repositories of the GPU vendors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._core.errors import InputError
from .._core.redact import addresses
from .._formats.toml_read import read_toml
from .._nvidia.package_names import OBSOLETE_TOOLKIT_PACKAGES, TOOLKIT_PACKAGES
from .._nvidia.toolkit_paths import OPERATOR_CONFIG
from .._packages import installed as _packages
from .._packages.installed import Package
from .._repository.apt_parser import parse as parse_apt

if TYPE_CHECKING:
    from .._host.reader import NodeReader

_CONFIG = "/etc/nvidia-container-runtime/config.toml"
_ROOT = "nvidia-container-cli.root"
# In the order of precedence: the later folder of the specification wins.
_CDI_FOLDERS = ("/run/cdi", "/var/run/cdi", "/etc/cdi")
_CDI_NAMES = ("nvidia.yaml", "nvidia.yml", "nvidia.json")
# Engines read these in both folders (pkg/cdi/spec-dirs.go); a DRA driver writes one for each claim.
_CDI_SUFFIXES = (".yaml", ".json")
_MOST_SPECIFICATIONS = 64
_MOST_BYTES = 4 * 1024 * 1024
_MOST_OF_ALL = 16 * 1024 * 1024
_CDI_VERSION = re.compile(
    r"(?:^|[{,\s])\"?cdiVersion\"?[ \t]*:[ \t]*[\"']?v?(\d{1,3}\.\d{1,3}\.\d{1,3})(?!\d)", re.ASCII
)
# In YAML it is often the last key.
_CDI_KIND = re.compile(
    r"(?:^kind|\"kind\")[ \t]*:[ \t]*[\"']?([\w.-]{1,200}/[\w.-]{1,100})", re.MULTILINE | re.ASCII
)
_CDI_DRIVER = re.compile(r"lib(?:cuda|nvidia-ml)\.so\.(\d{3,}\.\d+(?:\.\d+)?)")

_VENDOR_URI = re.compile(
    r"nvidia|compute/cuda/repos|repo\.radeon\.com|rocm|amdgpu|repositories\.intel\.com/(?:gpu|graph)",
    re.IGNORECASE,
)
# Managed files may name a mirror, whose address does not show what it has.
_MANAGED_FILE = re.compile(r"^kubegpu-.*\.(?:list|sources|repo)$")
_APT_FOLDER = "/etc/apt/sources.list.d"
_REPO_FOLDERS = ("/etc/yum.repos.d", "/etc/zypp/repos.d")
_FINGERPRINT = re.compile(r"[0-9A-F]{40}(?:[0-9A-F]{24})?!?")
_OFF = ("0", "no", "false", "off")


def read_toolkit(reader: NodeReader, packages: Sequence[Package]) -> dict[str, Any]:
    """Return the fact ``container_toolkit``."""
    ours = _packages.select(packages, TOOLKIT_PACKAGES)
    versions = _packages.versions(ours)
    config = read_config(reader.read_text(_CONFIG))
    return {
        "version": versions.get("nvidia-container-toolkit")
        or versions.get("nvidia-container-toolkit-base"),
        "packages": versions,
        "held": _packages.held(ours),
        "cdi_spec": _cdi_spec(reader),
        "config": config,
        "driver_roots": _driver_roots(
            {_CONFIG: config, OPERATOR_CONFIG: read_config(reader.read_text(OPERATOR_CONFIG))}
        ),
        "obsolete_packages": _packages.versions(
            _packages.select(packages, OBSOLETE_TOOLKIT_PACKAGES)
        ),
    }


def _cdi_spec(reader: NodeReader) -> dict[str, Any] | None:
    for folder in _CDI_FOLDERS:
        for name in _CDI_NAMES:
            text = reader.read_text(f"{folder}/{name}")
            if text is not None:
                match = _CDI_DRIVER.search(text)
                # The path that other tools use for it.
                path = f"/var{folder}" if folder == "/run/cdi" else folder
                return {
                    "path": f"{path}/{name}",
                    "driver_version": match.group(1) if match else None,
                }
    return None


def read_specifications(reader: NodeReader) -> list[dict[str, Any]]:
    """Return the fact ``cdi_specifications``: file, kind and version of the CDI specifications.

    Of what is not a specification kind and version are None.
    """
    first, second, third = _CDI_FOLDERS
    found: list[dict[str, Any]] = []
    left = _MOST_OF_ALL
    for folder in (first if reader.is_dir(first) else second, third):
        names = [name for name in reader.list_dir(folder) if name.endswith(_CDI_SUFFIXES)]
        # Those of the toolkit before those of claims.
        for name in sorted(names, key=lambda one: (one not in _CDI_NAMES, one)):
            if len(found) >= _MOST_SPECIFICATIONS or left <= 0:
                return found
            text = reader.read_text(f"{folder}/{name}", min(_MOST_BYTES, left)) or ""
            left -= len(text)
            kind, version = _CDI_KIND.search(text), _CDI_VERSION.search(text)
            found.append(
                {
                    "path": f"{second if folder == first else folder}/{name}",
                    "kind": kind[1] if kind else None,
                    "version": version[1] if version else None,
                }
            )
    return found


def _driver_roots(configs: Mapping[str, Mapping[str, Any] | None]) -> dict[str, str]:
    """Return the folder in which a toolkit searches for the driver, by its configuration file."""
    roots = {
        path: config.get(_ROOT) or "/" for path, config in configs.items() if config is not None
    }
    return {path: root for path, root in roots.items() if isinstance(root, str)}


def read_config(text: str | None) -> dict[str, Any] | None:
    """Return the settings of the toolkit's ``config.toml`` by ``section.key``; None: no file."""
    if text is None:
        return None
    try:
        return dict(_flat(read_toml(text), ""))
    except ValueError:
        return None


def _flat(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def read_repositories(reader: NodeReader) -> list[dict[str, Any]]:
    """Return the entries of the repositories of NVIDIA, AMD and Intel, one for each address."""
    found: list[dict[str, Any]] = []
    for path in ("/etc/apt/sources.list", *_files(reader, _APT_FOLDER, (".list", ".sources"))):
        text = reader.read_text(path)
        for entry in parse_apt(path, text or ""):
            found.extend(
                _repository(reader, path, uri, entry.signed_by, entry.enabled)
                for uri in entry.uris
                if is_wanted(path, uri)
            )
    for folder in _REPO_FOLDERS:
        for path in _files(reader, folder, (".repo",)):
            for section in parse_repo(reader.read_text(path) or ""):
                uri = section.get("baseurl") or section.get("mirrorlist") or ""
                enabled = section.get("enabled", "1").lower() not in _OFF
                found.extend(
                    _repository(reader, path, word, section.get("gpgkey"), enabled)
                    for word in uri.split()
                    if is_wanted(path, word)
                )
    return found


def is_wanted(path: str, uri: str) -> bool:
    """Return whether the entry is one of a GPU vendor or a managed one."""
    return bool(_VENDOR_URI.search(uri) or _MANAGED_FILE.match(path.rpartition("/")[2]))


def _files(reader: NodeReader, folder: str, suffixes: tuple[str, ...]) -> list[str]:
    return [f"{folder}/{name}" for name in reader.list_dir(folder) if name.endswith(suffixes)]


def parse_repo(text: str) -> list[dict[str, str]]:
    """Return the sections of a ``.repo`` file; indented lines continue a value."""
    sections: list[dict[str, str]] = []
    name = None
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped.startswith(("#", ";")):
            continue
        if stripped.startswith("["):
            sections.append({})
            name = None
        elif line[0] in " \t" and name and sections:
            sections[-1][name] += f" {stripped}"
        elif "=" in stripped and sections:
            name, _equals, value = stripped.partition("=")
            name = name.strip().lower()
            sections[-1][name] = value.strip()
    return sections


def _repository(
    reader: NodeReader, path: str, uri: str, signed_by: str | None, enabled: bool
) -> dict[str, Any]:
    keys = key_fingerprints(reader, signed_by)
    return {
        "file": path,
        "uri": addresses(uri, True),
        # Several keys are in the list only.
        "key_fingerprint": keys[0] if len(keys) == 1 else None,
        "key_fingerprints": keys,
        "signed_by": None if signed_by is None else addresses(signed_by),
        "enabled": enabled,
    }


def key_fingerprints(reader: NodeReader, signed_by: str | None) -> list[str]:
    """Return the fingerprints that an entry trusts, if its keys are on this node.

    ``signed_by`` is an embedded key, or paths, ``file:`` URLs and fingerprints.
    """
    if not signed_by:
        return []
    if "BEGIN PGP" in signed_by:
        return _of_key(signed_by.encode())
    found: list[str] = []
    for word in signed_by.replace(",", " ").split():
        name = word[len("file://") :] if word.startswith("file://") else word
        if name.startswith("/"):
            found.extend(_of_key(reader.read_bytes(name)))
        elif _FINGERPRINT.fullmatch(word.upper()):
            found.append(word.upper().rstrip("!"))
    return list(dict.fromkeys(found))


def _of_key(data: bytes | None) -> list[str]:
    if data is None:
        return []
    # Imported only if there is a repository: the node compiles each imported module.
    from .._formats.openpgp import fingerprints  # noqa: PLC0415

    try:
        return list(fingerprints(data))
    except InputError:
        return []

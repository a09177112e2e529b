# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads containerd's configuration as containerd does: files, imports, versions. Pure."""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Callable

from .._core.errors import InputError, KubegpuError
from .._core.versions import find_version, upstream_numbers
from .._formats.toml_edit import Document
from .._runtime.config_file import ConfigFile, Parser, decode, parse_text, table
from .data import CRI_GRPC, CRI_NAMES, CRI_RUNTIME, LOADS, NEWEST_CONFIG, Path, Version
from .values import copy, leaves, remove


@dataclass(frozen=True)
class Effective:
    """The effective configuration as reported by ``containerd config dump``."""

    data: Mapping[str, Any]

    @property
    def cri(self) -> Mapping[str, Any]:
        plugins = table(self.data, ("plugins",))
        for name in (CRI_RUNTIME, CRI_GRPC, "cri"):
            if isinstance(plugins.get(name), Mapping):
                return table(plugins, (name,))
        return {}

    @property
    def runtimes(self) -> Mapping[str, Any]:
        return table(self.cri, ("containerd", "runtimes"))

    @property
    def default(self) -> str:
        # An empty name means runc in every version.
        return str(table(self.cri, ("containerd",)).get("default_runtime_name") or "runc")

    @property
    def cdi(self) -> bool | None:
        """Return whether CDI is enabled; None if this containerd has no such setting."""
        value = self.cri.get("enable_cdi")
        return None if value is None else bool(value)


def parse_version(text: str) -> Version:
    """Return the version from the output of ``containerd --version`` or from a plain version.

    :raises InputError: the text contains no version.
    """
    numbers = upstream_numbers(find_version(text))
    if not numbers:
        raise InputError(
            "The version of containerd cannot be recognised.",
            evidence=text.strip() or "no output",
            next_step="Give it by the option containerd_version.",
        )
    return numbers[0], numbers[1]


def load(
    root: str,
    read: Callable[[str], tuple[str, bytes | None]],
    glob: Callable[[str], Iterable[str]],
    parse: Parser,
    version: Version,
    builtin_imports: tuple[str, ...] = (),
) -> tuple[ConfigFile, ...]:
    """Return the root file and all imported files, in containerd's loading order.

    :param read: returns the path with links resolved, and the content (None if there is no file).
    :param glob: returns the files that match a pattern.
    """
    files: list[ConfigFile] = []
    pending = [root]
    seen: set[str] = set()
    while pending:
        path = pending.pop(0)
        real, content = read(path)
        if real in seen:
            continue
        seen.add(real)
        file = decode(real, content, parse)
        files.append(file)
        imports = file.data.get("imports")
        if imports is None and path == root and file.text is not None:
            imports = builtin_imports
        for pattern in imports or ():
            pending += resolve_import(path, str(pattern), glob, version)
    return tuple(files)


def resolve_import(
    parent: str, pattern: str, glob: Callable[[str], Iterable[str]], version: Version
) -> list[str]:
    """Return the files that an ``imports`` entry of the file ``parent`` refers to."""
    full = import_pattern(parent, pattern, version)
    return sorted(glob(full)) if "*" in full else [full]


def import_pattern(parent: str, pattern: str, version: Version) -> str:
    if posixpath.isabs(pattern):
        return posixpath.normpath(pattern)
    # 1.6 resolves a relative pattern from its working directory, which is "/" under systemd.
    base = "/" if "*" in pattern and version < (1, 7) else posixpath.dirname(parent)
    return posixpath.normpath(posixpath.join(base, pattern))


def imports_path(file: ConfigFile, parent: str, path: str, version: Version) -> bool:
    """Return whether ``file`` (known to containerd as ``parent``) imports ``path``."""
    return any(
        _matches(path, import_pattern(parent, str(pattern), version))
        for pattern in file.data.get("imports") or ()
    )


def _matches(path: str, pattern: str) -> bool:
    # As in a shell pattern, '*' does not match a slash; fnmatch alone would.
    parts, patterns = path.split("/"), pattern.split("/")
    return len(parts) == len(patterns) and all(
        fnmatch.fnmatchcase(part, wanted) for part, wanted in zip(parts, patterns)
    )


def shadow(files: Iterable[ConfigFile], folder: str) -> dict[str, str]:
    """Return copies of the files for ``config dump``, by path in ``folder``.

    Imports refer to the copies, in the same order. CRI is enabled in them, because the dump omits
    disabled plugins.
    """
    present = [file for file in files if file.text is not None]
    names = [posixpath.join(folder, f"{index:03}.toml") for index in range(len(present))]
    copies = {}
    for index, (name, file) in enumerate(zip(names, present)):
        document = Document(file.text or "").delete(("imports",))
        if index == 0 and len(names) > 1:
            document = document.set(("imports",), names[1:])
        copies[name] = enable_cri(document, file.data).text
    return copies


def absorbed(files: Iterable[ConfigFile], path: str, parse: Parser) -> tuple[ConfigFile, ...]:
    """Return the files with the one at ``path`` merged into the last generated file that has CRI.

    A distribution does this with a template, or with a drop-in file that it merges itself.
    """
    known = tuple(files)
    own = next((file for file in known if file.path == path), None)
    rest = [file for file in known if file.path != path]
    if own is None:
        return known
    holders = [
        index
        for index, file in enumerate(rest)
        if file.generated and (index == 0 or CRI_NAMES & table(file.data, ("plugins",)).keys())
    ]
    index = holders[-1]
    document = Document(rest[index].text or "")
    for leaf, value in leaves(own.data):
        if leaf != ("version",):
            document = document.set(leaf, value)
    rest[index] = replace(rest[index], text=document.text, data=parse_text(document.text, parse))
    return tuple(rest)


def disabled_cri(data: Mapping[str, Any]) -> list[int]:
    """Return the indexes of the elements of ``disabled_plugins`` that disable CRI."""
    disabled = data.get("disabled_plugins") or ()
    return [index for index, name in enumerate(disabled) if str(name) in CRI_NAMES]


def enable_cri(document: Document, data: Mapping[str, Any]) -> Document:
    for index in reversed(disabled_cri(data)):
        document = document.delete_element(("disabled_plugins",), index)
    return document


# -- comparing ---------------------------------------------------------------------------------


def meaning(value: Any) -> Any:
    """Return the value without everything that is equal to its default (absent)."""
    if isinstance(value, Mapping):
        kept = {key: meaning(item) for key, item in value.items()}
        return {
            key: item
            for key, item in kept.items()
            if item not in ("", 0, False, [], {})
            and not (key in ("sandbox_mode", "sandboxer") and item == "podsandbox")
        }
    if isinstance(value, (list, tuple)):
        return [meaning(item) for item in value]
    return value


def fold(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options by lower-case name: containerd ignores the case of names."""
    return {key.lower(): value for key, value in options.items()}


def others(effective: Effective, ignored: Iterable[Path]) -> Any:
    """Return the normalised configuration without the ignored paths (relative to the CRI table)."""
    data = copy(effective.data)
    for name in ("imports", "disabled_plugins", "version"):
        data.pop(name, None)
    plugins = data.get("plugins")
    if isinstance(plugins, dict):
        for name in CRI_NAMES:
            for path in ignored:
                remove(plugins, (name, *path))
    return meaning(data)


def check_config_version(file: ConfigFile, version: Version) -> None:
    """Check that this release and the installed containerd support the config version.

    :raises KubegpuError: one of them does not.
    """
    if file.version > NEWEST_CONFIG:
        raise KubegpuError(
            f"{file.path} is of config version {file.version}, which this release does not know.",
            evidence=f"version = {file.version}; known are 1 to {NEWEST_CONFIG}",
            next_step="Use a newer release of kubegpu.nodes, or configure the handler manually.",
        )
    newest = next(newest for since, newest in LOADS if version >= since)
    if file.version > newest:
        raise KubegpuError(
            f"{file.path} is of config version {file.version}, which containerd "
            f"{version[0]}.{version[1]} cannot load.",
            evidence=f"version = {file.version}; this containerd reads 1 to {newest}",
            next_step=f"Write the file in version {newest} (containerd config default prints "
            "one), or install a newer containerd.",
        )

# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Request, state and plan of a runtime handler in containerd's configuration. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._core.errors import InputError
from .._nvidia.toolkit_paths import RUNTIME_PATH
from .._runtime.config_file import ConfigFile, table
from .config import Effective
from .data import BINARY, CRI_RUNTIME, CRI_TABLE, DEEP_MERGE, DEFAULT, Path, Version
from .values import copy, has, merge

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True)
class Request:
    """The handler that the user asks for."""

    name: str = "nvidia"
    state: str = "present"
    runtime_path: str = RUNTIME_PATH
    runtime_type: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    set_default: bool = False
    cdi: bool | None = None
    enable_cri: bool = False
    complete_runc: bool = False
    config_path: str = "/etc/containerd/config.toml"
    drop_in_path: str = "/etc/containerd/conf.d/99-nvidia.toml"
    layout: str = "auto"

    def check(self) -> None:
        """Validate names and paths.

        :raises InputError: containerd could not use the value, or it would do harm.
        """
        if not _NAME.fullmatch(self.name):
            raise InputError(
                f"The handler's name {self.name!r} is not valid.",
                next_step="Use letters, digits, '-', '_' and '.', at most 63, such as nvidia.",
            )
        if self.name == "runc":
            raise InputError(
                "The handler runc is the node's own and is not changed.",
                next_step="Give the handler its own name, such as nvidia.",
            )
        for option in ("runtime_path", "config_path", "drop_in_path"):
            path = getattr(self, option)
            if not path.startswith("/") or path.endswith("/") or not path.isprintable():
                raise InputError(
                    f"{option} must be the absolute path of a file.", evidence=repr(path)
                )
        if posixpath.normpath(self.config_path) == posixpath.normpath(self.drop_in_path):
            raise InputError(
                "config_path and drop_in_path are the same file.", evidence=self.config_path
            )
        if any(key.lower() == BINARY.lower() for key in self.options):
            raise InputError(
                "options must not hold BinaryName.", next_step="Give it by runtime_path."
            )
        if self.runtime_type is not None and not re.fullmatch(r"[\w./-]+", self.runtime_type):
            raise InputError("runtime_type is not valid.", evidence=repr(self.runtime_type))


@dataclass(frozen=True)
class Change:
    """One value or table that an edit changes; an empty tuple means absent."""

    path: Path
    before: tuple[Any, ...]
    after: tuple[Any, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "path": list(self.path),
            "before": copy(list(self.before)),
            "after": copy(list(self.after)),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Change:
        return cls(tuple(data["path"]), tuple(data["before"]), tuple(data["after"]))


@dataclass(frozen=True)
class FileEdit:
    """The edit of one file; a text of None means that there is no file."""

    path: str
    before: str | None
    after: str | None
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True)
class Plan:
    """Edits in the order in which they are written, and the reasons for them.

    ``source`` is the name of the runtime that the handler inherits from, empty if there is none.
    """

    edits: tuple[FileEdit, ...] = ()
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True)
class State:
    """The node's configuration: the files in loading order, the root file first.

    ``effective`` is the configuration that the installed containerd reports, None if it was not
    asked. ``handler_changes`` are the changes of earlier runs for this handler, by file;
    ``all_changes`` are those for any handler.
    """

    version: Version
    files: tuple[ConfigFile, ...]
    drop_in: ConfigFile
    effective: Effective | None = None
    builtin_imports: tuple[str, ...] = ()
    # The distribution merges the drop-in file into its generated configuration, key by key.
    merged: bool = False
    handler_changes: Mapping[str, tuple[Change, ...]] = field(default_factory=dict)
    all_changes: tuple[Change, ...] = ()

    @property
    def root(self) -> ConfigFile:
        return self.files[0]

    @property
    def deep_merge(self) -> bool:
        """Whether containerd merges imported files key by key."""
        return self.merged or self.version >= DEEP_MERGE

    @property
    def config_version(self) -> int:
        """The config version to write.

        This is the version of the root file. For an empty root file it is the one that every
        release of this major version of containerd loads (2.3 loads 3 and 4).
        """
        if self.root.text is None or not self.root.data:
            return 2 if self.version < (2, 0) else 3
        return self.root.version

    @property
    def cri(self) -> Path:
        """Path of the CRI table in files of this config version."""
        if self.config_version == 1 and self.version >= (2, 0):
            # containerd 2 ignores plugins.cri, but takes the new name in an old file.
            return ("plugins", CRI_RUNTIME)
        return ("plugins", CRI_TABLE[self.config_version])

    def defining(self, path: Path) -> list[ConfigFile]:
        """Return the files that set ``path`` below the CRI table; the last one takes effect."""
        full = self.cri + path
        return [file for file in self.files if has(file.data, full)]

    @property
    def governing(self) -> ConfigFile:
        """The file whose CRI table takes effect where tables are replaced as a whole."""
        found = self.defining(())
        return found[-1] if found else self.root

    @property
    def explicit(self) -> Mapping[str, Any]:
        """The CRI settings that the files contain, merged as containerd merges them."""
        if not self.deep_merge:
            return table(self.governing.data, self.cri)
        merged: dict[str, Any] = {}
        for file in self.files:
            merged = merge(merged, table(file.data, self.cri))
        return merged

    @property
    def default(self) -> str:
        """Name of the default runtime, according to the files."""
        return str(table(self.explicit, ("containerd",)).get("default_runtime_name") or "runc")

    @property
    def original_default(self) -> str:
        """Name of the default runtime before this module changed it."""
        name, seen = self.default, set()
        while name not in seen:
            seen.add(name)
            for change in self.all_changes:
                if change.path[2:] == DEFAULT and change.after == (name,):
                    name = str((change.before or (self._default_of_others(name),))[0] or "runc")
                    break
        return name

    def _default_of_others(self, ours: str) -> str:
        """Return the default runtime of the files that the drop-in file overrides by ``ours``."""
        if not self.deep_merge:
            return ""
        names = [
            str(table(file.data, (*self.cri, "containerd")).get("default_runtime_name") or "")
            for file in self.files
            if file.path != self.drop_in.path
        ]
        found = [name for name in names if name]
        return found[-1] if found and found[-1] != ours else ""

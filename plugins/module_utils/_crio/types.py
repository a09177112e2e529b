# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""crio_runtime: the request, what CRI-O's files come to, and the settings of the drop-in file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._core.errors import InputError
from .._nvidia.toolkit_paths import RUNTIME_PATH

# The default runtime where no file names one: crun since 1.31, runc before.
BUILT_IN = ("crun", "runc")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True)
class Request:
    """The handler that the user asks for."""

    name: str = "nvidia"
    state: str = "present"
    runtime_path: str = RUNTIME_PATH
    set_default: bool = False
    config_path: str = "/etc/crio/crio.conf"
    drop_in_path: str = "/etc/crio/crio.conf.d/99-nvidia.toml"

    def check(self) -> None:
        """Check names and paths.

        :raises InputError: CRI-O cannot use one, or it would replace the node's own runtime.
        """
        if not _NAME.fullmatch(self.name) or self.name in BUILT_IN:
            raise InputError(
                f"The handler's name {self.name!r} is not valid.",
                next_step="Use letters, digits, '-' and '_', at most 63, such as nvidia; the "
                "node's own crun and runc are not changed.",
            )
        for option in ("runtime_path", "config_path", "drop_in_path"):
            path = getattr(self, option)
            if not path.startswith("/") or path.endswith("/") or not path.isprintable():
                raise InputError(
                    f"{option} must be the absolute path of a file.", evidence=repr(path)
                )
        if self.config_path == self.drop_in_path:
            raise InputError(
                "config_path and drop_in_path are the same.", evidence=self.drop_in_path
            )


@dataclass(frozen=True)
class Effective:
    """The effective configuration: handlers by name, the default, and the files that set them.

    ``conmon`` is the monitor that the deprecated ``crio.runtime.conmon`` gives to all handlers.
    """

    handlers: Mapping[str, Mapping[str, Any]]
    default: str | None
    handler_file: Mapping[str, str]
    default_file: str | None
    conmon: str | None = None


@dataclass(frozen=True)
class DropIn:
    """The settings of the drop-in file, by ``section.key``, and why."""

    settings: Mapping[str, Any]
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Runtime:
    """The node's own runtime, from which a handler inherits."""

    name: str
    settings: Mapping[str, Any]

    @property
    def path(self) -> str | None:
        """Its program; None: CRI-O looks for it in PATH."""
        program = self.settings.get("runtime_path")
        return program if isinstance(program, str) and program else None

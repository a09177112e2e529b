# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""docker_runtime's request, and what the running dockerd reports and needs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._core.errors import InputError

BUILTIN_DEFAULT = "runc"
HOOK = "nvidia-container-runtime-hook"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class Request:
    """The module's wish."""

    name: str
    present: bool
    runtime_path: str
    runtime_args: tuple[str, ...] | None
    set_default: bool
    cdi: bool | None

    def checked(self) -> Request:
        if not _NAME.fullmatch(self.name):
            raise InputError(
                f"name: {self.name!r} cannot be the name of a runtime.",
                next_step="Use letters, digits, dot, dash and underscore.",
            )
        if self.name == BUILTIN_DEFAULT or self.name.startswith("io.containerd."):
            raise InputError(
                f"name: {self.name} is dockerd's own runtime.",
                next_step="Choose another name, nvidia for example.",
            )
        path = self.runtime_path
        if not path or "\0" in path or ("/" in path and not path.startswith("/")):
            raise InputError(
                f"runtime_path: {path!r} is neither an absolute path nor the name of a program.",
                next_step="Give the path of the runtime, /usr/bin/nvidia-container-runtime "
                "for example.",
            )
        return self


@dataclass(frozen=True)
class Info:
    """What the running dockerd says of itself; None is 'it does not say'."""

    runtimes: Mapping[str, Mapping[str, Any]]
    default_runtime: str
    version: str
    live_restore: bool | None = None
    containers_running: int | None = None
    cdi_directories: tuple[str, ...] | None = None

    @property
    def idle(self) -> bool | None:
        """Return whether a restart stops no container; None is 'cannot tell'."""
        if self.live_restore:
            return True
        return None if self.containers_running is None else self.containers_running == 0

    @classmethod
    def from_api(cls, data: Any) -> Info | None:
        """Read the answer of ``GET /info``."""
        if not isinstance(data, dict) or not isinstance(data.get("Runtimes"), dict):
            return None
        directories = data.get("CDISpecDirs")
        return cls(
            runtimes={k: v for k, v in data["Runtimes"].items() if isinstance(v, dict)},
            default_runtime=str(data.get("DefaultRuntime") or BUILTIN_DEFAULT),
            version=str(data.get("ServerVersion") or ""),
            live_restore=data.get("LiveRestoreEnabled"),
            containers_running=data.get("ContainersRunning"),
            cdi_directories=None
            if not isinstance(directories, list)
            else tuple(str(item) for item in directories),
        )


@dataclass(frozen=True)
class Running:
    """The running dockerd. ``info`` is None where it runs but cannot be asked."""

    active: bool
    info: Info | None = None
    hook_path: str | None = None
    started_before_hook: bool = False
    file_changes: bool = False
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Needs:
    """What the running dockerd needs in order to do what the file says."""

    reload: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""docker_runtime: request, settings, the state of the running dockerd, plan and result."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .._core.errors import InputError
from .._nvidia.toolkit_paths import RUNTIME_PATH

if TYPE_CHECKING:
    from .._formats.json_edit import Document
    from .._host.command import Runner
    from .._host.files import FileState
    from .._host.systemd import Daemon
    from .._record.store import StateStore
    from .record import Record

BUILTIN_DEFAULT = "runc"
HOOK = "nvidia-container-runtime-hook"
# Its containers ask for their GPUs themselves, and dockerd needs no hook for it.
AMD_RUNTIME = "amd-container-runtime"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class Request:
    """The runtime that the user asks for."""

    name: str
    present: bool
    runtime_path: str
    runtime_args: tuple[str, ...] | None
    set_default: bool
    cdi: bool | None

    @property
    def needs_hook(self) -> bool:
        """Whether ``--gpus`` needs NVIDIA's hook."""
        return posixpath.basename(self.runtime_path) != AMD_RUNTIME

    def checked(self) -> Request:
        """Return the request.

        :raises InputError: a name or path that dockerd would not accept.
        """
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
                next_step=f"Give the path of the runtime, {RUNTIME_PATH} for example.",
            )
        return self


@dataclass(frozen=True)
class Info:
    """The response of the running dockerd to ``GET /info``; None: a field is missing in it."""

    runtimes: Mapping[str, Mapping[str, Any]]
    default_runtime: str
    version: str
    live_restore: bool | None = None
    containers_running: int | None = None
    cdi_directories: tuple[str, ...] | None = None

    @property
    def idle(self) -> bool | None:
        """Whether a restart stops no container; None: unknown."""
        if self.live_restore:
            return True
        return None if self.containers_running is None else self.containers_running == 0

    @classmethod
    def from_api(cls, data: Any) -> Info | None:
        """Return the parsed response; None if it is not one of dockerd."""
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
    """The running dockerd. ``info`` is None if it runs and does not respond on its socket.

    ``started_before_hook``: it was started before NVIDIA's hook was installed.
    ``file_changes``: this run changes ``daemon.json``.
    """

    active: bool
    info: Info | None = None
    hook_path: str | None = None
    started_before_hook: bool = False
    file_changes: bool = False
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Needs:
    """Why the running dockerd needs a reload or a restart to follow the file."""

    reload: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Settings:
    """Paths, and what the module may do to the daemon."""

    config_path: str
    docker_version: str | None
    validate: bool
    reload: bool
    restart: str
    unit: str
    socket: str
    #: Identifies the caller's settings; stored on the node when nothing is left to do.
    fingerprint: str = ""


@dataclass(frozen=True)
class Dependencies:
    """Access to the node. ``temporary_directory`` takes the file that is validated."""

    run: Runner
    store: StateStore
    temporary_directory: str
    read_info: Callable[[str], Any]
    find_program: Callable[..., str | None]


@dataclass(frozen=True)
class Plan:
    """The file before and after, and what is done to the daemon."""

    before: FileState
    after: FileState
    final: Document
    record: Record
    forget: bool
    daemon: Daemon
    running: Running
    needs: Needs
    reload: bool
    restart: bool
    transition: Document | None
    reasons: tuple[str, ...]

    @property
    def writes(self) -> bool:
        return self.before.content != self.after.content

    @property
    def changed(self) -> bool:
        return self.writes or self.reload or self.restart

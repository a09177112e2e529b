# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""runtime_configuration: save the files of all runtimes, and restore them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from .._containerd.restart import restart_with_any
from .._core.redact_lines import redact_lines
from .._crio.apply import Settings as CrioSettings
from .._crio.apply import restart_crio
from .._docker.api import read_info
from .._docker.types import Info
from .._host.command import Runner
from .._host.systemd import Daemon, read_daemon, restart
from .._record.store import StateStore
from .._record.transaction import FileChange
from .._runtime.earlier import KEY, PREFIXES, plan_restore, read_current
from .._runtime.engine import Service, change_runtime

Values = dict[str, Any]


@dataclass(frozen=True)
class ConfigurationRequest:
    """The module's options, except for ``state_path``."""

    name: str
    state: str
    units: Mapping[str, str] | None
    containerd_restart: bool
    crio_restart: bool
    docker_restart: str
    docker_socket: str

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> ConfigurationRequest:
        return cls(**{item.name: params[item.name] for item in fields(cls)})


@dataclass(frozen=True)
class RuntimeConfiguration:
    """The saved files of all runtimes. Without ``check`` in a transaction of the store.

    :param exists: whether there is a file of this path.
    """

    request: ConfigurationRequest
    store: StateStore
    run: Runner
    exists: Callable[[str], bool]
    check: bool

    def apply(self) -> Values:
        """Return the module's result, with ``diff``.

        :raises KubegpuError: a saved file is invalid, or a runtime does not work with its files.
        """
        values: Values = {"restored": [], "left": [], "restarted": [], "restart_required": []}
        if self.request.state == "restored":
            return self._restore({**values, "diff": []})
        changed = self._save() if self.request.state == "saved" else self._forget()
        return {**values, "changed": changed}

    def _saved(self) -> Values | None:
        """Return what was saved under the name; None for nothing."""
        found = self.store.get(KEY)
        is_same = isinstance(found, dict) and found.get("name") == self.request.name
        return found["files"] if is_same else None

    def _save(self) -> bool:
        current = read_current(self.store)
        if self._saved() is not None or not (current or self.store.get(KEY)):
            return False
        if not self.check:
            self.store.put(KEY, {"name": self.request.name, "files": current})
        return True

    def _forget(self) -> bool:
        found = self.store.get(KEY) is not None
        if not self.check:
            self.store.drop(KEY)
        return found

    def _restore(self, result: Values) -> Values:
        saved = self._saved() or {}
        for name, prefix in PREFIXES.items():
            changes, left = plan_restore(self.store, saved, prefix)
            result["left"] += [{"path": one.path, "reason": one.reason} for one in left]
            written = [change for change in changes if change.changed]
            unit = (self.request.units or {}).get(name) or name
            daemon = read_daemon(self.run, unit)
            # The reason why it failed may be the file that is now replaced.
            needed = bool(written) and daemon.exists and (daemon.active or daemon.tried)
            restarts = needed and self._may_restart(name, daemon)
            if not self.check:
                self._write(name, unit, changes, restarts=restarts)
            result["restored"] += [change.after.path for change in written]
            result["diff"] += [change.diff(_show) for change in written]
            if needed:
                result["restarted" if restarts else "restart_required"].append(unit)
        return {**result, "changed": bool(result["restored"])}

    def _may_restart(self, name: str, daemon: Daemon) -> bool:
        request = self.request
        if name != "docker":
            return request.containerd_restart if name == "containerd" else request.crio_restart
        # A dockerd that does not run stops no container by its start.
        if request.docker_restart == "always" or not daemon.active:
            return request.docker_restart != "never"
        info = Info.from_api(read_info(request.docker_socket))
        return request.docker_restart == "if_idle" and info is not None and info.idle is True

    def _write(
        self, name: str, unit: str, changes: Sequence[FileChange], *, restarts: bool
    ) -> None:
        load: Callable[[], Any] = {
            "containerd": partial(restart_with_any, self.run, unit, self.exists),
            "docker": partial(restart, self.run, unit),
            "crio": partial(restart_crio, self.run, CrioSettings(unit=unit)),
        }[name]
        service = Service(name, unit, self.run, load if restarts else None, load)
        change_runtime(self.store, changes, service)


def _show(content: bytes) -> str:
    return redact_lines(content.decode("utf-8", "replace"))

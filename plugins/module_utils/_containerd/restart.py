# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decides whether containerd has to be restarted, and restarts it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Callable

from .._host.command import Runner
from .._host.files import changed_since, sha256
from .._host.systemd import restart
from .._record.transaction import FileChange
from .._runtime.config_file import ConfigFile, decode, table
from .._runtime.cri import CriStatus, read_status, read_status_or_off, wait_until_ready
from .config import disabled_cri, import_pattern
from .data import CRI_TABLE, Version
from .distributions import ctr_command, find_distribution
from .host import Host, folder_of
from .voided import Voided

# The keys of what a running containerd has loaded begin with it.
LOADED = "loaded:"


class Restarter:
    """Restarts containerd if it has not loaded the current files."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def loaded_key(self) -> str:
        return f"{LOADED}{self.host.settings.unit}:{self.host.request.config_path}"

    @staticmethod
    def _digest(files: tuple[ConfigFile, ...]) -> str:
        parts = (f"{file.path}\0{file.text}" for file in files if file.text is not None)
        return sha256("\0".join(parts).encode())

    def required(
        self, changes: Iterable[FileChange], files: tuple[ConfigFile, ...], version: Version
    ) -> tuple[bool, str | None]:
        """Return whether a restart is required, and the reason."""
        daemon = self.host.daemon
        unit = self.host.settings.unit
        if daemon is None or not daemon.exists:
            return False, f"There is no unit {unit} on this node, so there is nothing to restart."
        if not daemon.active:
            return False, f"{unit} is not running: it reads the file when it starts."
        for change in changes:
            if change.after.content != change.before.content:
                return True, f"{change.after.path} changes; the running {unit} has the old one."
        pending = self.pending(files)
        if pending:
            return True, pending
        loaded = {"process": daemon.identity, "sha256": self._digest(files)}
        if self.host.store.get(self.loaded_key()) == loaded or daemon.started is None:
            return False, None
        for path in self.watched(files, version):
            if changed_since(path, daemon.started):
                return True, f"{path} was changed after the running {unit} started."
        return False, None

    def check_voided(self, voided: Voided | None) -> None:
        """Check that a restart loses no settings with which containerd runs now.

        :raises KubegpuError: a file that voids others is newer than the running containerd.
        """
        daemon = self.host.daemon
        if voided is None or daemon is None or daemon.started is None:
            return
        ours = self.host.store.record(self.host.record_key(voided.by)) is not None
        if not ours and changed_since(voided.by, daemon.started):
            raise voided.refusal(
                f"That file is newer than the running {daemon.unit}, which a restart would leave "
                "without these settings."
            )

    def watched(self, files: tuple[ConfigFile, ...], version: Version) -> list[str]:
        """Return the paths whose change time shows that the configuration changed.

        A deleted file shows in the change time of its directory, if that holds configuration only.
        """
        # Files that the distribution generates at startup are newer than its start.
        paths = [file.path for file in files if file.text is not None and not file.generated]
        if self.host.placement.merged and not self.host.placement.template:
            paths.append(folder_of(self.host.request.drop_in_path))
        root = files[0]
        if root.text is None:
            paths.append(folder_of(root.path))
        for pattern in root.data.get("imports") or ():
            full = import_pattern(self.host.request.config_path, str(pattern), version)
            if "*" in full:
                paths.append(folder_of(full))
        return paths

    def pending(self, files: tuple[ConfigFile, ...]) -> str | None:
        """Return why the distribution has to be restarted to add the handler, else None.

        The file that it generated at its last start decides.
        """
        placement, name = self.host.placement, self.host.request.name
        if not placement.generated or self.host.request.state == "absent":
            return None
        distribution = placement.distribution.name
        path = ("plugins", CRI_TABLE[files[0].version], "containerd", "runtimes", name)
        for written in files:
            content = self.host.file_state(written.path).content if written.generated else None
            if content and table(decode(written.path, content, self.host.parse).data, path):
                return None
        ours = any(table(file.data, path) for file in files if not file.generated)
        if ours:
            if not placement.merged:
                return None
            return f"{distribution} adds the handler {name} to its configuration when it starts."
        program = self.host.auto_handler_program()
        if program is None or not self.host.exists(program):
            return None
        return f"{distribution} makes the handler {name} itself when it starts: of {program}."

    def restart(self, files: tuple[ConfigFile, ...]) -> None:
        """Restart containerd and wait until CRI knows the handler.

        :raises KubegpuError: it does not become ready in time.
        """
        present = self.host.request.state == "present"
        restart(self.host.run, self.host.settings.unit, self.host.settings.restart_timeout)
        off = cri_off(files)
        self.wait(self.host.request.name if present and not off else None, off)
        if present:
            daemon = self.host.read_daemon()
            self.host.store.put(
                self.loaded_key(),
                {"process": daemon.identity, "sha256": self._digest(files)},
            )

    def restart_restored(self) -> None:
        """Restart containerd with the restored files and wait until CRI is ready.

        :raises KubegpuError: it does not become ready in time.
        """
        restart(self.host.run, self.host.settings.unit, self.host.settings.restart_timeout)
        self.wait(None)

    def wait(self, handler: str | None, cri_off: bool = False) -> None:
        """Wait until CRI, or containerd alone if CRI is disabled, answers."""
        run, socket = self.host.run, self.host.settings.socket
        distribution = self.host.placement.distribution
        ctr = ctr_command(distribution, self.host.exists)

        def probe() -> CriStatus:
            if cri_off:
                version = run([*ctr, "--address", socket, "--timeout=5s", "version"], timeout=10)
                return CriStatus(version.ok, message=version.last_output())
            return read_status(run, socket, distribution.crictl, ctr)

        wait_until_ready(probe, handler, self.host.settings.restart_timeout)


def restart_with_any(run: Runner, unit: str, exists: Callable[[str], bool]) -> None:
    """Restart containerd with files that were not read, and wait until it serves.

    The distribution that is on the node says how long that may take.

    :raises KubegpuError: it does not serve in time.
    """
    found, _marker = find_distribution(exists)
    ctr = ctr_command(found, exists)
    restart(run, unit, found.restart_timeout)
    wait_until_ready(
        lambda: read_status_or_off(run, found.socket, found.crictl, ctr),
        None,
        found.restart_timeout,
    )


def cri_off(files: tuple[ConfigFile, ...]) -> bool:
    """Return whether one of the files disables CRI."""
    return any(disabled_cri(file.data) for file in files)

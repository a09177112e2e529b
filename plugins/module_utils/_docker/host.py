# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The node's dockerd: version, process, sources of its flags, and its own check of a file."""

from __future__ import annotations

import contextlib
import time

from .._core.errors import InputError, KubegpuError
from .._formats.json_edit import Document
from .._host.files import FileState, changed_since, read_file, write_file
from .._host.systemd import Daemon, read_daemon
from .daemon import applied, can_validate, parse_version
from .flags import FlagSource, environment_source, parse_flags, unit_sources
from .types import HOOK, Dependencies, Info, Running, Settings

_PAUSE = 0.2


class DockerHost:
    """Reads the state of dockerd. Changes nothing but a temporary file."""

    def __init__(self, settings: Settings, dependencies: Dependencies) -> None:
        self._settings = settings
        self._dependencies = dependencies

    def version(self, required: bool) -> tuple[int, ...] | None:
        """Return the version of the installed dockerd, or the one that the user gives.

        :param required: whether it is an error if there is none.
        :raises InputError: ``docker_version`` is not a version, or a required one is not found.
        """
        given = self._settings.docker_version
        if given:
            version = parse_version(given)
            if version is None:
                raise InputError(
                    f"docker_version: {given!r} is not a version.",
                    next_step="Give it like 28.5.2, or leave it out.",
                )
            return version
        response = self._dependencies.run(["dockerd", "--version"])
        version = parse_version(response.stdout) if response.ok else None
        if version is None and required:
            raise InputError(
                "dockerd is not installed on this node."
                if response.rc == 127
                else "dockerd does not report its version.",
                evidence=response.last_output(),
                next_step="Install Docker (this collection does not), or set docker_version.",
            )
        return version

    def has_program(self, path: str) -> bool:
        return self._dependencies.find_program(path) is not None

    def check_program(self, path: str) -> None:
        """Check that the runtime's binary is installed.

        :raises InputError: it is not.
        """
        if not self.has_program(path):
            raise InputError(
                f"runtime_path: there is no program {path} on this node.",
                next_step="Install the container toolkit of the GPUs' vendor first, or correct "
                "runtime_path.",
            )

    def daemon(self) -> Daemon:
        """Return the state of dockerd's unit."""
        return read_daemon(self._dependencies.run, self._settings.unit)

    def info(self) -> Info | None:
        """Return the response of dockerd on its socket; None if there is none."""
        return Info.from_api(self._dependencies.read_info(self._settings.socket))

    def running(self, daemon: Daemon, file_changes: bool, hook_seen_by: str | None) -> Running:
        """Return the state of the running dockerd.

        :param hook_seen_by: identity of the dockerd that is known to have found NVIDIA's hook.
        """
        info = None
        # If systemd runs none, the request would start one by socket activation.
        if daemon.active or not daemon.exists:
            info = self.info()
        hook = self._dependencies.find_program(HOOK, daemon.pid)
        old = (
            hook is not None
            and daemon.started is not None
            and changed_since(hook, daemon.started)
            # A dockerd that found the hook once keeps it: an upgrade of the toolkit is no reason.
            and hook_seen_by != daemon.identity
        )
        return Running(
            active=daemon.active or info is not None,
            info=info,
            hook_path=hook,
            started_before_hook=old,
            file_changes=file_changes,
            flags=parse_flags(daemon.command_line),
        )

    def flag_sources(self, daemon: Daemon) -> list[FlagSource]:
        """Return the places that give dockerd flags, the running process included."""
        sources: list[FlagSource] = []
        if daemon.exists:
            response = self._dependencies.run(["systemctl", "cat", self._settings.unit])
            sources, files = unit_sources(response.stdout)
            for path in files:
                with contextlib.suppress(KubegpuError):
                    content = read_file(path).content or b""
                    sources.append(environment_source(path, content.decode(errors="replace")))
        if daemon.command_line:
            where = f"the command line of the running dockerd (process {daemon.pid})"
            sources.append(FlagSource(where, daemon.command_line))
        return sources

    def validate(
        self, after: FileState, before: FileState, version: tuple[int, ...] | None
    ) -> None:
        """Have dockerd check the new file, if it can.

        :raises InputError: dockerd refuses it.
        """
        if (
            not self._settings.validate
            or after.content is None
            or version is None
            or not can_validate(version)
        ):
            return
        message = self._validation_error(after.content)
        if message is None:
            return
        # An undo that restores a file that dockerd never accepted is still the undo.
        previous = None if before.content is None else self._validation_error(before.content)
        if previous == message:
            raise InputError(
                f"dockerd refuses {self._settings.config_path}, and did before this change too.",
                evidence=message,
                next_step="Correct the file manually and run again; nothing was written.",
            )
        raise InputError(
            f"dockerd would refuse {self._settings.config_path} after this change.",
            evidence=message,
            next_step="Nothing was written. Correct the options, or the file manually.",
        )

    def _validation_error(self, content: bytes) -> str | None:
        path = f"{self._dependencies.temporary_directory}/daemon.json"
        write_file(FileState(path, content, 0o600))
        try:
            response = self._dependencies.run(["dockerd", "--validate", f"--config-file={path}"])
        finally:
            write_file(FileState(path))
        if response.ok or response.rc == 127:
            return None
        return response.last_output().replace(path, self._settings.config_path)

    def wait_until_applied(self, document: Document, seconds: float, running: Running) -> None:
        """Wait until the running dockerd has the document's runtimes and default runtime.

        :raises KubegpuError: it does not within ``seconds``.
        """
        if running.info is None:
            return  # it did not respond before this run either
        deadline = time.monotonic() + seconds
        while True:
            info = self.info()
            if applied(document, info, running.flags):
                return
            if time.monotonic() >= deadline:
                raise KubegpuError(
                    "dockerd does not answer."
                    if info is None
                    else "dockerd did not take the runtimes of the file over.",
                    evidence=""
                    if info is None
                    else f"runtimes {', '.join(info.runtimes)}; default {info.default_runtime}",
                )
            time.sleep(_PAUSE)

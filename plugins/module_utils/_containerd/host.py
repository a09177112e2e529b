# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads containerd's files, version, records and effective configuration on the node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Callable

from .._core.errors import InputError, KubegpuError
from .._core.redact import is_secret
from .._host.command import Runner
from .._host.files import (
    FileState,
    glob_files,
    read_file,
    remove_empty_directories,
    write_file,
)
from .._host.fingerprint import file_signature
from .._host.systemd import Daemon, read_daemon
from .._record.file_record import FileRecord
from .._record.store import StateStore
from .._record.transaction import FileChange
from .._runtime.config_file import ConfigFile, Parser, decode
from .config import Effective, imports_path, load, parse_version, shadow
from .data import BUILTIN_IMPORTS, Version
from .distributions import PLAIN, auto_handler_program, unit_in_use
from .options import Settings, chosen_distribution, with_distribution_defaults
from .placement import Placement, as_generated, as_rendered, find_placement
from .record import HandlerRecord
from .template_block import (
    BEGIN,
    END,
    check_managed_block,
    has_base_template,
    managed_block,
    with_managed_block,
)
from .types import Request, State


@dataclass(frozen=True)
class Dependencies:
    """Access to the node. ``scratch`` is a temporary directory of this run."""

    run: Runner
    parse: Parser
    store: StateStore
    scratch: str
    exists: Callable[[str], bool]


class Host:
    """The node as seen by one run of the module."""

    def __init__(self, request: Request, settings: Settings, dependencies: Dependencies) -> None:
        self.request = request
        self.settings = settings
        self.run = dependencies.run
        self.parse = dependencies.parse
        self.store = dependencies.store
        self.scratch = dependencies.scratch
        self.exists = dependencies.exists
        self.warnings: list[str] = []
        self.states: dict[str, FileState] = {}
        # Signatures of the files and directories that the result depends on, taken before reading.
        self.signatures: dict[str, str | None] = {}
        self.daemon: Daemon | None = None
        self.binary: str | None = None
        self.version_output = ""
        self.placement = Placement(chosen_distribution(settings, dependencies.exists))
        self._shadows = 0

    def complete_options(self) -> None:
        """Validate the request and apply the defaults of the distribution."""
        self.request.check()
        self.request, self.settings = with_distribution_defaults(
            self.placement.distribution, self.request, self.settings, self.unit
        )

    def unit(self) -> str:
        """Return the unit of the distribution that this node uses."""
        units = self.placement.distribution.units
        daemons = [read_daemon(self.run, unit) for unit in units]
        return unit_in_use({one.unit: one.active for one in daemons if one.exists}) or units[0]

    def read_daemon(self) -> Daemon:
        return read_daemon(self.run, self.settings.unit, self.placement.distribution.pid_file)

    def read_version(self) -> Version:
        """Find containerd's binary and return its version.

        :raises KubegpuError: there is none.
        """
        given = self.settings.containerd_version
        distribution = self.placement.distribution
        # The unit of a distribution runs another program, which starts containerd.
        running = self.daemon.command_line[:1] if self.daemon and distribution is PLAIN else ()
        candidates = (
            (self.settings.containerd_path,)
            if self.settings.containerd_path
            else (*running, *distribution.binaries)
        )
        for candidate in candidates:
            answer = self.run([candidate, "--version"])
            if answer.ok:
                self.binary, self.version_output = candidate, answer.stdout
                return parse_version(given or answer.stdout)
        if given and not self.settings.validate:
            return parse_version(given)
        raise KubegpuError(
            "containerd is not installed on this node, or its binary is somewhere else.",
            evidence="looked for " + ", ".join(str(candidate) for candidate in candidates),
            next_step="Install containerd first (this collection does not), or give the "
            "binary by containerd_path.",
        )

    def find_placement(self, version: Version) -> None:
        """Determine which file takes the settings on a distribution."""
        distribution, path = self.placement.distribution, self.request.config_path
        if distribution.generated is None:
            return
        content = self.file_state(path).content
        if content is None and self.request.state == "absent":
            return
        if content is None:
            raise KubegpuError(
                f"{distribution.name} has not written {path} yet.",
                evidence="no such file",
                next_step=f"Start {self.settings.unit} once, then run again.",
            )
        if not re.match(distribution.generated, content.decode("utf-8", "replace")):
            # The marker line was removed: the admin maintains this file.
            return
        root = decode(path, content, self.parse)
        placement = find_placement(
            distribution, root, version, lambda name: self.file_state(name).content, self.request
        )
        self.request = replace(self.request, drop_in_path=placement.own_path, layout="drop_in")
        own = self.file_state(placement.own_path)
        self.placement = replace(placement, own_path=own.path)
        if placement.template and self.request.state == "present":
            self.check_template(own)

    def check_template(self, own: FileState) -> None:
        """Check that the template can be edited or created."""
        distribution = self.placement.distribution
        if own.content is not None:
            check_managed_block(own.path, own.content.decode("utf-8", "replace"))
        else:
            answers = [
                self.run([program, "--version"])
                for program in distribution.programs
                if self.exists(program)
            ]
            output = " ".join(answer.stdout for answer in answers if answer.ok)
            if not has_base_template(output):
                raise KubegpuError(
                    f"This {distribution.name} has no template 'base' that {own.path} could "
                    "include, or its version is unknown.",
                    evidence=output.strip() or "looked for " + ", ".join(distribution.programs),
                    next_step=f"Upgrade {distribution.name}, or write that template yourself with "
                    f"the lines {BEGIN!r} and {END!r} at its end.",
                )

    def check_daemon_config(self) -> None:
        if self.placement.distribution is not PLAIN:
            return
        used = config_argument(self.daemon.command_line if self.daemon else ())
        if used is not None and used != self.request.config_path:
            self.warnings.append(
                f"The running containerd was started with --config {used}, so "
                f"{self.request.config_path} has no effect on it: set config_path."
            )

    def check_runtime_path(self, check: bool) -> None:
        path = self.request.runtime_path
        if self.exists(path):
            return
        if self.request.set_default and not check:
            raise InputError(
                f"{path} does not exist, so making {self.request.name} the default runtime would "
                "keep every pod of this node from starting.",
                next_step="Install the NVIDIA container toolkit first, or correct runtime_path.",
            )
        if not (check and self.settings.toolkit_expected):
            self.warnings.append(f"{path} does not exist yet: the handler works once it does.")

    def track(self, path: str) -> str:
        self.signatures.setdefault(path, file_signature(path))
        return path

    def file_state(self, path: str) -> FileState:
        state = read_file(self.track(path))
        return self.states.setdefault(state.path, state)

    def load(
        self,
        version: Version,
        builtin: tuple[str, ...] = (),
        overlay: Mapping[str, bytes | None] | None = None,
    ) -> tuple[ConfigFile, ...]:
        """Return the loaded files, with the contents in ``overlay`` (by real path) if given."""
        new = overlay or {}
        drop_in = self.request.drop_in_path

        def read(path: str) -> tuple[str, bytes | None]:
            state = self.file_state(path)
            return state.path, new.get(state.path, state.content)

        def glob(pattern: str) -> Iterable[str]:
            self.track(folder_of(pattern))
            found = set(glob_files(pattern))
            real = self.file_state(drop_in).path
            if new.get(real) is not None and _imported(pattern, drop_in, version):
                found.add(drop_in)
            return [path for path in found if new.get(self.file_state(path).path, b"") is not None]

        files = load(self.request.config_path, read, glob, self.parse, version, builtin)
        if not self.placement.generated:
            return files
        own = self.file_state(self.request.drop_in_path)
        return as_generated(
            self.placement,
            files,
            self.own_file(new.get(own.path, own.content)),
            self.parse,
            self.auto_handler_program() if self.request.state == "present" else None,
        )

    def own_file(self, content: bytes | None) -> ConfigFile:
        """Return the file that takes our settings, which may be the managed block of a template."""
        path = self.file_state(self.request.drop_in_path).path
        if not self.placement.template:
            return decode(path, content, self.parse)
        block = managed_block(None if content is None else content.decode())
        part = decode(path, None if block is None else block.encode(), self.parse)
        return replace(part, fragment=True)

    def own_text(self, path: str, content: bytes | None) -> str | None:
        """Return the part of a file that this module edits."""
        if content is None:
            return None
        if self.placement.template and path == self.placement.own_path:
            return managed_block(content.decode())
        return content.decode()

    def own_content(self, path: str, before: bytes | None, text: str | None) -> bytes | None:
        """Return the content of the file with ``text`` as the part that this module edits."""
        if self.placement.template and path == self.placement.own_path:
            text = with_managed_block(path, None if before is None else before.decode(), text)
        return None if text is None else text.encode()

    def auto_handler_program(self) -> str | None:
        """Return the program of the handler that the distribution adds itself."""
        return auto_handler_program(self.placement.distribution, self.request.name, self.exists)

    def read_state(self, version: Version) -> State:
        drop_in = self.file_state(self.request.drop_in_path)
        builtin: tuple[str, ...] = ()
        if version >= BUILTIN_IMPORTS and self.binary and self.settings.validate:
            answer = self.run([self.binary, "config", "default"])
            if answer.ok:
                imports = self.parse(answer.stdout).get("imports") or ()
                builtin = tuple(str(pattern) for pattern in imports)
        files = self.load(version, builtin)
        handler_changes = {
            record.path: HandlerRecord.from_json(record.details).changes
            for record in self.records().values()
        }
        all_changes = tuple(
            change
            for record in self.store.records("containerd_runtime:").values()
            for change in HandlerRecord.from_json(record.details).changes
        )
        return State(
            version=version,
            files=files,
            drop_in=self.own_file(drop_in.content),
            builtin_imports=builtin,
            merged=self.placement.merged,
            handler_changes=handler_changes,
            all_changes=all_changes,
        )

    def record_key(self, path: str) -> str:
        return f"containerd_runtime:{self.request.name}:{path}"

    def records(self) -> dict[str, FileRecord]:
        return self.store.records(self.record_key(""))

    def dump(self, files: tuple[ConfigFile, ...]) -> Effective:
        """Return the effective configuration of the files, as the installed containerd reports it.

        :raises KubegpuError: containerd cannot load the files.
        """
        binary = str(self.binary)
        files = as_rendered(self.placement, files, self.parse)
        if all(file.text is None for file in files):
            answer = self.run([binary, "config", "default"])
        else:
            self._shadows += 1
            copies = shadow(files, f"{self.scratch}/kubegpu-{self._shadows}")
            made: tuple[str, ...] = ()
            try:
                for path, text in copies.items():
                    made += write_file(FileState(path, text.encode(), 0o600))
                answer = self.run([binary, "--config", next(iter(copies)), "config", "dump"])
            finally:
                # Root's files in the folder of Ansible's user, who cannot remove them.
                for path in copies:
                    write_file(FileState(path))
                remove_empty_directories(made)
        if not answer.ok:
            raise KubegpuError(
                "containerd cannot load the configuration.",
                evidence=redact_output(answer.last_output()),
                next_step=f"Check: containerd --config {self.request.config_path} config dump",
            )
        return Effective(self.parse(answer.stdout))

    # -- records -------------------------------------------------------------------------------

    def other_handlers(self, key: str) -> dict[str, FileRecord]:
        """Return the records of other managed handlers in the same file."""
        path = key.split(":", 2)[2]
        return {
            other: record
            for other, record in self.store.records("containerd_runtime:").items()
            if other != key and record.path == path
        }

    def current_twin(self, key: str, state: FileState) -> FileRecord | None:
        """Return the record of another handler that matches the current file, else None."""
        return next(
            (
                record
                for record in self.other_handlers(key).values()
                if record.after_sha256 == state.sha256
            ),
            None,
        )

    def advanced(self, record: FileRecord, change: FileChange) -> FileRecord:
        """Return a record that matched the file before the change, updated to the changed file."""
        if record.after_sha256 != change.before.sha256:
            return record
        text = self.own_text(change.after.path, change.after.content)
        handler_record = replace(HandlerRecord.from_json(record.details), ours=text)
        return replace(
            record,
            from_sha256=change.before.sha256,
            after_sha256=change.after.sha256,
            details=handler_record.to_json(),
        )


def config_argument(command_line: tuple[str, ...]) -> str | None:
    """Return the file of ``--config`` on a daemon's command line."""
    for index, argument in enumerate(command_line):
        for option in ("--config", "-config", "-c", "--c"):
            if argument == option:
                return command_line[index + 1] if index + 1 < len(command_line) else None
            if argument.startswith(f"{option}="):
                return argument.partition("=")[2]
    return None


def redact_output(output: str) -> str:
    """Return the output of a command without lines that could hold a credential."""
    return "\n".join(
        line for line in output.splitlines() if not any(map(is_secret, _NAME.findall(line)))
    )


_NAME = re.compile(r"[\w.-]+")


def _imported(pattern: str, path: str, version: Version) -> bool:
    return imports_path(ConfigFile("", "", {"imports": [pattern]}), "/", path, version)


def folder_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"

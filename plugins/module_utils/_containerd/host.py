# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What one run reads of the node, and asks of its containerd."""

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
    write_file,
)
from .._host.fingerprint import mark
from .._host.systemd import Daemon, read_daemon
from .._record.file_record import FileRecord
from .._record.store import StateStore
from .._record.transaction import FileChange
from .._runtime.config_file import ConfigFile, Parser, decode
from .config import (
    Effective,
    imports_path,
    load,
    parse_version,
    shadow,
)
from .data import BUILTIN_IMPORTS, Version
from .distributions import (
    BEGIN,
    END,
    PLAIN,
    check_marked,
    has_base_template,
    made_by_itself,
    marked,
    unit_in_use,
    with_mark,
)
from .options import Settings, at_home, chosen_flavour
from .placement import Way, as_generated, as_rendered, find_way
from .record import History
from .types import Node, Request


@dataclass(frozen=True)
class World:
    """What the transaction needs of the node. ``scratch`` is a folder of this run's own."""

    run: Runner
    parse: Parser
    store: StateStore
    scratch: str
    exists: Callable[[str], bool]


class Host:
    """The node as one run reads it."""

    def __init__(self, request: Request, settings: Settings, world: World) -> None:
        self.request = request
        self.settings = settings
        self.world = world
        self.warnings: list[str] = []
        self.states: dict[str, FileState] = {}
        # The files and folders that the answer depends on, as they were before they were read.
        self.marks: dict[str, str | None] = {}
        self.daemon: Daemon | None = None
        self.binary: str | None = None
        self.version_words = ""
        self.way = Way(chosen_flavour(settings, world.exists))
        self._shadows = 0

    def settle_options(self) -> None:
        """Check the request, and fill in the distribution's own places."""
        self.request.check()
        self.request, self.settings = at_home(
            self.way.flavour, self.request, self.settings, self.unit
        )

    def unit(self) -> str:
        """Return the unit of the flavour that this node has, and uses."""
        units = self.way.flavour.units
        daemons = [read_daemon(self.world.run, unit) for unit in units]
        return unit_in_use({one.unit: one.active for one in daemons if one.exists}) or units[0]

    def read_daemon(self) -> Daemon:
        return read_daemon(self.world.run, self.settings.unit, self.way.flavour.pid_file)

    def read_version(self) -> Version:
        given = self.settings.containerd_version
        flavour = self.way.flavour
        # The units of the others run something else, which brings a containerd.
        running = self.daemon.command_line[:1] if self.daemon and flavour is PLAIN else ()
        candidates = (
            (self.settings.containerd_path,)
            if self.settings.containerd_path
            else (*running, *flavour.binaries)
        )
        for candidate in candidates:
            answer = self.world.run([candidate, "--version"])
            if answer.ok:
                self.binary, self.version_words = candidate, answer.stdout
                return parse_version(given or answer.stdout)
        if given and not self.settings.validate:
            return parse_version(given)
        raise KubegpuError(
            "containerd is not installed on this node, or its binary is somewhere else.",
            evidence="looked for " + ", ".join(str(candidate) for candidate in candidates),
            next_step="Install containerd first (this collection never does), or give the "
            "binary by containerd_path.",
        )

    def find_way(self, version: Version) -> None:
        """Find out where a distribution's containerd takes settings from."""
        flavour, path = self.way.flavour, self.request.config_path
        if flavour.generated is None:
            return
        content = self.file_state(path).content
        if content is None and self.request.state == "absent":
            return
        if content is None:
            raise KubegpuError(
                f"{flavour.name} has not written {path} yet.",
                evidence="no such file",
                next_step=f"Start {self.settings.unit} once, then run again.",
            )
        if not re.match(flavour.generated, content.decode("utf-8", "replace")):
            # Its first line was taken out: from there on it is the admin's own.
            return
        root = decode(path, content, self.world.parse)
        way = find_way(
            flavour, root, version, lambda name: self.file_state(name).content, self.request
        )
        self.request = replace(self.request, drop_in_path=way.own_path, layout="drop_in")
        own = self.file_state(way.own_path)
        self.way = replace(way, own_path=own.path)
        if way.template and self.request.state == "present":
            self.check_template(own)

    def check_template(self, own: FileState) -> None:
        """Refuse a template that cannot be edited, or begun."""
        flavour = self.way.flavour
        if own.content is not None:
            check_marked(own.path, own.content.decode("utf-8", "replace"))
        else:
            answers = [
                self.world.run([program, "--version"])
                for program in flavour.programs
                if self.world.exists(program)
            ]
            words = " ".join(answer.stdout for answer in answers if answer.ok)
            if not has_base_template(words):
                raise KubegpuError(
                    f"This {flavour.name} has no template 'base' that {own.path} could begin "
                    "with, or its version cannot be told.",
                    evidence=words.strip() or "looked for " + ", ".join(flavour.programs),
                    next_step=f"Upgrade {flavour.name}, or write that template yourself with the "
                    f"lines {BEGIN!r} and {END!r} at its end.",
                )

    def check_daemon_config(self) -> None:
        if self.way.flavour is not PLAIN:
            return
        used = config_argument(self.daemon.command_line if self.daemon else ())
        if used is not None and used != self.request.config_path:
            self.warnings.append(
                f"The running containerd was started with --config {used}, so "
                f"{self.request.config_path} has no effect on it: set config_path."
            )

    def check_runtime_path(self, check: bool) -> None:
        path = self.request.runtime_path
        if self.world.exists(path):
            return
        if self.request.set_default and not check:
            raise InputError(
                f"{path} does not exist, so making {self.request.name} the default runtime would "
                "keep every pod of this node from starting.",
                next_step="Install the NVIDIA container toolkit first, or correct runtime_path.",
            )
        self.warnings.append(f"{path} does not exist yet: the handler works once it does.")

    def marked(self, path: str) -> str:
        self.marks.setdefault(path, mark(path))
        return path

    def file_state(self, path: str) -> FileState:
        state = read_file(self.marked(path))
        return self.states.setdefault(state.path, state)

    def load(
        self,
        version: Version,
        builtin: tuple[str, ...] = (),
        overlay: Mapping[str, bytes | None] | None = None,
    ) -> tuple[ConfigFile, ...]:
        """Return the files as they stand, or as they would with ``overlay`` (by real path)."""
        new = overlay or {}
        drop_in = self.request.drop_in_path

        def read(path: str) -> tuple[str, bytes | None]:
            state = self.file_state(path)
            return state.path, new.get(state.path, state.content)

        def glob(pattern: str) -> Iterable[str]:
            self.marked(folder_of(pattern))
            found = set(glob_files(pattern))
            real = self.file_state(drop_in).path
            if new.get(real) is not None and _imported(pattern, drop_in, version):
                found.add(drop_in)
            return [path for path in found if new.get(self.file_state(path).path, b"") is not None]

        files = load(self.request.config_path, read, glob, self.world.parse, version, builtin)
        if not self.way.generated:
            return files
        own = self.file_state(self.request.drop_in_path)
        return as_generated(
            self.way,
            files,
            self.own_file(new.get(own.path, own.content)),
            self.world.parse,
            self.made_by_itself() if self.request.state == "present" else None,
        )

    def own_file(self, content: bytes | None) -> ConfigFile:
        """Return the file of our own, which may be the marked place of a template."""
        path = self.file_state(self.request.drop_in_path).path
        if not self.way.template:
            return decode(path, content, self.world.parse)
        block = marked(None if content is None else content.decode())
        part = decode(path, None if block is None else block.encode(), self.world.parse)
        return replace(part, part=True)

    def own_text(self, path: str, content: bytes | None) -> str | None:
        """Return what of a file is ours to edit."""
        if content is None:
            return None
        if self.way.template and path == self.way.own_path:
            return marked(content.decode())
        return content.decode()

    def own_content(self, path: str, before: bytes | None, text: str | None) -> bytes | None:
        """Return the file with ``text`` as our part of it."""
        if self.way.template and path == self.way.own_path:
            text = with_mark(path, None if before is None else before.decode(), text)
        return None if text is None else text.encode()

    def made_by_itself(self) -> str | None:
        """Return the program of the handler that the distribution makes itself."""
        return made_by_itself(self.way.flavour, self.request.name, self.world.exists)

    def read_node(self, version: Version) -> Node:
        drop_in = self.file_state(self.request.drop_in_path)
        builtin: tuple[str, ...] = ()
        if version >= BUILTIN_IMPORTS and self.binary and self.settings.validate:
            answer = self.world.run([self.binary, "config", "default"])
            if answer.ok:
                imports = self.world.parse(answer.stdout).get("imports") or ()
                builtin = tuple(str(pattern) for pattern in imports)
        files = self.load(version, builtin)
        earlier = {
            record.path: History.from_json(record.details).changes
            for record in self.records().values()
        }
        every = tuple(
            change
            for record in self.world.store.records("containerd_runtime:").values()
            for change in History.from_json(record.details).changes
        )
        return Node(
            version=version,
            files=files,
            drop_in=self.own_file(drop_in.content),
            builtin_imports=builtin,
            merged=self.way.merged,
            earlier=earlier,
            every=every,
        )

    def record_key(self, path: str) -> str:
        return f"containerd_runtime:{self.request.name}:{path}"

    def records(self) -> dict[str, FileRecord]:
        return self.world.store.records(self.record_key(""))

    def dump(self, files: tuple[ConfigFile, ...]) -> Effective:
        """Return what the installed containerd makes of the files."""
        binary = str(self.binary)
        files = as_rendered(self.way, files, self.world.parse)
        if all(file.text is None for file in files):
            answer = self.world.run([binary, "config", "default"])
        else:
            self._shadows += 1
            copies = shadow(files, f"{self.world.scratch}/kubegpu-{self._shadows}")
            for path, text in copies.items():
                write_file(FileState(path, text.encode(), 0o600))
            answer = self.world.run([binary, "--config", next(iter(copies)), "config", "dump"])
        if not answer.ok:
            raise KubegpuError(
                "containerd cannot load the configuration.",
                evidence=redact_words(answer.words()),
                next_step=f"Look at: containerd --config {self.request.config_path} config dump",
            )
        return Effective(self.world.parse(answer.stdout))

    # -- records -------------------------------------------------------------------------------

    def neighbours(self, key: str) -> dict[str, FileRecord]:
        """Return the records of our other handlers in the same file."""
        path = key.split(":", 2)[2]
        return {
            other: record
            for other, record in self.world.store.records("containerd_runtime:").items()
            if other != key and record.path == path
        }

    def in_step(self, key: str, state: FileState) -> FileRecord | None:
        """Return another handler's record of the file which nobody edited since."""
        return next(
            (
                record
                for record in self.neighbours(key).values()
                if record.after_sha256 == state.sha256
            ),
            None,
        )

    def follow(self, record: FileRecord, step: FileChange) -> FileRecord:
        """Return a record of the step's file, where it was in step, as it is after the step."""
        if record.after_sha256 != step.before.sha256:
            return record
        text = self.own_text(step.after.path, step.after.content)
        history = replace(History.from_json(record.details), ours=text)
        return replace(
            record,
            from_sha256=step.before.sha256,
            after_sha256=step.after.sha256,
            details=history.to_json(),
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


def redact_words(words: str) -> str:
    """Return what a command said without lines that could hold a credential."""
    return "\n".join(
        line for line in words.splitlines() if not any(map(is_secret, _NAME.findall(line)))
    )


_NAME = re.compile(r"[\w.-]+")


def _imported(pattern: str, path: str, version: Version) -> bool:
    return imports_path(ConfigFile("", "", {"imports": [pattern]}), "/", path, version)


def folder_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"

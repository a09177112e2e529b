# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Edits of several TOML files, each validated against its intended data. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .._core.errors import KubegpuError
from .._formats.toml_edit import Document
from .._runtime.config_file import ConfigFile, Parser, parse_text
from .config import disabled_cri, enable_cri
from .data import Path
from .types import Change, FileEdit
from .values import copy, leaves, prune, put, remove, value_at

FILE_HEAD = "# Written by kubegpu.nodes.containerd_runtime; add settings of your own freely.\n"


class Editor:
    """Edits files as text and keeps the intended data of each for validation.

    :param last: the file that imports the others; it is written after them.
    """

    def __init__(self, parse: Parser, last: str = "") -> None:
        self._parse = parse
        self._last = last
        self._files: dict[str, ConfigFile] = {}
        self._documents: dict[str, Document] = {}
        self._data: dict[str, dict[str, Any]] = {}
        self._changes: dict[str, list[Change]] = {}

    def open(self, file: ConfigFile) -> None:
        """Prepare the file for edits.

        :raises KubegpuError: a distribution generates the file.
        """
        if file.generated:
            raise KubegpuError(
                f"{file.path} would have to be changed, but its distribution regenerates it "
                "whenever it starts.",
                next_step="Change the setting by the distribution's own means.",
            )
        if file.path not in self._files:
            self._files[file.path] = file
            self._documents[file.path] = Document(file.text or "")
            self._data[file.path] = copy(file.data)
            self._changes[file.path] = []

    def replace_text(self, path: str, text: str) -> None:
        """Start a file without data with ``text``, a comment."""
        self._documents[path] = Document(text)

    def set(self, path: str, key: Path, value: Any) -> None:
        self._record_change(path, key, (value,))
        # The first key of a new file is placed below its comment.
        document = self._documents[path]
        if len(key) == 1 and document.text == FILE_HEAD:
            self._documents[path] = Document(FILE_HEAD + Document("").set(key, value).text)
        else:
            self._documents[path] = document.set(key, value)
        put(self._data[path], key, value)

    def set_table(self, path: str, key: Path, wanted: Mapping[str, Any]) -> None:
        self._record_change(path, key, (copy(wanted),))
        for leaf, value in leaves(wanted):
            self._documents[path] = self._documents[path].set(key + leaf, value)
            put(self._data[path], key + leaf, value)

    def delete(self, path: str, key: Path) -> None:
        self._record_change(path, key, ())
        self._documents[path] = self._documents[path].delete(key)
        remove(self._data[path], key)

    def append(self, path: str, key: Path, value: str) -> None:
        elements = [*self._data[path].get(key[0], ()), value]
        self._record_change(path, key, (elements,))
        self._documents[path] = self._documents[path].append_element(key, value)
        put(self._data[path], key, elements)

    def enable_cri(self, path: str) -> None:
        data = self._data[path]
        kept = list(data["disabled_plugins"])
        for index in reversed(disabled_cri(data)):
            del kept[index]
        self._record_change(path, ("disabled_plugins",), (kept,))
        self._documents[path] = enable_cri(self._documents[path], data)
        data["disabled_plugins"] = kept

    def _record_change(self, path: str, key: Path, after: tuple[Any, ...]) -> None:
        self._changes[path].append(Change(key, value_at(self._data[path], key), after))

    def edits(self) -> Iterator[FileEdit]:
        """Yield the edits; imported files come before the file that imports them.

        :raises KubegpuError: the edited text does not have the intended meaning.
        """
        for path in sorted(self._files, key=lambda path: path == self._last):
            file, document = self._files[path], self._documents[path]
            if document.text == (file.text or ""):
                continue
            self._check(path, document.text)
            yield FileEdit(path, file.text, document.text, tuple(self._changes[path]))

    def _check(self, path: str, text: str) -> None:
        """Check that the edited text parses to exactly the intended data."""
        try:
            data = parse_text(text, self._parse)
        except ValueError as error:
            raise KubegpuError(
                f"{path} has a shape that cannot be edited safely; nothing was written.",
                evidence=str(error),
                next_step="Write the runtimes as ordinary tables, then run again.",
            ) from error
        if prune(data) != prune(self._data[path]):
            raise KubegpuError(
                f"{path} has a shape that cannot be edited safely: the edited text does not mean "
                "what was intended; nothing was written.",
                next_step="Write the runtimes as ordinary tables, then run again.",
            )

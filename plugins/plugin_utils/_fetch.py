# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Copy or download a runfile to the node and verify its checksum."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible.module_utils.common.validation import check_type_dict
from ansible.module_utils.parsing.convert_bool import boolean

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import (
    InputError,
    KubegpuError,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.checksum import (
    MOST_TEXT,
    checksum_from_text,
    file_name,
    is_file_name,
    parse_checksum,
    shown,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._paths import file_digest, find_file
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._progress import (
    run_with_progress,
    show_progress,
)

if TYPE_CHECKING:
    from ansible.plugins.action import ActionBase

CACHE = "/var/cache/kubegpu"
_DOWNLOAD = "kubegpu.nodes.runfile_download"
# Seconds for a server to confirm that a file exists, and to send a text.
_PROBE_SECONDS = 60
_TEXT_SECONDS = 600

# name of a module, its arguments -> its answer
Execute = Callable[[str, "dict[str, Any]"], "dict[str, Any]"]


@dataclass(frozen=True)
class FetchResult:
    """The verified file on the node; in check mode, its future path.

    :param changed: whether it was copied or downloaded. A file of the node is copied if anybody
        but root could change it before it is run.
    :param cached: whether it is this collection's copy, which may be removed.
    """

    path: str
    sha256: str
    changed: bool
    cached: bool


def named_runfile(given: object) -> dict[str, Any]:
    """Return url, path, remote and checksum of a runfile, as the task's option has them.

    The answer of a node never says where the controller reads: a checksum can be a file there.

    :param given: the option of the task, not validated.
    """
    try:
        option = check_type_dict(given or {})
    except TypeError:
        option = {}
    return {
        **{name: option.get(name) for name in ("url", "path", "checksum")},
        "remote": boolean(option.get("remote", False), strict=False),
    }


def fetch(
    action: ActionBase,
    runfile: Mapping[str, Any],
    task_vars: dict[str, Any],
    *,
    folder: str = CACHE,
    execute: Execute | None = None,
) -> FetchResult:
    """Return the verified file on the node, copied or downloaded if it is missing.

    :param runfile: url, or path (on the controller; with remote: on the node), and checksum.
    :param execute: runs a module; for a long download, detached from the connection.
    :raises KubegpuError: the checksum does not match, or the file is not available.
    """
    return _Fetch(action, task_vars, bool(action._task.check_mode), folder, execute).run(runfile)


class _Fetch:
    def __init__(
        self,
        action: ActionBase,
        task_vars: dict[str, Any],
        check: bool,
        folder: str,
        execute: Execute | None,
    ) -> None:
        self.action = action
        self.task_vars = task_vars
        self.check = check
        self.folder = folder.rstrip("/")
        self.execute = execute or self._module

    def run(self, runfile: Mapping[str, Any]) -> FetchResult:
        url, path = str(runfile.get("url") or ""), str(runfile.get("path") or "")
        if bool(url) == bool(path):
            raise InputError(
                "runfile needs exactly one of url and path.",
                next_step="Give runfile: {url: https://..., checksum: sha256:...}, or path.",
            )
        remote = bool(path and runfile.get("remote"))
        name = file_name(url or path)
        if not is_file_name(name) or (remote and not path.startswith("/")):
            raise InputError(
                f"runfile: {shown(url or path)!r} names no file.",
                next_step="Give the URL of the file itself, or an absolute path.",
            )
        # A path on the controller is searched as for copy's src.
        source = "" if url or remote else self._find(path)
        wanted = self._wanted(runfile.get("checksum"), name, remote)
        target = f"{self.folder}/{name}"
        if remote:
            self._verify_remote(path, wanted)
            if self._is_of_root(path):
                return FetchResult(path, wanted, False, False)
        seen = self._sha256_on_node(target)
        if seen == wanted:
            return FetchResult(target, wanted, False, True)
        if source:
            self._verify_local(source, wanted)
        if remote:
            self._copy_on_node(path, target, wanted)
        elif url and self.check:
            self._probe(url, target, wanted)
        elif url:
            self._download(url, target, wanted)
        else:
            self._make_folder(self.folder)
            self._copy(source, target, wanted)
        return FetchResult(target, wanted, True, True)

    # The checksum.

    def _wanted(self, option: Any, name: str, remote: bool) -> str:
        checksum = parse_checksum(None if option is None else str(option), name)
        if checksum.sha256:
            return checksum.sha256
        source = checksum.source or ""
        if checksum.is_url:
            text = self._read_url(source)
        elif remote:
            text = self._read_on_node(source)
        else:
            text = self._read_on_controller(source)
        return checksum_from_text(text, name, source)

    def _read_url(self, url: str) -> str:
        answer = self._module(
            _DOWNLOAD, {"url": url, "max_bytes": MOST_TEXT, "max_seconds": _TEXT_SECONDS}
        )
        if answer.get("failed"):
            raise KubegpuError(
                f"The checksum file {shown(url)} cannot be read from the node.",
                evidence=_words(answer, url),
                next_step="Check the address and the proxy (http_proxy, https_proxy), or give "
                "checksum: sha256:<hex>.",
            )
        return str(answer.get("content") or "")

    def _read_on_node(self, path: str) -> str:
        answer = self._module("ansible.builtin.slurp", {"src": path})
        if answer.get("failed"):
            raise KubegpuError(
                f"The checksum file {path} cannot be read on the node.",
                evidence=_words(answer, path),
                next_step="Check the path, or give checksum: sha256:<hex>.",
            )
        return _decoded(str(answer.get("content") or ""))

    def _read_on_controller(self, path: str) -> str:
        try:
            found = find_file("runfile.checksum", path, self.task_vars)
            with open(found, encoding="utf-8", errors="replace") as handle:
                return handle.read(MOST_TEXT)
        except OSError as error:
            raise InputError(
                f"The checksum file {path} cannot be read on the controller.",
                evidence=str(error),
                next_step="Check the path, or give checksum: sha256:<hex>.",
            ) from error

    # The file.

    def _find(self, path: str) -> str:
        def search(wanted: str) -> str:
            found: str = self.action._find_needle("files", wanted)
            return found

        try:
            return find_file("runfile.path", path, self.task_vars, search)
        except InputError as error:
            step = "Give its path on the controller, or remote: true if it is on the node."
            raise InputError(error.cause, evidence=error.evidence, next_step=step) from error

    def _verify_local(self, path: str, wanted: str) -> None:
        try:
            seen = file_digest(path)
        except OSError as error:
            raise InputError(
                f"The runfile {path} cannot be read on the controller.", evidence=str(error)
            ) from error
        if seen != wanted:
            raise _wrong(path, wanted, seen, "The file was not copied to the node.")

    def _verify_remote(self, path: str, wanted: str) -> None:
        seen = self._sha256_on_node(path)
        if seen is None:
            raise InputError(
                f"The runfile {path} is not on the node.",
                next_step="Put it there, or leave remote away if it is on the controller.",
            )
        if seen != wanted:
            raise _wrong(path, wanted, seen, "It was left where it is.")

    def _is_of_root(self, path: str) -> bool:
        """Return whether nobody but root can change the file, or a folder on the way to it.

        What was verified by its path is run by its path later.
        """
        parts = path.rstrip("/").split("/")
        for end in range(1, len(parts) + 1):
            place = "/".join(parts[:end]) or "/"
            given = {"path": place, "follow": False, "get_checksum": False}
            stat = self._module("ansible.builtin.stat", given).get("stat") or {}
            if not (
                stat.get("uid") == 0
                and stat.get("islnk") is False
                and stat.get("woth") is False
                and (stat.get("wgrp") is False or stat.get("gid") == 0)
                and stat.get("isreg" if end == len(parts) else "isdir")
            ):
                return False
        return True

    def _copy_on_node(self, path: str, target: str, wanted: str) -> None:
        """Copy a file of the node, which others may change, to where only root may; verify that."""
        if self.check:
            return
        self._make_folder(self.folder)
        given = {"src": path, "dest": target, "remote_src": True, "mode": "0700"}
        answer = self._module("ansible.builtin.copy", given)
        if answer.get("failed"):
            self._remove(target)
            raise KubegpuError(
                f"{path} cannot be copied to {target} on the node, where only root can change it.",
                evidence=_words(answer, path),
                next_step=f"Check the space in {self.folder}; or make the file and each folder of "
                "its path root's, writable for root only and no link, so that it is run in its "
                "place.",
            )
        seen = self._sha256_on_node(target)
        if seen != wanted:
            self._remove(target)
            raise _wrong(path, wanted, str(seen), "It changed meanwhile; its copy was removed.")

    def _sha256_on_node(self, path: str) -> str | None:
        """Return the file's SHA-256; None if it does not exist."""
        answer = self._module(
            "ansible.builtin.stat",
            {"path": path, "checksum_algorithm": "sha256", "get_checksum": True, "follow": True},
        )
        if answer.get("failed"):
            raise KubegpuError(
                f"{path} cannot be looked at on the node.", evidence=_words(answer, path),
                next_step="Run with become.",
            )  # fmt: skip
        stat = answer.get("stat") or {}
        return str(stat["checksum"]) if stat.get("checksum") else None

    def _make_folder(self, path: str) -> None:
        answer = self._module(
            "ansible.builtin.file", {"path": path, "state": "directory", "mode": "0700"}
        )
        if answer.get("failed"):
            raise KubegpuError(
                f"The folder {path} cannot be made on the node.",
                evidence=_words(answer, path),
                next_step="Run with become, and check that the file system is writable.",
            )

    def _probe(self, url: str, target: str, wanted: str) -> None:
        """Check in check mode that the URL exists, without a download."""
        answer = self._module(
            _DOWNLOAD, {"url": url, "dest": target, "sha256": wanted, "max_seconds": _PROBE_SECONDS}
        )
        if answer.get("failed"):
            raise self._no_download(url, answer)

    def _download(self, url: str, target: str, wanted: str) -> None:
        # /tmp is often too small. A partial download of a killed run is removed first.
        partial = f"{self.folder}/partial"
        self._remove(partial)
        self._make_folder(partial)
        answer = self.execute(
            _DOWNLOAD,
            {"url": url, "dest": target, "sha256": wanted, "partial": partial},
        )
        self._remove(partial)
        if not answer.get("failed"):
            return
        self._remove(target)
        if answer.get("found_sha256"):
            raise _wrong(
                shown(url), wanted, str(answer["found_sha256"]), "The download was removed."
            )
        raise self._no_download(url, answer)

    def _no_download(self, url: str, answer: Mapping[str, Any]) -> KubegpuError:
        return KubegpuError(
            f"{shown(url)} cannot be downloaded to the node.",
            evidence=_words(answer, url),
            next_step="Check the address, the proxy (http_proxy, https_proxy) and the space in "
            f"{self.folder}; without Internet, put the file on the controller and give its path.",
        )

    def _copy(self, source: str, target: str, wanted: str) -> None:
        task = self.action._task.copy()
        task.args = {"src": source, "dest": target, "mode": "0700"}
        action = self.action._shared_loader_obj.action_loader.get(
            "ansible.builtin.copy",
            task=task,
            connection=self.action._connection,
            play_context=self.action._play_context,
            loader=self.action._loader,
            templar=self.action._templar,
            shared_loader_obj=self.action._shared_loader_obj,
        )
        with show_progress(self.action, self.task_vars, "copying the runfile to the node"):
            answer = action.run(task_vars=self.task_vars)
        if answer.get("failed"):
            self._remove(target)
            raise KubegpuError(
                f"{source} cannot be copied to {target} on the node.",
                evidence=_words(answer, source),
                next_step=f"Check the space in {self.folder}, and that the play has become.",
            )
        seen = None if self.check else self._sha256_on_node(target)
        if seen is not None and seen != wanted:
            self._remove(target)
            raise _wrong(target, wanted, seen, "It changed on its way and was removed; run again.")

    def _remove(self, target: str) -> None:
        if not self.check:
            self._module("ansible.builtin.file", {"path": target, "state": "absent"})

    def _module(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return run_with_progress(
            self.action, name, arguments, self.task_vars, "preparing the runfile"
        )


def _wrong(name: str, wanted: str, seen: str, done: str) -> KubegpuError:
    return KubegpuError(
        f"{name} is not the file that was meant: its sha256 is another one. {done}",
        evidence=f"expected {wanted}, found {seen}",
        next_step="Compare the checksum with the publisher's; a proxy that answers with a page of "
        "its own, or a broken download, gives another file.",
    )


def _words(answer: Mapping[str, Any], secret: str) -> str:
    """Return a module's messages, without the password or signature in a URL."""
    names = ("msg", "status_code", "response", "stderr", "module_stderr")
    parts = [str(answer.get(name) or "") for name in names]
    text = "; ".join(dict.fromkeys(part for part in parts if part)) or "no answer"
    return text.replace(secret, shown(secret))[:2000]


def _decoded(content: str) -> str:
    return base64.b64decode(content).decode("utf-8", "replace")[:MOST_TEXT]

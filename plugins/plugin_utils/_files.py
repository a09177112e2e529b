# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that this collection writes on the controller, and what it may replace there.

Only a regular file of the form that this collection writes is replaced, in one step. A folder,
link, pipe or other file of a person is refused and remains. Nothing is removed but temporary files
of runs that were killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import tempfile
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ansible.errors import AnsibleActionFail

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.process import (
    is_alive,
    own_identity,
)

from ._fact_names import refusal

# The registered result of fleet_variables, which read the paths before any node.
REGISTERED = "__kubegpu_variables"
_TEMPORARY = ".kubegpu-tmp-"
_NAME = re.compile(re.escape(_TEMPORARY) + r"([0-9a-f]+)-\w+")
# Seconds after which a temporary file of another machine is taken for one of a killed run.
_OLD = 24 * 3600
_MOST_BYTES = 512 * 1024 * 1024


@dataclass(frozen=True)
class Form:
    """What a file of this collection is, and how it is recognized.

    :param what: for messages.
    :param fits: whether content is of this form.
    :param mode: permissions of the file.
    """

    what: str
    fits: Callable[[bytes], bool]
    mode: int = 0o600


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _has(*keys: str) -> Callable[[bytes], bool]:
    """Return a test for a JSON object with these keys."""

    def fits(content: bytes) -> bool:
        found = _json(content)
        return isinstance(found, Mapping) and all(key in found for key in keys)

    return fits


def rows_form(key: str) -> Form:
    """Return the form of a table's rows.

    :param key: the key that each row has.
    """

    def fits(content: bytes) -> bool:
        found = _json(content)
        return isinstance(found, list) and all(
            isinstance(row, Mapping) and key in row for row in found
        )

    return Form("the JSON of a table of kubegpu.nodes", fits)


def object_form(content: Mapping[str, Any]) -> Form:
    """Return the form of a JSON object that has the keys of this one."""
    return Form("a JSON object with the same keys", _has(*content))


def _is_report(content: bytes) -> bool:
    found = _json(content)
    return isinstance(found, Mapping) and str(found.get("schema")).startswith(
        "kubegpu.nodes/report/"
    )


def _is_bundle(content: bytes) -> bool:
    """Return whether it is a compressed archive that begins with the folder of a bundle."""
    try:
        start = zlib.decompressobj(wbits=31).decompress(content, 512)
    except zlib.error:
        return False
    return start.startswith(b"kubegpu-diagnosis/")


FORMS: Mapping[str, Form] = {
    "rows": rows_form("node"),
    "upgrade": Form("a report of an upgrade", _has("began", "ended", "hosts"), 0o644),
    "acceptance": Form("a report of an acceptance", _has("ended", "ok", "hosts"), 0o644),
    "diagnosis": Form("a result of a diagnosis", _has("findings", "hosts", "unseen")),
    "report.json": Form("a report of kubegpu.nodes", _is_report),
    "report.html": Form(
        "a report of kubegpu.nodes",
        lambda content: b"<html" in content[:2000] and b"kubegpu.nodes " in content,
    ),
    "report.md": Form(
        "a report of kubegpu.nodes",
        lambda content: content.startswith(b"# ") and "· kubegpu.nodes ".encode() in content,
    ),
    "bundle": Form("a support bundle", _is_bundle),
}
REPORT_FILES = ("report.html", "report.json", "report.md")


def check_file(dest: str, form: Form, option: str = "dest") -> bytes | None:
    """Check that a path may be written, and return what is there; None without a file.

    :param option: the option or variable that names the path, for messages.
    :raises InputError: what is there is not of this collection, or the folder cannot be.
    """
    path = os.path.abspath(dest)
    try:
        kind = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        check_folder(os.path.dirname(path), option, dest)
        return None
    except OSError as error:
        raise _refused(option, dest, f"cannot be read ({error.strerror})", form) from error
    if _is_null(kind):
        return None
    if not stat.S_ISREG(kind.st_mode):
        raise _refused(option, dest, f"is {_kind(kind.st_mode)}", form)
    content = _read(path, option, dest, form)
    # An empty file has nothing to lose.
    if content and not form.fits(content):
        raise _refused(option, dest, f"is a file, and not {form.what}", form)
    return content


def check_folder(dest: str, option: str = "dest", file: str = "") -> None:
    """Check that a folder exists and can be written to, or can be made.

    :param file: the file in it that is meant, for messages.
    :raises InputError: a part of the path is no folder, or may not be written to.
    """
    path = os.path.abspath(dest)
    file = file or dest
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    if not os.path.isdir(path):
        raise InputError(
            f"{option}: {file} cannot be made on the controller: {path} is not a folder.",
            next_step="Give the path of a folder, or of a file below one.",
        )
    if not os.access(path, os.W_OK | os.X_OK):
        raise InputError(
            f"{option}: {file} cannot be made on the controller: {path} is not writable.",
            next_step="Give a path that you may write to.",
        )


def check_report(folder: str, option: str = "dest") -> None:
    """Check a folder for reports.

    :raises InputError: it cannot be one, or a file in it is no report.
    """
    check_folder(folder, option)
    for name in REPORT_FILES:
        check_file(os.path.join(folder, name), FORMS[name], option)


def trusted(dest: str, variables: Mapping[str, Any]) -> str:
    """Return a path to write, if no fact of a node chose it.

    :param variables: of the task's host. Registered variables override facts.
    :raises InputError: the host has facts with names of variables, and the path is not one that was
        read before any node.
    """
    facts: Any = variables.get("ansible_facts")
    found = refusal(str(variables.get("inventory_hostname", "The host")), facts)
    if found is None:
        return dest
    known: Any = variables.get(REGISTERED)
    outputs = known.get("outputs") if isinstance(known, Mapping) else {}
    # Without a registered result the variable would be a fact that the node forged.
    is_registered = known != facts.get(REGISTERED)
    if is_registered and isinstance(outputs, Mapping) and dest in outputs.values():
        return dest
    raise found


def write_text(dest: str, text: str, form: Form) -> None:
    """Write a text as a file (:func:`write_bytes`).

    :raises AnsibleActionFail: it cannot be written.
    """
    write_bytes(dest, text.encode(), form)


def write_bytes(dest: str, content: bytes, form: Form) -> None:
    """Write a file, in one step, in a folder that is made if it does not exist.

    :raises AnsibleActionFail: it cannot be written, or what is there is not of this collection.
    """
    target = os.path.abspath(dest)
    try:
        check_file(dest, form)
        if os.path.lexists(target) and _is_null(os.lstat(target)):
            return
        folder = os.path.dirname(target)
        os.makedirs(folder, exist_ok=True)
        clear_temporary(folder)
        prefix = f"{_TEMPORARY}{own_identity().encode().hex()}-"
        descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=prefix)
        try:
            with os.fdopen(descriptor, "wb") as handle:
                handle.write(content)
            os.chmod(temporary, form.mode)
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except InputError as error:
        raise AnsibleActionFail(str(error)) from error
    except OSError as error:
        raise AnsibleActionFail(
            f"{dest} cannot be written on the controller: {error}. Next step: give a path that "
            "you may write to."
        ) from error


def clear_temporary(folder: str) -> None:
    """Remove temporary files of this collection whose process has ended."""
    for name in os.listdir(folder):
        found = _NAME.fullmatch(name)
        if not found:
            continue
        path = os.path.join(folder, name)
        with contextlib.suppress(OSError, ValueError):
            kind = os.lstat(path)
            if not stat.S_ISREG(kind.st_mode) or kind.st_uid != os.geteuid():
                continue
            alive = is_alive(bytes.fromhex(found[1]).decode())
            # None is a process of another machine, which shares the folder.
            if alive is False or (alive is None and time.time() - kind.st_mtime > _OLD):
                os.unlink(path)


def _read(path: str, option: str, dest: str, form: Form) -> bytes:
    # A pipe that replaces the file now would block, and a link would lead elsewhere.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW
    try:
        with open(path, "rb", opener=lambda name, _flags: os.open(name, flags)) as handle:
            kind = os.fstat(handle.fileno())
            if not stat.S_ISREG(kind.st_mode) or kind.st_size > _MOST_BYTES:
                raise _refused(option, dest, f"is not {form.what}", form)
            return handle.read(_MOST_BYTES)
    except OSError as error:
        raise _refused(option, dest, f"cannot be read ({error.strerror})", form) from error


def _is_null(kind: os.stat_result) -> bool:
    return stat.S_ISCHR(kind.st_mode) and kind.st_rdev == os.stat(os.devnull).st_rdev


def _kind(mode: int) -> str:
    for matches, name in (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISLNK, "a symbolic link"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
    ):
        if matches(mode):
            return name
    return "a device"


def _refused(option: str, dest: str, why: str, form: Form) -> InputError:
    return InputError(
        f"{option}: {dest} {why}. It is left as it is.",
        next_step=f"Give the path of a new file, or of an earlier file that is {form.what}.",
    )

# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ``daemon.json`` says: read it, configure a runtime in it, and remove the runtime."""

from __future__ import annotations

from typing import Any

from .._core.errors import InputError, KubegpuError
from .._formats.json_edit import OBJECT, STRING, Document, Node, parse
from .edit import Editor, EditResult, plain
from .record import Record
from .types import BUILTIN_DEFAULT, Request

# Older releases read the first value of the file and ignore what follows, and do not start with a
# byte order mark (measured with 20.10).
_OLD_READER_UNTIL = (23, 0)


def read(text: str, name: str, version: tuple[int, ...] | None) -> Document:
    """Parse the file.

    :raises InputError: dockerd would refuse it, or it cannot be edited safely.
    """
    document = parse(text, name, trailing=version is not None and version < _OLD_READER_UNTIL)
    root = document.root
    if root is None or root.is_null:
        return document
    if root.kind != OBJECT:
        raise InputError(
            f"{name}, line {document.line_of(root.start)}: the file is {root.kind}, not an object.",
            next_step="Correct the file manually: dockerd does not start with it either.",
        )
    _refuse_repeated(document, root, ("runtimes", "default-runtime", "features"))
    for key in ("runtimes", "features"):
        node = root.get(key)
        if node is None or node.is_null:
            continue
        if node.kind != OBJECT:
            raise InputError(
                f"{name}, line {document.line_of(node.start)}: {key} is {node.kind}, "
                "not an object.",
                next_step="Correct the file manually: dockerd does not start with it either.",
            )
        _refuse_repeated(document, node, None)
    default = root.get("default-runtime")
    if default is not None and default.kind != STRING and not default.is_null:
        raise InputError(
            f"{name}, line {document.line_of(default.start)}: default-runtime is not a string.",
            next_step="Correct the file manually: dockerd does not start with it either.",
        )
    return document


def configure(
    document: Document, request: Request, record: Record, version: tuple[int, ...] | None = None
) -> EditResult:
    """Return the file with the runtime as requested."""
    has_bom = document.text != document.without_bom().text
    drops_bom = has_bom and version is not None and version < _OLD_READER_UNTIL
    if drops_bom:
        document = document.without_bom()
    editor = Editor(document, record, request.name)
    if drops_bom:
        editor.say(
            "the byte order mark is removed: this version of dockerd does not start with one"
        )
    editor.ensure([])
    editor.ensure(["runtimes"])
    _configure_entry(editor, request)
    if request.set_default:
        editor.put(["default-runtime"], request.name)
    else:
        # Only what an earlier run set; a default that was set otherwise remains.
        editor.revert(["default-runtime"], "set_default is false now")
    if request.cdi is not None:
        features = editor.document.get(["features"])
        already = features is not None and features.get("cdi") is not None
        if request.cdi or already:
            editor.ensure(["features"])
            editor.put(["features", "cdi"], request.cdi)
    return editor.result()


def remove(document: Document, request: Request, record: Record) -> EditResult:
    """Return the file without the managed settings; those that were changed since are kept."""
    editor = Editor(document, record, request.name)
    name = request.name
    entry_path = ("runtimes", name)
    if name in record.names:
        editor.revert_all()
    else:
        entry = document.get(entry_path)
        if entry is not None:
            if _is_managed(entry, request):
                editor.drop(entry_path, f"runtimes.{name} equals what this module writes")
            else:
                editor.say(
                    f"runtimes.{name} is not what this module writes and there is no record of "
                    "it: kept. Give its runtime_path and runtime_args to have it removed."
                )
    default = default_runtime(editor.document)
    if (
        default is not None
        and not _default_exists(editor.document, default)
        and (default == name or default != default_runtime(document))
    ):
        # dockerd does not start with a default that does not exist.
        editor.drop(
            ("default-runtime",), f"default-runtime {default} is removed: there is no such runtime"
        )
    editor.prune()
    return editor.result()


def verify(before: Document, after: Document, name: str) -> None:
    """Check that an edit changed managed settings only.

    :raises KubegpuError: it did not, which is a bug of this module.
    """
    old, new = before.data() or {}, after.data() or {}
    for key in ("runtimes", "features"):
        left = {k: v for k, v in (old.pop(key, None) or {}).items() if k not in (name, "cdi")}
        right = {k: v for k, v in (new.pop(key, None) or {}).items() if k not in (name, "cdi")}
        if left != right or list(left) != list(right):
            raise KubegpuError(f"{before.name}: the edit would have changed other {key}.")
    old.pop("default-runtime", None)
    new.pop("default-runtime", None)
    if old != new or list(old) != list(new) or before.trailing != after.trailing:
        raise KubegpuError(f"{before.name}: the edit would have changed other settings.")


def runtimes(document: Document) -> dict[str, Any]:
    """Return the runtimes that the file names, as plain data."""
    node = document.get(["runtimes"])
    return {} if node is None or node.kind != OBJECT else plain(node.data())


def default_runtime(document: Document) -> str | None:
    node = document.get(["default-runtime"])
    return None if node is None or node.kind != STRING else str(node.data()) or None


def check_result(document: Document) -> None:
    """Check the default runtime, which ``dockerd --validate`` does not.

    :raises InputError: it is not among the runtimes, and dockerd would not start.
    """
    default = default_runtime(document)
    if default is None or _default_exists(document, default):
        return
    raise InputError(
        f"{document.name}: default-runtime is {default}, which is not among runtimes.",
        evidence=f"runtimes: {', '.join(runtimes(document)) or 'none'}",
        next_step="Add that runtime or remove default-runtime; dockerd does not start like this.",
    )


def _configure_entry(editor: Editor, request: Request) -> None:
    path = ("runtimes", request.name)
    entry = editor.document.get(path)
    wanted: dict[str, Any] = {"path": request.runtime_path}
    if request.runtime_args:
        wanted["runtimeArgs"] = list(request.runtime_args)
    if entry is None or entry.is_null or (entry.kind == OBJECT and not entry.members):
        editor.put(path, wanted)
        return
    document = editor.document
    where = f"{document.name}, line {document.line_of(entry.start)}: runtimes.{request.name}"
    if entry.kind != OBJECT:
        raise InputError(
            f"{where} is {entry.kind}, not an object.",
            next_step="Correct the file manually: dockerd does not start with it either.",
        )
    shim = _member(document, entry, "runtimeType")
    shim_type = None if shim is None else entry.get(shim)
    if shim is not None and shim_type is not None and shim_type.data():
        _configure_shim(editor, request, entry, str(shim_type.data()), where)
        return
    editor.put((*path, _member(document, entry, "path") or "path"), request.runtime_path)
    if request.runtime_args is not None:
        key = _member(document, entry, "runtimeArgs") or "runtimeArgs"
        now = entry.get(key)
        if ((now is not None and now.data()) or []) != list(request.runtime_args):
            editor.put((*path, key), list(request.runtime_args))


def _configure_shim(editor: Editor, request: Request, entry: Node, shim: str, where: str) -> None:
    """Configure an entry with ``runtimeType`` (23.0 and newer), which excludes ``path``."""
    if not shim.startswith("io.containerd.runc."):
        raise InputError(
            f"{where} is of the type {shim}, which is not runc's.",
            next_step="Choose another name for the NVIDIA runtime.",
        )
    if request.runtime_args:
        raise InputError(
            f"{where} has runtimeType, which excludes runtimeArgs.",
            next_step="Leave runtime_args out, or remove the entry and run again.",
        )
    path = ("runtimes", request.name, "options")
    editor.ensure(path)
    options = editor.document.get(path)
    key = "BinaryName" if options is None else _member(editor.document, options, "BinaryName")
    editor.put((*path, key or "BinaryName"), request.runtime_path)


def _default_exists(document: Document, default: str) -> bool:
    # Newer releases accept a containerd shim, or its path, as the default.
    return (
        default == BUILTIN_DEFAULT
        or default in runtimes(document)
        or default.startswith("io.containerd.")
        or "/" in default
    )


def _is_managed(entry: Node, request: Request) -> bool:
    data = plain(entry.data())
    if not isinstance(data, dict) or set(data) - {"path", "runtimeArgs"}:
        return False
    return data.get("path") == request.runtime_path and (data.get("runtimeArgs") or []) == list(
        request.runtime_args or ()
    )


def _member(document: Document, node: Node, key: str) -> str | None:
    """Return the member's key as written in the file: Go matches these case-insensitively."""
    found = [member for member in node.members if member.key.lower() == key.lower()]
    if len(found) > 1:
        raise InputError(
            f"{document.name}, line {document.line_of(found[1].start)}: {key} occurs twice, "
            "and dockerd reads the last one.",
            evidence=", ".join(
                f"{member.key} in line {document.line_of(member.start)}" for member in found
            ),
            next_step="Remove one of them and run again; nothing was written.",
        )
    return found[0].key if found else None


def _refuse_repeated(document: Document, node: Node, keys: tuple[str, ...] | None) -> None:
    seen: dict[str, int] = {}
    for member in node.members:
        line = document.line_of(member.start)
        if member.key in seen and (keys is None or member.key in keys):
            raise InputError(
                f"{document.name}, line {line}: {member.key} occurs twice.",
                evidence=f"first in line {seen[member.key]}",
                next_step="Make one of the two and run again; nothing was written.",
            )
        seen.setdefault(member.key, line)

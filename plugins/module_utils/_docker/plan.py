# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ``daemon.json`` has to say for a GPU runtime, and what the running dockerd needs for it.

Measured with dockerd 20.10, 26.1 and 28.5: a reload takes ``runtimes`` and ``default-runtime``
over where the file names them. A key that is no longer there is not taken back, and 20.10 dies of
a reload that takes away the runtime which is its default (see :func:`transition`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .._core.errors import InputError, KubegpuError
from .._formats.json_edit import OBJECT, STRING, Document, Node, parse

BUILTIN_DEFAULT = "runc"
HOOK = "nvidia-container-runtime-hook"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_GPUS_SINCE = (19, 3)
_VALIDATE_SINCE = (23, 0)
_CDI_SINCE = (25, 0)
_CDI_DEFAULT_SINCE = (28, 3)
_CDI_DEFAULT_UNKNOWN_SINCE = (28, 0)
# Until then dockerd reads the first value of its file and does not look at what follows, and it
# does not start with a byte order mark (20.10 is the one that was measured).
_OLD_READER_UNTIL = (23, 0)


@dataclass(frozen=True)
class Request:
    """The module's wish."""

    name: str
    present: bool
    runtime_path: str
    runtime_args: tuple[str, ...] | None
    set_default: bool
    cdi: bool | None

    def checked(self) -> Request:
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
                next_step="Give the path of the runtime, /usr/bin/nvidia-container-runtime "
                "for example.",
            )
        return self


@dataclass(frozen=True)
class Edit:
    """One member that we set: what stood there (None: nothing), what we wrote."""

    path: tuple[str, ...]
    before: str | None
    after: str


@dataclass(frozen=True)
class Ledger:
    """Our own lines in one file, by runtime name, and the objects we made to hold them.

    ``made`` is what stood in the place of an object that we made or filled: None for nothing.
    """

    names: Mapping[str, tuple[Edit, ...]] = field(default_factory=dict)
    made: tuple[tuple[tuple[str, ...], str | None], ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "names": {
                name: [[list(e.path), e.before, e.after] for e in edits]
                for name, edits in self.names.items()
            },
            "made": [[list(path), raw] for path, raw in self.made],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Ledger:
        return cls(
            {
                name: tuple(Edit(tuple(path), before, after) for path, before, after in edits)
                for name, edits in data.get("names", {}).items()
            },
            tuple((tuple(path), raw) for path, raw in data.get("made", [])),
        )


@dataclass(frozen=True)
class Edited:
    """The file as it is to be, and what is to be remembered about it."""

    document: Document
    ledger: Ledger
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Info:
    """What the running dockerd says of itself; None is 'it does not say'."""

    runtimes: Mapping[str, Mapping[str, Any]]
    default_runtime: str
    version: str
    live_restore: bool | None = None
    containers_running: int | None = None
    cdi_directories: tuple[str, ...] | None = None

    @property
    def idle(self) -> bool | None:
        """Return whether a restart stops no container; None is 'cannot tell'."""
        if self.live_restore:
            return True
        return None if self.containers_running is None else self.containers_running == 0

    @classmethod
    def from_api(cls, data: Any) -> Info | None:
        """Read the answer of ``GET /info``."""
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
    """The running dockerd. ``info`` is None where it runs but cannot be asked."""

    active: bool
    info: Info | None = None
    hook_path: str | None = None
    started_before_hook: bool = False
    file_changes: bool = False
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Needs:
    """What the running dockerd needs in order to do what the file says."""

    reload: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def parse_version(text: str) -> tuple[int, ...] | None:
    """Return the numbers of ``Docker version 20.10.24+dfsg1, build ...`` or of ``28.5.2``."""
    match = re.search(r"(?:^|\s)v?(\d+)\.(\d+)(?:\.(\d+))?", text)
    return None if match is None else tuple(int(part) for part in match.groups() if part)


def can_validate(version: tuple[int, ...]) -> bool:
    return version >= _VALIDATE_SINCE


def read(text: str, name: str, version: tuple[int, ...] | None) -> Document:
    """Scan the file, and refuse what dockerd would refuse or what cannot be edited safely."""
    document = parse(text, name, trailing=version is not None and version < _OLD_READER_UNTIL)
    root = document.root
    if root is None or root.is_null:
        return document
    if root.kind != OBJECT:
        raise InputError(
            f"{name}, line {document.line_of(root.start)}: the file is {root.kind}, not an object.",
            next_step="Correct the file by hand: dockerd does not start with it either.",
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
                next_step="Correct the file by hand: dockerd does not start with it either.",
            )
        _refuse_repeated(document, node, None)
    default = root.get("default-runtime")
    if default is not None and default.kind != STRING and not default.is_null:
        raise InputError(
            f"{name}, line {document.line_of(default.start)}: default-runtime is not a string.",
            next_step="Correct the file by hand: dockerd does not start with it either.",
        )
    return document


def configure(
    document: Document, request: Request, ledger: Ledger, version: tuple[int, ...] | None = None
) -> Edited:
    """Return the file with the runtime as it is wished for."""
    marked = document.text != document.without_bom().text
    drops_mark = marked and version is not None and version < _OLD_READER_UNTIL
    if drops_mark:
        document = document.without_bom()
    editor = _Editor(document, ledger, request.name)
    if drops_mark:
        editor.say("the byte order mark goes: this version of dockerd does not start with one")
    editor.ensure([])
    editor.ensure(["runtimes"])
    _configure_entry(editor, request)
    if request.set_default:
        editor.put(["default-runtime"], request.name)
    else:
        # Ours from an earlier run; an admin's own default is not ours to take away.
        editor.take_back(["default-runtime"], "set_default is false now")
    if request.cdi is not None:
        features = editor.document.get(["features"])
        already = features is not None and features.get("cdi") is not None
        if request.cdi or already:
            editor.ensure(["features"])
            editor.put(["features", "cdi"], request.cdi)
    return editor.result()


def remove(document: Document, request: Request, ledger: Ledger) -> Edited:
    """Return the file without our own lines; what somebody changed since is kept and said."""
    editor = _Editor(document, ledger, request.name)
    name = request.name
    entry_path = ("runtimes", name)
    if name in ledger.names:
        editor.take_back_all()
    else:
        entry = document.get(entry_path)
        if entry is not None:
            if _equals_ours(entry, request):
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
            ("default-runtime",), f"default-runtime {default} goes: there is no such runtime"
        )
    editor.prune()
    return editor.result()


def transition(document: Document, info: Info | None, running: Running) -> Document | None:
    """Return the file that a reload has to see before ``document`` can take its place.

    A reload takes back nothing that the file does not name: neither a default runtime nor
    registered ones, and without a file it fails. So the file says both for the length of one
    reload. None: a plain reload does it.
    """
    if "default-runtime" in running.flags or "add-runtime" in running.flags:
        return None  # the file must not say what the command line says
    node = document.get(["runtimes"])
    lacks_runtimes = node is None or node.is_null
    lacks_default = default_runtime(document) is None
    strange = info is None or bool(set(info.runtimes) - set(_builtin(info)) - {BUILTIN_DEFAULT})
    other = info is None or info.default_runtime != BUILTIN_DEFAULT
    if not ((lacks_runtimes and strange) or (lacks_default and other)):
        return None
    between = document.ensure_object([]).ensure_object(["runtimes"])
    if lacks_default:
        path = ["default-runtime"]
        between = between.set(path, between.dump(BUILTIN_DEFAULT, path))
    return between


TRANSITION = "transition"


def transition_ledger(document: Document) -> Ledger:
    """Return what has to be taken out again of a :func:`transition` that somebody edited."""
    edits: tuple[Edit, ...] = ()
    if default_runtime(document) is None:
        edits = (Edit(("default-runtime",), document.raw(["default-runtime"]), '"runc"'),)
    made = [(path, document.raw(path)) for path in ((), ("runtimes",))]
    return Ledger({TRANSITION: edits}, tuple(made))


def verify(before: Document, after: Document, name: str) -> None:
    """See that an edit changed nothing but what is ours; a mistake here would be our own."""
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
    return {} if node is None or node.kind != OBJECT else _plain(node.data())


def default_runtime(document: Document) -> str | None:
    node = document.get(["default-runtime"])
    return None if node is None or node.kind != STRING else str(node.data()) or None


def check_result(document: Document) -> None:
    """Refuse a file that dockerd would refuse at its next start; ``--validate`` misses this."""
    default = default_runtime(document)
    if default is None or _default_exists(document, default):
        return
    raise InputError(
        f"{document.name}: default-runtime is {default}, which is not among runtimes.",
        evidence=f"runtimes: {', '.join(runtimes(document)) or 'none'}",
        next_step="Add that runtime or remove default-runtime; dockerd does not start like this.",
    )


def needs(
    document: Document, request: Request, running: Running, version: tuple[int, ...] | None
) -> Needs:
    """Compare what the file says (not what this run did) with the dockerd that is running."""
    reload: list[str] = []
    restart: list[str] = []
    notes: list[str] = []
    info = running.info
    actual = (parse_version(info.version) if info is not None else None) or version
    if request.present and actual is not None and actual < _GPUS_SINCE:
        notes.append(
            f"Docker {_dotted(actual)} has no --gpus (it came with 19.03): start GPU containers "
            f"with --runtime={request.name}."
        )
    if request.present and request.cdi and actual is not None and actual < _CDI_SINCE:
        notes.append(
            f"Docker {_dotted(actual)} has no CDI (it came with 25.0): features.cdi has no "
            "effect yet."
        )
    if not running.active:
        return Needs(notes=tuple(notes))
    if info is None:
        notes.append(
            "dockerd runs but does not answer on its socket: whether it has taken the file over "
            "cannot be told."
        )
        if running.file_changes:
            reload.append("the file changes, and dockerd cannot be asked what it runs with")
    else:
        reload += _reload_reasons(document, info, running.flags)
        restart += _cdi_reasons(document, info, actual)
    if request.present and (actual is None or actual >= _GPUS_SINCE):
        if running.hook_path is None:
            notes.append(
                f"{HOOK} is not installed: docker run --gpus will not work. "
                "Install the NVIDIA container toolkit."
            )
        elif running.started_before_hook:
            restart.append(
                f"--gpus needs a dockerd that was started after {running.hook_path} was "
                "installed: it looks for it once, at start"
            )
    return Needs(tuple(reload), tuple(restart), tuple(notes))


def applied(document: Document, info: Info | None, flags: Mapping[str, tuple[str, ...]]) -> bool:
    """Return whether the running dockerd has the file's runtimes and default."""
    return info is not None and not _reload_reasons(document, info, flags)


# -- flags of the daemon ------------------------------------------------------------------------


@dataclass(frozen=True)
class FlagSource:
    """A place that gives dockerd flags: a unit file, an environment file, a command line."""

    where: str
    arguments: tuple[str, ...]


# Measured: dockerd merges runtimes of both places at its start, and forgets those of the command
# line at a reload.
_REFUSED = "dockerd does not start like that"
_FLAG_CONFLICTS = {
    "default-runtime": ("default-runtime", _REFUSED),
    "feature": ("features", _REFUSED),
    "add-runtime": ("runtimes", "dockerd forgets those of its command line at the next reload"),
}


def flags(arguments: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the values of the long flags among the arguments, in order."""
    found: dict[str, tuple[str, ...]] = {}
    for index, argument in enumerate(arguments):
        if not argument.startswith("--"):
            continue
        key, equals, value = argument[2:].partition("=")
        if not equals:
            following = arguments[index + 1] if index + 1 < len(arguments) else ""
            value = "" if following.startswith("-") else following
        found[key] = (*found.get(key, ()), value)
    return found


def unit_sources(systemctl_cat: str) -> tuple[list[FlagSource], list[str]]:
    """Read ``systemctl cat``: what gives flags, and the environment files that may.

    Later files win: an empty ``ExecStart=`` takes the earlier ones back.
    """
    where = "the unit"
    starts: list[FlagSource] = []
    others: list[FlagSource] = []
    files: list[str] = []
    text = systemctl_cat.replace("\\\n", " ")
    for line in text.splitlines():
        header = re.fullmatch(r"# (/\S+)", line.strip())
        if header is not None:
            where = header[1]
            continue
        key, equals, value = line.strip().partition("=")
        if not equals or key.startswith(("#", ";")):
            continue
        if key == "ExecStart":
            starts = [] if not value.strip() else [*starts, FlagSource(where, _words(value))]
        elif key == "Environment":
            others.append(FlagSource(where, _assigned(value)))
        elif key == "EnvironmentFile" and value.strip():
            files.append(value.strip().lstrip("-"))
    return [*starts, *others], files


def environment_source(path: str, text: str) -> FlagSource:
    """Read an environment file such as ``/etc/default/docker``."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(("#", ";"))]
    return FlagSource(path, tuple(word for line in lines for word in _assigned(line)))


def check_flags(
    document: Document, config_path: str, real_path: str, sources: Sequence[FlagSource]
) -> None:
    """Refuse an option that would stand in the file and on dockerd's command line."""
    for source in sources:
        given = flags(source.arguments)
        for value in given.get("config-file", ()):
            if value and value not in (config_path, real_path) and not value.startswith("$"):
                raise InputError(
                    f"dockerd does not read {config_path}.",
                    evidence=f"{source.where}: --config-file={value}",
                    next_step=f"Set config_path: {value}.",
                )
        for flag, (key, consequence) in _FLAG_CONFLICTS.items():
            node = document.get([key])
            if flag not in given or node is None or node.is_null:
                continue
            raise InputError(
                f"{key} would stand in {config_path} and on dockerd's command line: {consequence}.",
                evidence=f"{source.where}: --{flag} {given[flag][-1]}".rstrip(),
                next_step=f"Remove --{flag} from {source.where} (and put what it says into "
                f"{config_path}), run systemctl daemon-reload, then run again.",
            )


# -- inside ------------------------------------------------------------------------------------


class _Editor:
    def __init__(self, document: Document, ledger: Ledger, name: str) -> None:
        self.document = document
        self._original = document
        self._name = name
        self._edits = list(ledger.names.get(name, ()))
        self._others = {key: edits for key, edits in ledger.names.items() if key != name}
        self._made = list(ledger.made)
        self._reasons: list[str] = []

    def say(self, reason: str) -> None:
        self._reasons.append(reason)

    def ensure(self, path: Sequence[str]) -> None:
        node = self.document.get(path)
        if node is not None and node.kind == OBJECT and node.members:
            return
        key = tuple(path)
        if all(made != key for made, _raw in self._made):
            self._made.append((key, self.document.raw(path)))
        self.document = self.document.ensure_object(path)

    def put(self, path: Sequence[str], value: Any) -> None:
        node = self.document.get(path)
        if node is not None and _plain(node.data()) == value:
            return
        key = tuple(path)
        before = self.document.raw(path)
        raw = self.document.dump(value, path)
        self.document = self.document.set(path, raw)
        where = ".".join(path)
        self.say(f"{where} is set" if node is None else f"{where} is changed")
        earlier = next((edit for edit in self._edits if edit.path == key), None)
        if earlier is not None:
            self._edits.remove(earlier)
            if _same(before, earlier.after):
                before = earlier.before
        if before is None or not _same(before, raw):
            self._edits.append(Edit(key, before, raw))

    def drop(self, path: Sequence[str], reason: str) -> None:
        self.document = self.document.delete(path)
        self._edits = [edit for edit in self._edits if edit.path != tuple(path)]
        self.say(reason)

    def take_back(self, path: Sequence[str], reason: str) -> None:
        for edit in [edit for edit in self._edits if edit.path == tuple(path)]:
            self._undo(edit, reason)

    def take_back_all(self) -> None:
        for edit in reversed(list(self._edits)):
            self._undo(edit, "taken back")
        self._edits = []

    def prune(self) -> None:
        """Put back what stood in the place of objects that hold nothing any more."""
        for path, raw in reversed(list(self._made)):
            node = self.document.get(path)
            if node is not None and node.kind == OBJECT and node.members:
                continue
            if node is not None:
                if raw is None and path:
                    self.document = self.document.delete(path)
                elif raw:
                    self.document = self.document.set(path, raw)
            self._made.remove((path, raw))

    def result(self) -> Edited:
        names = dict(self._others)
        if self._edits:
            names[self._name] = tuple(self._edits)
        # An object that was there and is as it was is not one that we made.
        made = tuple(self._made) if names else ()
        return Edited(self.document, Ledger(names, made), tuple(self._reasons))

    def _undo(self, edit: Edit, reason: str) -> None:
        where = ".".join(edit.path)
        self._edits.remove(edit)
        if edit.path[0] == "features" and self._others:
            # The switch is everybody's: another name of ours takes the edit over.
            other = next(iter(self._others))
            self._others[other] = (*self._others[other], edit)
            self.say(f"{where} stays: {other} may need it")
            return
        raw = self.document.raw(edit.path)
        # What we replaced may be what another name of ours put there: it goes back further.
        for other, edits in self._others.items():
            self._others[other] = tuple(
                replace(e, before=edit.before)
                if e.path == edit.path and e.before is not None and _same(e.before, edit.after)
                else e
                for e in edits
            )
        if raw is None:
            return
        if not _same(raw, edit.after):
            self.say(f"{where} was changed by somebody since: kept")
        elif edit.before is None:
            self.document = self.document.delete(edit.path)
            self.say(f"{where}: {reason}")
        else:
            self.document = self.document.set(edit.path, edit.before)
            self.say(f"{where}: {reason}")


def _configure_entry(editor: _Editor, request: Request) -> None:
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
            next_step="Correct the file by hand: dockerd does not start with it either.",
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


def _configure_shim(editor: _Editor, request: Request, entry: Node, shim: str, where: str) -> None:
    """Handle an entry with ``runtimeType`` (23.0 and newer), which excludes ``path``."""
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
    # Newer versions take a containerd shim, or the path of one, as a default.
    return (
        default == BUILTIN_DEFAULT
        or default in runtimes(document)
        or default.startswith("io.containerd.")
        or "/" in default
    )


def _builtin(info: Info) -> list[str]:
    return [name for name in info.runtimes if name.startswith("io.containerd.")]


def _equals_ours(entry: Node, request: Request) -> bool:
    data = _plain(entry.data())
    if not isinstance(data, dict) or set(data) - {"path", "runtimeArgs"}:
        return False
    return data.get("path") == request.runtime_path and (data.get("runtimeArgs") or []) == list(
        request.runtime_args or ()
    )


def _member(document: Document, node: Node, key: str) -> str | None:
    """Return the member's key as the file writes it: Go reads these without regard to case."""
    found = [member for member in node.members if member.key.lower() == key.lower()]
    if len(found) > 1:
        raise InputError(
            f"{document.name}, line {document.line_of(found[1].start)}: {key} is there twice, "
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
                f"{document.name}, line {line}: {member.key} is there twice.",
                evidence=f"first in line {seen[member.key]}",
                next_step="Make one of the two and run again; nothing was written.",
            )
        seen.setdefault(member.key, line)


def _reload_reasons(
    document: Document, info: Info, given: Mapping[str, tuple[str, ...]]
) -> list[str]:
    reasons = []
    named = runtimes(document)
    flagged = {value.partition("=")[0] for value in given.get("add-runtime", ())}
    for name, entry in named.items():
        running = info.runtimes.get(name)
        if running is None:
            reasons.append(f"the running dockerd does not know the runtime {name}")
        elif isinstance(entry, dict) and isinstance(entry.get("path"), str):
            if running.get("path") != entry["path"]:
                reasons.append(
                    f"the running dockerd has {running.get('path')} for the runtime {name}"
                )
            elif (running.get("runtimeArgs") or []) != (entry.get("runtimeArgs") or []):
                reasons.append(f"the running dockerd has other arguments for the runtime {name}")
    for name in info.runtimes:
        builtin = name == BUILTIN_DEFAULT or name.startswith("io.containerd.")
        if not builtin and name not in named and name not in flagged:
            reasons.append(f"the running dockerd still has the runtime {name}")
    flag = given.get("default-runtime", ())
    wanted = default_runtime(document) or (flag[-1] if flag else BUILTIN_DEFAULT)
    if info.default_runtime != wanted:
        reasons.append(f"the running dockerd's default runtime is {info.default_runtime}")
    return reasons


def _cdi_reasons(document: Document, info: Info, version: tuple[int, ...] | None) -> list[str]:
    if info.cdi_directories is None or version is None or version < _CDI_SINCE:
        return []
    if document.get(["cdi-spec-dirs"]) is not None:
        return []  # the directories say nothing about the feature then
    node = document.get(["features", "cdi"])
    if node is not None and isinstance(node.data(), bool):
        wanted = bool(node.data())
    elif version >= _CDI_DEFAULT_SINCE:
        wanted = True
    elif version >= _CDI_DEFAULT_UNKNOWN_SINCE:
        return []
    else:
        wanted = False
    if wanted == bool(info.cdi_directories):
        return []
    return [f"features.cdi is {'on' if wanted else 'off'} in the file and takes a start of dockerd"]


def _same(left: str | None, right: str | None) -> bool:
    if left is None or right is None:
        return left is right
    if not left or not right:
        return left == right
    one, other = parse(left, "").root, parse(right, "").root
    return one is not None and other is not None and one.shape() == other.shape()


def _plain(value: Any) -> Any:
    """Return JSON data for the module's answer; a number is the text it is written as."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value if isinstance(value, (str, bool)) or value is None else value.text


def _words(value: str) -> tuple[str, ...]:
    return tuple(word.strip("'\"") for word in re.split(r"[\s]+", value.strip()) if word)


def _assigned(text: str) -> tuple[str, ...]:
    """Return the words of ``NAME="--flag value"`` without the name."""
    return tuple(re.sub(r"^[A-Za-z0-9_]+=[\"']?(?=-)", "", word) for word in _words(text))


def _dotted(version: tuple[int, ...]) -> str:
    major, *rest = version
    # Docker's numbers of the year-and-month time are written with two digits: 19.03.
    return ".".join(
        [str(major), *(f"{n:02d}" if i == 0 and major < 20 else str(n) for i, n in enumerate(rest))]
    )

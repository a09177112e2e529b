# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A runtime handler in containerd's configuration: wishes and files in, edits out. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .._core.errors import InputError, KubegpuError
from .._formats.toml_edit import Document
from .._runtime.config_file import ConfigFile, Parser, parse_text, table
from .config import (
    BUILTIN_IMPORTS,
    CRI_RUNTIME,
    CRI_TABLE,
    DEEP_MERGE,
    Effective,
    Path,
    Version,
    check_config_version,
    copy,
    disabled_cri,
    enable_cri,
    fold,
    imports_path,
    leaves,
    meaning,
    merge,
    others,
    remove,
)

RUNC_SHIM = "io.containerd.runc.v2"
# Runtimes whose options are those of runc, so that a handler may take them over.
_RUNC_SHIMS = frozenset({RUNC_SHIM, "io.containerd.runc.v1"})
_BINARY = "BinaryName"
# Every runtime of a node has to agree with the kubelet on this one.
_CGROUP = "systemdcgroup"
# How the names of NVIDIA's runtimes begin.
NVIDIA_RUNTIME = "nvidia-container-runtime"
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
DEFAULT = ("containerd", "default_runtime_name")
_RUNTIMES = ("containerd", "runtimes")
_CDI = ("enable_cdi",)
FILE_HEAD = "# Written by kubegpu.nodes.containerd_runtime; add settings of your own freely.\n"


@dataclass(frozen=True)
class Request:
    """What the user wants."""

    name: str = "nvidia"
    state: str = "present"
    runtime_path: str = "/usr/bin/nvidia-container-runtime"
    runtime_type: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    set_default: bool = False
    cdi: bool | None = None
    enable_cri: bool = False
    complete_runc: bool = False
    config_path: str = "/etc/containerd/config.toml"
    drop_in_path: str = "/etc/containerd/conf.d/99-nvidia.toml"
    layout: str = "auto"

    def check(self) -> None:
        """Refuse names and paths that containerd could not use, or that would do harm."""
        if not _NAME.fullmatch(self.name):
            raise InputError(
                f"The handler's name {self.name!r} is not valid.",
                next_step="Use letters, digits, '-', '_' and '.', at most 63, such as nvidia.",
            )
        if self.name == "runc":
            raise InputError(
                "The handler runc is the node's own and is not changed.",
                next_step="Give the handler a name of its own, such as nvidia.",
            )
        for option in ("runtime_path", "config_path", "drop_in_path"):
            path = getattr(self, option)
            if not path.startswith("/") or path.endswith("/") or not path.isprintable():
                raise InputError(
                    f"{option} must be the absolute path of a file.", evidence=repr(path)
                )
        if posixpath.normpath(self.config_path) == posixpath.normpath(self.drop_in_path):
            raise InputError(
                "config_path and drop_in_path are the same file.", evidence=self.config_path
            )
        if any(key.lower() == _BINARY.lower() for key in self.options):
            raise InputError(
                "options must not hold BinaryName.", next_step="Give it by runtime_path."
            )
        if self.runtime_type is not None and not re.fullmatch(r"[\w./-]+", self.runtime_type):
            raise InputError("runtime_type is not valid.", evidence=repr(self.runtime_type))


@dataclass(frozen=True)
class Change:
    """One value or table that an edit changes; an empty tuple is 'not there'."""

    path: Path
    before: tuple[Any, ...]
    after: tuple[Any, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "path": list(self.path),
            "before": copy(list(self.before)),
            "after": copy(list(self.after)),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Change:
        return cls(tuple(data["path"]), tuple(data["before"]), tuple(data["after"]))


@dataclass(frozen=True)
class FileEdit:
    """What becomes of one file; no text is no file."""

    path: str
    before: str | None
    after: str | None
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True)
class Plan:
    """Edits in the order in which they are written, each with its reason.

    ``source`` names the runtime whose options the handler has; empty where there is none.
    """

    edits: tuple[FileEdit, ...] = ()
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True)
class Node:
    """What the node has: the files in loading order (the root file first) and their meaning.

    ``effective`` is what the installed binary makes of them, None where it is not asked.
    ``earlier`` holds what our own earlier runs changed for this handler, by file; ``every`` what
    they changed for any handler.
    """

    version: Version
    files: tuple[ConfigFile, ...]
    drop_in: ConfigFile
    effective: Effective | None = None
    builtin_imports: tuple[str, ...] = ()
    # A distribution merges the drop-in into what it generates, key by key.
    merged: bool = False
    earlier: Mapping[str, tuple[Change, ...]] = field(default_factory=dict)
    every: tuple[Change, ...] = ()

    @property
    def root(self) -> ConfigFile:
        return self.files[0]

    @property
    def deep(self) -> bool:
        """Whether imported files are merged key by key."""
        return self.merged or self.version >= DEEP_MERGE

    @property
    def config_version(self) -> int:
        """The format to write: the root file's; where it says nothing, the one that every
        release of this containerd's generation loads (2.3 loads 3 as well as 4)."""
        if self.root.text is None or not self.root.data:
            return 2 if self.version < (2, 0) else 3
        return self.root.version

    @property
    def cri(self) -> Path:
        """The table that holds CRI's settings in a file of this format, for this containerd."""
        if self.config_version == 1 and self.version >= (2, 0):
            # containerd 2 ignores plugins.cri, but takes the new name in an old file.
            return ("plugins", CRI_RUNTIME)
        return ("plugins", CRI_TABLE[self.config_version])

    def defining(self, path: Path) -> list[ConfigFile]:
        """Return the files that set ``path`` (relative to the CRI table), the last word last."""
        full = self.cri + path
        return [file for file in self.files if _has(file.data, full)]

    @property
    def governing(self) -> ConfigFile:
        """The file whose CRI table counts where tables are replaced as a whole."""
        found = self.defining(())
        return found[-1] if found else self.root

    @property
    def explicit(self) -> Mapping[str, Any]:
        """CRI's settings as far as the files give them."""
        if not self.deep:
            return table(self.governing.data, self.cri)
        merged: dict[str, Any] = {}
        for file in self.files:
            merged = merge(merged, table(file.data, self.cri))
        return merged

    @property
    def default(self) -> str:
        """The default runtime's name, as far as the files give it."""
        return str(table(self.explicit, ("containerd",)).get("default_runtime_name") or "runc")

    @property
    def first_default(self) -> str:
        """The same; where we made a handler the default, the one from before us."""
        name, seen = self.default, set()
        while name not in seen:
            seen.add(name)
            for change in self.every:
                if change.path[2:] == DEFAULT and change.after == (name,):
                    name = str((change.before or ("",))[0] or "runc")
                    break
        return name


def plan_present(request: Request, node: Node, parse: Parser) -> Plan:
    """Return the edits that give the node the handler; none where all is as wanted."""
    request.check()
    for file in (node.root, node.drop_in):
        check_config_version(file, node.version)
    return _Planner(request, node, parse).present()


def wanted_handlers(request: Request, node: Node, parse: Parser) -> list[dict[str, Any]]:
    """Return the handler as it is written where there is none, for each runtime to inherit from."""
    planner = _Planner(request, node, parse)
    return [planner.wanted(source) for _name, source in planner.sources()]


class _Planner:
    def __init__(self, request: Request, node: Node, parse: Parser) -> None:
        self.request = request
        self.node = node
        self.parse = parse
        self.editor = Editor(parse, last=node.root.path)
        self.reasons: list[str] = []
        self.warnings: list[str] = []
        self.completed: set[str] = set()

    def present(self) -> Plan:
        node, request = self.node, self.request
        target = self.target()
        self.editor.open(target)
        existing = table(node.explicit, (*_RUNTIMES, request.name))
        if target.text is None or not target.data:
            self.start_file(target)
        self.runtime_types()
        self.explicit_runc(target)
        if not existing:
            self.new_handler(target)
        elif not self.writable_holders():
            self.override_handler(target, existing)
        else:
            self.correct_handler(target, existing)
        self.default(target)
        self.cdi(target)
        self.cri_enabled()
        self.report_source()
        self.report_ignored()
        return self.plan()

    def plan(self) -> Plan:
        edits = []
        for edit in self.editor.edits():
            if all(change.path == ("version",) for change in edit.changes):
                # Begun for nothing: what was wanted is there already.
                self.reasons = [
                    reason for reason in self.reasons if reason != _not_there(edit.path)
                ]
            else:
                edits.append(edit)
        name, _runtime = self.sources()[0]
        return Plan(tuple(edits), tuple(self.reasons), tuple(self.warnings), name)

    # -- where ---------------------------------------------------------------------------------

    def target(self) -> ConfigFile:
        """Return the file that the handler belongs into."""
        node, request = self.node, self.request
        holders = self.writable_holders()
        if holders:
            return self.checked(holders[-1])
        wanted = request.layout
        if wanted == "auto":
            wanted = "drop_in" if self.can_drop_in() else "in_place"
        if wanted == "drop_in":
            return self.drop_in()
        if node.deep:
            return node.root
        target = self.checked(node.governing)
        if target.path != node.root.path:
            self.reasons.append(
                f"{target.path} is edited, not {node.root.path}: in containerd "
                f"{_words(node.version)} its CRI table replaces that of every file before it."
            )
        return target

    def writable_holders(self) -> list[ConfigFile]:
        """Return the files in which the handler stands and may be edited, the last word last."""
        node = self.node
        holders = node.defining((*_RUNTIMES, self.request.name))
        if not node.deep:
            holders = [file for file in holders if file.path == node.governing.path]
        return [file for file in holders if not file.generated]

    def checked(self, file: ConfigFile) -> ConfigFile:
        if file.part:
            return file
        if file.path != self.node.root.path and file.version != self.node.config_version:
            raise KubegpuError(
                f"{file.path} is of config version {file.version}, but {self.node.root.path}, "
                f"which imports it, is of version {self.node.config_version}: containerd does not "
                "read the two together.",
                next_step=f"Write {file.path} in version {self.node.config_version}.",
            )
        return file

    def imports_drop_in(self) -> bool:
        node = self.node
        path = self.request.drop_in_path
        if node.merged or imports_path(node.root, self.request.config_path, path, node.version):
            return True
        return (
            node.version >= BUILTIN_IMPORTS
            and node.root.text is not None
            and "imports" not in node.root.data
            and any(
                imports_path(ConfigFile("", "", {"imports": [pattern]}), "/", path, node.version)
                for pattern in node.builtin_imports
            )
        )

    def can_drop_in(self) -> bool:
        node = self.node
        return (
            node.deep and bool(node.root.data) and node.root.version > 1 and self.imports_drop_in()
        )

    def drop_in(self) -> ConfigFile:
        node, request = self.node, self.request
        drop_in = node.drop_in
        if drop_in.data:
            self.checked(drop_in)
        if not node.deep:
            other = [file for file in node.defining(()) if file.path != drop_in.path]
            if other:
                raise KubegpuError(
                    f"A drop-in file cannot be used with containerd {_words(node.version)} here: "
                    f"its CRI table would replace the one in {other[-1].path} as a whole.",
                    evidence=f"{other[-1].path} sets {'.'.join(node.cri)}",
                    next_step="Use layout: in_place (or auto).",
                )
        if not self.imports_drop_in():
            root = node.root
            self.editor.open(root)
            if root.text is None or not root.data:
                self.start_file(root)
            self.editor.append(root.path, ("imports",), request.drop_in_path)
            self.reasons.append(f"{root.path} does not import {request.drop_in_path} yet.")
        return drop_in

    def start_file(self, target: ConfigFile) -> None:
        """Give a file that says nothing yet its version."""
        version = self.node.config_version
        if version == 1 or target.part:
            # The root file names none, or names it for this one too.
            return
        if target.text is None:
            self.editor.replace_text(target.path, FILE_HEAD)
            self.reasons.append(_not_there(target.path))
        self.editor.set(target.path, ("version",), version)

    # -- the handler ---------------------------------------------------------------------------

    def explicit_runc(self, target: ConfigFile) -> None:
        """Write down the built-in runtimes where naming another one would drop them."""
        node = self.node
        explicit = table(node.explicit, _RUNTIMES)
        if node.version >= (2, 0) or (explicit and not self.runc_is_missing()):
            return
        runc: dict[str, Any] = {"runtime_type": RUNC_SHIM}
        for key, value in table(self.source(), ("options",)).items() if explicit else ():
            # The node's other runtimes agree with the kubelet; so has this one to.
            if key.lower() == _CGROUP:
                runc["options"] = {key: value}
        runtimes: Mapping[str, Any] = {"runc": runc}
        if not explicit and node.effective is not None and node.effective.runtimes:
            runtimes = node.effective.runtimes
        for name, runtime in runtimes.items():
            if name == self.request.name:
                continue
            self.editor.set_table(
                target.path, (*node.cri, *_RUNTIMES, name), copy(meaning(runtime))
            )
            self.reasons.append(
                f"The runtime {name} is built in; containerd {_words(node.version)} forgets it "
                f"as soon as {target.path} names another one, so it is written down."
            )

    def runc_is_missing(self) -> bool:
        """Return whether runc is the default but not among the runtimes: CRI cannot load so."""
        return self.node.default == "runc" and "runc" not in table(self.node.explicit, _RUNTIMES)

    def source(self) -> Mapping[str, Any]:
        """Return the runtime that the handler inherits from: the default one, else runc."""
        _name, runtime = self.sources()[0]
        return runtime

    def sources(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Return the runtimes that a handler could inherit from, the first choice first.

        Ordinary pods are started by the default runtime: its options suit the kubelet.
        """
        node = self.node
        found: list[tuple[str, Mapping[str, Any]]] = []
        explicit = table(node.explicit, _RUNTIMES)
        effective = node.effective.runtimes if node.effective else {}
        for name in dict.fromkeys((*self.choices(), node.first_default, *explicit)):
            if name == self.request.name:
                continue
            # The file's own spelling first: the binary may answer in that of another format.
            for runtimes in (explicit, effective):
                runtime = runtimes.get(name)
                built_in = name == "runc" and not effective and not self.has_no_type(name)
                if isinstance(runtime, Mapping) and (
                    name in self.completed
                    or _is_runc(runtime, effective.get(name))
                    or (built_in and "runtime_type" not in runtime)
                ):
                    found.append((name, runtime))
        if found:
            return found
        if not effective and (not explicit or node.version >= (2, 0)):
            known = not self.has_no_type("runc")
            return [("runc" if known else "", {"runtime_type": RUNC_SHIM})]
        return [("", {})]

    def choices(self) -> tuple[str, ...]:
        """Return the default runtime and runc. NVIDIA's own is none to inherit from."""
        default = self.node.first_default
        runtime = self.runtime(default)
        path = fold(table(runtime, ("options",))).get(_BINARY.lower())
        nvidia = posixpath.basename(str(path or "")).startswith(NVIDIA_RUNTIME)
        if default == self.request.name or nvidia:
            return ("runc",)
        return (default, "runc")

    def runtime(self, name: str) -> Mapping[str, Any]:
        """Return a runtime as the files have it, else as containerd knows it."""
        known = self.node.effective.runtimes if self.node.effective else {}
        return table(self.node.explicit, (*_RUNTIMES, name)) or table(known, (name,))

    def runtime_types(self) -> None:
        """See that the runtime to inherit from has a type: without one containerd starts no pod."""
        node = self.node
        typed = [name for name, _runtime in self.sources()]
        for name in self.choices():
            if name in typed:
                return
            if self.has_no_type(name):
                break
        else:
            return
        holder = node.defining((*_RUNTIMES, name))[-1] if node.deep else node.governing
        path = (*node.cri, *_RUNTIMES, name)
        if not self.request.complete_runc or name != "runc":
            option = ", or use complete_runc: true" if name == "runc" else ""
            raise KubegpuError(
                f"The runtime {name} has no runtime_type, so containerd starts no pod with it, and "
                f"{self.request.name} cannot inherit from it.",
                evidence=f"{'.'.join(path)} in {holder.path}",
                next_step=f'Write runtime_type = "{RUNC_SHIM}" into that table{option}; then run '
                "again.",
            )
        self.editor.open(holder)
        self.put(holder, (*path, "runtime_type"), RUNC_SHIM)
        self.completed.add(name)

    def has_no_type(self, name: str) -> bool:
        node = self.node
        written = table(node.explicit, (*_RUNTIMES, name))
        if not _has(node.explicit, (*_RUNTIMES, name)) or written.get("runtime_type"):
            return False
        if node.effective is not None:
            return not table(node.effective.runtimes, (name,)).get("runtime_type")
        # From 2.0 on what the file leaves out of runc is built in.
        return "runtime_type" in written or name != "runc" or node.version < (2, 0)

    def report_source(self) -> None:
        """Say where the default runtime, whose options the handler has, and runc differ."""
        name, source = self.sources()[0]
        runc = next((runtime for other, runtime in self.sources() if other == "runc"), None)
        if name == "runc" or runc is None:
            return
        one, other = (fold(meaning(table(runtime, ("options",)))) for runtime in (source, runc))
        differing = sorted(
            key for key in {*one, *other} - {_BINARY.lower()} if one.get(key) != other.get(key)
        )
        if not differing:
            return
        words = (
            f"The options of {self.request.name} are those of {name}, the default runtime; runc "
            f"has others: {', '.join(differing)}."
        )
        if _CGROUP in differing and table(self.node.explicit, (*_RUNTIMES, "runc")):
            # One of the two does not suit the kubelet.
            self.warnings.append(
                f"{words} Only one of the two suits the kubelet's cgroup driver: correct the other."
            )
        else:
            self.reasons.append(words)

    def wanted(self, source: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the complete handler, as it is written where there is none yet."""
        source = self.source() if source is None else source
        shim = str(source.get("runtime_type", ""))
        wanted: dict[str, Any] = {"runtime_type": self.request.runtime_type or RUNC_SHIM}
        inherited = meaning(source)
        if shim in _RUNC_SHIMS or not shim or _variable(shim):
            for key, value in inherited.items():
                if key not in ("runtime_type", "options"):
                    wanted[key] = copy(value)
        options = {
            key: copy(value)
            for key, value in table(inherited, ("options",)).items()
            if key.lower() != _BINARY.lower()
        }
        for key, value in self.request.options.items():
            for twin in [other for other in options if other.lower() == key.lower()]:
                del options[twin]
            options[key] = copy(value)
        wanted["options"] = {_BINARY: self.request.runtime_path, **options}
        return wanted

    def new_handler(self, target: ConfigFile) -> None:
        node, request = self.node, self.request
        if not self.source():
            self.warnings.append(
                "The node has no runc runtime to inherit from, so the handler's options are "
                "containerd's defaults: check that SystemdCgroup suits the kubelet."
            )
        path = (*node.cri, *_RUNTIMES, request.name)
        self.editor.set_table(target.path, path, self.wanted())
        self.reasons.append(f"The handler {request.name} is not in {target.path} yet.")

    def correct_handler(self, target: ConfigFile, existing: Mapping[str, Any]) -> None:
        """Change what differs in a handler that is there; what somebody added stays."""
        base = (*self.node.cri, *_RUNTIMES, self.request.name)
        wanted = self.wanted()
        enforced = {_BINARY.lower(), _CGROUP, *(key.lower() for key in self.request.options)}
        if existing.get("runtime_type") != wanted["runtime_type"]:
            self.put(target, (*base, "runtime_type"), wanted["runtime_type"])
        for key, value in wanted.items():
            if key not in ("runtime_type", "options") and key not in existing:
                self.put(target, (*base, key), value)
        present = table(existing, ("options",))
        inherited = fold(wanted["options"])
        if _CGROUP not in inherited and meaning(fold(present)).get(_CGROUP):
            # runc has it off, without a word: so has the handler.
            wanted["options"]["SystemdCgroup"] = False
        for key, value in wanted["options"].items():
            twins = [other for other in present if other.lower() == key.lower()]
            if not twins:
                self.put(target, (*base, "options", key), value)
                continue
            keep = key if key in twins else twins[-1]
            for twin in twins:
                if twin != keep:
                    self.drop((*base, "options", twin), f"it contradicts {keep}")
            if key.lower() in enforced and present[keep] != value:
                self.put(target, (*base, "options", keep), value)

    def override_handler(self, target: ConfigFile, existing: Mapping[str, Any]) -> None:
        """Write the whole handler over one that a distribution makes, where that one differs."""
        differing = self.differing(existing)
        if not differing:
            return
        name = self.request.name
        if target.part:
            raise KubegpuError(
                f"{self.node.root.path} has a handler {name} already, which is made without this "
                f"module, and {target.path} cannot change it: {', '.join(differing)}.",
                evidence=f"{name} = {existing}",
                next_step="Use another name for the handler, or leave runtime_path and options as "
                "they are there.",
            )
        wanted = self.wanted()
        options: dict[str, Any] = copy(table(existing, ("options",)))
        inherited = wanted["options"]
        if _CGROUP in differing and _CGROUP not in fold(inherited):
            inherited["SystemdCgroup"] = False
        for key, value in inherited.items():
            # The spelling that is there: two of them would contradict each other.
            spelled = next((other for other in options if other.lower() == key.lower()), key)
            options[spelled] = value
        wanted = {**copy(existing), **wanted, "options": options}
        self.editor.set_table(target.path, (*self.node.cri, *_RUNTIMES, name), wanted)
        self.reasons.append(
            f"The handler {name} in {self.node.root.path} differs: {', '.join(differing)}."
        )

    def differing(self, existing: Mapping[str, Any]) -> list[str]:
        """Return what has to change in a handler."""
        wanted = self.wanted()
        found = [
            key
            for key, value in wanted.items()
            if key != "options"
            and (key not in existing or (key == "runtime_type" and existing[key] != value))
        ]
        present = fold(table(existing, ("options",)))
        options = fold(wanted["options"])
        enforced = {_BINARY.lower(), *(key.lower() for key in self.request.options)}
        for key, value in options.items():
            if key != _CGROUP and (
                key not in present or (key in enforced and present[key] != value)
            ):
                found.append(key)
        if bool(present.get(_CGROUP)) != bool(options.get(_CGROUP)):
            found.append(_CGROUP)
        return found

    def put(self, target: ConfigFile, path: Path, value: Any) -> None:
        self.editor.set(target.path, path, value)
        self.reasons.append(f"{'.'.join(path[2:])} is not {value!r} in {target.path}.")

    def drop(self, path: Path, why: str) -> None:
        for file in self.node.files:
            if _has(file.data, path):
                self.editor.open(file)
                self.editor.delete(file.path, path)
                self.reasons.append(f"{'.'.join(path[2:])} is removed from {file.path}: {why}.")

    # -- beside the handler --------------------------------------------------------------------

    def default(self, target: ConfigFile) -> None:
        node, request = self.node, self.request
        current = node.default
        holders = node.defining(DEFAULT) if node.deep else []
        holder = target
        if holders and not self.loads_after(target, holders[-1]):
            holder = holders[-1]
        path = node.cri + DEFAULT
        if request.set_default:
            if current != request.name:
                self.editor.open(holder)
                self.editor.set(holder.path, path, request.name)
                self.reasons.append(f"The default runtime is {current}, not {request.name}.")
            return
        ours = self.our_default()
        if current == request.name and ours is not None:
            file, before = ours
            self.editor.open(file)
            if before:
                self.editor.set(file.path, path, before[0])
            else:
                self.editor.delete(file.path, path)
            self.reasons.append(
                f"An earlier run made {request.name} the default runtime; it is what it was again."
            )
        elif current == request.name:
            self.reasons.append(
                f"{request.name} is the default runtime in {node.root.path} already, not by us: "
                "this is left alone."
            )
        else:
            self.report_dangling(current)

    def report_dangling(self, current: str) -> None:
        known = {*table(self.node.explicit, _RUNTIMES), self.request.name}
        if self.node.effective is not None:
            known |= set(self.node.effective.runtimes)
            if _variable(current):
                current = self.node.effective.default
        if self.node.effective is None and (self.node.version >= (2, 0) or len(known) == 1):
            known.add("runc")
        if current not in known and not _variable(current):
            self.warnings.append(
                f"The default runtime {current!r} does not exist, so no ordinary pod can start: "
                "correct default_runtime_name, or use set_default."
            )

    def our_default(self) -> tuple[ConfigFile, tuple[Any, ...]] | None:
        path = self.node.cri + DEFAULT
        for file in self.node.files:
            for change in self.node.earlier.get(file.path, ()):
                if change.path == path and change.after == (self.request.name,):
                    return file, change.before
        return None

    def loads_after(self, one: ConfigFile, other: ConfigFile) -> bool:
        """Return whether ``one`` is loaded after ``other``, or is the same."""
        if other.generated:
            return True
        order = [file.path for file in self.node.files]
        if one.path not in order:
            # A drop-in that is not there yet: where its name will put it.
            return other.path == order[0] or other.path < one.path
        return order.index(one.path) >= order.index(other.path)

    def cdi(self, target: ConfigFile) -> None:
        node, wanted = self.node, self.request.cdi
        if wanted is None:
            return
        if node.version < (1, 7):
            if wanted:
                self.reasons.append(
                    f"cdi is ignored: containerd {_words(node.version)} has no CDI (1.7 is the "
                    "first that has it)."
                )
            return
        current = node.explicit.get("enable_cdi", node.version >= (2, 0))
        if bool(current) == wanted:
            return
        holders = node.defining(_CDI) if node.deep else []
        holder = target
        if holders and not self.loads_after(target, holders[-1]):
            holder = holders[-1]
        self.editor.open(holder)
        self.editor.set(holder.path, node.cri + _CDI, wanted)
        self.reasons.append(f"CDI is {'off' if wanted else 'on'}.")

    def report_ignored(self) -> None:
        node = self.node
        if node.version >= (2, 0) and node.root.version == 1:
            ignored = table(node.root.data, ("plugins", "cri"))
            if ignored:
                self.warnings.append(
                    f"containerd {_words(node.version)} ignores plugins.cri in {node.root.path}, "
                    "which names no config version: containerd config migrate shows the file in "
                    "the present format."
                )
        old = table(node.explicit, ("containerd", "default_runtime"))
        if self.request.set_default and old.get("runtime_type") and node.version < (2, 0):
            raise KubegpuError(
                "The default runtime is given by the deprecated table "
                "containerd.default_runtime, which wins over default_runtime_name.",
                evidence=f"runtime_type = {old['runtime_type']!r}",
                next_step="Write that runtime below containerd.runtimes and name it by "
                "default_runtime_name, then run again.",
            )

    def cri_enabled(self) -> None:
        for file in self.node.files:
            if not disabled_cri(file.data):
                continue
            if not self.request.enable_cri:
                self.warnings.append(
                    f"CRI is disabled by disabled_plugins in {file.path}: no runtime handler has "
                    "any effect for Kubernetes until it is enabled (enable_cri: true)."
                )
                continue
            self.editor.open(file)
            self.editor.enable_cri(file.path)
            self.reasons.append(f"CRI is disabled in {file.path}.")


class Editor:
    """Files that are being edited, each with what its data is meant to be afterwards.

    :param last: the file that imports the others: it is written after them.
    """

    def __init__(self, parse: Parser, last: str = "") -> None:
        self._parse = parse
        self._last = last
        self._files: dict[str, ConfigFile] = {}
        self._documents: dict[str, Document] = {}
        self._data: dict[str, dict[str, Any]] = {}
        self._changes: dict[str, list[Change]] = {}

    def open(self, file: ConfigFile) -> None:
        if file.generated:
            raise KubegpuError(
                f"{file.path} would have to be changed, but it is written anew whenever its "
                "distribution starts.",
                next_step="Change the setting by the distribution's own means.",
            )
        if file.path not in self._files:
            self._files[file.path] = file
            self._documents[file.path] = Document(file.text or "")
            self._data[file.path] = copy(file.data)
            self._changes[file.path] = []

    def replace_text(self, path: str, text: str) -> None:
        """Begin a file that holds no data yet with a comment."""
        self._documents[path] = Document(text)

    def set(self, path: str, key: Path, value: Any) -> None:
        self._note(path, key, (value,))
        # A new file's first keys come below its comment.
        document = self._documents[path]
        if len(key) == 1 and document.text == FILE_HEAD:
            self._documents[path] = Document(FILE_HEAD + Document("").set(key, value).text)
        else:
            self._documents[path] = document.set(key, value)
        _put(self._data[path], key, value)

    def set_table(self, path: str, key: Path, wanted: Mapping[str, Any]) -> None:
        self._note(path, key, (copy(wanted),))
        for leaf, value in leaves(wanted):
            self._documents[path] = self._documents[path].set(key + leaf, value)
            _put(self._data[path], key + leaf, value)

    def delete(self, path: str, key: Path) -> None:
        self._note(path, key, ())
        self._documents[path] = self._documents[path].delete(key)
        remove(self._data[path], key)

    def append(self, path: str, key: Path, value: str) -> None:
        elements = [*self._data[path].get(key[0], ()), value]
        self._note(path, key, (elements,))
        self._documents[path] = self._documents[path].append_element(key, value)
        _put(self._data[path], key, elements)

    def enable_cri(self, path: str) -> None:
        data = self._data[path]
        kept = list(data["disabled_plugins"])
        for index in reversed(disabled_cri(data)):
            del kept[index]
        self._note(path, ("disabled_plugins",), (kept,))
        self._documents[path] = enable_cri(self._documents[path], data)
        data["disabled_plugins"] = kept

    def _note(self, path: str, key: Path, after: tuple[Any, ...]) -> None:
        self._changes[path].append(Change(key, value_at(self._data[path], key), after))

    def edits(self) -> Iterator[FileEdit]:
        """Give the edits, files that are imported before the one that imports them."""
        for path in sorted(self._files, key=lambda path: path == self._last):
            file, document = self._files[path], self._documents[path]
            if document.text == (file.text or ""):
                continue
            self._check(path, document.text)
            yield FileEdit(path, file.text, document.text, tuple(self._changes[path]))

    def _check(self, path: str, text: str) -> None:
        """Refuse an edit whose text does not mean exactly what it was meant to."""
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


def refuse_twice(
    flavour: str, generated: ConfigFile, part: ConfigFile, earlier: ConfigFile
) -> None:
    """Refuse a part of a template that would begin a table which the rest of it has already.

    :param earlier: the part as it is: what was rendered from it is no second table.
    """
    for path, _value in leaves(part.data):
        (there,) = value_at(generated.data, path[:-1]) or ({},)
        if not _has(earlier.data, path[:-1]) and any(
            not isinstance(value, Mapping) for value in there.values()
        ):
            raise KubegpuError(
                f"{'.'.join(path[2:])} cannot be set by {part.path}: {flavour} writes that table "
                "itself, and containerd takes it only once.",
                evidence=f"{generated.path} has [{'.'.join(path[:-1])}]",
                next_step=f"Set it by {flavour}'s own means (the default runtime by "
                "default-runtime in its config.yaml).",
            )


def verify(
    request: Request,
    plan: Plan,
    before: Effective,
    after: Effective,
    completed: frozenset[str] = frozenset(),
    restored: bool = False,
) -> None:
    """Refuse a plan after which the binary sees anything else than what was meant.

    :param completed: the runtimes whose type an earlier run filled in; it may go again.
    :param restored: whether the files come back as they were before us, a missing runc included.
    """
    name = request.name
    problems = []
    earlier = {key: meaning(value) for key, value in before.runtimes.items() if key != name}
    later = {key: meaning(value) for key, value in after.runtimes.items() if key != name}
    if "runc" not in earlier and before.default == "runc":
        # It was missing, and CRI could not load without it.
        later.pop("runc", None)
    filled = completed_runtimes(change for edit in plan.edits for change in edit.changes)
    for runtimes in (earlier, later):
        for runtime in {*filled, *completed}:
            runtimes.get(runtime, {}).pop("runtime_type", None)
    if restored and "runc" not in later:
        # It was written down because CRI could not load without it.
        earlier.pop("runc", None)
    if earlier != later:
        changed = sorted(key for key in {*earlier, *later} if earlier.get(key) != later.get(key))
        problems.append(f"the runtimes {', '.join(changed)} would change")
    if request.state == "present":
        problems += [
            f"the runtime {runtime} would have no runtime_type"
            for runtime in sorted(filled)
            if not table(after.runtimes, (runtime,)).get("runtime_type")
        ]
        problems += _handler_problems(request, after, plan.source)
        if request.set_default and after.default != name:
            problems.append(f"the default runtime would be {after.default}, not {name}")
    # What stood there before us may have named a runtime that does not exist: so it stands again.
    dangling = after.default not in after.runtimes and before.default in before.runtimes
    if dangling and request.state == "present":
        problems.append(f"the default runtime {after.default} would not exist")
    ignored: list[Path] = [(*_RUNTIMES, key) for key in {*before.runtimes, name, "runc"}]
    # These two are ours only as far as the plan says so.
    touched = {change.path[2:] for edit in plan.edits for change in edit.changes}
    for path in (DEFAULT, _CDI):
        if path in touched or request.state == "absent":
            ignored.append(path)
    if others(before, ignored) != others(after, ignored):
        problems.append("settings beside the handler would change")
    if problems:
        raise KubegpuError(
            "The edited configuration would not mean what it should; nothing was written.",
            evidence="containerd config dump: " + "; ".join(problems),
            next_step="Report this with the configuration files (without their secrets).",
        )


def completed_runtimes(changes: Iterable[Change]) -> frozenset[str]:
    """Return the runtimes that had no ``runtime_type`` and were given one by the changes."""
    return frozenset(
        change.path[-2]
        for change in changes
        if change.path[2:4] == _RUNTIMES
        and change.path[5:] == ("runtime_type",)
        and change.before in ((), ("",))
    )


def _handler_problems(request: Request, after: Effective, source: str) -> list[str]:
    handler = after.runtimes.get(request.name)
    if not isinstance(handler, Mapping):
        return [f"the handler {request.name} would not be there"]
    options = table(handler, ("options",))
    binaries = [value for key, value in options.items() if key.lower() == _BINARY.lower()]
    problems = []
    if binaries != [request.runtime_path]:
        problems.append(f"its BinaryName would be {binaries}")
    if not handler.get("runtime_type"):
        problems.append("it would have no runtime_type")
    cgroups = {
        bool(fold(table(runtime, ("options",))).get(_CGROUP))
        for key, runtime in after.runtimes.items()
        if key in (source, request.name) and isinstance(runtime, Mapping)
    }
    if len(cgroups) > 1 and _CGROUP not in fold(request.options):
        problems.append(f"its SystemdCgroup would differ from {source}'s")
    return problems


def prune(data: Any) -> Any:
    """Return data without empty tables, which come and go with headers and mean nothing."""
    if isinstance(data, Mapping):
        kept = {key: prune(value) for key, value in data.items()}
        return {key: value for key, value in kept.items() if value != {}}
    if isinstance(data, (list, tuple)):
        return [prune(value) for value in data]
    # A NaN does not equal itself.
    return repr(data) if isinstance(data, float) else data


def value_at(data: Mapping[str, Any], path: Path) -> tuple[Any, ...]:
    current: Any = data
    for part in path:
        if not isinstance(current, Mapping) or part not in current:
            return ()
        current = current[part]
    return (copy(current),)


def _has(data: Mapping[str, Any], path: Path) -> bool:
    return bool(value_at(data, path))


def _put(data: dict[str, Any], path: Path, value: Any) -> None:
    current = data
    for part in path[:-1]:
        current = current.setdefault(part, {})
    current[path[-1]] = copy(value)


def _is_runc(runtime: Mapping[str, Any], effective: Any) -> bool:
    shim = runtime.get("runtime_type")
    if shim is None or _variable(shim):
        shim = effective.get("runtime_type") if isinstance(effective, Mapping) else shim
    return shim in _RUNC_SHIMS or _variable(shim)


def _variable(value: Any) -> bool:
    """Return whether a distribution fills the value in later (MicroK8s)."""
    return isinstance(value, str) and "${" in value


def _not_there(path: str) -> str:
    return f"{path} does not exist yet."


def _words(version: Version) -> str:
    return f"{version[0]}.{version[1]}"

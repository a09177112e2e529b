# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans a runtime handler in containerd's configuration: edits from request and state. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.errors import KubegpuError
from .._runtime.config_file import ConfigFile, Parser, table
from .config import check_config_version, disabled_cri, fold, imports_path, meaning
from .data import BINARY, BUILTIN_IMPORTS, CDI, CGROUP, DEFAULT, RUNC_SHIM, RUNTIMES, Path, Version
from .edit import FILE_HEAD, Editor
from .handler import HandlerBuilder, is_variable
from .types import Plan, Request, State
from .values import copy, has
from .voided import find_voided, refuse_lost_default, voided_runc


def plan_present(request: Request, state: State, parse: Parser) -> Plan:
    """Return the edits that add or correct the handler; none if the state is up to date.

    :raises KubegpuError: the configuration does not allow the handler.
    """
    request.check()
    for file in (state.root, state.drop_in):
        check_config_version(file, state.version)
    return _Planner(request, state, parse).present()


class _Planner:
    def __init__(self, request: Request, state: State, parse: Parser) -> None:
        self.request = request
        self.state = state
        self.parse = parse
        self.editor = Editor(parse, last=state.root.path)
        self.reasons: list[str] = []
        self.warnings: list[str] = []
        self.handler = HandlerBuilder(request, state)

    def present(self) -> Plan:
        state, request = self.state, self.request
        target = self.target()
        self.editor.open(target)
        existing = table(state.explicit, (*RUNTIMES, request.name))
        if target.text is None or not target.data:
            self.start_file(target)
        refuse_lost_default(state, request.name)
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
        if voided := find_voided(state):
            self.warnings.append(voided.warning)
        return self.plan()

    def plan(self) -> Plan:
        edits = []
        for edit in self.editor.edits():
            if all(change.path == ("version",) for change in edit.changes):
                # Nothing but the version was written: the handler exists in another file.
                self.reasons = [
                    reason for reason in self.reasons if reason != _not_there(edit.path)
                ]
            else:
                edits.append(edit)
        name, _runtime = self.handler.sources()[0]
        return Plan(tuple(edits), tuple(self.reasons), tuple(self.warnings), name)

    # -- target ---------------------------------------------------------------------------------

    def target(self) -> ConfigFile:
        """Return the file that gets the handler."""
        state, request = self.state, self.request
        holders = self.writable_holders()
        if holders:
            return self.checked(holders[-1])
        wanted = request.layout
        if wanted == "auto":
            wanted = "drop_in" if self.can_drop_in() else "in_place"
        if wanted == "drop_in":
            return self.drop_in()
        if state.deep_merge:
            return state.root
        target = self.checked(state.governing)
        if target.path != state.root.path:
            self.reasons.append(
                f"{target.path} is edited, not {state.root.path}: in containerd "
                f"{_dotted(state.version)} its CRI table replaces that of every file before it."
            )
        return target

    def writable_holders(self) -> list[ConfigFile]:
        """Return the editable files that define the handler; the last one takes effect."""
        state = self.state
        holders = state.defining((*RUNTIMES, self.request.name))
        if not state.deep_merge:
            holders = [file for file in holders if file.path == state.governing.path]
        return [file for file in holders if not file.generated]

    def checked(self, file: ConfigFile) -> ConfigFile:
        if file.fragment:
            return file
        if file.path != self.state.root.path and file.version != self.state.config_version:
            raise KubegpuError(
                f"{file.path} is of config version {file.version}, but {self.state.root.path}, "
                f"which imports it, is of version {self.state.config_version}: containerd does not "
                "read the two together.",
                next_step=f"Write {file.path} in version {self.state.config_version}.",
            )
        return file

    def imports_drop_in(self) -> bool:
        state = self.state
        path = self.request.drop_in_path
        if state.merged or imports_path(state.root, self.request.config_path, path, state.version):
            return True
        return (
            state.version >= BUILTIN_IMPORTS
            and state.root.text is not None
            and "imports" not in state.root.data
            and any(
                imports_path(ConfigFile("", "", {"imports": [pattern]}), "/", path, state.version)
                for pattern in state.builtin_imports
            )
        )

    def can_drop_in(self) -> bool:
        state = self.state
        return (
            state.deep_merge
            and bool(state.root.data)
            and state.root.version > 1
            and self.imports_drop_in()
        )

    def drop_in(self) -> ConfigFile:
        state, request = self.state, self.request
        drop_in = state.drop_in
        if drop_in.data:
            self.checked(drop_in)
        if not state.deep_merge:
            other = [file for file in state.defining(()) if file.path != drop_in.path]
            if other:
                raise KubegpuError(
                    f"A drop-in file cannot be used with containerd {_dotted(state.version)} here: "
                    f"its CRI table would replace the one in {other[-1].path} as a whole.",
                    evidence=f"{other[-1].path} sets {'.'.join(state.cri)}",
                    next_step="Use layout: in_place (or auto).",
                )
        if not self.imports_drop_in():
            root = state.root
            self.editor.open(root)
            if root.text is None or not root.data:
                self.start_file(root)
            self.editor.append(root.path, ("imports",), request.drop_in_path)
            self.reasons.append(f"{root.path} does not import {request.drop_in_path} yet.")
        return drop_in

    def start_file(self, target: ConfigFile) -> None:
        """Write the config version into a file without data."""
        version = self.state.config_version
        if version == 1 or target.fragment:
            # Version 1 is not written, and a fragment has the version of its template.
            return
        if target.text is None:
            self.editor.replace_text(target.path, FILE_HEAD)
            self.reasons.append(_not_there(target.path))
        self.editor.set(target.path, ("version",), version)

    # -- the handler ---------------------------------------------------------------------------

    def explicit_runc(self, target: ConfigFile) -> None:
        """Write the built-in runtimes explicitly where another entry would drop them."""
        state = self.state
        explicit = table(state.explicit, RUNTIMES)
        if state.version >= (2, 0) or (explicit and not self.runc_is_missing()):
            return
        lost = voided_runc(state)
        if lost is not None:
            self.editor.set_table(target.path, (*state.cri, *RUNTIMES, "runc"), copy(lost[1]))
            self.reasons.append(f"The runtime runc of {lost[0]} is copied to {target.path}.")
            return
        runc: dict[str, Any] = {"runtime_type": RUNC_SHIM}
        for key, value in table(self.handler.source(), ("options",)).items() if explicit else ():
            # The other runtimes match the cgroup driver of the kubelet; runc must match it too.
            if key.lower() == CGROUP:
                runc["options"] = {key: value}
        runtimes: Mapping[str, Any] = {"runc": runc}
        if not explicit and state.effective is not None and state.effective.runtimes:
            runtimes = state.effective.runtimes
        for name, runtime in runtimes.items():
            if name == self.request.name:
                continue
            self.editor.set_table(
                target.path, (*state.cri, *RUNTIMES, name), copy(meaning(runtime))
            )
            self.reasons.append(
                f"The runtime {name} is built in; containerd {_dotted(state.version)} drops it "
                f"as soon as {target.path} defines another one, so it is written explicitly."
            )

    def runc_is_missing(self) -> bool:
        """Return whether runc is the default but not defined, so that CRI cannot load."""
        return self.state.default == "runc" and "runc" not in table(self.state.explicit, RUNTIMES)

    def runtime_types(self) -> None:
        """Ensure that the runtime to inherit from has a type; containerd needs it to start pods."""
        state = self.state
        typed = [name for name, _runtime in self.handler.sources()]
        for name in self.handler.candidates():
            if name in typed:
                return
            if self.handler.has_no_type(name):
                break
        else:
            return
        holder = state.defining((*RUNTIMES, name))[-1] if state.deep_merge else state.governing
        path = (*state.cri, *RUNTIMES, name)
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
        self.handler.completed.add(name)

    def report_source(self) -> None:
        """Report differences between the default runtime (inherited from) and runc."""
        name, source = self.handler.sources()[0]
        runc = next((runtime for other, runtime in self.handler.sources() if other == "runc"), None)
        if name == "runc" or runc is None:
            return
        one, other = (fold(meaning(table(runtime, ("options",)))) for runtime in (source, runc))
        differing = sorted(
            key for key in {*one, *other} - {BINARY.lower()} if one.get(key) != other.get(key)
        )
        if not differing:
            return
        message = (
            f"The options of {self.request.name} are those of {name}, the default runtime; runc "
            f"has others: {', '.join(differing)}."
        )
        if CGROUP in differing and table(self.state.explicit, (*RUNTIMES, "runc")):
            # One of the two does not match the kubelet.
            self.warnings.append(
                f"{message} Only one of the two suits the kubelet's cgroup driver: correct the "
                "other."
            )
        else:
            self.reasons.append(message)

    def new_handler(self, target: ConfigFile) -> None:
        state, request = self.state, self.request
        if not self.handler.source():
            self.warnings.append(
                "The node has no runc runtime to inherit from, so the handler's options are "
                "containerd's defaults: check that SystemdCgroup suits the kubelet."
            )
        path = (*state.cri, *RUNTIMES, request.name)
        self.editor.set_table(target.path, path, self.handler.wanted())
        self.reasons.append(f"The handler {request.name} is not in {target.path} yet.")

    def correct_handler(self, target: ConfigFile, existing: Mapping[str, Any]) -> None:
        """Correct differences in an existing handler; additional keys stay."""
        base = (*self.state.cri, *RUNTIMES, self.request.name)
        wanted = self.handler.wanted()
        enforced = {BINARY.lower(), CGROUP, *(key.lower() for key in self.request.options)}
        if existing.get("runtime_type") != wanted["runtime_type"]:
            self.put(target, (*base, "runtime_type"), wanted["runtime_type"])
        for key, value in wanted.items():
            if key not in ("runtime_type", "options") and key not in existing:
                self.put(target, (*base, key), value)
        present = table(existing, ("options",))
        inherited = fold(wanted["options"])
        if CGROUP not in inherited and meaning(fold(present)).get(CGROUP):
            # It is off in runc by default, so it is switched off in the handler too.
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
        """Override the handler of a distribution as a whole if it differs."""
        differing = self.differing(existing)
        if not differing:
            return
        name = self.request.name
        if target.fragment:
            raise KubegpuError(
                f"{self.state.root.path} has a handler {name} already, which is made without this "
                f"module, and {target.path} cannot change it: {', '.join(differing)}.",
                evidence=f"{name} = {existing}",
                next_step="Use another name for the handler, or leave runtime_path and options as "
                "they are there.",
            )
        wanted = self.handler.wanted()
        options: dict[str, Any] = copy(table(existing, ("options",)))
        inherited = wanted["options"]
        if CGROUP in differing and CGROUP not in fold(inherited):
            inherited["SystemdCgroup"] = False
        for key, value in inherited.items():
            # Keep the existing spelling: two spellings of one option would contradict each other.
            spelled = next((other for other in options if other.lower() == key.lower()), key)
            options[spelled] = value
        wanted = {**copy(existing), **wanted, "options": options}
        self.editor.set_table(target.path, (*self.state.cri, *RUNTIMES, name), wanted)
        self.reasons.append(
            f"The handler {name} in {self.state.root.path} differs: {', '.join(differing)}."
        )

    def differing(self, existing: Mapping[str, Any]) -> list[str]:
        """Return the keys of a handler that differ from the request."""
        wanted = self.handler.wanted()
        found = [
            key
            for key, value in wanted.items()
            if key != "options"
            and (key not in existing or (key == "runtime_type" and existing[key] != value))
        ]
        present = fold(table(existing, ("options",)))
        options = fold(wanted["options"])
        enforced = {BINARY.lower(), *(key.lower() for key in self.request.options)}
        for key, value in options.items():
            if key != CGROUP and (
                key not in present or (key in enforced and present[key] != value)
            ):
                found.append(key)
        if bool(present.get(CGROUP)) != bool(options.get(CGROUP)):
            found.append(CGROUP)
        return found

    def put(self, target: ConfigFile, path: Path, value: Any) -> None:
        self.editor.set(target.path, path, value)
        self.reasons.append(f"{'.'.join(path[2:])} is not {value!r} in {target.path}.")

    def drop(self, path: Path, why: str) -> None:
        for file in self.state.files:
            if has(file.data, path):
                self.editor.open(file)
                self.editor.delete(file.path, path)
                self.reasons.append(f"{'.'.join(path[2:])} is removed from {file.path}: {why}.")

    # -- other settings --------------------------------------------------------------------

    def default(self, target: ConfigFile) -> None:
        state, request = self.state, self.request
        current = state.default
        holders = state.defining(DEFAULT) if state.deep_merge else []
        holder = target
        if holders and not self.loads_after(target, holders[-1]):
            holder = holders[-1]
        path = state.cri + DEFAULT
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
                f"An earlier run made {request.name} the default runtime; the original default is "
                "restored."
            )
        elif current == request.name:
            self.reasons.append(
                f"{request.name} is the default runtime in {state.root.path} already, not by us: "
                "this is left alone."
            )
        else:
            self.report_dangling(current)

    def report_dangling(self, current: str) -> None:
        known = {*table(self.state.explicit, RUNTIMES), self.request.name}
        if self.state.effective is not None:
            known |= set(self.state.effective.runtimes)
            if is_variable(current):
                current = self.state.effective.default
        if self.state.effective is None and (self.state.version >= (2, 0) or len(known) == 1):
            known.add("runc")
        if current not in known and not is_variable(current):
            self.warnings.append(
                f"The default runtime {current!r} does not exist, so no ordinary pod can start: "
                "correct default_runtime_name, or use set_default."
            )

    def our_default(self) -> tuple[ConfigFile, tuple[Any, ...]] | None:
        path = self.state.cri + DEFAULT
        for file in self.state.files:
            for change in self.state.handler_changes.get(file.path, ()):
                if change.path == path and change.after == (self.request.name,):
                    return file, change.before
        return None

    def loads_after(self, one: ConfigFile, other: ConfigFile) -> bool:
        """Return whether ``one`` is loaded after ``other``, or is the same file."""
        if other.generated:
            return True
        order = [file.path for file in self.state.files]
        if one.path not in order:
            # A drop-in file that does not exist yet is loaded in the order of its name.
            return other.path == order[0] or other.path < one.path
        return order.index(one.path) >= order.index(other.path)

    def cdi(self, target: ConfigFile) -> None:
        state, wanted = self.state, self.request.cdi
        if wanted is None:
            return
        if state.version < (1, 7):
            if wanted:
                self.reasons.append(
                    f"cdi is ignored: containerd {_dotted(state.version)} has no CDI (1.7 is the "
                    "first that has it)."
                )
            return
        current = state.explicit.get("enable_cdi", state.version >= (2, 0))
        if bool(current) == wanted:
            return
        holders = state.defining(CDI) if state.deep_merge else []
        holder = target
        if holders and not self.loads_after(target, holders[-1]):
            holder = holders[-1]
        self.editor.open(holder)
        self.editor.set(holder.path, state.cri + CDI, wanted)
        self.reasons.append(f"CDI is {'off' if wanted else 'on'}.")

    def report_ignored(self) -> None:
        state = self.state
        if state.version >= (2, 0) and state.root.version == 1:
            ignored = table(state.root.data, ("plugins", "cri"))
            if ignored:
                self.warnings.append(
                    f"containerd {_dotted(state.version)} ignores plugins.cri in "
                    f"{state.root.path}, which names no config version: containerd config "
                    "migrate shows the file in the present format."
                )
        old = table(state.explicit, ("containerd", "default_runtime"))
        if self.request.set_default and old.get("runtime_type") and state.version < (2, 0):
            raise KubegpuError(
                "The default runtime is given by the deprecated table "
                "containerd.default_runtime, which wins over default_runtime_name.",
                evidence=f"runtime_type = {old['runtime_type']!r}",
                next_step="Write that runtime below containerd.runtimes and name it by "
                "default_runtime_name, then run again.",
            )

    def cri_enabled(self) -> None:
        for file in self.state.files:
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


def _not_there(path: str) -> str:
    return f"{path} does not exist yet."


def _dotted(version: Version) -> str:
    return f"{version[0]}.{version[1]}"

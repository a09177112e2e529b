# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The phases of the module cuda_toolkit: plan, begin, runfile, uninstall, finish."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .._core.errors import InputError, KubegpuError
from .._core.printable import printable
from .._host.files import FileState, read_file
from .._record.file_record import Undo
from .._record.transaction import FileChange, applied
from .compiler import CompileTest
from .config_files import LINK, LOADER, PATHS, PROFILE
from .link import Link, LinkChange, revert_link, set_link
from .options import read_options
from .plan import plan_cuda
from .record import FILES, RECORD, SET, Record
from .types import PACKAGE, RUNFILE, Plan, Request

if TYPE_CHECKING:
    from .._record.store import StateStore
    from .host import CudaNode

_MODE = 0o644


@dataclass(frozen=True)
class Dependencies:
    """What a phase needs from the module and the node.

    :param params: the module's options, and ``controller``, the version of ansible-core.
    :param facts: reads the fact ``gpu_node`` from the node.
    :param temporary: returns the module's temporary folder.
    :param diff: whether the result includes a diff.
    """

    params: Mapping[str, Any]
    node: CudaNode
    store: StateStore
    facts: Callable[[], dict[str, Any]]
    warn: Callable[[str], None]
    temporary: Callable[[], str]
    diff: bool


@dataclass(frozen=True)
class Context:
    """The node, the request and the plan of one call of the module.

    :param record: what earlier runs recorded on the node; None without an earlier run.
    """

    dependencies: Dependencies
    request: Request
    plan: Plan
    record: Record | None

    @property
    def params(self) -> Mapping[str, Any]:
        return self.dependencies.params

    @property
    def node(self) -> CudaNode:
        return self.dependencies.node

    @property
    def store(self) -> StateStore:
        return self.dependencies.store

    @property
    def present(self) -> bool:
        return bool(self.params["state"] == "present")

    @property
    def recorded(self) -> Record:
        return self.record or Record()

    def warn(self, text: str) -> None:
        self.dependencies.warn(text)

    def save(self, record: Record) -> None:
        self.store.put(RECORD, record.to_json())


def run_phase(phase: str, dependencies: Dependencies) -> dict[str, Any]:
    """Run one phase and return the module's result. All phases but ``plan`` hold the node's lock.

    :raises KubegpuError: the phase failed.
    """
    if phase == "plan":
        return _plan(_read_context(dependencies))
    with dependencies.store.transaction():
        return PHASES[phase](_read_context(dependencies))


def _read_context(dependencies: Dependencies) -> Context:
    params = dependencies.params
    record = Record.from_json(dependencies.store.get(RECORD))
    request, tables = read_options(params)
    plan = Plan()
    if params["state"] == "present":
        facts = dependencies.facts()
        # The folder of an interrupted installer is not a toolkit.
        pending = record.pending if record else ()
        toolkits = [kit for kit in facts["cuda"]["toolkits"] if kit["path"] not in pending]
        facts = {**facts, "cuda": {**facts["cuda"], "toolkits": toolkits}}
        plan = plan_cuda(facts, request, tables)
    return Context(dependencies, request, plan, record)


# The phases.


def _plan(context: Context) -> dict[str, Any]:
    """Return the differences and the tasks for the action plugin; change nothing."""
    return _plan_present(context) if context.present else _plan_absent(context)


def _plan_present(context: Context) -> dict[str, Any]:
    plan = context.plan
    if plan.action == "refuse":
        raise InputError(
            "The requested CUDA toolkits cannot be installed; nothing was changed.\n"
            + "\n".join(f"- {reason}" for reason in plan.reasons)
        )
    for text in plan.warnings:
        context.warn(printable(text))
    _check_host_compiler(context)
    link = context.node.read_link()
    diff = [
        _diff_entry(f"CUDA {entry['version']} by runfile", "absent\n", f"{entry['path']}\n")
        for entry in plan.runfiles
    ]
    change = LinkChange(link, link)
    if plan.link is not None:
        change = set_link(LINK, link, plan.link["target"])
    if change.changed:
        diff.append(_diff_entry(LINK, change.before.describe(), change.after.describe()))
    diff.extend(
        _diff_entry(path, _decoded(file.before), _decoded(file.after))
        for path, file in _file_changes(context).items()
        if file.changed
    )
    sets = []
    if plan.change_packages:
        sets.append(
            {
                "name": SET,
                "packages": dict(plan.packages),
                "hold": plan.hold,
                **({"lock": dict(plan.lock)} if plan.lock["patterns"] else {}),
                "obsolete": list(plan.obsolete),
                "background": True,
            }
        )
    result = _build_result(context, change.after, diff)
    result["_tasks"] = {
        # The role adds the repository.
        "needed": plan.change_packages or bool(diff),
        "sets": sets,
        "runfiles": [dict(entry) for entry in plan.runfiles],
    }
    return result


def _plan_absent(context: Context) -> dict[str, Any]:
    record = context.recorded
    link = context.node.read_link()
    managed = (*record.runfiles, *record.pending)
    diff = [_diff_entry(f"{path} by runfile", f"{path}\n", "absent\n") for path in managed]
    after = link
    if record.link is not None and record.target in ("", link.target):
        after = record.link if record.target else link
    if link.describe() != after.describe():
        diff.append(_diff_entry(LINK, link.describe(), after.describe()))
    diff.extend(
        _diff_entry(path, _decoded(file.before), _decoded(file.after))
        for path, file in _file_changes(context).items()
        if file.changed
    )
    result = _build_result(context, after, diff)
    needed = bool(diff) or context.record is not None
    result["_tasks"] = {
        "needed": needed,
        "sets": [{"name": SET, "state": "absent", "background": True}] if needed else [],
        "runfiles": [],
    }
    return result


def _begin(context: Context) -> dict[str, Any]:
    """Record the current link before the first change."""
    record = context.recorded
    if record.link is None:
        record = replace(record, link=context.node.read_link())
    context.save(record)
    return {"changed": True}


def _run_runfile(context: Context) -> dict[str, Any]:
    """Install one toolkit from a runfile on the node."""
    params = context.params
    entry = next(
        (one for one in context.plan.runfiles if one["version"] == params["_version"]), None
    )
    if entry is None:
        return {"changed": False}
    path = str(entry["path"])
    if path in context.recorded.pending:
        context.node.remove(path)
    record = context.recorded.with_pending(path)
    context.save(record)
    try:
        context.node.install(
            entry["version"],
            params["_runfile"],
            path,
            entry["arguments"],
            params["install_timeout"],
            entry["temporary"],
        )
    except KubegpuError:
        context.save(record.with_finished(path, installed=False))
        raise
    context.save(record.with_finished(path, installed=True))
    return {"changed": True}


def _uninstall(context: Context) -> dict[str, Any]:
    """Run the uninstallers of the toolkits that this module installed from runfiles."""
    record = context.recorded
    left = []
    for path in record.pending:
        context.node.remove(path)
        record = record.with_finished(path, installed=False)
        context.save(record)
    for path in record.runfiles:
        remaining = context.node.uninstall(path)
        if remaining:
            left.append(remaining)
            context.warn(
                f"{remaining} is not empty after its uninstaller; what is left there was not "
                "installed by it."
            )
        record = replace(record, runfiles=tuple(one for one in record.runfiles if one != path))
        context.save(record)
    return {"changed": True, "left": left}


def _finish(context: Context) -> dict[str, Any]:
    """Set the link, test the compilers and write the files, after packages and runfiles."""
    return _finish_present(context) if context.present else _finish_absent(context)


def _finish_present(context: Context) -> dict[str, Any]:
    plan, node, record = context.plan, context.node, context.recorded
    if plan.action not in ("none", "refuse") or plan.change_packages:
        raise KubegpuError(
            "The CUDA toolkits still differ from the request after the change.",
            evidence="; ".join(plan.reasons),
            next_step="Run again: the next run continues where this one stopped.",
        )
    link = node.read_link()
    if plan.link is not None:
        change = set_link(LINK, link, plan.link["target"])
        added = tuple(choice for choice in change.after.choices if choice not in link.choices)
        if any("--install" in command for command in change.commands):
            added = (plan.link["target"],)
        record = replace(
            record,
            link=record.link or link,
            target=plan.link["target"],
            choices=tuple(dict.fromkeys((*record.choices, *added))),
        )
        context.save(record)
        node.change_link(change)
        link = change.after
    compilers = _test_compilers(context)
    files = _file_changes(context)
    # The profile is written last: if it is missing, the next run repeats the compiler test.
    for path in (LOADER, PROFILE):
        if path not in files:
            continue
        with applied(context.store, [files[path]] if files[path].changed else []):
            pass
        if path == LOADER:
            _refresh_loader_cache(context)
    return {**_build_result(context, link, []), "changed": True, "compilers": compilers}


def _finish_absent(context: Context) -> dict[str, Any]:
    node, record = context.node, context.recorded
    link = node.read_link()
    change = revert_link(LINK, link, before=record.link, target=record.target, added=record.choices)
    node.change_link(change)
    if change.warning:
        context.warn(printable(change.warning))
    for file in _file_changes(context).values():
        context.store.write_undone(file.key, file.after)
    _refresh_loader_cache(context)
    context.store.drop(RECORD)
    return {**_build_result(context, change.after, []), "changed": True}


PHASES = {
    "plan": _plan,
    "begin": _begin,
    "runfile": _run_runfile,
    "uninstall": _uninstall,
    "finish": _finish,
}


# Helpers.


def _check_host_compiler(context: Context) -> None:
    """Refuse a runfile if the node has no host compiler; only packages depend on one.

    :raises InputError: the host compiler is not installed.
    """
    sources = {one["source"] for one in context.plan.versions if one["action"] != "none"}
    if not context.request.verify or RUNFILE not in sources or PACKAGE in sources:
        return
    name = context.request.host_compiler or "g++"
    if not context.node.has_compiler(name):
        raise InputError(
            f"There is no {name} on this node, which nvcc needs to compile; nothing was changed.",
            next_step="Install it (on Debian and Ubuntu: build-essential), name another one with "
            "host_compiler, or skip the compiler test (verify: false).",
        )


def _test_compilers(context: Context) -> dict[str, str]:
    found = {}
    for one in context.plan.versions:
        test = CompileTest(
            one["version"],
            context.node.place(one["path"]),
            one["architecture"],
            context.request.host_compiler,
        )
        if not context.request.verify:
            continue
        found[one["version"]], host = context.node.test_compiler(
            test, context.dependencies.temporary()
        )
        if host:
            context.warn(
                f"nvcc of CUDA {one['version']} rejects this node's default compiler; it "
                f"compiles with nvcc -ccbin {host}."
            )
    return found


def _refresh_loader_cache(context: Context) -> None:
    result = context.node.refresh_loader()
    if not result.ok:
        context.warn(printable(f"ldconfig failed: {result.last_output()}"))


def _file_changes(context: Context) -> dict[str, FileChange]:
    """Return the change of each file: those of the plan, or, for absent, those of the record."""
    changes = {}
    for path in PATHS:
        key = f"{FILES}{path}"
        before = read_file(context.node.place(path))
        if context.present:
            if path in context.plan.files:
                text = context.plan.files[path]
                after = replace(before, content=text.encode(), mode=before.mode or _MODE)
                changes[path] = FileChange(key, before, after, details={"text": text})
        elif context.store.record(key) is not None:
            changes[path] = FileChange(key, before, _reverted(context, key, before), undo=True)
    return changes


def _reverted(context: Context, key: str, before: FileState) -> FileState:
    undo, target = context.store.undo_target(key, before)
    if undo is not Undo.REMOVE_LINES or before.content is None:
        return target
    file_record = context.store.record(key)
    text = str(file_record.details.get("text", "")) if file_record else ""
    managed = set(text.splitlines())
    lines = [
        line for line in _decoded(before).splitlines(keepends=True) if line.rstrip() not in managed
    ]
    if not lines:
        return FileState(before.path)
    return replace(before, content="".join(lines).encode())


def _decoded(state: FileState) -> str:
    return "" if state.content is None else state.content.decode(errors="replace")


def _diff_entry(title: str, before: str, after: str) -> dict[str, str]:
    return {"before_header": title, "after_header": title, "before": before, "after": after}


def _build_result(context: Context, link: Link, diff: list[dict[str, str]]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "changed": bool(diff),
        "plan": context.plan.to_json() if context.present else {},
        "default": link.target or None,
        "compilers": {},
        "left": [],
    }
    if context.dependencies.diff:
        result["diff"] = diff
    return result

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
from .compiler import Proof
from .config_files import LINK, LOADER, PATHS, PROFILE
from .link import Link, LinkChange, give_link_back, set_link
from .options import read_options
from .plan import plan_cuda
from .record import FILES, RECORD, SET, Memory
from .types import PACKAGE, RUNFILE, CudaPlan, CudaWish

if TYPE_CHECKING:
    from .._record.store import StateStore
    from .host import CudaNode

_MODE = 0o644


@dataclass(frozen=True)
class Dependencies:
    """What a phase needs of the module and of the node.

    :param params: the module's options, and ``controller``, the version of ansible-core.
    :param facts: returns the facts ``gpu_node``, read anew.
    :param temporary: returns the path of a folder that the module removes at its end.
    :param diff: whether a diff is asked for.
    """

    params: Mapping[str, Any]
    node: CudaNode
    store: StateStore
    facts: Callable[[], dict[str, Any]]
    warn: Callable[[str], None]
    temporary: Callable[[], str]
    diff: bool


@dataclass(frozen=True)
class Work:
    """The node as it stands, what is wished, and what follows from both."""

    to: Dependencies
    wish: CudaWish
    plan: CudaPlan
    memory: Memory | None

    @property
    def params(self) -> Mapping[str, Any]:
        return self.to.params

    @property
    def node(self) -> CudaNode:
        return self.to.node

    @property
    def store(self) -> StateStore:
        return self.to.store

    @property
    def present(self) -> bool:
        return bool(self.params["state"] == "present")

    @property
    def known(self) -> Memory:
        return self.memory or Memory()

    def warn(self, text: str) -> None:
        self.to.warn(text)

    def keep(self, memory: Memory) -> None:
        self.store.put(RECORD, memory.to_json())


def run_phase(phase: str, dependencies: Dependencies) -> dict[str, Any]:
    """Run one phase and return the module's result; all but ``plan`` hold the node's lock.

    :raises KubegpuError: the phase failed.
    """
    if phase == "plan":
        return _plan(_look(dependencies))
    with dependencies.store.transaction():
        return PHASES[phase](_look(dependencies))


def _look(dependencies: Dependencies) -> Work:
    params = dependencies.params
    memory = Memory.from_json(dependencies.store.get(RECORD))
    wish, tables = read_options(params)
    plan = CudaPlan()
    if params["state"] == "present":
        facts = dependencies.facts()
        # What an installer left that was killed is no toolkit.
        pending = memory.pending if memory else ()
        toolkits = [kit for kit in facts["cuda"]["toolkits"] if kit["path"] not in pending]
        facts = {**facts, "cuda": {**facts["cuda"], "toolkits": toolkits}}
        plan = plan_cuda(facts, wish, tables)
    return Work(dependencies, wish, plan, memory)


# What each call of the action does.


def _plan(work: Work) -> dict[str, Any]:
    """Return what differs, and what is to be done; nothing is changed."""
    return _plan_present(work) if work.present else _plan_absent(work)


def _plan_present(work: Work) -> dict[str, Any]:
    plan = work.plan
    if plan.action == "refuse":
        raise InputError(
            "The CUDA toolkits cannot be set up as asked for; nothing was changed.\n"
            + "\n".join(f"- {reason}" for reason in plan.reasons)
        )
    for text in plan.warnings:
        work.warn(printable(text))
    _see_compiler(work)
    link = work.node.read_link()
    diff = [
        _entry(f"CUDA {entry['version']} by runfile", "absent\n", f"{entry['path']}\n")
        for entry in plan.runfiles
    ]
    change = LinkChange(link, link)
    if plan.link is not None:
        change = set_link(LINK, link, plan.link["target"])
    if change.changed:
        diff.append(_entry(LINK, change.before.shown(), change.after.shown()))
    diff.extend(
        _entry(path, _text(file.before), _text(file.after))
        for path, file in _file_changes(work).items()
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
    result = _answer(work, change.after, diff)
    result["_tasks"] = {
        # The repository is the role's work.
        "needed": plan.change_packages or bool(diff),
        "sets": sets,
        "runfiles": [dict(entry) for entry in plan.runfiles],
    }
    return result


def _plan_absent(work: Work) -> dict[str, Any]:
    memory = work.known
    link = work.node.read_link()
    mine = (*memory.runfiles, *memory.pending)
    diff = [_entry(f"{path} by runfile", f"{path}\n", "absent\n") for path in mine]
    after = link
    if memory.link is not None and memory.target in ("", link.target):
        after = memory.link if memory.target else link
    if link.shown() != after.shown():
        diff.append(_entry(LINK, link.shown(), after.shown()))
    diff.extend(
        _entry(path, _text(file.before), _text(file.after))
        for path, file in _file_changes(work).items()
        if file.changed
    )
    result = _answer(work, after, diff)
    needed = bool(diff) or work.memory is not None
    result["_tasks"] = {
        "needed": needed,
        "sets": [{"name": SET, "state": "absent", "background": True}] if needed else [],
        "runfiles": [],
    }
    return result


def _begin(work: Work) -> dict[str, Any]:
    """Record what stands there, before anything is changed."""
    memory = work.known
    if memory.link is None:
        memory = replace(memory, link=work.node.read_link())
    work.keep(memory)
    return {"changed": True}


def _run_runfile(work: Work) -> dict[str, Any]:
    """Install by the runfile that lies on the node."""
    params = work.params
    entry = next((one for one in work.plan.runfiles if one["version"] == params["_version"]), None)
    if entry is None:
        return {"changed": False}
    path = str(entry["path"])
    if path in work.known.pending:
        work.node.remove(path)
    memory = work.known.begun(path)
    work.keep(memory)
    try:
        work.node.install(
            entry["version"],
            params["_runfile"],
            path,
            entry["arguments"],
            params["install_timeout"],
        )
    except KubegpuError:
        work.keep(memory.ended(path, installed=False))
        raise
    work.keep(memory.ended(path, installed=True))
    return {"changed": True}


def _uninstall(work: Work) -> dict[str, Any]:
    """Remove the toolkits that we installed by runfile, by their own uninstallers."""
    memory = work.known
    left = []
    for path in memory.pending:
        work.node.remove(path)
        memory = memory.ended(path, installed=False)
        work.keep(memory)
    for path in memory.runfiles:
        rest = work.node.uninstall(path)
        if rest:
            left.append(rest)
            work.warn(
                f"{rest} is not empty after its uninstaller; what is left there was not "
                "installed by it."
            )
        memory = replace(memory, runfiles=tuple(one for one in memory.runfiles if one != path))
        work.keep(memory)
    return {"changed": True, "left": left}


def _finish(work: Work) -> dict[str, Any]:
    """Do what follows packages and runfiles: link, proof, files; then finish the record."""
    return _finish_present(work) if work.present else _finish_absent(work)


def _finish_present(work: Work) -> dict[str, Any]:
    plan, node, memory = work.plan, work.node, work.known
    if plan.action not in ("none", "refuse") or plan.change_packages:
        raise KubegpuError(
            "The CUDA toolkits are not as they should be after the change.",
            evidence="; ".join(plan.reasons),
            next_step="Run again: it goes on where this run stopped.",
        )
    link = node.read_link()
    if plan.link is not None:
        change = set_link(LINK, link, plan.link["target"])
        added = tuple(choice for choice in change.after.choices if choice not in link.choices)
        if any("--install" in command for command in change.commands):
            added = (plan.link["target"],)
        memory = replace(
            memory,
            link=memory.link or link,
            target=plan.link["target"],
            choices=tuple(dict.fromkeys((*memory.choices, *added))),
        )
        work.keep(memory)
        node.change_link(change)
        link = change.after
    compilers = _prove(work)
    files = _file_changes(work)
    # The profile is written last. Until it is there a run is not through, and the next one goes
    # on, with the proof.
    for path in (LOADER, PROFILE):
        if path not in files:
            continue
        with applied(work.store, [files[path]] if files[path].changed else []):
            pass
        if path == LOADER:
            _refresh(work)
    return {**_answer(work, link, []), "changed": True, "compilers": compilers}


def _finish_absent(work: Work) -> dict[str, Any]:
    node, memory = work.node, work.known
    link = node.read_link()
    change = give_link_back(
        LINK, link, before=memory.link, target=memory.target, added=memory.choices
    )
    node.change_link(change)
    if change.warning:
        work.warn(printable(change.warning))
    for file in _file_changes(work).values():
        work.store.write_undone(file.key, file.after)
    _refresh(work)
    work.store.drop(RECORD)
    return {**_answer(work, change.after, []), "changed": True}


PHASES = {
    "plan": _plan,
    "begin": _begin,
    "runfile": _run_runfile,
    "uninstall": _uninstall,
    "finish": _finish,
}


# Helpers.


def _see_compiler(work: Work) -> None:
    """Refuse a runfile whose toolkit could not compile: only packages bring a host compiler."""
    sources = {one["source"] for one in work.plan.versions if one["action"] != "none"}
    if not work.wish.verify or RUNFILE not in sources or PACKAGE in sources:
        return
    name = work.wish.host_compiler or "g++"
    if not work.node.has_compiler(name):
        raise InputError(
            f"There is no {name} on this node, which nvcc needs to compile; nothing was changed.",
            next_step="Install it (on Debian and Ubuntu: build-essential), name another one with "
            "host_compiler, or leave the proof out (verify: false).",
        )


def _prove(work: Work) -> dict[str, str]:
    found = {}
    for one in work.plan.versions:
        proof = Proof(
            one["version"],
            work.node.place(one["path"]),
            one["architecture"],
            work.wish.host_compiler,
        )
        if not work.wish.verify:
            continue
        found[one["version"]], host = work.node.prove(proof, work.to.temporary())
        if host:
            work.warn(
                f"nvcc of CUDA {one['version']} does not take this node's default compiler; it "
                f"compiles with nvcc -ccbin {host}."
            )
    return found


def _refresh(work: Work) -> None:
    answer = work.node.refresh_loader()
    if not answer.ok:
        work.warn(printable(f"ldconfig failed: {answer.words()}"))


def _file_changes(work: Work) -> dict[str, FileChange]:
    """Return the change of each file that is to be there, or, for absent, of each that we wrote."""
    changes = {}
    for path in PATHS:
        key = f"{FILES}{path}"
        before = read_file(work.node.place(path))
        if work.present:
            if path in work.plan.files:
                text = work.plan.files[path]
                after = replace(before, content=text.encode(), mode=before.mode or _MODE)
                changes[path] = FileChange(key, before, after, details={"text": text})
        elif work.store.record(key) is not None:
            changes[path] = FileChange(key, before, _undone(work, key, before), undo=True)
    return changes


def _undone(work: Work, key: str, before: FileState) -> FileState:
    way, target = work.store.undo_target(key, before)
    if way is not Undo.REMOVE_LINES or before.content is None:
        return target
    record = work.store.record(key)
    ours = set(str(record.details.get("text", "")).splitlines()) if record else set()
    lines = [line for line in _text(before).splitlines(keepends=True) if line.rstrip() not in ours]
    if not lines:
        return FileState(before.path)
    return replace(before, content="".join(lines).encode())


def _text(state: FileState) -> str:
    return "" if state.content is None else state.content.decode(errors="replace")


def _entry(title: str, before: str, after: str) -> dict[str, str]:
    return {"before_header": title, "after_header": title, "before": before, "after": after}


def _answer(work: Work, link: Link, diff: list[dict[str, str]]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "changed": bool(diff),
        "plan": work.plan.to_json() if work.present else {},
        "default": link.target or None,
        "compilers": {},
        "left": [],
    }
    if work.to.diff:
        result["diff"] = diff
    return result

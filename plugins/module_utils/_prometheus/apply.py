# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""prometheus_gpu_files: give a Prometheus the targets and rules of GPUs, or take them away."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .._core.errors import KubegpuError
from .._core.redact_lines import redact_lines
from .._host import systemd
from .._host.command import NOT_FOUND, Runner
from .._host.files import FileState, read_file
from .._host.temporary import create_tree, temporary_directory
from .._record.file_record import Undo
from .._record.store import StateStore
from .._record.transaction import FileChange
from .._runtime.engine import Service, change_runtime
from .config import add_lines, not_named, without_lines
from .options import Request
from .targets import expected_text, merge, read_targets, targets_text

FILES = "prometheus_gpu_files::"
_SECONDS = 120


@dataclass(frozen=True)
class Dependencies:
    """Access to the Prometheus host."""

    run: Runner
    store: StateStore
    warn: Callable[[str], None]


def apply(
    request: Request, node: Dependencies, check_mode: bool, absent: bool = False
) -> dict[str, Any]:
    """Write the files and reload Prometheus; return the module's result.

    Without any host the files are removed.

    :raises KubegpuError: promtool refuses the files; the earlier ones are there again.
    """
    with contextlib.nullcontext() if check_mode else node.store.transaction():
        entries = merge(_entries(request, absent), () if absent else request.hosts)
        changes, reasons = _plan(request, node, entries)
        changed = [change for change in changes if change.changed]
        _check_rules(request, changed, node)
        if changes and not check_mode:
            _write(request, node, changes)
        return {
            "changed": bool(changed),
            "hosts": [one["labels"]["__kubegpu_host"] for one in entries],
            "reasons": reasons if changed else [],
            "diff": [one.diff(_shown) for one in changed],
        }


def _shown(content: bytes) -> str:
    return redact_lines(content.decode(errors="replace"))


def _entries(request: Request, absent: bool) -> list[dict[str, Any]]:
    if absent:
        return []
    text = (read_file(request.targets_file).content or b"").decode(errors="replace")
    return read_targets(text, request.targets_file)


def _plan(
    request: Request, node: Dependencies, entries: Sequence[dict[str, Any]]
) -> tuple[list[FileChange], list[str]]:
    """Return the changes in the order in which they are made, and the reasons."""
    wanted: dict[str, str] = {}
    if entries:
        wanted[request.targets_file] = targets_text(entries)
        if request.rules:
            wanted[request.rules_file] = f"{request.rules.rstrip()}\n"
            wanted[request.expected_file] = expected_text(entries)
    changes = []
    reasons = []
    for path in (request.rules_file, request.expected_file, request.targets_file):
        before = read_file(path)
        if path in wanted:
            after = FileState(before.path, wanted[path].encode(), 0o644, before.uid, before.gid)
            changes.append(FileChange(f"{FILES}{path}", before, after))
        elif node.store.record(f"{FILES}{path}") is not None:
            undo, after = node.store.undo_target(f"{FILES}{path}", before)
            # Edited by somebody: it is ours as a whole anyway.
            after = FileState(before.path) if undo is Undo.REMOVE_LINES else after
            changes.append(FileChange(f"{FILES}{path}", before, after, undo=True))
    config, more = _config(request, node, wanted)
    reasons += [f"{one.after.path} changes" for one in changes if one.changed]
    changes = [*changes, *config]
    return [one for one in changes if one.changed or one.undo], [*reasons, *more]


def _config(
    request: Request, node: Dependencies, wanted: dict[str, str]
) -> tuple[list[FileChange], list[str]]:
    """Return the change of Prometheus' own file, and why."""
    key = f"{FILES}{request.config}"
    before = read_file(request.config)
    if wanted and not before.exists:
        raise KubegpuError(
            f"{request.config} does not exist.",
            next_step="Install Prometheus on this host first, or set "
            "gpu_monitoring_prometheus_config to its file.",
        )
    text = (before.content or b"").decode(errors="surrogateescape")
    if not wanted:
        if node.store.record(key) is None:
            return [], []
        undo, after = node.store.undo_target(key, before)
        if undo is Undo.REMOVE_LINES:
            content = without_lines(text).encode(errors="surrogateescape")
            after = replace(before, content=content)
        return [FileChange(key, before, after, undo=True)], ["no host is left"]
    rules = [path for path in wanted if path != request.targets_file]
    if not request.manage_config:
        _missing, reasons = not_named(text, request.config, rules, request.targets_file)
        if reasons:
            node.warn(
                f"Prometheus does not load the GPUs' files: {'; '.join(reasons)}. Next step: add "
                "them, see docs/monitoring-hosts.md."
            )
        return [], []
    new, reasons = add_lines(text, request.config, rules, request.targets_file, request.job)
    if not reasons:
        return [], []
    after = replace(before, content=new.encode(errors="surrogateescape"))
    return [FileChange(key, before, after)], list(reasons)


def _check_rules(request: Request, changes: Sequence[FileChange], node: Dependencies) -> None:
    """Check the new rules before anything is written.

    :raises KubegpuError: promtool refuses them, or is missing.
    """
    new = {change.after.path: change.after.content for change in changes if not change.undo}
    with temporary_directory("kubegpu-", 0o755) as folder:
        copy = f"{folder}/rules.yml"
        for path in (request.rules_file, request.expected_file):
            content = new.get(path)
            if content is not None:
                create_tree((), {copy: content.decode()})
                _promtool(["check", "rules", copy], node, f"promtool refuses {path}.", copy)


def _promtool(arguments: list[str], node: Dependencies, cause: str, shown: str = "") -> None:
    answer = node.run(["promtool", *arguments], timeout=_SECONDS)
    if answer.rc == NOT_FOUND:
        raise KubegpuError(
            "promtool is not on this host: nothing can be checked, so nothing is written.",
            next_step="Install it; Debian's package prometheus has it.",
        )
    if not answer.ok:
        evidence = answer.last_output().replace(shown, "the new file") if shown else ""
        raise KubegpuError(
            cause,
            evidence=evidence or answer.last_output(),
            next_step="Correct gpu_monitoring_rules or Prometheus' own files. Nothing was loaded.",
        )


def _write(request: Request, node: Dependencies, changes: Sequence[FileChange]) -> None:
    daemon = systemd.read_daemon(node.run, request.unit)
    reads = any(one.changed and one.after.path != request.targets_file for one in changes)

    def load() -> None:
        if daemon.active:
            systemd.reload(node.run, request.unit)

    def check() -> None:
        config = read_file(request.config)
        if config.exists:
            _promtool(
                ["check", "config", request.config],
                node,
                f"promtool refuses {request.config} with the new files.",
            )

    if reads and not daemon.active:
        node.warn(f"{request.unit}.service does not run, and was not reloaded.")
    # Targets alone are read again without a reload.
    service = Service("Prometheus", request.unit, node.run, load if reads else None, load)
    change_runtime(node.store, changes, service, written=check)

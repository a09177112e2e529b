# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Entries of the node's record that say that a container runtime has converged. Pure.

A runtime's module that finds nothing to do and changes nothing stores the fingerprint of its
caller's settings, the daemon's process and the signatures that all files had when it read them.
While none of these changes, the module's result would be the same, and the facts return the
fingerprint as ``converged``: the role then skips the module. Any edit, new file, removal,
replacement or restart changes a signature, and the module runs again.

containerd's entry also has the report of ``containerd config dump``: of all programs that the facts
start for a runtime it costs the node most (docs/benchmarks.md).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._core.collection import COLLECTION

# The name that earlier commits used: an entry of theirs is replaced, not left behind.
_PREFIX = "settled:"
_REPORT = "report"

#: Returns a file's signature, which every change of the file alters; None: there is no file.
Signature = Callable[[str], "str | None"]
#: Returns a name for the start of a process; None: there is no such process.
ProcessStart = Callable[[int], "str | None"]


def settings_fingerprint(values: Mapping[str, Any]) -> str:
    """Return the fingerprint of settings for a module of this release of the collection."""
    text = json.dumps([COLLECTION, values], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def record_key(runtime: str, name: str) -> str:
    """Return the key of a runtime's entry among the values of the node's record."""
    return f"{_PREFIX}{runtime}:{name}"


def build_entry(
    fingerprint: str,
    owner: str,
    process: str | None,
    files: Mapping[str, str | None],
    report: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the entry to store.

    :param fingerprint: of the caller's settings.
    :param owner: the distribution of the runtime; the entry is not valid for another one.
    :param process: the daemon's identity; None: none runs.
    :param files: the signatures of all files that the result depends on.
    :param report: the runtime's own view of its configuration, which the facts can reuse.
    """
    entry = {
        "fingerprint": fingerprint,
        "owner": owner,
        "process": process,
        "files": dict(sorted(files.items())),
    }
    return entry if report is None else {**entry, _REPORT: [COLLECTION, report]}


def without_report(entry: Any) -> Any:
    """Return an entry without its report if this release of the collection stored it."""
    if not isinstance(entry, Mapping) or _report(entry) is None:
        return entry
    return {name: value for name, value in entry.items() if name != _REPORT}


def _report(entry: Mapping[str, Any]) -> Mapping[str, Any] | None:
    release, report = [*(entry.get(_REPORT) or ()), None, None][:2]
    return report if release == COLLECTION and isinstance(report, Mapping) else None


def cached_report(
    record: Mapping[str, Any] | None,
    runtime: str,
    owner: str,
    files: Sequence[str],
    *,
    signature: Signature,
    process_start: ProcessStart,
) -> Mapping[str, Any] | None:
    """Return a runtime's stored report if the runtime would report the same again, else None.

    :param files: the program and the file in use now; the entry must be about them.
    """
    for entry in _entries(record, runtime).values():
        valid = valid_fingerprint(entry, owner, signature, process_start)
        if valid is None or not {*files} <= {*entry["files"]}:
            continue
        report = _report(entry)
        if report is not None:
            return report
    return None


def converged_fingerprints(
    record: Mapping[str, Any] | None,
    runtime: str,
    owner: str,
    signature: Signature,
    process_start: ProcessStart,
) -> dict[str, str] | None:
    """Return the fingerprints for which a container runtime has converged, by handler name.

    :param record: the node's record; None: it cannot be read, and None is returned.
    :param owner: the distribution of the runtime on the node.
    """
    if record is None:
        return None
    return {
        name: fingerprint
        for name, entry in _entries(record, runtime).items()
        if (fingerprint := valid_fingerprint(entry, owner, signature, process_start)) is not None
    }


def _entries(record: Mapping[str, Any] | None, runtime: str) -> dict[str, Any]:
    prefix = record_key(runtime, "")
    values = (record or {}).get("values", {})
    return {name[len(prefix) :]: values[name] for name in sorted(values) if name.startswith(prefix)}


def valid_fingerprint(
    entry: Any, owner: str, signature: Signature, process_start: ProcessStart
) -> str | None:
    """Return an entry's fingerprint if nothing has changed since it was stored, else None."""
    if not isinstance(entry, Mapping) or entry.get("owner") != owner:
        return None
    fingerprint, process, files = (entry.get(name) for name in ("fingerprint", "process", "files"))
    if not isinstance(fingerprint, str) or not isinstance(files, Mapping) or not files:
        return None
    # Without a daemon nothing shows when one is started.
    if not isinstance(process, str) or not _is_running(process, process_start):
        return None
    unchanged = all(signature(path) == text for path, text in files.items())
    return fingerprint if unchanged else None


def _is_running(process: str, process_start: ProcessStart) -> bool:
    pid, _at, start = process.partition("@")
    return pid.isdigit() and process_start(int(pid)) == start

# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of targets and of expected GPUs. Pure.

Both are JSON, which is YAML, too: they can be read and written without a library. A run sees some
of the hosts only, so that its hosts are merged into what is there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._core.errors import KubegpuError

# Names that begin so are not labels of the metrics.
_HOST = "__kubegpu_host"
_GPUS = "__kubegpu_gpus"
_SCHEME = "__scheme__"


def read_targets(text: str, path: str) -> list[dict[str, Any]]:
    """Return the entries of the file.

    :raises KubegpuError: somebody else has written it.
    """
    if not text.strip():
        return []
    try:
        entries = json.loads(text)
    except ValueError:
        entries = None
    if not isinstance(entries, list) or not all(_is_ours(one) for one in entries):
        raise KubegpuError(
            f"{path} was not written by this collection.",
            next_step="Move it away, or set gpu_monitoring_prometheus_targets_file to another "
            "path in that folder.",
        )
    return entries


def _is_ours(entry: Any) -> bool:
    """Return whether this collection wrote the entry, and nobody has broken it since."""
    if not isinstance(entry, dict):
        return False
    labels, targets = entry.get("labels"), entry.get("targets")
    return (
        isinstance(labels, dict)
        and all(isinstance(value, str) for value in labels.values())
        and _HOST in labels
        and labels.get(_GPUS, "0").isdecimal()
        and isinstance(targets, list)
        and all(isinstance(target, str) for target in targets)
    )


def merge(
    entries: Iterable[Mapping[str, Any]], hosts: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the entries with those of the hosts replaced, in the order of their names."""
    merged = {one["labels"][_HOST]: dict(one) for one in entries}
    for host in hosts:
        merged.pop(host["host"], None)
        if host.get("targets"):
            labels = {
                _HOST: host["host"],
                _GPUS: str(host.get("gpus") or 0),
                **({_SCHEME: "https"} if host.get("scheme") == "https" else {}),
                **({"job": host["job"]} if host.get("job") else {}),
            }
            merged[host["host"]] = {"targets": list(host["targets"]), "labels": labels}
    return [merged[name] for name in sorted(merged)]


def targets_text(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return the file for ``file_sd_configs``, one line for each host."""
    lines = ",\n".join(f"  {json.dumps(one, sort_keys=True)}" for one in entries)
    return f"[\n{lines}\n]\n"


def expected_text(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return the rules that record how many GPUs each exporter has to show.

    An exporter that shows it by itself has no number here.
    """
    rules = [
        {
            "record": "kubegpu_gpus_expected",
            "expr": f"vector({int(one['labels'][_GPUS])})",
            "labels": {"instance": target},
        }
        for one in entries
        for target in one["targets"]
        if int(one["labels"].get(_GPUS) or 0)
    ]
    lines = ",\n".join(f"    {json.dumps(one, sort_keys=True)}" for one in rules)
    return f'{{"groups": [{{"name": "kubegpu-expected", "rules": [\n{lines}\n]}}]}}\n'

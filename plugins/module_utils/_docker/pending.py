# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the running dockerd waits for a reload or a restart, as :mod:`.daemon` decides it.

For a verification, which starts no container in a diagnosis: ``docker info`` names a runtime that
works by ``--runtime``, also if ``--gpus`` fails until dockerd is restarted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.errors import KubegpuError
from .._core.finding import Finding
from .._formats.json_edit import decode
from .._host.files import read_file
from .._nvidia.toolkit_paths import RUNTIME_PATH
from .config import read, runtimes
from .daemon import needs, parse_version
from .host import DockerHost
from .record import Record
from .types import Dependencies, Request, Settings

_SOCKET = "/run/docker.sock"


def pending(
    facts: Mapping[str, Any], name: str, node: Dependencies, socket: str = _SOCKET
) -> Finding | None:
    """Return why dockerd has to be reloaded or restarted for the runtime ``name``, else None.

    A hook that is newer than dockerd counts only where this collection has configured the runtime:
    its record says whether this dockerd has found an earlier hook.

    :param facts: the fact ``runtimes.docker``.
    """
    path, unit = facts["config_path"], facts["unit"]
    version = parse_version(facts["version"] or "")
    try:
        current = read_file(path)
        document = read(decode(current.content or b"", path), path, version)
        recorded = node.store.record(f"docker_runtime:{current.path}")
    except KubegpuError:
        # A file that dockerd does not load is a problem in the facts.
        return None
    host = DockerHost(Settings(path, None, False, False, "never", unit, socket), node)
    seen = node.store.get(f"docker_runtime:hook:{unit}")
    running = host.running(host.daemon(), file_changes=False, hook_seen_by=seen)
    entry = runtimes(document).get(name)
    if entry is not None and running.info is not None and name not in running.info.runtimes:
        return _not_loaded(path, unit, name)
    if recorded is None or name not in Record.from_json(recorded.details).names:
        return None
    program = str((entry or {}).get("path") or RUNTIME_PATH)
    request = Request(name, True, program, None, False, None)
    restart = needs(document, request, running, version).restart
    return _not_restarted(facts, "; ".join(restart)) if restart else None


def _not_loaded(path: str, unit: str, name: str) -> Finding:
    return Finding(
        "docker_reload_required",
        f"{path} was changed after dockerd read it: its settings of {name} are not in effect.",
        f"{name} is in the file, and docker info does not name it",
        f"systemctl reload {unit} (running containers continue), or run kubegpu.nodes.site, which "
        "does it.",
    )


def _not_restarted(facts: Mapping[str, Any], reason: str) -> Finding:
    unit, count = facts["unit"], facts["containers_running"]
    if facts["live_restore"]:
        step = f"systemctl restart {unit} (live-restore is on: running containers continue)."
    elif count == 0:
        step = f"systemctl restart {unit} (no container runs)."
    else:
        which = "its running containers" if count is None else f"the running containers ({count})"
        step = f"systemctl restart {unit}, which stops {which}, as live-restore is off."
    return Finding(
        "docker_restart_required",
        "A restart of dockerd is pending: the running one does not have all that is configured "
        "for GPUs.",
        reason,
        step,
    )

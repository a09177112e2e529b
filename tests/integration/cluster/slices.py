# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One playbook as several ansible-runner processes at the same time, each with its own inventory.

An automation controller runs the slices of a job so: a runner each, with a folder that holds an
inventory of its part of the hosts only, with the variables of all.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.integration.fleet.playbooks import environment

#: Seconds that all slices together may take; a runner ends its playbook a little earlier.
TIMEOUT = 1800


@dataclass(frozen=True)
class Slice:
    """How one of the processes ended: exit status, all that was printed, numbers by host."""

    status: int
    output: str
    stats: Mapping[str, Mapping[str, int]]

    @property
    def changed(self) -> int:
        return sum(self.stats.get("changed", {}).values())


def part(inventory: Path, hosts: Sequence[str]) -> dict[str, Any]:
    """Return the inventory with these hosts only; the variables of all stay."""
    data: dict[str, Any] = yaml.safe_load(inventory.read_text())
    data["all"]["hosts"] = {name: data["all"]["hosts"][name] for name in hosts}
    return data


def prepare(
    folder: Path, inventory: Mapping[str, Any], variables: Mapping[str, Any] | None = None
) -> Path:
    """Fill a folder as ansible-runner wants it."""
    for name in ("inventory", "env", "project"):
        (folder / name).mkdir(parents=True)
    (folder / "inventory" / "hosts.yml").write_text(yaml.safe_dump(dict(inventory)))
    (folder / "env" / "settings").write_text(json.dumps({"job_timeout": TIMEOUT - 30}))
    (folder / "env" / "extravars").write_text(json.dumps(dict(variables or {})))
    return folder


def run(folders: Sequence[Path], playbook: str, ident: str) -> list[Slice]:
    """Run the playbook in all folders at once, and return how each ended."""
    processes = []
    until = time.monotonic() + TIMEOUT
    try:
        for folder in folders:
            argv = [sys.executable, "-m", "ansible_runner", "run", str(folder)]
            argv += ["--playbook", playbook, "--ident", ident, "--quiet"]
            with _said(folder, ident).open("w") as said:
                processes.append(
                    subprocess.Popen(
                        argv,
                        env=environment(),
                        stdin=subprocess.DEVNULL,
                        stdout=said,
                        stderr=subprocess.STDOUT,
                    )
                )
        for one in processes:
            one.wait(until - time.monotonic())
    finally:
        for one in processes:
            if one.poll() is None:
                one.kill()
                one.wait()
    return [_read(folder, ident, one.returncode) for folder, one in zip(folders, processes)]


def _said(folder: Path, ident: str) -> Path:
    """Return where the runner itself complains."""
    return folder / f"{ident}.log"


def _read(folder: Path, ident: str, status: int) -> Slice:
    artifacts = folder / "artifacts" / ident
    log = artifacts / "stdout"
    stats: dict[str, Any] = {}
    for event in artifacts.glob("job_events/*.json"):
        data = json.loads(event.read_text())
        if data["event"] == "playbook_on_stats":
            stats = data["event_data"]
    output = (log.read_text() if log.exists() else "") + _said(folder, ident).read_text()
    return Slice(status, output, stats)

# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The key with which the nodes are reached, and one command on a node over ssh."""

from __future__ import annotations

from pathlib import Path

from tests.testbed.paths import cache, locked
from tests.testbed.shell import run
from tests.testbed.tools import need

USER = "ops"
OPTIONS = (
    "-o", "StrictHostKeyChecking=no",
    "-o", "UserKnownHostsFile=/dev/null",
    "-o", "LogLevel=ERROR",
    "-o", "IdentitiesOnly=yes",
    "-o", "ConnectTimeout=5",
)  # fmt: skip


def private_key() -> Path:
    """The testbed's own key, made at first use."""
    path = cache() / "ssh" / "id_ed25519"
    with locked("ssh"):
        if not path.is_file():
            need(["ssh", "ssh-keygen"])
            path.parent.mkdir(mode=0o700, exist_ok=True)
            options = ["-q", "-t", "ed25519", "-N", "", "-C", "kubegpu-testbed"]
            run(["ssh-keygen", *options, "-f", str(path)])
    return path


def public_key() -> Path:
    """Its public half."""
    return private_key().with_suffix(".pub")


def answers(address: str) -> bool:
    """Whether the user can log in and become root."""
    command = ["ssh", *OPTIONS, "-o", "BatchMode=yes", "-i", str(private_key())]
    return run([*command, f"{USER}@{address}", "sudo -n true"], check=False).returncode == 0

# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run the collection's playbooks on the fleet, from this checkout, for a person to follow."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.testbed.paths import BUILD, INVENTORY, REPOSITORY
from tests.testbed.shell import TestbedError, say, stream

_RECAP = re.compile(r"^(\S+)\s+: ok=\d+\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.M)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
# Lines of Ansible of which a person reads none: headings, and tasks that went well or were skipped.
_HEADING = re.compile(r"(?:PLAY|TASK|RUNNING HANDLER) (?:\[.*\]|RECAP) \*+$")
_WENT_WELL = re.compile(r"(?:ok|changed|skipping|included): ")


@dataclass(frozen=True)
class Recap:
    """Of each node, how many tasks changed something."""

    changed: dict[str, int]


class Quiet:
    """Whether a line of a playbook is shown: tables, progress and failures are."""

    def __init__(self) -> None:
        self._empty = True

    def __call__(self, line: str) -> bool:
        text = _COLOURS.sub("", line).rstrip()
        if _HEADING.match(text) or _WENT_WELL.match(text):
            return False
        # One empty line of those between the headings.
        repeated = self._empty and not text
        self._empty = not text
        return not repeated


def play(name: str, *arguments: str, log_name: str = "") -> Recap:
    """Run ``kubegpu.nodes.<name>``; a failure stops the demo.

    :param log_name: of the file with all of its output, without ending; the playbook's by default.
    """
    binary = Path(sys.executable).parent / "ansible-playbook"
    if not binary.exists():
        raise TestbedError(f"{binary} is not there: use make demo, which installs it")
    log = BUILD / f"{log_name or name}.log"
    status, text = stream(
        [str(binary), "-i", str(INVENTORY), f"kubegpu.nodes.{name}", *arguments],
        environment={
            "PATH": f"{binary.parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "ANSIBLE_COLLECTIONS_PATH": str(collections()),
            "ANSIBLE_FORCE_COLOR": "1" if sys.stdout.isatty() else "0",
            "ANSIBLE_FORKS": "10",
            # Settings of the person's own must not change what the demo shows.
            "ANSIBLE_CONFIG": str(_configuration()),
        },
        cwd=BUILD,
        log=log,
        shown=Quiet(),
    )
    say(f"all of its output: {log}")
    if status != 0:
        raise TestbedError(f"kubegpu.nodes.{name} failed; its output is in {log}")
    recap = _RECAP.findall(_COLOURS.sub("", text))
    return Recap({node: int(changed) for node, changed, _unreachable, _failed in recap})


def _configuration() -> Path:
    path = BUILD / "ansible.cfg"
    path.write_text("[defaults]\n")
    return path


def collections() -> Path:
    """Make a folder in which this checkout is the collection."""
    top = REPOSITORY / "build" / "collections"
    link = top / "ansible_collections" / "kubegpu" / "nodes"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.exists():
        link.symlink_to(REPOSITORY, target_is_directory=True)
    return top

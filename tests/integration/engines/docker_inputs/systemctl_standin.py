# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stand-in for systemctl where there is no systemd: one unit, whose dockerd lives in a folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def alive(folder: Path) -> int:
    try:
        pid = int((folder / "pid").read_text())
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, ValueError):
        return 0
    return 0 if state == "Z" else pid


def start(folder: Path) -> int:
    given = json.loads((folder / "argv.json").read_text())
    (folder / "pid").unlink(missing_ok=True)
    with (folder / "dockerd.log").open("ab") as log:
        process = subprocess.Popen(
            given["argv"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "PATH": given["path"]},
            start_new_session=True,
        )
    # systemd waits for READY=1, which dockerd sends when its API is up.
    for _attempt in range(300):
        if process.poll() is not None:
            print("Job for docker.service failed.", file=sys.stderr)
            return 1
        if (folder / "pid").exists() and (folder / "d.sock").exists():
            return 0
        time.sleep(0.1)
    return 1


def stop(folder: Path) -> None:
    pid = alive(folder)
    if pid:
        os.kill(pid, signal.SIGTERM)
        while alive(folder):
            time.sleep(0.05)


def main() -> int:
    folder, verb = Path(sys.argv[1]), sys.argv[2]
    with (folder / "systemctl.log").open("a") as log:
        log.write(f"{verb}\n")
    if verb == "show":
        pid = alive(folder)
        print(f"LoadState=loaded\nActiveState={'active' if pid else 'inactive'}\nMainPID={pid}")
    elif verb == "cat":
        print((folder / "unit").read_text())
    elif verb == "reload":
        pid = alive(folder)
        if not pid:
            return 1
        os.kill(pid, signal.SIGHUP)
    elif verb == "restart":
        stop(folder)
        return start(folder)
    elif verb == "stop":
        stop(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())

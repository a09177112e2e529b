# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A node in a folder: the real dockerd of a version, the real module, a stand-in for systemd."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import Finding
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker.api import (
    find_program,
    read_info,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker.pending import pending
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker.types import Dependencies
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore
from ansible_collections.kubegpu.nodes.plugins.modules import docker_runtime
from tests.integration.engines.docker_inputs.daemon import Containerd, Dockerd
from tests.unit.module_process import predicted, run_module

SYSTEMCTL_STANDIN = Path(__file__).with_name("systemctl_standin.py")
HOOK = "nvidia-container-runtime-hook"


def _run(argv: list[str], timeout: int = 60, environment: Any = None) -> Result:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=timeout, check=False)
    return Result(done.returncode, done.stdout, done.stderr)


class Node:
    def __init__(self, version: str, folder: Path, monkeypatch: Any) -> None:
        self.version = version
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir(parents=True)
        self.state = folder / "state" / "state.json"
        self.dockerd = Dockerd(version, folder, Containerd.shared())
        self.config = self.dockerd.config
        self._program("dockerd", f'#!/bin/sh\nexec {self.dockerd.program} "$@"\n')
        self._program("runtime", '#!/bin/sh\nexec runc "$@"\n')
        standin = f'#!/bin/sh\nexec {sys.executable} {SYSTEMCTL_STANDIN} {folder} "$@"\n'
        self._program("systemctl", standin)
        self._program("journalctl", f"#!/bin/sh\ntail -n 15 {self.dockerd.log}\n")
        self.path = f"{self.bin}:{os.environ['PATH']}"
        monkeypatch.setenv("PATH", self.path)
        self.unit([])

    @property
    def runtime(self) -> str:
        return str(self.bin / "runtime")

    def _program(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(text)
        path.chmod(0o755)

    def install_hook(self) -> None:
        self._program(HOOK, "#!/bin/sh\nexit 0\n")

    def unit(self, flags: list[str]) -> None:
        """Write the unit with these flags of the admin's."""
        (self.folder / "argv.json").write_text(
            json.dumps({"argv": self.dockerd.arguments(*flags), "path": self.path})
        )
        unit = f"# {self.folder}/docker.service\n[Service]\nExecStart=/usr/sbin/dockerd "
        (self.folder / "unit").write_text(unit + " ".join(flags) + "\n")

    def start(self) -> None:
        self.dockerd.start(path=self.path)

    def arguments(self, **options: Any) -> dict[str, Any]:
        return {
            "config_path": str(self.config),
            "state_path": str(self.state),
            "runtime_path": self.runtime,
            "socket": str(self.dockerd.socket),
            **options,
        }

    def run(self, check: bool = False, **options: Any) -> dict[str, Any]:
        answer: dict[str, Any] = run_module(
            docker_runtime.main, self.arguments(**options), check=check
        )
        return answer

    def predicted(self, **options: Any) -> dict[str, Any]:
        answer: dict[str, Any] = predicted(docker_runtime.main, self.arguments(**options))
        assert not answer.get("failed"), answer["msg"]
        return answer

    def pending(self) -> Finding | None:
        """Return what a verification says that the running dockerd waits for."""
        info = self.dockerd.info()
        facts = {
            "config_path": str(self.config), "unit": "docker", "version": info["ServerVersion"],
            "live_restore": info["LiveRestoreEnabled"],
            "containers_running": info["ContainersRunning"],
        }  # fmt: skip
        store = StateStore(str(self.state))
        access = Dependencies(_run, store, "", read_info, find_program)
        return pending(facts, "nvidia", access, str(self.dockerd.socket))

    def leftovers(self) -> list[str]:
        """Return what is left of the module's own on the node."""
        found = [str(path) for path in self.folder.rglob("*.kubegpu")]
        if self.state.parent.exists():
            found += [str(path) for path in self.state.parent.rglob("*")]
        return found

    def close(self) -> None:
        # The stand-in for systemd may have started another one than ours.
        self.systemctl("stop")
        self.dockerd.stop()

    def systemctl(self, verb: str) -> None:
        subprocess.run([self.bin / "systemctl", verb], check=True)

# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Real ``dockerd`` and ``containerd`` processes in a folder of their own, without a network."""

from __future__ import annotations

import atexit
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

VERSIONS = ("20.10", "26.1", "28.5")
VALIDATORS = (
    Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kubegpu" / "validators"
)


def dockerd_program(version: str) -> Path:
    return VALIDATORS / f"docker-{version}" / "bin" / "dockerd"


def containerd_program() -> Path:
    return VALIDATORS / "containerd-1.7" / "bin" / "containerd"


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("docker", timeout=10)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(10)
        self.sock.connect(str(self._path))


class Containerd:
    def __init__(self, folder: Path) -> None:
        self.address = folder / "cd.sock"
        config = folder / "containerd.toml"
        config.write_text(
            f'version = 2\nroot = "{folder}/cd-root"\nstate = "{folder}/cd-state"\n'
            f'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n'
            f'[grpc]\naddress = "{self.address}"\n'
        )
        self._process = _start([containerd_program(), "--config", config], folder / "cd.log")
        _wait(self.address.exists, folder / "cd.log", self._process)

    _running: Containerd | None = None

    @classmethod
    def shared(cls) -> Containerd:
        """Return the one containerd of this test process; it is stopped at its end."""
        if cls._running is None:
            # A socket's path has 108 characters: not below pytest's folders.
            home = Path(tempfile.mkdtemp(prefix="kubegpu-"))
            cls._running = cls(home)
            atexit.register(cls._running.stop)
            atexit.register(shutil.rmtree, home, True)
        return cls._running

    def stop(self) -> None:
        _stop(self._process)


class Dockerd:
    """One ``dockerd`` of a version, on a configuration file that the test edits."""

    def __init__(self, version: str, folder: Path, containerd: Containerd) -> None:
        self.version = version
        self.program = dockerd_program(version)
        self.folder = folder
        self.config = folder / "daemon.json"
        self.socket = folder / "d.sock"
        self.log = folder / "dockerd.log"
        self._containerd = containerd
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def arguments(self, *extra: str) -> list[str]:
        return [
            str(self.program),
            f"--config-file={self.config}",
            f"--containerd={self._containerd.address}",
            f"--data-root={self.folder}/data",
            f"--exec-root={self.folder}/exec",
            f"--pidfile={self.folder}/pid",
            f"--host=unix://{self.socket}",
            "--storage-driver=vfs",
            "--bridge=none",
            "--iptables=false",
            "--ip-forward=false",
            *extra,
        ]

    def start(self, *extra: str, path: str | None = None) -> None:
        """Start it and wait until it answers.

        :param path: the PATH that dockerd finds ``nvidia-container-runtime-hook`` in.
        """
        environment = dict(os.environ)
        if path is not None:
            environment["PATH"] = path
        self._process = _start(self.arguments(*extra), self.log, environment)
        _wait(self._answers, self.log, self._process)

    def words_of_refusal(self, *extra: str) -> str:
        """Start it where it must not come up, and return its last line."""
        done = subprocess.run(
            self.arguments(*extra), capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode != 0
        return done.stderr.strip().splitlines()[-1]

    def validate(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.program, "--validate", f"--config-file={self.config}"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def reload(self) -> None:
        assert self._process is not None
        before = self.log.read_bytes().count(b"Reloaded configuration")
        self._process.send_signal(signal.SIGHUP)
        _wait(
            lambda: self.log.read_bytes().count(b"Reloaded configuration") > before,
            self.log,
            self._process,
        )

    def info(self) -> dict[str, Any]:
        connection = _Connection(self.socket)
        try:
            connection.request("GET", "/info")
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return answer

    def stop(self) -> None:
        if self._process is not None:
            _stop(self._process)
            self._process = None
        # dockerd binds its data folder onto itself, and leaves it so when it dies.
        for line in Path("/proc/mounts").read_text().splitlines():
            if line.split()[1].startswith(f"{self.folder}/"):
                subprocess.run(["umount", "--lazy", line.split()[1]], check=False)

    def _answers(self) -> bool:
        try:
            return "Runtimes" in self.info()
        except OSError:
            return False


def _start(
    argv: list[Any], log: Path, environment: dict[str, str] | None = None
) -> subprocess.Popen[bytes]:
    # It ends with the test process, also where that one is killed.
    bound = ["setpriv", "--pdeathsig", "TERM", *(str(part) for part in argv)]
    with log.open("ab") as handle:
        return subprocess.Popen(bound, stdout=handle, stderr=handle, env=environment)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(20)


def _wait(condition: Any, log: Path, process: subprocess.Popen[bytes], seconds: float = 40) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, log.read_text(errors="replace")[-2000:]
        assert time.monotonic() < deadline, log.read_text(errors="replace")[-2000:]
        time.sleep(0.05)

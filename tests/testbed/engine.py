# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A Docker engine for the nodes: the user's own where one answers, else one of the testbed's."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.testbed.paths import RUN, RUN_NAME, RUN_VARIABLE, cache
from tests.testbed.processes import has_ended, own_name
from tests.testbed.shell import TestbedError, as_root, run, say
from tests.testbed.tools import need, which

SOCKET = RUN / "docker.sock"
_CONTAINERD_SOCKET = RUN / "containerd.sock"
_OWN = {"DOCKER_HOST": f"unix://{SOCKET}"}
# Beside its sockets, as who has another cache uses it too; a reboot empties both.
_USERS = RUN.with_name(f"{RUN.name}-users")
_LOCK = ".lock"
_OF_A_RUN = (RUN_VARIABLE, "TMPDIR")


def up() -> None:
    """Make sure that a Docker daemon answers."""
    with _locked():
        _register()
        need(["docker"])
        _access.cache_clear()
        if _access() is not None:
            return
        need(["dockerd", "containerd", "iptables"])
        say("no Docker daemon answers: starting one for the testbed alone")
        _start()
        _access.cache_clear()


def down() -> None:
    """Stop the testbed's own daemons, and nobody else's."""
    if is_own():
        # A dockerd that ends waits a quarter of a minute for its containers, and no longer: shims
        # that run on then keep their nodes from being removed by the next one.
        running = docker("ps", "--quiet").stdout.split()
        if running:
            docker("kill", *running, check=False, timeout=120)
    for name in ("dockerd", "containerd"):
        _stop(RUN / f"{name}.pid", name)
    _end_shims()
    if RUN.exists():
        run(["rm", "-rf", "--one-file-system", str(RUN)], root=True)
    _access.cache_clear()


def stop_unused(name: str) -> None:
    """Stop the testbed's own daemons if no container is there and nobody but ``name`` uses them."""
    with _locked():
        for user in _users():
            if user.name == name or has_ended(user.name):
                user.unlink(missing_ok=True)
        _access.cache_clear()
        if not is_own() or _users() or docker("ps", "--all", "--quiet").stdout.strip():
            return
        down()


def remove() -> None:
    """Stop the testbed's own daemons and remove what they stored, if no other fleet uses them."""
    with _locked():
        # A run that has just ended may have stopped them: the last containers are gone by now.
        _access.cache_clear()
        if is_own():
            if docker("ps", "--all", "--quiet").stdout.strip():
                say("the testbed's Docker engine is kept: another fleet uses it")
                return
            docker("network", "prune", "--force", check=False)
        down()
    store = cache() / "engine"
    if store.exists():
        # A daemon that was killed leaves its store mounted on itself.
        run(["umount", str(store / "docker")], root=True, check=False)
        run(["rm", "-rf", "--one-file-system", str(store)], root=True)


def answers() -> bool:
    """Whether a Docker daemon answers."""
    return _access() is not None


def is_own() -> bool:
    """Whether the engine in use is the testbed's own."""
    found = _access()
    return found is not None and found[1] is _OWN


def docker(
    *arguments: str, check: bool = True, stdin: str | None = None, timeout: float = 600
) -> subprocess.CompletedProcess[str]:
    """One docker command on whichever engine is in use."""
    found = _access()
    if found is None:
        up()
        found = _access()
    if found is None:
        raise TestbedError("no Docker daemon answers")
    command, environment = found
    return run(
        [*command, *arguments], check=check, stdin=stdin, environment=environment, timeout=timeout
    )


def docker_argv(*arguments: str) -> list[str]:
    """The same as a command line that somebody else may start (with DOCKER_HOST in it)."""
    found = _access()
    if found is None:
        raise TestbedError("no Docker daemon answers")
    command, environment = found
    return ["env", *(f"{key}={value}" for key, value in environment.items()), *command, *arguments]


def docker_line(*arguments: str) -> str:
    """The same as a line for a person's shell, whose PATH and Docker may be others."""
    found = _access()
    if found is None:
        raise TestbedError("no Docker daemon answers")
    command, environment = found
    host = environment.get("DOCKER_HOST")
    words = [*command, *(["-H", host] if host else []), *arguments]
    return shlex.join([str(which(word) or word) if word in command else word for word in words])


@functools.cache
def _access() -> tuple[Sequence[str], dict[str, str]] | None:
    """How to reach a daemon: the command's first words and its environment."""
    if which("docker") is None:
        return None
    attempts: list[tuple[Sequence[str], dict[str, str]]] = [(["docker"], {})]
    if os.geteuid() != 0:
        attempts.append((["sudo", "-n", "docker"], {}))
    if SOCKET.exists():
        attempts.insert(0, (["docker"], _OWN))
    for command, environment in attempts:
        answer = run(
            [*command, "version", "--format", "{{.Server.Version}}"],
            check=False,
            environment=environment,
            timeout=60,
        )
        if answer.returncode == 0:
            return command, environment
    return None


def _register() -> None:
    """Note who may use the engine from now on: the run of the tests, or this process."""
    (_USERS / (RUN_NAME or own_name())).touch()


def _users() -> list[Path]:
    return [path for path in _USERS.glob("*") if path.name != _LOCK]


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    """One process at a time starts or stops the engine, whichever cache it uses."""
    if not _USERS.is_dir():
        run(["install", "-d", "-m", "1777", str(_USERS)], root=True)
    with (_USERS / _LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _end_shims() -> None:
    """End what a containerd of ours left running when it was ended itself."""
    address = str(_CONTAINERD_SOCKET).encode()
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            if address in words and b"containerd-shim" in words[0]:
                run(["kill", "-KILL", entry.name], root=True, check=False)


def _start() -> None:
    store = cache() / "engine"
    store.mkdir(exist_ok=True)
    run(["mkdir", "-p", str(RUN)], root=True)
    configuration = store / "containerd.toml"
    configuration.write_text(
        "version = 2\n"
        f'root = "{store}/containerd"\n'
        f'state = "{RUN}/containerd"\n'
        'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n'
        f'[grpc]\n  address = "{_CONTAINERD_SOCKET}"\n'
    )
    (store / "daemon.json").write_text(json.dumps({"live-restore": False}) + "\n")
    _spawn("containerd", [str(which("containerd")), "--config", str(configuration)])
    _wait(_CONTAINERD_SOCKET, "containerd")
    _spawn(
        "dockerd",
        [
            str(which("dockerd")),
            f"--config-file={store}/daemon.json",
            f"--data-root={store}/docker",
            f"--exec-root={RUN}/docker",
            f"--pidfile={RUN}/dockerd.self.pid",
            f"--host=unix://{SOCKET}",
            f"--containerd={_CONTAINERD_SOCKET}",
            f"--group={os.getgid()}",
            # The fleet has a network of its own; the default bridge is somebody else's.
            "--bridge=none",
        ],
    )
    _wait(SOCKET, "dockerd")
    deadline = time.monotonic() + 60
    while run(["docker", "version"], check=False, environment=_OWN).returncode != 0:
        if time.monotonic() > deadline:
            raise TestbedError(f"dockerd does not answer; see {store}/dockerd.log")
        time.sleep(0.3)


def _spawn(name: str, argv: Sequence[str]) -> None:
    """Start a daemon as root in a session of its own and write its process id down."""
    log = cache() / "engine" / f"{name}.log"
    script = f'echo $$ > "{RUN}/{name}.pid"; exec "$@"'
    # It serves other runs too, and does not end with this one.
    environment = {key: value for key, value in os.environ.items() if key not in _OF_A_RUN}
    with log.open("wb") as output:
        subprocess.Popen(
            as_root(["sh", "-c", script, name, *argv]),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _wait(path: Path, name: str) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        if time.monotonic() > deadline:
            raise TestbedError(f"{name} did not start; see {cache()}/engine/{name}.log")
        time.sleep(0.1)


def _stop(pidfile: Path, name: str) -> None:
    """Stop the process that the file names, if it still is the program that we started."""
    with contextlib.suppress(OSError, ValueError):
        pid = int(pidfile.read_text())
        if name not in Path(f"/proc/{pid}/comm").read_text():
            return
        run(["kill", f"-{signal.SIGTERM.value}", str(pid)], root=True, check=False)
        deadline = time.monotonic() + 30
        while Path(f"/proc/{pid}").exists():
            if time.monotonic() > deadline:
                raise TestbedError(f"{name} (process {pid}) does not stop")
            time.sleep(0.1)

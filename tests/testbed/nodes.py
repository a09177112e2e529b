# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Start, look at and remove the node containers."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.testbed import cluster_binaries, images, network, repository, ssh
from tests.testbed.engine import docker, docker_argv
from tests.testbed.fleet import LABEL, NAME, Node
from tests.testbed.paths import RUN_LABEL, RUN_NAME
from tests.testbed.payload import payload
from tests.testbed.shell import TestbedError, run, say

# Data folders that must not lie on the image's own layered file system.
_VOLUMES = ("/var/lib/containerd", "/var/lib/docker", "/var/lib/kubelet")
_CGROUP = Path("/sys/fs/cgroup")
# The machine's own switch: all nodes together are one user, and 128 do for one fleet or cluster.
_WATCHES = Path("/proc/sys/fs/inotify/max_user_instances")
_ENOUGH_WATCHES = 1024
# The group of all containers, by generation of cgroups. Together they count as one process of the
# machine unless told otherwise, and a module's build in a node starves beside other tests.
_SHARES = {
    Path("/sys/fs/cgroup/cpu/docker/cpu.shares"): "8192",
    Path("/sys/fs/cgroup/cpu,cpuacct/docker/cpu.shares"): "8192",
    Path("/sys/fs/cgroup/docker/cpu.weight"): "800",
}
_PATIENCE = 120.0
# An engine on a busy machine takes a quarter of a minute for a node; more than this is no answer.
_REMOVAL_PATIENCE = 120.0


def up(nodes: Sequence[Node]) -> None:
    """Start what does not run, all at once, and wait until each can be used."""
    _allow_watches()
    network.up()
    images.images(node.release for node in nodes)
    with ThreadPoolExecutor(max_workers=4) as pool:
        list(pool.map(_up, nodes))
    _give_share()


def _give_share() -> None:
    for path, share in _SHARES.items():
        if path.exists() and path.read_text(encoding="ascii").strip() != share:
            run(["tee", str(path)], root=True, stdin=share)


def _allow_watches() -> None:
    """Without: 'inotify_init: too many open files', from systemd of a node or from a kubelet."""
    if int(_WATCHES.read_text(encoding="ascii")) < _ENOUGH_WATCHES:
        say(f"raising fs.inotify.max_user_instances of this machine to {_ENOUGH_WATCHES}")
        run(["sysctl", "-q", f"fs.inotify.max_user_instances={_ENOUGH_WATCHES}"], root=True)


def is_running(node: Node) -> bool:
    """Whether the node's container runs."""
    answer = docker("inspect", "--format", "{{.State.Running}}", node.container, check=False)
    return answer.stdout.strip() == "true"


def down(nodes: Sequence[Node]) -> None:
    """Remove the containers with all that they stored."""
    _remove([node.container for node in nodes])


def remove_labelled(label: str, gone: Callable[[str], bool]) -> None:
    """Remove the containers and networks, of any fleet, whose label has such a value."""
    shown = ["--filter", f"label={label}", "--format", f'{{{{.Names}}}} {{{{.Label "{label}"}}}}']
    found = [line.split() for line in docker("ps", "--all", *shown).stdout.splitlines()]
    containers = [words[0] for words in found if gone(words[-1])]
    if containers:
        say(f"removing what a run left: {' '.join(containers)}")
        _remove(containers)
        remove_cgroups(containers)
    shown[-1] = f'{{{{.Name}}}} {{{{.Label "{label}"}}}}'
    for line in docker("network", "ls", *shown).stdout.splitlines():
        name, value = line.split()
        if gone(value):
            docker("network", "rm", name, check=False)


def remove_cgroups(containers: Sequence[str]) -> None:
    """Remove what the pods of nodes that are gone left in this machine's control groups."""
    script = (
        "for top in /sys/fs/cgroup /sys/fs/cgroup/*; do"
        ' if [ -d "$top$1" ] && [ ! -L "$top" ]; then'
        ' find "$top$1" -depth -type d -exec rmdir {} + 2>/dev/null; fi; done; true'
    )
    for container in containers:
        run(["sh", "-c", script, "sh", _cgroup_path(container)], root=True, check=False)


def _remove(containers: Sequence[str]) -> None:
    """Remove containers side by side, then the volumes that are theirs by name."""
    if not containers:
        return
    with ThreadPoolExecutor(max_workers=4) as pool:
        list(pool.map(_remove_container, containers))
    kept = tuple(f"{container}-" for container in containers)
    names = docker("volume", "ls", "--quiet").stdout.split()
    gone = [name for name in names if name.startswith(kept)]
    if gone:
        docker("volume", "rm", "--force", *gone, check=False)


def _remove_container(container: str) -> None:
    """Remove one, whatever became of its daemon's idea of it.

    A dockerd that was stopped while the node ran may take the node for stopped, or wait for a shim
    that is gone; then the node's first process is ended here, and the engine asked again.
    """
    for last in (False, True):
        try:
            argv = ("rm", "--force", "--volumes", container)
            done = docker(*argv, check=False, timeout=_REMOVAL_PATIENCE)
        except TestbedError:
            if last:
                raise
        else:
            if done.returncode == 0 or "No such container" in done.stderr:
                return
            if last:
                raise TestbedError(f"{container} cannot be removed: {done.stderr.strip()}")
        _kill_first_process(container)


def _kill_first_process(container: str) -> None:
    """End the node's first process; the kernel ends all others of the node with it."""
    identity = docker("inspect", "--format", "{{.Id}}", container, check=False).stdout.strip()
    if not identity:
        return
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if not entry.name.isdigit() or identity not in (entry / "cgroup").read_text():
                continue
            pids = [line for line in (entry / "status").read_text().splitlines() if "NSpid" in line]
            if pids and pids[0].split()[2:] == ["1"]:
                run(["kill", "-KILL", entry.name], root=True, check=False)


def others() -> bool:
    """Whether nodes of another fleet are there."""
    return bool(docker("ps", "--all", "--quiet", "--filter", f"label={LABEL}").stdout.strip())


def execute(node: Node, *argv: str, check: bool = True, stdin: str | None = None) -> str:
    """Run a command as root in a node and give what it printed on stdout."""
    flags = ["--interactive"] if stdin is not None else []
    return docker("exec", *flags, node.container, *argv, check=check, stdin=stdin).stdout


def _up(node: Node) -> None:
    if is_running(node):
        return
    started = time.monotonic()
    down([node])
    docker(*_create_arguments(node))
    copy_in(node, payload(node))
    docker("start", node.container)
    _wait_for_systemd(node)
    execute(node, "/opt/testbed/setup")
    execute(node, "/opt/testbed/load-image")
    if node.archive:
        _give_archive(node)
    if node.kubernetes:
        execute(node, "/opt/testbed/setup-cluster", cgroup_of(node))
    _wait_for_ssh(node)
    say(f"nodes: {node.name} (Debian {node.suite}) is up after {time.monotonic() - started:.0f} s")


def _give_archive(node: Node) -> None:
    """Let the node's apt know its distribution's archive, and install its kernels from there."""
    kernels = (node.kernel, *node.kernels) if node.archive == "ubuntu" else ()
    codename = "noble" if node.archive == "ubuntu" else node.release.suite
    base = repository.address()
    execute(node, "/opt/testbed/setup-drivers", node.archive, codename, base, *kernels)


def _create_arguments(node: Node) -> list[str]:
    arguments = ["create", "--name", node.container, "--hostname", node.hostname]
    arguments += ["--network", NAME, "--label", LABEL, "--stop-signal", "SIGRTMIN+3"]
    if RUN_NAME:
        arguments += ["--label", f"{RUN_LABEL}={RUN_NAME}"]
    if node.archive:
        # A machine that reboots comes back. The capability is there to be seen: what loads
        # modules is a stand-in.
        arguments += ["--restart", "always", "--cap-add", "SYS_MODULE"]
        # Nothing is ever loaded (bin/kmod stands in), but programs see that they might.
        arguments += ["--cap-add", "SYS_MODULE"]
    for capability in ("SYS_ADMIN", "NET_ADMIN", "SYS_PTRACE", "SYSLOG"):
        arguments += ["--cap-add", capability]
    for option in ("seccomp=unconfined", "apparmor=unconfined"):
        arguments += ["--security-opt", option]
    arguments += ["--device", "/dev/kmsg", "--env", "container=docker", "--cgroupns=host"]
    arguments += ["--volume", f"{_cgroup(node)}:/sys/fs/cgroup:rw"]
    arguments += ["--tmpfs", "/run", "--tmpfs", "/tmp"]
    for path in _VOLUMES:
        arguments += ["--volume", f"{node.container}-{path.rsplit('/', 1)[1]}:{path}"]
    init = ["/lib/systemd/systemd"]
    if node.kubernetes:
        programs = cluster_binaries.programs()
        arguments += ["--volume", f"{programs}:/opt/kubernetes:ro"]
        arguments += ["--volume", f"{programs}/cni:/opt/cni/bin:ro"]
        if _hybrid() and node.release.unified_cgroup:
            # A kubelet needs the controllers, and they are in the old hierarchy here.
            init += ["systemd.unified_cgroup_hierarchy=0", "SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1"]
    return [*arguments, images.tag(node.release), *init]


def cgroup_of(node: Node) -> str:
    """Where its kubelet keeps the pods: the nodes of a machine share its control groups."""
    return _cgroup_path(node.container)


def _cgroup_path(container: str) -> str:
    return f"/kubegpu.{container}"


def _cgroup(node: Node) -> Path:
    """On a machine with both hierarchies a new systemd gets the unified one."""
    unified = _hybrid() and node.release.unified_cgroup and not node.kubernetes
    return _CGROUP / "unified" if unified else _CGROUP


def _hybrid() -> bool:
    return not (_CGROUP / "cgroup.controllers").exists() and (_CGROUP / "unified").is_dir()


def copy_in(node: Node, archive: bytes) -> None:
    """Lay a tar stream over the node's file system."""
    argv = docker_argv("cp", "-", f"{node.container}:/")
    done = subprocess.run(argv, input=archive, capture_output=True, check=False)
    if done.returncode != 0:
        raise TestbedError(f"docker cp into {node.name}: {done.stderr.decode(errors='replace')}")


def _wait_for_systemd(node: Node) -> None:
    deadline = time.monotonic() + _PATIENCE
    state = ""
    while time.monotonic() < deadline:
        state = execute(node, "systemctl", "is-system-running", check=False).strip()
        if state == "running":
            return
        if state == "degraded":
            failed = execute(node, "systemctl", "--failed", "--no-legend", "--plain", check=False)
            raise TestbedError(f"{node.name}: units that failed:\n{failed}")
        if not is_running(node):
            break
        time.sleep(0.3)
    raise TestbedError(f"{node.name}: systemd is {state or 'not running'}")


def _wait_for_ssh(node: Node) -> None:
    address = network.address(node, network.look())
    deadline = time.monotonic() + _PATIENCE
    while not ssh.answers(address):
        if time.monotonic() > deadline:
            raise TestbedError(f"{node.name}: no ssh at {address}")
        time.sleep(0.3)
